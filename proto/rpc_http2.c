/* rpc_http2.c - gRPC over libnghttp2: the table of the transport. */

#include "proto/rpc_http2.h"

const struct rpc_transport rpc_http2_transport = {
    .server_start = rpc_http2_host_start,
    .server_stop = rpc_http2_host_stop,
    .later = rpc_http2_host_later,
    .answer = rpc_http2_call_answer,
    .answer_pieces = rpc_http2_call_answer_pieces,
    .answer_from = rpc_http2_call_answer_from,
    .cancelled = rpc_http2_call_cancelled,
    .watch = rpc_http2_call_watch,
    .unwatch = rpc_http2_call_unwatch,
    .client_new = rpc_http2_client_new,
    .client_free = rpc_http2_client_free,
    .client_call = rpc_http2_client_call,
    .client_start = rpc_http2_client_start,
    .client_peer = rpc_http2_client_peer,
    .client_start_into = rpc_http2_client_start_into,
    .client_cancel_started = rpc_http2_client_cancel_started,
    .client_cancel = rpc_http2_client_cancel,
};
