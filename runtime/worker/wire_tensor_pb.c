/* wire_tensor_pb.c - RecvTensor's messages from and to protobuf. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/message_cursor.h"
#include "runtime/tensor_pb.h"
#include "runtime/worker/near.h"
#include "runtime/worker/wire.h"
#include "tensorflow/worker.pb-c.h"

static struct arena *arena_for(size_t size)
{
    return arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
}

void wire_write_receive(const struct wire_receive *in, struct str *out)
{
    Tensorflow__RecvTensorRequest request = TENSORFLOW__RECV_TENSOR_REQUEST__INIT;
    request.step_id = in->step_id;
    request.rendezvous_key = (char *)in->key;
    request.request_id = in->request_id;
    request.near = in->near;
    request.fabric = in->fabric;
    message_pack(&request.base, out);
}

bool wire_read_receive(const void *bytes, size_t size, struct arena *arena,
                       struct wire_receive *out, struct error *err)
{
    const Tensorflow__RecvTensorRequest *request =
        message_unpack(&tensorflow__recv_tensor_request__descriptor, bytes, size, arena, err);
    if (request)
        *out = (struct wire_receive){.step_id = request->step_id,
                                     .key = request->rendezvous_key,
                                     .request_id = request->request_id,
                                     .near = request->near,
                                     .fabric = request->fabric};
    return request;
}

void wire_write_finished(int64_t request_id, struct str *out)
{
    Tensorflow__MarkRecvFinishedRequest request = TENSORFLOW__MARK_RECV_FINISHED_REQUEST__INIT;
    request.request_id = request_id;
    message_pack(&request.base, out);
}

bool wire_read_finished(const void *bytes, size_t size, int64_t *request_id, struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__MarkRecvFinishedRequest *request = message_unpack(
        &tensorflow__mark_recv_finished_request__descriptor, bytes, size, arena, err);
    if (request)
        *request_id = request->request_id;
    arena_free(arena);
    return request;
}

/* --- tasks that meet --- */

void wire_write_meet(const struct wire_meet *in, struct str *out)
{
    Tensorflow__MeetRequest request = TENSORFLOW__MEET_REQUEST__INIT;
    request.host = (char *)in->host;
    request.nonce = (ProtobufCBinaryData){NEAR_NONCE_BYTES, (uint8_t *)in->nonce};
    message_pack(&request.base, out);
}

bool wire_read_meet(const void *bytes, size_t size, struct arena *arena, struct wire_meet *out,
                    struct error *err)
{
    const Tensorflow__MeetRequest *request =
        message_unpack(&tensorflow__meet_request__descriptor, bytes, size, arena, err);
    if (request && request->nonce.len != NEAR_NONCE_BYTES)
        return fail(err, INVALID, "nonce has %zu bytes, not %d", request->nonce.len,
                    NEAR_NONCE_BYTES);
    if (request)
        *out = (struct wire_meet){request->host, request->nonce.data};
    return request;
}

void wire_write_met(const struct wire_met *in, struct str *out)
{
    Tensorflow__MeetResponse response = TENSORFLOW__MEET_RESPONSE__INIT;
    response.pid = in->pid;
    response.address = in->proof;
    response.socket = (char *)in->socket;
    response.secret = (char *)in->secret;
    message_pack(&response.base, out);
}

bool wire_read_met(const void *bytes, size_t size, struct arena *arena, struct wire_met *out,
                   struct error *err)
{
    const Tensorflow__MeetResponse *response =
        message_unpack(&tensorflow__meet_response__descriptor, bytes, size, arena, err);
    if (response && (response->pid <= 0 || response->pid > INT32_MAX))
        return fail(err, INVALID, "%lld is the number of no process", (long long)response->pid);
    if (response)
        *out = (struct wire_met){response->pid, response->address, response->socket,
                                 response->secret};
    return response;
}

/* --- tensors --- */

/* TensorFlow's form: what is dead is an empty tensor, and says so. */
void wire_write_received(const struct tensor *value, bool dead, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__RecvTensorResponse response = TENSORFLOW__RECV_TENSOR_RESPONSE__INIT;
    const struct tensor nothing = {.dtype = F32, .shape = SHAPE(0)};
    response.tensor = tensor_pack(dead ? &nothing : value, true, arena);
    response.is_dead = dead;
    response.send_start_micros = (int64_t)clock_wall_us();
    message_pack(&response.base, out);
    arena_free(arena);
}

/* --- elements apart --- */

enum { FIELD_TENSOR = 1, FIELD_CONTENT = 4 };

