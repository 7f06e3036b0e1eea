/*
 * main.c - trace [NODES] [JOBS] [HOURS] [SEED] [LIMITED]: the scheduler replays a workload that
 * is shaped like those of public traces (workload.h), in a time of its own.
 *
 * Three of four nodes have 8 GPUs and 64 CPUs, the others 64 CPUs.  JOBS come within HOURS,
 * LIMITED of a hundred with a time limit.
 * What happens within 5 seconds is one batch, as for a server that is busy; a task that is
 * stopped for another job goes on later where it was.  Prints a line of JSON: waits, use,
 * fairness, and what the scheduler took.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "scheduler/scheduler.h"
#include "tests/bench/trace/result.h"

#define SECOND UINT64_C(1000000)
#define BATCH_US (5 * SECOND)

enum event_kind { SUBMITS, ENDS, STOPS };

struct event {
    uint64_t at_us;
    int job; /* index */
    enum event_kind kind;
    int64_t epoch; /* of the attempt that it is about */
};

struct replay {
    struct scheduler *scheduler;
    struct scheduler_actions actions;
    struct workload_job *plan;
    struct trace_job *jobs;
    int jobs_count;
    int64_t *sessions; /* by node */
    struct event *heap;
    int heap_count;
    int heap_capacity;
    int *started; /* jobs of this batch, whose tasks are to be told to run */
    int started_count;
    int started_capacity;
    uint64_t now_us;
    struct trace_use use;
    long attempts;
    long preempted;
    uint64_t *passes_us;
    int passes_count;
    int passes_capacity;
};

/* --- what is to happen --- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->job < b->job;
}

static void swap(struct event *a, struct event *b)
{
    struct event keep = *a;
    *a = *b;
    *b = keep;
}

static void later(struct replay *r, uint64_t at_us, int job, enum event_kind kind)
{
    r->heap = alloc_grow(r->heap, r->heap_count, &r->heap_capacity, sizeof(*r->heap));
    int at = r->heap_count++;
    r->heap[at] = (struct event){at_us, job, kind, r->jobs[job].epoch};
    for (; at && before(&r->heap[at], &r->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&r->heap[at], &r->heap[(at - 1) / 2]);
}

static struct event take(struct replay *r)
{
    struct event first = r->heap[0];
    r->heap[0] = r->heap[--r->heap_count];
    for (int at = 0;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < r->heap_count && before(&r->heap[child], &r->heap[least]))
                least = child;
        if (least == at)
            return first;
        swap(&r->heap[at], &r->heap[least]);
        at = least;
    }
}

/* --- the scheduler --- */

static void step(struct replay *r, const struct scheduler_event *event)
{
    scheduler_step(r->scheduler, event, r->now_us, &r->actions);
}

