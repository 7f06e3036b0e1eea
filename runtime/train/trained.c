/* trained.c - opens a checkpoint: its spec as a graph, its tensors as the variables. */

#include "runtime/train/trained_internal.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/checkpoint.h"
#include "runtime/dataset/format.h"
#include "runtime/dataset/transform.h"
#include "runtime/graph.h"
#include "runtime/io/file.h"
#include "runtime/op.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"

/* --- where it is --- */

static bool is_there(const char *folder, const char *name)
{
    struct stat info;
    char *path = alloc_printf("%s%s", folder, name);
    bool there = stat(path, &info) == 0;
    free(path);
    return there;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The path without an ending that one of a checkpoint's files has. */
static char *prefix_of(const char *path)
{
    static const char *const endings[] = {".index", ".manifest", ".data-00000-of-00001"};
    size_t size = strlen(path);
    for (int i = 0; i < ARRAY_LEN(endings); i++) {
        size_t end = strlen(endings[i]);
        if (size > end && !strcmp(path + size - end, endings[i]))
            return alloc_text_n(path, size - end);
    }
    return alloc_text(path);
}

/* Whether the path is of the file that names the best checkpoint of its folder. */
static bool is_best(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct stat info;
    return !strcmp(slash ? slash + 1 : path, "best") && !stat(path, &info) &&
           S_ISREG(info.st_mode);
}

bool trained_is(const char *path)
{
    if (is_folder(path))
        return is_there(path, "/checkpoints/checkpoint") || is_there(path, "/checkpoint");
    if (is_best(path) || (trained_is_keras(path) && is_there(path, "")))
        return true;
    char *prefix = prefix_of(path);
    bool there = is_there(prefix, ".index");
    free(prefix);
    return there;
}

/* The prefix that a path means which is no folder; owned, NULL after setting `err`. */
static char *named_prefix(const char *path, struct error *err)
{
    if (!is_best(path))
        return prefix_of(path);
    char *folder = file_folder(path), *prefix = checkpoint_best(folder, err);
    free(folder);
    return prefix;
}

static bool load(const char *path, struct checkpoint *checkpoint, struct error *err)
{
    if (!is_folder(path)) {
        char *prefix = named_prefix(path, err);
        if (!prefix)
            return false;
        bool ok = is_there(prefix, ".index") ||
                  fail(err, NOT_FOUND, "there is no checkpoint %s", prefix);
        if (ok && !is_there(prefix, ".manifest"))
            ok = fail(err, INVALID,
                      "%s was not written by a training here: there is no %s.manifest, which "
                      "tells its spec",
                      prefix, prefix);
        ok = ok && checkpoint_load_prefix(prefix, checkpoint, err);
        free(prefix);
        return ok;
    }
    char *inside = alloc_printf("%s/checkpoints", path);
    bool ok = checkpoint_load(is_folder(inside) ? inside : path, checkpoint, err);
    free(inside);
    return ok;
}

/* --- what of the model is needed --- */

/* Marks the nodes that `name` (an output, "x:0") is computed from; `marks` by node id. */
static void mark(const struct graph *graph, const char *name, bool *marks, int *stack)
{
    struct edge edge;
    struct error ignored; /* names of the model's own making */
    int depth = 0;
    if (!name || !graph_edge(graph, name, &edge, &ignored) || marks[edge.from->id])
        return;
    marks[edge.from->id] = true;
    stack[depth++] = edge.from->id;
    while (depth) {
        const struct node *node = graph_node(graph, stack[--depth]);
        const struct node *from;
        for (int i = 0; (from = node_before(node, i)); i++) {
            if (!marks[from->id]) {
                marks[from->id] = true;
                stack[depth++] = from->id;
            }
        }
    }
}

/* Whether evaluation or prediction needs it, by the index of the variable. */
bool *trained_needed(const struct model *model)
{
    size_t count = (size_t)graph_count(model->graph);
    bool *marks = alloc_array(count, sizeof(*marks));
    int *stack = alloc_array(count, sizeof(*stack));
    bool *needed = alloc_array((size_t)model->variables_count + 1, sizeof(*needed));
    mark(model->graph, model->output, marks, stack);
    for (int i = 0; i < model->metrics_count; i++)
        mark(model->graph, model->metrics[i].eval_sums, marks, stack);
    for (int i = 0; i < model->variables_count; i++) {
        const struct node *node = graph_find(model->graph, model->variables[i].name);
        needed[i] = node && marks[node->id];
    }
    free(marks);
    free(stack);
    return needed;
}

/* --- opening --- */

bool trained_set(struct trained *trained, int index, const struct tensor *value,
                 struct error *err)
{
    const struct model_variable *face = &trained->model.variables[index];
    if (!value || (int)value->dtype != face->dtype || !shape_equal(&value->shape, &face->shape))
        return fail(err, DATA_LOSS, "it has no \"%s\" as its spec has it", face->name);
    struct variable *variable =
        model_variable_in(face, session_resources(trained->session), err);
    bool ok = variable && variable_assign(variable, value, err);
    if (ok)
        tensor_share(&trained->values[index], value);
    if (variable)
        resource_unref(&variable->resource);
    return ok;
}

static bool set_variables(struct trained *trained, const struct checkpoint *checkpoint,
                          struct error *err)
{
    bool *needed = trained_needed(&trained->model), ok = true;
    for (int i = 0; ok && i < trained->model.variables_count; i++)
        ok = !needed[i] ||
             trained_set(trained, i,
                         checkpoint_find(checkpoint, trained->model.variables[i].name), err);
    free(needed);
    return ok;
}

static struct signature_tensor tensor_of(struct arena *arena, const char *scope,
                                         const struct model_feature *feature)
{
    struct signature_tensor out = {.name = feature->name,
                                   .tensor =
                                       arena_printf(arena, "%s%s:0", scope, feature->name),
                                   .dtype = feature->dtype,
                                   .shape = {.rank = feature->shape.rank + 1, .dims = {-1}}};
    memcpy(out.shape.dims + 1, feature->shape.dims,
           (size_t)feature->shape.rank * sizeof(*out.shape.dims));
    return out;
}

static void set_words(struct signature_tensor *tensor, const struct dataset_column *column)
{
    tensor->words = column->vocabulary;
    tensor->words_count = column->vocabulary ? column->classes : 0;
}

static bool set_signature(struct trained *trained, struct error *err)
{
    const struct model_data *data = &trained->dataset.feeds.data;
    const struct model *model = &trained->model;
    struct arena *arena = trained->arena;
    struct signature_tensor *inputs =
        arena_array(arena, (size_t)data->features_count, sizeof(*inputs));
    struct signature_tensor *output = arena_alloc(arena, sizeof(*output));
    for (int i = 0; i < data->features_count; i++)
        inputs[i] = tensor_of(arena, model->eval_scope, &data->features[i]),
        set_words(&inputs[i], &trained->dataset.columns[i]);
    struct edge edge;
    if (model->output && !graph_edge(model->graph, model->output, &edge, err))
        return false;
    if (model->output)
        *output = (struct signature_tensor){.name = "predictions",
                                            .tensor = model->output,
                                            .dtype = edge.from->output_types[edge.output],
                                            .shape = model->output_shape};
    set_words(output, &trained->dataset.columns[data->features_count]);
    trained->signature = (struct signature){.name = "serving_default",
                                            .inputs = inputs,
                                            .inputs_count = data->features_count,
                                            .outputs = output,
                                            .outputs_count = model->output ? 1 : 0};
    return true;
}

/* What is done with images where nothing is random. */
static bool open_transforms(struct trained *trained, struct error *err)
{
    struct dataset *dataset = &trained->dataset;
    struct dataset_opening opening = {.folder = "",
                                      .data = &trained->spec->data,
                                      .seed = trained->spec->seed,
                                      .dataset = dataset};
    dataset->transforms =
        arena_array(trained->arena, (size_t)dataset->columns_count, sizeof(void *));
    return transform_augment(&opening, err);
}

bool trained_build(struct trained *trained, const struct session_options *options,
                   struct error *err)
{
    /* Whatever trained it: it is used in one task. */
    struct spec *alone = arena_copy(trained->arena, trained->spec, sizeof(*alone));
    alone->tasks[ROLE_WORKER].replicas = 1;
    alone->tasks[ROLE_PS].replicas = 0;
    alone->strategy.mode = MODE_SYNC;
    alone->pins_count = 0;
    trained->spec = alone;
    const struct model_data *data = &trained->dataset.feeds.data;
    if (!open_transforms(trained, err) ||
        !(trained->is_plain ? model_build_plain(alone, data, &trained->model, err)
                            : model_build(alone, data, &trained->model, err)))
        return false;
    trained->values = arena_array(trained->arena, (size_t)trained->model.variables_count + 1,
                                  sizeof(struct tensor));
    struct session_options own = options ? *options : (struct session_options){0};
    own.precision = trained->spec->train.precision;
    trained->session = session_new(&own, err);
    return trained->session &&
           session_extend_graph(trained->session, trained->model.graph, err) &&
           set_signature(trained, err);
}

static bool open_checkpoint(struct trained *trained, const struct checkpoint *checkpoint,
                            const struct session_options *options, struct error *err)
{
    if (!checkpoint->model)
        return fail(err, INVALID,
                    "its manifest does not tell the spec: train on from it, "
                    "with --resume, to have one that does");
    trained->prefix = arena_text(trained->arena, checkpoint->prefix);
    trained->step = checkpoint->step;
    return trained_parse(checkpoint->model, trained->arena, &trained->spec, &trained->dataset,
                         err) &&
           trained_build(trained, options, err) && set_variables(trained, checkpoint, err);
}

static bool open_path(struct trained *trained, const char *path,
                      const struct session_options *options, struct error *err)
{
    struct checkpoint checkpoint;
    if (trained_is_keras(path))
        return trained_open_keras(trained, path, options, err) ||
               (strncmp(err->text, path, strlen(path)) && error_prefix(err, "%s: ", path));
    if (!load(path, &checkpoint, err))
        return false;
    bool ok = open_checkpoint(trained, &checkpoint, options, err) ||
              error_prefix(err, "%s: ", checkpoint.prefix);
    checkpoint_release(&checkpoint);
    return ok;
}

static bool open_trained(const char *path, const struct session_options *options, bool plain,
                         struct trained *out, struct error *err)
{
    struct trained trained = {.is_plain = plain, .arena = arena_new()};
    bool ok = open_path(&trained, path, options, err);
    if (ok)
        *out = trained;
    else
        trained_close(&trained);
    return ok;
}

bool trained_open(const char *path, const struct session_options *options, struct trained *out,
                  struct error *err)
{
    return open_trained(path, options, false, out, err);
}

bool trained_open_plain(const char *path, struct trained *out, struct error *err)
{
    return open_trained(path, NULL, true, out, err);
}

bool trained_predicts(const struct trained *trained, struct error *err)
{
    return trained->model.output ||
           fail(err, INVALID,
                "\"%s\" is a graph of which nobody said what it predicts (\"output\" in "
                "\"graph\" of its spec)",
                trained->spec->name);
}

void trained_close(struct trained *trained)
{
    session_free(trained->session);
    for (int i = 0; trained->values && i < trained->model.variables_count; i++)
        tensor_release(&trained->values[i]);
    if (trained->model.graph)
        model_release(&trained->model);
    trained->dataset.arena = trained->arena;
    dataset_close(&trained->dataset); /* with the arena */
    *trained = (struct trained){0};
}
