/* replica.c - see replica.h. */

#include "runtime/model/replica.h"

#include "base/arena.h"
#include "runtime/op.h"
#include "runtime/spec/spec.h"

static const char *device_of(enum spec_role role, int index, struct arena *arena)
{
    return arena_printf(arena, "/job:%s/task:%d", spec_role_name(role), index);
}

const char *replica_device(const struct build *m, int worker)
{
    return device_of(ROLE_WORKER, m->hosts ? m->hosts[worker] : worker, m->arena);
}

void replica_begin(struct building *g)
{
    struct build *m = &g->m;
    int servers = g->spec->tasks[ROLE_PS].replicas;
    if (spec_tasks(g->spec) == 1)
        return;
    m->servers_count = servers ? servers : 1;
    m->server_bytes = arena_array(m->arena, (size_t)m->servers_count, sizeof(*m->server_bytes));
    const char **names = arena_array(m->arena, (size_t)m->servers_count, sizeof(*names));
    for (int i = 0; i < m->servers_count; i++)
        names[i] = device_of(servers ? ROLE_PS : ROLE_WORKER, i, m->arena);
    m->servers = names;
    if (g->spec->strategy.mode != MODE_ALLREDUCE)
        return;
    m->mirrors_count = g->spec->tasks[ROLE_WORKER].replicas;
    const char **mirrors = arena_array(m->arena, (size_t)m->mirrors_count, sizeof(*mirrors));
    for (int i = 0; i < m->mirrors_count; i++)
        mirrors[i] = replica_device(m, i);
    m->mirrors = mirrors;
}

void replica_enter(struct building *g, int worker)
{
    struct build *m = &g->m;
    m->replica = worker;
    m->b.device = replica_device(m, worker);
    if (m->mirrors)
        m->step = build_weight_read(m, g->step);
}

void replica_leave(struct building *g)
{
    struct build *m = &g->m;
    if (m->mirrors && m->replica)
        replica_enter(g, 0);
    m->replica = 0;
    m->b.device = NULL;
}

/* --- one batch for all --- */

/* Equal parts of what is fed to the first worker. */
static struct edge *parts_of(struct build *m, struct edge all, int count)
{
    struct edge *parts = arena_array(m->arena, (size_t)count, sizeof(*parts));
    if (!all.from || count == 1) {
        parts[0] = all;
        return parts;
    }
    struct edge first = build_split(m, all, 0, count);
    for (int i = 0; i < count; i++)
        parts[i] = builder_output(first, i);
    return parts;
}

/* A pass for each worker, with its part of each input. */
static struct pass *passes_new(struct building *g, int workers)
{
    struct build *m = &g->m;
    int features = g->data->features_count;
    struct pass *passes = arena_array(m->arena, (size_t)workers, sizeof(*passes));
    struct pass whole = pass_fed(g, g->spec->data.batch_size * workers);
    const char *outside = build_enter(m, "replicas");
    for (int i = 0; i < workers; i++)
        passes[i] = pass_new(g);
    for (int f = 0; f < features; f++) {
        struct edge *parts = parts_of(m, whole.features[f], workers);
        for (int i = 0; i < workers; i++)
            passes[i].features[f] = parts[i];
    }
    struct edge *targets = parts_of(m, whole.target, workers);
    struct edge *weights = parts_of(m, whole.weight, workers);
    for (int i = 0; i < workers; i++) {
        passes[i].target = targets[i];
        passes[i].weight = weights[i];
    }
    build_leave(m, outside);
    return passes;
}

/* --- what comes of all --- */

static struct edge sum_of(struct build *m, const struct edge *xs, int count)
{
    return count == 1 ? xs[0] : builder_add(&m->b, "AddN", "AddN", xs, count, NO_ATTRS);
}

static struct edge mean_of(struct build *m, const struct edge *xs, int count)
{
    struct edge sum = sum_of(m, xs, count);
    return count == 1 ? sum : build_with_number(m, "Mul", sum, 1.0 / count);
}

/* --- one worker's --- */

/*
 * Its gradients, as its update or the mean of all takes them: rounded here if they travel in
 * 16 bits, and widened again where the variable is.
 */
static void travel(struct building *g, struct edge *grads, int count)
{
    struct build *m = &g->m;
    enum dtype dtype = (enum dtype)g->spec->strategy.compress;
    const char *here = m->b.device;
    for (int i = 0, n = 0; dtype != F32 && i < m->weights_count && n < count && build_ok(m);
         i++) {
        if (!m->weights[i].face.trainable)
            continue;
        struct edge narrow = build_cast(m, grads[n], dtype);
        m->b.device = m->weights[i].device;
        grads[n++] = build_cast(m, narrow, F32);
        m->b.device = here;
    }
}

