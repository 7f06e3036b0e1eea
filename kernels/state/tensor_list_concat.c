/* tensor_list_concat.c - lists of tensors: items of several rows each; several lists at once.
 */

#include "kernels/state/tensor_list.h"

static enum dtype element_type(const struct kernel_call *call)
{
    return (enum dtype)node_attr_type(call->node, "element_dtype");
}

/* --- Concat --- */

/* What is known of the items of a list: their rows (-1: not the same), and one row. */
struct rows {
    int64_t first;
    struct shape row;
};

/* Of the node: an attribute, or (V2) the input 1 together with the list. */
static bool rows_given(const struct kernel_call *call, const struct tensor_list *list,
                       struct rows *rows, struct error *err)
{
    struct shape shape = SHAPE_UNKNOWN;
    const struct shape *attr = node_attr_shape(call->node, "element_shape");
    if (call->in_count == 1 && attr)
        shape = *attr;
    if (call->in_count > 1 && !kernel_list_items_shape(call, 1, list, &shape, err))
        return false;
    if (shape.rank == 0)
        return fail(err, INVALID,
                    "Concat requires elements to be at least vectors, found scalars instead.");
    rows->first = shape.rank > 0 && call->in_count > 1 ? shape.dims[0] : -1;
    rows->row = kernel_list_row(&shape);
    return true;
}

/* Takes the items into account that were written. */
static bool rows_of_items(const struct tensor_list *list, struct rows *rows, struct error *err)
{
    int64_t given = rows->first, seen = -1;
    bool same = true;
    for (int64_t i = 0; i < list->count; i++) {
        const struct tensor *item = kernel_list_item(list, i);
        struct shape merged;
        if (item->dtype == DTYPE_NONE)
            continue;
        if (item->shape.rank < 1)
            return fail(err, INVALID,
                        "Concat saw a scalar shape at index %lld but requires at least "
                        "vectors.",
                        (long long)i);
        struct shape row = kernel_list_row(&item->shape);
        if (!shape_merge(&rows->row, &row, &merged, err))
            return false;
        rows->row = merged;
        if (given != -1 && given != item->shape.dims[0])
            return fail(err, INVALID,
                        "First entry of element_shape input does not match the first dim of "
                        "list element at index: %lld Expected: %lld Actual: %lld",
                        (long long)i, (long long)given, (long long)item->shape.dims[0]);
        same = same && (seen == -1 || seen == item->shape.dims[0]);
        seen = item->shape.dims[0];
    }
    if (given == -1 && same)
        rows->first = seen;
    return true;
}

/* How many rows item `i` has; one that was not written, as many as is said or all others. */
static bool item_rows(const struct kernel_call *call, const struct tensor_list *list, int64_t i,
                      int64_t first, int64_t *count, struct error *err)
{
    const struct tensor *leading = call->in_count > 2 ? kernel_in(call, 2) : NULL;
    if (kernel_list_item(list, i)->dtype != DTYPE_NONE)
        *count = kernel_list_item(list, i)->shape.dims[0];
    else if (leading && i < leading->count)
        *count = tensor_integer(leading, i);
    else
        *count = first;
    return *count >= 0 ||
           fail(err, INVALID,
                "Concating lists with uninitialized tensors is not possible where their "
                "leading dimension is not known (index %lld).",
                (long long)i);
}

static bool concat_items(struct kernel_call *call, const struct tensor_list *list,
                         const struct rows *rows, struct error *err)
{
    struct tensor *lengths = kernel_output(call, 1, &SHAPE(list->count), err);
    int64_t total = 0;
    struct shape whole;
    if (!lengths)
        return false;
    int64_t *length = lengths->data;
    for (int64_t i = 0; i < list->count; i++) {
        if (!item_rows(call, list, i, rows->first, &length[i], err))
            return false;
        if (__builtin_add_overflow(total, length[i], &total))
            return fail(err, INVALID, "the leading dimensions add up to too much");
    }
    struct tensor *out = kernel_list_rows(total, &rows->row, &whole, err)
                             ? kernel_output(call, 0, &whole, err)
                             : NULL;
    int64_t row = shape_count(&rows->row), at = 0;
    for (int64_t i = 0; out && i < list->count; i++) {
        if (!kernel_list_copy_item(kernel_list_item(list, i), out, at, length[i] * row, err))
            return false;
        at += length[i] * row;
    }
    return out != NULL;
}

