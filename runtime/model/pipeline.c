/* pipeline.c - parts of a batch that are under way on several stages at once, stage.h. */

#include "base/arena.h"
#include "runtime/model/replica.h"
#include "runtime/model/stage.h"
#include "runtime/op.h"
#include "runtime/spec/spec.h"

#define PART_SCOPE "part_%d"

struct pipeline {
    struct building *g;
    const struct stages *stages;
    int parts;
    const char *last;   /* the device of the last layer */
    struct node **done; /* by part and stage: once the stage has the part's gradients */
    struct edge *grads; /* summed up so far */
    int grads_count;
};

/* --- a batch in parts --- */

static void cut_into(struct pipeline *p, struct edge all, const char *device,
                     struct edge *parts)
{
    struct build *m = &p->g->m;
    m->b.device = device;
    struct edge first = all.from && p->parts > 1 ? build_split(m, all, 0, p->parts) : all;
    for (int i = 0; i < p->parts; i++)
        parts[i] = all.from && p->parts > 1 ? builder_output(first, i) : all;
}

/* Features where they are fed, targets where the loss is. */
static struct pass *passes_new(struct pipeline *p)
{
    struct building *g = p->g;
    struct arena *arena = g->m.arena;
    int features = g->data->features_count;
    struct pass *passes = arena_array(arena, (size_t)p->parts, sizeof(*passes));
    struct edge *cuts = arena_array(arena, (size_t)p->parts, sizeof(*cuts));
    struct pass whole = pass_fed(g, g->spec->data.batch_size);
    const char *outside = build_enter(&g->m, "parts");
    for (int i = 0; i < p->parts; i++)
        passes[i] = pass_new(g);
    for (int f = 0; f < features; f++) {
        cut_into(p, whole.features[f], stage_device(p->stages, 0), cuts);
        for (int i = 0; i < p->parts; i++)
            passes[i].features[f] = cuts[i];
    }
    cut_into(p, whole.target, p->last, cuts);
    for (int i = 0; i < p->parts; i++)
        passes[i].target = cuts[i];
    cut_into(p, whole.weight, p->last, cuts);
    for (int i = 0; i < p->parts; i++)
        passes[i].weight = cuts[i];
    build_leave(&g->m, outside);
    return passes;
}

/* --- one part --- */

/* Before part number `part` enters a stage, so many fewer must have left it. */
static void set_gates(struct pipeline *p, int part)
{
    for (int s = 0; s < p->stages->count; s++) {
        int left = part - (p->stages->count - s);
        p->stages->released[s] = left >= 0 ? p->done[left * p->stages->count + s] : NULL;
    }
}

static bool is_of(const struct pipeline *p, const struct build_weight *weight, int stage)
{
    for (int i = 0; i < p->g->spec->layers_count; i++)
        if (p->stages->numbers[i] == stage)
            return !strcmp(weight->device ? weight->device : "", stage_device(p->stages, i));
    return false;
}

/* What tells that a stage has all its gradients of a part; NULL: it has nothing to learn. */
static struct node *tell_done(struct pipeline *p, int stage, const struct edge *grads)
{
    struct build *m = &p->g->m;
    struct node **nodes = arena_array(m->arena, (size_t)p->grads_count, sizeof(*nodes));
    const char *device = NULL;
    int count = 0;
    for (int i = 0, n = 0; n < p->grads_count; i++) {
        if (!m->weights[i].face.trainable)
            continue;
        if (is_of(p, &m->weights[i], stage)) {
            device = m->weights[i].device;
            nodes[count++] = grads[n].from;
        }
        n++;
    }
    m->b.device = device;
    return count ? builder_group(&m->b, "done", nodes, count) : NULL;
}

static void add_up(struct pipeline *p, const struct edge *grads)
{
    struct build *m = &p->g->m;
    if (!p->grads) {
        p->grads = arena_copy(m->arena, grads, (size_t)p->grads_count * sizeof(*grads));
        return;
    }
    for (int i = 0, n = 0; n < p->grads_count && build_ok(m); i++) {
        if (!m->weights[i].face.trainable)
            continue;
        m->b.device = m->weights[i].device;
        p->grads[n] = build_binary(m, "AddV2", p->grads[n], grads[n]);
        n++;
    }
}

