/* saved_model.c - opens a SavedModel: its graph in a session, its variables restored. */

#include "runtime/saved_model.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/graph.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "runtime/op.h"
#include "runtime/resource.h"
#include "runtime/saved_model_internal.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

#define FILE_BYTES_MAX (INT64_C(1) << 31)
#define OBJECT_GRAPH "_CHECKPOINTABLE_OBJECT_GRAPH"
#define ASSETS_MAX 10000

/* --- the files --- */

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static bool in_folder(const char *folder, const char *name)
{
    char *path = alloc_printf("%s/%s", folder, name);
    bool there = is_there(path);
    free(path);
    return there;
}

bool saved_model_is(const char *path)
{
    return in_folder(path, "saved_model.pb") || in_folder(path, "saved_model.pbtxt");
}

static bool read_file(const char *folder, struct str *bytes, bool *is_text, struct error *err)
{
    *is_text = !in_folder(folder, "saved_model.pb");
    if (*is_text && !in_folder(folder, "saved_model.pbtxt"))
        return fail(err, NOT_FOUND,
                    "%s is no folder with a saved_model.pb or saved_model.pbtxt", folder);
    char *path =
        alloc_printf("%s/%s", folder, *is_text ? "saved_model.pbtxt" : "saved_model.pb");
    bool ok = file_read(path, FILE_BYTES_MAX, bytes, err);
    free(path);
    return ok;
}

/* --- restoring, by the graph's own ops --- */

static bool run_restore(struct session *session, const struct saved_meta *meta,
                        const char *prefix, struct error *err)
{
    struct tensor path;
    if (!tensor_init_string(&path, prefix, strlen(prefix), err))
        return false;
    const struct session_run run = {.feeds = &meta->restore_file,
                                    .feed_values = &path,
                                    .feeds_count = 1,
                                    .targets = &meta->restore_op,
                                    .targets_count = 1};
    bool ok = session_run(session, &run, NULL, err);
    tensor_release(&path);
    return ok || error_prefix(err, "its variables cannot be restored: ");
}

/* Runs what fills tables, with the assets where they are now. */
static bool run_init(struct session *session, const struct saved_meta *meta, const char *folder,
                     struct error *err)
{
    int count = 0, assets = meta->assets_count;
    if (!meta->init_op)
        return true;
    if (assets > ASSETS_MAX)
        return fail(err, EXHAUSTED, "it has %d assets, allowed: %d", assets, ASSETS_MAX);
    struct tensor *paths = alloc_array((size_t)assets + 1, sizeof(*paths));
    const char **feeds = alloc_array((size_t)assets + 1, sizeof(*feeds));
    bool ok = true;
    for (; ok && count < assets; count++) {
        char *path = alloc_printf("%s/assets/%s", folder, meta->assets[count].file);
        feeds[count] = meta->assets[count].tensor;
        ok = tensor_init_string(&paths[count], path, strlen(path), err);
        free(path);
    }
    const struct session_run run = {.feeds = feeds,
                                    .feed_values = paths,
                                    .feeds_count = count,
                                    .targets = &meta->init_op,
                                    .targets_count = 1};
    ok = ok && session_run(session, &run, NULL, err);
    for (int i = 0; i < count; i++)
        tensor_release(&paths[i]);
    free(paths);
    free(feeds);
    return ok || error_prefix(err, "its initial op failed: ");
}

/* --- variables that only the objects know --- */

/* The variable behind a VarHandleOp, made if there is none; counted. */
static struct variable *variable_of(struct session *session, const struct node *node,
                                    struct error *err)
{
    const char *name = node_attr_string(node, "shared_name", "");
    const struct shape *shape = node_attr_shape(node, "shape");
    return resources_variable(
        session_resources(session), node_attr_string(node, "container", ""),
        *name ? name : node->name, (enum dtype)node_attr_type(node, "dtype"),
        shape ? shape : &SHAPE_UNKNOWN, err);
}

static bool set_variable(struct session *session, const struct node *node, const char *key,
                         struct bundle_reader *reader, struct error *err)
{
    struct tensor value = {0};
    struct variable *variable = variable_of(session, node, err);
    if (!variable)
        return false;
    bool ok = true;
    if (!variable->value.dtype) {
        ok = bundle_reader_read(reader, key, &value, err);
        if (ok && (value.dtype != variable->dtype ||
                   !shape_compatible(&value.shape, &variable->shape)))
            ok = fail(err, INVALID, "its \"%s\" does not suit the variable \"%s\"", key,
                      variable->name);
        ok = ok && variable_assign(variable, &value, err);
        tensor_release(&value);
    }
    resource_unref(&variable->resource);
    return ok;
}

/* What functions captured, by their names; owned by the caller. */
static struct map *captures_by_function(const struct saved_meta *meta)
{
    struct map *captures = map_new();
    for (int i = 0; i < meta->captures_count; i++)
        map_set(captures, meta->captures[i].function, (void *)&meta->captures[i]);
    return captures;
}

/* The last inputs of a call are the objects that its function captured. */
static bool set_captures(struct session *session, const struct node *call,
                         const struct saved_meta *meta, const struct map *by_function,
                         struct bundle_reader *reader, struct error *err)
{
    const struct attr *f = node_attr(call, "f");
    const struct saved_captures *captures =
        f && f->kind == ATTR_FUNC ? map_find(by_function, f->funcs[0].name) : NULL;
    int first = captures ? call->inputs_count - captures->objects_count : -1;
    for (int i = 0; first >= 0 && i < captures->objects_count; i++) {
        const struct node *node = call->inputs[first + i].from;
        int id = captures->objects[i];
        const char *key = id >= 0 && id < meta->objects_count ? meta->objects[id].key : NULL;
        if (key && !strcmp(node->op->name, "VarHandleOp") &&
            !set_variable(session, node, key, reader, err))
            return false;
    }
    return true;
}

