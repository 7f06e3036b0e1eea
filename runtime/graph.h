/*
 * graph.h - a model as nodes and edges.
 *
 * A graph is filled by one thread, then sealed.  A sealed graph never changes, so any
 * number of threads may read it without a lock.
 *
 * Everything in a graph lives in its arena: free the graph and it is all gone.
 */
#pragma once

#include "base/base.h"
#include "runtime/attr.h"

struct device;
struct error;
struct function_library;
struct graph;
struct op;

struct edge {
    struct node *from; /* NULL: no edge */
    int output;        /* which output of `from` */
};

struct node {
    int id;           /* position in the graph: 0, 1, ... */
    const char *name; /* unique within the graph */
    const struct op *op;
    const struct edge *inputs;
    int inputs_count;
    struct node *const *controls; /* run before this one */
    int controls_count;
    const struct attr *attrs; /* those given, and the defaults of those that were not */
    int attrs_count;
    const int *input_types;  /* dtypes as the op takes them; references are above DTYPE_REF */
    const int *output_types; /* dtypes as it gives them */
    int outputs_count;
    const char *requested_device; /* as the user wrote it, "" for no wish */
    const struct device *device;  /* NULL until place_graph() */
    /*
     * NULL, or why running the node fails: TensorFlow accepts some bad nodes (missing inputs,
     * attribute values out of bounds) as long as nobody runs them, so graph_import() does too.
     */
    const struct error *fault;
    /*
     * What the state of its kernel is kept by; NULL: the name.  A node that came from a
     * function's body has one that no other node can have, whatever names the client chose.
     */
    const char *state_key;
    /* What errors call it: a node of a function's body, as the client named it there; NULL: the
     * name. */
    const char *shown_name;
    int turn; /* of nodes that could run, those with a lower one go first; 0: 1 + id */
};

static inline const char *node_shown_name(const struct node *node)
{
    return node->shown_name ? node->shown_name : node->name;
}

/* The nodes that come before one: those of its inputs, then its controls.  NULL after the last.
 */
static inline struct node *node_before(const struct node *node, int i)
{
    if (i < node->inputs_count)
        return node->inputs[i].from;
    i -= node->inputs_count;
    return i < node->controls_count ? node->controls[i] : NULL;
}

/* What graph_add() is told; all is copied. */
struct node_def {
    const char *name;
    const struct op *op;
    const struct edge *inputs;
    int inputs_count;
    struct node *const *controls;
    int controls_count;
    const struct attr *attrs; /* may leave out defaults, and types that follow from inputs */
    int attrs_count;
    const char *device; /* NULL for no wish */
};

/* Returns an empty graph, owned by the caller. */
struct graph *graph_new(void);
void graph_free(struct graph *graph); /* NULL is fine */

/*
 * Adds a node.  Checks the name, the number and types of inputs, attribute kinds and bounds.
 *
 * Fails with EXISTS if the name is taken, NOT_FOUND if an attribute is missing and INVALID if
 * the inputs or attributes do not suit the op; the text names node, op, input, types.  The node
 * it returns is borrowed from the graph.
 */
struct node *graph_add(struct graph *graph, const struct node_def *def,
                       struct error *err) CHECKED;

/*
 * Adds copies of all nodes of another graph, all or nothing.  Their inputs are found by name.
 * Fails as graph_add() and graph_seal() do.
 */
bool graph_add_all(struct graph *graph, const struct graph *other, struct error *err) CHECKED;

/* Adds a control edge; the graph is not sealed. */
void graph_add_control(struct graph *graph, struct node *node, struct node *before);

/* Turns input `index` of `node` to another edge, of the same type unless the node is bad. */
void graph_set_input(struct graph *graph, struct node *node, int index, struct edge edge);

/* Makes room in the index of names for `more` nodes that are about to be added. */
void graph_reserve(struct graph *graph, int more);

/* The node of this name will soon be added or looked for: a hint that changes nothing, and
 * hides the way to memory where there are millions of names.  Not for a view. */
void graph_expect(const struct graph *graph, const char *name);

/* Forgets all nodes from `count` on; no node before may refer to them. */
void graph_truncate(struct graph *graph, int count);

/*
 * A graph for one plan: nodes of another graph under other inputs.  It borrows names,
 * attributes and types, so the other graph must live longer.  Its nodes cannot be found by
 * name, and new ones added by graph_add() may have a name that is taken.
 */
struct graph *graph_new_view(void);

/* Adds to a view a copy of `node`, yet without edges. */
struct node *graph_add_copy(struct graph *view, const struct node *node);

/* Gives a node of a view its edges, which are copied. */
void graph_set_edges(struct graph *view, struct node *node, const struct edge *inputs,
                     int inputs_count, struct node *const *controls, int controls_count);

