/* array_more.c - arrays moved, changed and summed up in ways that few programs ask for. */

#include "kernels/ref/move.h"

#include <math.h>

static bool empty_run(struct kernel_call *call, struct error *err)
{
    struct shape shape;
    if (!kernel_shape_in(call, 0, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (out)
        kernel_zero(out, 0, out->count); /* what TensorFlow leaves there is anything */
    return out != NULL;
}

/* TensorFlow has kernels for every type, which then refuse most of them. */
static bool check_type(const struct tensor *tensor, uint64_t allowed, struct error *err)
{
    return (allowed & BIT(tensor->dtype)) ||
           fail(err, INVALID, "Unsupported data type: %s", dtype_name(tensor->dtype));
}

static bool deep_copy_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    if (!check_type(in, DTYPES_NUMBER | BIT(BOOL) | BIT(STRING), err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (out)
        kernel_copy(out, 0, in, 0, in->count);
    return out != NULL;
}

enum change { UPDATE, ADD, SUBTRACT };

/* A copy of x with rows i changed by those of v. */
static bool rows_run(struct kernel_call *call, enum change change, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *rows = kernel_in(call, 1),
                        *v = kernel_in(call, 2);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!check_type(x, DTYPES_NUMBER | (change == UPDATE ? BIT(BOOL) | BIT(STRING) : 0), err))
        return false;
    if (rows->shape.rank != 1)
        return fail(err, INVALID, "i must be a vector. %s",
                    shape_text(&rows->shape, a, sizeof(a)));
    shape_text(&x->shape, a, sizeof(a));
    shape_text(&v->shape, b, sizeof(b));
    if (x->shape.rank < 1 || x->shape.rank != v->shape.rank)
        return fail(err, INVALID, "x and v shape doesn't match (ranks differ): %s vs. %s", a,
                    b);
    for (int d = 1; d < x->shape.rank; d++)
        if (x->shape.dims[d] != v->shape.dims[d])
            return fail(err, INVALID, "x and v shape doesn't match at index %d : %s vs. %s", d,
                        a, b);
    if (v->shape.dims[0] != rows->count)
        return fail(err, INVALID, "i and x shape doesn't match at index 0: %s vs. %s",
                    shape_text(&rows->shape, a, sizeof(a)), b);
    struct tensor *out = kernel_output(call, 0, &x->shape, err);
    if (!out)
        return false;
    kernel_copy(out, 0, x, 0, x->count);
    int64_t width = kernel_span(&x->shape, 1, x->shape.rank), count = x->shape.dims[0];
    kernel_load_bits *load = kernel_load_bits_for(x->dtype);
    for (int64_t i = 0; i < v->count && count > 0; i++) {
        int64_t row = tensor_integer(rows, i / width);
        int64_t at = (row % count + count) % count * width + i % width;
        if (change == UPDATE) {
            kernel_copy(out, at, v, i, 1);
        } else if (load) {
            uint64_t by = load(v->data, i), was = load(out->data, at);
            kernel_store_bits_for(out->dtype)(out->data, at,
                                              change == ADD ? was + by : was - by);
        } else {
            double complex by = kernel_complex_at(v, i), was = kernel_complex_at(out, at);
            kernel_set_complex(out, at, change == ADD ? was + by : was - by);
        }
    }
    return true;
}

static bool update_run(struct kernel_call *call, struct error *err)
{
    return rows_run(call, UPDATE, err);
}

static bool add_run(struct kernel_call *call, struct error *err)
{
    return rows_run(call, ADD, err);
}

static bool subtract_run(struct kernel_call *call, struct error *err)
{
    return rows_run(call, SUBTRACT, err);
}

static bool conjugate_transpose_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *order = kernel_in(call, 1);
    int rank = in->shape.rank;
    char text[SHAPE_TEXT_BYTES];
    if (order->shape.rank != 1)
        return fail(err, INVALID, "perm must be rank 1, got shape %s",
                    shape_text(&order->shape, text, sizeof(text)));
    if (order->count != rank)
        return fail(err, INVALID,
                    "transpose expects a vector of size %d. But input(1) is a vector of size "
                    "%lld",
                    rank, (long long)order->count);
    struct places from = kernel_places(&in->shape), turned = {.start = 0};
    struct shape shape = {.rank = rank};
    uint64_t seen = 0;
    for (int d = 0; d < rank; d++) {
        int64_t axis = tensor_integer(order, d);
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
            return fail(err, INVALID, "%lld is out of range [0 .. %d)", (long long)axis, rank);
        if (seen & BIT(axis))
            return fail(err, INVALID, "%lld is missing from or out of place in the permutation",
                        (long long)axis);
        seen |= BIT(axis);
        shape.dims[d] = in->shape.dims[axis];
        turned.steps[d] = from.steps[axis];
    }
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places to = kernel_places(&shape);
    kernel_move(out, &to, in, &turned, shape.dims, rank);
    for (int64_t i = 0; (DTYPES_COMPLEX & BIT(in->dtype)) && i < out->count; i++)
        kernel_set_complex(out, i, conj(kernel_complex_at(out, i)));
    return true;
}

/* Reverses the dimensions that a vector of bools says. */
static bool reverse_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *dims = kernel_in(call, 1);
    if (in->shape.rank == 0) {
        kernel_output_share(call, 0, in, &in->shape);
        return true;
    }
    if (in->shape.dims[0] == 0)
        return fail(err, INVALID, "Invalid input first dimension. Found 0.");
    if (dims->shape.rank != 1)
        return fail(err, INVALID, "'dims' must be 1-dimension, not %d", dims->shape.rank);
    if (dims->count != in->shape.rank)
        return fail(err, INVALID,
                    "'dims' must have the same number of values as 'input' has dimensions. "
                    "'input' has %d'dims' has %lld values",
                    in->shape.rank, (long long)dims->count);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out || out->count == 0)
        return out != NULL;
    struct places to = kernel_places(&in->shape), from = to;
    for (int d = 0; d < in->shape.rank; d++)
        if (((const bool *)dims->data)[d]) {
            from.start += from.steps[d] * (in->shape.dims[d] - 1);
            from.steps[d] *= -1;
        }
    kernel_move(out, &to, in, &from, in->shape.dims, in->shape.rank);
    return true;
}

