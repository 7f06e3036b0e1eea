/* rpc_socket.c - the table of the transport. */

#include "proto/rpc_socket.h"

const struct rpc_transport rpc_socket_transport = {
    .server_start = rpc_socket_host_start,
    .server_stop = rpc_socket_host_stop,
    .later = rpc_socket_host_later,
    .answer = rpc_socket_server_answer,
    .answer_from = rpc_socket_server_answer_from,
    .cancelled = rpc_socket_server_cancelled,
    .watch = rpc_socket_server_watch,
    .unwatch = rpc_socket_server_unwatch,
    .client_new = rpc_socket_client_new,
    .client_free = rpc_socket_client_free,
    .client_call = rpc_socket_wait_call,
    .client_start = rpc_socket_client_start,
    .client_start_into = rpc_socket_client_start_into,
    .client_cancel_started = rpc_socket_client_cancel_started,
    .client_cancel = rpc_socket_client_cancel,
    .client_hold = rpc_socket_client_hold,
    .client_drop = rpc_socket_client_drop,
    .client_attend = rpc_socket_client_attend,
    .client_nudge = rpc_socket_client_nudge,
};
