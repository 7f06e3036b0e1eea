/* tensor_list.c - lists of tensors: how they are made, shared, changed and described. */

#include "kernels/state/tensor_list.h"

#include <stdlib.h>

#include "base/alloc.h"

static void list_destroy(struct resource *resource)
{
    struct tensor_list *list = (struct tensor_list *)resource;
    for (int64_t i = 0; i < list->used; i++)
        tensor_release(&list->items[i]);
    if (list->items)
        free(list->items - list->before);
    free(list);
}

struct tensor_list *kernel_list_new(enum dtype dtype, const struct shape *shape, int64_t max)
{
    struct tensor_list *list = alloc_bytes(sizeof(*list));
    list->resource =
        (struct resource){.kind = TENSOR_LIST, .references = 1, .destroy = list_destroy};
    list->dtype = dtype;
    list->shape = *shape;
    list->max = max;
    list->depth = 1;
    return list;
}

struct tensor_list *kernel_list_like(const struct tensor_list *list)
{
    return kernel_list_new(list->dtype, &list->shape, list->max);
}

/* --- items --- */

const struct tensor *kernel_list_item(const struct tensor_list *list, int64_t i)
{
    static const struct tensor none = {.shape = {.rank = -1}};
    bool has_place = i >= list->first && i < list->first + list->used;
    return has_place ? &list->items[i - list->first] : &none;
}

/* Makes room for so many more in front and behind, and for as many again on a side that grows.
 */
static bool make_room(struct tensor_list *list, int64_t front, int64_t back, struct error *err)
{
    int64_t total = list->used + front + back;
    int64_t before = front ? front + total : 0, after = back ? back + total : 0;
    struct tensor *memory = calloc((size_t)(before + list->used + after), sizeof(*memory));
    if (!memory)
        return fail(err, EXHAUSTED, "OOM when making a list of %lld items",
                    (long long)list->count);
    if (list->used)
        memcpy(memory + before, list->items, (size_t)list->used * sizeof(*memory));
    if (list->items)
        free(list->items - list->before);
    list->items = memory + before;
    list->before = before;
    list->after = after;
    return true;
}

/* The place of item `i`, made if it had none; NULL when memory is out. */
static struct tensor *place_of(struct tensor_list *list, int64_t i, struct error *err)
{
    assert(i >= 0);
    assert(i < list->count);
    if (list->used == 0)
        list->first = i;
    int64_t front = list->first > i ? list->first - i : 0;
    int64_t back = i >= list->first + list->used ? i + 1 - list->first - list->used : 0;
    if ((front > list->before || back > list->after) && !make_room(list, front, back, err))
        return NULL;
    list->items -= front;
    list->first -= front;
    list->before -= front;
    list->after -= back;
    list->used += front + back;
    return &list->items[i - list->first];
}

bool kernel_list_resize(struct tensor_list *list, int64_t count, struct error *err)
{
    if (count > LIMIT_LIST_ITEMS)
        return fail(err, EXHAUSTED, "a list of %lld items, at most %d are possible",
                    (long long)count, LIMIT_LIST_ITEMS);
    for (; list->used > 0 && list->first + list->used > count; list->used--, list->after++)
        tensor_release(&list->items[list->used - 1]);
    list->count = count;
    return true;
}

/* How deep lists are in the elements of a tensor; 0 if there are none. */
static int depth_of(const struct tensor *value)
{
    int depth = 0;
    struct error ignored;
    for (int64_t i = 0; value->dtype == VARIANT && i < value->count; i++) {
        const struct tensor_list *list =
            (struct tensor_list *)kernel_variant(value, i, TENSOR_LIST, &ignored);
        if (list && list->depth > depth)
            depth = list->depth;
    }
    return depth;
}

bool kernel_list_set(struct tensor_list *list, int64_t index, const struct tensor *value,
                     struct error *err)
{
    assert(value->dtype == list->dtype);
    int depth = 1 + depth_of(value);
    if (depth > LIMIT_LIST_DEPTH)
        return fail(err, INVALID, "lists in lists in lists ...: more than %d deep",
                    LIMIT_LIST_DEPTH);
    if (depth > list->depth)
        list->depth = depth;
    struct tensor *place = place_of(list, index, err);
    if (!place)
        return false;
    struct tensor before = *place;
    tensor_share(place, value);
    tensor_release(&before);
    return true;
}

bool kernel_list_set_part(struct tensor_list *list, int64_t index, const struct tensor *value,
                          int64_t start, const struct shape *shape, struct error *err)
{
    struct tensor part;
    if (!tensor_init(&part, value->dtype, shape, err))
        return false;
    kernel_copy(&part, 0, value, start, part.count);
    bool ok = kernel_list_set(list, index, &part, err);
    tensor_release(&part);
    return ok;
}

bool kernel_list_copy_item(const struct tensor *item, struct tensor *out, int64_t at,
                           int64_t count, struct error *err)
{
    if (item->dtype == DTYPE_NONE)
        kernel_zero(out, at, count);
    else if (item->count != count)
        return fail(err, INVALID, "an item of the list has %lld elements, not %lld",
                    (long long)item->count, (long long)count);
    else
        kernel_copy(out, at, item, 0, count);
    return true;
}

/* --- lists as inputs and outputs --- */

