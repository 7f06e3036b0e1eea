/* nn.c - bias, softmax and the losses built on it; rows in double. */

#include "kernels/ref/numbers.h"

#include <math.h>

static bool is_nchw(const struct node *node)
{
    return strcmp(node_attr_string(node, "data_format", "NHWC"), "NCHW") == 0;
}

/* --- bias --- */

static bool bias_add_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *value = kernel_in(call, 0), *bias = kernel_in(call, 1);
    int rank = value->shape.rank;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool nchw = is_nchw(call->node);
    if (rank < 2)
        return fail(err, INVALID, "Input tensor must be at least 2D: %s",
                    shape_text(&value->shape, a, sizeof(a)));
    if (bias->shape.rank != 1)
        return fail(err, INVALID, "Biases must be 1D: %s",
                    shape_text(&bias->shape, b, sizeof(b)));
    int axis = nchw ? 1 : rank - 1;
    int64_t channels = value->shape.dims[axis];
    if (channels != bias->count)
        return fail(err, INVALID,
                    "Must provide as many biases as the last dimension of the "
                    "input tensor: %s vs. %s",
                    shape_text(&bias->shape, b, sizeof(b)),
                    shape_text(&value->shape, a, sizeof(a)));
    int64_t inner = kernel_span(&value->shape, axis + 1, rank);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &value->shape, err);
    if (!out)
        return false;
    kernel_load_bits *load = kernel_load_bits_for(value->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c = i / inner % channels;
        if (load)
            kernel_store_bits_for(out->dtype)(out->data, i,
                                              load(value->data, i) + load(bias->data, c));
        else
            kernel_set_complex(out, i,
                               kernel_complex_at(value, i) + kernel_complex_at(bias, c));
    }
    return true;
}

static bool bias_add_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 0);
    int rank = grad->shape.rank;
    bool nchw = is_nchw(call->node);
    char text[SHAPE_TEXT_BYTES];
    if (rank < 2)
        return fail(err, INVALID, "Input tensor must be at least 2D: %s",
                    shape_text(&grad->shape, text, sizeof(text)));
    int axis = nchw ? 1 : rank - 1;
    int64_t channels = grad->shape.dims[axis];
    int64_t inner = kernel_span(&grad->shape, axis + 1, rank);
    struct tensor *out = kernel_output(call, 0, &SHAPE(channels), err);
    double complex *sums =
        out ? kernel_scratch(call, (size_t)channels * sizeof(*sums) + 1, err) : NULL;
    if (!sums)
        return false;
    kernel_load_bits *load = kernel_load_bits_for(grad->dtype);
    uint64_t *whole = (uint64_t *)sums;
    memset(sums, 0, (size_t)channels * sizeof(*sums));
    for (int64_t i = 0; i < grad->count; i++) {
        int64_t c = i / inner % channels;
        if (load)
            whole[c] += load(grad->data, i);
        else
            sums[c] += kernel_complex_at(grad, i);
    }
    for (int64_t c = 0; c < channels; c++) {
        if (load)
            kernel_store_bits_for(out->dtype)(out->data, c, whole[c]);
        else
            kernel_set_complex(out, c, sums[c]);
    }
    return true;
}

/* --- softmax --- */

/* Reads a row and gives x - max, and log of the sum of their exponentials. */
static double shifted_row(kernel_load *load, const void *data, int64_t start, int64_t size,
                          int64_t step, double *row)
{
    double greatest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < size; i++) {
        row[i] = load(data, start + i * step);
        if (row[i] > greatest || row[i] != row[i])
            greatest = row[i];
    }
    for (int64_t i = 0; i < size; i++) {
        row[i] -= greatest;
        sum += exp(row[i]);
    }
    return log(sum);
}

static bool softmax(struct kernel_call *call, bool logarithm, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    if (x->shape.rank < 1)
        return fail(err, INVALID, "logits must have >= 1 dimension, got []");
    int64_t size = x->shape.dims[x->shape.rank - 1];
    struct tensor *out = kernel_output_reuse(call, 0, 0, &x->shape, err);
    double *row = out ? kernel_scratch(call, (size_t)size * sizeof(*row) + 1, err) : NULL;
    if (!row)
        return false;
    kernel_load *load = kernel_load_for(x->dtype);
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t start = 0; start < x->count; start += size) {
        double log_sum = shifted_row(load, x->data, start, size, 1, row);
        for (int64_t i = 0; i < size; i++) {
            double log_p = row[i] - log_sum;
            store(out->data, start + i, logarithm ? log_p : exp(log_p));
        }
    }
    return true;
}

static bool softmax_run(struct kernel_call *call, struct error *err)
{
    return softmax(call, false, err);
}

static bool log_softmax_run(struct kernel_call *call, struct error *err)
{
    return softmax(call, true, err);
}

/* --- losses --- */

