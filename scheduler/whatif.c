/* whatif.c - the same state twice, one of them changed. */

#include "scheduler/whatif.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "scheduler/forecast.h"
#include "scheduler/internal.h"
#include "scheduler/refuse.h"

#define NOISE_US UINT64_C(1000000) /* and an eighth: less is no difference */

/* --- the change --- */

static struct node *node_named(const struct scheduler *s, const char *name)
{
    for (int i = 0; i < s->nodes_count; i++)
        if (strcmp(s->nodes[i]->name, name) == 0)
            return s->nodes[i];
    return NULL;
}

static bool add_nodes(struct scheduler *s, const struct whatif_node *change, int at,
                      uint64_t now_us, struct scheduler_actions *actions, struct error *err)
{
    char pointer[40];
    snprintf(pointer, sizeof(pointer), "/nodes/%d/count", at);
    if (change->count > LIMIT_NODES - s->nodes_count)
        return error_at(err, pointer, INVALID, "%d nodes beside %d; at most %d are possible",
                        change->count, s->nodes_count, LIMIT_NODES);
    for (int i = 0; i < change->count; i++) {
        struct scheduler_node_info info = change->like;
        info.id = s->nodes_count ? s->nodes[s->nodes_count - 1]->id + 1 : 1;
        info.name =
            i ? arena_printf(actions->arena, "%s-%d", change->name, i + 1) : change->name;
        info.boot_id = "";
        info.asked_us = 0;
        scheduler_step(s, &(struct scheduler_event){.kind = ON_JOIN, .node = &info}, now_us,
                       actions);
    }
    return true;
}

static bool change_node(struct scheduler *s, const struct whatif_node *change, int at,
                        uint64_t now_us, struct scheduler_actions *actions, struct error *err)
{
    char pointer[40];
    snprintf(pointer, sizeof(pointer), "/nodes/%d/name", at);
    struct node *node = node_named(s, change->name);
    if (change->kind == WHATIF_ADD)
        return node ? error_at(err, pointer, INVALID,
                               "there is a node '%.100s' already: a new one needs a new name",
                               change->name)
                    : add_nodes(s, change, at, now_us, actions, err);
    if (!node)
        return error_at(err, pointer, INVALID, "there is no node '%.100s'", change->name);
    if (change->kind == WHATIF_REMOVE)
        scheduler_node_gone(s, node, "taken away", now_us, actions);
    else
        scheduler_node_drain(s, node, change->kind == WHATIF_DRAIN, "", actions);
    s->dirty = true;
    return true;
}

static int64_t next_number(const struct scheduler *s)
{
    return s->jobs_count ? s->jobs[s->jobs_count - 1]->number + 1 : 1;
}

static bool change(struct scheduler *s, const struct scheduler_job_info *job, int64_t number,
                   const struct whatif_node *nodes, int nodes_count, uint64_t now_us,
                   struct error *err)
{
    struct scheduler_actions actions = {.arena = arena_new()};
    bool ok = true;
    for (int i = 0; ok && i < nodes_count; i++)
        ok = change_node(s, &nodes[i], i, now_us, &actions, err);
    if (ok && job) {
        struct scheduler_job_info info = *job;
        info.number = number;
        info.state = JOB_QUEUED;
        info.reason = "";
        ok = refuse_check(s, job->needs, job->needs_count, err);
        if (ok)
            scheduler_load_job(s, &info, now_us);
    }
    arena_free(actions.arena);
    scheduler_actions_release(&actions);
    return ok;
}

/* --- the job --- */

static void look_at_places(const struct job *job, struct arena *arena, struct whatif *out)
{
    out->places = arena_array(arena, (size_t)job->tasks_count, sizeof(*out->places));
    for (int i = 0; i < job->tasks_count; i++)
        out->places[out->places_count++] =
            (struct whatif_place){.role = arena_text(arena, job->tasks[i].role),
                                  .index = job->tasks[i].index,
                                  .node = arena_text(arena, job->tasks[i].node->name),
                                  .gpu_mask = job->tasks[i].gpu_mask};
}

/* When and where it starts. */
static void look_at_start(const struct scheduler *changed, int64_t number, uint64_t now_us,
                          struct arena *arena, struct whatif *out)
{
    struct forecast forecast;
    int64_t work = FORECAST_WORK;
    struct scheduler *s = scheduler_copy(changed);
    forecast_play(s, now_us, number, &work, arena, &forecast);
    const struct forecast_job *row = forecast_find(&forecast, number);
    out->starts = row && row->start_us != FORECAST_NEVER;
    if (out->starts) {
        out->start_us = row->start_us;
        look_at_places(scheduler_find_job(s, number), arena, out);
    }
    scheduler_free(s);
}

