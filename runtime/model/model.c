/* model.c - from a spec's layers to one graph: forward, loss, gradients, updates, evaluation.
 */

#include "runtime/model/model.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/model/imported.h"
#include "runtime/model/optimizer.h"
#include "runtime/model/pass.h"
#include "runtime/model/replica.h"
#include "runtime/model/stage.h"
#include "runtime/resource.h"
#include "runtime/spec/spec.h"

static void add_step(struct building *g)
{
    struct build *m = &g->m;
    struct edge start = builder_scalar(&m->b, MODEL_STEP "/Initializer/zeros", I64, 0);
    g->step = build_weight_add(m, MODEL_STEP, &SHAPE_SCALAR, I64, false, start);
    if (g->step >= 0)
        m->step = builder_add(&m->b, "ReadVariableOp", MODEL_STEP "/Read",
                              INPUTS(build_weight_handle(m, g->step)),
                              ATTRS(attr_type("dtype", I64)));
}

/*
 * Updates wait for all gradients: no variable changes while a pass still reads it, and all
 * updates can be done in one sweep.  What does them all; NULL after a failure.
 */
static struct node *add_updates(struct building *g, const struct edge *grads, int trainable,
                                const char *name)
{
    struct build *m = &g->m;
    if (!build_ok(m))
        return NULL;
    struct node **nodes = arena_array(m->arena,
                                      (size_t)trainable + (size_t)optimizer_updates_max(m) + 1 +
                                          (size_t)m->updates_count,
                                      sizeof(*nodes));
    for (int i = 0; i < trainable; i++)
        nodes[i] = grads[i].from;
    struct node *after = builder_group(&m->b, "gradients/done", nodes, trainable);
    int updates = 0;
    m->pointer = "/train/optimizer";
    optimizer_build(m, g->spec->train.optimizer, grads, after, nodes, &updates);
    struct edge one = builder_scalar(&m->b, "train/one", I64, 1);
    if (!build_ok(m))
        return NULL;
    struct edge count = builder_add(&m->b, "AssignAddVariableOp", "train/AssignAddVariableOp",
                                    INPUTS(build_weight_handle(m, g->step), one),
                                    ATTRS(attr_type("dtype", I64)));
    if (build_ok(m)) /* this step's number has been read, and nothing fails any more */
        graph_add_control(m->b.graph, count.from, after);
    nodes[updates++] = count.from;
    for (int i = 0; i < m->updates_count; i++)
        nodes[updates++] = m->updates[i];
    struct node *all = builder_group(&m->b, name, nodes, updates);
    return build_ok(m) ? all : NULL;
}

/* Each worker updates its own variables by the same means; the first has moving averages. */
static void add_mirrored_updates(struct building *g, const struct replica_result *all)
{
    struct build *m = &g->m;
    struct node **each = arena_array(m->arena, (size_t)m->mirrors_count, sizeof(*each));
    int count = 0;
    for (int w = 0; w < m->mirrors_count && build_ok(m); w++) {
        if (m->hosts && m->hosts[w] != w)
            continue;
        replica_enter(g, w);
        m->updates_count = w ? 0 : m->updates_count;
        each[count++] = add_updates(g, all->mirrored[w], all->grads_count,
                                    arena_printf(m->arena, REPLICA_SCOPE "/train", w));
    }
    replica_leave(g);
    if (build_ok(m))
        builder_group(&m->b, MODEL_TRAIN, each, count);
    if (build_ok(m))
        g->mirror = builder_group(&m->b, "mirror", m->copies, m->copies_count)->name;
}

static const char *output_text(struct build *m, struct edge edge)
{
    return build_ok(m) ? arena_printf(m->arena, "%s:%d", edge.from->name, edge.output) : "";
}

static struct edge number_fed(struct build *m, const char *name)
{
    return builder_add(&m->b, "Placeholder", name, NO_INPUTS,
                       ATTRS(attr_type("dtype", I64), attr_shape("shape", &SHAPE_SCALAR)));
}

