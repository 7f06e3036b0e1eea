/*
 * runner_state.c - the variables of a training over a cluster: read and written by the first
 * worker one by one, or by each task that has some, from and to checkpoints that all see.
 */

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/device.h"
#include "runtime/io/file.h"
#include "runtime/model/model.h"
#include "runtime/tensor.h"
#include "runtime/train/runner_internal.h"
#include "runtime/worker/link.h"

#define STATE_VALUE "state/value_%d"
#define STATE_WRITE "state/write_%d"
#define STATE_FILE "state/file_%d"

/* --- which task has what --- */

/* The variables of a device that was wished for. */
struct shard {
    const char *device;
    int *variables; /* numbers in the model */
    int count;
};

struct writing {
    struct runner *runner;
    struct builder b;
    struct edge *handles, *reads; /* of all variables */
    struct shard *shards;
    int shards_count;
};

/* Whether it names one task, and whether that is another than this one. */
static bool names_task(const struct runner *runner, const char *device, bool *other)
{
    struct device_name name, home;
    struct error ignored;
    if (!device_name_parse(device, &name, &ignored) || !name.job[0] || name.task < 0 ||
        !device_name_parse(runner->tasks.links[runner->tasks.home]->task, &home, &ignored))
        return false;
    *other = *other || strcmp(name.job, home.job) || name.task != home.task;
    return true;
}

/* No shards where a variable's task is not known before it is placed, or where all are here. */
static void find_shards(struct writing *w)
{
    struct runner *runner = w->runner;
    const struct model *model = runner->model;
    bool other = false;
    w->shards = arena_array(runner->arena, (size_t)model->variables_count, sizeof(*w->shards));
    for (int i = 0; i < model->variables_count; i++) {
        const char *device = w->handles[i].from->requested_device;
        int at = 0;
        if (!names_task(runner, device, &other)) {
            w->shards_count = 0;
            return;
        }
        while (at < w->shards_count && strcmp(w->shards[at].device, device) != 0)
            at++;
        struct shard *shard = &w->shards[at];
        if (at == w->shards_count) {
            w->shards_count++;
            shard->device = arena_text(runner->arena, device);
            shard->variables = arena_array(runner->arena, (size_t)model->variables_count,
                                           sizeof(*shard->variables));
        }
        shard->variables[shard->count++] = i;
    }
    if (!other || w->shards_count > LIMIT_JOB_TASKS)
        w->shards_count = 0;
}

/* --- ops --- */

static void add_variable(struct writing *w, int index)
{
    struct builder *b = &w->b;
    struct arena *arena = w->runner->arena;
    const struct model_variable *face = &w->runner->model->variables[index];
    struct edge handle = w->handles[index];
    b->device = handle.from->requested_device;
    w->reads[index] =
        builder_add(b, "ReadVariableOp", arena_printf(arena, "state/read_%d", index),
                    INPUTS(handle), ATTRS(attr_type("dtype", face->dtype)));
    struct edge value =
        builder_add(b, "Placeholder", arena_printf(arena, STATE_VALUE, index), NO_INPUTS,
                    ATTRS(attr_type("dtype", face->dtype), attr_shape("shape", &face->shape)));
    builder_add(b, "AssignVariableOp", arena_printf(arena, STATE_WRITE, index),
                INPUTS(handle, value), ATTRS(attr_type("dtype", face->dtype)));
}

/* "12 4 5,3:-": rows 5 to 7 of (12,4), as SaveV2 and RestoreV2 take it; "": all of it. */
static const char *slice_text(const struct model_variable *face, struct arena *arena)
{
    struct str text = {0};
    for (int d = 0; face->whole && d < face->whole_shape.rank; d++)
        str_printf(&text, "%lld ", (long long)face->whole_shape.dims[d]);
    for (int d = 0; face->whole && d < face->whole_shape.rank; d++) {
        if (d)
            str_add(&text, ":-");
        else
            str_printf(&text, "%lld,%lld", (long long)face->first,
                       (long long)face->shape.dims[0]);
    }
    const char *copy = arena_text(arena, str_text(&text));
    str_release(&text);
    return copy;
}

