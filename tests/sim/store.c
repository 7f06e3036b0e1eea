/* store.c - the fold, and the promises it watches over. */

#include "tests/sim/store.h"

#include "base/alloc.h"

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
    row->after_count = 0;
    for (int i = 0; i < job->after_count && row->number > 1; i++) {
        int64_t other = 1 + job->after[i].job % (row->number - 1);
        bool known = false;
        for (int k = 0; k < row->after_count && !known; k++)
            known = row->after[k].job == other;
        if (!known)
            row->after[row->after_count++] =
                (struct scheduler_after){other, store->jobs[other - 1].state};
    }
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
    row->gpu_type = node->gpu_type;
    row->gpu_memory_bytes = node->gpu_memory_bytes;
    row->labels = node->labels;
    row->labels_count = node->labels_count;
    row->asked_us = node->asked_us;
    snprintf(row->name, sizeof(row->name), "%s", node->name);
    snprintf(row->boot_id, sizeof(row->boot_id), "%s", node->boot_id);
}

/* --- actions --- */

static bool edge_is_legal(enum job_state from, enum job_state to)
{
    static const uint8_t legal[JOB_STATES_COUNT] = {
        [JOB_QUEUED] = 1 << JOB_ALLOCATED | 1 << JOB_FAILED | 1 << JOB_CANCELLED,
        [JOB_ALLOCATED] = 1 << JOB_STARTING | 1 << JOB_STOPPING,
        [JOB_STARTING] = 1 << JOB_RUNNING | 1 << JOB_STOPPING,
        [JOB_RUNNING] = 1 << JOB_STOPPING,
        [JOB_STOPPING] =
            1 << JOB_QUEUED | 1 << JOB_SUCCEEDED | 1 << JOB_FAILED | 1 << JOB_CANCELLED,
    };
    return legal[from] >> to & 1;
}

static int rank(const struct store *store, const struct store_job *job)
{
    return store->queues[job->queue].priority * 1000 + job->priority;
}

/* An attempt is ended for another job only if one of higher rank, that may do so, waits. */
static void check_preempts(const struct store *store, const struct store_job *victim)
{
    for (int i = 0; i < store->jobs_count; i++) {
        const struct store_job *job = &store->jobs[i];
        if (job->state == JOB_QUEUED && store->queues[job->queue].preempt &&
            rank(store, job) > rank(store, victim))
            return;
    }
    sim_broken("job %lld makes room for nobody of higher rank", (long long)victim->number);
}

static struct scheduler_amount asks_of(const struct store_job *job)
{
    struct scheduler_amount sum = {.jobs = 1};
    for (int i = 0; i < job->needs_count; i++) {
        const struct scheduler_need *need = &job->needs[i];
        sum.cpu_millis += need->each.cpu_millis * need->replicas;
        sum.memory_bytes += need->each.memory_bytes * need->replicas;
        sum.gpu_millis +=
            (need->gpu_share ? need->gpu_share : need->each.gpus * 1000) * need->replicas;
    }
    return sum;
}

/* A project never starts a job beyond its quota. */
static void check_quota(const struct store *store, int project)
{
    const struct scheduler_amount *quota = &store->projects[project].quota;
    struct scheduler_amount sum = {0};
    for (int i = 0; i < store->jobs_count; i++) {
        if (store->jobs[i].project != project || !store->jobs[i].attempt_alive)
            continue;
        struct scheduler_amount asks = asks_of(&store->jobs[i]);
        sum.cpu_millis += asks.cpu_millis;
        sum.memory_bytes += asks.memory_bytes;
        sum.gpu_millis += asks.gpu_millis;
        sum.jobs++;
    }
    if ((quota->cpu_millis >= 0 && sum.cpu_millis > quota->cpu_millis) ||
        (quota->memory_bytes >= 0 && sum.memory_bytes > quota->memory_bytes) ||
        (quota->gpu_millis >= 0 && sum.gpu_millis > quota->gpu_millis) ||
        (quota->jobs >= 0 && sum.jobs > quota->jobs))
        sim_broken("I4: project %s holds more than its quota", store->projects[project].name);
}

