/* fit.c - places tasks on nodes. */

#include "scheduler/fit.h"
#include "base/alloc.h"
#include "base/limits.h"

static void grow(struct fit *fit, int count)
{
    if (count <= fit->capacity)
        return;
    fit->capacity = count;
    fit->nodes = alloc_resize(fit->nodes, (size_t)count * sizeof(*fit->nodes));
}

void fit_resize(struct fit *fit, int count)
{
    grow(fit, count);
    fit->count = count;
    if (count)
        memset(fit->nodes, 0, (size_t)count * sizeof(*fit->nodes));
}

void fit_copy(struct fit *copy, const struct fit *fit)
{
    grow(copy, fit->count);
    copy->count = fit->count;
    copy->most = fit->most;
    if (fit->count)
        memcpy(copy->nodes, fit->nodes, (size_t)fit->count * sizeof(*fit->nodes));
}

void fit_release(struct fit *fit)
{
    free(fit->nodes);
    *fit = (struct fit){0};
}

static void raise_to(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

void fit_ready(struct fit *fit)
{
    fit->most = (struct scheduler_resources){0};
    for (int n = 0; n < fit->count; n++) {
        const struct scheduler_resources *free = &fit->nodes[n].free;
        if (!fit->nodes[n].offered)
            continue;
        raise_to(&fit->most.cpu_millis, free->cpu_millis);
        raise_to(&fit->most.memory_bytes, free->memory_bytes);
        raise_to(&fit->most.gpus, free->gpus);
    }
}

bool fit_task(const struct scheduler_resources *task, const struct scheduler_resources *free)
{
    return task->cpu_millis <= free->cpu_millis && task->memory_bytes <= free->memory_bytes &&
           task->gpus <= free->gpus;
}

/* --- one task --- */

void fit_take(struct fit_node *node, const struct scheduler_resources *task, int gpu_share,
              uint64_t gpu_mask)
{
    node->free.cpu_millis -= task->cpu_millis;
    node->free.memory_bytes -= task->memory_bytes;
    int part = gpu_share ? gpu_share : SCHEDULER_GPU_WHOLE;
    for (int g = 0; g < node->gpus_count; g++) {
        if (!((gpu_mask & ~node->gpus_away) >> g & 1))
            continue;
        assert(node->gpu_free[g] >= part);
        node->free.gpus -= node->gpu_free[g] == SCHEDULER_GPU_WHOLE;
        node->gpu_free[g] = (uint16_t)(node->gpu_free[g] - part);
    }
}

void fit_give(struct fit_node *node, const struct scheduler_resources *task, int gpu_share,
              uint64_t gpu_mask)
{
    node->free.cpu_millis += task->cpu_millis;
    node->free.memory_bytes += task->memory_bytes;
    int part = gpu_share ? gpu_share : SCHEDULER_GPU_WHOLE;
    for (int g = 0; g < node->gpus_count; g++) {
        if (!((gpu_mask & ~node->gpus_away) >> g & 1))
            continue;
        node->gpu_free[g] = (uint16_t)(node->gpu_free[g] + part);
        assert(node->gpu_free[g] <= SCHEDULER_GPU_WHOLE);
        node->free.gpus += node->gpu_free[g] == SCHEDULER_GPU_WHOLE;
    }
}

/* The GPU with the least room that this part still fits in; -1: none. */
static int gpu_for(const struct fit_node *node, int gpu_share)
{
    int best = -1;
    for (int g = 0; g < node->gpus_count; g++) {
        if (node->gpu_free[g] >= gpu_share &&
            (best < 0 || node->gpu_free[g] < node->gpu_free[best]))
            best = g;
    }
    return best;
}

/* The GPUs that a task would get. */
static uint64_t gpus_for(const struct fit_node *node, const struct scheduler_need *need)
{
    uint64_t mask = 0;
    if (need->gpu_share)
        return UINT64_C(1) << gpu_for(node, need->gpu_share);
    int64_t left = need->each.gpus;
    for (int g = 0; g < node->gpus_count && left; g++) {
        if (node->gpu_free[g] == SCHEDULER_GPU_WHOLE) {
            mask |= UINT64_C(1) << g;
            left--;
        }
    }
    assert(!left);
    return mask;
}

/* Which of two needs is placed first: more GPUs, more CPUs, more memory, the earlier one. */
static bool need_before(const struct scheduler_need *a, const struct scheduler_need *b)
{
    if (a->each.gpus != b->each.gpus)
        return a->each.gpus > b->each.gpus;
    if (a->gpu_share != b->gpu_share)
        return a->gpu_share > b->gpu_share;
    if (a->each.cpu_millis != b->each.cpu_millis)
        return a->each.cpu_millis > b->each.cpu_millis;
    return a->each.memory_bytes > b->each.memory_bytes;
}

/* Indexes of needs in the order in which they are placed. */
static void needs_order(const struct scheduler_need *needs, int needs_count, int *order)
{
    for (int i = 0; i < needs_count; i++) {
        int at = i;
        for (; at > 0 && need_before(&needs[i], &needs[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static bool is_excluded(const struct fit_ask *ask, int64_t id)
{
    for (int i = 0; i < ask->excluded_count; i++) {
        if (ask->excluded[i] == id)
            return true;
    }
    return false;
}

/* True when the task is better placed on `a` than on `b`. */
static bool better(const struct fit_ask *ask, const struct scheduler_need *need,
                   const struct fit_node *a, const struct fit_node *b)
{
    if (ask->spread && a->mine != b->mine)
        return a->mine < b->mine;
    if (need->gpu_share) {
        int a_free = a->gpu_free[gpu_for(a, need->gpu_share)];
        int b_free = b->gpu_free[gpu_for(b, need->gpu_share)];
        if (a_free != b_free)
            return a_free < b_free;
    }
    if (a->free.gpus != b->free.gpus)
        return a->free.gpus < b->free.gpus;
    return a->free.cpu_millis < b->free.cpu_millis;
}

static int best_node(const struct fit_ask *ask, int at, const struct fit *fit)
{
    const struct scheduler_need *need = &ask->needs[at];
    const bool *suits = ask->suits ? ask->suits[at] : NULL;
    if (!fit_task(&need->each, &fit->most))
        return -1;
    int best = -1;
    for (int n = 0; n < fit->count; n++) {
        const struct fit_node *node = &fit->nodes[n];
        if (!node->offered || !fit_task(&need->each, &node->free) ||
            (suits && !suits[node->kind]) ||
            (need->gpu_share && gpu_for(node, need->gpu_share) < 0) ||
            (ask->excluded_count && is_excluded(ask, node->id)))
            continue;
        if (best < 0 || better(ask, need, node, &fit->nodes[best]))
            best = n;
    }
    return best;
}

/* --- a job --- */

/* The place of a need's first task. */
static int first_place(const struct fit_ask *ask, int at)
{
    int first = 0;
    for (int i = 0; i < at; i++)
        first += ask->needs[i].replicas;
    return first;
}

/* Takes room for the tasks of one need; says how many found it. */
static int place_need(const struct fit_ask *ask, int at, struct fit *fit,
                      struct fit_place *places)
{
    const struct scheduler_need *need = &ask->needs[at];
    for (int r = 0; r < need->replicas; r++) {
        int best = best_node(ask, at, fit);
        if (best < 0)
            return r;
        struct fit_node *node = &fit->nodes[best];
        places[r] = (struct fit_place){best, gpus_for(node, need)};
        fit_take(node, &need->each, need->gpu_share, places[r].gpu_mask);
        node->mine++;
    }
    return need->replicas;
}

static void give_need(const struct fit_ask *ask, int at, struct fit *fit,
                      const struct fit_place *places, int count)
{
    const struct scheduler_need *need = &ask->needs[at];
    for (int r = 0; r < count; r++)
        fit_give(&fit->nodes[places[r].node], &need->each, need->gpu_share, places[r].gpu_mask);
}

static void forget_mine(struct fit *fit, const struct fit_place *places, int count)
{
    for (int i = 0; i < count; i++)
        fit->nodes[places[i].node].mine = 0;
}

static bool place_job(const struct fit_ask *ask, struct fit *fit, struct fit_place *places)
{
    assert(ask->needs_count > 0 && ask->needs_count <= LIMIT_JOB_TASKS);
    int order[LIMIT_JOB_TASKS];
    needs_order(ask->needs, ask->needs_count, order);
    for (int i = 0; i < ask->needs_count; i++) {
        struct fit_place *here = places + first_place(ask, order[i]);
        int placed = place_need(ask, order[i], fit, here);
        if (placed == ask->needs[order[i]].replicas)
            continue;
        forget_mine(fit, here, placed);
        give_need(ask, order[i], fit, here, placed);
        while (i-- > 0) {
            here = places + first_place(ask, order[i]);
            forget_mine(fit, here, ask->needs[order[i]].replicas);
            give_need(ask, order[i], fit, here, ask->needs[order[i]].replicas);
        }
        return false;
    }
    forget_mine(fit, places, first_place(ask, ask->needs_count));
    return true;
}

bool fit_job(const struct fit_ask *ask, struct fit *fit, struct fit_place *places)
{
    struct fit_ask tightly = *ask;
    tightly.spread = false;
    return place_job(ask, fit, places) || (ask->spread && place_job(&tightly, fit, places));
}

void fit_undo(const struct fit_ask *ask, struct fit *fit, const struct fit_place *places)
{
    for (int i = 0; i < ask->needs_count; i++)
        give_need(ask, i, fit, places + first_place(ask, i), ask->needs[i].replicas);
}
