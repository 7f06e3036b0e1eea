/* tensor_pb.c - tensors and shapes from and to TensorProto. */

#include "runtime/tensor_pb.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/resource.h"
#include "runtime/variant.h"
#include "tensorflow/tensor.pb-c.h"

typedef Tensorflow__TensorProto tensor_proto;
typedef Tensorflow__TensorShapeProto shape_proto;

/* --- shapes --- */

bool tensor_unpack_shape(struct shape *out, const shape_proto *proto, struct error *err)
{
    if (proto->unknown_rank) {
        *out = SHAPE_UNKNOWN;
        return true;
    }
    if (proto->n_dim > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a shape has %zu dimensions, the limit is %d", proto->n_dim,
                    LIMIT_TENSOR_RANK);
    struct shape shape = {.rank = (int)proto->n_dim};
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = proto->dim[i]->size;
        if (shape.dims[i] < -1)
            return fail(err, INVALID, "Shape dimension %d is %lld, must be >= -1", i,
                        (long long)shape.dims[i]);
    }
    *out = shape;
    return true;
}

shape_proto *tensor_pack_shape(const struct shape *shape, struct arena *arena)
{
    shape_proto *proto = arena_alloc(arena, sizeof(*proto));
    tensorflow__tensor_shape_proto__init(proto);
    proto->unknown_rank = shape->rank < 0;
    if (shape->rank <= 0)
        return proto;
    proto->n_dim = (size_t)shape->rank;
    proto->dim = arena_array(arena, proto->n_dim, sizeof(*proto->dim));
    for (int i = 0; i < shape->rank; i++) {
        proto->dim[i] = arena_alloc(arena, sizeof(*proto->dim[i]));
        tensorflow__tensor_shape_proto__dim__init(proto->dim[i]);
        proto->dim[i]->size = shape->dims[i];
    }
    return proto;
}

bool tensor_parse_shape(struct shape *out, const void *bytes, size_t size, struct error *err)
{
    struct arena *arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const shape_proto *proto =
        message_unpack(&tensorflow__tensor_shape_proto__descriptor, bytes, size, arena, err);
    bool ok = proto && tensor_unpack_shape(out, proto, err);
    arena_free(arena);
    return ok;
}

void tensor_serialize_shape(const struct shape *shape, struct str *out)
{
    struct arena *arena = arena_new();
    message_pack(&tensor_pack_shape(shape, arena)->base, out);
    arena_free(arena);
}

/* --- reading elements --- */

/* Sets the first elements from a typed field; returns how many. */
#define COPY_VALUES(type, field)                                                               \
    do {                                                                                       \
        given = proto->n_##field < (size_t)out->count ? proto->n_##field : (size_t)out->count; \
        for (size_t i = 0; i < given; i++)                                                     \
            ((type *)out->data)[i] = (type)proto->field[i];                                    \
    } while (0)

/* The same where an element is a pair. */
#define COPY_PAIRS(type, field)                                                                \
    do {                                                                                       \
        given = proto->n_##field / 2 < (size_t)out->count ? proto->n_##field / 2               \
                                                          : (size_t)out->count;                \
        for (size_t i = 0; i < 2 * given; i++)                                                 \
            ((type *)out->data)[i] = proto->field[i];                                          \
    } while (0)

