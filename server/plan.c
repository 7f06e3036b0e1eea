/* plan.c - needs of a spec, and the nodes that could meet them now. */

#include <dirent.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/nodes.h"
#include "db/queues.h"
#include "runtime/dataset/feeds.h"
#include "runtime/spec/spec.h"
#include "scheduler/loop.h"
#include "server/plan.h"
#include "server/plan_whatif.h"
#include "server/request.h"

#define PLAN_RANK_MAX 8 /* dimensions of one example */

/* Labels that a node must have, as the database keeps them. */
static const char *labels_json(const struct spec_task *task, struct arena *arena)
{
    json_t *object = json_object();
    for (int i = 0; i < task->node_labels_count; i++)
        json_object_set_new(object, task->node_labels[i].name,
                            json_string(task->node_labels[i].value));
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    const char *copy = arena_text(arena, text);
    free(text);
    json_decref(object);
    return copy;
}

static bool collect_needs(const struct spec *spec, struct arena *arena, struct plan *plan,
                          struct error *err)
{
    static_assert(SPEC_ROLES <= PLAN_ROLES_MAX, "a need for every role");
    for (int role = 0; role < SPEC_ROLES; role++) {
        const struct spec_task *task = &spec->tasks[role];
        if (!task->replicas)
            continue;
        plan->tasks_count += task->replicas;
        plan->needs[plan->needs_count++] = (struct db_need){
            .role = spec_role_name((enum spec_role)role),
            .replicas = task->replicas,
            .cpu_millis = task->cpu_millis,
            .memory_bytes = task->memory_bytes,
            .gpus = task->gpus,
            .gpu_share = task->gpu_share,
            .gpu_type = task->gpu_type,
            .gpu_memory_bytes = task->gpu_memory_bytes,
            .node_labels = labels_json(task, arena),
        };
    }
    if (plan->tasks_count > LIMIT_JOB_TASKS)
        return error_at(err, "/tasks", INVALID, "%d tasks; at most %d are possible",
                        plan->tasks_count, LIMIT_JOB_TASKS);
    return true;
}

/* Names the datasets that there are, for one who asked for another. */
static void add_known(const char *folder, struct str *text)
{
    DIR *dir = opendir(folder);
    int count = 0;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) && count < 20)
        if (entry->d_name[0] != '.' && spec_is_name(entry->d_name))
            str_printf(text, "%s%s", count++ ? ", " : "; there are: ", entry->d_name);
    if (dir)
        closedir(dir);
    if (!count)
        str_add(text, "; there is none yet");
}

/* A column as dataset.json tells it; false when it makes no sense. */
static bool read_column(const json_t *json, struct arena *arena, struct dataset_column *out)
{
    const char *name, *role, *dtype;
    json_t *shape;
    json_int_t classes;
    if (json_unpack((json_t *)json, "{s:s, s:s, s:s, s:o, s:I}", "name", &name, "role", &role,
                    "dtype", &dtype, "shape", &shape, "classes", &classes) < 0 ||
        json_array_size(shape) > PLAN_RANK_MAX)
        return false;
    *out = (struct dataset_column){.name = arena_text(arena, name),
                                   .role = !strcmp(role, "feature")  ? DATASET_FEATURE
                                           : !strcmp(role, "target") ? DATASET_TARGET
                                                                     : DATASET_UNUSED,
                                   .stored = dtype_find(dtype),
                                   .dtype = dtype_find(dtype),
                                   .classes = classes};
    for (size_t i = 0; i < json_array_size(shape); i++)
        out->shape.dims[out->shape.rank++] = json_integer_value(json_array_get(shape, i));
    return out->dtype != DTYPE_NONE && shape_is_full(&out->shape);
}

/* Whether the spec reads the data otherwise than dataset.json, made without it, tells. */
static bool reads_otherwise(const struct spec_data *data, const char *format)
{
    bool table = !strcmp(format, "csv") || !strcmp(format, "tfrecord");
    return data->columns_count || data->format || data->weight || data->text.sequence_length ||
           data->text.skip_gram || data->image_size[0] || data->augment_count ||
           (table && (data->target || data->features_count));
}

/*
 * Looks whether the layers fit the examples and each other.  What dataset.json does not tell,
 * or the spec changes, the task finds out.
 */
static bool check_model(struct request *req, const struct spec *spec, const json_t *dataset,
                        struct plan *plan, struct error *err)
{
    const char *format;
    json_t *list = json_object_get(dataset, "columns");
    size_t count = json_array_size(list);
    struct dataset_column *columns = arena_array(req->arena, count + 1, sizeof(*columns));
    struct feeds feeds;
    if (!count || json_unpack((json_t *)dataset, "{s:s}", "format", &format) < 0 ||
        reads_otherwise(&spec->data, format))
        return true;
    for (size_t i = 0; i < count; i++) {
        if (!read_column(json_array_get(list, i), req->arena, &columns[i]))
            return true;
    }
    if (!feeds_choose(columns, (int)count, &spec->data, req->arena, &feeds, err))
        return false;
    plan->has_model = true;
    return model_summary(spec, &feeds.data, req->arena, &plan->model, err);
}

/* Whether `trainyard dataset add NAME` makes or downloads it; others come from a folder. */
static bool comes_by_name(const char *name)
{
    static const char *const names[] = {"mnist",  "fashion-mnist", "cifar10", "digits",
                                        "linear", "census",        "blobs"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!strcmp(names[i], name))
            return true;
    }
    return false;
}

