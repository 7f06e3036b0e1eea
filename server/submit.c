/* submit.c - checks a spec, and makes a job of it. */

#include <sodium.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/artifacts.h"
#include "runtime/spec/spec_array.h"
#include "scheduler/loop.h"
#include "server/job.h"
#include "server/program.h"
#include "server/request.h"
#include "server/submit.h"

#define SUBMIT_KEY_BYTES 200

/*
 * The job whose checkpoint the spec starts from, by its number, which is what tasks know it by.
 * Fails with INVALID when there is none, or it has not written that checkpoint.
 */
static bool find_start(struct request *req, struct spec *spec, struct error *err)
{
    struct spec_init *init = &spec->train.init;
    struct job_reader reader;
    struct db_job job;
    struct db_checkpoint *list;
    int count = 0;
    bool listed = init->step < 0;
    if (!init->job)
        return true;
    if (!job_reader_open(req, &reader, err))
        return false;
    struct db_viewer viewer = auth_viewer(&req->user);
    bool found = db_jobs_find_text(reader.control, init->job, &viewer, req->arena, &job, err);
    bool ok = found &&
              db_checkpoints_list(reader.metrics, job.number, req->arena, &list, &count, err);
    job_reader_close(req, &reader);
    if (!ok)
        return !found && err->code == NOT_FOUND ? error_at(err, "/train/init/job", INVALID,
                                                           "there is no job '%s'", init->job)
                                                : false;
    for (int i = 0; i < count; i++)
        listed = listed || list[i].step == init->step;
    if (!count || !listed)
        return error_at(err, count ? "/train/init/step" : "/train/init/job", INVALID,
                        "job %lld has published no checkpoint%s", (long long)job.number,
                        count ? " of that step" : " yet");
    init->job = arena_printf(req->arena, "%lld", (long long)job.number);
    return true;
}

/* A job that this one is to come after. */
static bool find_one_after(struct db_conn *conn, const struct request *req, int index,
                           struct submission *submission, struct error *err)
{
    struct spec *spec = &submission->spec;
    struct db_job job;
    const char *pointer = arena_printf(req->arena, "/after/%d", index);
    struct db_viewer viewer = auth_viewer(&req->user);
    if (!db_jobs_find_text(conn, spec->after[index], &viewer, req->arena, &job, err))
        return err->code == NOT_FOUND &&
               error_at(err, pointer, INVALID, "there is no job '%s'", spec->after[index]);
    if (job.state == JOB_FAILED || job.state == JOB_CANCELLED)
        return error_at(
            err, pointer, INVALID, "job %lld %s: one that comes after it would never start",
            (long long)job.number, job.state == JOB_FAILED ? "has failed" : "was cancelled");
    for (int i = 0; i < submission->after_count; i++) {
        if (submission->after[i] == job.number)
            return true;
    }
    submission->after[submission->after_count++] = job.number;
    return true;
}

/* The jobs that must succeed first, by their numbers. */
static bool find_after(struct request *req, struct submission *submission, struct error *err)
{
    struct spec *spec = &submission->spec;
    if (!spec->after_count)
        return true;
    submission->after =
        arena_array(req->arena, (size_t)spec->after_count, sizeof(*submission->after));
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn != NULL;
    for (int i = 0; ok && i < spec->after_count; i++)
        ok = find_one_after(conn, req, i, submission, err);
    db_read_done(req->services->db, conn);
    const char **numbers =
        arena_array(req->arena, (size_t)submission->after_count, sizeof(*numbers));
    for (int i = 0; i < submission->after_count; i++)
        numbers[i] = arena_printf(req->arena, "%lld", (long long)submission->after[i]);
    spec->after = numbers;
    spec->after_count = submission->after_count;
    return ok;
}