/* Where gradients wait for an update of all. */
struct waiting {
    struct replica_gather gather;
    struct replica_shards shards;
};

static struct node *give(struct building *g, int worker, struct edge number,
                         const struct replica_result *own, struct waiting *waiting)
{
    if (!g->spec->strategy.min_workers) {
        if (!worker)
            replica_gather_new(g, &waiting->gather);
        return replica_give(g, &waiting->gather, worker, number, own->grads);
    }
    if (!worker) {
        const struct node *begin = replica_shards_new(g, &waiting->shards);
        g->begin = begin ? begin->name : NULL;
    }
    return replica_shards_give(g, &waiting->shards, worker, number, own->grads);
}

/* What one worker's gradients are for: an update of their own, or one of all. */
static void build_step(struct building *g, int worker, const struct replica_result *own,
                       struct waiting *waiting)
{
    struct build *m = &g->m;
    struct model_step *step = &g->steps[worker];
    m->b.device = replica_device(m, worker);
    if (g->spec->strategy.mode == MODE_ASYNC) {
        const struct node *all = add_updates(g, own->grads, own->grads_count, MODEL_TRAIN);
        step->train = all ? all->name : NULL;
    } else if (build_ok(m)) {
        struct edge number = m->shard;
        if (!m->shards)
            number = number_fed(m, arena_printf(m->arena, REPLICA_SCOPE "/number", worker));
        step->number = build_ok(m) ? number.from->name : NULL;
        struct node *all[2] = {give(g, worker, number, own, waiting)};
        if (build_ok(m) && !worker && m->updates_count)
            all[1] = builder_group(&m->b, "averages", m->updates, m->updates_count);
        const struct node *done =
            build_ok(m) ? builder_group(&m->b, "given", all, all[1] ? 2 : 1) : NULL;
        step->train = build_ok(m) ? done->name : NULL;
    }
    m->b.device = NULL;
}

/* The update by those gradients that come first. */
static void build_gathered(struct building *g, const struct replica_gather *gather)
{
    struct build *m = &g->m;
    m->updates_count = 0; /* they are the first worker's */
    m->b.device = replica_device(m, 0);
    g->begin_number = "gather/begin";
    const struct node *begin = replica_set_number(g, gather, number_fed(m, g->begin_number));
    g->begin = build_ok(m) ? begin->name : NULL;
    int needed = g->spec->tasks[ROLE_WORKER].replicas - g->spec->strategy.backup;
    add_updates(g, replica_take(g, gather, needed), gather->count, MODEL_TRAIN);
    m->b.device = NULL;
}

static void build_from_shards(struct building *g, const struct replica_shards *shards)
{
    struct build *m = &g->m;
    m->updates_count = 0; /* they are the first worker's */
    m->b.device = replica_device(m, 0);
    add_updates(g, replica_shards_take(g, shards), shards->count, MODEL_TRAIN);
    m->b.device = NULL;
}

/* The passes of this worker are on whichever shard is told. */
static void begin_shards(struct building *g, int worker)
{
    struct build *m = &g->m;
    m->b.device = replica_device(m, worker);
    m->shards = g->steps_count;
    m->shard = number_fed(m, arena_printf(m->arena, REPLICA_SCOPE "/number", worker));
    m->b.device = NULL;
}

