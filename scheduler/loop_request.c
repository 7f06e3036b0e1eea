/* loop_request.c - what the REST API asks of the loop. */

#include "base/clock.h"
#include "scheduler/advise.h"
#include "scheduler/demand.h"
#include "scheduler/loop_state.h"

/* --- in the loop's thread --- */

static void request_answer(struct loop *loop, struct loop_request *request, bool ok)
{
    pthread_mutex_lock(&loop->lock);
    request->ok = ok;
    request->done = true;
    pthread_cond_signal(&request->answered); /* his alone: many may wait */
    pthread_mutex_unlock(&loop->lock);
}

void loop_request_refuse(struct loop *loop, struct loop_request *request,
                         const struct error *err)
{
    *request->err = *err;
    request_answer(loop, request, false);
}

static bool cancel_step(struct loop *loop, struct loop_request *request)
{
    if (!scheduler_job_state(loop->scheduler, request->number, request->state))
        return false;
    loop_step(loop, &(struct scheduler_event){
                        .kind = ON_CANCEL, .number = request->number, .kill = request->flag});
    /* One that waited is gone at once. */
    if (!scheduler_job_state(loop->scheduler, request->number, request->state))
        *request->state = JOB_CANCELLED;
    return true;
}

static bool loop_knows(const struct loop *loop, int64_t node)
{
    for (int i = 0; i < loop->known.count; i++) {
        if (loop->known.list[i].id == node)
            return true;
    }
    return false;
}

static bool drain_step(struct loop *loop, const struct loop_request *request)
{
    loop_step(loop, &(struct scheduler_event){
                        .kind = ON_DRAIN, .id = request->number, .drain = request->flag});
    return loop_knows(loop, request->number);
}

static bool gone_step(struct loop *loop, const struct loop_request *request)
{
    loop_step(loop, &(struct scheduler_event){
                        .kind = ON_GONE, .id = request->number, .text = request->text});
    return loop_knows(loop, request->number);
}

static bool pause_step(struct loop *loop, struct loop_request *request)
{
    loop_step(loop, &(struct scheduler_event){
                        .kind = ON_PAUSE, .number = request->number, .pause = request->flag});
    return scheduler_job_state(loop->scheduler, request->number, request->state) &&
           scheduler_job_is_paused(loop->scheduler, request->number) == request->flag;
}

/* Whether the job's last change is another than the caller knows: one on disk, or one that this
 * batch brings. */
static bool has_changed(struct loop *loop, struct loop_request *request)
{
    struct error unread;
    struct db_job job = {.seq = 0};
    if (!request->seq)
        return false;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(loop->db, DB_CONTROL, &unread);
    bool read = conn && db_jobs_find(conn, request->number, arena, &job, &unread);
    db_read_done(loop->db, conn);
    arena_free(arena);
    request->changed = !read || job.seq != request->seq;
    for (int i = 0; i < loop->actions.count; i++)
        request->changed |= loop->actions.list[i].job == request->number;
    return request->changed;
}

static bool edit_step(struct loop *loop, struct loop_request *request)
{
    const struct db_job_new *edited = request->edited;
    struct scheduler_need *needs =
        arena_array(request->arena, (size_t)edited->needs_count, sizeof(*needs));
    for (int i = 0; i < edited->needs_count; i++)
        loop_load_need(&edited->needs[i], request->arena, &needs[i]);
    struct scheduler_job_info info = {
        .number = request->number,
        .attempt = request->attempt,
        .queue = edited->queue,
        .project = edited->project,
        .priority = edited->priority,
        .needs = needs,
        .needs_count = edited->needs_count,
        .spread = edited->spread,
        .restart_max = edited->restart_max,
        .retry_on = edited->retry_on,
        .exclude_bad = edited->exclude_bad,
        .stop_us = (uint64_t)edited->stop_us,
    };
    int before = loop->actions.count;
    loop_step(loop, &(struct scheduler_event){.kind = ON_EDIT, .job = &info, .edit = edited});
    return loop->actions.count > before;
}

static bool priority_step(struct loop *loop, struct loop_request *request)
{
    enum job_state state;
    loop_step(loop, &(struct scheduler_event){.kind = ON_PRIORITY,
                                              .number = request->number,
                                              .priority = request->priority});
    return scheduler_job_state(loop->scheduler, request->number, &state) && state == JOB_QUEUED;
}

static void many_step(struct loop *loop, struct loop_request *request)
{
    enum job_state state;
    struct loop_request one = {.flag = request->flag, .state = &state};
    *request->told = 0;
    for (int i = 0; i < request->numbers_count; i++) {
        one.number = request->numbers[i];
        *request->told +=
            request->kind == LOOP_PAUSE_MANY ? pause_step(loop, &one) : cancel_step(loop, &one);
    }
}