static size_t copy_values(struct tensor *out, const tensor_proto *proto)
{
    size_t given = 0;
    switch (out->dtype) {
    case F32:
        COPY_VALUES(float, float_val);
        break;
    case F64:
        COPY_VALUES(double, double_val);
        break;
    case I32:
    case QI32:
        COPY_VALUES(int32_t, int_val);
        break;
    case I16:
    case U16:
    case QI16:
    case QU16:
        COPY_VALUES(uint16_t, int_val);
        break;
    case I8:
    case U8:
    case QI8:
    case QU8:
        COPY_VALUES(uint8_t, int_val);
        break;
    case I64:
        COPY_VALUES(int64_t, int64_val);
        break;
    case U32:
        COPY_VALUES(uint32_t, uint32_val);
        break;
    case U64:
        COPY_VALUES(uint64_t, uint64_val);
        break;
    case F16:
    case BF16:
        COPY_VALUES(uint16_t, half_val);
        break;
    case BOOL:
        given = proto->n_bool_val < (size_t)out->count ? proto->n_bool_val : (size_t)out->count;
        for (size_t i = 0; i < given; i++)
            ((uint8_t *)out->data)[i] = proto->bool_val[i] != 0;
        break;
    case C64:
        COPY_PAIRS(float, scomplex_val);
        break;
    case C128:
        COPY_PAIRS(double, dcomplex_val);
        break;
    case F8E5M2:
    case F8E4M3FN:
        given = proto->float8_val.len < (size_t)out->count ? proto->float8_val.len
                                                           : (size_t)out->count;
        if (given)
            memcpy(out->data, proto->float8_val.data, given);
        break;
    default:
        assert(!"a plain type");
    }
    return given;
}

#undef COPY_VALUES
#undef COPY_PAIRS

void tensor_settle(struct tensor *tensor)
{
    for (int64_t i = 0; tensor->dtype == BOOL && i < tensor->count; i++)
        ((uint8_t *)tensor->data)[i] = ((uint8_t *)tensor->data)[i] != 0;
}

static void unpack_plain(struct tensor *out, const tensor_proto *proto)
{
    size_t element = dtype_size(out->dtype);
    size_t size = (size_t)out->count * element;
    if (proto->tensor_content.len) {
        memcpy(out->data, proto->tensor_content.data, size);
        tensor_settle(out);
        return;
    }
    size_t given = copy_values(out, proto);
    if (!given) {
        memset(out->data, 0, size);
        return;
    }
    /* The last value fills the rest, twice as much of it each time. */
    char *rest = (char *)out->data + (given - 1) * element;
    size_t wanted = size - (given - 1) * element;
    for (size_t have = element; have < wanted; have *= 2)
        memcpy(rest + have, rest, have < wanted - have ? have : wanted - have);
}

