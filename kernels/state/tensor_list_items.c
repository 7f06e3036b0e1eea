/* tensor_list_items.c - lists of tensors: made, one item put in or taken out. */

#include "kernels/state/tensor_list.h"

static enum dtype element_type(const struct kernel_call *call)
{
    return (enum dtype)node_attr_type(call->node, "element_dtype");
}

static bool empty_run(struct kernel_call *call, struct error *err)
{
    struct shape shape;
    int64_t max = 0;
    return kernel_scalar(call, 1, "max_num_elements", &max, err) &&
           kernel_list_shape_in(call, 0, &shape, err) &&
           kernel_list_output(call, element_type(call), &shape, max, 0, err);
}

static bool reserve_run(struct kernel_call *call, struct error *err)
{
    struct shape shape;
    int64_t count = 0;
    if (!kernel_list_shape_in(call, 0, &shape, err) ||
        !kernel_scalar(call, 1, "The num_elements to reserve", &count, err))
        return false;
    if (count < 0)
        return fail(err, INVALID,
                    "The num_elements to reserve must be a non negative number, but got %lld",
                    (long long)count);
    return kernel_list_output(call, element_type(call), &shape, -1, count, err);
}

static bool length_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_list *list = kernel_list_in(call, 0, err);
    struct tensor *out = list ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return false;
    *(int32_t *)out->data = (int32_t)list->count;
    return true;
}

/* As it is given to those who make lists: -1 for a shape that is not known. */
static bool element_shape_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_list *list = kernel_list_in(call, 0, err);
    if (!list)
        return false;
    int rank = list->shape.rank;
    struct tensor *out = kernel_output(call, 0, rank < 0 ? &SHAPE_SCALAR : &SHAPE(rank), err);
    if (!out)
        return false;
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int d = 0; d < rank; d++)
        store(out->data, d, (uint64_t)list->shape.dims[d]);
    if (rank < 0)
        store(out->data, 0, (uint64_t)-1);
    return true;
}

/* Whether the list takes such an item. */
static bool check_item(const struct tensor_list *list, const struct tensor *item,
                       struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_compatible(&list->shape, &item->shape) ||
           fail(err, INVALID,
                "Tried to set a tensor with incompatible shape at a list index. Item element "
                "shape: %s list shape: %s",
                shape_text(&item->shape, a, sizeof(a)), shape_text(&list->shape, b, sizeof(b)));
}

static bool push_back_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *item = kernel_in(call, 1);
    struct tensor_list *list = kernel_list_of(call, 0, item->dtype, err);
    if (!list || !check_item(list, item, err))
        return false;
    if (list->max != -1 && list->count >= list->max)
        return fail(err, INVALID,
                    "Tried to push item into a full list list size: %lld max_num_elements: "
                    "%lld",
                    (long long)list->count, (long long)list->max);
    list = kernel_list_change(call, err);
    return list && kernel_list_resize(list, list->count + 1, err) &&
           kernel_list_set(list, list->count - 1, item, err);
}

/* What an item that was not written reads as; `shape` must be full. */
static bool output_zeros(struct kernel_call *call, int output, const struct shape *shape,
                         struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (!shape_is_full(shape))
        return fail(err, INVALID,
                    "Trying to read an uninitialized tensor but element_shape is not fully "
                    "defined: %s and no list element is set.",
                    shape_text(shape, text, sizeof(text)));
    struct tensor *out = kernel_output(call, output, shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    return true;
}

static bool pop_back_run(struct kernel_call *call, struct error *err)
{
    struct tensor_list *list = kernel_list_of(call, 0, element_type(call), err);
    struct shape shape;
    if (!list)
        return false;
    if (list->count == 0)
        return fail(err, INVALID, "Trying to pop from an empty list.");
    const struct tensor *last = kernel_list_item(list, list->count - 1);
    if (last->dtype != DTYPE_NONE)
        kernel_output_share(call, 1, last, &last->shape);
    else if (!kernel_list_items_shape(call, 1, list, &shape, err) ||
             !output_zeros(call, 1, &shape, err))
        return false;
    list = kernel_list_change(call, err);
    return list && kernel_list_resize(list, list->count - 1, err);
}

static bool get_item_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_list *list = kernel_list_of(call, 0, element_type(call), err);
    struct shape shape;
    if (!list)
        return false;
    if (kernel_in(call, 1)->count != 1)
        return fail(err, INVALID, "index must be one number");
    int64_t index = tensor_integer(kernel_in(call, 1), 0);
    if (index < 0 || index >= list->count)
        return fail(err, INVALID, "Trying to access element %lld in a list with %lld elements.",
                    (long long)index, (long long)list->count);
    const struct tensor *item = kernel_list_item(list, index);
    if (item->dtype != DTYPE_NONE) {
        kernel_output_share(call, 0, item, &item->shape);
        return true;
    }
    return kernel_list_items_shape(call, 2, list, &shape, err) &&
           (shape_is_full(&shape) || kernel_list_merge_shapes(list, &shape, err)) &&
           output_zeros(call, 0, &shape, err);
}

static bool set_item_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *item = kernel_in(call, 2);
    struct tensor_list *list = kernel_list_of(call, 0, item->dtype, err);
    int64_t index = 0;
    if (!list || !kernel_scalar(call, 1, "index", &index, err))
        return false;
    bool may_grow = node_attr_bool(call->node, "resize_if_index_out_of_bounds", false);
    if (index < 0 || (index >= list->count && !may_grow))
        return fail(err, INVALID, "Trying to modify element %lld in a list with %lld elements.",
                    (long long)index, (long long)list->count);
    if (!check_item(list, item, err))
        return false;
    list = kernel_list_change(call, err);
    return list && (index < list->count || kernel_list_resize(list, index + 1, err)) &&
           kernel_list_set(list, index, item, err);
}

static bool resize_run(struct kernel_call *call, struct error *err)
{
    int64_t count = 0;
    if (!kernel_list_in(call, 0, err) || !kernel_scalar(call, 1, "size", &count, err))
        return false;
    if (count < 0)
        return fail(err, INVALID, "TensorListSlice expects size to be non-negative. Got: %lld",
                    (long long)count);
    struct tensor_list *list = kernel_list_change(call, err);
    return list && kernel_list_resize(list, count, err);
}

#define KERNEL(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_empty_tensor_list = KERNEL("EmptyTensorList", empty_run);
const struct kernel kernel_tensor_list_reserve = KERNEL("TensorListReserve", reserve_run);
const struct kernel kernel_tensor_list_length = KERNEL("TensorListLength", length_run);
const struct kernel kernel_tensor_list_element_shape =
    KERNEL("TensorListElementShape", element_shape_run);
const struct kernel kernel_tensor_list_push_back = KERNEL("TensorListPushBack", push_back_run);
const struct kernel kernel_tensor_list_pop_back = KERNEL("TensorListPopBack", pop_back_run);
const struct kernel kernel_tensor_list_get_item = KERNEL("TensorListGetItem", get_item_run);
const struct kernel kernel_tensor_list_set_item = KERNEL("TensorListSetItem", set_item_run);
const struct kernel kernel_tensor_list_resize = KERNEL("TensorListResize", resize_run);