static ProtobufCBinaryData key_bytes(const struct fabric_key *key)
{
    return (ProtobufCBinaryData){key->size, (uint8_t *)key->bytes};
}

static bool read_key(const ProtobufCBinaryData *from, struct fabric_key *to)
{
    if (from->len > sizeof(to->bytes))
        return false;
    if (from->len)
        memcpy(to->bytes, from->data, from->len);
    to->size = from->len;
    return true;
}

void wire_write_received_head(const struct tensor *value, bool follows,
                              const struct near_place *place, const struct fabric_keys *keys,
                              struct str *out)
{
    struct arena *arena = arena_new();
    struct str kind = {0};
    size_t content = tensor_bytes(value);
    Tensorflow__RecvTensorResponse response = TENSORFLOW__RECV_TENSOR_RESPONSE__INIT;
    Tensorflow__TensorProto *tensor = tensor_pack(value, false, arena);
    response.send_start_micros = (int64_t)clock_wall_us();
    bool apart = follows || place;
    if (apart) {
        response.tensor = tensor;
        response.content_bytes = (int64_t)content;
        response.address = place ? place->address : 0;
        response.mark = place ? place->mark : 0;
        response.file = place ? place->file : 0;
        response.writable = place && place->writable;
        if (keys) {
            response.elements_key = key_bytes(&keys->elements);
            response.mark_key = key_bytes(&keys->mark);
        }
    }
    message_pack(&response.base, out);
    if (!apart) {
        message_pack(&tensor->base, &kind);
        message_add_varint(out, MESSAGE_TAG(FIELD_TENSOR));
        message_add_varint(out, kind.size + 1 + message_varint_bytes(content) + content);
        str_add_bytes(out, kind.data, kind.size);
        message_add_varint(out, MESSAGE_TAG(FIELD_CONTENT));
        message_add_varint(out, content);
    }
    str_release(&kind);
    arena_free(arena);
}

static const Tensorflow__RecvTensorResponse *
unpack_received(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    return tensor_unpack_message(&tensorflow__recv_tensor_response__descriptor, FIELD_TENSOR,
                                 TENSOR_LARGE_BYTES, bytes, size, arena, err);
}

size_t wire_read_lent(const void *bytes, size_t size)
{
    struct arena *arena = arena_for(size);
    struct error err;
    const Tensorflow__RecvTensorResponse *response = unpack_received(bytes, size, arena, &err);
    bool lent = response && response->address && response->content_bytes > 0;
    size_t count = lent ? (size_t)response->content_bytes : 0;
    arena_free(arena);
    return count;
}

/* Elements that the task does not lend to be mapped are to be read: NULL. */
static struct buffer *borrow(const struct wire_borrower *borrower,
                             const struct wire_received *received)
{
    return borrower && received->place.file ? borrower->borrow(borrower->arg, &received->place,
                                                               (size_t)received->content_bytes)
                                            : NULL;
}

bool wire_read_received(const void *bytes, size_t size, const struct wire_borrower *borrower,
                        struct wire_received *out, struct error *err)
{
    struct arena *arena = arena_for(size);
    const Tensorflow__RecvTensorResponse *response = unpack_received(bytes, size, arena, err);
    bool ok = response;
    *out = (struct wire_received){.dead = ok && response->is_dead,
                                  .sent_us = ok ? response->send_start_micros : 0};
    if (ok && response->content_bytes) {
        out->content_bytes = response->content_bytes;
        out->place = (struct near_place){.address = response->address,
                                         .mark = response->mark,
                                         .file = response->file,
                                         .writable = response->writable};
        if (!read_key(&response->elements_key, &out->keys.elements) ||
            !read_key(&response->mark_key, &out->keys.mark))
            ok = fail(err, INVALID, "a key of the fabric has more than %d bytes",
                      FABRIC_KEY_BYTES_MAX);
        if (response->tensor && response->tensor->tensor_content.len)
            ok = fail(err, INVALID, "an answer to RecvTensor holds elements, and more follow");
    }
    if (ok && !out->dead && !response->tensor)
        ok = fail(err, INTERNAL, "an answer to RecvTensor holds no tensor");
    else if (ok && !out->dead && out->content_bytes)
        ok = tensor_unpack_apart(&out->value, response->tensor, out->content_bytes,
                                 borrow(borrower, out), err);
    else if (ok && !out->dead)
        ok = tensor_unpack(&out->value, response->tensor, err);
    arena_free(arena);
    return ok;
}