/* What was stored is told anew; what has not changed changes nothing. */
static void shares_step(struct loop *loop, struct loop_request *request)
{
    struct loop_shares shares;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(loop->db, DB_CONTROL, request->err);
    request->found = conn && loop_load_shares(conn, arena, &shares, request->err);
    db_read_done(loop->db, conn);
    for (int i = 0; request->found && i < shares.queues_count; i++)
        loop_step(loop,
                  &(struct scheduler_event){.kind = ON_QUEUE, .queue = &shares.queues[i]});
    for (int i = 0; request->found && i < shares.projects_count; i++)
        loop_step(loop, &(struct scheduler_event){.kind = ON_PROJECT,
                                                  .project = &shares.projects[i]});
    arena_free(arena);
}

void loop_request_step(struct loop *loop, struct loop_request *request)
{
    if (request->kind == LOOP_DRAIN)
        request->found = drain_step(loop, request);
    if (request->kind == LOOP_GONE)
        request->found = gone_step(loop, request);
    if (request->kind == LOOP_SHARES)
        shares_step(loop, request);
    if (request->kind == LOOP_CANCEL_MANY || request->kind == LOOP_PAUSE_MANY) {
        /* Some may have been added a moment ago. */
        request->found =
            loop_load_jobs(loop->db, loop->scheduler, &loop->last_job, request->err);
        if (request->found)
            many_step(loop, request);
    }
    if (request->kind != LOOP_CANCEL && request->kind != LOOP_PAUSE &&
        request->kind != LOOP_EDIT && request->kind != LOOP_PRIORITY)
        return;
    bool (*const steps[])(struct loop *, struct loop_request *) = {
        [LOOP_CANCEL] = cancel_step,
        [LOOP_PAUSE] = pause_step,
        [LOOP_EDIT] = edit_step,
        [LOOP_PRIORITY] = priority_step,
    };
    bool (*step)(struct loop *, struct loop_request *) = steps[request->kind];
    if (has_changed(loop, request))
        return;
    request->found = step(loop, request);
    struct error unread;
    /* It may have been added a moment ago. */
    if (!request->found && loop_load_jobs(loop->db, loop->scheduler, &loop->last_job, &unread))
        request->found = step(loop, request);
}

/* The state of a job that the scheduler does not know: it has ended, or never was. */
static bool stored_state(struct loop *loop, int64_t number, enum job_state *state,
                         struct error *err)
{
    struct arena *arena = arena_new();
    struct db_job job;
    struct db_conn *conn = db_read(loop->db, DB_CONTROL, err);
    bool ok = conn && db_jobs_find(conn, number, arena, &job, err);
    db_read_done(loop->db, conn);
    if (ok)
        *state = job.state;
    arena_free(arena);
    return ok;
}

static bool cancel_finish(struct loop *loop, struct loop_request *request)
{
    if (request->found)
        return true;
    if (!stored_state(loop, request->number, request->state, request->err))
        return false;
    return *request->state == JOB_CANCELLED ||
           fail(request->err, PRECONDITION, "job %lld has %s already",
                (long long)request->number, db_job_state_name(*request->state));
}

static bool priority_finish(struct loop *loop, struct loop_request *request)
{
    enum job_state state;
    if (request->found)
        return true;
    if (!scheduler_job_state(loop->scheduler, request->number, &state) &&
        !stored_state(loop, request->number, &state, request->err))
        return false;
    if (request->changed)
        return fail(request->err, PRECONDITION, "job %lld has changed since: look again",
                    (long long)request->number);
    return fail(request->err, PRECONDITION,
                "job %lld is %s: only one that is queued can get another priority",
                (long long)request->number, db_job_state_name(state));
}

/* A copy of the state, with the job, if one is named.  `found`: it has not ended. */
static bool copy_finish(struct loop *loop, struct loop_request *request)
{
    enum job_state state;
    request->found =
        !request->number || scheduler_job_state(loop->scheduler, request->number, &state);
    if (!request->found) {
        /* It may have been added a moment ago. */
        if (!loop_load_jobs(loop->db, loop->scheduler, &loop->last_job, request->err))
            return false;
        request->found = scheduler_job_state(loop->scheduler, request->number, &state);
    }
    if (!request->found)
        return stored_state(loop, request->number, request->state, request->err);
    *request->copy = scheduler_copy(loop->scheduler);
    *request->now_us = clock_monotonic_us();
    return true;
}

static bool pause_finish(struct loop *loop, struct loop_request *request)
{
    if (request->found)
        return true;
    if (!scheduler_job_state(loop->scheduler, request->number, request->state) &&
        !stored_state(loop, request->number, request->state, request->err))
        return false;
    return fail(request->err, PRECONDITION, "job %lld %s %s: it cannot be %s",
                (long long)request->number, db_job_state_final(*request->state) ? "has" : "is",
                db_job_state_name(*request->state), request->flag ? "paused" : "resumed");
}

