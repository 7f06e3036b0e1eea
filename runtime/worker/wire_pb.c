/* wire_pb.c - WorkerService's messages from and to protobuf. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/error_whole.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/tensor_pb.h"
#include "runtime/waits.h"
#include "runtime/worker/wire.h"
#include "runtime/worker/wire_pb.h"
#include "tensorflow/worker.pb-c.h"

enum { EXCHANGE = 2 }; /* the form of what only tasks of ours say to each other */

static struct arena *arena_for(size_t size)
{
    return arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
}

/* --- sessions and graphs --- */

void wire_write_create_session(const struct wire_session *in, struct str *out)
{
    Tensorflow__CreateWorkerSessionRequest request =
        TENSORFLOW__CREATE_WORKER_SESSION_REQUEST__INIT;
    request.session_handle = (char *)in->session;
    request.isolate_session_state = in->isolate;
    message_pack(&request.base, out);
}

void wire_write_delete_session(const struct wire_session *in, struct str *out)
{
    Tensorflow__DeleteWorkerSessionRequest request =
        TENSORFLOW__DELETE_WORKER_SESSION_REQUEST__INIT;
    request.session_handle = (char *)in->session;
    message_pack(&request.base, out);
}

void wire_write_register_graph(const struct wire_session *in, struct str *out)
{
    Tensorflow__RegisterGraphRequest request = TENSORFLOW__REGISTER_GRAPH_REQUEST__INIT;
    request.session_handle = (char *)in->session;
    request.create_worker_session_called = in->session[0];
    request.graph_def.data = (uint8_t *)in->graph_def;
    request.graph_def.len = in->graph_def_size;
    request.collective_graph_key = in->collectives;
    message_pack(&request.base, out);
}

void wire_write_deregister_graph(const struct wire_session *in, struct str *out)
{
    Tensorflow__DeregisterGraphRequest request = TENSORFLOW__DEREGISTER_GRAPH_REQUEST__INIT;
    request.session_handle = (char *)in->session;
    request.create_worker_session_called = in->session[0];
    request.graph_handle = (char *)in->graph;
    message_pack(&request.base, out);
}

bool wire_read_create_session(const void *bytes, size_t size, struct arena *arena,
                              struct wire_session *out, struct error *err)
{
    const Tensorflow__CreateWorkerSessionRequest *request = message_unpack(
        &tensorflow__create_worker_session_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct wire_session){.session = request->session_handle,
                                     .isolate = request->isolate_session_state};
    return request;
}

bool wire_read_delete_session(const void *bytes, size_t size, struct arena *arena,
                              struct wire_session *out, struct error *err)
{
    const Tensorflow__DeleteWorkerSessionRequest *request = message_unpack(
        &tensorflow__delete_worker_session_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct wire_session){.session = request->session_handle};
    return request;
}

/* The session that a request is about: one that was made, or the one that is always there. */
static const char *session_of(const char *handle, bool made)
{
    return made ? handle : "";
}

bool wire_read_register_graph(const void *bytes, size_t size, struct arena *arena,
                              struct wire_session *out, struct error *err)
{
    const Tensorflow__RegisterGraphRequest *request = message_unpack(
        &tensorflow__register_graph_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct wire_session){
            .session =
                session_of(request->session_handle, request->create_worker_session_called),
            .graph_def = request->graph_def.data,
            .graph_def_size = request->graph_def.len,
        };
    return request;
}

bool wire_read_deregister_graph(const void *bytes, size_t size, struct arena *arena,
                                struct wire_session *out, struct error *err)
{
    const Tensorflow__DeregisterGraphRequest *request = message_unpack(
        &tensorflow__deregister_graph_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct wire_session){
            .session =
                session_of(request->session_handle, request->create_worker_session_called),
            .graph = request->graph_handle,
        };
    return request;
}

/* --- runs --- */

enum { FIELD_SEND = 3, FIELD_RECV = 1 }; /* of RunGraphRequest, RunGraphResponse */

