/* replica_gather.c - gradients of those workers that come first. */

#include "base/arena.h"
#include "runtime/model/replica.h"
#include "runtime/op.h"

/* The weight behind the next trainable variable, from *weight on. */
static const struct build_weight *next_trainable(const struct build *m, int *weight)
{
    while (!m->weights[*weight].face.trainable)
        (*weight)++;
    return &m->weights[(*weight)++];
}

void replica_gather_new(struct building *g, struct replica_gather *out)
{
    struct build *m = &g->m;
    const char *here = m->b.device;
    *out = (struct replica_gather){0};
    for (int i = 0; i < m->weights_count; i++)
        out->count += m->weights[i].face.trainable;
    out->accumulators = arena_array(m->arena, (size_t)out->count, sizeof(struct edge));
    for (int i = 0, weight = 0; i < out->count && build_ok(m); i++) {
        const struct build_weight *of = next_trainable(m, &weight);
        const char *name = arena_printf(m->arena, "gather/%s", of->face.name);
        m->b.device = of->device;
        out->accumulators[i] = builder_add(
            &m->b, "ConditionalAccumulator", name, NO_INPUTS,
            ATTRS(attr_type("dtype", F32), attr_shape("shape", &of->face.shape),
                  attr_string("shared_name", name), attr_string("reduction_type", "MEAN")));
    }
    m->b.device = here;
}

/* One op for each accumulator, beside it; what waits for all of them. */
static struct node *tell_all(struct building *g, const struct replica_gather *gather,
                             const char *op, struct edge number, const struct edge *grads)
{
    struct build *m = &g->m;
    const char *here = m->b.device;
    struct node **nodes = arena_array(m->arena, (size_t)gather->count, sizeof(*nodes));
    for (int i = 0, weight = 0; i < gather->count && build_ok(m); i++) {
        struct edge inputs[3] = {gather->accumulators[i], number};
        if (grads)
            inputs[2] = grads[i];
        m->b.device = next_trainable(m, &weight)->device;
        nodes[i] = builder_add(&m->b, op, op, inputs, grads ? 3 : 2, NO_ATTRS).from;
    }
    m->b.device = here;
    return build_ok(m) ? builder_group(&m->b, "all", nodes, gather->count) : NULL;
}

struct node *replica_give(struct building *g, const struct replica_gather *gather, int worker,
                          struct edge number, const struct edge *grads)
{
    struct build *m = &g->m;
    const char *outside = build_enter(m, arena_printf(m->arena, REPLICA_SCOPE "/give", worker));
    struct node *all = tell_all(g, gather, "AccumulatorApplyGradient", number, grads);
    build_leave(m, outside);
    return all;
}

struct node *replica_set_number(struct building *g, const struct replica_gather *gather,
                                struct edge number)
{
    const char *outside = build_enter(&g->m, "gather");
    struct node *all = tell_all(g, gather, "AccumulatorSetGlobalStep", number, NULL);
    build_leave(&g->m, outside);
    return all;
}

struct edge *replica_take(struct building *g, const struct replica_gather *gather, int needed)
{
    struct build *m = &g->m;
    struct edge *grads = arena_array(m->arena, (size_t)gather->count, sizeof(*grads));
    const char *here = m->b.device, *outside = build_enter(m, "gather");
    for (int i = 0, weight = 0; i < gather->count && build_ok(m); i++) {
        m->b.device = next_trainable(m, &weight)->device;
        struct edge wanted = builder_scalar(&m->b, "needed", I32, needed);
        grads[i] = builder_add(&m->b, "AccumulatorTakeGradient", "take",
                               INPUTS(gather->accumulators[i], wanted),
                               ATTRS(attr_type("dtype", F32)));
    }
    m->b.device = here;
    build_leave(m, outside);
    return grads;
}