/* Why not at once. */
static void look_at_why(const struct scheduler *changed, int64_t number, uint64_t now_us,
                        struct whatif *out)
{
    struct scheduler_actions actions = {.arena = arena_new()};
    struct scheduler *s = scheduler_copy(changed);
    s->dirty = true;
    scheduler_step(s, &(struct scheduler_event){.kind = ON_TICK}, now_us, &actions);
    explain_job(s, number, now_us, &out->why);
    scheduler_free(s);
    arena_free(actions.arena);
    scheduler_actions_release(&actions);
}

/* --- the others --- */

static uint64_t start_of(const struct forecast *forecast, int64_t number)
{
    const struct forecast_job *row = forecast_find(forecast, number);
    return row ? row->start_us : 0;
}

/* Whether one can be sure that `late` is later than `soon`. */
static bool is_later(uint64_t late, const struct forecast *where, uint64_t soon)
{
    uint64_t least = soon == FORECAST_NEVER ? soon : soon + soon / 8 + NOISE_US;
    if (late != FORECAST_NEVER)
        return late > least;
    return soon != FORECAST_NEVER && (where->complete || where->until_us > least);
}

static bool was_stopped(const struct forecast *before, const struct forecast *after,
                        const struct job *job, const struct scheduler *changed)
{
    const struct forecast_job *was = forecast_find(before, job->number);
    const struct forecast_job *is = forecast_find(after, job->number);
    const struct job *now = scheduler_find_job(changed, job->number);
    if (job->state == JOB_QUEUED || job->state == JOB_STOPPING)
        return false;
    if (!now || now->state == JOB_QUEUED)
        return true;
    return is && is->preempt_us != FORECAST_NEVER &&
           (!was || was->preempt_us == FORECAST_NEVER);
}

/* `changed` as it was before it was played on. */
static void look_at_others(const struct scheduler *s, const struct scheduler *changed,
                           const struct forecast *before, const struct forecast *after,
                           struct arena *arena, struct whatif *out)
{
    size_t count = (size_t)s->jobs_count;
    out->delayed = arena_array(arena, count, sizeof(*out->delayed));
    out->sooner = arena_array(arena, count, sizeof(*out->sooner));
    out->stopped = arena_array(arena, count, sizeof(*out->stopped));
    for (int i = 0; i < s->jobs_count; i++) {
        const struct job *job = s->jobs[i];
        struct whatif_move move = {job->number, start_of(before, job->number),
                                   start_of(after, job->number)};
        if (was_stopped(before, after, job, changed)) {
            const struct forecast_job *is = forecast_find(after, job->number);
            bool again = is && is->preempt_us == FORECAST_NEVER;
            move.after_us = again ? is->start_us : FORECAST_NEVER;
            out->stopped[out->stopped_count++] = move;
        } else if (job->state == JOB_QUEUED && is_later(move.after_us, after, move.before_us)) {
            out->delayed[out->delayed_count++] = move;
        } else if (job->state == JOB_QUEUED &&
                   is_later(move.before_us, before, move.after_us)) {
            out->sooner[out->sooner_count++] = move;
        }
    }
}

bool whatif_ask(const struct scheduler *s, const struct scheduler_job_info *job,
                const struct whatif_node *nodes, int nodes_count, uint64_t now_us,
                struct arena *arena, struct whatif *out, struct error *err)
{
    *out = (struct whatif){.has_job = job != NULL};
    int64_t number = next_number(s), work = FORECAST_WORK;
    struct scheduler *changed = scheduler_copy(s);
    if (!change(changed, job, number, nodes, nodes_count, now_us, err)) {
        scheduler_free(changed);
        return false;
    }
    if (job)
        look_at_start(changed, number, now_us, arena, out);
    if (job && (!out->starts || out->start_us))
        look_at_why(changed, number, now_us, out);

    struct forecast before, after;
    struct scheduler *with = scheduler_copy(changed), *without = scheduler_copy(s);
    forecast_play(with, now_us, 0, &work, arena, &after);
    work = FORECAST_WORK;
    forecast_play(without, now_us, 0, &work, arena, &before);
    look_at_others(s, changed, &before, &after, arena, out);
    out->complete = before.complete && after.complete;
    out->until_us = before.until_us < after.until_us ? before.until_us : after.until_us;
    scheduler_free(with);
    scheduler_free(without);
    scheduler_free(changed);
    return true;
}
