/* lrn.c - local response normalisation across neighbouring channels, and its gradient. */

#include "kernels/ref/numbers.h"

#include <math.h>

struct lrn {
    int64_t depth, radius;
    double bias, alpha, beta;
};

static bool read_lrn(const struct kernel_call *call, struct lrn *lrn, struct error *err)
{
    const struct shape *shape = &kernel_in(call, 0)->shape;
    for (int i = 0; i < call->in_count; i++)
        if (kernel_in(call, i)->shape.rank != 4)
            return fail(err, INVALID, "%s must be 4-dimensional",
                        call->in_count == 1 ? "in" : "inputs");
    for (int i = 1; i < call->in_count; i++)
        if (!shape_equal(shape, &kernel_in(call, i)->shape))
            return fail(err, INVALID,
                        "input_grads, input_image, and out_image should have the same shape");
    int64_t radius = node_attr_int(call->node, "depth_radius", 5);
    if (radius < 0 || radius >= INT32_MAX)
        return fail(err, INVALID, "depth_radius = %lld larger than int max", (long long)radius);
    *lrn = (struct lrn){
        .depth = shape->dims[3],
        .radius = radius,
        .bias = node_attr_float(call->node, "bias", 1),
        .alpha = node_attr_float(call->node, "alpha", 1),
        .beta = node_attr_float(call->node, "beta", 0.5F),
    };
    return true;
}

/* The channels [begin, end) that count for channel c. */
static void neighbours(const struct lrn *lrn, int64_t c, int64_t *begin, int64_t *end)
{
    *begin = c > lrn->radius ? c - lrn->radius : 0;
    *end = lrn->depth - c > lrn->radius ? c + lrn->radius + 1 : lrn->depth;
}

/* bias + alpha * sum of the squares around channel c of the pixel at `start`. */
static double norm_at(const struct lrn *lrn, kernel_load *load, const void *data, int64_t start,
                      int64_t c)
{
    int64_t begin, end;
    double sum = 0;
    neighbours(lrn, c, &begin, &end);
    for (int64_t k = begin; k < end; k++)
        sum += load(data, start + k) * load(data, start + k);
    return lrn->bias + lrn->alpha * sum;
}

static bool lrn_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct lrn lrn;
    if (!read_lrn(call, &lrn, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c = i % lrn.depth;
        double norm = norm_at(&lrn, load, in->data, i - c, c);
        store(out->data, i, load(in->data, i) * pow(norm, -lrn.beta));
    }
    return true;
}

static bool lrn_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grads = kernel_in(call, 0), *in = kernel_in(call, 1);
    const struct tensor *normed = kernel_in(call, 2);
    struct lrn lrn;
    if (!read_lrn(call, &lrn, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    double *sums =
        out ? kernel_scratch(call, (size_t)out->count * sizeof(*sums) + 1, err) : NULL;
    if (!sums)
        return false;
    memset(sums, 0, (size_t)out->count * sizeof(*sums));
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t begin, end, c = i % lrn.depth, start = i - c;
        double norm = norm_at(&lrn, load, in->data, start, c);
        double dy = load(grads->data, i);
        double share = -2 * lrn.alpha * lrn.beta * load(normed->data, i) / norm * dy;
        neighbours(&lrn, c, &begin, &end);
        for (int64_t k = begin; k < end; k++)
            sums[start + k] += share * load(in->data, start + k);
        sums[i] += pow(norm, -lrn.beta) * dy;
    }
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, sums[i]);
    return true;
}

#define LRN(name_, run_)                                                                       \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = BIT(F32) | BIT(F16), .run = run_                 \
    }

const struct kernel kernel_lrn_ref = LRN("LRN", lrn_run);
const struct kernel kernel_lrn_grad_ref = LRN("LRNGrad", lrn_grad_run);
