/* master_wire_pb.c - MasterService's messages from and to protobuf. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/error_whole.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/device.h"
#include "runtime/master/master_wire.h"
#include "runtime/tensor.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/master.pb-c.h"

/* --- sessions --- */

static void read_config(const Tensorflow__ConfigProto *config, struct master_config *out)
{
    if (!config)
        return;
    *out = (struct master_config){
        .device_filters = (const char *const *)config->device_filters,
        .device_filters_count = (int)config->n_device_filters,
        .soft_placement = config->allow_soft_placement,
        .isolate = config->isolate_session_state,
        .compress = config->graph_options && config->graph_options->enable_bfloat16_sendrecv,
        .by_cost = config->graph_options && config->graph_options->build_cost_model > 0,
        .own_threads =
            config->use_per_session_threads || config->n_session_inter_op_thread_pool > 0,
        .timeout_ms = config->operation_timeout_in_ms,
    };
}

static void read_cluster(const Tensorflow__ClusterDef *cluster, struct arena *arena,
                         struct master_config *out)
{
    size_t count = 0;
    for (size_t j = 0; j < cluster->n_job; j++)
        count += cluster->job[j]->n_tasks;
    struct master_cluster_task *tasks = arena_array(arena, count, sizeof(*tasks));
    count = 0;
    for (size_t j = 0; j < cluster->n_job; j++)
        for (size_t t = 0; t < cluster->job[j]->n_tasks; t++)
            tasks[count++] = (struct master_cluster_task){
                .job = cluster->job[j]->name,
                .task = cluster->job[j]->tasks[t]->key,
                .address = cluster->job[j]->tasks[t]->value,
            };
    out->cluster = tasks;
    out->cluster_count = (int)count;
}

