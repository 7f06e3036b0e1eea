/* replica_shards.c - gradients of a batch's shards, whoever works them out. */

#include "base/arena.h"
#include "runtime/model/replica.h"
#include "runtime/op.h"
#include "runtime/spec/spec.h"

/* The weight behind the next trainable variable, from *weight on. */
static const struct build_weight *next_trainable(const struct build *m, int *weight)
{
    while (!m->weights[*weight].face.trainable)
        (*weight)++;
    return &m->weights[(*weight)++];
}

struct node *replica_shards_new(struct building *g, struct replica_shards *out)
{
    struct build *m = &g->m;
    const char *here = m->b.device;
    *out = (struct replica_shards){.number = g->spec->tasks[ROLE_WORKER].replicas};
    for (int i = 0; i < m->weights_count; i++)
        out->count += m->weights[i].face.trainable;
    out->slots = arena_array(m->arena, (size_t)out->count, sizeof(*out->slots));
    struct node **begins = arena_array(m->arena, (size_t)out->count, sizeof(*begins));
    for (int i = 0, weight = 0; i < out->count && build_ok(m); i++) {
        const struct build_weight *of = next_trainable(m, &weight);
        const char *name = arena_printf(m->arena, "shards/%s", of->face.name);
        struct shape shape = {.rank = of->face.shape.rank + 1, .dims = {out->number}};
        memcpy(shape.dims + 1, of->face.shape.dims,
               (size_t)of->face.shape.rank * sizeof(*shape.dims));
        m->b.device = of->device;
        out->slots[i] = builder_add(&m->b, "VarHandleOp", name, NO_INPUTS,
                                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &shape),
                                          attr_string("shared_name", name)));
        struct edge zeros =
            builder_add(&m->b, "Fill", "shards/zeros",
                        INPUTS(builder_ints(&m->b, "shards/shape", I32, shape.dims, shape.rank),
                               builder_scalar(&m->b, "shards/zero", F32, 0)),
                        NO_ATTRS);
        begins[i] = builder_add(&m->b, "AssignVariableOp", "shards/begin",
                                INPUTS(out->slots[i], zeros), ATTRS(attr_type("dtype", F32)))
                        .from;
    }
    m->b.device = here;
    return build_ok(m) ? builder_group(&m->b, "shards/begun", begins, out->count) : NULL;
}

struct node *replica_shards_give(struct building *g, const struct replica_shards *shards,
                                 int worker, struct edge shard, const struct edge *grads)
{
    struct build *m = &g->m;
    const char *here = m->b.device;
    const char *outside = build_enter(m, arena_printf(m->arena, REPLICA_SCOPE "/give", worker));
    struct node **nodes = arena_array(m->arena, (size_t)shards->count, sizeof(*nodes));
    for (int i = 0, weight = 0; i < shards->count && build_ok(m); i++) {
        m->b.device = next_trainable(m, &weight)->device;
        nodes[i] = builder_add(&m->b, "ResourceScatterUpdate", "give",
                               INPUTS(shards->slots[i], shard, grads[i]),
                               ATTRS(attr_type("dtype", F32), attr_type("Tindices", I64)))
                       .from;
    }
    m->b.device = here;
    struct node *all = build_ok(m) ? builder_group(&m->b, "all", nodes, shards->count) : NULL;
    build_leave(m, outside);
    return all;
}

/* The same sum as replica.c takes, so that it has the same bits. */
static struct edge mean(struct build *m, struct edge slot, int number)
{
    struct edge *rows = arena_array(m->arena, (size_t)number, sizeof(*rows));
    struct edge all = builder_add(&m->b, "ReadVariableOp", "ReadVariableOp", INPUTS(slot),
                                  ATTRS(attr_type("dtype", F32)));
    struct edge first =
        builder_add(&m->b, "Unpack", "Unpack", INPUTS(all), ATTRS(attr_int("num", number)));
    if (number == 1 || !build_ok(m))
        return first;
    for (int i = 0; i < number; i++)
        rows[i] = builder_output(first, i);
    struct edge sum = builder_add(&m->b, "AddN", "AddN", rows, number, NO_ATTRS);
    return build_with_number(m, "Mul", sum, 1.0 / number);
}

struct edge *replica_shards_take(struct building *g, const struct replica_shards *shards)
{
    struct build *m = &g->m;
    struct edge *grads = arena_array(m->arena, (size_t)shards->count, sizeof(*grads));
    const char *here = m->b.device, *outside = build_enter(m, "shards");
    for (int i = 0, weight = 0; i < shards->count && build_ok(m); i++) {
        m->b.device = next_trainable(m, &weight)->device;
        grads[i] = mean(m, shards->slots[i], shards->number);
    }
    m->b.device = here;
    build_leave(m, outside);
    return grads;
}