static struct edge add_texts(struct writing *w, const struct shard *shard, const char *what,
                             bool slices)
{
    struct tensor texts;
    struct builder *b = &w->b;
    struct arena *arena = w->runner->arena;
    if (b->failed || !tensor_init(&texts, STRING, &SHAPE(shard->count), b->err)) {
        b->failed = true;
        return (struct edge){0};
    }
    for (int i = 0; i < shard->count; i++) {
        const struct model_variable *face = &w->runner->model->variables[shard->variables[i]];
        const char *name = face->whole ? face->whole : face->name;
        const char *text = slices ? slice_text(face, arena) : name;
        tensor_set_string(&texts, i, text, strlen(text));
    }
    struct edge edge = builder_const(
        b, arena_printf(arena, "state/%s_%d", what, (int)(shard - w->shards)), &texts);
    tensor_release(&texts);
    return edge;
}

/* "state/save_N", "state/restored_N" and "state/look_N", where the shard's variables are. */
static void add_shard(struct writing *w, int number)
{
    const struct shard *shard = &w->shards[number];
    struct builder *b = &w->b;
    struct arena *arena = w->runner->arena;
    int count = shard->count;
    struct edge *inputs = arena_array(arena, (size_t)count + 3, sizeof(*inputs));
    int *dtypes = arena_array(arena, (size_t)count, sizeof(*dtypes));
    struct node **assigns = arena_array(arena, (size_t)count, sizeof(struct node *));
    b->device = shard->device;
    struct edge file =
        builder_add(b, "Placeholder", arena_printf(arena, STATE_FILE, number), NO_INPUTS,
                    ATTRS(attr_type("dtype", (int)STRING), attr_shape("shape", &SHAPE_SCALAR)));
    inputs[0] = file;
    inputs[1] = add_texts(w, shard, "names", false);
    inputs[2] = add_texts(w, shard, "slices", true);
    for (int i = 0; i < count; i++) {
        inputs[3 + i] = w->reads[shard->variables[i]];
        dtypes[i] = w->runner->model->variables[shard->variables[i]].dtype;
    }
    builder_add(b, "SaveV2", arena_printf(arena, "state/save_%d", number), inputs, count + 3,
                ATTRS(attr_type_list("dtypes", dtypes, count)));
    struct edge values =
        builder_add(b, "RestoreV2", arena_printf(arena, "state/restore_%d", number), inputs, 3,
                    ATTRS(attr_type_list("dtypes", dtypes, count)));
    for (int i = 0; i < count && builder_ok(b); i++)
        assigns[i] =
            builder_add(b, "AssignVariableOp",
                        arena_printf(arena, "state/assign_%d", shard->variables[i]),
                        INPUTS(w->handles[shard->variables[i]], builder_output(values, i)),
                        ATTRS(attr_type("dtype", dtypes[i])))
                .from;
    builder_group(b, arena_printf(arena, "state/restored_%d", number), assigns, count);
    builder_add(b, "ReadFile", arena_printf(arena, "state/look_%d", number), INPUTS(file),
                NO_ATTRS);
}

/* --- calls --- */

