/* build_activation.c - activations by Keras's names. */

#include <math.h>

#include "runtime/model/build.h"

const char *const build_activation_names[] = {
    "linear",      "relu",           "relu6",     "sigmoid",    "tanh",
    "softmax",     "softplus",       "softsign",  "elu",        "selu",
    "gelu",        "silu",           "swish",     "mish",       "exponential",
    "leaky_relu",  "hard_sigmoid",   "hard_silu", "hard_swish", "hard_tanh",
    "log_sigmoid", "log_softmax",    "celu",      "glu",        "hard_shrink",
    "soft_shrink", "tanh_shrink",    "threshold", "squareplus", "sparse_plus",
    "sparsemax",   "sparse_sigmoid", NULL};

static struct edge clip(struct build *m, struct edge x, double from, double to)
{
    return build_with_number(m, "Minimum", build_with_number(m, "Maximum", x, from), to);
}

static struct edge times_sigmoid(struct build *m, struct edge x)
{
    return build_binary(m, "Mul", x, build_unary(m, "Sigmoid", x));
}

/* relu6(x + 3) / 6 */
static struct edge hard_sigmoid(struct build *m, struct edge x)
{
    struct edge shifted = build_with_number(m, "AddV2", x, 3);
    return build_with_number(m, "Mul", build_unary(m, "Relu6", shifted), 1.0 / 6);
}

/* x (1 + erf(x / sqrt 2)) / 2: Keras's default, not the approximation. */
static struct edge gelu(struct build *m, struct edge x)
{
    if (m->training && build_dtype(x) == F32)
        return build_unary(m, "_Gelu", x);
    struct edge erf = build_unary(m, "Erf", build_with_number(m, "Mul", x, M_SQRT1_2));
    struct edge half = build_with_number(m, "Mul", x, 0.5);
    return build_binary(m, "Mul", half, build_with_number(m, "AddV2", erf, 1));
}

/* Where |x| exceeds `limit`: `then`, else zero. */
static struct edge beyond(struct build *m, struct edge x, double limit, struct edge then)
{
    struct edge is = build_with_number(m, "Greater", build_unary(m, "Abs", x), limit);
    return build_select(m, is, then, build_number(m, build_dtype(x), 0));
}

/* sign(x) max(|x| - 0.5, 0) */
static struct edge soft_shrink(struct build *m, struct edge x)
{
    struct edge less = build_with_number(m, "Sub", build_unary(m, "Abs", x), 0.5);
    return build_binary(m, "Mul", build_unary(m, "Sign", x), build_unary(m, "Relu", less));
}

/* The first half of the last dimension, gated by the second. */
static struct edge glu(struct build *m, struct edge x)
{
    struct edge parts = build_split(m, x, -1, 2);
    return build_binary(m, "Mul", parts, build_unary(m, "Sigmoid", builder_output(parts, 1)));
}

/* max(0, x) + min(0, exp(x) - 1) */
static struct edge celu(struct build *m, struct edge x)
{
    struct edge below = build_unary(m, "Expm1", build_with_number(m, "Minimum", x, 0));
    return build_binary(m, "AddV2", build_unary(m, "Relu", x), below);
}

/* (x + sqrt(x^2 + 4)) / 2 */
static struct edge squareplus(struct build *m, struct edge x)
{
    struct edge root =
        build_unary(m, "Sqrt", build_with_number(m, "AddV2", build_unary(m, "Square", x), 4));
    return build_with_number(m, "Mul", build_binary(m, "AddV2", x, root), 0.5);
}

/* 0 below -1, x above 1, (x + 1)^2 / 4 between. */
static struct edge sparse_plus(struct build *m, struct edge x)
{
    struct edge zero = build_number(m, build_dtype(x), 0);
    struct edge curve = build_with_number(
        m, "Mul", build_unary(m, "Square", build_with_number(m, "AddV2", x, 1)), 0.25);
    struct edge upper = build_select(m, build_with_number(m, "Less", x, 1), curve, x);
    return build_select(m, build_with_number(m, "LessEqual", x, -1), zero, upper);
}

/*
 * The projection onto the simplex (Martins and Astudillo, 2016): with z sorted downwards, the
 * threshold is (z_1 + ... + z_k - 1) / k for the largest k with 1 + k z_k > z_1 + ... + z_k.
 */
