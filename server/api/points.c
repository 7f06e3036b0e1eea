/* points.c - numbers that a script reports of a job over REST, without an event file. */

#include <math.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "db/ship.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "server/api/api.h"
#include "server/feed.h"
#include "server/job.h"
#include "server/json_room.h"
#include "server/reply.h"
#include "server/request.h"

#define POINTS_STEP_MAX (INT64_C(1) << 53) /* what JSON's numbers carry everywhere */
#define POINTS_WALL_MAX 1e11
#define POINTS_NAME_BYTES 200

/* Values of one task, in the order in which they came. */
struct task_points {
    const char *role;
    int index;
    struct db_point *points;
    int count, capacity;
    struct task_points *next;
};

struct batch {
    struct request *req;
    struct task_points *tasks;
    int count;
};

static void batch_release(struct batch *batch)
{
    for (struct task_points *task = batch->tasks; task; task = task->next)
        free(task->points);
}

/* "worker/0" */
static struct task_points *find_task(struct batch *batch, const char *text, const char *pointer,
                                     struct error *err)
{
    const char *slash = strchr(text, '/');
    size_t size = slash ? (size_t)(slash - text) : 0;
    char *end = NULL;
    long index = slash && slash[1] >= '0' && slash[1] <= '9' ? strtol(slash + 1, &end, 10) : -1;
    const char *role = NULL;
    for (int i = 0; i < SPEC_ROLES; i++) {
        const char *name = spec_role_name((enum spec_role)i);
        if (strlen(name) == size && memcmp(name, text, size) == 0)
            role = name;
    }
    if (!role || index < 0 || *end || index >= LIMIT_JOB_TASKS) {
        (void)error_at(err, pointer, INVALID,
                       "task is \"%.40s\", expected a role and an index, like \"worker/0\"",
                       text);
        return NULL;
    }
    for (struct task_points *task = batch->tasks; task; task = task->next)
        if (task->role == role && task->index == index)
            return task;
    struct task_points *task = arena_alloc(batch->req->arena, sizeof(*task));
    *task = (struct task_points){.role = role, .index = (int)index, .next = batch->tasks};
    batch->tasks = task;
    return task;
}

/* A number, or a text for what JSON has no number for. */
static bool read_value(json_t *json, double *value)
{
    static const struct {
        const char *text;
        double value;
    } others[] = {
        {"NaN", (double)NAN}, {"Infinity", (double)INFINITY}, {"-Infinity", -(double)INFINITY}};
    if (json_is_number(json)) {
        *value = json_number_value(json);
        return true;
    }
    for (size_t i = 0; json_is_string(json) && i < ARRAY_LEN(others); i++) {
        *value = others[i].value;
        if (strcmp(json_string_value(json), others[i].text) == 0)
            return true;
    }
    return false;
}

static bool read_name(const struct spec_object *values, const char *name)
{
    size_t size = strlen(name);
    bool ok = size >= 1 && size <= POINTS_NAME_BYTES;
    for (size_t i = 0; ok && i < size; i++)
        ok = (unsigned char)name[i] >= ' ' && name[i] != 0x7f;
    return ok || error_at(values->err, values->pointer, INVALID,
                          "a metric's name has %zu bytes, allowed: 1 to %d, no control "
                          "characters",
                          size, POINTS_NAME_BYTES);
}

/* {"loss": 0.31, "accuracy": "NaN"} */
static bool read_values(struct batch *batch, const struct spec_object *values,
                        struct task_points *task, int64_t step, int64_t wall_us)
{
    const char *name;
    json_t *json;
    json_object_foreach(values->json, name, json)
    {
        struct db_point point = {.step = step, .wall_us = wall_us};
        char found[SPEC_FOUND_BYTES];
        if (!read_name(values, name))
            return false;
        if (!read_value(json, &point.value))
            return error_at(values->err, spec_read_pointer(values, name, -1), INVALID,
                            "%.100s is %s, expected a number, \"NaN\", \"Infinity\" or "
                            "\"-Infinity\"",
                            name, spec_read_found(json, found, sizeof(found)));
        if (batch->count++ == LIMIT_JSON_MEMBERS)
            return error_at(values->err, values->pointer, INVALID,
                            "more than %d values in one request: send several",
                            LIMIT_JSON_MEMBERS);
        point.name = arena_text(batch->req->arena, name);
        task->points =
            alloc_grow(task->points, task->count, &task->capacity, sizeof(*task->points));
        task->points[task->count++] = point;
    }
    return true;
}