static void commit_usage(struct store *store, const struct scheduler_action *a, uint64_t now_us)
{
    struct store_project *project = &store->projects[store_find(store, a->job)->project];
    if (strcmp(project->name, a->project) != 0)
        sim_broken("I15: job %lld is charged to project %s", (long long)a->job, a->project);
    project->usage = a->usage;
    project->usage_us = now_us;
    project->cpu_ms += a->cpu_ms;
    project->gpu_ms += a->gpu_ms;
}

/* I15: what is charged is the sum of the attempts. */
static void check_charged(const struct store *store)
{
    for (int i = 0; i < STORE_PROJECTS; i++) {
        const struct store_project *project = &store->projects[i];
        if (project->cpu_ms != project->cpu_ms_due || project->gpu_ms != project->gpu_ms_due)
            sim_broken("I15: project %s is charged %lld of %lld CPU milliseconds",
                       project->name, (long long)project->cpu_ms,
                       (long long)project->cpu_ms_due);
    }
}

/* One that the job comes after and that has ended otherwise than well; NULL. */
static const struct scheduler_after *bad_after(const struct store_job *job)
{
    for (int i = 0; i < job->after_count; i++) {
        if (job->after[i].state == JOB_FAILED || job->after[i].state == JOB_CANCELLED)
            return &job->after[i];
    }
    return NULL;
}

/* What those that come after it see of a job. */
static void tell_after(struct store *store, const struct store_job *job)
{
    for (int i = 0; i < store->jobs_count; i++) {
        for (int k = 0; k < store->jobs[i].after_count; k++) {
            if (store->jobs[i].after[k].job == job->number)
                store->jobs[i].after[k].state = job->state;
        }
    }
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
    bool unharmed = strcmp(a->reason, "PREEMPTED") == 0 || strcmp(a->reason, "PAUSED") == 0 ||
                    strcmp(a->reason, "RESUMED") == 0;
    if (a->preemptions != job->preemptions + unharmed)
        sim_broken("job %lld counts %d preemptions", (long long)a->job, a->preemptions);
    if (unharmed && a->restarts != job->restarts)
        sim_broken("I6: job %lld pays for a preemption", (long long)a->job);
    if (strcmp(a->reason, "PREEMPT") == 0)
        check_preempts(store, job);
    if (strcmp(a->reason, "RETRY") == 0 && job->retry_on && !(job->retry_on >> job->ended & 1))
        sim_broken("I6: job %lld is tried again after %s", (long long)a->job,
                   db_exit_reason_name(job->ended));
    if (a->restarts > job->restart_max)
        sim_broken("I6: job %lld uses restart %d of %d", (long long)a->job, a->restarts,
                   job->restart_max);
    if (a->from == JOB_QUEUED && a->to == JOB_FAILED && !bad_after(job))
        sim_broken("job %lld fails and has not begun", (long long)a->job);
    store->edges[a->from][a->to]++;
    job->state = a->to;
    tell_after(store, job);
    job->restarts = a->restarts;
    job->preemptions = a->preemptions;
    snprintf(job->reason, sizeof(job->reason), "%s", a->reason);
    if (a->to == JOB_QUEUED) {
        job->queued_us = now_us;
        job->retry_us = now_us + a->retry_in_us;
        job->tasks_count = 0;
    }
}