static const char **names_of(struct arena *arena, const char *start, const char *end, int count)
{
    const char **names = arena_array(arena, (size_t)count, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = arena_printf(arena, "%s_%d%s", start, i, end);
    return names;
}

static bool prepare(struct runner *runner, struct error *err)
{
    struct arena *arena = runner->arena;
    int variables = runner->model->variables_count, shards = runner->shards_count;
    const struct session_run get = {.fetches = names_of(arena, "state/read", ":0", variables),
                                    .fetches_count = variables};
    const char **files = names_of(arena, "state/file", "", shards);
    const struct session_run save = {.feeds = files,
                                     .feeds_count = shards,
                                     .targets = names_of(arena, "state/save", "", shards),
                                     .targets_count = shards};
    struct session_run restore = save, look = {.feeds = files, .feeds_count = shards};
    restore.targets = names_of(arena, "state/restored", "", shards);
    look.fetches = names_of(arena, "state/look", ":0", shards);
    look.fetches_count = shards;
    return (runner->get = runner_prepare(runner, &get, err)) &&
           (runner->save = runner_prepare(runner, &save, err)) &&
           (runner->restore = runner_prepare(runner, &restore, err)) &&
           (runner->look = runner_prepare(runner, &look, err));
}

bool runner_state_add(struct runner *runner, struct graph *graph, struct error *err)
{
    struct writing w = {.runner = runner, .b = {.graph = graph, .scope = "", .err = err}};
    const struct model *model = runner->model;
    size_t count = (size_t)model->variables_count;
    w.handles = arena_array(runner->arena, count, sizeof(*w.handles));
    w.reads = arena_array(runner->arena, count, sizeof(*w.reads));
    for (int i = 0; i < model->variables_count; i++) {
        struct node *handle = graph_find(graph, model->variables[i].name);
        if (!handle)
            return fail(err, INTERNAL, "the variable \"%s\" is not in the graph",
                        model->variables[i].name);
        w.handles[i] = (struct edge){handle, 0};
    }
    for (int i = 0; i < model->variables_count && builder_ok(&w.b); i++)
        add_variable(&w, i);
    find_shards(&w);
    for (int i = 0; i < w.shards_count && builder_ok(&w.b); i++)
        add_shard(&w, i);
    runner->shards_count = w.shards_count;
    return builder_ok(&w.b) && prepare(runner, err);
}

bool runner_state_set(struct runner *runner, int index, struct tensor *value, struct error *err)
{
    char feed[32], target[32];
    snprintf(feed, sizeof(feed), STATE_VALUE, index);
    snprintf(target, sizeof(target), STATE_WRITE, index);
    const char *feeds[] = {feed}, *targets[] = {target};
    const struct session_run run = {
        .feeds = feeds, .feeds_count = 1, .targets = targets, .targets_count = 1};
    bool ok = runner_run_cluster(runner, &run, value, NULL, NULL, err);
    tensor_release(value);
    return ok;
}

/* A task may run in another folder; owned by the caller. */
static char *absolute(const char *path)
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *whole = here ? alloc_printf("%s/%s", here, path) : alloc_text(path);
    free(here);
    return whole;
}

/* Feeds each task a path: of `paths`, or for all of them the first. */
static bool call_with_paths(struct runner *runner, const struct runner_call *call,
                            const char *const *paths, bool each, struct tensor *fetched,
                            struct error *err)
{
    int count = runner->shards_count, made = 0;
    struct tensor *feeds = alloc_array((size_t)count, sizeof(*feeds));
    bool ok = true;
    for (; ok && made < count; made += ok) {
        char *path = absolute(paths[each ? made : 0]);
        ok = tensor_init(&feeds[made], STRING, &SHAPE_SCALAR, err);
        if (ok)
            tensor_set_string(&feeds[made], 0, path, strlen(path));
        free(path);
    }
    ok = ok && runner_call(runner, call, feeds, fetched, NULL, err);
    while (made--)
        tensor_release(&feeds[made]);
    free(feeds);
    return ok;
}

int runner_shards(const struct runner *runner)
{
    return runner->shards_count;
}

bool runner_save(struct runner *runner, const char *const *prefixes, struct error *err)
{
    return call_with_paths(runner, runner->save, prefixes, true, NULL, err);
}

bool runner_restore(struct runner *runner, const char *prefix, struct error *err)
{
    return call_with_paths(runner, runner->restore, &prefix, false, NULL, err);
}

/* Whether all tell the same bytes of a file. */
static bool all_read(struct runner *runner, const char *path, const char *bytes)
{
    struct error ignored; /* who cannot read it has another disk */
    int count = runner->shards_count;
    struct tensor *told = alloc_array((size_t)count, sizeof(*told));
    bool ok = call_with_paths(runner, runner->look, &path, false, told, &ignored), same = ok;
    for (int i = 0; ok && i < count; i++) {
        const struct tensor_string *text = tensor_strings(&told[i]);
        same = same && text->size == strlen(bytes) && !memcmp(text->data, bytes, text->size);
        tensor_release(&told[i]);
    }
    free(told);
    return same;
}

bool runner_sees(struct runner *runner, const char *folder)
{
    uint64_t random[2] = {0};
    char text[40];
    struct error ignored; /* what cannot be written here is told when it is to be kept */
    if (!runner->shards_count ||
        getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return false;
    snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    char *path = alloc_printf("%s/.seen-%s.tmp", folder, text);
    bool same = file_write(path, text, strlen(text), &ignored) && all_read(runner, path, text);
    unlink(path);
    free(path);
    return same;
}