/* {"task": "worker/0", "step": 120, "wall": 1760000000.5, "values": {…}} */
static bool read_point(struct batch *batch, json_t *json, int index, int64_t now_us,
                       struct error *err)
{
    static const char *const allowed[] = {"task", "step", "wall", "values", NULL};
    struct request *req = batch->req;
    struct spec_object point = {json, arena_printf(req->arena, "/points/%d", index), req->arena,
                                err};
    struct spec_object values;
    const char *task_text = "worker/0";
    int64_t step = 0;
    double wall = (double)now_us / 1e6;
    if (!json_is_object(json))
        return error_at(err, point.pointer, INVALID, "expected an object");
    if (!spec_read_only(&point, allowed) ||
        !spec_read_text(&point, "task", LIMIT_NAME_BYTES, &task_text) ||
        !spec_read_required(&point, "step", "a whole number") ||
        !spec_read_integer(&point, "step", 0, POINTS_STEP_MAX, &step) ||
        !spec_read_number(&point, "wall", 0, POINTS_WALL_MAX, &wall) ||
        !spec_read_required(&point, "values", "an object of numbers by name") ||
        !spec_read_object(&point, "values", &values))
        return false;
    struct task_points *task =
        find_task(batch, task_text, spec_read_pointer(&point, "task", -1), err);
    return task && read_values(batch, &values, task, step, (int64_t)(wall * 1e6));
}

static bool read_body(struct batch *batch, json_t *body, int64_t *attempt, struct error *err)
{
    static const char *const allowed[] = {"points", "attempt", NULL};
    struct spec_object object = {body, "", batch->req->arena, err};
    int64_t now_us = (int64_t)clock_wall_us();
    size_t index;
    json_t *json;
    if (!json_is_object(body))
        return fail(err, INVALID, "the body must be a JSON object");
    if (!spec_read_only(&object, allowed) ||
        !spec_read_integer(&object, "attempt", 1, INT32_MAX, attempt) ||
        !spec_read_required(&object, "points", "a list of objects"))
        return false;
    json_t *points = json_object_get(body, "points");
    if (!json_is_array(points))
        return error_at(err, "/points", INVALID, "points must be a list of objects");
    json_array_foreach(points, index, json) if (!read_point(batch, json, (int)index, now_us,
                                                            err)) return false;
    return true;
}

/* All of them in one transaction; the number of the last piece. */
static bool store(struct batch *batch, const struct db_job *job, int64_t *seq,
                  struct error *err)
{
    struct db_ship ships[LIMIT_JOB_TASKS];
    int count = 0;
    for (const struct task_points *task = batch->tasks; task; task = task->next) {
        if (count == LIMIT_JOB_TASKS)
            return fail(err, INVALID, "points of more than %d tasks", LIMIT_JOB_TASKS);
        ships[count++] = (struct db_ship){.job = job->number,
                                          .epoch = job->epoch,
                                          .role = task->role,
                                          .index = task->index,
                                          .points = task->points,
                                          .points_count = task->count};
    }
    return db_room(batch->req->services->db, err) &&
           db_ship_points(batch->req->services->db, ships, count, seq, err);
}

/*
 * POST /api/v1/jobs/{id}/metrics {points: [{task, step, wall, values: {name: number}}],
 * attempt}
 *
 * All are stored, or none.  A job, task, name and step have one value: a later one replaces it,
 * so a request may be sent again.  `attempt` refuses what an attempt says that is over.
 */
static bool points_add(struct request *req, struct error *err)
{
    struct db_job job;
    struct batch batch = {.req = req};
    json_error_t where;
    int64_t attempt = 0, seq = 0;
    if (!job_find(req, &job, err))
        return false;
    json_t *body =
        json_room_load(req->arena, req->body, req->body_size, JSON_REJECT_DUPLICATES, &where);
    if (!body)
        return fail(err, INVALID, "the body is no JSON: %s at byte %d", where.text,
                    where.position);
    bool ok = read_body(&batch, body, &attempt, err);
    if (ok && attempt && attempt != job.attempt)
        ok =
            error_at(err, "/attempt", PRECONDITION, "attempt is %lld, the job is in attempt %d",
                     (long long)attempt, job.attempt);
    ok = ok && (!batch.count || store(&batch, &job, &seq, err));
    batch_release(&batch);
    if (!ok)
        return false;
    if (seq)
        feed_note(req->services->feed, FEED_REPORTS, job.number, seq);
    return reply_json(
        req, 200, json_pack("{s:i, s:I}", "stored", batch.count, "seq", (json_int_t)seq), err);
}

const struct route points_routes[] = {
    {"POST", "/api/v1/jobs/{id}/metrics", AUTH_IN_PROJECT(ROLE_MEMBER), points_add,
     "Report numbers of a job", NULL, "Points", 200, "PointsStored"},
    {0},
};
