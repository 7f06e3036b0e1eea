/* loop_load.c - builds the scheduler's state from what is stored. */

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "scheduler/loop_state.h"

/* --- labels --- */

int loop_load_labels(const char *json, struct arena *arena,
                     const struct scheduler_label **labels)
{
    json_t *object = json_loads(json ? json : "{}", 0, NULL);
    struct scheduler_label *list =
        arena_array(arena, json_object_size(object) + 1, sizeof(*list));
    int count = 0;
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        const char *text = json_string_value(value);
        list[count++] = (struct scheduler_label){arena_text(arena, name),
                                                 arena_text(arena, text ? text : "")};
    }
    json_decref(object);
    *labels = list;
    return count;
}

void loop_load_need(const struct db_need *from, struct arena *arena,
                    struct scheduler_need *need)
{
    *need = (struct scheduler_need){
        .replicas = from->replicas,
        .each = {from->cpu_millis, from->memory_bytes, from->gpus},
        .gpu_share = from->gpu_share,
        .gpu_type = from->gpu_type,
        .gpu_memory_bytes = from->gpu_memory_bytes,
    };
    need->alone = from->alone;
    snprintf(need->role, sizeof(need->role), "%s", from->role);
    need->labels_count = loop_load_labels(from->node_labels, arena, &need->labels);
}

struct scheduler_need *loop_load_needs(const struct db_need *from, int count,
                                       struct arena *arena)
{
    struct scheduler_need *needs = arena_array(arena, (size_t)count, sizeof(*needs));
    for (int i = 0; i < count; i++)
        loop_load_need(&from[i], arena, &needs[i]);
    return needs;
}

/* --- nodes --- */

struct loop_known *loop_load_known(struct loop_known_list *known, const char *name)
{
    for (int i = 0; i < known->count; i++) {
        if (strcmp(known->list[i].name, name) == 0)
            return &known->list[i];
    }
    return NULL;
}

struct loop_known *loop_load_known_add(struct loop_known_list *known, int64_t id,
                                       const char *name, const char *identity)
{
    known->list = alloc_grow(known->list, known->count, &known->capacity, sizeof(*known->list));
    struct loop_known *node = &known->list[known->count++];
    *node = (struct loop_known){id, alloc_text(name), alloc_text(identity)};
    return node;
}

void loop_load_known_clear(struct loop_known_list *known)
{
    for (int i = 0; i < known->count; i++) {
        free(known->list[i].name);
        free(known->list[i].identity);
    }
    free(known->list);
    *known = (struct loop_known_list){0};
}

