/*
 * optimise_fold.c - what depends on constants alone is computed once, when the plan is made.
 *
 * The constant part is run as a plan of its own that fetches what others read of it.  If that
 * fails nothing is folded, and the error comes when the graph runs, as it would have.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"
#include "runtime/tensor.h"

/* Larger results stay computed: they would be held in memory for as long as the plan. */
enum { FOLD_BYTES_MAX = 1 << 20 };

static bool is_const(const struct node *node)
{
    return !strcmp(node->op->name, "Const") && !node->fault;
}

/* A plain function of its inputs, with a kernel here. */
static bool is_pure(const struct node *node)
{
    if (node->op == &prune_arg || node->op->flags & OP_STATEFUL || node->fault ||
        node->controls_count || !node->inputs_count || !node->outputs_count ||
        optimise_is_flow(node))
        return false;
    for (int i = 0; i < node->outputs_count; i++)
        if (!(BIT(dtype_base(node->output_types[i])) & (DTYPES_PLAIN | BIT(STRING))) ||
            dtype_is_ref(node->output_types[i]))
            return false;
    return kernel_exists(node, CPU);
}

/* Marks what depends on constants alone; returns how many nodes that are not constants. */
static int mark_foldable(const struct subgraph *subgraph, const int *order, const bool *needed,
                         bool *foldable)
{
    int found = 0;
    for (int i = 0; i < graph_count(subgraph->graph); i++) {
        const struct node *node = graph_node(subgraph->graph, order[i]);
        bool all = needed[node->id] && !is_const(node);
        for (int k = 0; all && k < node->inputs_count; k++)
            all = foldable[node->inputs[k].from->id];
        all = all && is_pure(node);
        foldable[node->id] =
            all || (needed[node->id] && is_const(node) && !node->controls_count);
        found += all;
    }
    return found;
}

/* Outputs of folded nodes that are read by others, or fetched: each once. */
static struct edge *find_border(const struct subgraph *subgraph, const struct rewrite *rewrite,
                                const bool *needed, const bool *foldable, int *count)
{
    const struct graph *graph = subgraph->graph;
    bool *seen = alloc_array((size_t)rewrite->first_output[rewrite->count], sizeof(bool));
    struct edge *border = NULL;
    int capacity = 0;
    *count = 0;
    for (int i = 0; i <= rewrite->count; i++) {
        bool fetches = i == rewrite->count;
        const struct node *node = fetches ? NULL : graph_node(graph, i);
        if (node && (!needed[i] || foldable[i]))
            continue;
        int edges_count = fetches ? subgraph->fetches_count : node->inputs_count;
        const struct edge *edges = fetches ? subgraph->fetches : node->inputs;
        for (int k = 0; k < edges_count; k++) {
            struct edge edge = edges[k];
            int index = rewrite->first_output[edge.from->id] + edge.output;
            if (!foldable[edge.from->id] || is_const(edge.from) || seen[index])
                continue;
            seen[index] = true;
            border = alloc_grow(border, *count, &capacity, sizeof(*border));
            border[(*count)++] = edge;
        }
    }
    free(seen);
    return border;
}

/* A copy of the constant part that fetches `border`. */
static struct subgraph *copy_constant_part(const struct subgraph *whole, const bool *foldable,
                                           const struct edge *border, int border_count)
{
    struct graph *view = graph_new_view();
    struct arena *arena = graph_arena(view);
    struct subgraph *part = arena_alloc(arena, sizeof(*part));
    int count = graph_count(whole->graph);
    struct node **copies = alloc_array((size_t)count, sizeof(struct node *));
    part->graph = view;
    for (int i = 0; i < count; i++)
        if (foldable[i])
            copies[i] = graph_add_copy(view, graph_node(whole->graph, i));
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(whole->graph, i);
        if (!foldable[i])
            continue;
        struct edge *inputs = arena_array(arena, (size_t)node->inputs_count, sizeof(*inputs));
        for (int k = 0; k < node->inputs_count; k++)
            inputs[k] = (struct edge){copies[node->inputs[k].from->id], node->inputs[k].output};
        graph_set_edges(view, copies[i], inputs, node->inputs_count, NULL, 0);
    }
    part->fetches_count = border_count;
    part->fetches = arena_array(arena, (size_t)border_count, sizeof(*part->fetches));
    for (int i = 0; i < border_count; i++)
        part->fetches[i] = (struct edge){copies[border[i].from->id], border[i].output};
    free(copies);
    return part;
}

/* Runs the constant part; `values` gets one tensor per border edge. */
static bool compute(struct subgraph *part, struct plan_context *context, struct tensor *values)
{
    static const struct device here = {.type = CPU};
    struct error err; /* comes again when the graph runs */
    struct plan *plan = plan_new(part, &here, context, &err);
    bool ok = plan && execute_plan(plan, NULL, values, NULL, &err);
    plan_free(plan);
    return ok;
}

static void replace(struct rewrite *rewrite, struct edge edge, const struct tensor *value)
{
    struct graph *graph = rewrite->subgraph->graph;
    struct error err;
    const char *name =
        edge.from->outputs_count > 1
            ? arena_printf(graph_arena(graph), "%s/output_%d", edge.from->name, edge.output)
            : edge.from->name;
    const struct attr attrs[] = {attr_type("dtype", value->dtype), attr_tensor("value", value)};
    const struct node_def def = {.name = name,
                                 .op = op_find("Const"),
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs),
                                 .device = edge.from->requested_device};
    struct node *constant = graph_add(graph, &def, &err);
    if (constant)
        rewrite_edge(rewrite, edge, (struct edge){constant, 0});
}

static void fold(struct subgraph *subgraph, struct plan_context *context, const bool *needed,
                 const bool *foldable)
{
    struct rewrite rewrite;
    rewrite_init(&rewrite, subgraph);
    int count;
    struct edge *border = find_border(subgraph, &rewrite, needed, foldable, &count);
    struct subgraph *part = copy_constant_part(subgraph, foldable, border, count);
    struct tensor *values = alloc_array((size_t)count, sizeof(*values));
    if (compute(part, context, values)) {
        for (int i = 0; i < count; i++) {
            if (tensor_bytes(&values[i]) <= FOLD_BYTES_MAX)
                replace(&rewrite, border[i], &values[i]);
            tensor_release(&values[i]);
        }
    }
    rewrite_apply(&rewrite);
    prune_free(part);
    free(values);
    free(border);
}

void optimise_fold(struct subgraph *subgraph, struct plan_context *context)
{
    struct error err;
    int *order = graph_sorted(subgraph->graph, &err);
    if (!order)
        return; /* plan_new() will say what is wrong */
    bool *needed = prune_needed(subgraph);
    bool *foldable = alloc_array((size_t)graph_count(subgraph->graph), sizeof(bool));
    if (mark_foldable(subgraph, order, needed, foldable))
        fold(subgraph, context, needed, foldable);
    free(order);
    free(needed);
    free(foldable);
}