static void commit_attempt(struct store *store, const struct scheduler_action *a, int64_t epoch,
                           uint64_t now_us)
{
    struct store_job *job = store_find(store, a->job);
    if (job->attempt_alive)
        sim_broken("I5: job %lld gets a second living attempt", (long long)a->job);
    if (job->cancelled)
        sim_broken("F33: job %lld was cancelled and starts again", (long long)a->job);
    if (a->epoch <= job->epoch || a->epoch > epoch)
        sim_broken("I5: job %lld goes from epoch %lld to %lld", (long long)a->job,
                   (long long)job->epoch, (long long)a->epoch);
    if (a->attempt != job->attempt + 1 || a->attempt > 1 + job->restarts + job->preemptions)
        sim_broken("I6: job %lld makes attempt %d of at most %d", (long long)a->job, a->attempt,
                   1 + job->restarts + job->preemptions);
    if (job->paused)
        sim_broken("job %lld is paused and starts", (long long)a->job);
    for (int i = 0; i < job->after_count; i++) {
        if (job->after[i].state != JOB_SUCCEEDED)
            sim_broken("job %lld starts while job %lld, which it comes after, is %s",
                       (long long)a->job, (long long)job->after[i].job,
                       db_job_state_name(job->after[i].state));
    }
    job->attempt = a->attempt;
    job->epoch = a->epoch;
    job->attempt_alive = true;
    job->held_us = now_us;
    job->tasks_count = 0;
    check_quota(store, job->project);
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
    job->ended = a->exit;
    struct scheduler_amount asks = asks_of(job);
    int64_t held_ms = (int64_t)((now_us - job->held_us) / 1000);
    store->projects[job->project].cpu_ms_due += asks.cpu_millis * held_ms / 1000;
    store->projects[job->project].gpu_ms_due += asks.gpu_millis * held_ms / 1000;
    if (job->started_us)
        job->ran_us += now_us - job->started_us;
    job->started_us = 0;
}

/* I4: what is given of a node is never more than it has. */
static void check_books(struct store *store, int64_t id)
{
    const struct store_node *node = node_find(store, id);
    struct scheduler_resources sum = {0};
    int gpus[SCHEDULER_GPUS_MAX] = {0};
    for (int j = 0; j < store->jobs_count; j++) {
        for (int t = 0; t < store->jobs[j].tasks_count; t++) {
            const struct store_task *task = &store->jobs[j].tasks[t];
            if (task->node != id || task->state == TASK_EXITED)
                continue;
            sum.cpu_millis += task->resources.cpu_millis;
            sum.memory_bytes += task->resources.memory_bytes;
            sum.gpus += task->resources.gpus;
            for (int g = 0; g < SCHEDULER_GPUS_MAX; g++)
                if (task->gpu_mask >> g & 1)
                    gpus[g] += task->gpu_share ? task->gpu_share : SCHEDULER_GPU_WHOLE;
        }
    }
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        if (gpus[g] > (g < node->capacity.gpus ? SCHEDULER_GPU_WHOLE : 0))
            sim_broken("I4: GPU %d of node %lld is given %d thousandths over", g, (long long)id,
                       gpus[g]);
    }
    if (sum.cpu_millis > node->capacity.cpu_millis ||
        sum.memory_bytes > node->capacity.memory_bytes || sum.gpus > node->capacity.gpus)
        sim_broken("I4: node %lld has given %lld of %lld CPU, %lld of %lld GPUs", (long long)id,
                   (long long)sum.cpu_millis, (long long)node->capacity.cpu_millis,
                   (long long)sum.gpus, (long long)node->capacity.gpus);
}

static const struct scheduler_need *need_of(const struct store_job *job, const char *role)
{
    for (int i = 0; i < job->needs_count; i++) {
        if (strcmp(job->needs[i].role, role) == 0)
            return &job->needs[i];
    }
    sim_broken("job %lld has no tasks of role %s", (long long)job->number, role);
}