struct tensor_list *kernel_list_in(const struct kernel_call *call, int input, struct error *err)
{
    const struct tensor *handle = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (handle->shape.rank != 0)
        return fail_null(err, INVALID, "Input list must be a scalar saw: %s",
                         shape_text(&handle->shape, text, sizeof(text)));
    return (struct tensor_list *)kernel_variant(handle, 0, TENSOR_LIST, err);
}

struct tensor_list *kernel_list_of(const struct kernel_call *call, int input, enum dtype dtype,
                                   struct error *err)
{
    struct tensor_list *list = kernel_list_in(call, input, err);
    if (!list || list->dtype == dtype)
        return list;
    return fail_null(err, INVALID, "Invalid data types; op elements %s but list elements %s",
                     dtype_name(dtype), dtype_name(list->dtype));
}

void kernel_list_set_element(struct tensor *tensor, int64_t index, struct tensor_list *list)
{
    assert(tensor->dtype == VARIANT);
    struct resource_handle *handle = (struct resource_handle *)tensor->data + index;
    resource_unref(handle->resource);
    handle->resource = &list->resource;
}

struct tensor_list *kernel_list_output(struct kernel_call *call, enum dtype dtype,
                                       const struct shape *shape, int64_t max, int64_t count,
                                       struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return NULL;
    struct tensor_list *list = kernel_list_new(dtype, shape, max);
    kernel_list_set_element(out, 0, list);
    return kernel_list_resize(list, count, err) ? list : NULL;
}

struct tensor_list *kernel_list_copy(const struct tensor_list *list, struct error *err)
{
    struct tensor_list *copy = kernel_list_like(list);
    copy->depth = list->depth;
    copy->count = list->count;
    copy->first = list->first;
    if (list->used && !make_room(copy, 0, list->used, err)) {
        resource_unref(&copy->resource);
        return NULL;
    }
    for (int64_t i = 0; i < list->used; i++)
        if (list->items[i].dtype != DTYPE_NONE)
            tensor_share(&copy->items[i], &list->items[i]);
    copy->used = list->used;
    copy->after -= list->used;
    return copy;
}

struct tensor_list *kernel_list_change(struct kernel_call *call, struct error *err)
{
    struct tensor_list *list = kernel_list_in(call, 0, err);
    const void *before = kernel_in(call, 0)->data;
    struct tensor *out = list ? kernel_output_reuse(call, 0, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return NULL;
    bool alone = out->data == before &&
                 __atomic_load_n(&list->resource.references, __ATOMIC_ACQUIRE) == 1;
    if (alone)
        return list;
    struct tensor_list *copy = kernel_list_copy(list, err);
    if (copy)
        kernel_list_set_element(out, 0, copy);
    return copy;
}

/* --- shapes --- */

bool kernel_list_shape_in(const struct kernel_call *call, int input, struct shape *shape,
                          struct error *err)
{
    const struct tensor *tensor = kernel_in(call, input);
    *shape = SHAPE_UNKNOWN;
    if (tensor->shape.rank == 0)
        return tensor_integer(tensor, 0) == -1 ||
               fail(err, INVALID,
                    "The only valid scalar shape tensor is the fully unknown shape specified "
                    "as -1.");
    if (tensor->shape.rank > 1)
        return fail(err, INVALID, "Shape must be at most rank 1 but is rank %d",
                    tensor->shape.rank);
    if (tensor->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a shape of %lld dimensions, at most %d",
                    (long long)tensor->count, LIMIT_TENSOR_RANK);
    shape->rank = (int)tensor->count;
    for (int d = 0; d < shape->rank; d++) {
        shape->dims[d] = tensor_integer(tensor, d);
        if (shape->dims[d] < -1)
            return fail(err, INVALID, "Shape [%lld] is not valid", (long long)shape->dims[d]);
    }
    return true;
}

bool kernel_list_items_shape(const struct kernel_call *call, int input,
                             const struct tensor_list *list, struct shape *shape,
                             struct error *err)
{
    struct shape given;
    return kernel_list_shape_in(call, input, &given, err) &&
           shape_merge(&given, &list->shape, shape, err);
}

bool kernel_list_merge_shape(const struct tensor_list *list, int64_t i, struct shape *shape,
                             struct error *err)
{
    struct shape merged;
    const struct tensor *item = kernel_list_item(list, i);
    if (!item || item->dtype == DTYPE_NONE)
        return true;
    if (!shape_merge(shape, &item->shape, &merged, err))
        return false;
    *shape = merged;
    return true;
}

bool kernel_list_merge_shapes(const struct tensor_list *list, struct shape *shape,
                              struct error *err)
{
    for (int64_t i = list->first; i < list->first + list->used; i++)
        if (!kernel_list_merge_shape(list, i, shape, err))
            return false;
    return true;
}

struct shape kernel_list_row(const struct shape *shape)
{
    if (shape->rank < 1)
        return SHAPE_UNKNOWN;
    struct shape row = {.rank = shape->rank - 1};
    for (int d = 1; d < shape->rank; d++)
        row.dims[d - 1] = shape->dims[d];
    return row;
}

bool kernel_list_rows(int64_t count, const struct shape *shape, struct shape *out,
                      struct error *err)
{
    if (shape->rank >= LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a shape of %d dimensions, at most %d", shape->rank + 1,
                    LIMIT_TENSOR_RANK);
    struct shape rows = {.rank = shape->rank + 1, .dims = {count}};
    for (int d = 0; d < shape->rank; d++)
        rows.dims[d + 1] = shape->dims[d];
    *out = rows;
    return true;
}
