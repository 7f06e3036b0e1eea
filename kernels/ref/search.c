/* search.c - places in what is sorted: buckets, bounds, histograms, the n-th; coordinates. */

#include "kernels/ref/numbers.h"

#include <math.h>

/* Below, equal or above 0 as element a comes before, is, comes behind b; NaN is equal to all.
 */
static int compare(const struct tensor *x, int64_t a, const struct tensor *y, int64_t b)
{
    kernel_load_bits *load = kernel_load_bits_for(x->dtype);
    if (load && (DTYPES_UNSIGNED & BIT(x->dtype))) {
        uint64_t p = load(x->data, a), q = load(y->data, b);
        return p < q ? -1 : p > q;
    }
    if (load) {
        int64_t p = (int64_t)load(x->data, a), q = (int64_t)load(y->data, b);
        return p < q ? -1 : p > q;
    }
    double p = kernel_load_for(x->dtype)(x->data, a), q = kernel_load_for(y->dtype)(y->data, b);
    return p < q ? -1 : p > q;
}

static void set_integer(struct tensor *tensor, int64_t index, int64_t value)
{
    kernel_store_bits_for(tensor->dtype)(tensor->data, index, (uint64_t)value);
}

/* How many of the boundaries are not above the value. */
static bool bucketize_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const struct attr *bounds = node_attr(call->node, "boundaries");
    int count = bounds ? bounds->count : 0;
    for (int i = 1; i < count; i++)
        if (bounds->floats[i] < bounds->floats[i - 1])
            return fail(err, INVALID, "Expected sorted boundaries");
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < in->count; i++) {
        double value = kernel_load_for(in->dtype)(in->data, i);
        int low = 0, high = count;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (value < (double)bounds->floats[middle])
                high = middle;
            else
                low = middle + 1;
        }
        ((int32_t *)out->data)[i] = low;
    }
    return true;
}

/* The first place of each row where a value could be put in, or the last. */
static bool bound(struct kernel_call *call, bool upper, struct error *err)
{
    const struct tensor *sorted = kernel_in(call, 0), *values = kernel_in(call, 1);
    for (int i = 0; i < 2; i++)
        if (kernel_in(call, i)->shape.rank != 2)
            return fail(err, INVALID, "Shape must be rank 2 but is rank %d for `%s` argument",
                        kernel_in(call, i)->shape.rank, i ? "values" : "sorted_inputs");
    if (sorted->shape.dims[0] != values->shape.dims[0])
        return fail(err, INVALID, "Leading dim_size of both tensors must match.");
    if (values->count > INT32_MAX)
        return fail(err, INVALID, "values tensor size must not be over 2^31");
    struct tensor *out = kernel_output(call, 0, &values->shape, err);
    if (!out)
        return false;
    int64_t width = sorted->shape.dims[1], columns = values->shape.dims[1];
    for (int64_t i = 0; i < values->count; i++) {
        int64_t start = i / columns * width, low = 0, high = width;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            int order = compare(sorted, start + middle, values, i);
            if (order < 0 || (upper && order == 0))
                low = middle + 1;
            else
                high = middle;
        }
        set_integer(out, i, low);
    }
    return true;
}

static bool lower_bound_run(struct kernel_call *call, struct error *err)
{
    return bound(call, false, err);
}

static bool upper_bound_run(struct kernel_call *call, struct error *err)
{
    return bound(call, true, err);
}

/* Bins of equal width; what is outside the range is in the outermost ones. */
static bool histogram_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *range = kernel_in(call, 1);
    const struct tensor *number = kernel_in(call, 2);
    if (range->shape.rank != 1)
        return fail(err, INVALID, "value_range should be a vector.");
    if (range->count != 2)
        return fail(err, INVALID, "value_range should be a vector of 2 elements.");
    if (number->shape.rank != 0)
        return fail(err, INVALID, "nbins should be a scalar.");
    int64_t bins = tensor_integer(number, 0);
    double low = tensor_number(range, 0), high = tensor_number(range, 1);
    if (!(low < high))
        return fail(err, INVALID,
                    "value_range should satisfy value_range[0] < value_range[1], but got "
                    "'[%g, %g]'",
                    low, high);
    if (bins <= 0)
        return fail(err, INVALID, "nbins should be a positive number, but got '%lld'",
                    (long long)bins);
    struct tensor *out = kernel_output(call, 0, &SHAPE(bins), err);
    if (!out)
        return false;
    kernel_zero(out, 0, bins);
    double step = (high - low) / (double)bins;
    for (int64_t i = 0; i < in->count; i++) {
        double place = (kernel_load_for(in->dtype)(in->data, i) - low) / step;
        if (in->dtype == F32)
            place = (double)(float)place;
        int64_t bin = !(place > 0) ? 0 : place >= (double)bins ? bins - 1 : (int64_t)place;
        set_integer(out, bin, tensor_integer(out, bin) + 1);
    }
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The n-th smallest of each row, or greatest. */
static bool nth_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank;
    const struct tensor *which = kernel_in(call, 1);
    if (which->shape.rank != 0)
        return fail(err, INVALID, "N must be scalar but has rank %d", which->shape.rank);
    int64_t n = tensor_integer(which, 0);
    if (n < 0)
        return fail(err, INVALID, "n must be non-negative but is %lld", (long long)n);
    if (rank < 1)
        return fail(err, INVALID, "Input must be at least rank 1 but is rank %d", rank);
    int64_t width = in->shape.dims[rank - 1];
    if (n >= width)
        return fail(err, INVALID, "Input must have last dimension > n = %lld", (long long)n);
    if (node_attr_bool(call->node, "reverse", false))
        n = width - n - 1;
    struct shape shape = in->shape;
    shape.rank--;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *row = out ? kernel_scratch(call, (size_t)width * 2 * sizeof(*row), err) : NULL;
    if (!row)
        return false;
    for (int64_t r = 0; r < out->count; r++) {
        for (int64_t i = 0; i < width; i++)
            row[i] = kernel_load_for(in->dtype)(in->data, r * width + i);
        qsort(row, (size_t)width, sizeof(*row), compare_numbers);
        int64_t found = 0; /* the element itself, which a double may not hold */
        for (int64_t i = 0, before = 0; i < width; i++) {
            before = 0;
            int64_t equal = 0;
            if (kernel_load_for(in->dtype)(in->data, r * width + i) != row[n])
                continue;
            for (int64_t k = 0; k < width; k++) {
                int order = compare(in, r * width + k, in, r * width + i);
                before += order < 0;
                equal += order == 0;
            }
            found = i;
            if (before <= n && n < before + equal)
                break;
        }
        kernel_copy(out, r, in, r * width + found, 1);
    }
    return true;
}

