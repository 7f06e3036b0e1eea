/* layer_norm.c - _LayerNorm, its gradient, and _Gelu in plain C. */

#include <math.h>

#include "kernels/ref/attention.h"
#include "kernels/ref/numbers.h"

bool kernel_layer_norm_read(struct kernel_call *call, int x, int64_t *rows, int64_t *columns,
                            struct error *err)
{
    const struct shape *shape = &kernel_in(call, x)->shape;
    char is[SHAPE_TEXT_BYTES], text[SHAPE_TEXT_BYTES];
    if (shape->rank < 1 || shape->dims[shape->rank - 1] < 1)
        return fail(err, INVALID, "x is %s, its last dimension must have elements",
                    shape_text(shape, text, sizeof(text)));
    *columns = shape->dims[shape->rank - 1];
    *rows = kernel_in(call, x)->count / *columns;
    /* Behind x: scale, and forward offset, else mean and inverse. */
    for (int i = x + 1; i < call->in_count; i++) {
        const struct tensor *other = kernel_in(call, i);
        bool per_row = x == 1 && i > 2;
        if (other->count != (per_row ? *rows : *columns) ||
            (!per_row && other->shape.rank != 1))
            return fail(err, INVALID, "input %d is %s and does not fit x, which is %s", i,
                        shape_text(&other->shape, is, sizeof(is)),
                        shape_text(shape, text, sizeof(text)));
    }
    if (x == 1 && !shape_equal(&kernel_in(call, 0)->shape, shape))
        return fail(err, INVALID, "the gradient is %s, x is %s",
                    shape_text(&kernel_in(call, 0)->shape, is, sizeof(is)),
                    shape_text(shape, text, sizeof(text)));
    return true;
}

static double number(const struct kernel_call *call, int input, int64_t i)
{
    const struct tensor *in = kernel_in(call, input);
    return kernel_load_for(in->dtype)(in->data, i);
}

static bool layer_norm_run(struct kernel_call *call, struct error *err)
{
    int64_t rows, columns;
    if (!kernel_layer_norm_read(call, 0, &rows, &columns, err))
        return false;
    struct shape shape = kernel_in(call, 0)->shape;
    struct tensor *y = kernel_output(call, 0, &shape, err);
    shape.rank--;
    struct tensor *means = y ? kernel_output(call, 1, &shape, err) : NULL;
    struct tensor *inverses = means ? kernel_output(call, 2, &shape, err) : NULL;
    double epsilon = node_attr_float(call->node, "epsilon", 1e-3f);
    if (!inverses)
        return false;
    kernel_store *store = kernel_store_for(y->dtype);
    for (int64_t i = 0; i < rows; i++) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < columns; j++)
            mean += number(call, 0, i * columns + j) / (double)columns;
        for (int64_t j = 0; j < columns; j++) {
            double d = number(call, 0, i * columns + j) - mean;
            variance += d * d / (double)columns;
        }
        double inverse = 1 / sqrt(variance + epsilon);
        for (int64_t j = 0; j < columns; j++)
            store(y->data, i * columns + j,
                  (number(call, 0, i * columns + j) - mean) * inverse * number(call, 1, j) +
                      number(call, 2, j));
        store(means->data, i, mean);
        store(inverses->data, i, inverse);
    }
    return true;
}

static bool layer_norm_grad_run(struct kernel_call *call, struct error *err)
{
    int64_t rows, columns;
    if (!kernel_layer_norm_read(call, 1, &rows, &columns, err))
        return false;
    struct shape vector = SHAPE(columns);
    struct tensor *dx = kernel_output(call, 0, &kernel_in(call, 1)->shape, err);
    struct tensor *dscale = dx ? kernel_output(call, 1, &vector, err) : NULL;
    struct tensor *doffset = dscale ? kernel_output(call, 2, &vector, err) : NULL;
    double *sums =
        doffset ? kernel_scratch(call, (size_t)(2 * columns) * sizeof(*sums), err) : NULL;
    if (!sums)
        return false;
    memset(sums, 0, (size_t)(2 * columns) * sizeof(*sums));
    kernel_store *store = kernel_store_for(dx->dtype);
    for (int64_t i = 0; i < rows; i++) {
        double mean = number(call, 3, i), inverse = number(call, 4, i), middle = 0, slope = 0;
        for (int64_t j = 0; j < columns; j++) {
            double d = (number(call, 1, i * columns + j) - mean) * inverse;
            double g = number(call, 0, i * columns + j);
            sums[j] += g * d;
            sums[columns + j] += g;
            middle += g * number(call, 2, j) / (double)columns;
            slope += g * number(call, 2, j) * d / (double)columns;
        }
        for (int64_t j = 0; j < columns; j++) {
            double d = (number(call, 1, i * columns + j) - mean) * inverse;
            double g = number(call, 0, i * columns + j) * number(call, 2, j);
            store(dx->data, i * columns + j, (g - middle - d * slope) * inverse);
        }
    }
    for (int64_t j = 0; j < columns; j++) {
        store(dscale->data, j, sums[j]);
        store(doffset->data, j, sums[columns + j]);
    }
    return true;
}

static bool gelu_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct tensor *y = kernel_output(call, 0, &x->shape, err);
    struct tensor *slope = y ? kernel_output(call, 1, &x->shape, err) : NULL;
    if (!slope)
        return false;
    kernel_store *store = kernel_store_for(y->dtype);
    for (int64_t i = 0; i < x->count; i++) {
        double v = number(call, 0, i), below = erfc(-v * M_SQRT1_2) / 2;
        double density = exp(-v * v / 2) * M_2_SQRTPI * M_SQRT1_2 / 2;
        store(y->data, i, v * below);
        store(slope->data, i, below + (density > 0 ? v * density : 0));
    }
    return true;
}

const struct kernel kernel_layer_norm_ref = {
    .op = "_LayerNorm", .device = CPU, .dtypes = DTYPES_FLOAT, .run = layer_norm_run};
const struct kernel kernel_layer_norm_grad_ref = {
    .op = "_LayerNormGrad", .device = CPU, .dtypes = DTYPES_FLOAT, .run = layer_norm_grad_run};
const struct kernel kernel_gelu_ref = {
    .op = "_Gelu", .device = CPU, .dtypes = DTYPES_FLOAT, .run = gelu_run};
