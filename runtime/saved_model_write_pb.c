/* saved_model_write_pb.c - the MetaGraphDef of a model of ours, alone or in a SavedModel. */

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/message.h"
#include "runtime/graph.h"
#include "runtime/model/model.h"
#include "runtime/op.h"
#include "runtime/saved_model_internal.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/meta_graph.pb-c.h"

typedef Tensorflow__GraphDef graph_proto;
typedef Tensorflow__NodeDef node_proto;
typedef Tensorflow__MetaGraphDef meta_proto;

/* The TensorFlow whose form of graphs we write. */
#define WRITE_VERSION "1.15.0"
#define WRITE_METHOD "tensorflow/serving/predict"

/* --- names without their scope --- */

char *saved_model_short_name(const struct packing *p, const char *name)
{
    const char *scope = p->content->scope;
    size_t caret = name[0] == '^', size = strlen(scope);
    if (strncmp(name + caret, scope, size) != 0)
        return arena_text(p->arena, name);
    const char *rest = name + caret + size;
    char *node = arena_text_n(p->arena, rest, strcspn(rest, ":"));
    const struct node *other = graph_find(p->content->graph, node);
    if (!*node || (p->saver && graph_find(p->saver, node)) || (other && p->wanted[other->id]))
        return arena_text(p->arena, name);
    return arena_printf(p->arena, "%s%s", caret ? "^" : "", rest);
}

/* --- the graph --- */

void *saved_model_graph_message(struct packing *p, const struct graph *graph, struct error *err)
{
    struct str bytes = {0};
    graph_export(graph, false, 0, &bytes);
    void *out = message_unpack(&tensorflow__graph_def__descriptor, str_text(&bytes), bytes.size,
                               p->messages, err);
    str_release(&bytes);
    return out;
}

void saved_model_shorten(const struct packing *p, void *message)
{
    node_proto *node = message;
    size_t kept = 0;
    node->name = saved_model_short_name(p, node->name);
    for (size_t k = 0; k < node->n_input; k++)
        node->input[k] = saved_model_short_name(p, node->input[k]);
    for (size_t i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i]->key, "_class") != 0)
            node->attr[kept++] = node->attr[i];
    node->n_attr = kept;
}

static graph_proto *join_graphs(struct packing *p, struct error *err)
{
    graph_proto *from = saved_model_graph_message(p, p->content->graph, err);
    graph_proto *saver = from ? saved_model_graph_message(p, p->saver, err) : NULL;
    if (!saver)
        return NULL;
    node_proto **nodes =
        arena_array(p->arena, from->n_node + saver->n_node + 1, sizeof(*nodes));
    size_t count = 0;
    for (size_t i = 0; i < saver->n_node; i++)
        nodes[count++] = saver->node[i];
    for (size_t i = 0; i < from->n_node; i++) {
        node_proto *node = from->node[i];
        if (!p->wanted[i] || graph_find(p->saver, node->name))
            continue;
        saved_model_shorten(p, node);
        nodes[count++] = node;
    }
    from->node = nodes;
    from->n_node = count;
    return from;
}

/* --- the signature --- */

static Tensorflow__TensorInfo *make_info(struct packing *p,
                                         const struct signature_tensor *tensor)
{
    Tensorflow__TensorInfo *info = arena_alloc(p->arena, sizeof(*info));
    tensorflow__tensor_info__init(info);
    info->encoding_case = TENSORFLOW__TENSOR_INFO__ENCODING_NAME;
    info->name = saved_model_short_name(p, tensor->tensor);
    info->dtype = (Tensorflow__DataType)tensor->dtype;
    info->tensor_shape = tensor_pack_shape(&tensor->shape, p->arena);
    return info;
}

static Tensorflow__MetaGraphDef__SignatureDefEntry *make_signature(struct packing *p)
{
    const struct signature *from = p->content->signature;
    Tensorflow__MetaGraphDef__SignatureDefEntry *entry = arena_alloc(p->arena, sizeof(*entry));
    Tensorflow__SignatureDef *out = arena_alloc(p->arena, sizeof(*out));
    tensorflow__meta_graph_def__signature_def_entry__init(entry);
    tensorflow__signature_def__init(out);
    entry->key = (char *)from->name;
    entry->value = out;
    out->method_name = (char *)WRITE_METHOD;
    out->inputs = arena_array(p->arena, (size_t)from->inputs_count + 1, sizeof(*out->inputs));
    for (int i = 0; i < from->inputs_count; i++) {
        Tensorflow__SignatureDef__InputsEntry *input = arena_alloc(p->arena, sizeof(*input));
        tensorflow__signature_def__inputs_entry__init(input);
        input->key = (char *)from->inputs[i].name;
        input->value = make_info(p, &from->inputs[i]);
        out->inputs[out->n_inputs++] = input;
    }
    out->outputs =
        arena_array(p->arena, (size_t)from->outputs_count + 1, sizeof(*out->outputs));
    for (int i = 0; i < from->outputs_count; i++) {
        Tensorflow__SignatureDef__OutputsEntry *output = arena_alloc(p->arena, sizeof(*output));
        tensorflow__signature_def__outputs_entry__init(output);
        output->key = (char *)from->outputs[i].name;
        output->value = make_info(p, &from->outputs[i]);
        out->outputs[out->n_outputs++] = output;
    }
    return entry;
}