/* Whether the sender may have a job in its project, and what it wants of the whole server. */
static bool check_rights(struct request *req, const struct spec *spec, struct error *err)
{
    if (!auth_project(req, spec->project, err)) {
        if (err->code == DENIED)
            snprintf(err->pointer, sizeof(err->pointer), "/project");
        return false;
    }
    return !spec->command.secrets_count || req->user.role >= ROLE_MEMBER ||
           error_at(
               err, "/secrets", DENIED,
               "secrets are the whole server's: for those who are members of all projects");
}

static bool prepare_one(struct request *req, const char *text, size_t size,
                        struct submission *submission, struct error *err)
{
    const struct spec *spec = spec_parse(req->arena, text, size, err);
    if (!spec)
        return false;
    submission->spec = *spec;
    return check_rights(req, &submission->spec, err) &&
           find_start(req, &submission->spec, err) && find_after(req, submission, err) &&
           plan_make(req, &submission->spec, &submission->plan, err) &&
           program_check_files(&submission->spec, req->services->folder, err) &&
           program_check_secrets(&submission->spec, req->services->db, err);
}

/* The jobs of an array are told apart by their names, unless the grid names them. */
static bool name_one(struct request *req, struct submission *submission, int index,
                     struct error *err)
{
    struct spec *spec = &submission->spec;
    spec->name = arena_printf(req->arena, "%s-%d", spec->name, index);
    return strlen(spec->name) <= LIMIT_NAME_BYTES ||
           error_at(err, "/name", INVALID,
                    "with its place in the array the name has %zu letters, allowed: %d",
                    strlen(spec->name), LIMIT_NAME_BYTES);
}

static bool prepare_all(struct request *req, const struct spec_array *array,
                        struct submissions *out, struct error *err)
{
    for (int i = 0; i < out->count; i++) {
        struct submission *one = &out->list[i];
        const char *text = spec_array_at(array, req->arena, i, &one->parameters);
        if (!prepare_one(req, text, strlen(text), one, err) ||
            (!spec_array_has(array, "/name") && !name_one(req, one, i, err)))
            return error_prefix(err, "job %d of the array, %.200s: ", i, one->parameters);
    }
    return true;
}

bool submit_prepare(struct request *req, const char *text, size_t size,
                    struct submissions *submissions, struct error *err)
{
    *submissions = (struct submissions){0};
    struct spec_array *array = spec_array_open(req->arena, text, size, err);
    bool ok = array != NULL;
    if (ok) {
        submissions->array = spec_array_count(array) > 0;
        submissions->count = submissions->array ? spec_array_count(array) : 1;
        submissions->list =
            arena_array(req->arena, (size_t)submissions->count, sizeof(*submissions->list));
        ok = submissions->array ? prepare_all(req, array, submissions, err)
                                : prepare_one(req, text, size, submissions->list, err);
    }
    spec_array_close(array);
    if (!ok && err->code == EXHAUSTED) /* too large or too deep: the sender's fault */
        req->reply.status = 400;
    return ok;
}

static struct db_job_new job_of(struct request *req, const struct submission *submission)
{
    static_assert(EXIT_REASONS_RETRIED == 244, "as restart.on of the spec has it");
    const struct spec *spec = &submission->spec;
    struct str text = {0};
    spec_to_json(spec, &text);
    struct db_job_new job = {
        .user_id = req->user.user_id,
        .name = spec->name,
        .project = spec->project,
        .queue = spec->queue,
        .priority = spec->priority,
        .spec = arena_text(req->arena, str_text(&text)),
        .dataset = spec->data.dataset ? spec->data.dataset : "",
        .program = program_text(spec, req->arena),
        .needs = submission->plan.needs,
        .needs_count = submission->plan.needs_count,
        .spread = spec->spread,
        .restart_max = spec->restart_max,
        .retry_on = spec->restart_on,
        .exclude_bad = spec->restart_bad,
        .stop_us = spec->stop.max_seconds * 1000000,
        .after = submission->after,
        .after_count = submission->after_count,
        .parameters = submission->parameters,
    };
    str_release(&text);
    return job;
}

