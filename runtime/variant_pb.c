/* variant_pb.c - elements of VARIANT tensors from and to VariantTensorDataProto. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/tensor_pb.h"
#include "runtime/variant.h"
#include "tensorflow/tensor.pb-c.h"

typedef Tensorflow__VariantTensorDataProto variant_proto;

/* Lists in lists in lists ... that come; each level is a few of these frames. */
static _Thread_local int depth;

/* --- writing --- */

static variant_proto *pack_element(const struct resource *resource, struct arena *arena)
{
    variant_proto *proto = arena_alloc(arena, sizeof(*proto));
    tensorflow__variant_tensor_data_proto__init(proto);
    const struct variant_kind *kind = resource ? variant_kind_of(resource->kind) : NULL;
    if (resource)
        proto->type_name = (char *)(kind ? kind->type_name : resource->kind);
    if (!kind)
        return proto;
    struct str metadata = {0};
    const struct tensor **tensors;
    proto->n_tensors = (size_t)kind->describe(resource, &metadata, &tensors);
    proto->tensors = arena_array(arena, proto->n_tensors, sizeof(*proto->tensors));
    for (size_t i = 0; i < proto->n_tensors; i++)
        proto->tensors[i] = tensor_pack(tensors[i], true, arena);
    uint8_t *bytes = arena_array(arena, metadata.size, 1);
    if (metadata.size)
        memcpy(bytes, metadata.data, metadata.size);
    proto->metadata = (ProtobufCBinaryData){metadata.size, bytes};
    str_release(&metadata);
    free(tensors);
    return proto;
}

void variant_pack(const struct tensor *tensor, Tensorflow__TensorProto *proto,
                  struct arena *arena)
{
    const struct resource_handle *handles = tensor->data;
    proto->n_variant_val = (size_t)tensor->count;
    proto->variant_val = arena_array(arena, proto->n_variant_val, sizeof(*proto->variant_val));
    for (int64_t i = 0; i < tensor->count; i++)
        proto->variant_val[i] = pack_element(handles[i].resource, arena);
}

/* --- reading --- */

static bool unpack_element(struct resource_handle *handle, const variant_proto *proto,
                           struct error *err)
{
    if (!proto->type_name[0])
        return true; /* nothing was put there */
    const struct variant_kind *kind = variant_kind_named(proto->type_name);
    if (!kind)
        return fail(err, UNIMPLEMENTED,
                    "a variant of the type '%.80s' cannot be sent to another task",
                    proto->type_name);
    struct tensor *tensors = alloc_array(proto->n_tensors, sizeof(*tensors));
    size_t count = 0;
    while (count < proto->n_tensors &&
           tensor_unpack(&tensors[count], proto->tensors[count], err))
        count++;
    if (count == proto->n_tensors)
        handle->resource =
            kind->make(proto->metadata.data, proto->metadata.len, tensors, (int)count, err);
    for (size_t i = 0; i < count; i++)
        tensor_release(&tensors[i]);
    free(tensors);
    return handle->resource;
}

/* A serialized VariantTensorDataProto. */
static bool parse_element(struct resource_handle *handle, const void *bytes, size_t size,
                          struct error *err)
{
    struct arena *arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const variant_proto *proto = message_unpack(
        &tensorflow__variant_tensor_data_proto__descriptor, bytes, size, arena, err);
    bool ok = proto && unpack_element(handle, proto, err);
    arena_free(arena);
    return ok;
}

/* tensor_content has them as it has strings. */
static bool unpack_content(struct tensor *out, const Tensorflow__TensorProto *proto,
                           struct error *err)
{
    struct tensor texts;
    if (!tensor_init(&texts, STRING, &out->shape, err))
        return false;
    bool ok = tensor_unpack_string_content(&texts, proto, err);
    for (int64_t i = 0; ok && i < out->count; i++)
        ok = parse_element((struct resource_handle *)out->data + i,
                           tensor_strings(&texts)[i].data, tensor_strings(&texts)[i].size, err);
    tensor_release(&texts);
    return ok;
}

static bool unpack_values(struct tensor *out, const Tensorflow__TensorProto *proto,
                          struct error *err)
{
    assert(proto->n_variant_val >= (size_t)out->count); /* check_size() of tensor_pb.c */
    bool ok = true;
    for (int64_t i = 0; ok && i < out->count; i++)
        ok =
            unpack_element((struct resource_handle *)out->data + i, proto->variant_val[i], err);
    return ok;
}

bool variant_unpack(struct tensor *out, const Tensorflow__TensorProto *proto, struct error *err)
{
    if (depth >= LIMIT_LIST_DEPTH)
        return fail(err, INVALID, "lists in lists in lists ...: more than %d deep",
                    LIMIT_LIST_DEPTH);
    depth++;
    bool ok = proto->tensor_content.len ? unpack_content(out, proto, err)
                                        : unpack_values(out, proto, err);
    depth--;
    return ok;
}