static bool concat_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_list *list = kernel_list_of(call, 0, element_type(call), err);
    struct rows rows;
    char text[SHAPE_TEXT_BYTES];
    if (!list || !rows_given(call, list, &rows, err))
        return false;
    if (list->count == 0 && !shape_is_full(&rows.row))
        return fail(err, INVALID,
                    "All except the first dimension must be fully defined when concating an "
                    "empty tensor list. element_shape: %s",
                    shape_text(&rows.row, text, sizeof(text)));
    if (!shape_is_full(&list->shape) && !rows_of_items(list, &rows, err))
        return false;
    return shape_is_full(&rows.row)
               ? concat_items(call, list, &rows, err)
               : fail(err, INVALID,
                      "Trying to concat list with only uninitialized tensors but "
                      "element_shape_except_first_dim is not fully defined: %s",
                      shape_text(&rows.row, text, sizeof(text)));
}

/* --- Split --- */

static bool check_split(const struct tensor *tensor, const struct shape *shape,
                        const struct tensor *lengths, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (lengths->shape.rank != 1)
        return fail(err, INVALID, "Expected lengths to be a vector, received shape: %s",
                    shape_text(&lengths->shape, a, sizeof(a)));
    if (tensor->shape.rank < 1)
        return fail(err, INVALID, "Tensor must be at least a vector, but saw shape: %s",
                    shape_text(&tensor->shape, a, sizeof(a)));
    if (shape->rank == 0)
        return fail(err, INVALID,
                    "TensorListSplit requires element_shape to be at least of rank 1, but "
                    "saw: []");
    struct shape row = kernel_list_row(&tensor->shape), wanted = kernel_list_row(shape);
    if (!shape_compatible(&row, &wanted))
        return fail(err, INVALID, "tensor shape %s is not compatible with element_shape %s",
                    shape_text(&tensor->shape, a, sizeof(a)), shape_text(shape, b, sizeof(b)));
    int64_t left = tensor->shape.dims[0];
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t length = tensor_i64(lengths)[i];
        if (length < 0)
            return fail(err, INVALID, "Invalid value in lengths: %lld", (long long)length);
        if (length > left)
            return fail(err, INVALID,
                        "Attempting to slice %lld rows, of a tensor with %lld rows %lld are "
                        "left",
                        (long long)length, (long long)tensor->shape.dims[0], (long long)left);
        left -= length;
    }
    return left == 0 || fail(err, INVALID, "Unused values in tensor: %lld rows of %lld",
                             (long long)left, (long long)tensor->shape.dims[0]);
}

static bool split_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, 0), *lengths = kernel_in(call, 2);
    struct shape shape;
    if (!kernel_list_shape_in(call, 1, &shape, err) ||
        !check_split(tensor, &shape, lengths, err))
        return false;
    struct tensor_list *list =
        kernel_list_output(call, tensor->dtype, &shape, -1, lengths->count, err);
    struct shape part = tensor->shape;
    int64_t row = kernel_span(&part, 1, part.rank), start = 0;
    bool ok = list != NULL;
    for (int64_t i = 0; ok && i < list->count; i++) {
        part.dims[0] = tensor_i64(lengths)[i];
        ok = kernel_list_set_part(list, i, tensor, start * row, &part, err);
        start += part.dims[0];
    }
    return ok;
}

/* --- tensors of lists --- */

static struct tensor_list *element(const struct tensor *tensor, int64_t i, enum dtype dtype,
                                   struct error *err)
{
    struct tensor_list *list =
        (struct tensor_list *)kernel_variant(tensor, i, TENSOR_LIST, err);
    if (list && list->dtype != dtype)
        return fail_null(err, INVALID,
                         "Invalid data types; op elements %s but list elements %s",
                         dtype_name(dtype), dtype_name(list->dtype));
    return list;
}