static bool edit_finish(struct loop *loop, struct loop_request *request)
{
    enum job_state state;
    if (request->found)
        return true;
    if (!scheduler_job_state(loop->scheduler, request->number, &state) &&
        !stored_state(loop, request->number, &state, request->err))
        return false;
    if (request->changed)
        return fail(request->err, PRECONDITION, "job %lld has changed since: look again",
                    (long long)request->number);
    return fail(request->err, PRECONDITION,
                "job %lld is %s: only one that is queued can be edited",
                (long long)request->number, db_job_state_name(state));
}

static void nodes_finish(const struct loop *loop, const struct loop_request *request)
{
    int count = scheduler_nodes_count(loop->scheduler);
    uint64_t now_us = clock_monotonic_us();
    struct loop_node *nodes = arena_array(request->arena, (size_t)count, sizeof(*nodes));
    for (int i = 0; i < count; i++) {
        struct scheduler_node_view view;
        scheduler_node_view(loop->scheduler, i, &view);
        nodes[i] = (struct loop_node){
            .id = view.id,
            .state = view.state,
            .session = view.session,
            .cleaning = view.cleaning,
            .draining = view.draining,
            .cpu_millis_free = view.capacity.cpu_millis - view.used.cpu_millis,
            .memory_bytes_free = view.capacity.memory_bytes - view.used.memory_bytes,
            .gpus_free = view.gpus_free,
            .tasks_count = view.tasks_count,
            .silent_us = view.session ? (int64_t)(now_us - view.seen_us) : -1,
        };
    }
    *request->nodes = nodes;
    *request->nodes_count = count;
}

void loop_request_finish(struct loop *loop, struct loop_request *request)
{
    bool ok = true;
    switch (request->kind) {
    case LOOP_CANCEL:
        ok = cancel_finish(loop, request);
        break;
    case LOOP_COPY:
        ok = copy_finish(loop, request);
        break;
    case LOOP_CHECK:
        ok = loop_check_finish(loop, request);
        break;
    case LOOP_DRAIN:
    case LOOP_GONE:
        ok = request->found ||
             fail(request->err, NOT_FOUND, "there is no node %lld", (long long)request->number);
        break;
    case LOOP_PRIORITY:
        ok = priority_finish(loop, request);
        break;
    case LOOP_EDIT:
        ok = edit_finish(loop, request);
        break;
    case LOOP_PAUSE:
        ok = pause_finish(loop, request);
        break;
    case LOOP_CANCEL_MANY:
    case LOOP_PAUSE_MANY:
    case LOOP_SHARES:
        ok = request->found;
        break;
    case LOOP_NODES:
        nodes_finish(loop, request);
        break;
    }
    request_answer(loop, request, ok);
}

/* --- in the callers' threads --- */

bool loop_request_run(struct loop *loop, struct loop_request *request)
{
    struct loop_message message = {.kind = LOOP_REQUEST, .request = request};
    pthread_cond_init(&request->answered, NULL);
    if (!loop_post(loop, &message))
        return fail(request->err, UNAVAILABLE, "the scheduler is busy or ending: try again");
    pthread_mutex_lock(&loop->lock);
    while (!request->done)
        pthread_cond_wait(&request->answered, &loop->lock);
    pthread_mutex_unlock(&loop->lock);
    pthread_cond_destroy(&request->answered);
    return request->ok;
}

bool loop_cancel(struct loop *loop, int64_t job, bool kill, enum job_state *state,
                 struct error *err)
{
    struct loop_request request = {
        .kind = LOOP_CANCEL, .number = job, .flag = kill, .state = state, .err = err};
    return loop_request_run(loop, &request);
}

bool loop_copy(struct loop *loop, struct scheduler **copy, uint64_t *now_us, struct error *err)
{
    struct loop_request request = {
        .kind = LOOP_COPY, .copy = copy, .now_us = now_us, .err = err};
    return loop_request_run(loop, &request);
}

bool loop_edit(struct loop *loop, int64_t job, int attempt, int64_t seq,
               const struct db_job_new *edited, struct error *err)
{
    struct loop_request request = {.kind = LOOP_EDIT,
                                   .number = job,
                                   .attempt = attempt,
                                   .seq = seq,
                                   .edited = edited,
                                   .arena = arena_new(),
                                   .err = err};
    bool ok = loop_request_run(loop, &request);
    arena_free(request.arena);
    return ok;
}

bool loop_pause(struct loop *loop, int64_t job, bool pause, enum job_state *state,
                struct error *err)
{
    struct loop_request request = {
        .kind = LOOP_PAUSE, .number = job, .flag = pause, .state = state, .err = err};
    return loop_request_run(loop, &request);
}

