/* store.c - the fold, and the promises it watches over. */

#include "tests/sim/store.h"

void store_mix(struct store *store, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        store->hash = (store->hash ^ (value & 0xff)) * UINT64_C(0x100000001b3);
}

struct store_job *store_find(struct store *store, int64_t number)
{
    if (number < 1 || number > store->jobs_count)
        sim_broken("I1: there is no job %lld", (long long)number);
    return &store->jobs[number - 1];
}

static struct store_node *node_find(struct store *store, int64_t id)
{
    for (int i = 0; i < store->nodes_count; i++) {
        if (store->nodes[i].id == id)
            return &store->nodes[i];
    }
    sim_broken("there is no node %lld", (long long)id);
}

static struct store_task *task_find(struct store_job *job, const char *role, int index)
{
    for (int i = 0; i < job->tasks_count; i++) {
        if (job->tasks[i].index == index && strcmp(job->tasks[i].role, role) == 0)
            return &job->tasks[i];
    }
    return NULL;
}

int64_t store_submit(struct store *store, const struct store_job *job, uint64_t now_us)
{
    for (int i = 0; i < store->jobs_count; i++) {
        if (store->jobs[i].key == job->key)
            return store->jobs[i].number;
    }
    assert(store->jobs_count < STORE_JOBS_MAX);
    struct store_job *row = &store->jobs[store->jobs_count++];
    *row = *job;
    row->number = store->jobs_count;
    row->queued_us = now_us;
    store_mix(store, job->key);
    return row->number;
}

void store_node_joins(struct store *store, const struct scheduler_node_info *node)
{
    int i = 0;
    while (i < store->nodes_count && store->nodes[i].id != node->id)
        i++;
    assert(i < STORE_NODES_MAX);
    if (i == store->nodes_count)
        store->nodes[store->nodes_count++] = (struct store_node){.id = node->id};
    struct store_node *row = &store->nodes[i];
    row->capacity = node->capacity;
    row->asked_us = node->asked_us;
    snprintf(row->name, sizeof(row->name), "%s", node->name);
    snprintf(row->boot_id, sizeof(row->boot_id), "%s", node->boot_id);
}

/* --- actions --- */

static bool edge_is_legal(enum job_state from, enum job_state to)
{
    static const uint8_t legal[JOB_STATES_COUNT] = {
        [JOB_QUEUED] = 1 << JOB_ALLOCATED | 1 << JOB_CANCELLED,
        [JOB_ALLOCATED] = 1 << JOB_STARTING | 1 << JOB_STOPPING,
        [JOB_STARTING] = 1 << JOB_RUNNING | 1 << JOB_STOPPING,
        [JOB_RUNNING] = 1 << JOB_STOPPING,
        [JOB_STOPPING] =
            1 << JOB_QUEUED | 1 << JOB_SUCCEEDED | 1 << JOB_FAILED | 1 << JOB_CANCELLED,
    };
    return legal[from] >> to & 1;
}

static void commit_job(struct store *store, const struct scheduler_action *a, uint64_t now_us)
{
    struct store_job *job = store_find(store, a->job);
    if (db_job_state_final(job->state))
        sim_broken("I2: job %lld was %s and becomes %s", (long long)a->job,
                   db_job_state_name(job->state), db_job_state_name(a->to));
    if (job->state != a->from)
        sim_broken("I7: job %lld is %s in the store, %s for the scheduler", (long long)a->job,
                   db_job_state_name(job->state), db_job_state_name(a->from));
    if (!edge_is_legal(a->from, a->to))
        sim_broken("job %lld goes from %s to %s", (long long)a->job, db_job_state_name(a->from),
                   db_job_state_name(a->to));
    if ((a->to == JOB_QUEUED || db_job_state_final(a->to)) && job->attempt_alive)
        sim_broken("job %lld is %s while attempt %d lives", (long long)a->job,
                   db_job_state_name(a->to), job->attempt);
    if (job->cancelled && (a->to == JOB_QUEUED || a->to == JOB_FAILED))
        sim_broken("F33: job %lld was cancelled and becomes %s", (long long)a->job,
                   db_job_state_name(a->to));
    if (a->restarts > job->restart_max)
        sim_broken("I6: job %lld uses restart %d of %d", (long long)a->job, a->restarts,
                   job->restart_max);
    store->edges[a->from][a->to]++;
    job->state = a->to;
    job->restarts = a->restarts;
    snprintf(job->reason, sizeof(job->reason), "%s", a->reason);
    if (a->to == JOB_QUEUED) {
        job->queued_us = now_us;
        job->retry_us = now_us + a->retry_in_us;
        job->tasks_count = 0;
    }
}