/* --- the variables, for those who look for them --- */

static ProtobufCBinaryData make_variable(struct packing *p,
                                         const struct model_variable *variable)
{
    Tensorflow__VariableDef def = TENSORFLOW__VARIABLE_DEF__INIT;
    struct str bytes = {0};
    def.variable_name = arena_printf(p->arena, "%s:0", variable->name);
    def.initializer_name = arena_printf(p->arena, "%s/Assign", variable->name);
    def.snapshot_name = arena_printf(p->arena, "%s/Read/ReadVariableOp:0", variable->name);
    def.initial_value_name = arena_printf(p->arena, "%s/Initializer/zeros:0", variable->name);
    def.is_resource = true;
    def.trainable = variable->trainable;
    message_pack(&def.base, &bytes);
    ProtobufCBinaryData out = {bytes.size, arena_copy(p->arena, bytes.data, bytes.size)};
    str_release(&bytes);
    return out;
}

static Tensorflow__MetaGraphDef__CollectionDefEntry *
make_collection(struct packing *p, const char *name, bool trainable)
{
    const struct saved_model_content *content = p->content;
    Tensorflow__MetaGraphDef__CollectionDefEntry *entry = arena_alloc(p->arena, sizeof(*entry));
    Tensorflow__CollectionDef *out = arena_alloc(p->arena, sizeof(*out));
    Tensorflow__CollectionDef__BytesList *list = arena_alloc(p->arena, sizeof(*list));
    tensorflow__meta_graph_def__collection_def_entry__init(entry);
    tensorflow__collection_def__init(out);
    tensorflow__collection_def__bytes_list__init(list);
    list->value =
        arena_array(p->arena, (size_t)content->variables_count + 1, sizeof(*list->value));
    for (int i = 0; i < content->variables_count; i++) {
        const struct model_variable *variable = &content->variables[i];
        if (content->values[i].dtype && (variable->trainable || !trainable))
            list->value[list->n_value++] = make_variable(p, variable);
    }
    entry->key = (char *)name;
    entry->value = out;
    out->kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
    out->bytes_list = list;
    return entry;
}

/* --- the whole --- */

static bool pack(struct packing *p, bool is_meta_graph, struct str *out, struct error *err)
{
    Tensorflow__SavedModel model = TENSORFLOW__SAVED_MODEL__INIT;
    meta_proto meta = TENSORFLOW__META_GRAPH_DEF__INIT, *metas = &meta;
    Tensorflow__MetaGraphDef__MetaInfoDef info =
        TENSORFLOW__META_GRAPH_DEF__META_INFO_DEF__INIT;
    Tensorflow__SaverDef saver = TENSORFLOW__SAVER_DEF__INIT;
    char *tags[] = {(char *)"serve"};
    Tensorflow__MetaGraphDef__SignatureDefEntry *signature = make_signature(p);
    Tensorflow__MetaGraphDef__CollectionDefEntry *collections[] = {
        make_collection(p, "variables", false),
        make_collection(p, "trainable_variables", true)};
    info.tags = tags;
    info.n_tags = ARRAY_LEN(tags);
    info.tensorflow_version = (char *)WRITE_VERSION;
    saver.filename_tensor_name = (char *)"save/Const:0";
    saver.save_tensor_name = (char *)"save/control_dependency:0";
    saver.restore_op_name = (char *)"save/restore_all";
    saver.max_to_keep = 5;
    saver.keep_checkpoint_every_n_hours = 10000;
    saver.version = TENSORFLOW__SAVER_DEF__CHECKPOINT_FORMAT_VERSION__V2;
    meta.meta_info_def = &info;
    meta.graph_def = join_graphs(p, err);
    if (!meta.graph_def)
        return false;
    if (graph_count(p->saver)) {
        meta.saver_def = &saver;
        meta.collection_def = collections;
        meta.n_collection_def = ARRAY_LEN(collections);
    }
    meta.signature_def = &signature;
    meta.n_signature_def = 1;
    model.saved_model_schema_version = 1;
    model.meta_graphs = &metas;
    model.n_meta_graphs = 1;
    message_pack(is_meta_graph ? &meta.base : &model.base, out);
    return true;
}

bool saved_model_pack(const struct saved_model_content *content, const bool *wanted,
                      const struct graph *saver, bool is_meta_graph, struct str *out,
                      struct error *err)
{
    struct packing p = {.content = content,
                        .wanted = wanted,
                        .saver = saver,
                        .arena = arena_new(),
                        .messages = arena_new()};
    bool ok = pack(&p, is_meta_graph, out, err);
    arena_free(p.arena);
    arena_free(p.messages);
    return ok;
}