static bool load_nodes(struct db_conn *conn, struct arena *arena, struct scheduler *scheduler,
                       struct loop_known_list *known, struct error *err)
{
    struct db_node *nodes;
    int count;
    if (!db_nodes_list(conn, arena, &nodes, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        struct scheduler_node_info info = {
            .id = nodes[i].id,
            .name = nodes[i].name,
            .state = nodes[i].state,
            .draining = nodes[i].draining,
            .capacity = {nodes[i].cpu_millis, nodes[i].memory_bytes, nodes[i].gpus},
            .gpu_type = nodes[i].gpu_type,
            .gpu_memory_bytes = nodes[i].gpu_memory_bytes,
            .boot_id = nodes[i].boot_id,
            .asked_us = (uint64_t)nodes[i].asked_us,
        };
        info.labels_count = loop_load_labels(nodes[i].labels, arena, &info.labels);
        scheduler_load_node(scheduler, &info, clock_monotonic_us());
        loop_load_known_add(known, nodes[i].id, nodes[i].name, nodes[i].identity);
    }
    return true;
}

/* --- jobs --- */

static bool load_needs(struct db_conn *conn, struct arena *arena,
                       struct scheduler_job_info *info, struct error *err)
{
    struct db_need *needs;
    if (!db_jobs_needs(conn, info->number, arena, &needs, &info->needs_count, err))
        return false;
    struct scheduler_need *copies =
        arena_array(arena, (size_t)info->needs_count, sizeof(*copies));
    for (int i = 0; i < info->needs_count; i++)
        loop_load_need(&needs[i], arena, &copies[i]);
    info->needs = copies;
    return true;
}

static void load_task(const struct db_task *from, struct scheduler_task_info *to)
{
    *to = (struct scheduler_task_info){
        .index = from->index,
        .node = from->node_id,
        .epoch = from->placed,
        .away = from->away,
        .state = from->state,
        .reason = from->reason,
        .resources = {from->cpu_millis, from->memory_bytes, from->gpus},
        .gpu_share = from->gpu_share,
        .gpu_mask = from->gpu_mask,
    };
    snprintf(to->role, sizeof(to->role), "%s", from->role);
}

/* In the order of the needs, as they were placed: what is decided goes by it. */
static bool load_tasks(struct db_conn *conn, struct arena *arena,
                       struct scheduler_job_info *info, struct error *err)
{
    struct db_task *tasks;
    int count;
    if (!db_tasks_list(conn, info->epoch, arena, &tasks, &count, err))
        return false;
    struct scheduler_task_info *copies = arena_array(arena, (size_t)count, sizeof(*copies));
    for (int n = 0; n < info->needs_count; n++) {
        for (int i = 0; i < count; i++)
            if (strcmp(tasks[i].role, info->needs[n].role) == 0)
                load_task(&tasks[i], &copies[info->tasks_count++]);
    }
    info->tasks = copies;
    return info->tasks_count == count ||
           fail(err, DATA_LOSS, "%d of its %d tasks have a role that it does not ask for",
                count - info->tasks_count, count);
}

static uint64_t since(int64_t then_us, int64_t now_us)
{
    return now_us > then_us ? (uint64_t)(now_us - then_us) : 0;
}

static bool load_failures(struct db_conn *conn, struct arena *arena,
                          struct scheduler_job_info *info, struct error *err)
{
    struct db_failure *failures;
    if (!db_failures_list(conn, info->number, arena, &failures, &info->failures_count, err))
        return false;
    struct scheduler_failure *copies =
        arena_array(arena, (size_t)info->failures_count, sizeof(*copies));
    for (int i = 0; i < info->failures_count; i++)
        copies[i] = (struct scheduler_failure){failures[i].node_id, failures[i].count};
    info->failures = copies;
    return true;
}

static bool load_after(struct db_conn *conn, struct arena *arena,
                       struct scheduler_job_info *info, struct error *err)
{
    struct db_after *after;
    if (!db_jobs_after(conn, info->number, arena, &after, &info->after_count, err))
        return false;
    struct scheduler_after *copies =
        arena_array(arena, (size_t)info->after_count, sizeof(*copies));
    for (int i = 0; i < info->after_count; i++)
        copies[i] = (struct scheduler_after){after[i].job, after[i].state};
    info->after = copies;
    return true;
}

/* How long a job has run, and when it was queued last: from the wall clocks of its attempts. */
static bool load_times(struct db_conn *conn, struct arena *arena, const struct db_job *job,
                       struct scheduler_job_info *info, struct error *err)
{
    struct db_attempt *attempts = NULL;
    int count = 0;
    if (job->attempt && !db_attempts_list(conn, job->number, arena, &attempts, &count, err))
        return false;
    int64_t now_us = (int64_t)clock_wall_us();
    int64_t queued_us = job->created_us;
    for (int i = 0; i < count; i++) {
        const struct db_attempt *attempt = &attempts[i];
        if (attempt->started_us)
            info->ran_us +=
                since(attempt->started_us, attempt->ended_us ? attempt->ended_us : now_us);
        queued_us = attempt->ended_us;
        if (!attempt->ended_us)
            info->held_us = since(attempt->created_us, now_us);
    }
    info->waited_us = since(queued_us, now_us);
    info->retry_in_us = job->retry_us ? since(now_us, job->retry_us) : 0;
    return true;
}

static bool load_job(struct db_conn *conn, struct arena *arena, const struct db_job *job,
                     struct scheduler *scheduler, struct error *err)
{
    struct scheduler_job_info info = {
        .number = job->number,
        .queue = job->queue,
        .project = job->project,
        .priority = job->priority,
        .state = job->state,
        .reason = job->reason,
        .paused = job->paused,
        .spread = job->spread,
        .restart_max = job->restart_max,
        .retry_on = job->retry_on,
        .exclude_bad = job->exclude_bad,
        .restarts = job->restarts,
        .preemptions = job->preemptions,
        .attempt = job->attempt,
        .epoch = job->epoch,
        .stop_us = (uint64_t)job->stop_us,
    };
    if (!load_needs(conn, arena, &info, err) || !load_times(conn, arena, job, &info, err) ||
        (job->state == JOB_QUEUED && !load_after(conn, arena, &info, err)) ||
        (job->exclude_bad && !load_failures(conn, arena, &info, err)) ||
        (job->state != JOB_QUEUED && !load_tasks(conn, arena, &info, err)))
        return error_prefix(err, "job %lld: ", (long long)job->number);
    scheduler_load_job(scheduler, &info, clock_monotonic_us());
    return true;
}

static bool load_jobs(struct db_conn *conn, struct arena *arena, struct scheduler *scheduler,
                      int64_t *last_job, struct error *err)
{
    struct db_job *jobs;
    int count;
    if (!db_jobs_alive(conn, *last_job, arena, &jobs, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        if (!load_job(conn, arena, &jobs[i], scheduler, err))
            return false;
        *last_job = jobs[i].number;
    }
    return true;
}

bool loop_load_jobs(struct db *db, struct scheduler *scheduler, int64_t *last_job,
                    struct error *err)
{
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn && load_jobs(conn, arena, scheduler, last_job, err);
    db_read_done(db, conn);
    arena_free(arena);
    return ok;
}

/*
 * A fence may have been lost between the commit of an attempt and its own: all are set again
 * before anything is sent.
 */
static bool load_fences(struct db *db, struct db_conn *conn, struct arena *arena,
                        struct error *err)
{
    struct db_job *jobs;
    int count;
    if (!db_jobs_alive(conn, 0, arena, &jobs, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        if (jobs[i].attempt > 1 && !db_ship_fence(db, jobs[i].number, jobs[i].epoch, err))
            return false;
    }
    return true;
}

/* --- queues and projects --- */

bool loop_load_shares(struct db_conn *conn, struct arena *arena, struct loop_shares *shares,
                      struct error *err)
{
    struct db_queue *queues;
    struct db_project *projects;
    if (!db_queues_list(conn, arena, &queues, &shares->queues_count, err) ||
        !db_projects_list(conn, arena, &projects, &shares->projects_count, err))
        return false;
    shares->queues = arena_array(arena, (size_t)shares->queues_count, sizeof(*shares->queues));
    shares->projects =
        arena_array(arena, (size_t)shares->projects_count, sizeof(*shares->projects));
    for (int i = 0; i < shares->queues_count; i++)
        shares->queues[i] = (struct scheduler_queue_info){queues[i].name, queues[i].priority,
                                                          queues[i].weight, queues[i].preempt};
    int64_t now_us = (int64_t)clock_wall_us();
    for (int i = 0; i < shares->projects_count; i++)
        shares->projects[i] = (struct scheduler_project_info){
            .name = projects[i].name,
            .weight = projects[i].weight,
            .quota = {projects[i].cpu_millis, projects[i].memory_bytes, projects[i].gpu_millis,
                      projects[i].jobs},
            .usage = (uint64_t)projects[i].usage,
            .usage_age_us = since(projects[i].usage_us, now_us),
        };
    return true;
}

static bool load_shares(struct db_conn *conn, struct arena *arena, struct scheduler *scheduler,
                        struct error *err)
{
    struct loop_shares shares;
    if (!loop_load_shares(conn, arena, &shares, err))
        return false;
    for (int i = 0; i < shares.queues_count; i++)
        scheduler_load_queue(scheduler, &shares.queues[i]);
    for (int i = 0; i < shares.projects_count; i++)
        scheduler_load_project(scheduler, &shares.projects[i], clock_monotonic_us());
    return true;
}

struct scheduler *loop_load(struct db *db, const struct scheduler_options *options,
                            struct loop_known_list *known, int64_t *last_job, struct error *err)
{
    struct arena *arena = arena_new();
    struct scheduler *scheduler = scheduler_new(options, clock_monotonic_us());
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    int64_t epoch = 0;
    *last_job = 0;
    loop_load_known_clear(known);
    bool ok = conn && db_epoch_read(conn, &epoch, err);
    if (ok)
        scheduler_load_epoch(scheduler, epoch);
    ok = ok && load_nodes(conn, arena, scheduler, known, err) &&
         load_shares(conn, arena, scheduler, err) &&
         load_jobs(conn, arena, scheduler, last_job, err) && load_fences(db, conn, arena, err);
    db_read_done(db, conn);
    arena_free(arena);
    if (ok)
        return scheduler;
    scheduler_free(scheduler);
    return NULL;
}
