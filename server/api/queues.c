/* queues.c - queues and projects: what decides whose turn it is. */

#include "db/queues.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/body.h"
#include "server/condition.h"
#include "server/reply.h"
#include "server/request.h"

#define QUOTA_MAX INT64_C(1000000000)
#define QUOTA_BYTES_MAX (INT64_C(1) << 60)

static json_t *queue_json(const struct db_queue *queue)
{
    return json_pack("{s:s, s:i, s:i, s:b}", "name", queue->name, "priority", queue->priority,
                     "weight", queue->weight, "preempt", (int)queue->preempt);
}

/* A bound; none is null. */
static json_t *bound(int64_t value, double unit)
{
    return value < 0 ? json_null() : json_real((double)value / unit);
}

static json_t *project_json(const struct db_project *project)
{
    return json_pack(
        "{s:s, s:i, s:{s:o, s:o, s:o, s:o}, s:f, s:f}", "name", project->name, "weight",
        project->weight, "quota", "cpus", bound(project->cpu_millis, 1000), "memory_bytes",
        project->memory_bytes < 0 ? json_null() : json_integer(project->memory_bytes), "gpus",
        bound(project->gpu_millis, 1000), "jobs",
        project->jobs < 0 ? json_null() : json_integer(project->jobs), "cpu_seconds",
        (double)project->cpu_ms / 1000, "gpu_seconds", (double)project->gpu_ms / 1000);
}

static bool reply_queue(struct request *req, const struct db_queue *queue, struct error *err)
{
    static const char *const fields[] = {"name", "priority", "weight", "preempt", NULL};
    return condition_reply(req, queue_json(queue), fields, err);
}

static bool reply_project(struct request *req, const struct db_project *project,
                          struct error *err)
{
    static const char *const fields[] = {"name", "weight", "quota", NULL};
    return condition_reply(req, project_json(project), fields, err);
}

static bool read_all(struct request *req, struct db_queue **queues, int *queues_count,
                     struct db_project **projects, int *projects_count, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    bool ok = (!queues || db_queues_list(conn, req->arena, queues, queues_count, err)) &&
              (!projects || db_projects_list(conn, req->arena, projects, projects_count, err));
    db_read_done(req->services->db, conn);
    return ok;
}

/* GET /api/v1/queues */
static bool queues_list(struct request *req, struct error *err)
{
    struct db_queue *queues;
    int count;
    if (!read_all(req, &queues, &count, NULL, NULL, err))
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, queue_json(&queues[i]));
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* GET /api/v1/queues/{name} */
static bool queues_show(struct request *req, struct error *err)
{
    struct db_queue *queues;
    int count;
    if (!read_all(req, &queues, &count, NULL, NULL, err))
        return false;
    for (int i = 0; i < count; i++)
        if (strcmp(queues[i].name, req->params[0]) == 0)
            return reply_queue(req, &queues[i], err);
    return fail(err, NOT_FOUND, "there is no queue '%.100s'", req->params[0]);
}

/* GET /api/v1/projects: those of which something is known, to one who may see them. */
static bool projects_list(struct request *req, struct error *err)
{
    struct db_project *projects;
    int count;
    if (!read_all(req, NULL, NULL, &projects, &count, err))
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++) {
        enum user_role role;
        if (!auth_role(req->services->auth, &req->user, projects[i].name, &role, err)) {
            json_decref(items);
            return false;
        }
        if (role != ROLE_NONE)
            json_array_append_new(items, project_json(&projects[i]));
    }
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* GET /api/v1/projects/{name}: to others than those who may see it there is none. */
static bool projects_show(struct request *req, struct error *err)
{
    struct db_project *projects;
    int count;
    enum user_role role;
    if (!read_all(req, NULL, NULL, &projects, &count, err) ||
        !auth_role(req->services->auth, &req->user, req->params[0], &role, err))
        return false;
    for (int i = 0; i < count; i++)
        if (role != ROLE_NONE && strcmp(projects[i].name, req->params[0]) == 0)
            return reply_project(req, &projects[i], err);
    return fail(err, NOT_FOUND, "there is no project '%.100s'", req->params[0]);
}

/* --- changes --- */

static bool check_name(const char *what, const char *name, struct error *err)
{
    return spec_is_name(name) ||
           fail(err, INVALID, "'%.100s' cannot name a %s: 1 to 128 of A-Z a-z 0-9 . _ -", name,
                what);
}

static bool queue_read(const struct spec_object *object, struct db_queue *queue)
{
    static const char *const allowed[] = {"priority", "weight", "preempt", NULL};
    int64_t priority = queue->priority, weight = queue->weight;
    bool ok = spec_read_only(object, allowed) &&
              spec_read_integer(object, "priority", 0, 100, &priority) &&
              spec_read_integer(object, "weight", 1, 1000, &weight) &&
              spec_read_bool(object, "preempt", &queue->preempt);
    queue->priority = (int)priority;
    queue->weight = (int)weight;
    return ok;
}