static Tensorflow__NamedTensorProto **pack_named(const char *const *names,
                                                 const struct tensor *tensors, int count,
                                                 struct arena *arena)
{
    Tensorflow__NamedTensorProto **all = arena_array(arena, (size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        all[i] = arena_alloc(arena, sizeof(**all));
        tensorflow__named_tensor_proto__init(all[i]);
        all[i]->name = (char *)names[i];
        all[i]->tensor = tensor_pack(&tensors[i], true, arena);
    }
    return all;
}

void wire_write_run(const struct wire_run *in, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__RunGraphRequest request = TENSORFLOW__RUN_GRAPH_REQUEST__INIT;
    request.session_handle = (char *)in->session;
    request.create_worker_session_called = in->session[0];
    request.graph_handle = (char *)in->graph;
    request.step_id = in->step_id;
    request.request_id = in->request_id;
    request.n_send = (size_t)in->sends_count;
    request.send = pack_named(in->send_keys, in->sends, in->sends_count, arena);
    request.n_recv_key = (size_t)in->receives_count;
    request.recv_key = (char **)in->receive_keys;
    request.store_errors_in_response_body = in->errors_in_body;
    request.is_partial = in->partial;
    request.is_last_partial_run = in->last;
    Tensorflow__ExecutorOpts options = TENSORFLOW__EXECUTOR_OPTS__INIT;
    options.record_timeline = in->trace;
    options.record_partition_graphs = in->with_graph;
    request.exec_opts = &options;
    request.want_waits = in->with_waits;
    request.may_end = in->may_end;
    message_pack(&request.base, out);
    arena_free(arena);
}

static bool read_sends(const Tensorflow__RunGraphRequest *request, struct wire_run *out,
                       struct arena *arena, struct error *err)
{
    out->send_keys = arena_array(arena, request->n_send, sizeof(char *));
    out->sends = arena_array(arena, request->n_send, sizeof(*out->sends));
    for (size_t i = 0; i < request->n_send; i++) {
        const Tensorflow__NamedTensorProto *named = request->send[i];
        if (!named->tensor)
            return fail(err, INVALID, "send[%zu] ('%s') has no tensor", i, named->name);
        if (!tensor_unpack(&out->sends[i], named->tensor, err))
            return error_prefix(err, "send[%zu] ('%s'): ", i, named->name);
        out->send_keys[out->sends_count++] = named->name;
    }
    return true;
}

bool wire_read_run(const void *bytes, size_t size, struct arena *arena, struct wire_run *out,
                   struct error *err)
{
    const Tensorflow__RunGraphRequest *request =
        tensor_unpack_message(&tensorflow__run_graph_request__descriptor, FIELD_SEND,
                              TENSOR_LARGE_BYTES, bytes, size, arena, err);
    if (!request)
        return false;
    *out = (struct wire_run){
        .session = session_of(request->session_handle, request->create_worker_session_called),
        .graph = request->graph_handle,
        .step_id = request->step_id,
        .request_id = request->request_id,
        .receive_keys = (const char **)request->recv_key,
        .receives_count = (int)request->n_recv_key,
        .errors_in_body = request->store_errors_in_response_body,
        .partial = request->is_partial,
        .last = request->is_last_partial_run,
        .may_end = request->may_end,
        .trace = request->exec_opts && request->exec_opts->record_timeline,
        .with_waits = request->want_waits,
        .with_graph = request->exec_opts && request->exec_opts->record_partition_graphs,
    };
    if (read_sends(request, out, arena, err))
        return true;
    wire_release_run(out);
    return false;
}

void wire_release_run(struct wire_run *run)
{
    for (int i = 0; i < run->sends_count; i++)
        tensor_release(&run->sends[i]);
    run->sends_count = 0;
}

static Tensorflow__PartWaits *pack_waits(const struct waits *waits, struct arena *arena)
{
    Tensorflow__PartWaits *out = arena_alloc(arena, sizeof(*out));
    *out = (Tensorflow__PartWaits)TENSORFLOW__PART_WAITS__INIT;
    out->total_ns = waits->total_ns;
    out->send_ns = waits->send_ns;
    out->n_rows = (size_t)waits->rows_count;
    out->rows = arena_array(arena, out->n_rows, sizeof(*out->rows));
    for (int i = 0; i < waits->rows_count; i++) {
        const struct waits_row *row = &waits->rows[i];
        out->rows[i] = arena_alloc(arena, sizeof(*out->rows[i]));
        *out->rows[i] = (Tensorflow__PartWaits__Row)TENSORFLOW__PART_WAITS__ROW__INIT;
        out->rows[i]->task = (char *)row->task;
        out->rows[i]->wait_ns = row->wait_ns;
        out->rows[i]->receive_ns = row->receive_ns;
        out->rows[i]->bytes = row->bytes;
        out->rows[i]->tensors = row->tensors;
    }
    return out;
}

static void read_waits(const Tensorflow__PartWaits *in, struct waits *out)
{
    out->total_ns = in->total_ns;
    out->send_ns = in->send_ns;
    for (size_t i = 0; i < in->n_rows && i <= LIMIT_JOB_TASKS; i++) {
        struct waits_row *row = waits_of(out, in->rows[i]->task);
        row->wait_ns += in->rows[i]->wait_ns;
        row->receive_ns += in->rows[i]->receive_ns;
        row->bytes += in->rows[i]->bytes;
        row->tensors += in->rows[i]->tensors;
    }
}

void wire_write_ran(const struct wire_ran *in, const struct error *status, struct str *out)
{
    struct str text = {0};
    struct arena *arena = arena_new();
    Tensorflow__RunGraphResponse response = TENSORFLOW__RUN_GRAPH_RESPONSE__INIT;
    ProtobufCBinaryData graph = {0};
    if (status) {
        response.status_code = (int32_t)status->code;
        error_whole_add(status, &text);
        response.status_error_message = (char *)str_text(&text);
    } else {
        response.n_recv = (size_t)in->received_count;
        response.recv = pack_named(in->keys, in->received, in->received_count, arena);
    }
    if (!status && in->step_stats) {
        response.step_stats.data = (uint8_t *)in->step_stats->data;
        response.step_stats.len = in->step_stats->size;
    }
    if (!status && in->waits)
        response.waits = pack_waits(in->waits, arena);
    response.ended = !status && in->ended && *in->ended;
    if (!status && in->graph_def) {
        graph = (ProtobufCBinaryData){in->graph_def->size, (uint8_t *)in->graph_def->data};
        response.n_partition_graph = 1;
        response.partition_graph = &graph;
    }
    message_pack(&response.base, out);
    str_release(&text);
    arena_free(arena);
}

static bool take_received(const Tensorflow__RunGraphResponse *response, const char *key,
                          struct tensor *out, struct error *err)
{
    for (size_t i = 0; i < response->n_recv; i++)
        if (!strcmp(response->recv[i]->name, key) && response->recv[i]->tensor)
            return tensor_unpack(out, response->recv[i]->tensor, err);
    return fail(err, INTERNAL, "the worker's answer lacks %s", key);
}

/* The worker's number may be none of ours. */
static enum error_code known_code(int32_t number)
{
    return number > 0 && number <= UNAUTHENTICATED ? (enum error_code)number : UNKNOWN;
}

bool wire_read_ran(const void *bytes, size_t size, const struct wire_ran *out,
                   struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__RunGraphResponse *response =
        tensor_unpack_message(&tensorflow__run_graph_response__descriptor, FIELD_RECV,
                              TENSOR_LARGE_BYTES, bytes, size, arena, err);
    bool ok = response;
    if (ok && response->status_code)
        ok = fail(err, known_code(response->status_code), "%s", response->status_error_message);
    for (int i = 0; ok && i < out->received_count; i++) {
        ok = take_received(response, out->keys[i], &out->received[i], err);
        for (int k = 0; !ok && k < i; k++)
            tensor_release(&out->received[k]);
    }
    if (ok && out->step_stats)
        str_add_bytes(out->step_stats, response->step_stats.data, response->step_stats.len);
    if (ok && out->waits && response->waits)
        read_waits(response->waits, out->waits);
    if (ok && out->ended)
        *out->ended = response->ended;
    for (size_t i = 0; ok && out->graph_def && i < response->n_partition_graph; i++)
        str_add_bytes(out->graph_def, response->partition_graph[i].data,
                      response->partition_graph[i].len);
    arena_free(arena);
    return ok;
}

/* --- the end of steps, containers --- */

void wire_write_cleanup_graph(int64_t step_id, struct str *out)
{
    Tensorflow__CleanupGraphRequest request = TENSORFLOW__CLEANUP_GRAPH_REQUEST__INIT;
    request.step_id = step_id;
    message_pack(&request.base, out);
}

bool wire_read_cleanup_graph(const void *bytes, size_t size, int64_t *step_id,
                             struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__CleanupGraphRequest *request =
        message_unpack(&tensorflow__cleanup_graph_request__descriptor, bytes, size, arena, err);
    if (request)
        *step_id = request->step_id;
    arena_free(arena);
    return request;
}

void wire_write_cleanup_all(const char *const *containers, int count, struct str *out)
{
    Tensorflow__CleanupAllRequest request = TENSORFLOW__CLEANUP_ALL_REQUEST__INIT;
    request.n_container = (size_t)count;
    request.container = (char **)containers;
    message_pack(&request.base, out);
}

bool wire_read_cleanup_all(const void *bytes, size_t size, struct arena *arena,
                           const char *const **containers, int *count, struct error *err)
{
    const Tensorflow__CleanupAllRequest *request =
        message_unpack(&tensorflow__cleanup_all_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    *containers = (const char *const *)request->container;
    *count = (int)request->n_container;
    return true;
}

/* --- devices and handles --- */

Tensorflow__DeviceAttributes *wire_pack_device(const struct device *device, struct arena *arena)
{
    Tensorflow__DeviceAttributes *to = arena_alloc(arena, sizeof(*to));
    tensorflow__device_attributes__init(to);
    to->name = (char *)device->name;
    to->device_type = (char *)device_type_name(device->type);
    to->memory_limit = device->memory_bytes;
    to->locality = arena_alloc(arena, sizeof(*to->locality));
    tensorflow__device_locality__init(to->locality);
    to->incarnation = device->incarnation;
    to->xla_global_id = -1;
    return to;
}

void wire_write_status(const struct device *devices, int count, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__GetStatusResponse response = TENSORFLOW__GET_STATUS_RESPONSE__INIT;
    response.exchange = EXCHANGE;
    response.n_device_attributes = (size_t)count;
    response.device_attributes =
        arena_array(arena, (size_t)count, sizeof(*response.device_attributes));
    for (int i = 0; i < count; i++)
        response.device_attributes[i] = wire_pack_device(&devices[i], arena);
    message_pack(&response.base, out);
    arena_free(arena);
}

bool wire_unpack_device(const Tensorflow__DeviceAttributes *from, struct device *to,
                        struct error *err)
{
    *to = (struct device){.memory_bytes = from->memory_limit, .incarnation = from->incarnation};
    if (strlen(from->name) >= sizeof(to->name))
        return fail(err, INVALID, "a device's name has %zu bytes, at most %zu are allowed",
                    strlen(from->name), sizeof(to->name) - 1);
    memcpy(to->name, from->name, strlen(from->name) + 1);
    if (!device_name_parse(to->name, &to->parts, err))
        return false;
    to->type = strcmp(from->device_type, device_type_name(GPU)) ? CPU : GPU;
    return true;
}

/* Of other kinds (XLA_CPU ...) none is used. */
static bool is_known(const Tensorflow__DeviceAttributes *device)
{
    return !strcmp(device->device_type, device_type_name(CPU)) ||
           !strcmp(device->device_type, device_type_name(GPU));
}

bool wire_read_status(const void *bytes, size_t size, struct device *devices, int devices_max,
                      int *count, bool *exchanges, struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__GetStatusResponse *response =
        message_unpack(&tensorflow__get_status_response__descriptor, bytes, size, arena, err);
    bool ok = response;
    *count = 0;
    *exchanges = ok && response->exchange == EXCHANGE;
    for (size_t i = 0; ok && i < response->n_device_attributes; i++) {
        if (!is_known(response->device_attributes[i]))
            continue;
        if (*count == devices_max)
            ok = fail(err, EXHAUSTED, "a task has more than %d devices", devices_max);
        else
            ok = wire_unpack_device(response->device_attributes[i], &devices[(*count)++], err);
    }
    arena_free(arena);
    return ok;
}

void wire_write_handle(const char *handle, struct str *out)
{
    Tensorflow__RegisterGraphResponse response = TENSORFLOW__REGISTER_GRAPH_RESPONSE__INIT;
    response.graph_handle = (char *)handle;
    message_pack(&response.base, out);
}

bool wire_read_handle(const void *bytes, size_t size, char *handle, size_t handle_size,
                      struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__RegisterGraphResponse *response = message_unpack(
        &tensorflow__register_graph_response__descriptor, bytes, size, arena, err);
    bool ok = response;
    if (ok && strlen(response->graph_handle) >= handle_size)
        ok = fail(err, INTERNAL, "a graph's handle has %zu bytes, at most %zu are allowed",
                  strlen(response->graph_handle), handle_size - 1);
    if (ok)
        memcpy(handle, response->graph_handle, strlen(response->graph_handle) + 1);
    arena_free(arena);
    return ok;
}
