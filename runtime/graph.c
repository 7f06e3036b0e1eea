/* graph.c - nodes in an array, an index by name over it, and their order. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "runtime/function_library.h"
#include "runtime/op.h"
#include "runtime/order.h"
#include "runtime/resolve.h"
#include "runtime/tensor.h"

struct slot {
    uint32_t hash; /* spares a look at most of the nodes that only share the slot */
    int id;        /* + 1; 0 when free */
};

struct graph {
    struct arena *arena;
    struct function_library *library; /* NULL in a view */
    struct node **nodes;
    int count;
    int capacity;
    int64_t edges;
    bool view;          /* no index by name; attributes borrowed, but for those of `own` */
    bool private_names; /* imported names may begin with "_" */
    struct node **own;
    int own_count;
    int own_capacity;
    struct slot *slots; /* open addressing by name */
    int slots_count;
    int *order;         /* after graph_seal() */
    struct map *suffix; /* graph_unique_name(): the last number given to a name, + 1 */
};

/* --- names --- */

static uint64_t hash_name(const char *name, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

/* The slot that holds the name, or the free one where it would go. */
static struct slot *find_slot(const struct graph *graph, const char *name, size_t size,
                              uint64_t hash)
{
    for (uint64_t at = hash;; at++) {
        struct slot *slot = &graph->slots[at & (uint64_t)(graph->slots_count - 1)];
        if (!slot->id)
            return slot;
        if (slot->hash != (uint32_t)(hash >> 32))
            continue;
        const char *found = graph->nodes[slot->id - 1]->name;
        if (!strncmp(found, name, size) && !found[size])
            return slot;
    }
}

static struct node *find_name(const struct graph *graph, const char *name, size_t size)
{
    const struct slot *slot = find_slot(graph, name, size, hash_name(name, size));
    return slot->id ? graph->nodes[slot->id - 1] : NULL;
}

static void add_name(struct graph *graph, const struct node *node)
{
    size_t size = strlen(node->name);
    uint64_t hash = hash_name(node->name, size);
    *find_slot(graph, node->name, size, hash) =
        (struct slot){(uint32_t)(hash >> 32), node->id + 1};
}

static void index_nodes(struct graph *graph, int slots_count)
{
    free(graph->slots);
    graph->slots = alloc_array((size_t)slots_count, sizeof(*graph->slots));
    graph->slots_count = slots_count;
    for (int i = 0; i < graph->count; i++)
        add_name(graph, graph->nodes[i]);
}

static bool name_is_good(const char *name, bool imported)
{
    const char *c = name;
    bool first = true;
    for (; *c; c++) {
        bool word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    (*c >= '0' && *c <= '9') || *c == '.';
        bool inner = *c == '_' || *c == '/' || *c == '\\' || *c == '-';
        if (first && !word && !(*c == '_' && !imported))
            return false;
        if (!word && !inner && *c != '>')
            return false;
        first = *c == '>'; /* pieces between ">" are names of their own */
    }
    return !first && c - name <= LIMIT_NODE_NAME_BYTES;
}

static bool check_name(const struct graph *graph, const struct node_def *def, bool imported,
                       struct error *err)
{
    if (graph->view)
        return true; /* stands for nodes of any name, and is not found by it */
    if (!name_is_good(def->name, imported && !graph->private_names))
        return fail(
            err, INVALID,
            "node '%s' (%s): a name must match [A-Za-z0-9.][A-Za-z0-9_./\\-]* and have at "
            "most %d bytes",
            def->name, def->op->name, LIMIT_NODE_NAME_BYTES);
    /* A second node of one name: INVALID_ARGUMENT is what TensorFlow answers to a client. */
    if (graph_find(graph, def->name))
        return fail(err, imported ? INVALID : EXISTS,
                    "node '%s' (%s): a node of this name exists already", def->name,
                    def->op->name);
    return true;
}

/* --- life --- */

struct graph *graph_new(void)
{
    struct graph *graph = alloc_bytes(sizeof(*graph));
    graph->arena = arena_new();
    graph->library = function_library_new();
    index_nodes(graph, 64);
    return graph;
}

struct graph *graph_new_view(void)
{
    struct graph *graph = alloc_bytes(sizeof(*graph));
    graph->arena = arena_new();
    graph->view = true;
    return graph;
}

void graph_allow_private(struct graph *graph)
{
    graph->private_names = true;
}

static void release_node(struct node *node)
{
    for (int i = 0; i < node->attrs_count; i++)
        attr_release(&node->attrs[i]);
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    for (int i = 0; i < graph->count && !graph->view; i++)
        release_node(graph->nodes[i]);
    for (int i = 0; i < graph->own_count; i++)
        release_node(graph->own[i]);
    free(graph->own);
    free(graph->nodes);
    free(graph->slots);
    free(graph->order);
    map_free(graph->suffix);
    function_library_unref(graph->library);
    arena_free(graph->arena);
    free(graph);
}

void graph_reserve(struct graph *graph, int more)
{
    int slots_count = graph->slots_count;
    int64_t wanted = 2 * ((int64_t)graph->count + more);
    while (slots_count < wanted && slots_count < 2 * LIMIT_GRAPH_NODES)
        slots_count *= 2;
    if (slots_count > graph->slots_count)
        index_nodes(graph, slots_count);
}

void graph_expect(const struct graph *graph, const char *name)
{
    uint64_t at = hash_name(name, strlen(name));
    __builtin_prefetch(&graph->slots[at & (uint64_t)(graph->slots_count - 1)]);
}

void graph_truncate(struct graph *graph, int count)
{
    assert(!graph->order);
    assert(count <= graph->count);
    for (int i = count; i < graph->count && !graph->view; i++)
        release_node(graph->nodes[i]);
    graph->count = count;
    if (!graph->view)
        index_nodes(graph, graph->slots_count);
}

/* --- adding --- */

static void append(struct graph *graph, struct node *node)
{
    assert(!graph->order);
    graph->nodes =
        alloc_grow(graph->nodes, graph->count, &graph->capacity, sizeof(*graph->nodes));
    node->id = graph->count;
    graph->nodes[graph->count++] = node;
    if (graph->view)
        return;
    if (graph->count * 2 > graph->slots_count)
        index_nodes(graph, graph->slots_count * 2);
    else
        add_name(graph, node);
}

/* As append(), for a node whose attributes are the graph's even if it is a view. */
static void append_own(struct graph *graph, struct node *node)
{
    append(graph, node);
    if (!graph->view)
        return;
    graph->own =
        alloc_grow(graph->own, graph->own_count, &graph->own_capacity, sizeof(*graph->own));
    graph->own[graph->own_count++] = node;
}

static bool count_edges(struct graph *graph, int more, struct error *err)
{
    graph->edges += more;
    if (graph->edges > LIMIT_GRAPH_EDGES)
        return fail(err, EXHAUSTED, "the graph has more than %d edges", LIMIT_GRAPH_EDGES);
    return true;
}

static void set_edges(struct graph *graph, struct node *node, const struct edge *inputs,
                      int inputs_count, struct node *const *controls, int controls_count)
{
    node->inputs_count = inputs_count;
    node->inputs = arena_copy(graph->arena, inputs, (size_t)inputs_count * sizeof(*inputs));
    size_t room = 1; /* a power of two, as graph_add_control() expects */
    while (room < (size_t)controls_count)
        room *= 2;
    struct node **copy = arena_array(graph->arena, controls_count ? room : 0, sizeof(*copy));
    if (controls_count)
        memcpy(copy, controls, (size_t)controls_count * sizeof(*copy));
    node->controls = copy;
    node->controls_count = controls_count;
}

static struct node *new_node(struct graph *graph, const struct node_def *def, bool imported,
                             struct error *err)
{
    assert(!graph->order);
    if (graph->count >= LIMIT_GRAPH_NODES)
        return fail_null(err, EXHAUSTED, "the graph has more than %d nodes", LIMIT_GRAPH_NODES);
    if (!check_name(graph, def, imported, err))
        return NULL;

    struct node *node = arena_alloc(graph->arena, sizeof(*node));
    node->name = imported ? def->name : arena_text(graph->arena, def->name);
    node->op = def->op;
    const char *device = def->device ? def->device : "";
    node->requested_device = imported ? device : arena_text(graph->arena, device);
    if (!resolve_attrs(node, def, imported, imported, graph->arena, err)) {
        if (!imported)
            release_node(node);
        return NULL;
    }
    return node;
}

struct node *graph_add(struct graph *graph, const struct node_def *def, struct error *err)
{
    struct node *node = new_node(graph, def, false, err);
    if (!node)
        return NULL;
    int wanted = resolve_types(node, graph->arena);
    set_edges(graph, node, def->inputs, def->inputs_count, def->controls, def->controls_count);
    if (!resolve_inputs(node, wanted, false, graph->arena, err) ||
        !count_edges(graph, def->inputs_count + def->controls_count, err)) {
        release_node(node);
        return NULL;
    }
    append_own(graph, node);
    return node;
}

struct node *graph_add_imported(struct graph *graph, const struct node_def *def,
                                struct error *err)
{
    struct node *node = new_node(graph, def, true, err);
    if (!node) {
        for (int i = 0; i < def->attrs_count; i++)
            attr_release(&def->attrs[i]);
        return NULL;
    }
    /* Until it is linked: how many are wanted. */
    node->inputs_count = resolve_types(node, graph->arena);
    append(graph, node);
    return node;
}

bool graph_link_imported(struct graph *graph, struct node *node, const struct edge *inputs,
                         int inputs_count, struct node *const *controls, int controls_count,
                         struct error *err)
{
    int wanted = node->inputs_count;
    set_edges(graph, node, inputs, inputs_count, controls, controls_count);
    return resolve_inputs(node, wanted, true, graph->arena, err) &&
           count_edges(graph, inputs_count + controls_count, err);
}

struct node *graph_add_unlinked(struct graph *graph, const struct node_def *def,
                                struct error *err)
{
    assert(!graph->order);
    if (graph->count >= LIMIT_GRAPH_NODES)
        return fail_null(err, EXHAUSTED, "the graph has more than %d nodes", LIMIT_GRAPH_NODES);
    struct node *node = arena_alloc(graph->arena, sizeof(*node));
    node->name = arena_text(graph->arena, def->name);
    node->op = def->op;
    node->requested_device = arena_text(graph->arena, def->device ? def->device : "");
    if (!resolve_attrs(node, def, true, false, graph->arena, err)) {
        release_node(node);
        return NULL;
    }
    node->inputs_count = resolve_types(node, graph->arena);
    append_own(graph, node);
    return node;
}

/* Whether the attributes of a view's node are the view's, should they hold anything. */
static bool is_own(const struct graph *view, const struct node *node)
{
    bool holds = false;
    for (int i = 0; i < node->attrs_count; i++)
        holds |= node->attrs[i].kind == ATTR_FUNC || node->attrs[i].kind == ATTR_TENSOR;
    for (int i = 0; holds && i < view->own_count; i++)
        if (view->own[i] == node)
            return true;
    return false;
}

bool graph_become(struct graph *graph, struct node *node, const struct op *op,
                  const struct edge *inputs, int inputs_count, struct node *const *controls,
                  int controls_count, struct error *err)
{
    assert(!graph->order);
    const struct node_def def = {
        .name = node->name, .op = op, .inputs = inputs, .inputs_count = inputs_count};
    struct node other = {.id = node->id,
                         .name = node->name,
                         .state_key = node->state_key,
                         .shown_name = node->shown_name,
                         .op = op,
                         .requested_device = node->requested_device};
    if (!resolve_attrs(&other, &def, false, false, graph->arena, err))
        return false;
    int wanted = resolve_types(&other, graph->arena);
    set_edges(graph, &other, inputs, inputs_count, controls, controls_count);
    if (!resolve_inputs(&other, wanted, false, graph->arena, err) ||
        !count_edges(graph, inputs_count + controls_count, err))
        return false;
    if (!graph->view || is_own(graph, node))
        release_node(node);
    *node = other;
    return true;
}

/* A copy without edges: they may come from nodes that are yet to be added. */
static bool add_foreign(struct graph *graph, const struct node *node, struct error *err)
{
    const struct op *op = node->op;
    if (op->signature) /* the function of that name here */
        op = function_library_op(graph->library, op->name);
    const struct node_def def = {.name = node->name,
                                 .op = op,
                                 .attrs = node->attrs,
                                 .attrs_count = node->attrs_count,
                                 .device = node->requested_device};
    return check_name(graph, &def, false, err) && graph_add_unlinked(graph, &def, err);
}

static bool link_foreign(struct graph *graph, struct node *copy, const struct node *node,
                         struct error *err)
{
    struct edge *inputs = alloc_array((size_t)node->inputs_count, sizeof(*inputs));
    struct node **controls = alloc_array((size_t)node->controls_count, sizeof(*controls));
    for (int i = 0; i < node->inputs_count; i++)
        inputs[i] = (struct edge){graph_find(graph, node->inputs[i].from->name),
                                  node->inputs[i].output};
    for (int i = 0; i < node->controls_count; i++)
        controls[i] = graph_find(graph, node->controls[i]->name);
    bool ok = graph_link_imported(graph, copy, inputs, node->inputs_count, controls,
                                  node->controls_count, err);
    free(inputs);
    free(controls);
    return ok;
}

static bool add_foreign_nodes(struct graph *graph, const struct graph *other, struct error *err)
{
    int first = graph->count;
    for (int i = 0; i < other->count; i++)
        if (!add_foreign(graph, other->nodes[i], err))
            return false;
    for (int i = 0; i < other->count; i++)
        if (!link_foreign(graph, graph->nodes[first + i], other->nodes[i], err))
            return false;
    return graph_check_order(graph, err);
}

bool graph_add_all(struct graph *graph, const struct graph *other, struct error *err)
{
    int count = graph->count;
    const struct function_library_mark functions = function_library_mark(graph->library);
    bool ok = function_library_add_all(graph->library, other->library, err) &&
              add_foreign_nodes(graph, other, err);
    if (!ok) {
        graph_truncate(graph, count);
        function_library_truncate(graph->library, functions);
    }
    return ok;
}

struct node *graph_add_copy(struct graph *view, const struct node *node)
{
    assert(view->view);
    struct node *copy = arena_alloc(view->arena, sizeof(*copy));
    *copy = *node;
    copy->inputs_count = 0;
    copy->controls_count = 0;
    append(view, copy);
    return copy;
}

void graph_set_edges(struct graph *view, struct node *node, const struct edge *inputs,
                     int inputs_count, struct node *const *controls, int controls_count)
{
    assert(view->view);
    set_edges(view, node, inputs, inputs_count, controls, controls_count);
}

/* Room is a power of two, so the list may be full only when its count is one (or none). */
void graph_add_control(struct graph *graph, struct node *node, struct node *before)
{
    assert(!graph->order);
    size_t count = (size_t)node->controls_count;
    if ((count & (count - 1)) == 0) {
        struct node **larger =
            arena_array(graph->arena, count ? 2 * count : 1, sizeof(*larger));
        if (count)
            memcpy(larger, node->controls, count * sizeof(*larger));
        node->controls = larger;
    }
    ((struct node **)node->controls)[node->controls_count++] = before;
}

void graph_set_input(struct graph *graph, struct node *node, int index, struct edge edge)
{
    assert(!graph->order);
    assert(index >= 0 && index < node->inputs_count);
    assert(node->fault || edge.from->fault ||
           dtype_base(edge.from->output_types[edge.output]) ==
               dtype_base(node->input_types[index]));
    ((struct edge *)node->inputs)[index] = edge;
}

/* --- asking --- */

int graph_count(const struct graph *graph)
{
    return graph->count;
}

struct node *graph_node(const struct graph *graph, int id)
{
    assert(id >= 0 && id < graph->count);
    return graph->nodes[id];
}

struct node *graph_find(const struct graph *graph, const char *name)
{
    assert(!graph->view);
    return find_name(graph, name, strlen(name));
}

const int *graph_order(const struct graph *graph)
{
    assert(graph->order);
    return graph->order;
}

struct function_library *graph_library(const struct graph *graph)
{
    return graph->library;
}

struct arena *graph_arena(struct graph *graph)
{
    return graph->arena;
}

const char *graph_unique_name(struct graph *graph, const char *name)
{
    if (!graph_find(graph, name))
        return arena_text(graph->arena, name);
    if (!graph->suffix)
        graph->suffix = map_new();
    for (intptr_t i = (intptr_t)map_find(graph->suffix, name) + 1;; i++) {
        const char *wanted = arena_printf(graph->arena, "%s_%d", name, (int)i);
        if (!graph_find(graph, wanted)) {
            map_set(graph->suffix, name, (void *)i);
            return wanted;
        }
    }
}

bool graph_edge(const struct graph *graph, const char *text, struct edge *edge,
                struct error *err)
{
    if (!*text || *text == '^')
        return fail(err, INVALID, "'%s' is not the name of a tensor", text);

    /* As TensorFlow: digits after the last colon are the output, else all of it is a name. */
    size_t size = strlen(text);
    size_t digits = size;
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
        digits--;
    int64_t output = 0;
    if (digits > 1 && digits < size && text[digits - 1] == ':') {
        for (size_t i = digits; i < size && output < INT32_MAX; i++)
            output = output * 10 + (text[i] - '0');
        size = digits - 1;
    }
    assert(!graph->view);
    struct node *node = find_name(graph, text, size);
    if (!node)
        return fail(err, NOT_FOUND, "'%s': there is no node '%.*s' in the graph", text,
                    (int)size, text);
    if (output >= node->outputs_count)
        return fail(err, INVALID, "'%s': node '%s' (%s) has %d outputs", text, node->name,
                    node->op->name, node->outputs_count);
    *edge = (struct edge){node, (int)output};
    return true;
}

/* --- order --- */

int *graph_sorted(const struct graph *graph, struct error *err)
{
    int *order = alloc_array((size_t)graph->count, sizeof(*order));
    if (order_is_given(graph)) {
        for (int i = 0; i < graph->count; i++)
            order[i] = i;
    } else if (!order_nodes(graph, order, err)) {
        free(order);
        return NULL;
    }
    return order;
}

bool graph_check_order(const struct graph *graph, struct error *err)
{
    if (order_is_given(graph))
        return true;
    int *order = graph_sorted(graph, err);
    free(order);
    return order;
}

bool graph_seal(struct graph *graph, struct error *err)
{
    assert(!graph->order);
    graph->order = graph_sorted(graph, err);
    return graph->order;
}
