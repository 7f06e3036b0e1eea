/*
 * scheduler_share.c - queues and projects: who has had how much, and so whose turn it is.
 *
 * What a job costs is its dominant share: of the resource of which it asks for the largest
 * part of all nodes, that part, in millionths, times the milliseconds it holds it.  What a
 * project has used fades: half of it is forgotten with every `half_us`.
 */

#include <limits.h>

#include "base/alloc.h"
#include "scheduler/internal.h"

__extension__ typedef unsigned __int128 wide;

/* --- by name --- */

struct lane *scheduler_share_lane(struct scheduler *s, const char *name)
{
    for (int i = 0; i < s->lanes_count; i++) {
        if (strcmp(s->lanes[i]->name, name) == 0)
            return s->lanes[i];
    }
    s->lanes = alloc_grow(s->lanes, s->lanes_count, &s->lanes_capacity, sizeof(*s->lanes));
    struct lane *lane = s->lanes[s->lanes_count] = alloc_bytes(sizeof(*lane));
    lane->at = s->lanes_count++;
    lane->name = alloc_text(name);
    lane->priority = SCHEDULER_QUEUE_PRIORITY;
    lane->weight = SCHEDULER_WEIGHT;
    return lane;
}

struct project *scheduler_share_project(struct scheduler *s, const char *name)
{
    for (int i = 0; i < s->projects_count; i++) {
        if (strcmp(s->projects[i]->name, name) == 0)
            return s->projects[i];
    }
    s->projects =
        alloc_grow(s->projects, s->projects_count, &s->projects_capacity, sizeof(*s->projects));
    struct project *project = s->projects[s->projects_count] = alloc_bytes(sizeof(*project));
    project->at = s->projects_count++;
    project->name = alloc_text(name);
    project->weight = SCHEDULER_WEIGHT;
    project->quota = scheduler_no_quota;
    return project;
}

void scheduler_share_free(struct scheduler *s)
{
    for (int i = 0; i < s->lanes_count; i++) {
        free(s->lanes[i]->name);
        free(s->lanes[i]);
    }
    for (int i = 0; i < s->projects_count; i++) {
        free(s->projects[i]->name);
        free(s->projects[i]);
    }
    free(s->lanes);
    free(s->projects);
    free(s->order);
}

/* --- amounts --- */

const struct scheduler_amount scheduler_no_quota = {-1, -1, -1, -1};