/* Logits and labels broadcast against each other to (batch, classes). */
static bool softmax_loss_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *labels = kernel_in(call, 1);
    struct shape shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct error differ;
    if (!shape_broadcast(&x->shape, &labels->shape, &shape, &differ))
        return fail(err, INVALID,
                    "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                    shape_text(&x->shape, a, sizeof(a)),
                    shape_text(&labels->shape, b, sizeof(b)));
    if (shape.rank != 2)
        return fail(err, INVALID,
                    "logits and labels must be either 2-dimensional, or broadcasted to be "
                    "2-dimensional");
    int64_t rows = shape.dims[0], classes = shape.dims[1];
    struct tensor *loss = kernel_output(call, 0, &SHAPE(rows), err);
    struct tensor *back = loss ? kernel_output(call, 1, &shape, err) : NULL;
    double *row = back ? kernel_scratch(call, (size_t)classes * sizeof(*row) + 1, err) : NULL;
    if (!row)
        return false;
    kernel_load *load = kernel_load_for(x->dtype);
    kernel_store *store = kernel_store_for(x->dtype);
    int64_t steps[2][2]; /* rows, columns of x, of labels */
    for (int i = 0; i < 2; i++) {
        const struct shape *s = &kernel_in(call, i)->shape;
        int64_t columns = s->rank ? s->dims[s->rank - 1] : 1;
        steps[i][0] = s->rank == 2 && s->dims[0] > 1 ? columns : 0;
        steps[i][1] = columns > 1 ? 1 : 0;
    }
    for (int64_t r = 0; r < rows; r++) {
        double log_sum = shifted_row(load, x->data, r * steps[0][0], classes, steps[0][1], row);
        double sum = 0;
        for (int64_t c = 0; c < classes; c++) {
            double label = load(labels->data, r * steps[1][0] + c * steps[1][1]);
            double log_p = row[c] - log_sum;
            sum -= label == 0 ? 0 : label * log_p;
            store(back->data, r * classes + c, exp(log_p) - label);
        }
        store(loss->data, r, sum);
    }
    return true;
}

bool kernel_fail_label(const struct tensor *labels, int64_t label, int64_t classes,
                       struct error *err)
{
    char all[600] = "";
    size_t used = 0;
    for (int64_t i = 0; i < labels->count && used < sizeof(all); i++)
        used += (size_t)snprintf(all + used, sizeof(all) - used, " %lld",
                                 (long long)tensor_integer(labels, i));
    return fail(
        err, INVALID,
        "Received a label value of %lld which is outside the valid range of [0, %lld).  "
        "Label values:%s",
        (long long)label, (long long)classes, all);
}

static bool check_sparse_shapes(const struct tensor *x, const struct tensor *labels,
                                struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (x->shape.rank != 2)
        return fail(err, INVALID, "logits must be 2-D, but got shape %s",
                    shape_text(&x->shape, a, sizeof(a)));
    if (labels->shape.rank != 1)
        return fail(err, INVALID, "labels must be 1-D, but got shape %s",
                    shape_text(&labels->shape, b, sizeof(b)));
    if (labels->count != x->shape.dims[0])
        return fail(err, INVALID,
                    "logits and labels must have the same first dimension, got logits shape %s "
                    "and labels shape %s",
                    shape_text(&x->shape, a, sizeof(a)),
                    shape_text(&labels->shape, b, sizeof(b)));
    if (x->shape.dims[1] == 0)
        return fail(err, INVALID, "Must have at least one class, but got logits shape %s",
                    shape_text(&x->shape, a, sizeof(a)));
    int64_t classes = x->shape.dims[1];
    for (int64_t r = 0; r < labels->count; r++) {
        int64_t label = tensor_integer(labels, r);
        if (label < 0 || label >= classes)
            return kernel_fail_label(labels, label, classes, err);
    }
    return true;
}

static bool sparse_softmax_loss_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *labels = kernel_in(call, 1);
    if (!check_sparse_shapes(x, labels, err))
        return false;
    int64_t rows = x->shape.dims[0], classes = x->shape.dims[1];
    struct tensor *loss = kernel_output(call, 0, &SHAPE(rows), err);
    struct tensor *back = loss ? kernel_output(call, 1, &x->shape, err) : NULL;
    double *row = back ? kernel_scratch(call, (size_t)classes * sizeof(*row) + 1, err) : NULL;
    if (!row)
        return false;
    kernel_load *load = kernel_load_for(x->dtype);
    kernel_store *store = kernel_store_for(x->dtype);
    for (int64_t r = 0; r < rows; r++) {
        int64_t label = tensor_integer(labels, r);
        double log_sum = shifted_row(load, x->data, r * classes, classes, 1, row);
        store(loss->data, r, log_sum - row[label]);
        for (int64_t c = 0; c < classes; c++)
            store(back->data, r * classes + c, exp(row[c] - log_sum) - (c == label));
    }
    return true;
}

#define NN(name_, dtypes_, run_)                                                               \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_bias_add_ref = NN("BiasAdd", DTYPES_NUMBER, bias_add_run);
const struct kernel kernel_bias_add_grad_ref =
    NN("BiasAddGrad", DTYPES_NUMBER, bias_add_grad_run);
const struct kernel kernel_softmax_ref = NN("Softmax", DTYPES_FLOAT, softmax_run);
const struct kernel kernel_log_softmax_ref = NN("LogSoftmax", DTYPES_FLOAT, log_softmax_run);
const struct kernel kernel_softmax_cross_entropy_with_logits_ref =
    NN("SoftmaxCrossEntropyWithLogits", DTYPES_FLOAT, softmax_loss_run);
const struct kernel kernel_sparse_softmax_cross_entropy_with_logits_ref =
    NN("SparseSoftmaxCrossEntropyWithLogits", DTYPES_FLOAT, sparse_softmax_loss_run);
