/* demand.c - how many more nodes the jobs that wait would use. */

#include "scheduler/demand.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "scheduler/internal.h"

const char *demand_queue(const struct scheduler *s, int64_t number)
{
    const struct job *job = scheduler_find_job(s, number);
    return job ? job->lane->name : "";
}

struct trial {
    struct scheduler *s;
    struct scheduler_actions actions;
    uint64_t now_us;
};

static struct trial trial_new(const struct scheduler *s, uint64_t now_us)
{
    struct trial trial = {.s = scheduler_copy(s), .now_us = now_us};
    trial.actions.arena = arena_new();
    return trial;
}

static void trial_free(struct trial *trial)
{
    scheduler_free(trial->s);
    arena_free(trial->actions.arena);
    scheduler_actions_release(&trial->actions);
}

static void happens(struct trial *trial, const struct scheduler_event *event)
{
    scheduler_step(trial->s, event, trial->now_us, &trial->actions);
}

/* Lets `count` nodes like that of the pool join; the id of the first. */
static int64_t join(struct trial *trial, const struct demand_pool *pool, int count)
{
    struct scheduler *s = trial->s;
    int64_t first = s->nodes_count ? s->nodes[s->nodes_count - 1]->id + 1 : 1;
    for (int i = 0; i < count && s->nodes_count < LIMIT_NODES; i++) {
        struct scheduler_node_info info = pool->like;
        info.id = first + i;
        info.name = "?";
        info.boot_id = "";
        info.asked_us = 0;
        happens(trial, &(struct scheduler_event){.kind = ON_JOIN, .node = &info});
    }
    return first;
}

/* How many of the nodes from `first` on, in a row, have got tasks. */
static int with_tasks(const struct trial *trial, int64_t first, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const struct node *node = scheduler_find_node(trial->s, first + i);
        found += node && node->tasks_count > 0;
    }
    return found;
}

static void pass(struct trial *trial)
{
    trial->s->dirty = true;
    happens(trial, &(struct scheduler_event){.kind = ON_TICK});
}

static bool waits_in(const struct scheduler *s, const char *queue)
{
    for (int i = 0; i < s->jobs_count; i++)
        if (s->jobs[i]->state == JOB_QUEUED && strcmp(s->jobs[i]->lane->name, queue) == 0)
            return true;
    return false;
}

/* The nodes of a pool are asked for by the jobs of its queue: the others are taken away. */
static void only_queue(struct trial *trial, const char *queue)
{
    struct scheduler *s = trial->s;
    for (int i = s->jobs_count - 1; i >= 0; i--) {
        const struct job *job = s->jobs[i];
        if (job->state == JOB_QUEUED && strcmp(job->lane->name, queue) != 0)
            happens(trial, &(struct scheduler_event){.kind = ON_CANCEL, .number = job->number});
    }
}

static int wanted_of(const struct scheduler *s, const struct demand_pool *pool, uint64_t now_us)
{
    if (!pool->room || !waits_in(s, pool->queue))
        return 0;
    struct trial trial = trial_new(s, now_us);
    only_queue(&trial, pool->queue);
    int64_t first = join(&trial, pool, pool->room);
    pass(&trial);
    int wanted = with_tasks(&trial, first, pool->room);
    trial_free(&trial);
    return wanted;
}

void demand_read(const struct scheduler *s, struct demand_pool *pools, int pools_count,
                 uint64_t now_us)
{
    bool waits = false;
    for (int i = 0; i < pools_count; i++) {
        pools[i].used = pools[i].wanted = 0;
        waits = waits || waits_in(s, pools[i].queue);
    }
    if (!waits)
        return;
    struct trial trial = trial_new(s, now_us);
    int64_t *firsts = alloc_array((size_t)pools_count, sizeof(*firsts));
    for (int i = 0; i < pools_count; i++)
        firsts[i] = join(&trial, &pools[i], pools[i].coming);
    pass(&trial);
    for (int i = 0; i < pools_count; i++) {
        pools[i].used = with_tasks(&trial, firsts[i], pools[i].coming);
        pools[i].wanted = wanted_of(trial.s, &pools[i], now_us);
    }
    free(firsts);
    trial_free(&trial);
}

bool demand_possible(struct scheduler *copy, const struct demand_pool *pool,
                     const struct scheduler_need *needs, int needs_count, uint64_t now_us)
{
    struct trial trial = {.s = copy, .now_us = now_us, .actions.arena = arena_new()};
    join(&trial, pool, pool->room);
    arena_free(trial.actions.arena);
    scheduler_actions_release(&trial.actions);
    return scheduler_possible(copy, needs, needs_count);
}
