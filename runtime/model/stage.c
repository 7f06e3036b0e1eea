/* stage.c - see stage.h: which layer is where. */

#include "runtime/model/stage.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/cost.h"
#include "runtime/model/replica.h"
#include "runtime/spec/spec.h"

/* --- what layers cost --- */

/* The layer that a node's name begins with; -1: none. */
static int layer_of_node(const struct spec *spec, const char *name, int guess)
{
    for (int i = guess; i < spec->layers_count; i++) {
        size_t size = strlen(spec->layers[i].name);
        if (!strncmp(name, spec->layers[i].name, size) && name[size] == '/')
            return i;
    }
    return -1;
}

/* By layer, from a graph of its own that is thrown away.  Its backward pass costs in
 * proportion. */
static bool price_layers(struct building *g, double *costs)
{
    struct graph *graph = graph_new();
    struct building own = pass_begin(g->spec, g->data, graph, g->m.b.err);
    struct pass pass = pass_fed(&own, g->spec->data.batch_size);
    int at = 0;
    pass_run(&own, &pass, false);
    for (int i = 0; i < graph_count(graph) && build_ok(&own.m); i++) {
        struct node *node = graph_node(graph, i);
        int layer = layer_of_node(g->spec, node->name, at);
        if (layer < 0) /* back to one whose weights are shared */
            layer = layer_of_node(g->spec, node->name, 0);
        else
            at = layer;
        if (layer >= 0 && build_shape(&own.m, (struct edge){node, 0}))
            costs[layer] += cost_of(node, &own.m.shapes);
    }
    bool ok = build_ok(&own.m);
    build_release(&own.m);
    graph_free(graph);
    return ok;
}

/*
 * Cuts a row into `count` runs, none empty, so that the dearest is as cheap as can be: into
 * numbers[].  best[k][i] is the dearest of k + 1 runs that have the first i + 1.
 */
static void cut_evenly(struct arena *arena, const double *costs, int size, int count,
                       int *numbers)
{
    double *sums = arena_array(arena, (size_t)size + 1, sizeof(*sums));
    double *best = arena_array(arena, (size_t)count * (size_t)size, sizeof(*best));
    int *from = arena_array(arena, (size_t)count * (size_t)size, sizeof(*from));
    for (int i = 0; i < size; i++) {
        sums[i + 1] = sums[i] + costs[i];
        best[i] = sums[i + 1];
    }
    for (int k = 1; k < count; k++) {
        for (int i = k; i < size; i++) {
            int at = k * size + i;
            for (int cut = k; cut <= i; cut++) {
                double before = best[(k - 1) * size + cut - 1], last = sums[i + 1] - sums[cut];
                double dearest = before > last ? before : last;
                if (cut == k || dearest < best[at])
                    best[at] = dearest, from[at] = cut;
            }
        }
    }
    for (int k = count - 1, end = size; k >= 0; k--) {
        int start = k ? from[k * size + end - 1] : 0;
        for (int i = start; i < end; i++)
            numbers[i] = k;
        end = start;
    }
}

/* --- which layer is where --- */

/* Each device a number, in the order in which they are met. */
static void number_stages(struct stages *stages, struct arena *arena, int layers)
{
    const char **met = arena_array(arena, (size_t)layers, sizeof(*met));
    for (int i = 0; i < layers; i++) {
        int number = 0;
        while (number < stages->count && strcmp(met[number], stages->devices[i]) != 0)
            number++;
        if (number == stages->count)
            met[stages->count++] = stages->devices[i];
        stages->numbers[i] = number;
    }
    stages->released = arena_array(arena, (size_t)stages->count, sizeof(struct node *));
}

/* Alone a task is known by another name. */
static const char *pinned(struct building *g, const char *device)
{
    const char *type = strstr(device, "/device:");
    return spec_tasks(g->spec) > 1 ? device : type ? type : "";
}

void stage_begin(struct building *g)
{
    const struct spec *spec = g->spec;
    struct arena *arena = g->m.arena;
    int layers = spec->layers_count, workers = spec->tasks[ROLE_WORKER].replicas;
    bool pipeline = spec->strategy.mode == MODE_PIPELINE, several = spec_tasks(spec) > 1;
    if (!pipeline && !spec->pins_count)
        return;
    struct stages *stages = arena_alloc(arena, sizeof(*stages));
    *stages = (struct stages){
        .devices = arena_array(arena, (size_t)layers, sizeof(*stages->devices)),
        .numbers = arena_array(arena, (size_t)layers, sizeof(*stages->numbers)),
    };
    double *costs = arena_array(arena, (size_t)layers, sizeof(*costs));
    if (pipeline && workers > 1 && workers <= layers) {
        if (!price_layers(g, costs)) {
            g->m.b.failed = true;
            return;
        }
        cut_evenly(arena, costs, layers, workers, stages->numbers);
    }
    for (int i = 0; i < layers; i++) {
        const char *pin = spec_pin_of(spec, spec->layers[i].name);
        stages->devices[i] = pin       ? pinned(g, pin)
                             : several ? replica_device(&g->m, stages->numbers[i])
                                       : "";
    }
    number_stages(stages, arena, layers);
    g->stages = stages;
}

const char *stage_device(const struct stages *stages, int layer)
{
    return stages->devices[layer];
}

/* --- from one to the next --- */

struct edge stage_enter(struct building *g, int layer, int from, struct edge value)
{
    const struct stages *stages = g->stages;
    struct build *m = &g->m;
    int here = stages->numbers[layer];
    struct node *after = stages->released[here];
    bool crosses = from >= 0 && stages->numbers[from] != here, fed = from < 0;
    enum dtype travels = (enum dtype)g->spec->strategy.compress;
    if (!build_ok(m) || !(crosses || (fed && after)))
        return value;
    bool narrow = crosses && travels != F32 && build_dtype(value) == F32;
    if (narrow) {
        m->b.device = stages->devices[from];
        value = build_cast(m, value, travels);
    }
    m->b.device = stages->devices[layer];
    value = build_unary(m, "Identity", value);
    if (build_ok(m) && after)
        graph_add_control(m->b.graph, value.from, after);
    return narrow ? build_cast(m, value, F32) : value;
}
