/* model_initializer.c - how variables start: Keras's initialisers as stateless random ops. */

#include <math.h>

#include "base/arena.h"
#include "runtime/model_internal.h"

int64_t model_seed(const struct building *m, const char *purpose)
{
    /* FNV-1a over the name, then the finaliser of splitmix64 over both. */
    uint64_t x = UINT64_C(0xcbf29ce484222325);
    for (const char *c = purpose; *c; c++)
        x = (x ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    x += (uint64_t)m->spec->seed * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((x ^ (x >> 31)) >> 11); /* what a double keeps exact */
}

/* Inputs and outputs of one unit, as Keras counts them. */
static double fan(const struct shape *shape, enum spec_fan mode)
{
    double in = 1, out = 1;
    if (shape->rank == 1) {
        in = out = (double)shape->dims[0];
    } else if (shape->rank >= 2) {
        double field = 1;
        for (int i = 0; i < shape->rank - 2; i++)
            field *= (double)shape->dims[i];
        in = field * (double)shape->dims[shape->rank - 2];
        out = field * (double)shape->dims[shape->rank - 1];
    }
    double wanted = mode == FAN_IN ? in : mode == FAN_OUT ? out : (in + out) / 2;
    return wanted > 1 ? wanted : 1;
}

static struct edge constant(struct building *m, const struct shape *shape, double value)
{
    struct edge dims = builder_ints(&m->b, "shape", I32, shape->dims, shape->rank);
    struct edge each = builder_scalar(&m->b, "value", F32, value);
    return builder_add(&m->b, "Fill", "Fill", INPUTS(dims, each), NO_ATTRS);
}

/* `op` gives standard numbers; they are then scaled and shifted. */
static struct edge random_values(struct building *m, const char *name, const char *op,
                                 const char *label, const struct shape *shape, double scale,
                                 double shift)
{
    struct builder *b = &m->b;
    struct edge dims = builder_ints(b, "shape", I32, shape->dims, shape->rank);
    const int64_t seeds[2] = {model_seed(m, name), 0};
    struct edge seed = builder_ints(b, "seed", I64, seeds, 2);
    struct edge standard = builder_add(
        b, op, label, INPUTS(dims, seed),
        ATTRS(attr_type("dtype", F32), attr_type("T", I32), attr_type("Tseed", I64)));
    struct edge by = builder_scalar(b, "scale", F32, scale);
    struct edge scaled = builder_add(b, "Mul", "mul", INPUTS(standard, by), NO_ATTRS);
    if (shift == 0)
        return scaled;
    struct edge to = builder_scalar(b, "shift", F32, shift);
    return builder_add(b, "AddV2", "add", INPUTS(scaled, to), NO_ATTRS);
}

struct edge model_initializer(struct building *m, const char *name,
                              const struct spec_initializer *init, const struct shape *shape)
{
    const char *outside = m->b.scope;
    m->b.scope = arena_printf(m->arena, "%s/Initializer/", name);
    double variance = init->a / fan(shape, init->fan);
    /* A normal cut at two deviations is narrower than asked for by this factor. */
    const double cut = 0.87962566103423978;
    struct edge value = {0};
    switch (init->distribution) {
    case DISTRIBUTION_CONSTANT:
        value = constant(m, shape, init->a);
        break;
    case DISTRIBUTION_UNIFORM:
        value = random_values(m, name, "StatelessRandomUniform", "random_uniform", shape,
                              init->b - init->a, init->a);
        break;
    case DISTRIBUTION_NORMAL:
        value = random_values(m, name, "StatelessRandomNormal", "random_normal", shape, init->b,
                              init->a);
        break;
    case DISTRIBUTION_TRUNCATED_NORMAL:
        value = random_values(m, name, "StatelessTruncatedNormal", "truncated_normal", shape,
                              init->b, init->a);
        break;
    case DISTRIBUTION_SCALED_UNIFORM:
        value = random_values(m, name, "StatelessRandomUniform", "random_uniform", shape,
                              2 * sqrt(3 * variance), -sqrt(3 * variance));
        break;
    case DISTRIBUTION_SCALED_NORMAL:
        value = random_values(m, name, "StatelessRandomNormal", "random_normal", shape,
                              sqrt(variance), 0);
        break;
    case DISTRIBUTION_SCALED_TRUNCATED_NORMAL:
        value = random_values(m, name, "StatelessTruncatedNormal", "truncated_normal", shape,
                              sqrt(variance) / cut, 0);
        break;
    }
    m->b.scope = outside;
    return value;
}
