/*
 * tensor_list_math.c - lists of tensors as gradients: zeros of the same form, and sums.
 *
 * Lists hold lists, but never deeper than LIMIT_LIST_DEPTH, which bounds the recursion here.
 */

#include "kernels/ref/update.h"
#include "kernels/state/tensor_list.h"

/* --- ZerosLike --- */

static bool zeros_like(const struct tensor *in, struct tensor *out, struct error *err);

static bool zeros_of_element(const struct tensor *in, int64_t index, struct tensor *out,
                             struct error *err)
{
    const struct tensor_list *list =
        (struct tensor_list *)kernel_variant(in, index, TENSOR_LIST, err);
    if (!list) {
        err->code = INTERNAL;
        return false;
    }
    struct tensor_list *zeros = kernel_list_like(list);
    kernel_list_set_element(out, index, zeros);
    bool ok = kernel_list_resize(zeros, list->count, err);
    for (int64_t i = 0; ok && i < list->count; i++) {
        struct tensor item = {0};
        if (list->items[i].dtype == DTYPE_NONE)
            continue;
        ok = tensor_init(&item, list->dtype, &list->items[i].shape, err) &&
             zeros_like(&list->items[i], &item, err) && kernel_list_set(zeros, i, &item, err);
        tensor_release(&item);
    }
    return ok;
}

static bool zeros_like(const struct tensor *in, struct tensor *out, struct error *err)
{
    bool ok = true;
    if (in->dtype != VARIANT)
        kernel_zero(out, 0, out->count);
    for (int64_t i = 0; in->dtype == VARIANT && ok && i < in->count; i++)
        ok = zeros_of_element(in, i, out, err);
    return ok;
}

static bool zeros_like_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    return out && zeros_like(in, out, err);
}

/* --- AddN --- */

static bool add_to(struct tensor *sum, const struct tensor *value, struct error *err);

static bool check_lists(const struct tensor_list *a, const struct tensor_list *b,
                        struct error *err)
{
    if (a->dtype != b->dtype)
        return fail(err, INVALID,
                    "Trying to add two lists of tensors of different dtypes. One is %s and the "
                    "other is %s",
                    dtype_name(a->dtype), dtype_name(b->dtype));
    return a->count == b->count ||
           fail(err, INVALID,
                "Trying to add two lists of tensors with different lengths. One is %lld and "
                "the other is %lld",
                (long long)a->count, (long long)b->count);
}

/* Item `i` of the sum, which may be shared, becomes that and `value`. */
static bool add_item(struct tensor_list *sum, int64_t i, const struct tensor *value,
                     struct error *err)
{
    struct tensor total;
    if (value->dtype == DTYPE_NONE)
        return true;
    if (sum->items[i].dtype == DTYPE_NONE)
        return kernel_list_set(sum, i, value, err);
    if (!tensor_clone(&total, &sum->items[i], err))
        return false;
    bool ok = add_to(&total, value, err) && kernel_list_set(sum, i, &total, err);
    tensor_release(&total);
    return ok;
}

/* Element `index` becomes a list of its own with the sums. */
static bool add_element(struct tensor *sum, int64_t index, const struct tensor *value,
                        struct error *err)
{
    const struct tensor_list *a =
        (struct tensor_list *)kernel_variant(sum, index, TENSOR_LIST, err);
    const struct tensor_list *b =
        a ? (struct tensor_list *)kernel_variant(value, index, TENSOR_LIST, err) : NULL;
    if (!b) {
        err->code = INTERNAL;
        return false;
    }
    struct shape shape;
    if (!check_lists(a, b, err) || !shape_merge(&a->shape, &b->shape, &shape, err))
        return false;
    struct tensor_list *total = kernel_list_like(a);
    total->shape = shape;
    bool ok = kernel_list_resize(total, a->count, err);
    for (int64_t i = 0; ok && i < a->count; i++)
        ok =
            (a->items[i].dtype == DTYPE_NONE || kernel_list_set(total, i, &a->items[i], err)) &&
            add_item(total, i, &b->items[i], err);
    kernel_list_set_element(sum, index, total);
    return ok;
}

static bool add_to(struct tensor *sum, const struct tensor *value, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&sum->shape, &value->shape))
        return fail(err, INVALID,
                    "Trying to add two tensors with incompatible element shapes. One is %s and "
                    "the other is %s",
                    shape_text(&sum->shape, a, sizeof(a)),
                    shape_text(&value->shape, b, sizeof(b)));
    bool ok = true;
    if (sum->dtype != VARIANT && !(BIT(sum->dtype) & DTYPES_NUMBER))
        return fail(err, INVALID, "tensors of type %s cannot be added", dtype_name(sum->dtype));
    if (sum->dtype != VARIANT)
        kernel_add_into(sum, value, false);
    for (int64_t i = 0; sum->dtype == VARIANT && ok && i < sum->count; i++)
        ok = add_element(sum, i, value, err);
    return ok;
}

static bool add_n_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *first = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &first->shape, err);
    if (!out)
        return false;
    kernel_copy(out, 0, first, 0, first->count);
    bool ok = true;
    for (int i = 1; ok && i < call->in_count; i++)
        ok = add_to(out, kernel_in(call, i), err);
    return ok;
}

const struct kernel kernel_zeros_like_variant = {
    .op = "ZerosLike", .device = CPU, .dtypes = BIT(VARIANT), .run = zeros_like_run};
const struct kernel kernel_add_n_variant = {
    .op = "AddN", .device = CPU, .dtypes = BIT(VARIANT), .run = add_n_run};
