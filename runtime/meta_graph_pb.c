/* meta_graph_pb.c - takes a MetaGraphDef apart. */

#include "runtime/meta_graph.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/graph.h"
#include "tensorflow/meta_graph.pb-c.h"

typedef Tensorflow__MetaGraphDef meta_proto;
typedef Tensorflow__CollectionDef collection_proto;

/* The node that `name`, "w:0" or "w", is of. */
static const char *node_of(struct arena *arena, const char *name)
{
    return arena_text_n(arena, name, strcspn(name, ":"));
}

/* Collections of variables have one VariableDef for each. */
static bool take_variables(const collection_proto *from, struct arena *arena,
                           struct meta_collection *out, struct error *err)
{
    size_t count = from->bytes_list->n_value;
    const char **values = arena_array(arena, count + 1, sizeof(*values));
    const char **initializers = arena_array(arena, count + 1, sizeof(*initializers));
    for (size_t i = 0; i < count; i++) {
        const ProtobufCBinaryData *bytes = &from->bytes_list->value[i];
        struct arena *messages = arena_new_limited(bytes->len * LIMIT_MESSAGE_EXPANSION +
                                                   LIMIT_MESSAGE_EXPANSION_BASE);
        const Tensorflow__VariableDef *def = message_unpack(
            &tensorflow__variable_def__descriptor, bytes->data, bytes->len, messages, err);
        if (def) {
            values[i] = node_of(arena, def->variable_name);
            initializers[i] = node_of(arena, def->initializer_name);
        }
        arena_free(messages);
        if (!def)
            return error_prefix(err, "a variable of the collection \"%s\": ", out->name);
    }
    out->values = values;
    out->initializers = initializers;
    out->count = (int)count;
    return true;
}

static bool holds_variables(const char *name)
{
    static const char *const names[] = {"variables", "local_variables", "trainable_variables"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!strcmp(names[i], name))
            return true;
    }
    return false;
}

static bool take_collection(const Tensorflow__MetaGraphDef__CollectionDefEntry *entry,
                            struct arena *arena, struct meta_collection *out, struct error *err)
{
    const collection_proto *from = entry->value;
    *out = (struct meta_collection){.name = arena_text(arena, entry->key)};
    if (!from)
        return true;
    if (from->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST &&
        holds_variables(out->name))
        return take_variables(from, arena, out, err);
    if (from->kind_case != TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST)
        return true;
    size_t count = from->node_list->n_value;
    const char **values = arena_array(arena, count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = arena_text(arena, from->node_list->value[i]);
    out->values = values;
    out->count = (int)count;
    return true;
}

static bool take_collections(const meta_proto *meta, struct arena *arena,
                             struct meta_graph *out, struct error *err)
{
    struct meta_collection *collections =
        arena_array(arena, meta->n_collection_def + 1, sizeof(*collections));
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        if (!take_collection(meta->collection_def[i], arena, &collections[i], err))
            return false;
    }
    out->collections = collections;
    out->collections_count = (int)meta->n_collection_def;
    return true;
}

/* --- signatures --- */

static void take_tensor(const char *name, const Tensorflow__TensorInfo *info,
                        struct arena *arena, struct meta_tensor *list, int *count)
{
    if (info && info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
        list[(*count)++] =
            (struct meta_tensor){arena_text(arena, name), arena_text(arena, info->name)};
}

static void take_signatures(const meta_proto *meta, struct arena *arena, struct meta_graph *out)
{
    size_t inputs = 0, outputs = 0;
    for (size_t i = 0; i < meta->n_signature_def; i++) {
        const Tensorflow__SignatureDef *signature = meta->signature_def[i]->value;
        inputs += signature ? signature->n_inputs : 0;
        outputs += signature ? signature->n_outputs : 0;
    }
    struct meta_tensor *in = arena_array(arena, inputs + 1, sizeof(*in));
    struct meta_tensor *given = arena_array(arena, outputs + 1, sizeof(*given));
    for (size_t i = 0; i < meta->n_signature_def; i++) {
        const Tensorflow__SignatureDef *signature = meta->signature_def[i]->value;
        for (size_t k = 0; signature && k < signature->n_inputs; k++)
            take_tensor(signature->inputs[k]->key, signature->inputs[k]->value, arena, in,
                        &out->inputs_count);
        for (size_t k = 0; signature && k < signature->n_outputs; k++)
            take_tensor(signature->outputs[k]->key, signature->outputs[k]->value, arena, given,
                        &out->outputs_count);
    }
    out->inputs = in;
    out->outputs = given;
}

/* --- the graph --- */

static void clear_devices(Tensorflow__NodeDef **nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nodes[i]->device = (char *)"";
}

static bool take_graph(const meta_proto *meta, struct graph *graph, struct error *err)
{
    Tensorflow__GraphDef *def = meta->graph_def;
    if (!def || !def->n_node)
        return fail(err, INVALID, "it has no graph: is it a MetaGraphDef?");
    clear_devices(def->node, def->n_node);
    for (size_t i = 0; def->library && i < def->library->n_function; i++)
        clear_devices(def->library->function[i]->node_def,
                      def->library->function[i]->n_node_def);
    struct str bytes = {0};
    message_pack(&def->base, &bytes);
    bool ok = graph_import(graph, str_text(&bytes), bytes.size, err);
    str_release(&bytes);
    return ok;
}

bool meta_graph_read(const void *bytes, size_t size, struct graph *graph,
                     struct meta_graph *out, struct error *err)
{
    struct arena *messages =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const meta_proto *meta =
        message_unpack(&tensorflow__meta_graph_def__descriptor, bytes, size, messages, err);
    *out = (struct meta_graph){0};
    bool ok = meta && take_graph(meta, graph, err) &&
              take_collections(meta, graph_arena(graph), out, err);
    if (ok)
        take_signatures(meta, graph_arena(graph), out);
    arena_free(messages);
    return ok;
}

const struct meta_collection *meta_graph_find(const struct meta_graph *meta, const char *name)
{
    for (int i = 0; i < meta->collections_count; i++) {
        if (!strcmp(meta->collections[i].name, name) && meta->collections[i].count)
            return &meta->collections[i];
    }
    return NULL;
}
