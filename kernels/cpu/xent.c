/* xent.c - softmax and its cross-entropies in float. */

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

/* An exponential costs as much as this many plain elements. */
#define WEIGHT 8

static bool check_labels(const struct tensor *logits, const struct tensor *labels,
                         struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (logits->shape.rank != 2)
        return fail(err, INVALID, "logits must be 2-D, but got shape %s",
                    shape_text(&logits->shape, a, sizeof(a)));
    if (labels->shape.rank != 1 || labels->count != logits->shape.dims[0])
        return fail(
            err, INVALID,
            "logits and labels must have the same first dimension, got logits shape %s and "
            "labels shape %s",
            shape_text(&logits->shape, a, sizeof(a)), shape_text(&labels->shape, b, sizeof(b)));
    int64_t classes = logits->shape.dims[1];
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t label = labels->dtype == I32 ? tensor_i32(labels)[i] : tensor_i64(labels)[i];
        if (label < 0 || label >= classes)
            return fail(
                err, INVALID,
                "Received a label value of %lld which is outside the valid range of [0, %lld)",
                (long long)label, (long long)classes);
    }
    return true;
}

static bool sparse_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0);
    const struct tensor *labels = kernel_in(call, 1);
    if (!check_labels(logits, labels, err))
        return false;
    int64_t rows = logits->shape.dims[0], classes = logits->shape.dims[1];
    struct tensor *loss = kernel_output(call, 0, &SHAPE(rows), err);
    struct tensor *grad = loss ? kernel_output_reuse(call, 1, 0, &logits->shape, err) : NULL;
    int32_t *small = grad ? kernel_scratch(call, (size_t)rows * sizeof(*small), err) : NULL;
    if (!small)
        return false;
    for (int64_t i = 0; i < rows; i++)
        small[i] =
            labels->dtype == I32 ? tensor_i32(labels)[i] : (int32_t)tensor_i64(labels)[i];
    const float *x = tensor_f32(logits);
    float *losses = tensor_f32_mut(loss), *back = tensor_f32_mut(grad);
    int threads = parallel_threads(call, logits->count * WEIGHT);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        isa()->xent_sparse(r.to - r.from, classes, x + r.from * classes, small + r.from,
                           losses + r.from, back + r.from * classes);
    }
    return true;
}

/* `t` as (rows,columns): itself, or repeated where it has one row or one column. */
static const float *repeated(struct kernel_call *call, const struct tensor *t,
                             const struct shape *shape, struct error *err)
{
    if (shape_equal(&t->shape, shape))
        return tensor_f32(t);
    int64_t rows = shape->dims[0], columns = shape->dims[1];
    float *copy = kernel_scratch(call, (size_t)(rows * columns) * sizeof(float), err);
    int64_t t_columns = t->shape.dims[t->shape.rank - 1];
    for (int64_t i = 0; copy && i < rows * columns; i++) {
        int64_t row = t->shape.rank == 2 && t->shape.dims[0] > 1 ? i / columns : 0;
        copy[i] = tensor_f32(t)[row * t_columns + (t_columns > 1 ? i % columns : 0)];
    }
    return copy;
}

static bool dense_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0);
    const struct tensor *labels = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct shape shape;
    if (logits->shape.rank < 1 || labels->shape.rank < 1 ||
        !shape_broadcast(&logits->shape, &labels->shape, &shape, err))
        return fail(err, INVALID,
                    "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                    shape_text(&logits->shape, a, sizeof(a)),
                    shape_text(&labels->shape, b, sizeof(b)));
    if (shape.rank != 2)
        return fail(err, INVALID,
                    "logits and labels must be either 2-dimensional, or broadcasted to be "
                    "2-dimensional");
    int64_t rows = shape.dims[0], classes = shape.dims[1];
    const float *x = repeated(call, logits, &shape, err);
    const float *y = x ? repeated(call, labels, &shape, err) : NULL;
    struct tensor *loss = y ? kernel_output(call, 0, &SHAPE(rows), err) : NULL;
    struct tensor *grad = loss ? kernel_output(call, 1, &shape, err) : NULL;
    if (!grad)
        return false;
    float *losses = tensor_f32_mut(loss), *back = tensor_f32_mut(grad);
    int threads = parallel_threads(call, grad->count * WEIGHT);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        isa()->xent_dense(r.to - r.from, classes, x + r.from * classes, y + r.from * classes,
                          losses + r.from, back + r.from * classes);
    }
    return true;
}

static bool softmax(struct kernel_call *call, bool log, struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (logits->shape.rank < 1)
        return fail(err, INVALID, "logits must have >= 1 dimension, got %s",
                    shape_text(&logits->shape, text, sizeof(text)));
    struct tensor *out = kernel_output(call, 0, &logits->shape, err);
    if (!out)
        return false;
    if (out->count == 0)
        return true;
    int64_t classes = logits->shape.dims[logits->shape.rank - 1];
    const float *x = tensor_f32(logits);
    float *y = tensor_f32_mut(out);
    int threads = parallel_threads(call, logits->count * WEIGHT);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(logits->count / classes, 1, threads, t);
        isa()->softmax(r.to - r.from, classes, x + r.from * classes, log, y + r.from * classes);
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

const struct kernel kernel_softmax_cpu = {
    .op = "Softmax",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = softmax_run,
};

const struct kernel kernel_log_softmax_cpu = {
    .op = "LogSoftmax",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = log_softmax_run,
};

const struct kernel kernel_sparse_xent_cpu = {
    .op = "SparseSoftmaxCrossEntropyWithLogits",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = sparse_run,
};

const struct kernel kernel_xent_cpu = {
    .op = "SoftmaxCrossEntropyWithLogits",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = dense_run,
};
