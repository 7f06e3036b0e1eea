/* batch_normalization.c - BatchNormalization, with moving averages for evaluation. */

#include "base/alloc.h"
#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("axis", CONFIG_INT, "-1"), CONFIG_RANGE(-7, 7)},
    {CONFIG_ARG("momentum", CONFIG_REAL, "0.99"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("epsilon", CONFIG_REAL, "0.001"), CONFIG_RANGE(0, 1)},
    LAYER_FLAG("center", "true"),
    LAYER_FLAG("scale", "true"),
    LAYER_WEIGHT("beta", "zeros"),
    LAYER_WEIGHT("gamma", "ones"),
    LAYER_CONFIG("moving_mean_initializer", "\"zeros\"", build_initializer_family),
    LAYER_CONFIG("moving_variance_initializer", "\"ones\"", build_initializer_family),
};

struct normalizing {
    struct layer_call *call;
    struct shape input;
    int axis; /* of the channels */
    int64_t channels;
    struct edge gamma, beta; /* without node: none */
    int mean, variance;      /* weights */
};

static struct edge constant(struct normalizing *n, double value)
{
    struct build *m = n->call->m;
    return build_binary(m, "Fill", build_ints(m, &n->channels, 1), build_number(m, F32, value));
}

/* In a shape that broadcasts against the input. */
static struct edge along(struct normalizing *n, struct edge x)
{
    int64_t dims[LIMIT_TENSOR_RANK];
    if (n->axis == n->input.rank - 1)
        return x;
    for (int i = 0; i < n->input.rank; i++)
        dims[i] = i == n->axis ? n->channels : 1;
    return build_reshape(n->call->m, x, dims, n->input.rank);
}

/* moving -= (moving - batch) * (1 - momentum) */
static void follow(struct normalizing *n, int weight, struct edge batch)
{
    struct build *m = n->call->m;
    if (m->mirrors && m->replica) /* those of the first are kept */
        return;
    double momentum = config_real(n->call->config, "momentum");
    struct edge away = build_binary(m, "Sub", build_weight_read(m, weight), batch);
    struct edge change = build_with_number(m, "Mul", away, 1 - momentum);
    if (!build_ok(m))
        return;
    struct edge update = builder_add(&m->b, "AssignSubVariableOp", "AssignMovingAvg",
                                     INPUTS(build_weight_handle(m, weight), change),
                                     ATTRS(attr_type("dtype", F32)));
    if (!build_ok(m))
        return;
    m->updates =
        alloc_grow(m->updates, m->updates_count, &m->updates_capacity, sizeof(*m->updates));
    m->updates[m->updates_count++] = update.from;
}

/* Images: one op does it all, with the next activation if there is one. */
static void fused(struct normalizing *n, bool training)
{
    struct build *m = n->call->m;
    struct edge gamma = n->gamma.from ? n->gamma : constant(n, 1);
    struct edge beta = n->beta.from ? n->beta : constant(n, 0);
    struct edge none = build_binary(m, "Fill", build_ints(m, (const int64_t[]){0}, 1),
                                    build_number(m, F32, 0));
    struct edge mean = training ? none : build_weight_read(m, n->mean);
    struct edge variance = training ? none : build_weight_read(m, n->variance);
    struct edge x =
        builder_add(&m->b, "FusedBatchNormV3", "FusedBatchNormV3",
                    INPUTS(n->call->inputs[0], gamma, beta, mean, variance),
                    ATTRS(attr_float("epsilon", (float)config_real(n->call->config, "epsilon")),
                          attr_bool("is_training", training)));
    layer_give(n->call, x);
    if (!training)
        return;
    /* The op gives the unbiased variance, Keras follows the other one. */
    int64_t count = n->input.dims[0] * n->input.dims[1] * n->input.dims[2];
    struct edge biased = builder_output(x, 2);
    if (count > 1)
        biased = build_with_number(m, "Mul", biased, (double)(count - 1) / (double)count);
    follow(n, n->mean, builder_output(x, 1));
    follow(n, n->variance, biased);
}

/* The mean over all but the channels, of the steps that are there. */
static struct edge mean_of(struct normalizing *n, struct edge x, const int64_t *axes, int count)
{
    struct build *m = n->call->m;
    struct edge mask = layer_mask(n->call, 0);
    if (!mask.from || n->input.rank != 3 || n->axis != 2)
        return build_reduce(m, "Mean", x, axes, count, false);
    struct edge there = build_cast(m, build_expand(m, mask, -1), build_dtype(x));
    struct edge total = build_reduce_all(m, "Sum", there);
    struct edge sum =
        build_reduce(m, "Sum", build_binary(m, "Mul", x, there), axes, count, false);
    return build_binary(m, "RealDiv", sum, build_with_number(m, "AddV2", total, 1e-7));
}

static void plain(struct normalizing *n, bool training)
{
    struct build *m = n->call->m;
    struct edge x = n->call->inputs[0], mean, variance;
    if (training) {
        int64_t axes[LIMIT_TENSOR_RANK], count = 0;
        for (int i = 0; i < n->input.rank; i++) {
            if (i != n->axis)
                axes[count++] = i;
        }
        mean = mean_of(n, x, axes, (int)count);
        struct edge away = build_binary(m, "Sub", x, along(n, mean));
        variance = mean_of(n, build_unary(m, "Square", away), axes, (int)count);
        follow(n, n->mean, mean);
        follow(n, n->variance, variance);
    } else {
        mean = build_weight_read(m, n->mean);
        variance = build_weight_read(m, n->variance);
    }
    struct edge by = build_unary(
        m, "Rsqrt",
        build_with_number(m, "AddV2", variance, config_real(n->call->config, "epsilon")));
    if (n->gamma.from)
        by = build_binary(m, "Mul", by, n->gamma);
    x = build_binary(m, "Mul", build_binary(m, "Sub", x, along(n, mean)), along(n, by));
    layer_give(n->call, n->beta.from ? build_binary(m, "AddV2", x, along(n, n->beta)) : x);
}

static void batch_normalization(struct layer_call *call)
{
    struct build *m = call->m;
    struct normalizing n = {.call = call, .input = *layer_shape(call, 0)};
    if (!build_ok(m))
        return;
    int64_t axis = config_int(call->config, "axis");
    n.axis = (int)(axis < 0 ? axis + n.input.rank : axis);
    if (n.axis < 1 || n.axis >= n.input.rank || n.input.dims[n.axis] < 1) {
        layer_refuse(call, "the dimension that \"axis\" names");
        return;
    }
    n.channels = n.input.dims[n.axis];
    const struct shape shape = SHAPE(n.channels);
    if (config_bool(call->config, "scale"))
        n.gamma = layer_weight(call, "gamma", &shape);
    if (config_bool(call->config, "center"))
        n.beta = layer_weight(call, "beta", &shape);
    n.mean = layer_state(call, "moving_mean", &shape, "zeros", false);
    n.variance = layer_state(call, "moving_variance", &shape, "ones", false);
    bool training = call->training && call->trainable; /* as Keras: frozen, it evaluates */
    if (n.input.rank == 4 && n.axis == 3)
        fused(&n, training && n.input.dims[0] > 0);
    else
        plain(&n, training);
}

const struct layer_class layer_batch_normalization = {
    .config = {.name = "BatchNormalization", CONFIG_ARGUMENTS(arguments)},
    .call = batch_normalization,
    .passes_mask = true};