bool master_wire_create(const void *bytes, size_t size, struct arena *arena,
                        struct master_request *out, struct error *err)
{
    const Tensorflow__CreateSessionRequest *request = message_unpack(
        &tensorflow__create_session_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    *out = (struct master_request){.session = "",
                                   .graph_def = request->graph_def.data,
                                   .graph_def_size = request->graph_def.len};
    read_config(request->config, &out->config);
    if (request->config && request->config->cluster_def)
        read_cluster(request->config->cluster_def, arena, &out->config);
    out->config.target = request->target;
    return true;
}

bool master_wire_extend(const void *bytes, size_t size, struct arena *arena,
                        struct master_request *out, struct error *err)
{
    const Tensorflow__ExtendSessionRequest *request = message_unpack(
        &tensorflow__extend_session_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct master_request){.session = request->session_handle,
                                       .graph_def = request->graph_def.data,
                                       .graph_def_size = request->graph_def.len,
                                       .version = request->current_graph_version};
    return request;
}

bool master_wire_close(const void *bytes, size_t size, struct arena *arena,
                       struct master_request *out, struct error *err)
{
    const Tensorflow__CloseSessionRequest *request =
        message_unpack(&tensorflow__close_session_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct master_request){.session = request->session_handle};
    return request;
}

bool master_wire_list(const void *bytes, size_t size, struct arena *arena,
                      struct master_request *out, struct error *err)
{
    const Tensorflow__ListDevicesRequest *request =
        message_unpack(&tensorflow__list_devices_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct master_request){.session = request->session_handle};
    return request;
}

bool master_wire_release_callable(const void *bytes, size_t size, struct arena *arena,
                                  struct master_request *out, struct error *err)
{
    const Tensorflow__ReleaseCallableRequest *request = message_unpack(
        &tensorflow__release_callable_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct master_request){.session = request->session_handle,
                                       .handle = request->handle};
    return request;
}

bool master_wire_reset(const void *bytes, size_t size, struct arena *arena,
                       const char *const **containers, int *count, struct error *err)
{
    const Tensorflow__ResetRequest *request =
        message_unpack(&tensorflow__reset_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    *containers = (const char *const *)request->container;
    *count = (int)request->n_container;
    return true;
}

/* --- steps --- */

enum { FIELD_FEED = 2, FIELD_CALLABLE_FEED = 3 }; /* of RunStepRequest, RunCallableRequest */

static void read_options(const Tensorflow__RunOptions *options, struct master_step *out)
{
    if (!options)
        return;
    out->run.trace = options->trace_level == TENSORFLOW__RUN_OPTIONS__TRACE_LEVEL__FULL_TRACE;
    out->run.timeout_ms = options->timeout_in_ms;
    out->wants_parts = options->output_partition_graphs;
}

static bool read_feeds(const Tensorflow__RunStepRequest *request, struct arena *arena,
                       struct master_step *out, struct error *err)
{
    const char **names = arena_array(arena, request->n_feed, sizeof(*names));
    out->feeds = arena_array(arena, request->n_feed, sizeof(*out->feeds));
    for (size_t i = 0; i < request->n_feed; i++) {
        const Tensorflow__NamedTensorProto *named = request->feed[i];
        if (!named->tensor)
            return fail(err, INVALID, "the feed '%s' has no tensor", named->name);
        if (!tensor_unpack(&out->feeds[i], named->tensor, err))
            return error_prefix(err, "the feed '%s': ", named->name);
        names[i] = named->name;
        out->feeds_count++;
    }
    out->run.feeds = names;
    out->run.feeds_count = out->feeds_count;
    out->run.feed_values = out->feeds;
    return true;
}

bool master_wire_run(const void *bytes, size_t size, struct arena *arena,
                     struct master_step *out, struct error *err)
{
    const Tensorflow__RunStepRequest *request =
        tensor_unpack_message(&tensorflow__run_step_request__descriptor, FIELD_FEED,
                              TENSOR_LARGE_BYTES, bytes, size, arena, err);
    if (!request)
        return false;
    *out = (struct master_step){
        .session = request->session_handle,
        .run = {.fetches = (const char *const *)request->fetch,
                .fetches_count = (int)request->n_fetch,
                .targets = (const char *const *)request->target,
                .targets_count = (int)request->n_target},
        .partial = request->partial_run_handle,
        .request = request->request_id,
        .errors_in_body = request->store_errors_in_response_body,
    };
    read_options(request->options, out);
    if (read_feeds(request, arena, out, err))
        return true;
    master_wire_release(out);
    return false;
}

bool master_wire_partial(const void *bytes, size_t size, struct arena *arena,
                         struct master_step *out, struct error *err)
{
    const Tensorflow__PartialRunSetupRequest *request = message_unpack(
        &tensorflow__partial_run_setup_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct master_step){
            .session = request->session_handle,
            .run = {.feeds = (const char *const *)request->feed,
                    .feeds_count = (int)request->n_feed,
                    .fetches = (const char *const *)request->fetch,
                    .fetches_count = (int)request->n_fetch,
                    .targets = (const char *const *)request->target,
                    .targets_count = (int)request->n_target},
            .request = request->request_id,
        };
    return request;
}

static const struct session_connection *
read_connections(const Tensorflow__CallableOptions *options, struct arena *arena)
{
    struct session_connection *all =
        arena_array(arena, options->n_tensor_connection, sizeof(*all));
    for (size_t i = 0; i < options->n_tensor_connection; i++) {
        all[i].from = options->tensor_connection[i]->from_tensor;
        all[i].to = options->tensor_connection[i]->to_tensor;
    }
    return all;
}

bool master_wire_make_callable(const void *bytes, size_t size, struct arena *arena,
                               struct master_step *out, struct error *err)
{
    const Tensorflow__MakeCallableRequest *request =
        message_unpack(&tensorflow__make_callable_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    *out = (struct master_step){.session = request->session_handle,
                                .request = request->request_id};
    const Tensorflow__CallableOptions *options = request->options;
    if (!options)
        return true;
    if (options->n_feed_devices || options->n_fetch_devices)
        return fail(err, UNIMPLEMENTED,
                    "CallableOptions::feed_devices and CallableOptions::fetch_devices to "
                    "configure feeding/fetching tensors to/from device memory is not yet "
                    "supported when using a remote session.");
    out->run = (struct session_run){.feeds = (const char *const *)options->feed,
                                    .feeds_count = (int)options->n_feed,
                                    .fetches = (const char *const *)options->fetch,
                                    .fetches_count = (int)options->n_fetch,
                                    .targets = (const char *const *)options->target,
                                    .targets_count = (int)options->n_target,
                                    .connections = read_connections(options, arena),
                                    .connections_count = (int)options->n_tensor_connection};
    read_options(options->run_options, out);
    return true;
}

bool master_wire_run_callable(const void *bytes, size_t size, struct arena *arena,
                              struct master_step *out, struct error *err)
{
    const Tensorflow__RunCallableRequest *request =
        tensor_unpack_message(&tensorflow__run_callable_request__descriptor,
                              FIELD_CALLABLE_FEED, TENSOR_LARGE_BYTES, bytes, size, arena, err);
    if (!request)
        return false;
    *out = (struct master_step){.session = request->session_handle,
                                .callable = request->handle,
                                .request = request->request_id};
    out->feeds = arena_array(arena, request->n_feed, sizeof(*out->feeds));
    for (size_t i = 0; i < request->n_feed; i++) {
        if (!tensor_unpack(&out->feeds[i], request->feed[i], err)) {
            master_wire_release(out);
            return error_prefix(err, "feed %zu: ", i);
        }
        out->feeds_count++;
    }
    return true;
}

void master_wire_release(struct master_step *step)
{
    for (int i = 0; i < step->feeds_count; i++)
        tensor_release(&step->feeds[i]);
    step->feeds_count = 0;
}

/* --- answers --- */

void master_wire_created(const char *handle, struct str *out)
{
    Tensorflow__CreateSessionResponse response = TENSORFLOW__CREATE_SESSION_RESPONSE__INIT;
    response.session_handle = (char *)handle;
    message_pack(&response.base, out);
}

void master_wire_extended(int64_t version, struct str *out)
{
    Tensorflow__ExtendSessionResponse response = TENSORFLOW__EXTEND_SESSION_RESPONSE__INIT;
    response.new_graph_version = version;
    message_pack(&response.base, out);
}

void master_wire_devices(const struct device *devices, int count, int local_count,
                         struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__ListDevicesResponse response = TENSORFLOW__LIST_DEVICES_RESPONSE__INIT;
    Tensorflow__DeviceLocality locality = TENSORFLOW__DEVICE_LOCALITY__INIT;
    Tensorflow__DeviceAttributes **all = arena_array(arena, (size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        all[i] = arena_alloc(arena, sizeof(**all));
        tensorflow__device_attributes__init(all[i]);
        all[i]->name = (char *)devices[i].name;
        all[i]->device_type = (char *)device_type_name(devices[i].type);
        all[i]->memory_limit = devices[i].memory_bytes;
        all[i]->locality = &locality;
        all[i]->incarnation = devices[i].incarnation;
        all[i]->xla_global_id = -1;
    }
    response.n_local_device = (size_t)local_count;
    response.local_device = all;
    response.n_remote_device = (size_t)(count - local_count);
    response.remote_device = all + local_count;
    message_pack(&response.base, out);
    arena_free(arena);
}

void master_wire_partial_made(int64_t handle, struct str *out)
{
    char text[24];
    Tensorflow__PartialRunSetupResponse response = TENSORFLOW__PARTIAL_RUN_SETUP_RESPONSE__INIT;
    snprintf(text, sizeof(text), "%lld", (long long)handle);
    response.partial_run_handle = text;
    message_pack(&response.base, out);
}

void master_wire_callable_made(int64_t handle, struct str *out)
{
    Tensorflow__MakeCallableResponse response = TENSORFLOW__MAKE_CALLABLE_RESPONSE__INIT;
    response.handle = handle;
    message_pack(&response.base, out);
}

/* An empty message is packed as absent: TensorFlow's answers always have the field. */
static ProtobufCBinaryData metadata_bytes(const struct str *metadata)
{
    return (ProtobufCBinaryData){metadata->size, (uint8_t *)str_text(metadata)};
}

void master_wire_ran(const char *const *names, const struct tensor *fetched, int count,
                     const struct str *metadata, const struct error *status, struct str *out)
{
    struct str text = {0};
    struct arena *arena = arena_new();
    Tensorflow__RunStepResponse response = TENSORFLOW__RUN_STEP_RESPONSE__INIT;
    if (status) {
        response.status_code = (int32_t)status->code;
        error_whole_add(status, &text);
        response.status_error_message = (char *)str_text(&text);
    } else {
        response.n_tensor = (size_t)count;
        response.tensor = arena_array(arena, (size_t)count, sizeof(*response.tensor));
        for (int i = 0; i < count; i++) {
            response.tensor[i] = arena_alloc(arena, sizeof(**response.tensor));
            tensorflow__named_tensor_proto__init(response.tensor[i]);
            response.tensor[i]->name = (char *)names[i];
            response.tensor[i]->tensor = tensor_pack(&fetched[i], true, arena);
        }
        response.metadata = metadata_bytes(metadata);
    }
    message_pack(&response.base, out);
    str_release(&text);
    arena_free(arena);
}

void master_wire_callable_ran(const struct tensor *fetched, int count,
                              const struct str *metadata, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__RunCallableResponse response = TENSORFLOW__RUN_CALLABLE_RESPONSE__INIT;
    response.n_fetch = (size_t)count;
    response.fetch = arena_array(arena, (size_t)count, sizeof(*response.fetch));
    for (int i = 0; i < count; i++)
        response.fetch[i] = tensor_pack(&fetched[i], true, arena);
    response.metadata = metadata_bytes(metadata);
    message_pack(&response.base, out);
    arena_free(arena);
}