/* Its loss; the sums of the metrics. */
static struct edge build_part(struct pipeline *p, struct pass *pass, int part,
                              struct edge *sums)
{
    struct building *g = p->g;
    struct build *m = &g->m;
    const char *outside = build_enter(m, arena_printf(m->arena, PART_SCOPE, part));
    m->replica = part;
    set_gates(p, part);
    pass_run(g, pass, true);
    m->b.device = p->last;
    struct edge of_each = pass_losses(g, pass);
    struct edge loss = pass_loss(g, pass, of_each);
    pass_add_metrics(g, pass, of_each, sums);
    build_leave(m, outside);
    struct edge *grads = pass_gradients(g, loss, &p->grads_count);
    outside = build_enter(m, arena_printf(m->arena, PART_SCOPE, part));
    for (int s = 0; s < p->stages->count && build_ok(m); s++)
        p->done[part * p->stages->count + s] = tell_done(p, s, grads);
    if (build_ok(m))
        add_up(p, grads);
    build_leave(m, outside);
    return loss;
}

/* --- all of them --- */

static struct edge sum_of(struct build *m, const struct edge *xs, int count)
{
    return count == 1 ? xs[0] : builder_add(&m->b, "AddN", "AddN", xs, count, NO_ATTRS);
}

static void take_means(struct pipeline *p)
{
    struct build *m = &p->g->m;
    for (int i = 0, n = 0; p->parts > 1 && n < p->grads_count && build_ok(m); i++) {
        if (!m->weights[i].face.trainable)
            continue;
        m->b.device = m->weights[i].device;
        p->grads[n] = build_with_number(m, "Mul", p->grads[n], 1.0 / p->parts);
        n++;
    }
}

void pipeline_build(struct building *g, struct replica_result *out)
{
    struct build *m = &g->m;
    int metrics = g->spec->train.metrics_count + 1, first_updates = 0;
    struct pipeline p = {.g = g, .stages = g->stages, .parts = g->spec->strategy.micro_batches};
    if (!build_ok(m))
        return;
    size_t parts = (size_t)p.parts;
    p.last = stage_device(p.stages, g->spec->output);
    p.done = arena_array(m->arena, parts * (size_t)p.stages->count, sizeof(struct node *));
    struct edge *losses = arena_array(m->arena, parts, sizeof(*losses));
    struct edge *sums = arena_array(m->arena, parts * (size_t)metrics, sizeof(*sums));
    struct edge *own = arena_array(m->arena, parts, sizeof(*own));
    struct node **updates = NULL;
    struct pass *passes = passes_new(&p);
    for (int i = 0; i < p.parts && build_ok(m); i++) {
        losses[i] = build_part(&p, &passes[i], i, &sums[i * metrics]);
        if (i)
            continue;
        first_updates = m->updates_count;
        updates = arena_copy(m->arena, m->updates, (size_t)first_updates * sizeof(*updates));
    }
    memset(p.stages->released, 0, (size_t)p.stages->count * sizeof(struct node *));
    m->replica = 0;
    const char *outside = build_enter(m, "parts");
    take_means(&p);
    m->b.device = p.last;
    for (int i = 1; i < metrics && build_ok(m); i++) {
        for (int k = 0; k < p.parts; k++)
            own[k] = sums[k * metrics + i];
        out->sums[i] = sum_of(m, own, p.parts);
    }
    struct edge loss = sum_of(m, losses, p.parts);
    loss = p.parts > 1 ? build_with_number(m, "Mul", loss, 1.0 / p.parts) : loss;
    build_leave(m, outside);
    out->loss = builder_add(&m->b, "Identity", MODEL_LOSS, INPUTS(loss), NO_ATTRS);
    m->b.device = NULL;
    out->grads = p.grads;
    out->grads_count = p.grads_count;
    if (first_updates)
        memcpy(m->updates, updates, (size_t)first_updates * sizeof(*updates));
    m->updates_count = first_updates;
}