/* PUT /api/v1/queues/{name} {priority, weight, preempt}: made, or changed; what is not said
 * stays. */
static bool queue_set(struct request *req, struct error *err)
{
    struct spec_object object;
    struct db_queue *queues;
    struct db_queue queue = {.name = req->params[0],
                             .priority = SCHEDULER_QUEUE_PRIORITY,
                             .weight = SCHEDULER_WEIGHT};
    int count;
    if (!check_name("queue", queue.name, err) ||
        !read_all(req, &queues, &count, NULL, NULL, err))
        return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(queues[i].name, queue.name) == 0)
            queue = queues[i];
    }
    json_t *body = body_object(req, &object, err);
    bool ok = body && queue_read(&object, &queue);
    json_decref(body);
    return ok && db_queues_set(req->services->db, &queue, err) &&
           loop_shares(req->services->loop, err) && reply_queue(req, &queue, err);
}

static bool queues_set(struct request *req, struct error *err)
{
    return condition_change(req, queues_show, queue_set, err);
}

/* A number, or null for no bound. */
static bool bound_read(const struct spec_object *quota, const char *field, int64_t unit,
                       int64_t max, int64_t *value)
{
    double number = 0;
    json_t *json = quota->json ? json_object_get(quota->json, field) : NULL;
    if (!json)
        return true;
    *value = -1;
    if (json_is_null(json))
        return true;
    if (unit == 1)
        return spec_read_integer(quota, field, 0, max, value);
    if (!spec_read_number(quota, field, 0, (double)max, &number))
        return false;
    *value = (int64_t)(number * (double)unit + 0.5);
    return true;
}

static bool project_read(const struct spec_object *object, struct db_project *project)
{
    static const char *const allowed[] = {"weight", "quota", NULL};
    static const char *const bounds[] = {"cpus", "memory_bytes", "gpus", "jobs", NULL};
    struct spec_object quota;
    int64_t weight = project->weight;
    bool ok = spec_read_only(object, allowed) &&
              spec_read_integer(object, "weight", 1, 1000, &weight) &&
              spec_read_object(object, "quota", &quota) &&
              (!quota.json || spec_read_only(&quota, bounds)) &&
              bound_read(&quota, "cpus", 1000, QUOTA_MAX, &project->cpu_millis) &&
              bound_read(&quota, "memory_bytes", 1, QUOTA_BYTES_MAX, &project->memory_bytes) &&
              bound_read(&quota, "gpus", 1000, QUOTA_MAX, &project->gpu_millis) &&
              bound_read(&quota, "jobs", 1, QUOTA_MAX, &project->jobs);
    project->weight = (int)weight;
    return ok;
}

/* PUT /api/v1/projects/{name} {weight, quota: {cpus, memory_bytes, gpus, jobs}}: what is not
 * said stays, a bound of null is lifted. */
static bool project_set(struct request *req, struct error *err)
{
    struct spec_object object;
    struct db_project *projects;
    struct db_project project = {.name = req->params[0],
                                 .weight = SCHEDULER_WEIGHT,
                                 .cpu_millis = -1,
                                 .memory_bytes = -1,
                                 .gpu_millis = -1,
                                 .jobs = -1};
    int count;
    if (!check_name("project", project.name, err) ||
        !read_all(req, NULL, NULL, &projects, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(projects[i].name, project.name) == 0)
            project = projects[i];
    }
    json_t *body = body_object(req, &object, err);
    bool ok = body && project_read(&object, &project);
    json_decref(body);
    return ok && db_projects_set(req->services->db, &project, err) &&
           loop_shares(req->services->loop, err) && reply_project(req, &project, err);
}

static bool projects_set(struct request *req, struct error *err)
{
    return condition_change(req, projects_show, project_set, err);
}

const struct route queues_routes[] = {
    {"GET", "/api/v1/queues", AUTH_IN_PROJECT(ROLE_VIEWER), queues_list, "Queues, by name",
     NULL, NULL, 200, "QueueList"},
    {"GET", "/api/v1/queues/{name}", AUTH_IN_PROJECT(ROLE_VIEWER), queues_show, "One queue",
     NULL, NULL, 200, "Queue"},
    {"PUT", "/api/v1/queues/{name}", ROLE_ADMIN, queues_set, "Make a queue, or change it",
     "If-Match:header", "QueueRequest", 200, "Queue"},
    {"GET", "/api/v1/projects", AUTH_IN_PROJECT(ROLE_VIEWER), projects_list,
     "Projects with their quotas and what they have used", NULL, NULL, 200, "ProjectList"},
    {"GET", "/api/v1/projects/{name}", AUTH_IN_PROJECT(ROLE_VIEWER), projects_show,
     "One project, with its quota", NULL, NULL, 200, "Project"},
    {"PUT", "/api/v1/projects/{name}", ROLE_ADMIN, projects_set,
     "Set the weight and the quota of a project", "If-Match:header", "ProjectRequest", 200,
     "Project"},
    {0},
};