static void commit_attempt(struct store *store, const struct scheduler_action *a, int64_t epoch)
{
    struct store_job *job = store_find(store, a->job);
    if (job->attempt_alive)
        sim_broken("I5: job %lld gets a second living attempt", (long long)a->job);
    if (job->cancelled)
        sim_broken("F33: job %lld was cancelled and starts again", (long long)a->job);
    if (a->epoch <= job->epoch || a->epoch > epoch)
        sim_broken("I5: job %lld goes from epoch %lld to %lld", (long long)a->job,
                   (long long)job->epoch, (long long)a->epoch);
    if (a->attempt != job->attempt + 1 || a->attempt > 1 + job->restart_max)
        sim_broken("I6: job %lld makes attempt %d of at most %d", (long long)a->job, a->attempt,
                   1 + job->restart_max);
    job->attempt = a->attempt;
    job->epoch = a->epoch;
    job->attempt_alive = true;
    job->tasks_count = 0;
}

static void commit_attempt_ends(struct store *store, const struct scheduler_action *a,
                                uint64_t now_us)
{
    struct store_job *job = store_find(store, a->job);
    if (!job->attempt_alive || job->epoch != a->epoch)
        sim_broken("attempt %lld of job %lld ends twice", (long long)a->epoch,
                   (long long)a->job);
    for (int i = 0; i < job->tasks_count; i++) {
        if (job->tasks[i].state != TASK_EXITED)
            sim_broken("job %lld ends while %s:%d has not", (long long)a->job,
                       job->tasks[i].role, job->tasks[i].index);
    }
    job->attempt_alive = false;
    if (job->started_us)
        job->ran_us += now_us - job->started_us;
    job->started_us = 0;
}

/* I4: what is given of a node is never more than it has. */
static void check_books(struct store *store, int64_t id)
{
    const struct store_node *node = node_find(store, id);
    struct scheduler_resources sum = {0};
    for (int j = 0; j < store->jobs_count; j++) {
        for (int t = 0; t < store->jobs[j].tasks_count; t++) {
            const struct store_task *task = &store->jobs[j].tasks[t];
            if (task->node != id || task->state == TASK_EXITED)
                continue;
            sum.cpu_millis += task->resources.cpu_millis;
            sum.memory_bytes += task->resources.memory_bytes;
            sum.gpus += task->resources.gpus;
        }
    }
    if (sum.cpu_millis > node->capacity.cpu_millis ||
        sum.memory_bytes > node->capacity.memory_bytes || sum.gpus > node->capacity.gpus)
        sim_broken("I4: node %lld has given %lld of %lld CPU, %lld of %lld GPUs", (long long)id,
                   (long long)sum.cpu_millis, (long long)node->capacity.cpu_millis,
                   (long long)sum.gpus, (long long)node->capacity.gpus);
}

static void commit_task(struct store *store, const struct scheduler_action *a)
{
    struct store_job *job = store_find(store, a->job);
    if (job->epoch != a->epoch || !job->attempt_alive)
        sim_broken("I5: a task of attempt %lld of job %lld changes, the living one is %lld",
                   (long long)a->epoch, (long long)a->job, (long long)job->epoch);
    struct store_task *task = task_find(job, a->role, a->index);
    if (!task) {
        assert(job->tasks_count < STORE_TASKS_MAX);
        task = &job->tasks[job->tasks_count++];
        memcpy(task->role, a->role, sizeof(task->role));
        task->index = a->index;
        task->node = a->node;
        task->resources = a->resources;
        const struct store_node *node = node_find(store, a->node);
        if (node->state != NODE_JOINED || node->draining)
            sim_broken("job %lld is placed on node %lld, which is %s%s", (long long)a->job,
                       (long long)a->node, db_node_state_name(node->state),
                       node->draining ? " and drained" : "");
    } else if (task->state == TASK_EXITED || a->task_state <= task->state) {
        sim_broken("%s:%d of job %lld goes from %s to %s", a->role, a->index, (long long)a->job,
                   db_task_state_name(task->state), db_task_state_name(a->task_state));
    }
    task->state = a->task_state;
    task->reason = a->exit;
    check_books(store, a->node);
}

static void commit_action(struct store *store, const struct scheduler_action *a, int64_t epoch,
                          uint64_t now_us)
{
    struct store_node *node;
    switch (a->kind) {
    case DO_JOB:
        commit_job(store, a, now_us);
        break;
    case DO_NOTE:
        snprintf(store_find(store, a->job)->reason, 16, "%s", a->reason);
        break;
    case DO_ATTEMPT:
        commit_attempt(store, a, epoch);
        break;
    case DO_ATTEMPT_RUNS:
        store_find(store, a->job)->started_us = now_us;
        break;
    case DO_ATTEMPT_ENDS:
        commit_attempt_ends(store, a, now_us);
        break;
    case DO_TASK:
        commit_task(store, a);
        break;
    case DO_JOINED:
    case DO_NODE:
        node = node_find(store, a->node);
        node->state = a->node_state;
        node->draining = a->draining;
        break;
    default:
        break;
    }
}