static bool set_objects(struct session *session, struct saved_meta *meta, const char *prefix,
                        struct error *err)
{
    struct tensor objects = {0};
    struct bundle_item item;
    if (!meta->objects_count)
        return true;
    struct bundle_reader *reader = bundle_reader_open(prefix, err);
    if (!reader)
        return false;
    bool ok = true, has = bundle_reader_find(reader, OBJECT_GRAPH, &item, err);
    if (has)
        ok = bundle_reader_read(reader, OBJECT_GRAPH, &objects, err);
    if (has && ok && objects.dtype == STRING && objects.count == 1) {
        const struct tensor_string *bytes = tensor_strings(&objects);
        const struct graph *graph = session_graph(session);
        struct map *captures = captures_by_function(meta);
        ok = saved_model_read_keys(meta, bytes->data, bytes->size, err);
        for (int i = 0; ok && i < graph_count(graph); i++)
            ok = set_captures(session, graph_node(graph, i), meta, captures, reader, err);
        map_free(captures);
    }
    tensor_release(&objects);
    bundle_reader_close(reader);
    return ok || error_prefix(err, "its variables cannot be restored: ");
}

/* --- the whole --- */

static bool set_state(struct session *session, struct saved_meta *meta, const char *folder,
                      struct error *err)
{
    char *prefix = alloc_printf("%s/variables/variables", folder);
    bool ok = true;
    if (in_folder(folder, "variables/variables.index")) {
        ok = (!meta->restore_op || run_restore(session, meta, prefix, err)) &&
             set_objects(session, meta, prefix, err);
    } else if (in_folder(folder, "variables")) {
        ok = fail(err, NOT_FOUND, "there is no %s.index with its variables", prefix);
    }
    free(prefix);
    return ok && run_init(session, meta, folder, err);
}

/* The session with the graph; `folder` NULL: of a MetaGraphDef, restored from `prefix`. */
static bool build(struct saved_model *out, struct saved_meta *meta, const char *folder,
                  const char *prefix, const struct session_options *options, struct error *err)
{
    out->tags = meta->tags;
    out->version = meta->version;
    out->signatures = meta->signatures;
    out->signatures_count = meta->signatures_count;
    out->session = session_new(options, err);
    if (!out->session ||
        !session_extend(out->session, str_text(&meta->graph_def), meta->graph_def.size, err))
        return false;
    if (folder)
        return set_state(out->session, meta, folder, err);
    if (prefix && !meta->restore_op)
        return fail(err, INVALID, "it has no saver that could restore %s", prefix);
    return !prefix || run_restore(out->session, meta, prefix, err);
}

static bool open_bytes(const char *path, const struct str *bytes, bool is_text,
                       const char *tags, const char *folder, const char *prefix,
                       const struct session_options *options, struct saved_model *out,
                       struct error *err)
{
    struct saved_meta meta = {0};
    struct saved_model model = {.arena = arena_new()};
    bool ok = saved_model_parse(bytes, is_text, !folder, tags, model.arena, &meta, err);
    if (ok) {
        ok = build(&model, &meta, folder, prefix, options, err);
        saved_model_release(&meta);
    }
    if (ok)
        *out = model;
    else
        saved_model_close(&model);
    return ok || error_prefix(err, "%s: ", path);
}

bool saved_model_open(const char *path, const char *tags, const struct session_options *options,
                      struct saved_model *out, struct error *err)
{
    struct str bytes = {0};
    bool is_text, ok = read_file(path, &bytes, &is_text, err) &&
                       open_bytes(path, &bytes, is_text, tags, path, NULL, options, out, err);
    str_release(&bytes);
    return ok;
}

bool saved_model_open_meta(const char *path, const char *prefix,
                           const struct session_options *options, struct saved_model *out,
                           struct error *err)
{
    struct str bytes = {0};
    bool ok = file_read(path, FILE_BYTES_MAX, &bytes, err);
    bool is_text =
        !memchr(str_text(&bytes), 0, bytes.size) && str_is_utf8(str_text(&bytes), bytes.size);
    ok = ok && open_bytes(path, &bytes, is_text, NULL, NULL, prefix, options, out, err);
    str_release(&bytes);
    return ok;
}

void saved_model_drop(const struct signature *signatures, int count)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < signatures[i].inputs_count; k++)
            if (signatures[i].inputs[k].when_absent)
                tensor_release((struct tensor *)signatures[i].inputs[k].when_absent);
    }
}

void saved_model_close(struct saved_model *model)
{
    session_free(model->session);
    saved_model_drop(model->signatures, model->signatures_count);
    arena_free(model->arena);
    *model = (struct saved_model){0};
}

const struct signature *saved_model_signature(const struct saved_model *model, const char *name,
                                              struct error *err)
{
    struct str all = {0};
    const struct signature *found = NULL;
    for (int i = 0; i < model->signatures_count; i++) {
        const struct signature *signature = &model->signatures[i];
        if (!strcmp(signature->name, name ? name : "serving_default"))
            found = signature;
        str_printf(&all, "%s%s", i ? ", " : "", signature->name);
    }
    if (!found && !name && model->signatures_count == 1)
        found = &model->signatures[0];
    if (!found)
        fail(err, NOT_FOUND, "there is no signature \"%s\"%s%s",
             name ? name : "serving_default",
             model->signatures_count ? ", there are: " : ", nor any other", str_text(&all));
    str_release(&all);
    return found;
}
