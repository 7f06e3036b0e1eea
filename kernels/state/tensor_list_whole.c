/* tensor_list_whole.c - lists of tensors: from and to one tensor with a row per item. */

#include "kernels/state/tensor_list.h"

static enum dtype element_type(const struct kernel_call *call)
{
    return (enum dtype)node_attr_type(call->node, "element_dtype");
}

/* --- items to one tensor --- */

/* Of the items `wanted`, all of them if NULL. */
static bool merge_wanted(const struct tensor_list *list, const struct tensor *wanted,
                         struct shape *shape, struct error *err)
{
    if (!wanted)
        return kernel_list_merge_shapes(list, shape, err);
    for (int64_t i = 0; i < wanted->count; i++)
        if (!kernel_list_merge_shape(list, tensor_i32(wanted)[i], shape, err))
            return false;
    return true;
}

/* The items `wanted`, which there are, are of one shape, that of `input` as far as it says;
 * `what` was tried. */
static bool one_shape(const struct kernel_call *call, int input, const struct tensor_list *list,
                      const struct tensor *wanted, const char *what, struct shape *shape,
                      struct error *err)
{
    int64_t count = wanted ? wanted->count : list->count;
    char text[SHAPE_TEXT_BYTES];
    if (!kernel_list_items_shape(call, input, list, shape, err))
        return false;
    if (count == 0 && !shape_is_full(shape))
        return fail(err, INVALID,
                    "Tried to %s elements of an empty list with non-fully-defined "
                    "element_shape: %s",
                    what, shape_text(shape, text, sizeof(text)));
    if (!shape_is_full(&list->shape) && !merge_wanted(list, wanted, shape, err))
        return false;
    return shape_is_full(shape) ||
           fail(err, INVALID,
                "Tried to %s list which only contains uninitialized tensors and has a "
                "non-fully-defined element_shape: %s",
                what, shape_text(shape, text, sizeof(text)));
}

static bool stack_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_list *list = kernel_list_of(call, 0, element_type(call), err);
    int64_t wanted = node_attr_int(call->node, "num_elements", -1);
    struct shape shape, whole;
    if (!list)
        return false;
    if (wanted != -1 && list->count != wanted)
        return fail(err, INVALID,
                    "Operation expected a list with %lld elements but got a list with %lld "
                    "elements.",
                    (long long)wanted, (long long)list->count);
    if (!one_shape(call, 1, list, NULL, "stack", &shape, err) ||
        !kernel_list_rows(list->count, &shape, &whole, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &whole, err);
    int64_t row = shape_count(&shape);
    for (int64_t i = 0; out && i < list->count; i++)
        if (!kernel_list_copy_item(kernel_list_item(list, i), out, i * row, row, err))
            return false;
    return out != NULL;
}

static bool gather_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_list *list = kernel_list_of(call, 0, element_type(call), err);
    const struct tensor *indices = kernel_in(call, 1);
    struct shape shape, whole;
    const int32_t *index = tensor_i32(indices);
    if (!list)
        return false;
    for (int64_t i = 0; i < indices->count; i++)
        if (index[i] < 0 || index[i] >= list->count)
            return fail(err, INVALID,
                        "Trying to gather element %d in a list with %lld elements.", index[i],
                        (long long)list->count);
    if (!one_shape(call, 2, list, indices, "gather", &shape, err) ||
        !kernel_list_rows(indices->count, &shape, &whole, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &whole, err);
    int64_t row = shape_count(&shape);
    for (int64_t i = 0; out && i < indices->count; i++)
        if (!kernel_list_copy_item(kernel_list_item(list, index[i]), out, i * row, row, err))
            return false;
    return out != NULL;
}

/* --- one tensor to items --- */

/* Whether rows of `tensor` fit what is said of the items. */
static bool check_rows(const struct tensor *tensor, const struct shape *shape,
                       struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (tensor->shape.rank < 1)
        return fail(err, INVALID, "Tensor must be at least a vector, but saw shape: %s",
                    shape_text(&tensor->shape, a, sizeof(a)));
    struct shape row = kernel_list_row(&tensor->shape);
    return shape_compatible(shape, &row) ||
           fail(err, INVALID, "Specified a list with shape %s from a tensor with shape %s",
                shape_text(shape, a, sizeof(a)), shape_text(&row, b, sizeof(b)));
}

