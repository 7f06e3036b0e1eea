/* imported_variables.c - the variables that training an imported graph uses. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/map.h"
#include "runtime/model/imported_internal.h"
#include "runtime/op.h"

/* Marks what the node is computed from. */
static void mark(const struct graph *graph, const struct node *node, bool *needed, int *stack)
{
    int depth = 0;
    if (!node || needed[node->id])
        return;
    needed[node->id] = true;
    stack[depth++] = node->id;
    while (depth) {
        node = graph_node(graph, stack[--depth]);
        const struct node *from;
        for (int i = 0; (from = node_before(node, i)); i++) {
            if (!needed[from->id]) {
                needed[from->id] = true;
                stack[depth++] = from->id;
            }
        }
    }
}

static bool is_variable(const struct node *node)
{
    return !strcmp(node->op->name, "VarHandleOp") || !strcmp(node->op->name, "VariableV2") ||
           !strcmp(node->op->name, "Variable");
}

static void add_variable(struct importing *g, const struct node *node,
                         const struct map *trainable)
{
    const char *name = node_attr_string(node, "shared_name", "");
    const char *container = node_attr_string(node, "container", "");
    const struct shape *shape = node_attr_shape(node, "shape");
    bool by_ref = strcmp(node->op->name, "VarHandleOp") != 0;
    if (((*name || !by_ref) && strcmp(name, node->name) != 0) || *container)
        build_refuse(&g->m, UNIMPLEMENTED,
                     "the variable \"%s\" is shared as \"%s\" in the container \"%s\", which "
                     "checkpoints here do not tell apart",
                     node->name, name, container);
    else if (!shape || !shape_is_full(shape))
        build_refuse(&g->m, UNIMPLEMENTED, "the shape of the variable \"%s\" is left open",
                     node->name);
    else
        g->variables[g->variables_count++] =
            (struct model_variable){.name = node->name,
                                    .dtype = node_attr_type(node, "dtype"),
                                    .shape = *shape,
                                    .trainable = map_has(trainable, node->name),
                                    .by_ref = by_ref};
}

/* The variables of all that is run, and whether that can be fed. */
static void look_at_nodes(struct importing *g, const bool *needed)
{
    const struct graph *graph = g->m.b.graph;
    const struct meta_collection *list = meta_graph_find(&g->meta, "trainable_variables");
    struct map *trainable = map_new();
    for (int i = 0; list && i < list->count; i++)
        map_set(trainable, list->values[i], (void *)list);
    for (int i = 0; i < g->nodes_count && build_ok(&g->m); i++) {
        const struct node *node = graph_node(graph, i);
        imported_at(g, IMPORTED_POINTER "/inputs");
        if (needed[i] && imported_is_placeholder(node))
            build_refuse(&g->m, INVALID,
                         "nothing of the data is fed to the placeholder \"%s\", which training "
                         "needs: \"inputs\" says what is, {\"%s\": \"%s\"} (one with a default "
                         "would do without)",
                         node->name, g->data->target.name, node->name);
        imported_at(g, IMPORTED_POINTER);
        if (needed[i] && is_variable(node))
            add_variable(g, node, trainable);
    }
    map_free(trainable);
}

void imported_variables(struct importing *g, const char *output)
{
    struct graph *graph = g->m.b.graph;
    if (!build_ok(&g->m))
        return;
    size_t count = (size_t)graph_count(graph);
    g->variables = arena_array(g->m.arena, count, sizeof(*g->variables));
    bool *needed = alloc_array(count, sizeof(*needed));
    int *stack = alloc_array(count, sizeof(*stack));
    mark(graph, graph_find(graph, IMPORTED_SCOPE MODEL_TRAIN), needed, stack);
    for (int i = 0; i <= g->spec->graph.metrics_count; i++)
        mark(graph, imported_find(g, g->metrics[i].eval_sums).from, needed, stack);
    if (output)
        mark(graph, imported_find(g, output).from, needed, stack);
    free(stack);
    look_at_nodes(g, needed);
    free(needed);
}
