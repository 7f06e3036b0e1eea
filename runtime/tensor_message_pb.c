/*
 * tensor_message_pb.c - messages with tensors, unpacked without a copy of large elements.
 *
 * protobuf-c copies all bytes of a message.  So those of large tensors are cut out of what it
 * is given, and in what it makes of that the tensors point to where they lie.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/message_cursor.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/tensor.pb-c.h"

enum {
    FIELDS_MAX = 1000,  /* what comes more often is copied */
    TENSOR_CONTENT = 4, /* of TensorProto */
    NAMED_TENSOR = 2,   /* of NamedTensorProto */
};

typedef bool cut_inside(struct message_cursor inner, struct str *rest,
                        ProtobufCBinaryData *cut);

static bool cut_content(struct message_cursor inner, struct str *rest, ProtobufCBinaryData *cut)
{
    size_t size = (size_t)(inner.end - inner.at);
    (void)rest;
    *cut = (ProtobufCBinaryData){size, (uint8_t *)inner.at};
    return size;
}

/* The message without what is cut out of its one field of this number; false: that is not
 * there, comes again, or the message is malformed. */
static bool cut_field(struct message_cursor message, unsigned number, cut_inside *inside,
                      struct str *rest, ProtobufCBinaryData *cut)
{
    bool found = false;
    while (message.at < message.end) {
        const uint8_t *start = message.at;
        struct message_cursor inner;
        uint64_t tag;
        if (!message_cursor_varint(&message, &tag))
            return false;
        if (tag != MESSAGE_TAG(number)) {
            if (!message_cursor_skip(&message, tag))
                return false;
            str_add_bytes(rest, start, (size_t)(message.at - start));
            continue;
        }
        struct str left = {0};
        bool ok = !found && message_cursor_enter(&message, &inner) && inside(inner, &left, cut);
        if (ok && inside != cut_content) {
            message_add_varint(rest, tag);
            message_add_varint(rest, left.size);
            str_add_bytes(rest, left.data, left.size);
        }
        str_release(&left);
        if (!ok)
            return false;
        found = true;
    }
    return found;
}

static bool cut_tensor(struct message_cursor tensor, struct str *rest, ProtobufCBinaryData *cut)
{
    return cut_field(tensor, TENSOR_CONTENT, cut_content, rest, cut);
}

static bool cut_named(struct message_cursor named, struct str *rest, ProtobufCBinaryData *cut)
{
    return cut_field(named, NAMED_TENSOR, cut_tensor, rest, cut);
}

static bool is_named(const ProtobufCFieldDescriptor *field)
{
    return field->descriptor == &tensorflow__named_tensor_proto__descriptor;
}

/* How often the field comes in the message; 0: malformed, too often, or none is large. */
static size_t count_fields(struct message_cursor message, unsigned number, int large)
{
    size_t count = 0;
    bool any = false;
    while (message.at < message.end) {
        struct message_cursor inner;
        uint64_t tag;
        if (!message_cursor_varint(&message, &tag))
            return 0;
        if (tag != MESSAGE_TAG(number)) {
            if (!message_cursor_skip(&message, tag))
                return 0;
            continue;
        }
        if (!message_cursor_enter(&message, &inner))
            return 0;
        any |= inner.end - inner.at >= large;
        count++;
    }
    return any && count <= FIELDS_MAX ? count : 0;
}

/* The message, well-formed so far, without the elements of large tensors: these are cuts[i] of
 * the field's i-th. */
static void cut_all(struct message_cursor message, const ProtobufCFieldDescriptor *field,
                    int large, struct str *rest, ProtobufCBinaryData *cuts)
{
    cut_inside *inside = is_named(field) ? cut_named : cut_tensor;
    while (message.at < message.end) {
        const uint8_t *start = message.at;
        struct message_cursor inner;
        struct str left = {0};
        uint64_t tag;
        bool ok = message_cursor_varint(&message, &tag);
        bool is_cut = false;
        if (ok && tag == MESSAGE_TAG(field->id)) {
            ok = message_cursor_enter(&message, &inner);
            is_cut = inner.end - inner.at >= large && inside(inner, &left, cuts);
            if (!is_cut)
                *cuts = (ProtobufCBinaryData){0};
            cuts++;
        } else {
            ok = ok && message_cursor_skip(&message, tag);
        }
        assert(ok);
        if (is_cut) {
            message_add_varint(rest, tag);
            message_add_varint(rest, left.size);
            str_add_bytes(rest, left.data, left.size);
        } else {
            str_add_bytes(rest, start, (size_t)(message.at - start));
        }
        str_release(&left);
    }
}

/* The tensors point to their elements. */
static void give_back(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                      const ProtobufCBinaryData *cuts, size_t count)
{
    char *place = (char *)message + field->offset;
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    void **elements = is_repeated ? *(void ***)place : (void **)place;
    for (size_t i = 0; i < count; i++) {
        if (!cuts[i].len)
            continue;
        Tensorflow__TensorProto *tensor =
            is_named(field) ? ((Tensorflow__NamedTensorProto *)elements[i])->tensor
                            : elements[i];
        tensor->tensor_content = cuts[i];
    }
}

void *tensor_unpack_message(const ProtobufCMessageDescriptor *descriptor, unsigned number,
                            int large, const void *bytes, size_t size, struct arena *arena,
                            struct error *err)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(descriptor, number);
    const struct message_cursor whole = message_cursor_of(bytes, size);
    bool is_large = size >= (size_t)large && size <= LIMIT_MESSAGE_BYTES;
    size_t count = is_large ? count_fields(whole, number, large) : 0;
    if (!count || (count > 1 && field->label != PROTOBUF_C_LABEL_REPEATED))
        return message_unpack(descriptor, bytes, size, arena, err);
    struct str rest = {0};
    ProtobufCBinaryData *cuts = arena_array(arena, count, sizeof(*cuts));
    cut_all(whole, field, large, &rest, cuts);
    void *message = message_unpack(descriptor, rest.data, rest.size, arena, err);
    str_release(&rest);
    if (message)
        give_back(message, field, cuts, count);
    return message;
}