static bool from_tensor_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, 0);
    struct shape shape;
    if (!kernel_list_shape_in(call, 1, &shape, err) || !check_rows(tensor, &shape, err))
        return false;
    struct shape row = kernel_list_row(&tensor->shape);
    int64_t step = kernel_span(&row, 0, row.rank);
    struct tensor_list *list =
        kernel_list_output(call, tensor->dtype, &shape, -1, tensor->shape.dims[0], err);
    bool ok = list != NULL;
    for (int64_t i = 0; ok && i < list->count; i++)
        ok = kernel_list_set_part(list, i, tensor, i * step, &row, err);
    return ok;
}

/* As many indices as rows, none negative; `*size` is how long a list they need. */
static bool check_indices(const struct tensor *indices, const struct tensor *tensor,
                          int64_t *size, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (indices->shape.rank != 1)
        return fail(err, INVALID, "Expected indices to be a vector, but received shape: %s",
                    shape_text(&indices->shape, text, sizeof(text)));
    if (indices->count != tensor->shape.dims[0])
        return fail(err, INVALID,
                    "Expected len(indices) == tensor.shape[0], but saw: %lld vs. %lld",
                    (long long)indices->count, (long long)tensor->shape.dims[0]);
    *size = 0;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index = tensor_i32(indices)[i];
        if (index < 0)
            return fail(err, INVALID, "Indices in TensorListScatter must all be non-negative.");
        if (index >= *size)
            *size = index + 1;
    }
    return true;
}

static bool set_rows(struct tensor_list *list, const struct tensor *tensor,
                     const struct tensor *indices, struct error *err)
{
    struct shape row = kernel_list_row(&tensor->shape);
    int64_t step = kernel_span(&row, 0, row.rank);
    bool ok = true;
    for (int64_t i = 0; ok && i < indices->count; i++)
        ok = kernel_list_set_part(list, tensor_i32(indices)[i], tensor, i * step, &row, err);
    return ok;
}

/* With a fourth input that is not -1, the list has so many items. */
static bool scatter_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, 0), *indices = kernel_in(call, 1);
    struct shape shape;
    int64_t size, wanted = -1;
    if (!kernel_list_shape_in(call, 2, &shape, err) || !check_rows(tensor, &shape, err) ||
        !check_indices(indices, tensor, &size, err) ||
        (call->in_count > 3 && !kernel_scalar(call, 3, "num_elements", &wanted, err)))
        return false;
    if (wanted < -1)
        return fail(err, INVALID, "TensorListScatter expects num_elements >= -1, found: %lld",
                    (long long)wanted);
    if (wanted != -1 && size > wanted)
        return fail(err, INVALID,
                    "TensorListScatter: Trying to scatter at index %lld in list with size %lld",
                    (long long)size - 1, (long long)wanted);
    struct tensor_list *list =
        kernel_list_output(call, tensor->dtype, &shape, -1, wanted == -1 ? size : wanted, err);
    return list && set_rows(list, tensor, indices, err);
}

static bool scatter_into_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, 1), *indices = kernel_in(call, 2);
    struct tensor_list *list = kernel_list_of(call, 0, tensor->dtype, err);
    int64_t size;
    if (!list || !check_rows(tensor, &list->shape, err) ||
        !check_indices(indices, tensor, &size, err))
        return false;
    list = kernel_list_change(call, err);
    return list && (size <= list->count || kernel_list_resize(list, size, err)) &&
           set_rows(list, tensor, indices, err);
}

#define KERNEL(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tensor_list_stack = KERNEL("TensorListStack", stack_run);
const struct kernel kernel_tensor_list_gather = KERNEL("TensorListGather", gather_run);
const struct kernel kernel_tensor_list_from_tensor =
    KERNEL("TensorListFromTensor", from_tensor_run);
const struct kernel kernel_tensor_list_scatter = KERNEL("TensorListScatter", scatter_run);
const struct kernel kernel_tensor_list_scatter_v2 = KERNEL("TensorListScatterV2", scatter_run);
const struct kernel kernel_tensor_list_scatter_into_existing_list =
    KERNEL("TensorListScatterIntoExistingList", scatter_into_run);