static bool run_many(struct loop *loop, enum loop_request_kind kind, const int64_t *jobs,
                     int jobs_count, bool flag, int *told, struct error *err)
{
    struct loop_request request = {.kind = kind,
                                   .numbers = jobs,
                                   .numbers_count = jobs_count,
                                   .flag = flag,
                                   .told = told,
                                   .err = err};
    return loop_request_run(loop, &request);
}

bool loop_cancel_many(struct loop *loop, const int64_t *jobs, int jobs_count, bool kill,
                      int *told, struct error *err)
{
    return run_many(loop, LOOP_CANCEL_MANY, jobs, jobs_count, kill, told, err);
}

bool loop_pause_many(struct loop *loop, const int64_t *jobs, int jobs_count, bool pause,
                     int *told, struct error *err)
{
    return run_many(loop, LOOP_PAUSE_MANY, jobs, jobs_count, pause, told, err);
}

bool loop_explain(struct loop *loop, int64_t job, struct explain *out, struct error *err)
{
    enum job_state state;
    struct scheduler *copy;
    uint64_t now_us;
    struct loop_request request = {.kind = LOOP_COPY,
                                   .number = job,
                                   .state = &state,
                                   .copy = &copy,
                                   .now_us = &now_us,
                                   .err = err};
    if (!loop_request_run(loop, &request))
        return false;
    if (!request.found) {
        *out = (struct explain){.resource = EXPLAIN_NONE, .start_us = -1};
        snprintf(out->text, sizeof(out->text), "The job %s %s.",
                 state == JOB_CANCELLED ? "was" : "has", db_job_state_name(state));
        return true;
    }
    /* Here, in the caller's thread: the scheduler's has better to do. */
    explain_job(copy, job, now_us, out);
    advise_job(copy, job, now_us, out);
    if (loop->engine.explain)
        loop->engine.explain(loop->engine.self, demand_queue(copy, job), out);
    scheduler_free(copy);
    return true;
}

/* No node could hold the job, but the engine's could: nobody can say when they come. */
static void whatif_engine(struct whatif *out)
{
    *out = (struct whatif){.has_job = true};
    out->why =
        (struct explain){.code = EXPLAIN_ENGINE, .resource = EXPLAIN_NONE, .start_us = -1};
    snprintf(out->why.text, sizeof(out->why.text),
             "No node that is here could hold it; it starts when the engine has brought some "
             "that can.");
}

bool loop_whatif(struct loop *loop, const struct db_job_new *job,
                 const struct whatif_node *nodes, int nodes_count, struct arena *arena,
                 struct whatif *out, struct error *err)
{
    struct scheduler *copy;
    struct scheduler_job_info info = {0};
    uint64_t now_us;
    if (job)
        info = (struct scheduler_job_info){
            .queue = job->queue,
            .project = job->project,
            .priority = job->priority,
            .needs = loop_load_needs(job->needs, job->needs_count, arena),
            .needs_count = job->needs_count,
            .spread = job->spread,
            .restart_max = job->restart_max,
            .stop_us = (uint64_t)job->stop_us,
        };
    if (!loop_copy(loop, &copy, &now_us, err))
        return false;
    bool ok = whatif_ask(copy, job ? &info : NULL, nodes, nodes_count, now_us, arena, out, err);
    scheduler_free(copy);
    if (!ok && job && !nodes_count && err->code == INVALID &&
        loop_check_engine(loop, job->queue, job->needs, job->needs_count, arena)) {
        whatif_engine(out);
        ok = true;
    }
    return ok;
}

bool loop_drain(struct loop *loop, int64_t node, bool drain, struct error *err)
{
    struct loop_request request = {
        .kind = LOOP_DRAIN, .number = node, .flag = drain, .err = err};
    return loop_request_run(loop, &request);
}

bool loop_gone(struct loop *loop, int64_t node, const char *why, struct error *err)
{
    struct loop_request request = {.kind = LOOP_GONE, .number = node, .text = why, .err = err};
    return loop_request_run(loop, &request);
}

bool loop_priority(struct loop *loop, int64_t job, int priority, int64_t seq, struct error *err)
{
    struct loop_request request = {
        .kind = LOOP_PRIORITY, .number = job, .priority = priority, .seq = seq, .err = err};
    return loop_request_run(loop, &request);
}

bool loop_shares(struct loop *loop, struct error *err)
{
    struct loop_request request = {.kind = LOOP_SHARES, .err = err};
    return loop_request_run(loop, &request);
}

bool loop_nodes(struct loop *loop, struct arena *arena, struct loop_node **nodes,
                int *nodes_count, struct error *err)
{
    struct loop_request request = {.kind = LOOP_NODES,
                                   .arena = arena,
                                   .nodes = nodes,
                                   .nodes_count = nodes_count,
                                   .err = err};
    return loop_request_run(loop, &request);
}
