/*
 * tensor_list_math.c - lists of tensors, and optionals, as gradients: zeros of the same form,
 * and sums.
 *
 * They hold each other, but never deeper than LIMIT_LIST_DEPTH and DATASET_DEPTH_MAX, which
 * bounds the recursion here.
 */

#include "kernels/data/optional.h"
#include "kernels/ref/update.h"
#include "kernels/state/tensor_list.h"

/* --- ZerosLike --- */

static bool zeros_like(const struct tensor *in, struct tensor *out, struct error *err);

/* The optional in element `index`, NULL if that holds something else. */
static struct optional *optional_at(const struct tensor *tensor, int64_t index)
{
    struct error ignored;
    return (struct optional *)kernel_variant(tensor, index, OPTIONAL_KIND, &ignored);
}

static void set_optional(struct tensor *tensor, int64_t index, struct optional *optional)
{
    struct resource_handle *handle = (struct resource_handle *)tensor->data + index;
    resource_unref(handle->resource);
    handle->resource = &optional->resource;
}

static bool zeros_of_optional(const struct optional *in, int64_t index, struct tensor *out,
                              struct error *err)
{
    struct optional *zeros = kernel_optional_new(in->width);
    zeros->depth = in->depth;
    set_optional(out, index, zeros);
    bool ok = true;
    for (int i = 0; ok && i < in->width; i++)
        ok = tensor_init(&zeros->row[i], in->row[i].dtype, &in->row[i].shape, err) &&
             zeros_like(&in->row[i], &zeros->row[i], err);
    return ok;
}

static bool zeros_of_element(const struct tensor *in, int64_t index, struct tensor *out,
                             struct error *err)
{
    if (optional_at(in, index))
        return zeros_of_optional(optional_at(in, index), index, out, err);
    const struct tensor_list *list =
        (struct tensor_list *)kernel_variant(in, index, TENSOR_LIST, err);
    if (!list) {
        err->code = INTERNAL;
        return false;
    }
    struct tensor_list *zeros = kernel_list_like(list);
    kernel_list_set_element(out, index, zeros);
    bool ok = kernel_list_resize(zeros, list->count, err);
    for (int64_t i = list->first; ok && i < list->first + list->used; i++) {
        struct tensor item = {0};
        if (kernel_list_item(list, i)->dtype == DTYPE_NONE)
            continue;
        ok = tensor_init(&item, list->dtype, &kernel_list_item(list, i)->shape, err) &&
             zeros_like(kernel_list_item(list, i), &item, err) &&
             kernel_list_set(zeros, i, &item, err);
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

/* Item `i` becomes that and `value`: in its place where nobody else sees it. */
static bool add_item(struct tensor_list *sum, int64_t i, const struct tensor *value,
                     struct error *err)
{
    const struct tensor *there = kernel_list_item(sum, i);
    struct tensor total;
    if (there->dtype == DTYPE_NONE)
        return kernel_list_set(sum, i, value, err);
    if (tensor_is_exclusive(there))
        return add_to((struct tensor *)there, value, err);
    if (!tensor_clone(&total, there, err))
        return false;
    bool ok = add_to(&total, value, err) && kernel_list_set(sum, i, &total, err);
    tensor_release(&total);
    return ok;
}

static struct tensor_list *list_at(const struct tensor *tensor, int64_t index,
                                   struct error *err)
{
    struct tensor_list *list =
        (struct tensor_list *)kernel_variant(tensor, index, TENSOR_LIST, err);
    if (!list)
        err->code = INTERNAL;
    return list;
}

/* Adds the items that `b` has to those of `sum`, which nobody else sees. */
static bool add_list(struct tensor_list *sum, const struct tensor_list *b, struct error *err)
{
    struct shape shape;
    if (!check_lists(sum, b, err) || !shape_merge(&sum->shape, &b->shape, &shape, err))
        return false;
    sum->shape = shape;
    bool ok = true;
    for (int64_t i = b->first; ok && i < b->first + b->used; i++)
        if (kernel_list_item(b, i)->dtype != DTYPE_NONE)
            ok = add_item(sum, i, kernel_list_item(b, i), err);
    return ok;
}

/* Element `index` becomes a list that nobody else sees. */
static struct tensor_list *own_element(struct tensor *tensor, int64_t index, struct error *err)
{
    struct tensor_list *list = list_at(tensor, index, err);
    if (!list || __atomic_load_n(&list->resource.references, __ATOMIC_ACQUIRE) == 1)
        return list;
    struct tensor_list *copy = kernel_list_copy(list, err);
    if (copy)
        kernel_list_set_element(tensor, index, copy);
    return copy;
}

/* Element `index` becomes the sum of two optionals, component by component. */
static bool add_optional(struct tensor *sum, int64_t index, const struct tensor *value,
                         struct error *err)
{
    const struct optional *a = optional_at(sum, index), *b = optional_at(value, index);
    if (!b)
        return fail(err, INVALID, "Trying to add an optional and what is none");
    if (a->width != b->width)
        return fail(err, INVALID,
                    "Cannot add optionals because one has a value and the other doesn't.");
    struct optional *total = kernel_optional_new(a->width);
    total->depth = a->depth > b->depth ? a->depth : b->depth;
    bool ok = true;
    for (int i = 0; ok && i < a->width; i++)
        ok = tensor_clone(&total->row[i], &a->row[i], err) &&
             add_to(&total->row[i], &b->row[i], err);
    set_optional(sum, index, total);
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
    for (int64_t i = 0; sum->dtype == VARIANT && ok && i < sum->count; i++) {
        if (optional_at(sum, i)) {
            ok = add_optional(sum, i, value, err);
            continue;
        }
        struct tensor_list *total = own_element(sum, i, err);
        const struct tensor_list *more = total ? list_at(value, i, err) : NULL;
        ok = more && add_list(total, more, err);
    }
    return ok;
}

/* Of the inputs that nobody else sees the one with most items: it can become the sum. */
static int choose(const struct kernel_call *call)
{
    int best = 0;
    int64_t most = -1;
    for (int i = 0; i < call->in_count; i++) {
        struct error ignored;
        const struct tensor *in = kernel_in(call, i);
        const struct tensor_list *list =
            tensor_is_exclusive(in)
                ? (struct tensor_list *)kernel_variant(in, 0, TENSOR_LIST, &ignored)
                : NULL;
        if (list && list->used > most) {
            best = i;
            most = list->used;
        }
    }
    return best;
}

static bool add_n_run(struct kernel_call *call, struct error *err)
{
    int first = choose(call);
    const struct tensor *in = kernel_in(call, first);
    const void *before = in->data;
    struct tensor *out = kernel_output_reuse(call, 0, first, &in->shape, err);
    if (!out)
        return false;
    if (out->data != before)
        kernel_copy(out, 0, in, 0, in->count);
    bool ok = true;
    for (int i = 0; ok && i < call->in_count; i++)
        if (i != first)
            ok = add_to(out, kernel_in(call, i), err);
    return ok;
}

const struct kernel kernel_zeros_like_variant = {
    .op = "ZerosLike", .device = CPU, .dtypes = BIT(VARIANT), .run = zeros_like_run};
const struct kernel kernel_add_n_variant = {
    .op = "AddN", .device = CPU, .dtypes = BIT(VARIANT), .run = add_n_run};