/* --- data formats --- */

static bool formats(const struct kernel_call *call, const char **from, const char **to,
                    struct error *err)
{
    *from = node_attr_string(call->node, "src_format", "NHWC");
    *to = node_attr_string(call->node, "dst_format", "NCHW");
    size_t length = strlen(*from);
    if (length != 4 && length != 5)
        return fail(err, INVALID,
                    "Source format must be of length 4 or 5, received src_format = %s", *from);
    if (strlen(*to) != 4 && strlen(*to) != 5)
        return fail(err, INVALID,
                    "Destination format must be of length 4 or 5, received dst_format = %s",
                    *to);
    bool same = strlen(*to) == length;
    for (size_t i = 0; same && i < length; i++)
        same = strchr(*to, (*from)[i]) && strchr(*from, (*to)[i]);
    return same ||
           fail(err, INVALID,
                "Destination and source format must determine a permutation, got %s and "
                "%s",
                *from, *to);
}

static bool dim_map_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const char *from, *to;
    if (!formats(call, &from, &to, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    int64_t size = (int64_t)strlen(from);
    for (int64_t i = 0; out && i < in->count; i++) {
        int64_t axis = tensor_integer(in, i);
        axis += axis < 0 ? size : 0;
        axis = axis < 0 || axis >= size ? 0 : axis;
        tensor_set_number(out, i, (double)(strchr(to, from[axis]) - to));
    }
    return out != NULL;
}

/* A vector, or pairs, one for each dimension or (without batch and channel) for each of space.
 */
static bool permute_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const char *from, *to;
    char inner_from[8] = "", inner_to[8] = "";
    if (!formats(call, &from, &to, err))
        return false;
    int64_t full = (int64_t)strlen(from), rows = in->shape.rank > 0 ? in->shape.dims[0] : 0;
    char text[SHAPE_TEXT_BYTES];
    shape_text(&in->shape, text, sizeof(text));
    if (in->shape.rank < 1 || in->shape.rank > 2)
        return fail(err, INVALID, "input must be a vector or 2D tensor, but got shape %s",
                    text);
    if (rows != full && rows != full - 2)
        return fail(err, INVALID, "%s must be of size %lld or %lld, but got shape %s",
                    in->shape.rank == 1 ? "1D input" : "First dimension of 2D input",
                    (long long)full - 2, (long long)full, text);
    if (in->shape.rank == 2 && in->shape.dims[1] != 2)
        return fail(err, INVALID,
                    "Second dimension of 2D input must be of size 2, but got shape %s", text);
    if (rows != full) {
        int f = 0, t = 0;
        for (int64_t i = 0; i < full; i++) {
            if (from[i] != 'N' && from[i] != 'C')
                inner_from[f++] = from[i];
            if (to[i] != 'N' && to[i] != 'C')
                inner_to[t++] = to[i];
        }
        if (f != rows || t != rows)
            return fail(err, INVALID, "format %s has no %lld dimensions of space", from,
                        (long long)rows);
        from = inner_from;
        to = inner_to;
    }
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    int64_t width = in->shape.rank == 2 ? 2 : 1;
    for (int64_t i = 0; out && i < rows; i++)
        kernel_copy(out, i * width, in, (strchr(from, to[i]) - from) * width, width);
    return out != NULL;
}

