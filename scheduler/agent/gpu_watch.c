/*
 * gpu_watch.c - GPUs that are lost while tasks use them, and those that come back.
 *
 * DESIGN: `trainyard-task gpus` is asked every GPUS_LOOK_US, and at once when a task that had
 * GPUs has ended: its end is told only after an answer, asked for later, without processes on
 * them.  So nothing is started on a GPU before it is proven free.  What the server is to know
 * it hears by a new join; the numbers of GPUs stay as they are.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "scheduler/agent/internal.h"

#define GPUS_LOOK_US UINT64_C(5000000)
#define GPUS_PROOF_US UINT64_C(200000)       /* between looks at those that are to be free */
#define GPUS_PROOF_MAX_US UINT64_C(30000000) /* then they count as used by others */

static bool is_watching(const struct agent *agent)
{
    return agent->gpus.asked;
}

void gpu_watch_offer(struct agent *agent)
{
    struct agent_resources *capacity = &agent->capacity;
    capacity->gpus = agent->gpus.count;
    for (int i = 0; i < agent->gpus.count; i++) {
        const struct gpu *gpu = &agent->gpus.list[i];
        if (!i || gpu->memory_bytes < capacity->gpu_memory_bytes)
            capacity->gpu_memory_bytes = gpu->memory_bytes;
        capacity->gpu_type = agent->gpus.list[0].name;
    }
    capacity->gpus_away = gpus_away(&agent->gpus);
}

void gpu_watch_ended(struct agent *agent, struct core_task *task)
{
    task->unproven = is_watching(agent) && attempt_gpus(task->attempt);
}

uint64_t gpu_watch_next_us(const struct agent *agent)
{
    if (!is_watching(agent))
        return UINT64_MAX;
    if (agent->gpus_query.fd >= 0)
        return agent->gpus_query.until_us;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        if (agent->core.tasks[i].unproven)
            return agent->gpus_asked_us + GPUS_PROOF_US;
    }
    return agent->gpus_asked_us + GPUS_LOOK_US;
}

/* Those on which processes of ours may be. */
static uint64_t gpus_held(const struct agent *agent, uint64_t now_us)
{
    uint64_t mask = 0;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        const struct core_task *task = &agent->core.tasks[i];
        if (task->state != AGENT_TASK_EXITED ||
            (task->unproven && now_us - task->ended_us < GPUS_PROOF_MAX_US))
            mask |= attempt_gpus(task->attempt);
    }
    return mask;
}

/* The first of the task's GPUs that is lost; NULL: none. */
static const struct gpu *lost_of(const struct agent *agent, const struct attempt *attempt)
{
    uint64_t mask = attempt_gpus(attempt);
    for (int g = 0; g < agent->gpus.count; g++) {
        if (mask >> g & 1 && agent->gpus.list[g].lost)
            return &agent->gpus.list[g];
    }
    return NULL;
}

static bool is_used(const struct agent *agent, const struct attempt *attempt)
{
    uint64_t mask = attempt_gpus(attempt);
    for (int g = 0; g < agent->gpus.count; g++) {
        if (mask >> g & 1 && agent->gpus.list[g].busy)
            return true;
    }
    return false;
}

static void look_at(struct agent *agent, struct core_task *task, bool answered, uint64_t now_us)
{
    struct attempt *attempt = task->attempt;
    const struct gpu *lost = lost_of(agent, attempt);
    char text[400];
    if (lost && task->state != AGENT_TASK_EXITED) {
        snprintf(text, sizeof(text), "GPU %s is lost: %s", lost->uuid, lost->why);
        attempt_fail(attempt, AGENT_EXIT_LOST, text);
    }
    bool asked_later = agent->gpus_asked_us >= task->ended_us;
    if (task->unproven && asked_later &&
        (lost || (answered && !is_used(agent, attempt)) ||
         now_us - task->ended_us >= GPUS_PROOF_MAX_US))
        task->unproven = false;
}

static void take_answer(struct agent *agent, const json_t *answer)
{
    uint64_t now_us = clock_monotonic_us();
    bool changed = gpus_look(&agent->gpus, answer, gpus_held(agent, now_us), agent->folder);
    for (int i = 0; i < agent->core.tasks_count; i++)
        look_at(agent, &agent->core.tasks[i], answer != NULL, now_us);
    if (!changed)
        return;
    gpu_watch_offer(agent);
    log_line(LOG_INFO, "agent", "node=%s msg=\"its GPUs are others now: joining again\"",
             agent->node_name);
    work_leave(agent);
}

void gpu_watch(struct agent *agent)
{
    json_t *answer = NULL;
    if (!is_watching(agent))
        return;
    if (agent->gpus_query.fd >= 0) {
        if (gpus_query_go_on(&agent->gpus_query, &answer) == GPUS_WAIT)
            return;
        take_answer(agent, answer);
        json_decref(answer);
    } else if (clock_monotonic_us() >= gpu_watch_next_us(agent)) {
        agent->gpus_asked_us = clock_monotonic_us();
        if (!gpus_query_begin(&agent->gpus_query, agent->task_path))
            take_answer(agent, NULL);
    }
}