/*
 * The order that graph_seal() would give, of a graph that stays open: an array of ids to be
 * freed. NULL on a cycle, with its error.
 */
int *graph_sorted(const struct graph *graph, struct error *err) CHECKED;

/* Fails as graph_seal() does on a cycle, but leaves the graph open. */
bool graph_check_order(const struct graph *graph, struct error *err) CHECKED;

/*
 * Orders nodes after their inputs and closes the graph to change.  Fails with INVALID on a
 * cycle that does not pass through a NextIteration, naming nodes on it.  No recursion.
 */
bool graph_seal(struct graph *graph, struct error *err) CHECKED;

int graph_count(const struct graph *graph);
struct node *graph_node(const struct graph *graph, int id);
struct node *graph_find(const struct graph *graph, const char *name); /* NULL if absent */

/* After graph_seal(): node ids such that inputs and controls come first; equal graphs, equal
 * order. */
const int *graph_order(const struct graph *graph);

/* A name that is not taken: `name`, or name_1, name_2 ...; lives in the graph's arena. */
const char *graph_unique_name(struct graph *graph, const char *name);

/*
 * Names of nodes that are imported may begin with "_" from now on, as those of the parts of a
 * step do.
 */
void graph_allow_private(struct graph *graph);

/* The functions that the graph carries; borrowed, NULL in a view. */
struct function_library *graph_library(const struct graph *graph);

/* The arena that everything in the graph lives in. */
struct arena *graph_arena(struct graph *graph);

/*
 * Parses "name", "name:2" into an edge (no "^name").  Fails with NOT_FOUND if there is no such
 * node, INVALID if the output does not exist or the text is malformed.
 */
bool graph_edge(const struct graph *graph, const char *text, struct edge *edge,
                struct error *err) CHECKED;

/* --- bodies of functions (lower.c) --- */

/*
 * As graph_add(), for a node of a function's body: any name, no type is deduced, and edges come
 * by graph_link_imported(), which is as lenient as graph_import().
 */
struct node *graph_add_unlinked(struct graph *graph, const struct node_def *def,
                                struct error *err) CHECKED;

/*
 * The node stays who it is for its readers, but does something else now: `op`, whose attributes
 * all follow from the inputs.  Its outputs must keep their types.
 */
bool graph_become(struct graph *graph, struct node *node, const struct op *op,
                  const struct edge *inputs, int inputs_count, struct node *const *controls,
                  int controls_count, struct error *err) CHECKED;

/* --- attributes of a node: the value, or the fallback when it has none of that name --- */

const struct attr *node_attr(const struct node *node, const char *name); /* NULL if absent */
int64_t node_attr_int(const struct node *node, const char *name, int64_t fallback);
float node_attr_float(const struct node *node, const char *name, float fallback);
bool node_attr_bool(const struct node *node, const char *name, bool fallback);
int node_attr_type(const struct node *node, const char *name); /* DTYPE_NONE if absent */
const char *node_attr_string(const struct node *node, const char *name, const char *fallback);
/* The integers of a list; `*count` is 0 when absent. */
const int64_t *node_attr_ints(const struct node *node, const char *name, int *count);
const struct shape *node_attr_shape(const struct node *node, const char *name);   /* or NULL */
const struct tensor *node_attr_tensor(const struct node *node, const char *name); /* or NULL */

/* The value of a Const; NULL for any other op, and where it is not of the type that is said. */
const struct tensor *node_constant(const struct node *node);

/* --- GraphDef, serialized --- */

/*
 * As graph_add(), with TensorFlow's rules for what comes from outside: no type is deduced, a
 * name may not begin with "_", and inputs come later, by graph_link_imported() (for
 * graph_pb.c).  Name, device and attributes lie in the graph's arena already and are taken
 * over.
 */
struct node *graph_add_imported(struct graph *graph, const struct node_def *def,
                                struct error *err) CHECKED;
bool graph_link_imported(struct graph *graph, struct node *node, const struct edge *inputs,
                         int inputs_count, struct node *const *controls, int controls_count,
                         struct error *err) CHECKED;

/*
 * Adds the nodes of a serialized GraphDef to `graph`, all or nothing (graph_pb.c).  Inputs may
 * name nodes that were in the graph before.  Errors are TensorFlow's: unknown op NOT_FOUND; bad
 * edges, names, types INVALID.
 */
bool graph_import(struct graph *graph, const void *bytes, size_t size,
                  struct error *err) CHECKED;

struct str;

/*
 * Appends the serialized GraphDef.  `with_devices` writes the real device of each node in place
 * of the requested one; constants above `const_bytes_max` lose their contents (0: keep all).
 */
void graph_export(const struct graph *graph, bool with_devices, size_t const_bytes_max,
                  struct str *out);
