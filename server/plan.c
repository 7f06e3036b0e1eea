/* plan.c - needs of a spec, and the nodes that could meet them now. */

#include "server/plan.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/nodes.h"
#include "db/queues.h"
#include "runtime/spec/spec.h"
#include "scheduler/loop.h"
#include "server/plan_model.h"
#include "server/plan_whatif.h"
#include "server/request.h"

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

/* Whether the others go on without a worker that is lost, save the first, whose loop it is. */
static bool goes_on(const struct spec *spec, enum spec_role role)
{
    const struct spec_strategy *strategy = &spec->strategy;
    return role == ROLE_WORKER && spec->tasks[role].replicas > 1 &&
           (strategy->mode == MODE_ASYNC || strategy->backup > 0 || strategy->min_workers > 0);
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
            .alone = goes_on(spec, (enum spec_role)role),
        };
    }
    if (plan->tasks_count > LIMIT_JOB_TASKS)
        return error_at(err, "/tasks", INVALID, "%d tasks; at most %d are possible",
                        plan->tasks_count, LIMIT_JOB_TASKS);
    return true;
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
           plan_model(req, spec, plan, err);
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
