/* saved_model_write.c - a model of ours as a SavedModel, a MetaGraphDef with its checkpoint or
 * a GraphDef: the nodes that its signature needs, and a saver as TensorFlow 1 has it. */

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/builder.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "runtime/model/model.h"
#include "runtime/op.h"
#include "runtime/saved_model_internal.h"
#include "runtime/tensor.h"

/* --- which nodes --- */

/* Marks all that the outputs are computed from, by id. */
static bool mark_wanted(const struct saved_model_content *content, bool *wanted,
                        struct error *err)
{
    int *stack = alloc_array((size_t)graph_count(content->graph) + 1, sizeof(*stack));
    bool ok = true;
    for (int i = 0; ok && i < content->signature->outputs_count; i++) {
        struct edge edge;
        int depth = 0;
        ok = graph_edge(content->graph, content->signature->outputs[i].tensor, &edge, err);
        if (ok && !wanted[edge.from->id]) {
            wanted[edge.from->id] = true;
            stack[depth++] = edge.from->id;
        }
        while (depth) {
            const struct node *node = graph_node(content->graph, stack[--depth]);
            for (int k = 0; k < node->inputs_count + node->controls_count; k++) {
                const struct node *from = k < node->inputs_count
                                              ? node->inputs[k].from
                                              : node->controls[k - node->inputs_count];
                if (!wanted[from->id]) {
                    wanted[from->id] = true;
                    stack[depth++] = from->id;
                }
            }
        }
    }
    free(stack);
    return ok;
}

/* An op with an underscore is one of ours alone. */
static bool check_ops(const struct saved_model_content *content, const bool *wanted,
                      struct error *err)
{
    for (int i = 0; i < graph_count(content->graph); i++) {
        const struct node *node = graph_node(content->graph, i);
        if (wanted[i] && node->op->name[0] == '_')
            return fail(err, UNIMPLEMENTED, "node \"%s\" is a %s, which TensorFlow has not",
                        node->name, node->op->name);
        if (wanted[i] && node->outputs_count && dtype_is_ref(node->output_types[0]))
            return fail(err, UNIMPLEMENTED,
                        "node \"%s\" is a %s, a variable by reference: only resource variables "
                        "are written",
                        node->name, node->op->name);
    }
    return true;
}

/* --- the saver --- */

/* The variable with a start value, as VariableDef names them. */
static struct edge add_variable(struct builder *b, struct arena *arena,
                                const struct model_variable *variable)
{
    struct edge dims =
        builder_ints(b, arena_printf(arena, "%s/Initializer/dims", variable->name), I64,
                     variable->shape.dims, variable->shape.rank);
    struct edge zero =
        builder_scalar(b, arena_printf(arena, "%s/Initializer/zero", variable->name),
                       (enum dtype)variable->dtype, 0);
    struct edge start =
        builder_add(b, "Fill", arena_printf(arena, "%s/Initializer/zeros", variable->name),
                    INPUTS(dims, zero),
                    ATTRS(attr_type("T", variable->dtype), attr_type("index_type", (int)I64)));
    struct edge handle = builder_add(b, "VarHandleOp", variable->name, NO_INPUTS,
                                     ATTRS(attr_type("dtype", variable->dtype),
                                           attr_shape("shape", &variable->shape),
                                           attr_string("shared_name", variable->name)));
    builder_add(b, "AssignVariableOp", arena_printf(arena, "%s/Assign", variable->name),
                INPUTS(handle, start), ATTRS(attr_type("dtype", variable->dtype)));
    return handle;
}

static struct edge add_names(struct builder *b, const char *name, const char *const *texts,
                             int count)
{
    struct tensor value;
    if (b->failed || !tensor_init(&value, STRING, &SHAPE(count), b->err)) {
        b->failed = true;
        return (struct edge){0};
    }
    for (int i = 0; texts && i < count; i++)
        tensor_set_string(&value, i, texts[i], strlen(texts[i]));
    struct edge edge = builder_const(b, name, &value);
    tensor_release(&value);
    return edge;
}

struct saver {
    struct edge *handles, *reads;
    const char **names;
    int *types;
    int count;
};

static struct edge add_filename(struct builder *b)
{
    struct edge input = builder_text(b, "save/filename/input", "model");
    struct edge name =
        builder_add(b, "PlaceholderWithDefault", "save/filename", INPUTS(input),
                    ATTRS(attr_type("dtype", (int)STRING), attr_shape("shape", &SHAPE_SCALAR)));
    return builder_add(
        b, "PlaceholderWithDefault", "save/Const", INPUTS(name),
        ATTRS(attr_type("dtype", (int)STRING), attr_shape("shape", &SHAPE_SCALAR)));
}

static void add_save(struct builder *b, const struct saver *saver, struct edge file)
{
    struct edge *inputs = alloc_array((size_t)saver->count + 3, sizeof(*inputs));
    inputs[0] = file;
    inputs[1] = add_names(b, "save/SaveV2/tensor_names", saver->names, saver->count);
    inputs[2] = add_names(b, "save/SaveV2/shape_and_slices", NULL, saver->count);
    memcpy(inputs + 3, saver->reads, (size_t)saver->count * sizeof(*inputs));
    struct edge save = builder_add(b, "SaveV2", "save/SaveV2", inputs, saver->count + 3,
                                   ATTRS(attr_type_list("dtypes", saver->types, saver->count)));
    struct edge done = builder_add(b, "Identity", "save/control_dependency", INPUTS(file),
                                   ATTRS(attr_type("T", (int)STRING)));
    if (builder_ok(b))
        graph_add_control(b->graph, done.from, save.from);
    free(inputs);
}

