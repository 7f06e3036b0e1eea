/* making_optimizer.c - gradient descent, momentum and Adam; see making.h. */

#include "tests/bench/making.h"

static void update(struct making *m, const char *op, const struct edge *inputs, int count)
{
    m->updates[m->updates_count++] = making_add(m, op, inputs, count).from;
}

static void descend(struct making *m, const struct edge *gradients)
{
    struct edge rate = builder_scalar(&m->b, "rate", F32, 0.01);
    for (int i = 0; i < m->count; i++)
        update(m, "ResourceApplyGradientDescent", INPUTS(m->handles[i], rate, gradients[i]));
}

/* A variable beside trained variable `i`: the same shape, all zeros. */
static struct edge slot(struct making *m, const char *prefix, int i)
{
    char name[16];
    snprintf(name, sizeof(name), "%s%d", prefix, i);
    return making_filled(m, name, node_attr_shape(m->handles[i].from, "shape"), 0);
}

/* Momentum 0.9, and the gradient of half the weights' squares times 1e-4. */
static void momentum(struct making *m, const struct edge *gradients)
{
    struct edge rate = builder_scalar(&m->b, "rate", F32, 0.1);
    struct edge keep = builder_scalar(&m->b, "momentum", F32, 0.9);
    struct edge decay = builder_scalar(&m->b, "decay", F32, 1e-4);
    for (int i = 0; i < m->count; i++) {
        struct edge value = making_read_variable(m, m->handles[i]);
        struct edge pull = making_add(m, "Mul", INPUTS(decay, value));
        struct edge gradient = making_add(m, "AddV2", INPUTS(gradients[i], pull));
        update(m, "ResourceApplyMomentum",
               INPUTS(m->handles[i], slot(m, "m", i), rate, gradient, keep));
    }
}

/* The next power of beta, and its assignment. */
static struct edge power(struct making *m, const char *name, struct edge beta)
{
    struct edge handle = making_filled(m, name, &SHAPE_SCALAR, 1);
    struct edge next = making_add(m, "Mul", INPUTS(making_read_variable(m, handle), beta));
    m->updates[m->updates_count++] =
        builder_add(&m->b, "AssignVariableOp", "advance", INPUTS(handle, next),
                    ATTRS(attr_type("dtype", F32)))
            .from;
    return next;
}

static void adam(struct making *m, const struct edge *gradients)
{
    struct edge rate = builder_scalar(&m->b, "rate", F32, 1e-3);
    struct edge beta1 = builder_scalar(&m->b, "beta1", F32, 0.9);
    struct edge beta2 = builder_scalar(&m->b, "beta2", F32, 0.999);
    struct edge epsilon = builder_scalar(&m->b, "epsilon", F32, 1e-8);
    struct edge power1 = power(m, "power1", beta1);
    struct edge power2 = power(m, "power2", beta2);
    for (int i = 0; i < m->count; i++)
        update(m, "ResourceApplyAdam",
               INPUTS(m->handles[i], slot(m, "m", i), slot(m, "v", i), power1, power2, rate,
                      beta1, beta2, epsilon, gradients[i]));
}

void making_optimizer(struct making *m, const struct bench_case *c,
                      const struct edge *gradients)
{
    if (c->optimizer == BENCH_SGD)
        descend(m, gradients);
    else if (c->optimizer == BENCH_MOMENTUM)
        momentum(m, gradients);
    else
        adam(m, gradients);
}