/* --- sums --- */

/* Root of the sum of squares along axes. */
static bool norm_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *axes = kernel_in(call, 1);
    bool keep = node_attr_bool(call->node, "keep_dims", false);
    uint64_t reduced = 0;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t said = tensor_integer(axes, i);
        int64_t axis = said + (said < 0 ? in->shape.rank : 0);
        if (axis < 0 || axis >= in->shape.rank)
            return fail(err, INVALID,
                        "Invalid reduction dimension (%lld for input with %d dimension(s)",
                        (long long)said, in->shape.rank);
        if (reduced & BIT(axis))
            return fail(err, INVALID,
                        "Invalid reduction arguments: Axes contains duplicate dimension: %lld",
                        (long long)axis);
        reduced |= BIT(axis);
    }
    struct shape shape = {.rank = 0}, kept = in->shape;
    for (int d = 0; d < in->shape.rank; d++) {
        if (reduced & BIT(d))
            kept.dims[d] = 1;
        if (keep || !(reduced & BIT(d)))
            shape.dims[shape.rank++] = kept.dims[d];
    }
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *sums =
        out ? kernel_scratch(call, (size_t)(out->count + 1) * sizeof(*sums), err) : NULL;
    if (!sums)
        return false;
    memset(sums, 0, (size_t)out->count * sizeof(*sums));
    struct places places = kernel_broadcast_places(&kept, &in->shape);
    for (int64_t i = 0; i < in->count; i++) {
        double complex x = kernel_complex_at(in, i);
        sums[kernel_place(&places, &in->shape, i)] += creal(x * conj(x));
    }
    for (int64_t i = 0; i < out->count; i++)
        kernel_set_complex(out, i, sqrt(sums[i]));
    return true;
}

/* log(exp(a) + exp(b)) */
static double log_sum(double a, double b)
{
    double most = fmax(a, b), least = fmin(a, b);
    if (isnan(a) || isnan(b))
        return NAN;
    return isinf(most) ? most : most + log1p(exp(least - most));
}