bool submit_key_read(const struct request *req, const char *what, struct submit_key *key,
                     struct error *err)
{
    const char *text = request_header(req, "Idempotency-Key");
    crypto_hash_sha256_state state;
    if (text && (!*text || strlen(text) > SUBMIT_KEY_BYTES))
        return fail(err, INVALID, "Idempotency-Key must have 1 to %d characters",
                    SUBMIT_KEY_BYTES);
    key->text = text ? text : "";
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const uint8_t *)what, strlen(what));
    crypto_hash_sha256_update(&state, req->body, req->body_size);
    crypto_hash_sha256_final(&state, key->hash);
    return true;
}

bool submit_key_find(struct request *req, const struct submit_key *key,
                     struct db_job_added *added, struct error *err)
{
    *added = (struct db_job_added){0};
    if (!*key->text)
        return true;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok =
        conn && db_jobs_find_key(conn, req->user.user_id, key->text, key->hash, added, err);
    db_read_done(req->services->db, conn);
    if (!ok && err->code == PRECONDITION)
        req->reply.status = 422;
    return ok;
}

bool submit_send(struct request *req, const struct submissions *submissions,
                 const struct submit_key *key, struct db_job_added *added, struct error *err)
{
    struct db_job_new *jobs =
        arena_array(req->arena, (size_t)submissions->count, sizeof(*jobs));
    for (int i = 0; i < submissions->count; i++)
        jobs[i] = job_of(req, &submissions->list[i]);
    if (*key->text) {
        jobs[0].idempotency_key = key->text;
        jobs[0].body_hash = key->hash;
    }
    failpoint("server.submit_before_store");
    if (!db_room(req->services->db, err))
        return false;
    bool ok = submissions->array
                  ? db_jobs_add_array(req->services->db, jobs, submissions->count, added, err)
                  : db_jobs_add(req->services->db, jobs, added, err);
    failpoint("server.submit_after_store");
    if (ok)
        loop_wake(req->services->loop);
    else if (*key->text && err->code == PRECONDITION)
        req->reply.status = 422;
    return ok;
}

/* The fields that may change once a job has run. */
static bool may_change(const char *field, bool has_run)
{
    static const char *const always[] = {"name",  "notes",     "tags",       "project",
                                         "queue", "priority",  "restart",    "stop",
                                         "tasks", "placement", "checkpoint", "trace"};
    for (int i = 0; i < ARRAY_LEN(always); i++) {
        if (!strcmp(always[i], field))
            return true;
    }
    return !has_run && strcmp(field, "after") != 0;
}

static bool check_changes(const struct db_job *job, const char *edited, struct error *err)
{
    json_t *before = json_loads(job->spec, 0, NULL), *after = json_loads(edited, 0, NULL);
    const char *field;
    json_t *value;
    bool ok = before && after;
    json_t *all = json_object();
    json_object_update(all, before);
    json_object_update(all, after);
    json_object_foreach(all, field, value)
    {
        if (!ok || json_equal(json_object_get(before, field), json_object_get(after, field)) ||
            may_change(field, job->attempt > 0))
            continue;
        char pointer[60];
        snprintf(pointer, sizeof(pointer), "/%.50s", field);
        ok = error_at(err, pointer, INVALID,
                      "%.50s of job %lld cannot change any more%s: clone it", field,
                      (long long)job->number, job->attempt ? ", as it has run" : "");
    }
    json_decref(all);
    json_decref(before);
    json_decref(after);
    return ok;
}

bool submit_edit(struct request *req, const struct db_job *job, int64_t seq,
                 const struct submissions *submissions, struct error *err)
{
    if (submissions->array)
        return error_at(err, "/array", INVALID, "a job cannot become an array: clone it");
    struct db_job_new edited = job_of(req, submissions->list);
    return check_changes(job, edited.spec, err) &&
           loop_edit(req->services->loop, job->number, job->attempt, seq, &edited, err);
}