/* Flat indices as coordinates, one row for each dimension. */
static bool unravel_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *dims = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank > 1)
        return fail(err, INVALID, "The indices can only be scalar or vector, got \"%s\"",
                    shape_text(&in->shape, text, sizeof(text)));
    if (in->count == 0)
        return fail(err, INVALID,
                    "received empty tensor indices: Tensor<type: %s shape: %s values: >",
                    dtype_name(in->dtype), shape_text(&in->shape, text, sizeof(text)));
    if (dims->shape.rank != 1)
        return fail(err, INVALID, "The indices can only be 1-D, got \"%s\"",
                    shape_text(&dims->shape, text, sizeof(text)));
    int64_t whole = 1;
    for (int64_t d = 0; d < dims->count; d++) {
        int64_t size = tensor_integer(dims, d);
        if (size == 0)
            return fail(
                err, INVALID,
                "Input dims cannot contain a dim of zero, but dims contains zero at index %lld",
                (long long)d);
        if (size < 0)
            return fail(err, INVALID,
                        "Input dims cannot be negative. Got dim = %lld at index %lld",
                        (long long)size, (long long)d);
        if (__builtin_mul_overflow(whole, size, &whole) ||
            (in->dtype == I32 && whole > INT32_MAX)) {
            char all[512];
            kernel_row_text(dims, 0, (int)dims->count, " ", all, sizeof(all)); /* in brackets */
            return fail(err, INVALID, "Input dims product is causing integer overflow: (%.*s)",
                        (int)strlen(all) - 2, all + 1);
        }
    }
    for (int64_t i = 0; i < in->count; i++)
        if (tensor_integer(in, i) >= whole)
            return fail(err, INVALID, "index is out of bound as with dims");
    struct shape shape =
        in->shape.rank == 0 ? SHAPE(dims->count) : SHAPE(dims->count, in->count);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < in->count; i++) {
        int64_t left = tensor_integer(in, i);
        for (int64_t d = dims->count - 1; d >= 0; d--) {
            int64_t size = tensor_integer(dims, d);
            set_integer(out, d * in->count + i, left % size);
            left /= size;
        }
    }
    return true;
}

/* Products of vectors of three, along the last dimension. */
static bool cross_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *a = kernel_in(call, 0), *b = kernel_in(call, 1);
    char first[SHAPE_TEXT_BYTES], second[SHAPE_TEXT_BYTES];
    if (!shape_equal(&a->shape, &b->shape))
        return fail(err, INVALID, "Both inputs must be of same shape: %s vs. %s",
                    shape_text(&a->shape, first, sizeof(first)),
                    shape_text(&b->shape, second, sizeof(second)));
    if (a->shape.rank < 1)
        return fail(err, INVALID, "Input must be at least 1D[]");
    if (a->shape.dims[a->shape.rank - 1] != 3)
        return fail(err, PRECONDITION,
                    "Cross-products are only defined for 3-element vectors.");
    struct tensor *out = kernel_output(call, 0, &a->shape, err);
    if (!out)
        return false;
    kernel_load_bits *bits = kernel_load_bits_for(a->dtype);
    for (int64_t i = 0; i < a->count; i++) {
        int64_t start = i / 3 * 3, p = start + (i + 1) % 3, q = start + (i + 2) % 3;
        if (bits) {
            uint64_t value =
                bits(a->data, p) * bits(b->data, q) - bits(a->data, q) * bits(b->data, p);
            kernel_store_bits_for(out->dtype)(out->data, i, value);
            continue;
        }
        kernel_load *load = kernel_load_for(a->dtype);
        double one = load(a->data, p) * load(b->data, q);
        double other = load(a->data, q) * load(b->data, p);
        double difference = a->dtype == F32 ? (double)((float)one - (float)other) : one - other;
        kernel_store_for(out->dtype)(out->data, i, difference);
    }
    return true;
}

#define SEARCH(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define FEW (BIT(I32) | BIT(I64) | BIT(F32) | BIT(F64))

const struct kernel kernel_bucketize_ref = SEARCH("Bucketize", FEW, bucketize_run);
const struct kernel kernel_lower_bound_ref = SEARCH("LowerBound", DTYPES_REAL, lower_bound_run);
const struct kernel kernel_upper_bound_ref = SEARCH("UpperBound", DTYPES_REAL, upper_bound_run);
const struct kernel kernel_histogram_fixed_width_ref =
    SEARCH("HistogramFixedWidth", FEW, histogram_run);
const struct kernel kernel_nth_element_ref = SEARCH("NthElement", DTYPES_REAL, nth_run);
const struct kernel kernel_unravel_index_ref = SEARCH("UnravelIndex", 0, unravel_run);
const struct kernel kernel_cross_ref = SEARCH("Cross", DTYPES_REAL, cross_run);