/* The mean of each gradient, where its variable is. */
static void mean_gradients(struct build *m, struct edge *const *grads, int workers,
                           struct replica_result *out)
{
    struct edge *each = arena_array(m->arena, (size_t)workers, sizeof(*each));
    out->grads = arena_array(m->arena, (size_t)out->grads_count, sizeof(*out->grads));
    for (int i = 0, n = 0; i < m->weights_count && n < out->grads_count && build_ok(m); i++) {
        if (!m->weights[i].face.trainable)
            continue;
        for (int w = 0; w < workers; w++)
            each[w] = grads[w][n];
        m->b.device = m->weights[i].device;
        out->grads[n++] = mean_of(m, each, workers);
    }
}

void replica_build(struct building *g, struct replica_result *out)
{
    struct build *m = &g->m;
    int workers = g->spec->tasks[ROLE_WORKER].replicas;
    int metrics = g->spec->train.metrics_count + 1;
    struct edge *losses = arena_array(m->arena, (size_t)workers, sizeof(*losses));
    struct edge *sums = arena_array(m->arena, (size_t)metrics * (size_t)workers, sizeof(*sums));
    struct edge **grads = arena_array(m->arena, (size_t)workers, sizeof(struct edge *));
    struct node **updates = NULL;
    int updates_count = 0;
    m->b.device = replica_device(m, 0);
    struct pass *passes = passes_new(g, workers);
    for (int w = 0; w < workers && build_ok(m); w++) {
        const char *outside = build_enter(m, arena_printf(m->arena, REPLICA_SCOPE, w));
        replica_enter(g, w);
        pass_run(g, &passes[w], true);
        struct edge of_each = pass_losses(g, &passes[w]);
        losses[w] = pass_loss(g, &passes[w], of_each);
        struct edge *own = arena_array(m->arena, (size_t)metrics, sizeof(*own));
        pass_add_metrics(g, &passes[w], of_each, own);
        for (int i = 0; i < metrics; i++)
            sums[i * workers + w] = own[i];
        build_leave(m, outside);
        grads[w] = pass_gradients(g, losses[w], &out->grads_count);
        if (build_ok(m) && !m->mirrors)
            travel(g, grads[w], out->grads_count);
        if (!w) {
            updates_count = m->updates_count;
            updates =
                arena_copy(m->arena, m->updates, (size_t)updates_count * sizeof(*updates));
        }
    }
    replica_leave(g);
    if (!build_ok(m))
        return;
    const char *outside = build_enter(m, "replicas");
    if (m->mirrors) {
        replica_reduce(g, grads, out->grads_count);
        out->mirrored = grads;
        out->grads = grads[0];
    } else {
        mean_gradients(m, grads, workers, out);
    }
    m->b.device = replica_device(m, 0);
    for (int i = 1; i < metrics; i++)
        out->sums[i] = sum_of(m, &sums[i * workers], workers);
    struct edge loss = mean_of(m, losses, workers);
    build_leave(m, outside);
    out->loss = builder_add(&m->b, "Identity", MODEL_LOSS, INPUTS(loss), NO_ATTRS);
    m->b.device = NULL;
    if (updates_count)
        memcpy(m->updates, updates, (size_t)updates_count * sizeof(*updates));
    m->updates_count = updates_count;
}

void replica_build_one(struct building *g, int worker, struct replica_result *out)
{
    struct build *m = &g->m;
    m->updates_count = 0;
    replica_enter(g, worker);
    const char *outside = build_enter(m, arena_printf(m->arena, REPLICA_SCOPE, worker));
    struct pass pass = pass_fed(g, g->spec->data.batch_size);
    pass_run(g, &pass, true);
    struct edge of_each = pass_losses(g, &pass);
    out->loss = pass_loss(g, &pass, of_each);
    pass_add_metrics(g, &pass, of_each, out->sums);
    build_leave(m, outside);
    out->grads = pass_gradients(g, out->loss, &out->grads_count);
    if (build_ok(m))
        travel(g, out->grads, out->grads_count);
    replica_leave(g);
}

void replica_pin(struct build *m)
{
    if (!build_ok(m))
        return;
    for (int i = 0; i < graph_count(m->b.graph); i++) {
        struct node *node = graph_node(m->b.graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            const struct node *from = node->inputs[k].from;
            if (from && from->requested_device[0] && !strcmp(from->op->name, "VarHandleOp"))
                node->requested_device = from->requested_device;
        }
    }
}
