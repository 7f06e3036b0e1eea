/* build_random.c - what is random in a training step: masks that follow from seed, purpose and
 * step.
 */

#include "base/arena.h"
#include "runtime/model/build.h"

/* Elastic: that of the shard, whoever works on it. */
static struct edge seed_of(struct build *m, const char *purpose)
{
    struct builder *b = &m->b;
    int replica = m->replica;
    if (!m->shards)
        return builder_scalar(b, "dropout/seed", I64, (double)build_seed(m, purpose));
    int64_t *seeds = arena_array(m->arena, (size_t)m->shards, sizeof(*seeds));
    for (m->replica = 0; m->replica < m->shards; m->replica++)
        seeds[m->replica] = build_seed(m, purpose);
    m->replica = replica;
    return builder_add(b, "GatherV2", "dropout/seed",
                       INPUTS(builder_ints(b, "dropout/seeds", I64, seeds, m->shards), m->shard,
                              builder_scalar(b, "dropout/axis", I32, 0)),
                       NO_ATTRS);
}

/* The numbers follow from (job seed, purpose, step) alone: a resumed run has the same ones. */
static struct edge numbers(struct build *m, const char *op, struct edge shape,
                           const char *purpose)
{
    struct builder *b = &m->b;
    struct edge first = seed_of(m, purpose);
    struct edge pair =
        builder_add(b, "Pack", "dropout/seeds", INPUTS(first, m->step), NO_ATTRS);
    return builder_add(
        b, op, "dropout/random_uniform", INPUTS(shape, pair),
        ATTRS(attr_type("dtype", F32), attr_type("T", I32), attr_type("Tseed", I64)));
}

struct edge build_dropout_mask(struct build *m, struct edge x, const struct shape *noise,
                               double rate, const char *purpose)
{
    struct builder *b = &m->b;
    struct edge shape = noise && shape_is_full(noise)
                            ? builder_ints(b, "dropout/shape", I32, noise->dims, noise->rank)
                            : build_shape_of(m, x);
    struct edge uniform = numbers(m, "StatelessRandomUniform", shape, purpose);
    struct edge limit = builder_scalar(b, "dropout/rate", F32, rate);
    struct edge keep = builder_add(b, "GreaterEqual", "dropout/GreaterEqual",
                                   INPUTS(uniform, limit), NO_ATTRS);
    return builder_add(b, "Cast", "dropout/Cast", INPUTS(keep),
                       ATTRS(attr_type("SrcT", BOOL), attr_type("DstT", (int)build_dtype(x))));
}

struct edge build_noise(struct build *m, struct edge x, const char *purpose)
{
    struct shape shape = *build_shape(m, x);
    struct edge dims = shape_is_full(&shape)
                           ? builder_ints(&m->b, "noise/shape", I32, shape.dims, shape.rank)
                           : build_shape_of(m, x);
    return build_cast(m, numbers(m, "StatelessRandomNormal", dims, purpose), build_dtype(x));
}
