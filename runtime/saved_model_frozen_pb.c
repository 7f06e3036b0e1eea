/* saved_model_frozen_pb.c - a model of ours as a GraphDef alone: the values of its variables
 * are constants in it, as TensorFlow's freeze_graph makes them. */

#include "base/arena.h"
#include "base/error.h"
#include "proto/message.h"
#include "proto/text.h"
#include "runtime/builder.h"
#include "runtime/model/model.h"
#include "runtime/op.h"
#include "runtime/saved_model_internal.h"
#include "runtime/tensor.h"
#include "tensorflow/graph.pb-c.h"

typedef Tensorflow__GraphDef graph_proto;
typedef Tensorflow__NodeDef node_proto;
typedef Tensorflow__NodeDef__AttrEntry attr_proto;

#define GRAPH_BYTES_MAX INT64_C(2000000000) /* a message holds less than 2 GiB */
#define AXIS "frozen/axis"

/* An op that reads a variable, and the one that reads a tensor in the same way. */
static const struct reader {
    const char *op, *frozen;
    const char *type; /* the attribute that "dtype" is there */
    bool takes_axis;  /* one more input, the first axis */
} readers[] = {
    {"ReadVariableOp", "Identity", "T", false},
    {"ResourceGather", "GatherV2", "Tparams", true},
    {"ResourceGatherNd", "GatherNd", "Tparams", false},
};

static bool is_handle(const struct node *node)
{
    return !strcmp(node->op->name, "VarHandleOp");
}

/* NULL: the node reads no variable. */
static const struct reader *find_reader(const struct node *node)
{
    for (int i = 0; i < ARRAY_LEN(readers); i++)
        if (!strcmp(readers[i].op, node->op->name))
            return &readers[i];
    return NULL;
}

static bool check_use(const struct node *node, const struct reader *reader, struct error *err)
{
    for (int k = reader ? 1 : 0; k < node->inputs_count; k++) {
        const struct node *from = node->inputs[k].from;
        if (is_handle(from))
            return fail(err, UNIMPLEMENTED,
                        "node \"%s\" is a %s of the variable \"%s\": one whose value is only "
                        "read can be a constant",
                        node->name, node->op->name, from->name);
    }
    return true;
}

/* --- the constants --- */

static const struct tensor *value_of(const struct saved_model_content *content,
                                     const char *name)
{
    for (int i = 0; i < content->variables_count; i++)
        if (!strcmp(content->variables[i].name, name) && content->values[i].dtype)
            return &content->values[i];
    return NULL;
}

/* A graph of the constants, as a message. */
static graph_proto *make_constants(struct packing *p, struct error *err)
{
    const struct graph *graph = p->content->graph;
    struct graph *constants = graph_new();
    struct builder b = {.graph = constants, .scope = "", .err = err};
    int64_t size = 0;
    bool gathers = false, ok = true;
    for (int i = 0; ok && i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        const struct reader *reader = p->wanted[i] ? find_reader(node) : NULL;
        gathers |= reader && reader->takes_axis;
        if (!p->wanted[i] || !is_handle(node))
            continue;
        const struct tensor *value = value_of(p->content, node->name);
        if (!value) {
            ok = fail(err, PRECONDITION, "the variable \"%s\" has no value", node->name);
            break;
        }
        size += (int64_t)tensor_bytes(value);
        builder_const(&b, node->name, value);
    }
    if (ok && size > GRAPH_BYTES_MAX)
        ok = fail(err, EXHAUSTED,
                  "its variables take %lld bytes, a GraphDef holds %lld: a SavedModel has no "
                  "such limit",
                  (long long)size, (long long)GRAPH_BYTES_MAX);
    if (gathers)
        builder_scalar(&b, AXIS, I32, 0);
    graph_proto *out =
        ok && builder_ok(&b) ? saved_model_graph_message(p, constants, err) : NULL;
    graph_free(constants);
    return out;
}

/* --- what reads them --- */

static attr_proto *make_type(struct packing *p, const char *name, enum dtype dtype)
{
    attr_proto *entry = arena_alloc(p->arena, sizeof(*entry));
    Tensorflow__AttrValue *value = arena_alloc(p->arena, sizeof(*value));
    tensorflow__node_def__attr_entry__init(entry);
    tensorflow__attr_value__init(value);
    value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_TYPE;
    value->type = (Tensorflow__DataType)dtype;
    entry->key = (char *)name;
    entry->value = value;
    return entry;
}

/* The node in its frozen form: another op, "dtype" renamed, the axis behind the other inputs.
 */
static void freeze(struct packing *p, const struct reader *reader, size_t inputs,
                   node_proto *node)
{
    attr_proto **attrs = arena_array(p->arena, node->n_attr + 1, sizeof(*attrs));
    size_t count = 0;
    for (size_t i = 0; i < node->n_attr; i++) {
        if (!strcmp(node->attr[i]->key, "dtype"))
            node->attr[i]->key = (char *)reader->type;
        if (strcmp(node->attr[i]->key, "validate_indices") != 0)
            attrs[count++] = node->attr[i];
    }
    node->op = (char *)reader->frozen;
    if (reader->takes_axis) {
        char **names = arena_array(p->arena, node->n_input + 1, sizeof(*names));
        memcpy(names, node->input, inputs * sizeof(*names));
        names[inputs] = (char *)AXIS;
        memcpy(names + inputs + 1, node->input + inputs,
               (node->n_input - inputs) * sizeof(*names));
        node->input = names;
        node->n_input++;
        attrs[count++] = make_type(p, "Taxis", I32);
    }
    node->attr = attrs;
    node->n_attr = count;
}

/* --- the whole --- */

static graph_proto *freeze_graph(struct packing *p, struct error *err)
{
    graph_proto *out = saved_model_graph_message(p, p->content->graph, err);
    graph_proto *constants = out ? make_constants(p, err) : NULL;
    if (!constants)
        return NULL;
    node_proto **nodes =
        arena_array(p->arena, out->n_node + constants->n_node + 1, sizeof(*nodes));
    size_t count = constants->n_node;
    memcpy(nodes, constants->node, count * sizeof(*nodes));
    for (size_t i = 0; i < constants->n_node; i++)
        saved_model_shorten(p, nodes[i]);
    for (size_t i = 0; i < out->n_node; i++) {
        const struct node *node = graph_node(p->content->graph, (int)i);
        const struct reader *reader = find_reader(node);
        if (!p->wanted[i] || is_handle(node))
            continue;
        if (!check_use(node, reader, err))
            return NULL;
        if (reader)
            freeze(p, reader, (size_t)node->inputs_count, out->node[i]);
        saved_model_shorten(p, out->node[i]);
        nodes[count++] = out->node[i];
    }
    out->node = nodes;
    out->n_node = count;
    return out;
}

bool saved_model_pack_frozen(const struct saved_model_content *content, const bool *wanted,
                             struct str *out, struct error *err)
{
    struct packing p = {
        .content = content, .wanted = wanted, .arena = arena_new(), .messages = arena_new()};
    const graph_proto *graph = freeze_graph(&p, err);
    if (graph)
        message_pack(&graph->base, out);
    arena_free(p.arena);
    arena_free(p.messages);
    return graph != NULL;
}

bool saved_model_print_graph(const struct str *graph, struct str *out, struct error *err)
{
    return text_print(&tensorflow__graph_def__descriptor, graph->data, graph->size, out, err);
}