/* Each worker with a batch of its own. */
static void build_each(struct building *g)
{
    struct build *m = &g->m;
    int metrics = g->spec->train.metrics_count + 1;
    struct waiting waiting = {0};
    g->steps_count = g->spec->tasks[ROLE_WORKER].replicas;
    g->steps = arena_array(m->arena, (size_t)g->steps_count, sizeof(*g->steps));
    for (int w = 0; w < g->steps_count && build_ok(m); w++) {
        const char **sums = arena_array(m->arena, (size_t)metrics, sizeof(*sums));
        struct replica_result own = {
            .sums = arena_array(m->arena, (size_t)metrics, sizeof(*own.sums))};
        if (g->spec->strategy.min_workers)
            begin_shards(g, w);
        replica_build_one(g, w, &own);
        own.sums[0] = own.loss;
        for (int i = 0; i < metrics; i++)
            sums[i] = output_text(m, own.sums[i]);
        g->steps[w] = (struct model_step){.scope = arena_printf(m->arena, REPLICA_SCOPE "/", w),
                                          .sums = sums};
        build_step(g, w, &own, &waiting);
    }
    m->shards = 0;
    if (g->spec->strategy.backup && build_ok(m))
        build_gathered(g, &waiting.gather);
    if (g->spec->strategy.min_workers && build_ok(m))
        build_from_shards(g, &waiting.shards);
    for (int i = 0; i < metrics && build_ok(m); i++)
        g->metrics[i].sums = g->steps[0].sums[i];
}

static void build_training(struct building *g)
{
    const struct spec *spec = g->spec;
    int metrics = spec->train.metrics_count + 1, trainable = 0;
    struct replica_result all = {
        .sums = arena_array(g->m.arena, (size_t)metrics, sizeof(*all.sums))};
    add_step(g);
    bool apart = spec->strategy.mode == MODE_ASYNC || spec->strategy.backup ||
                 (spec->strategy.mode == MODE_SYNC && spec->strategy.min_workers);
    if (spec_replicates(spec) && apart) {
        build_each(g);
        return;
    }
    if (spec->strategy.mode == MODE_PIPELINE) {
        pipeline_build(g, &all);
        trainable = all.grads_count;
    } else if (spec_replicates(spec)) {
        replica_build(g, &all);
        trainable = all.grads_count;
    } else {
        struct pass pass = pass_fed(g, spec->data.batch_size);
        pass_run(g, &pass, true);
        struct edge losses = pass_losses(g, &pass);
        all.loss = pass_loss(g, &pass, losses);
        pass_add_metrics(g, &pass, losses, all.sums);
        all.grads = pass_gradients(g, all.loss, &trainable);
    }
    g->m.b.device = NULL;
    all.sums[0] = all.loss;
    for (int i = 0; i < metrics && build_ok(&g->m); i++)
        g->metrics[i].sums = output_text(&g->m, all.sums[i]);
    if (all.mirrored)
        add_mirrored_updates(g, &all);
    else
        add_updates(g, all.grads, trainable, MODEL_TRAIN);
}

static void build_evaluation(struct building *g)
{
    struct build *m = &g->m;
    const char *outside = m->b.scope;
    int metrics = g->spec->train.metrics_count + 1;
    struct edge *sums = arena_array(m->arena, (size_t)metrics, sizeof(*sums));
    m->b.scope = MODEL_EVAL;
    m->b.device = spec_replicates(g->spec) ? replica_device(m, 0) : NULL;
    struct pass pass = pass_fed(g, -1);
    pass_run(g, &pass, false);
    pass_add_metrics(g, &pass, pass_losses(g, &pass), sums);
    for (int i = 0; i < metrics && build_ok(m); i++)
        g->metrics[i].eval_sums = output_text(m, sums[i]);
    struct edge prediction = pass_prediction(g, &pass);
    g->output = output_text(m, prediction);
    m->b.scope = outside;
    m->b.device = NULL;
}

static int64_t parameters(const struct building *g)
{
    int64_t count = 0;
    for (int i = 0; i < g->spec->layers_count; i++)
        count += g->layers[i].parameters;
    return count;
}

/* Whether all parts of it are there and take the data. */
static bool summary_of_graph(const struct spec *spec, const struct model_data *data,
                             struct model_summary *out, struct error *err)
{
    struct model model;
    if (!imported_build(spec, data, &model, err))
        return false;
    *out = (struct model_summary){.parameters = model.summary.parameters};
    model_release(&model);
    return true;
}