static void submit(struct replay *r, int at)
{
    static const char *const queues[] = {"default", "urgent", "night"};
    const struct workload_job *plan = &r->plan[at];
    char project[16];
    snprintf(project, sizeof(project), "p%d", plan->project);
    struct scheduler_need need = {
        .role = "worker",
        .replicas = plan->replicas,
        .each = {1000 * plan->cpus, (int64_t)plan->cpus << 31, plan->gpus},
    };
    struct scheduler_job_info job = {.number = at + 1,
                                     .queue = queues[plan->queue],
                                     .project = project,
                                     .priority = 50,
                                     .reason = "",
                                     .needs = &need,
                                     .needs_count = 1,
                                     .restart_max = 3,
                                     .stop_us = plan->limit_us};
    r->jobs[at].left_us = plan->work_us;
    r->jobs[at].fails_left = plan->fails;
    r->use.waiting[plan->project]++;
    step(r, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
}

/* All tasks of the job's attempt say the same. */
static void report(struct replay *r, int at, enum task_state state, enum exit_reason reason)
{
    const struct trace_job *job = &r->jobs[at];
    int64_t epoch = job->epoch;
    for (int i = 0; i < r->plan[at].replicas; i++) {
        struct scheduler_report report = {.job = at + 1,
                                          .epoch = epoch,
                                          .role = "worker",
                                          .index = i,
                                          .state = state,
                                          .reason = reason,
                                          .error = ""};
        step(r, &(struct scheduler_event){.kind = ON_REPORT,
                                          .id = job->nodes[i],
                                          .epoch = r->sessions[job->nodes[i]],
                                          .reports = &report,
                                          .reports_count = 1});
    }
}

static void begins(struct replay *r, const struct scheduler_action *a)
{
    int at = (int)a->job - 1;
    struct trace_job *job = &r->jobs[at];
    job->nodes[a->index] = a->node;
    if (a->index + 1 < r->plan[at].replicas)
        return; /* with its last task */
    job->epoch = a->epoch;
    job->began_us = r->now_us;
    if (!job->attempts++)
        job->started_us = r->now_us;
    r->attempts++;
    trace_use_starts(&r->use, &r->plan[at]);
    uint64_t runs_us = job->fails_left ? job->left_us / 2 : job->left_us;
    later(r, r->now_us + runs_us, at, ENDS);
    r->started = alloc_grow(r->started, r->started_count, &r->started_capacity, sizeof(int));
    r->started[r->started_count++] = at;
}

static void ends(struct replay *r, const struct event *event)
{
    int at = event->job;
    struct trace_job *job = &r->jobs[at];
    if (event->epoch != job->epoch || job->ended_us || job->nodes[0] == 0)
        return;
    uint64_t ran_us = r->now_us - job->began_us;
    bool fails = event->kind == ENDS && job->fails_left;
    enum exit_reason reason = event->kind == STOPS ? EXIT_STOPPED
                              : fails              ? EXIT_CRASH
                                                   : EXIT_OK;
    job->fails_left -= fails;
    if (event->kind == STOPS) /* goes on from its checkpoint, if it may */
        job->left_us = job->left_us > ran_us ? job->left_us - ran_us : SECOND;
    trace_use_ends(&r->use, &r->plan[at]);
    report(r, at, TASK_EXITED, reason);
    job->nodes[0] = 0;
}

/* What was decided is done. */
static void act(struct replay *r)
{
    for (int i = 0; i < r->actions.count; i++) {
        const struct scheduler_action *a = &r->actions.list[i];
        int at = (int)a->job - 1;
        if (a->kind == DO_JOINED)
            r->sessions[a->node] = a->epoch;
        if (a->kind == DO_START)
            begins(r, a);
        if (a->kind == DO_STOP && a->index == 0 && r->jobs[at].nodes[0])
            later(r, r->now_us + 10 * SECOND, at, STOPS);
        if (a->kind != DO_JOB)
            continue;
        if (db_job_state_final(a->to))
            r->jobs[at].ended_us = r->now_us;
        if (a->to == JOB_QUEUED)
            r->use.waiting[r->plan[at].project]++;
        r->preempted += a->to == JOB_QUEUED && strcmp(a->reason, "PREEMPTED") == 0;
    }
    scheduler_actions_clear(&r->actions);
    arena_clear(r->actions.arena);
    for (int i = 0; i < r->started_count; i++)
        report(r, r->started[i], TASK_RUNNING, EXIT_NONE);
    r->started_count = 0;
}

/* Everything up to `until_us` is one batch, and its pass. */
static void batch(struct replay *r, uint64_t until_us)
{
    trace_use_passes(&r->use, r->now_us, until_us);
    r->now_us = until_us;
    uint64_t begin_us = clock_monotonic_us();
    while (r->heap_count && r->heap[0].at_us <= until_us) {
        struct event event = take(r);
        if (event.kind == SUBMITS)
            submit(r, event.job);
        else
            ends(r, &event);
    }
    step(r, &(struct scheduler_event){.kind = ON_TICK});
    r->passes_us =
        alloc_grow(r->passes_us, r->passes_count, &r->passes_capacity, sizeof(uint64_t));
    r->passes_us[r->passes_count++] = clock_monotonic_us() - begin_us;
    act(r);
}

/* --- the whole --- */

static void join(struct replay *r, int64_t id, int *gpus)
{
    char name[16];
    snprintf(name, sizeof(name), "n%lld", (long long)id);
    struct scheduler_node_info node = {
        .id = id, .name = name, .capacity = {64000, INT64_C(512) << 30, id % 4 ? 8 : 0}};
    *gpus += (int)node.capacity.gpus;
    step(r, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
}

static void prepare(struct replay *r, int nodes)
{
    struct scheduler_queue_info queues[] = {
        {"default", 50, 100, false}, {"urgent", 80, 100, true}, {"night", 20, 100, false}};
    for (int i = 0; i < ARRAY_LEN(queues); i++)
        step(r, &(struct scheduler_event){.kind = ON_QUEUE, .queue = &queues[i]});
    for (int64_t id = 1; id <= nodes; id++)
        join(r, id, &r->use.gpus_total);
    r->use.cpus_total = 64 * nodes;
    act(r);
    for (int i = 0; i < r->jobs_count; i++)
        later(r, r->now_us + r->plan[i].submit_us, i, SUBMITS);
}

static int number(int argc, char **argv, int index, int otherwise)
{
    return argc > index ? (int)strtol(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    int nodes = number(argc, argv, 1, 10000), jobs = number(argc, argv, 2, 100000);
    int hours = number(argc, argv, 3, 24), seed = number(argc, argv, 4, 1);
    int limited = number(argc, argv, 5, 60);
    uint64_t span_us = (uint64_t)hours * 3600 * SECOND;
    struct replay r = {.now_us = SECOND, .jobs_count = jobs};
    struct scheduler_options options = scheduler_defaults;
    options.lost_us = options.suspect_us = UINT64_C(1)
                                           << 60; /* heartbeats are not the matter */
    r.use.span_us = span_us;
    r.actions.arena = arena_new();
    r.plan = workload_make((uint64_t)seed, jobs, span_us, limited);
    r.jobs = alloc_array((size_t)jobs, sizeof(*r.jobs));
    r.sessions = alloc_array((size_t)nodes + 1, sizeof(*r.sessions));
    r.scheduler = scheduler_new(&options, r.now_us);
    uint64_t begin_us = clock_monotonic_us();
    prepare(&r, nodes);
    while (r.heap_count || scheduler_next_us(r.scheduler) < UINT64_MAX) {
        uint64_t next_us = r.heap_count ? r.heap[0].at_us : UINT64_MAX;
        if (!r.heap_count && r.now_us > span_us + 40 * 86400 * SECOND)
            break;
        /* Also for those that wait to be tried again, or run out of time. */
        uint64_t look_us = r.now_us + 60 * SECOND;
        next_us = next_us < look_us ? next_us : look_us;
        batch(&r, next_us / BATCH_US * BATCH_US + BATCH_US);
        if (!r.heap_count && trace_all_ended(r.jobs, jobs))
            break;
    }
    double took_s = (double)(clock_monotonic_us() - begin_us) / 1e6;
    struct trace_passes passes = {r.passes_us, r.passes_count, r.attempts, r.preempted, took_s};
    trace_result_print(nodes, r.plan, r.jobs, jobs, &r.use, &passes);
    bool ok = trace_all_ended(r.jobs, jobs);
    scheduler_free(r.scheduler);
    arena_free(r.actions.arena);
    scheduler_actions_release(&r.actions);
    free(r.plan);
    free(r.jobs);
    free(r.sessions);
    free(r.heap);
    free(r.started);
    free(r.passes_us);
    return ok ? 0 : 1;
}
