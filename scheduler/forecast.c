/* forecast.c - plays a copy of the scheduler on. */

#include "scheduler/forecast.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "scheduler/internal.h"

#define AGES (UINT64_C(1) << 60)
#define TOGETHER 16 /* all in all, ends may be taken too late by this part of the time */

struct play {
    struct scheduler *s;
    struct scheduler_actions actions;
    uint64_t begin_us;
    uint64_t now_us;
    uint64_t late_us;  /* so much too late were ends taken together */
    uint64_t clean_us; /* tasks that should not live are gone from their nodes; 0: they are */
    struct forecast *out;
    int starts_left; /* rows without a start */
};

const struct forecast_job *forecast_find(const struct forecast *forecast, int64_t number)
{
    int low = 0, high = forecast->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (forecast->jobs[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < forecast->count && forecast->jobs[low].number == number ? &forecast->jobs[low]
                                                                         : NULL;
}

/* --- what is seen --- */

static int nodes_of(const struct job *job)
{
    int count = 0;
    for (int i = 0; i < job->tasks_count; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = job->tasks[j].node == job->tasks[i].node;
        count += !seen;
    }
    return count;
}

static void see(struct play *play, const struct scheduler_action *a)
{
    /* The rows are all jobs of the beginning, so that one that is preempted has its own. */
    struct forecast_job *row = (struct forecast_job *)forecast_find(play->out, a->job);
    uint64_t at_us = play->now_us - play->begin_us;
    if (!row || a->kind != DO_JOB)
        return;
    if (a->to == JOB_ALLOCATED && row->start_us == FORECAST_NEVER) {
        const struct job *job = scheduler_find_job(play->s, a->job);
        row->start_us = at_us;
        row->node = job->tasks[0].node->id;
        row->nodes_count = nodes_of(job);
        play->starts_left--;
    }
    if (a->to == JOB_STOPPING && strcmp(a->reason, "PREEMPT") == 0 &&
        row->preempt_us == FORECAST_NEVER)
        row->preempt_us = at_us;
}

static void step(struct play *play)
{
    scheduler_actions_clear(&play->actions);
    arena_clear(play->actions.arena);
    scheduler_step(play->s, &(struct scheduler_event){.kind = ON_TICK}, play->now_us,
                   &play->actions);
    for (int i = 0; i < play->actions.count; i++)
        see(play, &play->actions.list[i]);
}

/* --- what happens --- */

/* Whatever was placed runs at once. */
static void all_run(struct play *play)
{
    struct scheduler *s = play->s;
    for (int i = s->jobs_count - 1; i >= 0; i--) {
        struct job *job = s->jobs[i];
        if (job->state != JOB_ALLOCATED && job->state != JOB_STARTING)
            continue;
        for (int t = 0; t < job->tasks_count; t++)
            if (job->tasks[t].state != TASK_EXITED)
                job->tasks[t].state = TASK_RUNNING;
        scheduler_job_review(s, job, play->now_us, &play->actions);
    }
}

static uint64_t ends_us(const struct play *play, const struct job *job)
{
    return job->state == JOB_QUEUED ? UINT64_MAX
                                    : scheduler_reserve_end_us(play->s, job, play->now_us);
}

/* When the next job ends or is told to, or may be tried again, or nodes are clean. */
static uint64_t next_us(const struct play *play)
{
    uint64_t next = play->clean_us ? play->clean_us : UINT64_MAX;
    for (int i = 0; i < play->s->jobs_count; i++) {
        const struct job *job = play->s->jobs[i];
        uint64_t turn_us = job->state == JOB_STOPPING ? 0 : scheduler_job_next_us(play->s, job);
        uint64_t end_us = ends_us(play, job);
        if (turn_us > play->now_us && turn_us < next)
            next = turn_us;
        next = end_us < next ? end_us : next;
    }
    return next;
}

static void job_ends(struct play *play, struct job *job)
{
    enum exit_reason reason = job->state == JOB_STOPPING ? EXIT_STOPPED : EXIT_OK;
    for (int i = 0; i < job->tasks_count; i++)
        if (job->tasks[i].state != TASK_EXITED)
            scheduler_job_task_exits(play->s, job, &job->tasks[i], reason, NULL,
                                     &play->actions);
    scheduler_job_review(play->s, job, play->now_us, &play->actions);
}

static void time_passes(struct play *play, uint64_t to_us)
{
    uint64_t spare_us = (to_us - play->begin_us) / TOGETHER, last_us = to_us;
    uint64_t together_us = to_us + (spare_us > play->late_us ? spare_us - play->late_us : 0);
    for (int i = 0; i < play->s->jobs_count; i++) {
        uint64_t end_us = ends_us(play, play->s->jobs[i]);
        if (end_us > last_us && end_us <= together_us)
            last_us = end_us;
    }
    play->late_us += last_us - to_us;
    /* Backwards: a job that has ended leaves the list. */
    for (int i = play->s->jobs_count - 1; i >= 0; i--) {
        struct job *job = play->s->jobs[i];
        if (ends_us(play, job) > last_us)
            continue;
        play->now_us = last_us;
        job_ends(play, job);
    }
    play->now_us = last_us;
    if (!play->clean_us || play->clean_us > last_us)
        return;
    play->clean_us = 0;
    for (int i = 0; i < play->s->nodes_count; i++)
        play->s->nodes[i]->ghosts_count = 0;
    play->s->dirty = true;
}

/* --- the play --- */

static void rows_make(struct play *play, struct arena *arena)
{
    const struct scheduler *s = play->s;
    struct forecast *out = play->out;
    *out = (struct forecast){0};
    out->jobs = arena_array(arena, (size_t)s->jobs_count, sizeof(*out->jobs));
    for (int i = 0; i < s->jobs_count; i++) {
        bool waits = s->jobs[i]->state == JOB_QUEUED;
        play->starts_left += waits;
        out->jobs[out->count++] = (struct forecast_job){.number = s->jobs[i]->number,
                                                        .start_us = waits ? FORECAST_NEVER : 0,
                                                        .preempt_us = FORECAST_NEVER};
    }
}

/* Those that ran all the time are no news. */
static void rows_trim(const struct play *play)
{
    struct forecast *out = play->out;
    int kept = 0;
    for (int i = 0; i < out->count; i++) {
        const struct forecast_job *row = &out->jobs[i];
        bool waited = row->start_us == FORECAST_NEVER || row->node;
        if (waited || row->preempt_us != FORECAST_NEVER)
            out->jobs[kept++] = *row;
    }
    out->count = kept;
}

static bool has_started(const struct play *play, int64_t number)
{
    const struct forecast_job *row = number ? forecast_find(play->out, number) : NULL;
    return number ? !row || row->start_us != FORECAST_NEVER : !play->starts_left;
}

void forecast_play(struct scheduler *copy, uint64_t now_us, int64_t number, int64_t *work,
                   struct arena *arena, struct forecast *out)
{
    struct play play = {.s = copy, .begin_us = now_us, .now_us = now_us, .out = out};
    play.actions.arena = arena_new();
    copy->options.suspect_us = copy->options.lost_us = AGES; /* nobody is silent from now on */
    for (int i = 0; i < copy->nodes_count; i++)
        if (copy->nodes[i]->ghosts_count)
            play.clean_us = now_us + copy->options.grace_us;
    rows_make(&play, arena);
    copy->dirty = true;
    step(&play);
    while (!has_started(&play, number)) {
        all_run(&play);
        uint64_t to_us = next_us(&play);
        *work -= copy->jobs_count + copy->nodes_count;
        if (to_us == UINT64_MAX || *work <= 0)
            break;
        time_passes(&play, to_us);
        step(&play);
    }
    out->complete = *work > 0;
    out->until_us = play.now_us - now_us;
    rows_trim(&play);
    arena_free(play.actions.arena);
    scheduler_actions_release(&play.actions);
}