static void raise_to(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

void scheduler_share_total(struct scheduler *s)
{
    s->total = s->most = (struct scheduler_resources){0};
    for (int i = 0; i < s->nodes_count; i++) {
        const struct scheduler_resources *has = &s->nodes[i]->capacity;
        s->total.cpu_millis += has->cpu_millis;
        s->total.memory_bytes += has->memory_bytes;
        s->total.gpus += has->gpus;
        raise_to(&s->most.cpu_millis, has->cpu_millis);
        raise_to(&s->most.memory_bytes, has->memory_bytes);
        raise_to(&s->most.gpus, has->gpus);
    }
}

struct scheduler_amount scheduler_share_amount(const struct scheduler_need *needs, int count)
{
    struct scheduler_amount sum = {.jobs = 1};
    for (int i = 0; i < count; i++) {
        int64_t gpu_millis =
            needs[i].gpu_share ? needs[i].gpu_share : needs[i].each.gpus * SCHEDULER_GPU_WHOLE;
        sum.cpu_millis += needs[i].each.cpu_millis * needs[i].replicas;
        sum.memory_bytes += needs[i].each.memory_bytes * needs[i].replicas;
        sum.gpu_millis += gpu_millis * needs[i].replicas;
    }
    return sum;
}

static int64_t part_of(int64_t part, int64_t whole)
{
    if (part <= 0)
        return 0;
    if (whole <= part)
        return 1000000;
    return (int64_t)((wide)part * 1000000 / (wide)whole);
}

/* The dominant share of all nodes, in millionths. */
static int64_t dominant(const struct scheduler *s, const struct scheduler_amount *amount)
{
    int64_t cpu = part_of(amount->cpu_millis, s->total.cpu_millis);
    int64_t memory = part_of(amount->memory_bytes, s->total.memory_bytes);
    int64_t gpu = part_of(amount->gpu_millis, s->total.gpus * SCHEDULER_GPU_WHOLE);
    int64_t most = cpu > memory ? cpu : memory;
    return most > gpu ? most : gpu;
}

/* --- quotas --- */

bool scheduler_share_within(const struct scheduler_amount *amount,
                            const struct scheduler_amount *quota)
{
    return (quota->cpu_millis < 0 || amount->cpu_millis <= quota->cpu_millis) &&
           (quota->memory_bytes < 0 || amount->memory_bytes <= quota->memory_bytes) &&
           (quota->gpu_millis < 0 || amount->gpu_millis <= quota->gpu_millis) &&
           (quota->jobs < 0 || amount->jobs <= quota->jobs);
}

static void amount_add(struct scheduler_amount *to, const struct scheduler_amount *what,
                       int sign)
{
    to->cpu_millis += sign * what->cpu_millis;
    to->memory_bytes += sign * what->memory_bytes;
    to->gpu_millis += sign * what->gpu_millis;
    to->jobs += sign * what->jobs;
}

bool scheduler_share_allows(const struct job *job)
{
    struct scheduler_amount held = job->project->held;
    amount_add(&held, &job->asks, 1);
    return scheduler_share_within(&held, &job->project->quota);
}

/* --- holding, and what it costs --- */

uint64_t scheduler_share_faded(uint64_t usage, uint64_t age_us, uint64_t half_us)
{
    uint64_t halves = age_us / half_us;
    if (halves >= 64)
        return 0;
    usage >>= halves;
    /* Within a half-life, along a line. */
    return usage - (uint64_t)((wide)usage * (age_us % half_us) / (2 * half_us));
}

static uint64_t cost(const struct scheduler *s, const struct job *job, uint64_t held_us)
{
    return (uint64_t)dominant(s, &job->asks) * (held_us / 1000);
}

void scheduler_share_take(struct job *job, uint64_t now_us)
{
    job->held_us = now_us;
    amount_add(&job->project->held, &job->asks, 1);
}

void scheduler_share_give(struct scheduler *s, struct job *job, uint64_t now_us,
                          struct scheduler_actions *actions)
{
    struct project *project = job->project;
    uint64_t held_us = now_us - job->held_us;
    amount_add(&project->held, &job->asks, -1);
    uint64_t faded =
        scheduler_share_faded(project->usage, now_us - project->usage_us, s->options.half_us);
    project->usage = faded + cost(s, job, held_us);
    project->usage_us = now_us;

    struct scheduler_action *action = scheduler_act(actions, DO_USAGE);
    action->job = job->number;
    action->project = project->name;
    action->usage = project->usage;
    action->cpu_ms = job->asks.cpu_millis * (int64_t)(held_us / 1000) / 1000;
    action->gpu_ms = job->asks.gpu_millis * (int64_t)(held_us / 1000) / 1000;
}

static uint64_t used_by(const struct scheduler *s, const struct project *project,
                        uint64_t now_us)
{
    return scheduler_share_faded(project->usage, now_us - project->usage_us,
                                 s->options.half_us) +
           project->running;
}

/* --- whose turn it is --- */

int scheduler_share_rank(const struct job *a, const struct job *b)
{
    if (a->lane->priority != b->lane->priority)
        return a->lane->priority - b->lane->priority;
    return a->priority - b->priority;
}

static int by_project(const void *left, const void *right)
{
    const struct job *a = *(struct job *const *)left, *b = *(struct job *const *)right;
    if (a->rank != b->rank)
        return b->rank - a->rank;
    if (a->project_turn != b->project_turn)
        return a->project_turn < b->project_turn ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_lane(const void *left, const void *right)
{
    const struct job *a = *(struct job *const *)left, *b = *(struct job *const *)right;
    if (a->rank != b->rank)
        return b->rank - a->rank;
    if (a->lane_turn != b->lane_turn)
        return a->lane_turn < b->lane_turn ? -1 : 1;
    return by_project(left, right);
}

/* Where each project and queue stands now, with what its running jobs have cost so far. */
static void turns_begin(struct scheduler *s, uint64_t now_us)
{
    for (int i = 0; i < s->projects_count; i++)
        s->projects[i]->running = 0;
    for (int i = 0; i < s->lanes_count; i++)
        s->lanes[i]->turn = 0;
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        if (job->state == JOB_QUEUED)
            continue;
        job->project->running += cost(s, job, now_us - job->held_us);
        job->lane->turn +=
            cost(s, job, s->options.turn_us) * SCHEDULER_WEIGHT / (uint64_t)job->lane->weight;
    }
    for (int i = 0; i < s->projects_count; i++) {
        struct project *project = s->projects[i];
        project->turn =
            used_by(s, project, now_us) * SCHEDULER_WEIGHT / (uint64_t)project->weight;
    }
}

/*
 * Each job's turn comes when its project has paid for those before it, as if each held what it
 * asks for `turn_us`: so projects (and queues) alternate by their weights, and within one it
 * goes by number.
 */
void scheduler_share_order(struct scheduler *s, uint64_t now_us)
{
    int count = 0;
    if (s->queue.count > s->order_capacity) {
        s->order_capacity = 2 * s->queue.count;
        s->order = alloc_resize(s->order, (size_t)s->order_capacity * sizeof(struct job *));
    }
    turns_begin(s, now_us);
    bool lanes_differ = false;
    for (int i = 0; i < s->queue.count; i++) {
        struct job *job = s->queue.jobs[i];
        job->place = INT_MAX;
        if (scheduler_job_is_held(job))
            continue; /* it takes no turn of others */
        uint64_t price = cost(s, job, s->options.turn_us) * SCHEDULER_WEIGHT;
        const struct job *before = count ? s->order[count - 1] : NULL;
        s->order[count++] = job;
        /* The queue is sorted by rank already: this numbers the ranks. */
        job->rank =
            before && !scheduler_share_rank(job, before) ? before->rank : s->queue.count - i;
        job->project_turn = job->project->turn;
        job->project->turn += price / (uint64_t)job->project->weight;
        lanes_differ |= job->lane != s->order[0]->lane;
    }
    qsort(s->order, (size_t)count, sizeof(*s->order), by_project);
    for (int i = 0; lanes_differ && i < count; i++) {
        struct job *job = s->order[i];
        uint64_t price = cost(s, job, s->options.turn_us) * SCHEDULER_WEIGHT;
        job->lane_turn = job->lane->turn;
        job->lane->turn += price / (uint64_t)job->lane->weight;
    }
    if (lanes_differ)
        qsort(s->order, (size_t)count, sizeof(*s->order), by_lane);
    s->order_count = count;
    for (int i = 0; i < count; i++)
        s->order[i]->place = i;
}
