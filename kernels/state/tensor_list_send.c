/* tensor_list_send.c - lists as TensorFlow sends them to other processes. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/state/tensor_list.h"
#include "runtime/tensor_pb.h"
#include "runtime/variant.h"

/*
 * The metadata: how many items were not written and which, the type, the bound (-1: none), and
 * a TensorShapeProto; all but the last as varints.
 */

static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

static int list_describe(const struct resource *resource, struct str *metadata,
                         const struct tensor ***tensors)
{
    const struct tensor_list *list = (const struct tensor_list *)resource;
    struct str missing = {0};
    int count = 0;
    *tensors = alloc_array((size_t)list->used, sizeof(**tensors));
    for (int64_t i = 0; i < list->count; i++) {
        const struct tensor *item = kernel_list_item(list, i);
        if (item->dtype == DTYPE_NONE)
            add_varint(&missing, (uint64_t)i);
        else
            (*tensors)[count++] = item;
    }
    add_varint(metadata, (uint64_t)(list->count - count));
    str_add_bytes(metadata, missing.data, missing.size);
    add_varint(metadata, (uint64_t)list->dtype);
    add_varint(metadata, (uint64_t)list->max);
    tensor_serialize_shape(&list->shape, metadata);
    str_release(&missing);
    return count;
}

/* --- reading --- */

struct reader {
    const uint8_t *at, *end;
};

static bool take_varint(struct reader *reader, uint64_t *value, struct error *err)
{
    *value = 0;
    for (int shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        *value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (!(byte & 0x80))
            return true;
    }
    return fail(err, INVALID, "the metadata of a list ends in a number");
}

/* Those that were not written; all others get the tensors that came. */
static bool take_items(struct tensor_list *list, struct reader *reader, int64_t missing,
                       const struct tensor *tensors, int count, struct error *err)
{
    int64_t next = 0;
    int used = 0;
    for (int64_t m = 0; m <= missing; m++) {
        uint64_t gap = (uint64_t)list->count;
        if (m < missing && !take_varint(reader, &gap, err))
            return false;
        if ((m < missing && gap >= (uint64_t)list->count) || gap < (uint64_t)next)
            return fail(err, INVALID, "item %llu of a list of %lld was not written",
                        (unsigned long long)gap, (long long)list->count);
        for (; next < (int64_t)gap; next++, used++)
            if (used == count || !kernel_list_set(list, next, &tensors[used], err))
                return used < count ? false : fail(err, INVALID, "a list lacks its items");
        next++;
    }
    return true;
}

static bool check_items(const struct tensor *tensors, int count, enum dtype dtype,
                        struct error *err)
{
    for (int i = 0; i < count; i++)
        if (tensors[i].dtype != dtype)
            return fail(err, INVALID, "a list of %s has an item of %s", dtype_name(dtype),
                        dtype_name(tensors[i].dtype));
    return true;
}

static struct resource *list_make(const void *metadata, size_t size,
                                  const struct tensor *tensors, int count, struct error *err)
{
    struct reader reader = {metadata, (const uint8_t *)metadata + size};
    uint64_t missing, dtype, max;
    struct shape shape;
    if (!take_varint(&reader, &missing, err))
        return NULL;
    if (missing > LIMIT_LIST_ITEMS)
        return (struct resource *)fail_null(err, INVALID, "a list lacks %llu items",
                                            (unsigned long long)missing);
    struct reader items = reader; /* looked at when the list is there */
    for (uint64_t i = 0; i < missing; i++)
        if (!take_varint(&reader, &dtype, err))
            return NULL;
    if (!take_varint(&reader, &dtype, err) || !take_varint(&reader, &max, err) ||
        !tensor_parse_shape(&shape, reader.at, (size_t)(reader.end - reader.at), err))
        return NULL;
    if (dtype > INT32_MAX || !dtype_known((int)dtype) || dtype_is_ref((int)dtype) ||
        (int64_t)max < -1)
        return (struct resource *)fail_null(err, INVALID, "a list of the type %llu, max %lld",
                                            (unsigned long long)dtype, (long long)max);
    struct tensor_list *list = kernel_list_new((enum dtype)dtype, &shape, (int64_t)max);
    if (check_items(tensors, count, (enum dtype)dtype, err) &&
        kernel_list_resize(list, (int64_t)missing + count, err) &&
        take_items(list, &items, (int64_t)missing, tensors, count, err))
        return &list->resource;
    resource_unref(&list->resource);
    return NULL;
}

const struct variant_kind tensor_list_send_kind = {.kind = TENSOR_LIST,
                                                   .type_name = "tensorflow::TensorList",
                                                   .describe = list_describe,
                                                   .make = list_make};
