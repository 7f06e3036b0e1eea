/* fit.c - places tasks on nodes. */

#include "scheduler/fit.h"
#include "base/limits.h"

bool fit_task(const struct scheduler_resources *task, const struct scheduler_resources *free)
{
    return task->cpu_millis <= free->cpu_millis && task->memory_bytes <= free->memory_bytes &&
           task->gpus <= free->gpus;
}

/* Which of two needs is placed first: more GPUs, more CPUs, more memory, the earlier one. */
static bool need_before(const struct scheduler_resources *a,
                        const struct scheduler_resources *b)
{
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus;
    if (a->cpu_millis != b->cpu_millis)
        return a->cpu_millis > b->cpu_millis;
    return a->memory_bytes > b->memory_bytes;
}

/* Indexes of needs in the order in which they are placed. */
static void needs_order(const struct scheduler_need *needs, int needs_count, int *order)
{
    for (int i = 0; i < needs_count; i++) {
        int at = i;
        for (; at > 0 && need_before(&needs[i].each, &needs[order[at - 1]].each); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* True when the task would leave less idle on `a` than on `b`. */
static bool tighter(const struct scheduler_resources *a, const struct scheduler_resources *b)
{
    if (a->gpus != b->gpus)
        return a->gpus < b->gpus;
    return a->cpu_millis < b->cpu_millis;
}

static int best_node(const struct scheduler_resources *task, const struct fit_node *nodes,
                     int nodes_count)
{
    int best = -1;
    for (int n = 0; n < nodes_count; n++) {
        if (nodes[n].offered && fit_task(task, &nodes[n].free) &&
            (best < 0 || tighter(&nodes[n].free, &nodes[best].free)))
            best = n;
    }
    return best;
}

bool fit_job(const struct scheduler_need *needs, int needs_count, const struct fit_node *nodes,
             int nodes_count, struct fit_node *scratch, int *placement)
{
    assert(needs_count > 0 && needs_count <= LIMIT_JOB_TASKS);
    if (nodes_count == 0)
        return false;
    memcpy(scratch, nodes, (size_t)nodes_count * sizeof(*nodes));

    int order[LIMIT_JOB_TASKS];
    needs_order(needs, needs_count, order);
    for (int i = 0; i < needs_count; i++) {
        const struct scheduler_need *need = &needs[order[i]];
        int first = 0;
        for (int j = 0; j < order[i]; j++)
            first += needs[j].replicas;
        for (int r = 0; r < need->replicas; r++) {
            int best = best_node(&need->each, scratch, nodes_count);
            if (best < 0)
                return false;
            scratch[best].free.cpu_millis -= need->each.cpu_millis;
            scratch[best].free.memory_bytes -= need->each.memory_bytes;
            scratch[best].free.gpus -= need->each.gpus;
            placement[first + r] = best;
        }
    }
    return true;
}