static bool take_varint32(const uint8_t **at, const uint8_t *end, uint32_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (*at == end)
            return false;
        uint8_t byte = *(*at)++;
        *value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* tensor_content of strings: all lengths as varints, then all bytes. */
bool tensor_unpack_string_content(struct tensor *out, const tensor_proto *proto,
                                  struct error *err)
{
    const uint8_t *end = proto->tensor_content.data + proto->tensor_content.len;
    const uint8_t *length = proto->tensor_content.data;
    const uint8_t *bytes = length;
    uint32_t size;
    for (int64_t i = 0; i < out->count; i++)
        if (!take_varint32(&bytes, end, &size))
            return fail(err, INVALID, "tensor_content of a string tensor ends in its lengths");
    for (int64_t i = 0; i < out->count; i++) {
        bool ok = take_varint32(&length, end, &size);
        assert(ok);
        if (size > (size_t)(end - bytes))
            return fail(err, INVALID,
                        "tensor_content of a string tensor ends in element %lld of %lld",
                        (long long)i, (long long)out->count);
        tensor_set_string(out, i, (const char *)bytes, size);
        bytes += size;
    }
    return true;
}

static bool unpack_strings(struct tensor *out, const tensor_proto *proto, struct error *err)
{
    if (proto->tensor_content.len)
        return tensor_unpack_string_content(out, proto, err);
    for (int64_t i = 0; proto->n_string_val && i < out->count; i++) {
        size_t from = (size_t)i < proto->n_string_val ? (size_t)i : proto->n_string_val - 1;
        tensor_set_string(out, i, (const char *)proto->string_val[from].data,
                          proto->string_val[from].len);
    }
    return true;
}

static void unpack_handles(struct tensor *out, const tensor_proto *proto)
{
    struct resource_handle *handles = out->data;
    for (int64_t i = 0; i < out->count; i++) {
        handles[i].container = alloc_text(proto->resource_handle_val[i]->container);
        handles[i].name = alloc_text(proto->resource_handle_val[i]->name);
    }
}

/*
 * A shape costs a few bytes on the wire, so what no element was sent for is bounded: by the
 * size of a message.
 */
static bool check_size(const tensor_proto *proto, const struct shape *shape, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    int64_t count = shape_count(shape);
    if (count < 0)
        return fail(err, INVALID, "a tensor has the shape %s, which is unknown or too large",
                    shape_text(shape, text, sizeof(text)));
    if (proto->dtype == TENSORFLOW__DATA_TYPE__DT_RESOURCE &&
        proto->n_resource_handle_val < (size_t)count)
        return fail(err, UNIMPLEMENTED, "resource handles in tensor_content are not read");
    if (proto->dtype == TENSORFLOW__DATA_TYPE__DT_VARIANT && !proto->tensor_content.len &&
        proto->n_variant_val < (size_t)count)
        return fail(err, INVALID, "a variant tensor of shape %s has %zu elements",
                    shape_text(shape, text, sizeof(text)), proto->n_variant_val);
    bool filled = !proto->tensor_content.len && proto->n_string_val < (size_t)count;
    if (filled && count > LIMIT_MESSAGE_BYTES / 16)
        return fail(err, EXHAUSTED,
                    "a tensor of shape %s is larger than what a message may fill",
                    shape_text(shape, text, sizeof(text)));
    size_t bytes = (size_t)count * dtype_size(proto->dtype);
    if (proto->tensor_content.len && BIT(proto->dtype) & DTYPES_PLAIN &&
        proto->tensor_content.len != bytes)
        return fail(err, INVALID,
                    "tensor_content of a %s tensor has %zu bytes, but its shape needs %zu",
                    dtype_name(proto->dtype), proto->tensor_content.len, bytes);
    if (!(BIT(proto->dtype) & DTYPES_PLAIN) && proto->tensor_content.len &&
        (size_t)count > proto->tensor_content.len)
        return fail(err, INVALID, "tensor_content of a string tensor ends in its lengths");
    return true;
}

/* The type and the shape, which must be full. */
static bool unpack_kind(const tensor_proto *proto, struct shape *shape, struct error *err)
{
    int dtype = proto->dtype;
    if (!dtype_known(dtype) || dtype_is_ref(dtype))
        return fail(err, INVALID, "a tensor has the type %d, which is none", dtype);
    *shape = SHAPE_SCALAR;
    return !proto->tensor_shape || tensor_unpack_shape(shape, proto->tensor_shape, err);
}

static bool unpack_apart(struct tensor *out, const tensor_proto *proto, int64_t content_bytes,
                         struct buffer *buffer, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    struct shape shape;
    if (!unpack_kind(proto, &shape, err))
        return false;
    enum dtype dtype = (enum dtype)proto->dtype;
    if (!(BIT(dtype) & DTYPES_PLAIN))
        return fail(err, INVALID, "the elements of a %s tensor cannot lie apart",
                    dtype_name(dtype));
    int64_t count = shape_count(&shape), element = (int64_t)dtype_size(dtype);
    if (count < 0)
        return fail(err, INVALID, "a tensor has the shape %s, which is unknown or too large",
                    shape_text(&shape, text, sizeof(text)));
    if (content_bytes < 0 || content_bytes % element || content_bytes / element != count)
        return fail(err, INVALID,
                    "%" PRId64 " bytes of elements came for a %s tensor of shape %s",
                    content_bytes, dtype_name(dtype), shape_text(&shape, text, sizeof(text)));
    if (!buffer)
        return tensor_init(out, dtype, &shape, err);
    if (dtype == BOOL)
        return fail(err, INVALID, "the elements of a bool tensor are sent, not mapped");
    tensor_init_foreign(out, dtype, &shape, buffer);
    return true;
}

bool tensor_unpack_apart(struct tensor *out, const tensor_proto *proto, int64_t content_bytes,
                         struct buffer *buffer, struct error *err)
{
    bool ok = unpack_apart(out, proto, content_bytes, buffer, err);
    if (!ok)
        buffer_unref(buffer);
    return ok;
}

bool tensor_unpack(struct tensor *out, const tensor_proto *proto, struct error *err)
{
    struct shape shape;
    if (!unpack_kind(proto, &shape, err))
        return false;
    enum dtype dtype = (enum dtype)proto->dtype;
    if (!check_size(proto, &shape, err))
        return false;

    struct tensor made;
    if (!tensor_init(&made, dtype, &shape, err))
        return false;
    bool ok = true;
    if (dtype == STRING)
        ok = unpack_strings(&made, proto, err);
    else if (dtype == RESOURCE)
        unpack_handles(&made, proto);
    else if (dtype == VARIANT)
        ok = variant_unpack(&made, proto, err);
    else
        unpack_plain(&made, proto);
    if (!ok) {
        tensor_release(&made);
        return false;
    }
    *out = made;
    return true;
}

bool tensor_parse(struct tensor *out, const void *bytes, size_t size, struct error *err)
{
    struct arena *arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const tensor_proto *proto =
        message_unpack(&tensorflow__tensor_proto__descriptor, bytes, size, arena, err);
    bool ok = proto && tensor_unpack(out, proto, err);
    arena_free(arena);
    return ok;
}

/* --- writing --- */

static void pack_strings(const struct tensor *tensor, tensor_proto *proto, struct arena *arena)
{
    proto->n_string_val = (size_t)tensor->count;
    proto->string_val = arena_array(arena, proto->n_string_val, sizeof(*proto->string_val));
    for (int64_t i = 0; i < tensor->count; i++) {
        const struct tensor_string *element = tensor_strings(tensor) + i;
        proto->string_val[i] = (ProtobufCBinaryData){element->size, (uint8_t *)element->data};
    }
}

static void pack_handles(const struct tensor *tensor, tensor_proto *proto, struct arena *arena)
{
    const struct resource_handle *handles = tensor->data;
    proto->n_resource_handle_val = (size_t)tensor->count;
    proto->resource_handle_val =
        arena_array(arena, (size_t)tensor->count, sizeof(*proto->resource_handle_val));
    for (int64_t i = 0; i < tensor->count; i++) {
        Tensorflow__ResourceHandleProto *handle = arena_alloc(arena, sizeof(*handle));
        tensorflow__resource_handle_proto__init(handle);
        if (handles[i].container)
            handle->container = handles[i].container;
        if (handles[i].name)
            handle->name = handles[i].name;
        proto->resource_handle_val[i] = handle;
    }
}

tensor_proto *tensor_pack(const struct tensor *tensor, bool contents, struct arena *arena)
{
    tensor_proto *proto = arena_alloc(arena, sizeof(*proto));
    tensorflow__tensor_proto__init(proto);
    proto->dtype = (Tensorflow__DataType)tensor->dtype;
    proto->tensor_shape = tensor_pack_shape(&tensor->shape, arena);
    if (!contents)
        return proto;
    if (tensor->dtype == STRING)
        pack_strings(tensor, proto, arena);
    else if (tensor->dtype == RESOURCE)
        pack_handles(tensor, proto, arena);
    else if (tensor->dtype == VARIANT)
        variant_pack(tensor, proto, arena);
    else
        proto->tensor_content = (ProtobufCBinaryData){tensor_bytes(tensor), tensor->data};
    return proto;
}

void tensor_serialize(const struct tensor *tensor, struct str *out)
{
    struct arena *arena = arena_new();
    message_pack(&tensor_pack(tensor, true, arena)->base, out);
    arena_free(arena);
}

static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

void tensor_serialize_content(const struct tensor *tensor, struct str *out)
{
    struct arena *arena = arena_new();
    struct str content = {0};
    bool packs = tensor->dtype == STRING;
    tensor_proto *proto = tensor_pack(tensor, !packs, arena);
    for (int64_t i = 0; packs && i < tensor->count; i++)
        add_varint(&content, tensor_strings(tensor)[i].size);
    for (int64_t i = 0; packs && i < tensor->count; i++)
        str_add_bytes(&content, tensor_strings(tensor)[i].data, tensor_strings(tensor)[i].size);
    if (packs)
        proto->tensor_content = (ProtobufCBinaryData){content.size, (uint8_t *)content.data};
    message_pack(&proto->base, out);
    str_release(&content);
    arena_free(arena);
}
