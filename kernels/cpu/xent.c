/* xent.c - softmax and its cross-entropies in float. */

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/spread.h"
#include "kernels/list.h"
#include "kernels/ref/numbers.h"

/* An exponential costs as much as this many plain elements. */
#define WEIGHT 8

static bool check_labels(const struct tensor *logits, const struct tensor *labels,
                         struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (logits->shape.rank != 2)
        return fail(err, INVALID, "logits must be 2-D, but got shape %s",
                    shape_text(&logits->shape, a, sizeof(a)));
    if (labels->shape.rank != 1)
        return fail(err, INVALID, "labels must be 1-D, but got shape %s",
                    shape_text(&labels->shape, b, sizeof(b)));
    if (labels->count != logits->shape.dims[0])
        return fail(
            err, INVALID,
            "logits and labels must have the same first dimension, got logits shape %s and "
            "labels shape %s",
            shape_text(&logits->shape, a, sizeof(a)), shape_text(&labels->shape, b, sizeof(b)));
    int64_t classes = logits->shape.dims[1];
    if (classes == 0)
        return fail(err, INVALID, "Must have at least one class, but got logits shape %s",
                    shape_text(&logits->shape, a, sizeof(a)));
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t label = labels->dtype == I32 ? tensor_i32(labels)[i] : tensor_i64(labels)[i];
        if (label < 0 || label >= classes)
            return kernel_fail_label(labels, label, classes, err);
    }
    return true;
}

/* What one call computes: losses of rows, and how they change with the logits. */
struct losses {
    int64_t rows, classes;
    const float *logits;
    const int32_t *sparse; /* labels, or NULL */
    const float *dense;
    const float *scale; /* of the gradient, one for each row or for all; NULL: 1 */
    bool one_scale;
    float *loss;
    float *backprop; /* NULL: nobody wants it */
};

/* Labels as the inner loop wants them. */
static bool read_sparse(struct kernel_call *call, struct losses *work, struct error *err)
{
    const struct tensor *logits = kernel_in(call, 0);
    const struct tensor *labels = kernel_in(call, 1);
    if (!check_labels(logits, labels, err))
        return false;
    work->rows = logits->shape.dims[0];
    work->classes = logits->shape.dims[1];
    work->logits = tensor_f32(logits);
    int32_t *small = kernel_scratch(call, (size_t)work->rows * sizeof(*small), err);
    for (int64_t i = 0; small && i < work->rows; i++)
        small[i] =
            labels->dtype == I32 ? tensor_i32(labels)[i] : (int32_t)tensor_i64(labels)[i];
    work->sparse = small;
    return small;
}

static bool read_dense(struct kernel_call *call, struct losses *work, struct error *err)
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
    work->rows = shape.dims[0];
    work->classes = shape.dims[1];
    work->logits = spread(call, tensor_f32(logits), &logits->shape, &shape, err);
    work->dense =
        work->logits ? spread(call, tensor_f32(labels), &labels->shape, &shape, err) : NULL;
    return work->dense;
}

/* Rows from `i` on; the gradient goes to `back`. */
static void run_rows(const struct losses *work, int64_t i, int64_t rows, float *back)
{
    int64_t classes = work->classes;
    if (work->sparse)
        isa()->xent_sparse(rows, classes, work->logits + i * classes, work->sparse + i,
                           work->loss + i, back);
    else
        isa()->xent_dense(rows, classes, work->logits + i * classes, work->dense + i * classes,
                          work->loss + i, back);
}

/* Rows [from,to); `spare` has room for one. */
static void run_range(const struct losses *work, struct range r, float *spare)
{
    int64_t classes = work->classes;
    if (work->backprop && !work->scale) {
        run_rows(work, r.from, r.to - r.from, work->backprop + r.from * classes);
        return;
    }
    for (int64_t i = r.from; i < r.to; i++) {
        float *back = work->backprop ? work->backprop + i * classes : spare;
        float scale = work->scale ? work->scale[work->one_scale ? 0 : i] : 1;
        run_rows(work, i, 1, back);
        for (int64_t k = 0; work->backprop && k < classes; k++)
            back[k] *= scale;
    }
}