static struct edge sparsemax(struct build *m, struct edge x)
{
    const struct shape *shape = build_shape(m, x);
    int64_t classes = shape->rank > 0 ? shape->dims[shape->rank - 1] : -1;
    if (classes < 1) {
        build_refuse(m, INVALID, "sparsemax needs to know how many numbers there are");
        return x;
    }
    const int64_t last = -1;
    struct edge sorted = builder_add(
        &m->b, "TopKV2", "TopKV2", INPUTS(x, build_number(m, I32, (double)classes)), NO_ATTRS);
    struct edge sums = build_binary(m, "Cumsum", sorted, build_number(m, I32, -1));
    struct edge counts =
        builder_add(&m->b, "Range", "Range",
                    INPUTS(build_number(m, F32, 1), build_number(m, F32, (double)classes + 1),
                           build_number(m, F32, 1)),
                    NO_ATTRS);
    struct edge left = build_with_number(m, "AddV2", build_binary(m, "Mul", counts, sorted), 1);
    struct edge support = build_cast(m, build_binary(m, "Greater", left, sums), F32);
    struct edge k = build_reduce(m, "Sum", support, &last, 1, true);
    struct edge total =
        build_reduce(m, "Sum", build_binary(m, "Mul", support, sorted), &last, 1, true);
    struct edge threshold =
        build_binary(m, "RealDiv", build_with_number(m, "Sub", total, 1), k);
    return build_unary(m, "Relu", build_binary(m, "Sub", x, threshold));
}

static struct edge leaky_relu(struct build *m, struct edge x)
{
    return builder_add(&m->b, "LeakyRelu", "LeakyRelu", INPUTS(x),
                       ATTRS(attr_float("alpha", 0.2f)));
}

static struct edge mish(struct build *m, struct edge x)
{
    return build_binary(m, "Mul", x, build_unary(m, "Tanh", build_unary(m, "Softplus", x)));
}

static struct edge log_sigmoid(struct build *m, struct edge x)
{
    return build_unary(m, "Neg", build_unary(m, "Softplus", build_unary(m, "Neg", x)));
}

static struct edge hard_silu(struct build *m, struct edge x)
{
    return build_binary(m, "Mul", x, hard_sigmoid(m, x));
}

static struct edge hard_tanh(struct build *m, struct edge x)
{
    return clip(m, x, -1, 1);
}

static struct edge hard_shrink(struct build *m, struct edge x)
{
    return beyond(m, x, 0.5, x);
}

static struct edge tanh_shrink(struct build *m, struct edge x)
{
    return build_binary(m, "Sub", x, build_unary(m, "Tanh", x));
}

static struct edge sparse_sigmoid(struct build *m, struct edge x)
{
    return build_with_number(m, "Mul", build_with_number(m, "AddV2", clip(m, x, -1, 1), 1),
                             0.5);
}

/* Keras's default threshold is 0 with the value 0. */
static struct edge threshold(struct build *m, struct edge x)
{
    return build_unary(m, "Relu", x);
}

static const struct {
    const char *name;
    const char *op; /* the op that is it, or */
    struct edge (*build)(struct build *m, struct edge x);
} rows[] = {
    {"relu", "Relu", NULL},
    {"relu6", "Relu6", NULL},
    {"sigmoid", "Sigmoid", NULL},
    {"tanh", "Tanh", NULL},
    {"softmax", "Softmax", NULL},
    {"softplus", "Softplus", NULL},
    {"softsign", "Softsign", NULL},
    {"elu", "Elu", NULL},
    {"selu", "Selu", NULL},
    {"exponential", "Exp", NULL},
    {"log_softmax", "LogSoftmax", NULL},
    {"gelu", NULL, gelu},
    {"silu", NULL, times_sigmoid},
    {"swish", NULL, times_sigmoid},
    {"mish", NULL, mish},
    {"leaky_relu", NULL, leaky_relu},
    {"hard_sigmoid", NULL, hard_sigmoid},
    {"hard_silu", NULL, hard_silu},
    {"hard_swish", NULL, hard_silu},
    {"hard_tanh", NULL, hard_tanh},
    {"log_sigmoid", NULL, log_sigmoid},
    {"celu", NULL, celu},
    {"glu", NULL, glu},
    {"hard_shrink", NULL, hard_shrink},
    {"soft_shrink", NULL, soft_shrink},
    {"tanh_shrink", NULL, tanh_shrink},
    {"threshold", NULL, threshold},
    {"squareplus", NULL, squareplus},
    {"sparse_plus", NULL, sparse_plus},
    {"sparsemax", NULL, sparsemax},
    {"sparse_sigmoid", NULL, sparse_sigmoid},
};

struct edge build_activation(struct build *m, const char *name, struct edge x)
{
    for (int i = 0; name && i < ARRAY_LEN(rows); i++) {
        if (!strcmp(rows[i].name, name))
            return rows[i].op ? build_unary(m, rows[i].op, x) : rows[i].build(m, x);
    }
    return x;
}
