/* rpc_grpc.c - what calls over gRPC need of its library, and the table of the transport. */

#include <grpc/support/log.h>
#include <grpc/support/time.h>

#include "base/log.h"
#include "proto/rpc_grpc.h"
#include "proto/rpc_http2.h"

static void library_log(gpr_log_func_args *args)
{
    char text[600];
    log_line(LOG_DEBUG, "grpc", "msg=%s", log_quote(args->message, text, sizeof(text)));
}

void rpc_grpc_open(void)
{
    gpr_set_log_function(library_log);
    grpc_init();
}

void rpc_grpc_completed(const grpc_event *event)
{
    struct tag *tag = event->tag;
    bool given = atomic_load_explicit(&tag->given, memory_order_acquire);
    assert(given);
    tag->completed(tag, event->success != 0);
}

grpc_arg rpc_grpc_arg(const char *key, int64_t value)
{
    int limited = value > INT32_MAX ? INT32_MAX : (int)value;
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = limited};
}

void rpc_grpc_batch(grpc_call *call, const grpc_op *ops, size_t count, struct tag *tag)
{
    grpc_call_error refused = grpc_call_start_batch(call, ops, count, rpc_grpc_give(tag), NULL);
    assert(refused == GRPC_CALL_OK);
}

bool rpc_grpc_read(grpc_byte_buffer *buffer, struct str *out)
{
    grpc_byte_buffer_reader reader;
    if (!grpc_byte_buffer_reader_init(&reader, buffer)) {
        grpc_byte_buffer_destroy(buffer);
        return false;
    }
    grpc_slice *slice;
    while (grpc_byte_buffer_reader_peek(&reader, &slice))
        str_add_bytes(out, GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(buffer);
    return true;
}

grpc_byte_buffer *rpc_grpc_buffer(const void *bytes, size_t size)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(bytes ? bytes : "", size);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

const struct rpc_transport rpc_grpc_transport = {
    .server_start = rpc_http2_host_start,
    .server_stop = rpc_http2_host_stop,
    .later = rpc_http2_host_later,
    .answer = rpc_http2_call_answer,
    .answer_from = rpc_http2_call_answer_from,
    .cancelled = rpc_http2_call_cancelled,
    .watch = rpc_http2_call_watch,
    .unwatch = rpc_http2_call_unwatch,
    .client_new = rpc_grpc_client_new,
    .client_free = rpc_grpc_client_free,
    .client_call = rpc_grpc_client_call,
    .client_start = rpc_grpc_client_start,
    .client_peer = rpc_grpc_client_peer,
    .client_start_into = rpc_grpc_client_start_into,
    .client_cancel_started = rpc_grpc_client_cancel_started,
    .client_cancel = rpc_grpc_client_cancel,
};
