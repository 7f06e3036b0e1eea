/* wire_collective_pb.c - WorkerService's messages of collectives from and to protobuf. */

#include "runtime/worker/wire_collective.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/message_cursor.h"
#include "runtime/tensor_pb.h"
#include "runtime/worker/wire_pb.h"
#include "tensorflow/worker.pb-c.h"

#define EXTRA_TYPE "type.googleapis.com/tensorflow.RecvBufRespExtra"

static struct arena *arena_for(size_t size)
{
    return arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
}

/* --- groups --- */

void wire_write_complete_group(const struct wire_member *in, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__CompleteGroupRequest request = TENSORFLOW__COMPLETE_GROUP_REQUEST__INIT;
    request.group_key = in->wish.group_key;
    request.group_size = in->wish.group_size;
    request.device_type = (char *)device_type_name(in->device.type);
    request.collective_type = (int32_t)in->wish.type;
    request.device_attributes = wire_pack_device(&in->device, arena);
    message_pack(&request.base, out);
    arena_free(arena);
}

bool wire_read_complete_group(const void *bytes, size_t size, struct arena *arena,
                              struct wire_member *out, struct error *err)
{
    const Tensorflow__CompleteGroupRequest *request = message_unpack(
        &tensorflow__complete_group_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    if (!request->device_attributes)
        return fail(err, INTERNAL,
                    "CompleteGroupRequest device_attributes is not set. Make sure you're "
                    "running the same version of Tensorflow on all workers.");
    *out = (struct wire_member){.wish = {.name = "",
                                         .type = (enum collective_type)request->collective_type,
                                         .group_key = request->group_key,
                                         .group_size = request->group_size}};
    return wire_unpack_device(request->device_attributes, &out->device, err);
}

/* The numbers of job, replica and task are the same. */
void wire_write_group(const struct collective_group *group, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__CompleteGroupResponse response = TENSORFLOW__COMPLETE_GROUP_RESPONSE__INIT;
    size_t count = (size_t)group->devices_count;
    response.group_key = group->key;
    response.group_size = group->size;
    response.device_type = (char *)group->device_type;
    response.device_attributes =
        arena_array(arena, count + 1, sizeof(*response.device_attributes));
    response.n_device_attributes = count;
    for (size_t i = 0; i < count; i++) {
        response.device_attributes[i] = wire_pack_device(&group->devices[i], arena);
        /* The devices of a task are side by side. */
        response.num_tasks += !i || !device_name_same_task(&group->devices[i].parts,
                                                           &group->devices[i - 1].parts);
    }
    message_pack(&response.base, out);
    arena_free(arena);
}

bool wire_read_group(const void *bytes, size_t size, struct arena *arena,
                     struct collective_group *out, struct error *err)
{
    const Tensorflow__CompleteGroupResponse *response = message_unpack(
        &tensorflow__complete_group_response__descriptor, bytes, size, arena, err);
    if (!response)
        return false;
    size_t count = response->n_device_attributes;
    *out = (struct collective_group){.key = response->group_key, .size = response->group_size};
    snprintf(out->device_type, sizeof(out->device_type), "%s", response->device_type);
    if (count > LIMIT_COLLECTIVE_GROUP_SIZE)
        return fail(err, EXHAUSTED,
                    "a group of collectives has %zu devices, at most %d are "
                    "allowed",
                    count, LIMIT_COLLECTIVE_GROUP_SIZE);
    out->devices = arena_array(arena, count + 1, sizeof(*out->devices));
    out->devices_count = (int)count;
    for (size_t i = 0; i < count; i++)
        if (!wire_unpack_device(response->device_attributes[i], &out->devices[i], err))
            return false;
    return true;
}

/* --- instances --- */

void wire_write_complete_instance(const struct wire_member *in, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__CompleteInstanceRequest request = TENSORFLOW__COMPLETE_INSTANCE_REQUEST__INIT;
    int32_t offset = 0;
    request.name = (char *)in->wish.name;
    request.type = (int32_t)in->wish.type;
    request.data_type = (Tensorflow__DataType)in->wish.dtype;
    request.shape = tensor_pack_shape(&in->wish.shape, arena);
    request.group_key = in->wish.group_key;
    request.group_size = in->wish.group_size;
    request.instance_key = in->wish.instance_key;
    request.device_type = (char *)device_type_name(in->device.type);
    request.n_subdiv_offset = 1;
    request.subdiv_offset = &offset;
    request.device = (char *)in->device.name;
    request.is_source = in->wish.is_source;
    message_pack(&request.base, out);
    arena_free(arena);
}

bool wire_read_complete_instance(const void *bytes, size_t size, struct arena *arena,
                                 struct wire_member *out, struct error *err)
{
    const Tensorflow__CompleteInstanceRequest *request = message_unpack(
        &tensorflow__complete_instance_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    *out = (struct wire_member){.wish = {.name = request->name,
                                         .type = (enum collective_type)request->type,
                                         .group_key = request->group_key,
                                         .group_size = request->group_size,
                                         .instance_key = request->instance_key,
                                         .dtype = (enum dtype)request->data_type,
                                         .is_source = request->is_source}};
    if (strlen(request->device) >= sizeof(out->device.name))
        return fail(err, INVALID, "a device's name has %zu bytes, at most %zu are allowed",
                    strlen(request->device), sizeof(out->device.name) - 1);
    memcpy(out->device.name, request->device, strlen(request->device) + 1);
    return true;
}

void wire_write_instance(int source, struct str *out)
{
    Tensorflow__CompleteInstanceResponse response =
        TENSORFLOW__COMPLETE_INSTANCE_RESPONSE__INIT;
    response.source_rank = source;
    message_pack(&response.base, out);
}

bool wire_read_instance(const void *bytes, size_t size, int *source, struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__CompleteInstanceResponse *response = message_unpack(
        &tensorflow__complete_instance_response__descriptor, bytes, size, arena, err);
    if (response)
        *source = response->source_rank;
    arena_free(arena);
    return response;
}

/* --- step ids --- */

void wire_write_get_steps(int64_t graph_key, struct str *out)
{
    Tensorflow__GetStepSequenceRequest request = TENSORFLOW__GET_STEP_SEQUENCE_REQUEST__INIT;
    request.n_graph_key = 1;
    request.graph_key = &graph_key;
    message_pack(&request.base, out);
}

bool wire_read_get_steps(const void *bytes, size_t size, struct arena *arena,
                         const int64_t **graph_keys, int *count, struct error *err)
{
    const Tensorflow__GetStepSequenceRequest *request = message_unpack(
        &tensorflow__get_step_sequence_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    *graph_keys = request->graph_key;
    *count = (int)request->n_graph_key;
    return true;
}

void wire_write_steps(const int64_t *graph_keys, const int64_t *step_ids, int count,
                      struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__GetStepSequenceResponse response = TENSORFLOW__GET_STEP_SEQUENCE_RESPONSE__INIT;
    response.n_step_sequence = (size_t)count;
    response.step_sequence =
        arena_array(arena, (size_t)count + 1, sizeof(*response.step_sequence));
    for (int i = 0; i < count; i++) {
        Tensorflow__StepSequence *step = arena_alloc(arena, sizeof(*step));
        tensorflow__step_sequence__init(step);
        step->graph_key = graph_keys[i];
        step->next_step_id = step_ids[i];
        response.step_sequence[i] = step;
    }
    message_pack(&response.base, out);
    arena_free(arena);
}

bool wire_read_steps(const void *bytes, size_t size, int64_t graph_key, int64_t *step_id,
                     struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__GetStepSequenceResponse *response = message_unpack(
        &tensorflow__get_step_sequence_response__descriptor, bytes, size, arena, err);
    bool ok = response, found = false;
    for (size_t i = 0; ok && !found && i < response->n_step_sequence; i++) {
        found = response->step_sequence[i]->graph_key == graph_key;
        *step_id = response->step_sequence[i]->next_step_id;
    }
    if (ok && !found)
        ok = fail(err, INTERNAL, "the leader of collectives did not say which step is next");
    arena_free(arena);
    return ok;
}

/* --- bytes --- */

void wire_write_receive_buffer(const struct wire_buffer *in, struct str *out)
{
    Tensorflow__RecvBufRequest request = TENSORFLOW__RECV_BUF_REQUEST__INIT;
    request.step_id = in->step_id;
    request.buf_rendezvous_key = (char *)in->key;
    request.num_bytes = in->bytes;
    request.src_device = (char *)in->from;
    request.dst_device = (char *)in->to;
    request.src_incarnation = in->incarnation;
    request.request_id = in->request_id;
    message_pack(&request.base, out);
}

bool wire_read_receive_buffer(const void *bytes, size_t size, struct arena *arena,
                              struct wire_buffer *out, struct error *err)
{
    const Tensorflow__RecvBufRequest *request =
        message_unpack(&tensorflow__recv_buf_request__descriptor, bytes, size, arena, err);
    if (!request)
        return false;
    if (strlen(request->buf_rendezvous_key) > LIMIT_RENDEZVOUS_KEY_BYTES)
        return fail(err, INVALID, "a buffer's key has %zu bytes, at most %d are allowed",
                    strlen(request->buf_rendezvous_key), LIMIT_RENDEZVOUS_KEY_BYTES);
    *out = (struct wire_buffer){.step_id = request->step_id,
                                .key = request->buf_rendezvous_key,
                                .bytes = request->num_bytes,
                                .from = request->src_device,
                                .to = request->dst_device,
                                .incarnation = request->src_incarnation,
                                .request_id = request->request_id};
    return true;
}

/* An answer is its head, then the bytes, as one element of the extra in it. */
enum {
    TAG_NUM_BYTES = 2 << 3,
    TAG_OPTIONS = 4 << 3 | 2, /* an Any */
    TAG_SENT = 5 << 3,
    TAG_ANY_TYPE = 1 << 3 | 2,
    TAG_ANY_VALUE = 2 << 3 | 2, /* the extra */
    TAG_CONTENT = 1 << 3 | 2,
};

/* What a field of that size takes, its tag included. */
static size_t field_bytes(size_t size)
{
    return 1 + message_varint_bytes(size) + size;
}

void wire_write_buffer_head(size_t size, struct str *out)
{
    size_t extra = size ? field_bytes(size) : 0;
    message_add_varint(out, TAG_NUM_BYTES);
    message_add_varint(out, size);
    message_add_varint(out, TAG_SENT);
    message_add_varint(out, clock_wall_us());
    message_add_varint(out, TAG_OPTIONS);
    message_add_varint(out, field_bytes(strlen(EXTRA_TYPE)) + field_bytes(extra));
    message_add_varint(out, TAG_ANY_TYPE);
    message_add_varint(out, strlen(EXTRA_TYPE));
    str_add(out, EXTRA_TYPE);
    message_add_varint(out, TAG_ANY_VALUE);
    message_add_varint(out, extra);
    if (size) {
        message_add_varint(out, TAG_CONTENT);
        message_add_varint(out, size);
    }
}

/* What comes is copied as far as there is room, and counted to its end. */
struct filling {
    char *into;
    size_t room, came;
    bool has_extra;
};

typedef bool read_inner(struct message_cursor inner, struct filling *filling);

/* The fields of a message; `read` takes those with the tag that is wanted. */
static bool read_fields(struct message_cursor message, uint64_t wanted, read_inner *read,
                        struct filling *filling)
{
    uint64_t tag;
    struct message_cursor inner;
    while (message.at < message.end) {
        if (!message_cursor_varint(&message, &tag))
            return false;
        if (tag == wanted ? !message_cursor_enter(&message, &inner) || !read(inner, filling)
                          : !message_cursor_skip(&message, tag))
            return false;
    }
    return true;
}

static bool read_content(struct message_cursor content, struct filling *filling)
{
    size_t size = (size_t)(content.end - content.at);
    if (filling->came <= filling->room && size <= filling->room - filling->came && size)
        memcpy(filling->into + filling->came, content.at, size);
    filling->came += size;
    return true;
}

static bool read_extra(struct message_cursor extra, struct filling *filling)
{
    return read_fields(extra, TAG_CONTENT, read_content, filling);
}

static bool read_any(struct message_cursor any, struct filling *filling)
{
    filling->has_extra = true;
    return read_fields(any, TAG_ANY_VALUE, read_extra, filling);
}

bool wire_read_buffer(const void *bytes, size_t size, void *into, size_t into_size,
                      struct error *err)
{
    struct filling filling = {.into = into, .room = into_size};
    if (!read_fields(message_cursor_of(bytes, size), TAG_OPTIONS, read_any, &filling))
        return fail(err, INVALID, "an answer to RecvBuf is malformed");
    if (!filling.has_extra)
        return fail(err, INTERNAL, "RecvBufResponse has no bytes");
    return filling.came == into_size ||
           fail(err, INTERNAL,
                "RecvBufResponse returned %zu bytes where to_tensor expected %zu", filling.came,
                into_size);
}