/* Finds the dataset, and looks whether the model fits it. */
static bool check_dataset(struct request *req, const struct spec *spec, struct plan *plan,
                          struct error *err)
{
    const char *name = spec->data.dataset;
    if (!name || !*name)
        return true;
    const char *folder = arena_printf(req->arena, "%s/datasets", req->services->folder);
    json_t *dataset =
        json_load_file(arena_printf(req->arena, "%s/%s/dataset.json", folder, name), 0, NULL);
    if (dataset) {
        bool ok = check_model(req, spec, dataset, plan, err);
        json_decref(dataset);
        return ok;
    }
    struct str known = {0};
    add_known(folder, &known);
    error_at(err, "/data/dataset", INVALID,
             "dataset '%s' is not on this server%s. Add it with: trainyard dataset add %s%s "
             "--dir %s",
             name, str_text(&known), name, comes_by_name(name) ? "" : " --from FOLDER",
             req->services->folder);
    str_release(&known);
    return false;
}

/* "1 task, 2 CPUs in all" */
static void describe_needs(const struct plan *plan, struct str *text)
{
    int64_t cpus = 0;
    int gpus = 0;
    for (int n = 0; n < plan->needs_count; n++) {
        cpus += plan->needs[n].cpu_millis * plan->needs[n].replicas;
        gpus += plan->needs[n].gpus * plan->needs[n].replicas;
    }
    str_printf(text, "%d task%s, %g CPU%s in all", plan->tasks_count,
               plan->tasks_count == 1 ? "" : "s", (double)cpus / 1000, cpus == 1000 ? "" : "s");
    if (gpus)
        str_printf(text, ", %d GPU%s", gpus, gpus == 1 ? "" : "s");
}

/* A queue must be there: a word that was mistyped is none. */
static bool check_queue(struct request *req, const struct spec *spec, struct error *err)
{
    struct db_queue *queues;
    int count;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_queues_list(conn, req->arena, &queues, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    struct str known = {0};
    for (int i = 0; i < count; i++) {
        if (strcmp(queues[i].name, spec->queue) == 0) {
            str_release(&known);
            return true;
        }
        str_printf(&known, "%s%s", i ? ", " : "", queues[i].name);
    }
    error_at(err, "/queue", INVALID, "there is no queue '%s'; there are: %s", spec->queue,
             str_text(&known));
    str_release(&known);
    return false;
}

bool plan_make_for(struct request *req, const struct spec *spec, struct plan *plan,
                   struct error *err)
{
    *plan = (struct plan){0};
    return collect_needs(spec, req->arena, plan, err) && check_queue(req, spec, err) &&
           check_dataset(req, spec, plan, err);
}

bool plan_make(struct request *req, const struct spec *spec, struct plan *plan,
               struct error *err)
{
    return plan_make_for(req, spec, plan, err) &&
           loop_check(req->services->loop, spec->queue, plan->needs, plan->needs_count, err);
}

bool plan_forecast(struct request *req, const struct spec *spec,
                   const struct whatif_node *nodes, int nodes_count, struct plan *plan,
                   struct error *err)
{
    struct db_job_new job = {
        .project = spec->project,
        .queue = spec->queue,
        .priority = spec->priority,
        .needs = plan->needs,
        .needs_count = plan->needs_count,
        .spread = spec->spread,
        .restart_max = spec->restart_max,
        .stop_us = spec->stop.max_seconds * 1000000,
    };
    if (!loop_whatif(req->services->loop, &job, nodes, nodes_count, req->arena, &plan->what,
                     err))
        return false;
    struct str text = {0};
    describe_needs(plan, &text);
    str_add(&text, "; ");
    plan_whatif_text(&plan->what, &text);
    if (plan->has_model)
        str_printf(&text, " %lld parameters.", (long long)plan->model.parameters);
    snprintf(plan->text, sizeof(plan->text), "%s", str_text(&text));
    str_release(&text);
    return true;
}

static json_t *layers_json(const struct model_summary *model)
{
    json_t *layers = json_array();
    for (int i = 0; i < model->layers_count; i++) {
        const struct model_layer *layer = &model->layers[i];
        char shape[SHAPE_TEXT_BYTES];
        json_array_append_new(layers,
                              json_pack("{s:s, s:s, s:s, s:I}", "name", layer->name, "layer",
                                        layer->class_name, "output_shape",
                                        shape_text(&layer->output, shape, sizeof(shape)),
                                        "parameters", (json_int_t)layer->parameters));
    }
    return layers;
}

json_t *plan_json(const struct plan *plan, const struct spec *spec)
{
    json_t *needs = json_array();
    for (int n = 0; n < plan->needs_count; n++) {
        const struct db_need *need = &plan->needs[n];
        json_array_append_new(needs,
                              json_pack("{s:s, s:i, s:f, s:I, s:i}", "role", need->role,
                                        "replicas", need->replicas, "cpus",
                                        (double)need->cpu_millis / 1000, "memory_bytes",
                                        (json_int_t)need->memory_bytes, "gpus", need->gpus));
    }
    json_t *json = json_pack("{s:s, s:s, s:i, s:o}", "name", spec->name, "text", plan->text,
                             "tasks", plan->tasks_count, "needs", needs);
    plan_whatif_json(&plan->what, json);
    if (plan->has_model) {
        json_object_set_new(json, "parameters",
                            json_integer((json_int_t)plan->model.parameters));
        json_object_set_new(json, "layers", layers_json(&plan->model));
    }
    return json;
}