/* A task goes only to a node that is what it asks for, and gets all that it asks for. */
static void check_place(struct store *store, const struct store_job *job,
                        const struct scheduler_action *a)
{
    const struct store_node *node = node_find(store, a->node);
    const struct scheduler_need *need = need_of(job, a->role);
    if (node->state != NODE_JOINED || node->draining)
        sim_broken("job %lld is placed on node %lld, which is %s%s", (long long)a->job,
                   (long long)a->node, db_node_state_name(node->state),
                   node->draining ? " and drained" : "");
    if (need->gpu_type && strcmp(need->gpu_type, node->gpu_type) != 0)
        sim_broken("job %lld asks for %s, node %lld has %s", (long long)a->job, need->gpu_type,
                   (long long)a->node, node->gpu_type);
    if (need->gpu_memory_bytes > node->gpu_memory_bytes)
        sim_broken("job %lld asks for more GPU memory than node %lld has", (long long)a->job,
                   (long long)a->node);
    for (int i = 0; i < need->labels_count; i++) {
        bool has = false;
        for (int l = 0; l < node->labels_count && !has; l++)
            has = strcmp(node->labels[l].name, need->labels[i].name) == 0 &&
                  strcmp(node->labels[l].value, need->labels[i].value) == 0;
        if (!has)
            sim_broken("job %lld asks for %s=%s, node %lld has it not", (long long)a->job,
                       need->labels[i].name, need->labels[i].value, (long long)a->node);
    }
    for (int i = 0; i < job->failures_count; i++) {
        if (job->exclude_bad && job->failures[i].node == a->node &&
            job->failures[i].count >= job->exclude_bad)
            sim_broken("job %lld has failed %d times on node %lld and is placed there again",
                       (long long)a->job, job->failures[i].count, (long long)a->node);
    }
    int64_t gpus = need->gpu_share ? 1 : need->each.gpus;
    if (__builtin_popcountll(a->gpu_mask) != gpus || a->gpu_share != need->gpu_share)
        sim_broken("job %lld asks for %lld GPUs and gets others", (long long)a->job,
                   (long long)gpus);
}

/* Failures on a node are counted one by one. */
static void commit_failure(struct store *store, const struct scheduler_action *a)
{
    struct store_job *job = store_find(store, a->job);
    int i = 0;
    while (i < job->failures_count && job->failures[i].node != a->node)
        i++;
    assert(i < STORE_NODES_MAX);
    if (i == job->failures_count)
        job->failures[job->failures_count++] = (struct scheduler_failure){a->node, 0};
    if (!job->exclude_bad || a->count != job->failures[i].count + 1)
        sim_broken("job %lld has failed %d times on node %lld, and %d are counted",
                   (long long)a->job, job->failures[i].count, (long long)a->node, a->count);
    job->failures[i].count = a->count;
}

static void task_placed(struct store *store, const struct store_job *job,
                        struct store_task *task, const struct scheduler_action *a)
{
    task->node = a->node;
    task->epoch = a->task_epoch;
    task->resources = a->resources;
    task->gpu_share = a->gpu_share;
    task->gpu_mask = a->gpu_mask;
    check_place(store, job, a);
}

/* I5: a task is placed anew alone only where the others went on without it, with an epoch that
 * nobody had before; there is one of it at a time. */
static void check_anew(const struct store *store, const struct store_job *job,
                       const struct store_task *task, const struct scheduler_action *a,
                       int64_t epoch)
{
    if (a->task_epoch <= task->epoch || a->task_epoch <= store->epoch || a->task_epoch > epoch)
        sim_broken("I5: %s:%d of job %lld goes from epoch %lld to %lld", a->role, a->index,
                   (long long)a->job, (long long)task->epoch, (long long)a->task_epoch);
    if (task->state != TASK_EXITED || a->task_state != TASK_WAITING)
        sim_broken("I5: %s:%d of job %lld is placed anew while it is %s", a->role, a->index,
                   (long long)a->job, db_task_state_name(task->state));
    if (!need_of(job, a->role)->alone || a->index == 0)
        sim_broken("%s:%d of job %lld is placed anew, and the others cannot go on without it",
                   a->role, a->index, (long long)a->job);
    if (!task->away || job->state != JOB_RUNNING || job->cancelled || job->paused)
        sim_broken("%s:%d of job %lld, which is %s, is placed anew", a->role, a->index,
                   (long long)a->job, db_job_state_name(job->state));
}