static bool logsumexp_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool exclusive = node_attr_bool(call->node, "exclusive", false);
    bool reverse = node_attr_bool(call->node, "reverse", false);
    int axis;
    if (!kernel_scan_axis(call, 1, in->shape.rank, &axis, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    int64_t size = in->shape.dims[axis],
            inner = kernel_span(&in->shape, axis + 1, in->shape.rank);
    int64_t lines = size ? in->count / size : 0;
    for (int64_t l = 0; l < lines; l++) {
        double sum = -INFINITY;
        for (int64_t n = 0; n < size; n++) {
            int64_t at = (l / inner * size + (reverse ? size - 1 - n : n)) * inner + l % inner;
            double next = log_sum(sum, tensor_number(in, at));
            tensor_set_number(out, at, exclusive ? sum : next);
            sum = next;
        }
    }
    return true;
}

static bool bias_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *bias = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES], other[SHAPE_TEXT_BYTES];
    if (in->shape.rank < 2)
        return fail(err, INVALID, "Input tensor must be at least 2D: %s",
                    shape_text(&in->shape, text, sizeof(text)));
    if (bias->shape.rank != 1)
        return fail(err, INVALID, "Biases must be 1D: %s",
                    shape_text(&bias->shape, text, sizeof(text)));
    if (bias->count != in->shape.dims[in->shape.rank - 1])
        return fail(err, INVALID,
                    "Must provide as many biases as the last dimension of the input tensor: %s "
                    "vs. %s",
                    shape_text(&bias->shape, text, sizeof(text)),
                    shape_text(&in->shape, other, sizeof(other)));
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    kernel_load_bits *load = kernel_load_bits_for(in->dtype);
    for (int64_t i = 0; out && i < in->count; i++) {
        int64_t c = i % bias->count;
        if (load)
            kernel_store_bits_for(out->dtype)(out->data, i,
                                              load(in->data, i) + load(bias->data, c));
        else
            kernel_set_complex(out, i, kernel_complex_at(in, i) + kernel_complex_at(bias, c));
    }
    return out != NULL;
}

static bool check_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    static const char *const found[] = {
        "",    "-Inf",         "+Inf",         "-Inf and +Inf",
        "NaN", "-Inf and NaN", "+Inf and NaN", "-Inf, +Inf, and NaN"};
    bool nan = false, high = false, low = false;
    for (int64_t i = 0; i < in->count; i++) {
        double x = tensor_number(in, i);
        nan |= isnan(x);
        high |= isinf(x) && x > 0;
        low |= isinf(x) && x < 0;
    }
    if (nan || high || low)
        return fail(err, INVALID, "%s : Tensor had %s values",
                    node_attr_string(call->node, "message", ""),
                    found[low | high << 1 | nan << 2]);
    kernel_output_share(call, 0, in, &in->shape);
    return true;
}

#define MORE(name_, attr_, dtypes_, run_)                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .type_attr = attr_, .run = run_         \
    }
#define ALL (DTYPES_NUMBER | BIT(BOOL) | BIT(STRING))

const struct kernel kernel_empty_ref = MORE("Empty", "dtype", ALL, empty_run);
const struct kernel kernel_deep_copy_ref = MORE("DeepCopy", "T", 0, deep_copy_run);
const struct kernel kernel_inplace_update_ref = MORE("InplaceUpdate", "T", 0, update_run);
const struct kernel kernel_inplace_add_ref = MORE("InplaceAdd", "T", 0, add_run);
const struct kernel kernel_inplace_sub_ref = MORE("InplaceSub", "T", 0, subtract_run);
const struct kernel kernel_conjugate_transpose_ref =
    MORE("ConjugateTranspose", "T", 0, conjugate_transpose_run);
const struct kernel kernel_reverse_ref = MORE("Reverse", "T", ALL, reverse_run);
const struct kernel kernel_data_format_dim_map_ref =
    MORE("DataFormatDimMap", "T", BIT(I32) | BIT(I64), dim_map_run);
const struct kernel kernel_data_format_vec_permute_ref =
    MORE("DataFormatVecPermute", "T", BIT(I32) | BIT(I64), permute_run);
const struct kernel kernel_euclidean_norm_ref =
    MORE("EuclideanNorm", "T", DTYPES_NUMBER, norm_run);
const struct kernel kernel_cumulative_logsumexp_ref =
    MORE("CumulativeLogsumexp", "T", DTYPES_FLOAT, logsumexp_run);
const struct kernel kernel_bias_add_v1_ref = MORE("BiasAddV1", "T", DTYPES_NUMBER, bias_run);
const struct kernel kernel_check_numerics_v2_ref =
    MORE("CheckNumericsV2", "T", DTYPES_FLOAT, check_run);