bool model_summary(const struct spec *spec, const struct model_data *data, struct arena *arena,
                   struct model_summary *out, struct error *err)
{
    if (spec->graph.meta_graph)
        return summary_of_graph(spec, data, out, err);
    struct graph *graph = graph_new();
    struct building g = pass_begin(spec, data, graph, err);
    g.layers = arena_array(arena, (size_t)spec->layers_count, sizeof(*g.layers));
    add_step(&g);
    struct pass pass = pass_fed(&g, spec->data.batch_size);
    pass_run(&g, &pass, true);
    pass_losses(&g, &pass);
    bool ok = build_ok(&g.m);
    if (ok)
        *out = (struct model_summary){g.layers, spec->layers_count, parameters(&g)};
    build_release(&g.m);
    graph_free(graph);
    return ok;
}

/* What the output layer gives, with the examples in front. */
static struct shape output_shape(const struct building *g)
{
    const struct shape *one = &g->layers[g->spec->output].output;
    struct shape shape = {.rank = one->rank + 1, .dims = {-1}};
    memcpy(shape.dims + 1, one->dims, (size_t)one->rank * sizeof(*one->dims));
    return shape;
}

struct options {
    bool plain;
    const int *hosts;
};

static bool build_model(const struct spec *spec, const struct model_data *data,
                        struct options options, struct model *out, struct error *err)
{
    if (spec->graph.meta_graph)
        return imported_build(spec, data, out, err);
    struct graph *graph = graph_new();
    struct building g = pass_begin(spec, data, graph, err);
    struct build *m = &g.m;
    m->plain = options.plain;
    m->hosts = options.hosts;
    replica_begin(&g);
    stage_begin(&g);
    build_training(&g);
    build_evaluation(&g);
    builder_group(&m->b, MODEL_INIT, m->inits, m->inits_count);
    replica_pin(m);
    bool ok = build_ok(m);
    if (ok) {
        struct model_variable *variables =
            arena_array(m->arena, (size_t)m->weights_count, sizeof(*variables));
        for (int i = 0; i < m->weights_count; i++)
            variables[i] = m->weights[i].face;
        *out = (struct model){
            .graph = graph,
            .variables = variables,
            .variables_count = m->weights_count,
            .metrics = g.metrics,
            .metrics_count = spec->train.metrics_count + 1,
            .summary = {g.layers, spec->layers_count, parameters(&g)},
            .output = g.output,
            .output_shape = output_shape(&g),
            .scope = g.steps_count ? g.steps[0].scope : "",
            .eval_scope = MODEL_EVAL,
            .train = g.steps_count && !g.begin ? g.steps[0].train : MODEL_TRAIN,
            .init = MODEL_INIT,
            .step = MODEL_STEP,
            .steps = g.steps,
            .steps_count = g.steps_count,
            .shards = g.begin && spec->strategy.min_workers ? g.steps_count : 0,
            .needed = g.begin ? g.steps_count - spec->strategy.backup : 0,
            .mirror = g.mirror,
            .begin = g.begin,
            .begin_number = g.begin_number,
        };
    } else {
        graph_free(graph);
    }
    build_release(m);
    return ok;
}

bool model_build(const struct spec *spec, const struct model_data *data, struct model *out,
                 struct error *err)
{
    return build_model(spec, data, (struct options){0}, out, err);
}

bool model_build_hosted(const struct spec *spec, const struct model_data *data,
                        const int *hosts, struct model *out, struct error *err)
{
    assert(hosts[0] == 0);
    return build_model(spec, data, (struct options){.hosts = hosts}, out, err);
}

bool model_build_plain(const struct spec *spec, const struct model_data *data,
                       struct model *out, struct error *err)
{
    return build_model(spec, data, (struct options){.plain = true}, out, err);
}

struct variable *model_variable_in(const struct model_variable *face,
                                   struct resources *resources, struct error *err)
{
    enum dtype dtype = (enum dtype)face->dtype;
    return face->by_ref
               ? resources_reference(resources, "", face->name, dtype, &face->shape, err)
               : resources_variable(resources, "", face->name, dtype, &face->shape, err);
}

void model_release(struct model *model)
{
    graph_free(model->graph);
    *model = (struct model){0};
}