/* What is said of a job that goes on; a task that was placed anew has cost it a restart. */
static void commit_note(struct store *store, const struct scheduler_action *a)
{
    struct store_job *job = store_find(store, a->job);
    int cost = strcmp(a->reason, "PLACED_ANEW") == 0;
    if (a->restarts != job->restarts + cost || a->restarts > job->restart_max)
        sim_broken("I6: job %lld uses restart %d of %d after %d", (long long)a->job,
                   a->restarts, job->restart_max, job->restarts);
    job->restarts = a->restarts;
    snprintf(job->reason, sizeof(job->reason), "%s", a->reason);
}

static void commit_task(struct store *store, const struct scheduler_action *a, int64_t epoch)
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
        task_placed(store, job, task, a);
    } else if (a->task_epoch != task->epoch) {
        check_anew(store, job, task, a, epoch);
        task_placed(store, job, task, a);
    } else if (task->state == TASK_EXITED || a->task_state <= task->state) {
        sim_broken("%s:%d of job %lld goes from %s to %s", a->role, a->index, (long long)a->job,
                   db_task_state_name(task->state), db_task_state_name(a->task_state));
    }
    task->state = a->task_state;
    task->away = a->away;
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
        commit_note(store, a);
        break;
    case DO_ATTEMPT:
        commit_attempt(store, a, epoch, now_us);
        break;
    case DO_ATTEMPT_RUNS:
        store_find(store, a->job)->started_us = now_us;
        break;
    case DO_ATTEMPT_ENDS:
        commit_attempt_ends(store, a, now_us);
        break;
    case DO_TASK:
        commit_task(store, a, epoch);
        break;
    case DO_PRIORITY:
        if (store_find(store, a->job)->state != JOB_QUEUED)
            sim_broken("job %lld gets another priority, and is not queued", (long long)a->job);
        store_find(store, a->job)->priority = a->priority;
        break;
    case DO_PAUSE:
        store_find(store, a->job)->paused = a->pause;
        break;
    case DO_FAILURE:
        commit_failure(store, a);
        break;
    case DO_USAGE:
        commit_usage(store, a, now_us);
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
        store_mix(store, (uint64_t)a->task_epoch);
        store_mix(store, (uint64_t)a->node << 8 | (uint64_t)a->to);
        store_mix(store, a->gpu_mask);
        store_mix(store, now_us);
    }
    store->epoch = epoch;
    check_charged(store);
}

struct store_series *store_series(struct store *store, int64_t job, const char *role, int index)
{
    for (int i = store->series_count - 1; i >= 0; i--) {
        struct store_series *series = &store->series[i];
        if (series->job == job && series->index == index && strcmp(series->role, role) == 0)
            return series;
    }
    store->series = alloc_grow(store->series, store->series_count, &store->series_capacity,
                               sizeof(*store->series));
    struct store_series *series = &store->series[store->series_count++];
    *series = (struct store_series){.job = job, .index = index};
    snprintf(series->role, sizeof(series->role), "%s", role);
    return series;
}

/* An attempt's first point says where it goes on: what older ones reported from there on never
 * happened, and what they still report neither. */
static void series_add(struct store_series *series, int64_t epoch, int64_t step)
{
    if (series->epoch < epoch) {
        series->epoch = epoch;
        series->since = step;
        memset(series->points + step, 0, (size_t)(STORE_STEPS_MAX - step) * sizeof(int64_t));
    }
    if (series->epoch == epoch || step < series->since)
        series->points[step] = epoch;
}

/* I10, I11: each byte is stored once, and each point with its bytes, in order. */
int64_t store_ship(struct store *store, int file, const struct db_ship *ship)
{
    struct store_file *row = &store->files[file];
    if (!db_ship_is_next(ship, row->cursor))
        return row->cursor;
    if (ship->offset != row->cursor)
        sim_broken("I11: %s:%d of attempt %lld is stored up to %lld, and the bytes from %lld "
                   "are stored",
                   ship->role, ship->index, (long long)ship->epoch, (long long)row->cursor,
                   (long long)ship->offset);
    for (int i = 0; i < ship->points_count; i++) {
        int64_t step = ship->points[i].step;
        bool first = !row->cursor && !i;
        if (!first && step != row->next_step)
            sim_broken("I10: step %lld of %s:%d of attempt %lld is stored %s", (long long)step,
                       ship->role, ship->index, (long long)ship->epoch,
                       step < row->next_step ? "twice" : "without the one before");
        row->next_step = step + 1;
        series_add(store_series(store, ship->job, ship->role, ship->index), ship->epoch, step);
    }
    row->cursor = ship->end;
    store_mix(store, (uint64_t)file << 32 | (uint64_t)row->cursor);
    return row->cursor;
}