static void add_restore(struct builder *b, const struct saver *saver, struct edge file,
                        struct arena *arena)
{
    struct node **assigns = alloc_array((size_t)saver->count + 1, sizeof(struct node *));
    struct edge restored = builder_add(
        b, "RestoreV2", "save/RestoreV2",
        INPUTS(file, add_names(b, "save/RestoreV2/tensor_names", saver->names, saver->count),
               add_names(b, "save/RestoreV2/shape_and_slices", NULL, saver->count)),
        ATTRS(attr_type_list("dtypes", saver->types, saver->count)));
    for (int i = 0; i < saver->count; i++)
        assigns[i] = builder_add(b, "AssignVariableOp",
                                 arena_printf(arena, "save/AssignVariableOp_%d", i),
                                 INPUTS(saver->handles[i], builder_output(restored, i)),
                                 ATTRS(attr_type("dtype", saver->types[i])))
                         .from;
    if (builder_ok(b))
        builder_group(b, "save/restore_all", assigns, saver->count);
    free(assigns);
}

/* The graph of the variables that have values, and of what saves and restores them. */
static bool build_saver(const struct saved_model_content *content, struct graph *graph,
                        struct error *err)
{
    struct builder b = {.graph = graph, .scope = "", .err = err};
    struct arena *arena = graph_arena(graph);
    size_t most = (size_t)content->variables_count + 1;
    struct saver saver = {.handles = arena_array(arena, most, sizeof(struct edge)),
                          .reads = arena_array(arena, most, sizeof(struct edge)),
                          .names = arena_array(arena, most, sizeof(char *)),
                          .types = arena_array(arena, most, sizeof(int))};
    for (int i = 0; i < content->variables_count; i++) {
        const struct model_variable *variable = &content->variables[i];
        if (!content->values[i].dtype)
            continue;
        int n = saver.count++;
        saver.names[n] = variable->name;
        saver.types[n] = variable->dtype;
        saver.handles[n] = add_variable(&b, arena, variable);
        saver.reads[n] = builder_add(
            &b, "ReadVariableOp", arena_printf(arena, "%s/Read/ReadVariableOp", variable->name),
            INPUTS(saver.handles[n]), ATTRS(attr_type("dtype", variable->dtype)));
    }
    if (!saver.count || !builder_ok(&b))
        return builder_ok(&b);
    struct edge file = add_filename(&b);
    add_save(&b, &saver, file);
    add_restore(&b, &saver, file, arena);
    return builder_ok(&b);
}

/* --- the files --- */

static bool make_folder(const char *path, struct error *err)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST || file_error(err, "create folder", path);
}

/* A checkpoint of what the graph's saver restores. */
static bool write_checkpoint(const char *prefix, const struct saved_model_content *content,
                             struct error *err)
{
    struct bundle_writer *writer = bundle_writer_open(prefix, err);
    bool ok = writer != NULL;
    for (int i = 0; ok && i < content->variables_count; i++)
        ok = !content->values[i].dtype ||
             bundle_writer_add(writer, content->variables[i].name, &content->values[i], err);
    if (ok)
        return bundle_writer_finish(writer, err);
    bundle_writer_discard(writer);
    return false;
}

/* The message of the model; of a MetaGraphDef, or of a SavedModel. */
static bool pack(const struct saved_model_content *content, bool is_meta_graph, struct str *out,
                 struct error *err)
{
    struct graph *saver = graph_new();
    bool *wanted = alloc_array((size_t)graph_count(content->graph) + 1, sizeof(*wanted));
    bool ok = mark_wanted(content, wanted, err) && check_ops(content, wanted, err) &&
              build_saver(content, saver, err) &&
              saved_model_pack(content, wanted, saver, is_meta_graph, out, err);
    free(wanted);
    graph_free(saver);
    return ok;
}

/* Variables first: who finds the model's file finds all of it. */
bool saved_model_write(const char *path, const struct saved_model_content *content,
                       struct error *err)
{
    struct str model = {0};
    char *file = alloc_printf("%s/saved_model.pb", path);
    char *inside = alloc_printf("%s/variables", path);
    char *prefix = alloc_printf("%s/variables", inside);
    bool ok = pack(content, false, &model, err) && make_folder(path, err) &&
              make_folder(inside, err) && write_checkpoint(prefix, content, err) &&
              file_write(file, model.data, model.size, err);
    free(prefix);
    free(inside);
    free(file);
    str_release(&model);
    return ok;
}

bool saved_model_write_meta(const char *prefix, const struct saved_model_content *content,
                            struct error *err)
{
    struct str meta = {0};
    char *file = alloc_printf("%s.meta", prefix);
    bool ok = pack(content, true, &meta, err) && write_checkpoint(prefix, content, err) &&
              file_write(file, meta.data, meta.size, err);
    free(file);
    str_release(&meta);
    return ok;
}

bool saved_model_write_graph(const char *path, bool as_text,
                             const struct saved_model_content *content, struct error *err)
{
    struct str graph = {0}, text = {0};
    bool *wanted = alloc_array((size_t)graph_count(content->graph) + 1, sizeof(*wanted));
    bool ok = mark_wanted(content, wanted, err) && check_ops(content, wanted, err) &&
              saved_model_pack_frozen(content, wanted, &graph, err) &&
              (!as_text || saved_model_print_graph(&graph, &text, err));
    const struct str *bytes = as_text ? &text : &graph;
    ok = ok && file_write(path, bytes->data, bytes->size, err);
    free(wanted);
    str_release(&graph);
    str_release(&text);
    return ok;
}