void store_commit(struct store *store, const struct scheduler_actions *actions, int64_t epoch,
                  uint64_t now_us)
{
    if (epoch < store->epoch)
        sim_broken("I5: the epoch goes from %lld to %lld", (long long)store->epoch,
                   (long long)epoch);
    for (int i = 0; i < actions->count; i++) {
        const struct scheduler_action *a = &actions->list[i];
        commit_action(store, a, epoch, now_us);
        store_mix(store, (uint64_t)a->kind);
        store_mix(store, (uint64_t)a->job << 32 | (uint64_t)a->epoch);
        store_mix(store, (uint64_t)a->node << 8 | (uint64_t)a->to);
        store_mix(store, now_us);
    }
    store->epoch = epoch;
}

/* --- loading --- */

static uint64_t since(uint64_t then_us, uint64_t now_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

void store_tell(const struct store_job *job, uint64_t now_us, struct scheduler_job_info *info,
                struct scheduler_task_info tasks[STORE_TASKS_MAX])
{
    *info = (struct scheduler_job_info){
        .number = job->number,
        .priority = job->priority,
        .state = job->state,
        .reason = job->reason,
        .needs = job->needs,
        .needs_count = job->needs_count,
        .restart_max = job->restart_max,
        .restarts = job->restarts,
        .attempt = job->attempt,
        .epoch = job->epoch,
        .stop_us = job->stop_us,
        .ran_us = job->ran_us + (job->started_us ? since(job->started_us, now_us) : 0),
        .waited_us = since(job->queued_us, now_us),
        .retry_in_us = since(now_us, job->retry_us),
        .tasks = tasks,
        .tasks_count = job->tasks_count,
    };
    for (int i = 0; i < job->tasks_count; i++) {
        const struct store_task *from = &job->tasks[i];
        tasks[i] = (struct scheduler_task_info){.index = from->index,
                                                .node = from->node,
                                                .state = from->state,
                                                .reason = from->reason,
                                                .resources = from->resources};
        memcpy(tasks[i].role, from->role, sizeof(tasks[i].role));
    }
}

struct scheduler *store_load(const struct store *store, const struct scheduler_options *options,
                             uint64_t now_us)
{
    struct scheduler *scheduler = scheduler_new(options, now_us);
    scheduler_load_epoch(scheduler, store->epoch);
    for (int i = 0; i < store->nodes_count; i++) {
        const struct store_node *node = &store->nodes[i];
        struct scheduler_node_info info = {.id = node->id,
                                           .name = node->name,
                                           .state = node->state,
                                           .draining = node->draining,
                                           .capacity = node->capacity,
                                           .boot_id = node->boot_id,
                                           .asked_us = node->asked_us};
        scheduler_load_node(scheduler, &info, now_us);
    }
    for (int i = 0; i < store->jobs_count; i++) {
        if (db_job_state_final(store->jobs[i].state))
            continue;
        struct scheduler_job_info info;
        struct scheduler_task_info tasks[STORE_TASKS_MAX];
        store_tell(&store->jobs[i], now_us, &info, tasks);
        scheduler_load_job(scheduler, &info, now_us);
    }
    return scheduler;
}

void store_compare(const struct store *store, const struct scheduler *scheduler)
{
    for (int i = 0; i < store->jobs_count; i++) {
        const struct store_job *job = &store->jobs[i];
        enum job_state state;
        bool known = scheduler_job_state(scheduler, job->number, &state);
        if (known && db_job_state_final(job->state))
            sim_broken("I7: job %lld has ended in the store, and is %s for the scheduler",
                       (long long)job->number, db_job_state_name(state));
        if (known && state != job->state)
            sim_broken("I7: job %lld is %s in the store, and %s for the scheduler",
                       (long long)job->number, db_job_state_name(job->state),
                       db_job_state_name(state));
        if (!known && job->state != JOB_QUEUED && !db_job_state_final(job->state))
            sim_broken("I2: job %lld is %s, and the scheduler has lost it",
                       (long long)job->number, db_job_state_name(job->state));
    }
    scheduler_check(scheduler);
}

bool store_all_ended(const struct store *store)
{
    for (int i = 0; i < store->jobs_count; i++) {
        if (!db_job_state_final(store->jobs[i].state))
            return false;
    }
    return true;
}