/* --- loading --- */

static uint64_t since(uint64_t then_us, uint64_t now_us)
{
    return now_us > then_us ? now_us - then_us : 0;
}

struct scheduler_project_info store_project_info(const struct store *store, int index,
                                                 uint64_t now_us)
{
    const struct store_project *project = &store->projects[index];
    return (struct scheduler_project_info){.name = project->name,
                                           .weight = project->weight,
                                           .quota = project->quota,
                                           .usage = project->usage,
                                           .usage_age_us = since(project->usage_us, now_us)};
}

void store_tell(const struct store *store, const struct store_job *job, uint64_t now_us,
                struct scheduler_job_info *info,
                struct scheduler_task_info tasks[STORE_TASKS_MAX])
{
    *info = (struct scheduler_job_info){
        .number = job->number,
        .queue = store->queues[job->queue].name,
        .project = store->projects[job->project].name,
        .priority = job->priority,
        .state = job->state,
        .reason = job->reason,
        .needs = job->needs,
        .needs_count = job->needs_count,
        .paused = job->paused,
        .spread = job->spread,
        .restart_max = job->restart_max,
        .after = job->after,
        .after_count = job->after_count,
        .retry_on = job->retry_on,
        .exclude_bad = job->exclude_bad,
        .failures = job->failures,
        .failures_count = job->failures_count,
        .restarts = job->restarts,
        .preemptions = job->preemptions,
        .held_us = job->attempt_alive ? since(job->held_us, now_us) : 0,
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
                                                .epoch = from->epoch,
                                                .away = from->away,
                                                .state = from->state,
                                                .reason = from->reason,
                                                .resources = from->resources,
                                                .gpu_share = from->gpu_share,
                                                .gpu_mask = from->gpu_mask};
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
                                           .gpu_type = node->gpu_type,
                                           .gpu_memory_bytes = node->gpu_memory_bytes,
                                           .labels = node->labels,
                                           .labels_count = node->labels_count,
                                           .boot_id = node->boot_id,
                                           .asked_us = node->asked_us};
        scheduler_load_node(scheduler, &info, now_us);
    }
    for (int i = 0; i < STORE_QUEUES; i++)
        scheduler_load_queue(scheduler, &store->queues[i]);
    for (int i = 0; i < STORE_PROJECTS; i++) {
        struct scheduler_project_info info = store_project_info(store, i, now_us);
        scheduler_load_project(scheduler, &info, now_us);
    }
    for (int i = 0; i < store->jobs_count; i++) {
        if (db_job_state_final(store->jobs[i].state))
            continue;
        struct scheduler_job_info info;
        struct scheduler_task_info tasks[STORE_TASKS_MAX];
        store_tell(store, &store->jobs[i], now_us, &info, tasks);
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

void store_check_after(const struct store *store, const struct scheduler *scheduler)
{
    for (int i = 0; i < store->jobs_count; i++) {
        const struct store_job *job = &store->jobs[i];
        enum job_state state;
        if (job->state == JOB_QUEUED && bad_after(job) &&
            scheduler_job_state(scheduler, job->number, &state))
            sim_broken("job %lld waits for job %lld, which has ended", (long long)job->number,
                       (long long)bad_after(job)->job);
    }
}

bool store_all_ended(const struct store *store)
{
    for (int i = 0; i < store->jobs_count; i++) {
        if (!db_job_state_final(store->jobs[i].state))
            return false;
    }
    return true;
}
