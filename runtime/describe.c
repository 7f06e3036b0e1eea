/* describe.c - watches the passes over one graph, and tells what each changed. */

#include "runtime/describe.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/op.h"

struct describer {
    const struct describe_options *options;
    struct str *json;
    const struct node **before; /* in the order of ids */
    int before_count;
    bool first;
};

static void add_text(struct str *json, const char *text)
{
    str_add_json(json, text, strlen(text));
}

/* What people call the node: a feed by what it feeds. */
static void add_name(struct str *json, const struct node *node, int output)
{
    struct str name = {0};
    int size = (int)strlen(node->name);
    const char *text = node->op == &prune_arg ? prune_fed_name(node, &size) : node->name;
    str_add_bytes(&name, text, (size_t)size);
    if (output)
        str_printf(&name, ":%d", output);
    str_add_json(json, str_text(&name), name.size);
    str_release(&name);
}

static void add_stands_for(struct str *json, const struct node *node)
{
    const struct attr *attr = node_attr(node, OPTIMISE_STANDS_FOR);
    str_add(json, "\"stands_for\": [");
    for (int i = 0; attr && i < attr->count; i++) {
        str_add(json, i ? ", " : "");
        str_add_json(json, attr->strings[i].data, attr->strings[i].size);
    }
    str_add(json, "]");
}

static const struct node **list_needed(const struct subgraph *subgraph, int *count)
{
    bool *needed = prune_needed(subgraph);
    int total = graph_count(subgraph->graph);
    const struct node **list = alloc_array((size_t)total + 1, sizeof(*list));
    *count = 0;
    for (int i = 0; i < total; i++) {
        const struct node *node = graph_node(subgraph->graph, i);
        if (needed[i])
            list[(*count)++] = node;
    }
    free(needed);
    return list;
}

static bool has_node(const struct node *const *list, int count, const struct node *node)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (list[middle]->id < node->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list[low] == node;
}

/* Those of `list` that are not in `other`. */
static void add_difference(struct str *json, const struct node *const *list, int count,
                           const struct node *const *other, int other_count, bool stands_for)
{
    bool first = true;
    for (int i = 0; i < count; i++) {
        if (has_node(other, other_count, list[i]))
            continue;
        str_add(json, first ? "{\"name\": " : ", {\"name\": ");
        add_name(json, list[i], 0);
        str_add(json, ", \"op\": ");
        add_text(json, list[i]->op->name);
        if (stands_for) {
            str_add(json, ", ");
            add_stands_for(json, list[i]);
        }
        str_add(json, "}");
        first = false;
    }
}

/* Feeds that leave their first dimension open get the batch. */
static void set_batch(const struct subgraph *subgraph, int64_t batch)
{
    struct arena *arena = graph_arena(subgraph->graph);
    for (int f = 0; batch && f < subgraph->feeds_count; f++) {
        struct node *feed = subgraph->feeds[f];
        for (int i = 0; i < feed->attrs_count; i++) {
            const struct attr *attr = &feed->attrs[i];
            if (strcmp(attr->name, "shape") != 0 || attr->kind != ATTR_SHAPE ||
                attr->shapes->rank < 1 || attr->shapes->dims[0] >= 0)
                continue;
            struct shape shape = attr->shapes[0];
            shape.dims[0] = batch;
            struct attr *attrs = arena_copy(arena, feed->attrs,
                                            (size_t)feed->attrs_count * sizeof(*feed->attrs));
            attrs[i].shapes = arena_copy(arena, &shape, sizeof(shape));
            feed->attrs = attrs;
        }
    }
}

static void saw_pass(void *arg, int pass, const struct subgraph *subgraph)
{
    struct describer *d = arg;
    int count;
    if (pass < 0)
        set_batch(subgraph, d->options->batch);
    const struct node **now = list_needed(subgraph, &count);
    str_add(d->json, d->first ? "{\"pass\": " : ", {\"pass\": ");
    d->first = false;
    add_text(d->json, pass < 0 ? "prune" : optimise_name(pass));
    str_add(d->json, ", \"summary\": ");
    add_text(d->json, pass < 0 ? "what no fetch needs is left out" : optimise_summary(pass));
    str_printf(d->json, ", \"nodes\": %d, \"removed\": [", count);
    add_difference(d->json, d->before, d->before_count, now, count, false);
    str_add(d->json, "], \"added\": [");
    if (pass >= 0)
        add_difference(d->json, now, count, d->before, d->before_count, true);
    str_add(d->json, "]}");
    free(d->before);
    d->before = now;
    d->before_count = count;
}