/* Appends the items of `from`. */
static bool append(struct tensor_list *list, const struct tensor_list *from, struct error *err)
{
    int64_t before = list->count;
    bool ok = kernel_list_resize(list, before + from->count, err);
    for (int64_t i = 0; ok && i < from->count; i++)
        if (kernel_list_item(from, i)->dtype != DTYPE_NONE)
            ok = kernel_list_set(list, before + i, kernel_list_item(from, i), err);
    return ok;
}

static bool concat_lists_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *a = kernel_in(call, 0), *b = kernel_in(call, 1);
    enum dtype dtype = element_type(call);
    char first[SHAPE_TEXT_BYTES], second[SHAPE_TEXT_BYTES];
    if (!shape_equal(&a->shape, &b->shape))
        return fail(err, INVALID, "Tensor a and b must have the same shape: %s vs %s",
                    shape_text(&a->shape, first, sizeof(first)),
                    shape_text(&b->shape, second, sizeof(second)));
    struct tensor *out = kernel_output(call, 0, &a->shape, err);
    for (int64_t i = 0; out && i < a->count; i++) {
        const struct tensor_list *from = element(a, i, dtype, err);
        const struct tensor_list *more = from ? element(b, i, dtype, err) : NULL;
        if (!more)
            return false;
        if (!shape_equal(&from->shape, &more->shape))
            return fail(err, INVALID, "element_shape of the lists is not the same: %s vs %s",
                        shape_text(&from->shape, first, sizeof(first)),
                        shape_text(&more->shape, second, sizeof(second)));
        struct tensor_list *both = kernel_list_like(from);
        kernel_list_set_element(out, i, both);
        if (!append(both, from, err) || !append(both, more, err))
            return false;
    }
    return out != NULL;
}

/* Row i of the tensor is pushed to list i. */
static bool push_back_batch_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *handles = kernel_in(call, 0), *tensor = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool fits = tensor->shape.rank >= handles->shape.rank && tensor->shape.rank > 0;
    for (int d = 0; fits && d < handles->shape.rank; d++)
        fits = tensor->shape.dims[d] == handles->shape.dims[d];
    if (!fits)
        return fail(err, INVALID,
                    "Expected tensor.shape[:%d] == input_handles.shape == %s, but saw tensor "
                    "shape %s",
                    handles->shape.rank, shape_text(&handles->shape, a, sizeof(a)),
                    shape_text(&tensor->shape, b, sizeof(b)));
    struct shape row = {.rank = tensor->shape.rank - handles->shape.rank};
    for (int d = 0; d < row.rank; d++)
        row.dims[d] = tensor->shape.dims[handles->shape.rank + d];
    int64_t step = kernel_span(&row, 0, row.rank);
    struct tensor *out = kernel_output(call, 0, &handles->shape, err);
    for (int64_t i = 0; out && i < handles->count; i++) {
        const struct tensor_list *from = element(handles, i, tensor->dtype, err);
        if (!from)
            return false;
        if (!shape_compatible(&from->shape, &row))
            return fail(
                err, INVALID,
                "Tried to append a tensor with incompatible shape to a list. Op element "
                "shape: %s list shape: %s",
                shape_text(&row, a, sizeof(a)), shape_text(&from->shape, b, sizeof(b)));
        if (from->max != -1 && from->count >= from->max)
            return fail(err, INVALID,
                        "Tried to push item into a full list list size: %lld max_num_elements: "
                        "%lld",
                        (long long)from->count, (long long)from->max);
        struct tensor_list *list = kernel_list_like(from);
        kernel_list_set_element(out, i, list);
        if (!append(list, from, err) || !kernel_list_resize(list, from->count + 1, err) ||
            !kernel_list_set_part(list, from->count, tensor, i * step, &row, err))
            return false;
    }
    return out != NULL;
}

#define KERNEL(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tensor_list_concat = KERNEL("TensorListConcat", concat_run);
const struct kernel kernel_tensor_list_concat_v2 = KERNEL("TensorListConcatV2", concat_run);
const struct kernel kernel_tensor_list_split = KERNEL("TensorListSplit", split_run);
const struct kernel kernel_tensor_list_concat_lists =
    KERNEL("TensorListConcatLists", concat_lists_run);
const struct kernel kernel_tensor_list_push_back_batch =
    KERNEL("TensorListPushBackBatch", push_back_batch_run);