static bool run_losses(struct kernel_call *call, struct losses *work, struct tensor *loss,
                       struct tensor *grad, struct error *err)
{
    work->loss = tensor_f32_mut(loss);
    work->backprop = grad ? tensor_f32_mut(grad) : NULL;
    int threads = parallel_threads(call, work->rows * work->classes * WEIGHT);
    float *spare = NULL;
    if (!grad && !(spare = kernel_scratch(
                       call, (size_t)(threads * work->classes) * sizeof(*spare) + 1, err)))
        return false;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++)
        run_range(work, parallel_range(work->rows, 1, threads, t),
                  spare ? spare + t * work->classes : NULL);
    return true;
}

static bool sparse_run(struct kernel_call *call, struct error *err)
{
    struct losses work = {0};
    if (!read_sparse(call, &work, err))
        return false;
    struct tensor *loss = kernel_output(call, 0, &SHAPE(work.rows), err);
    struct tensor *grad =
        loss ? kernel_output_reuse(call, 1, 0, &SHAPE(work.rows, work.classes), err) : NULL;
    return grad && run_losses(call, &work, loss, grad, err);
}

static bool dense_run(struct kernel_call *call, struct error *err)
{
    struct losses work = {0};
    if (!read_dense(call, &work, err))
        return false;
    struct tensor *loss = kernel_output(call, 0, &SHAPE(work.rows), err);
    struct tensor *grad =
        loss ? kernel_output(call, 1, &SHAPE(work.rows, work.classes), err) : NULL;
    return grad && run_losses(call, &work, loss, grad, err);
}

/* What the gradient is multiplied by is no column: all of it at once, as Mul does it. */
static bool run_spread(struct kernel_call *call, struct losses *work, struct tensor *loss,
                       struct tensor *grad, const struct tensor *scale, struct error *err)
{
    const struct shape own = SHAPE(work->rows, work->classes);
    float *back =
        kernel_scratch(call, (size_t)(work->rows * work->classes) * sizeof(*back) + 1, err);
    if (!back)
        return false;
    work->loss = tensor_f32_mut(loss);
    run_rows(work, 0, work->rows, back);
    const float *x = spread(call, back, &own, &grad->shape, err);
    const float *y =
        x ? spread(call, tensor_f32(scale), &scale->shape, &grad->shape, err) : NULL;
    if (y)
        isa()->binary(ISA_MUL, grad->count, x, false, y, false, tensor_f32_mut(grad));
    return y;
}

static bool is_column(const struct tensor *scale, int64_t rows)
{
    const struct shape *shape = &scale->shape;
    return scale->count == 1
               ? shape->rank <= 2
               : shape->rank == 2 && shape->dims[0] == rows && shape->dims[1] == 1;
}

static bool scaled_run(struct kernel_call *call, struct error *err)
{
    struct losses work = {0};
    bool sparse = node_attr_bool(call->node, "sparse", true);
    bool keeps = node_attr_bool(call->node, "keeps", true);
    const struct tensor *scale = call->in_count > 2 ? kernel_in(call, 2) : NULL;
    if (!(sparse ? read_sparse(call, &work, err) : read_dense(call, &work, err)))
        return false;
    const struct shape own = SHAPE(work.rows, work.classes);
    struct shape shape = own;
    if (scale && !shape_broadcast(&own, &scale->shape, &shape, err))
        return false;
    struct tensor *loss = kernel_output(call, 0, &SHAPE(work.rows), err);
    struct tensor *grad = NULL;
    if (loss && keeps && sparse)
        grad = kernel_output_reuse(call, 1, 0, &shape, err);
    else if (loss)
        grad = kernel_output(call, 1, keeps ? &shape : &SHAPE(0), err);
    if (!grad)
        return false;
    if (scale && !is_column(scale, work.rows))
        return run_spread(call, &work, loss, grad, scale, err);
    work.scale = scale ? tensor_f32(scale) : NULL;
    work.one_scale = scale && scale->count == 1;
    return run_losses(call, &work, loss, keeps ? grad : NULL, err);
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

const struct kernel kernel_softmax_losses_cpu = {
    .op = "_SoftmaxLosses",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = scaled_run,
};