static void add_kept(const struct describer *d)
{
    for (int i = 0; i < d->before_count; i++) {
        const struct node *node = d->before[i];
        str_add(d->json, i ? ", {\"name\": " : "{\"name\": ");
        add_name(d->json, node, 0);
        str_add(d->json, ", \"op\": ");
        add_text(d->json, node->op->name);
        str_add(d->json, ", \"inputs\": [");
        for (int k = 0; k < node->inputs_count; k++) {
            str_add(d->json, k ? ", " : "");
            add_name(d->json, node->inputs[k].from, node->inputs[k].output);
        }
        str_add(d->json, "], ");
        add_stands_for(d->json, node);
        str_add(d->json, "}");
    }
}

static void add_memory(struct str *json, const struct memory_estimate *memory)
{
    char shape[SHAPE_TEXT_BYTES];
    str_printf(json, "{\"peak_bytes\": %lld, \"at\": ", (long long)memory->peak_bytes);
    add_text(json, memory->at ? memory->at->name : "");
    str_printf(json,
               ", \"constant_bytes\": %lld, \"variable_bytes\": %lld, \"feed_bytes\": %lld, "
               "\"unknown\": %d, \"tensors\": [",
               (long long)memory->constant_bytes, (long long)memory->variable_bytes,
               (long long)memory->feed_bytes, memory->unknown);
    for (int i = 0; i < memory->tensors_count; i++) {
        const struct memory_tensor *tensor = &memory->tensors[i];
        str_add(json, i ? ", {\"name\": " : "{\"name\": ");
        add_name(json, tensor->node, tensor->output);
        str_add(json, ", \"op\": ");
        add_text(json, tensor->node->op->name);
        str_printf(json, ", \"dtype\": \"%s\", \"shape\": \"%s\", \"bytes\": %lld}",
                   dtype_name(tensor->dtype), shape_text(&tensor->shape, shape, sizeof(shape)),
                   (long long)tensor->bytes);
    }
    str_add(json, "]}");
}

/* The end: what is left, and its memory. */
static void plan_made(void *arg, const struct plan *plan)
{
    const struct describer *d = arg;
    struct memory_estimate memory;
    str_add(d->json, "], \"kept\": [");
    add_kept(d);
    str_add(d->json, "], \"memory\": ");
    memory_of_plan(plan, &memory);
    add_memory(d->json, &memory);
    memory_release(&memory);
    str_add(d->json, "}");
}

/* --- what to feed and to fetch, when nobody says it --- */

struct names {
    const char **feeds, **fetches, **targets;
    int feeds_count, fetches_count, targets_count;
};

static void guess(const struct graph *graph, const struct describe_options *options,
                  struct names *names)
{
    int count = graph_count(graph);
    bool *read = alloc_array((size_t)count + 1, sizeof(*read));
    names->feeds = alloc_array((size_t)count + 1, sizeof(char *));
    names->fetches = alloc_array((size_t)count + 1, sizeof(char *));
    names->targets = alloc_array((size_t)count + 1, sizeof(char *));
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++)
            read[node->inputs[k].from->id] = true;
        for (int k = 0; k < node->controls_count; k++)
            read[node->controls[k]->id] = true;
    }
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(graph, i);
        bool placeholder = !strncmp(node->op->name, "Placeholder", 11);
        if (placeholder && !options->feeds_count)
            names->feeds[names->feeds_count++] = node->name;
        else if (!read[i] && !options->fetches_count)
            names->targets[names->targets_count++] = node->name;
    }
    free(read);
}

bool describe_graph(const struct graph *graph, const struct describe_options *options,
                    struct str *json, struct error *err)
{
    const struct session_options session_options = {.threads = options->threads,
                                                    .passes_off = options->passes_off};
    struct names names = {0};
    guess(graph, options, &names);
    const struct session_run run = {
        .feeds = options->feeds_count ? options->feeds : names.feeds,
        .feeds_count = options->feeds_count ? options->feeds_count : names.feeds_count,
        .fetches = options->fetches,
        .fetches_count = options->fetches_count,
        .targets = names.targets,
        .targets_count = names.targets_count};
    struct describer d = {.options = options, .json = json, .first = true};
    const struct optimise_watcher watcher = {saw_pass, plan_made, &d};
    struct session *session = session_new(&session_options, err);
    struct str bytes = {0};
    graph_export(graph, false, 0, &bytes);
    str_printf(json, "{\"nodes\": %d, \"passes\": [", graph_count(graph));
    bool ok = session && session_extend(session, str_text(&bytes), bytes.size, err) &&
              session_watch(session, &run, &watcher, err);
    session_free(session);
    str_release(&bytes);
    free(d.before);
    free(names.feeds);
    free(names.fetches);
    free(names.targets);
    return ok;
}
