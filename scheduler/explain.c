/* explain.c - why a job waits. */

#include <stdarg.h>

#include "base/limits.h"
#include "scheduler/explain.h"
#include "scheduler/internal.h"

const char *explain_code_name(enum explain_code code)
{
    static const char *const names[] = {
#define EXPLAIN_CODE_NAME(name) #name,
        EXPLAIN_CODES(EXPLAIN_CODE_NAME)
#undef EXPLAIN_CODE_NAME
    };
    assert((int)code >= 0 && (int)code < ARRAY_LEN(names));
    return names[code];
}

const char *explain_resource_name(enum explain_resource resource)
{
    static const char *const names[] = {"cpus", "memory", "gpus", ""};
    return names[resource];
}

static bool PRINTF_LIKE(3, 4)
    say(struct explain *out, enum explain_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out->code = code;
    vsnprintf(out->text, sizeof(out->text), format, args);
    va_end(args);
    return true;
}

static void PRINTF_LIKE(2, 3) advise(struct explain *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->next, sizeof(out->next), format, args);
    va_end(args);
}

static int64_t amount(const struct scheduler_resources *resources, enum explain_resource which)
{
    switch (which) {
    case EXPLAIN_CPU:
        return resources->cpu_millis;
    case EXPLAIN_MEMORY:
        return resources->memory_bytes;
    case EXPLAIN_GPU:
        return resources->gpus;
    case EXPLAIN_NONE:
        break;
    }
    return 0;
}

/* "4 GPUs", "1.5 CPUs", "512 MiB". */
static const char *amount_text(int64_t value, enum explain_resource which, char *out,
                               size_t size)
{
    if (which == EXPLAIN_GPU)
        snprintf(out, size, "%lld GPU%s", (long long)value, value == 1 ? "" : "s");
    else if (which == EXPLAIN_MEMORY && value >= INT64_C(10) << 30)
        snprintf(out, size, "%lld GiB of memory", (long long)(value >> 30));
    else if (which == EXPLAIN_MEMORY)
        snprintf(out, size, "%lld MiB of memory", (long long)(value >> 20));
    else if (value % 1000)
        snprintf(out, size, "%lld.%02lld CPUs", (long long)(value / 1000),
                 (long long)(value % 1000 / 10));
    else
        snprintf(out, size, "%lld CPU%s", (long long)(value / 1000), value == 1000 ? "" : "s");
    return out;
}

static struct scheduler_resources node_free(const struct node *node)
{
    struct fit_node fit;
    scheduler_books_read(node, false, &fit);
    return fit.free;
}

/* --- the questions, in order of precedence --- */

/* Which nodes count for a question. */
enum among { ALL_EMPTY, JOINED_EMPTY, UNDRAINED_EMPTY, WELCOME_EMPTY, OFFERED };

/* Would the job fit on these nodes, `without` the jobs that wait before it? */
static bool fits(const struct scheduler *s, const struct job *job, enum among among)
{
    struct fit fit = {0};
    struct fit_place places[LIMIT_JOB_TASKS];
    struct fit_ask ask = scheduler_books_ask(job);
    if (among < WELCOME_EMPTY)
        ask.excluded_count = 0;
    fit_resize(&fit, s->nodes_count);
    for (int i = 0; i < s->nodes_count; i++) {
        const struct node *node = s->nodes[i];
        bool there = node->session && node->state == NODE_JOINED && !node->ghosts_count;
        scheduler_books_read(node, among != OFFERED, &fit.nodes[i]);
        fit.nodes[i].offered = among == ALL_EMPTY || (among == JOINED_EMPTY && there) ||
                               ((among == UNDRAINED_EMPTY || among == WELCOME_EMPTY) && there &&
                                !node->draining) ||
                               scheduler_node_offers(node);
    }
    fit_ready(&fit);
    bool yes = fit_job(&ask, &fit, places);
    fit_release(&fit);
    return yes;
}

/* The resource of which a task asks the most compared with what one node has (free or at all).
 */
static void find_scarcest(const struct scheduler *s, const struct job *job, bool empty,
                          struct explain *out)
{
    int64_t worst_missing = -1; /* in thousandths of what is asked */
    for (int n = 0; n < job->needs_count; n++) {
        for (int r = EXPLAIN_GPU; r >= EXPLAIN_CPU; r--) {
            enum explain_resource which = (enum explain_resource)r;
            int64_t needed = amount(&job->needs[n].each, which);
            int64_t best = 0, largest = 0, best_node = 0;
            for (int i = 0; i < s->nodes_count; i++) {
                struct scheduler_resources free_here = node_free(s->nodes[i]);
                int64_t here =
                    scheduler_node_offers(s->nodes[i]) ? amount(&free_here, which) : 0;
                int64_t all = amount(&s->nodes[i]->capacity, which);
                largest = all > largest ? all : largest;
                if (here > best) {
                    best = here;
                    best_node = s->nodes[i]->id;
                }
            }
            int64_t has = empty ? largest : best;
            if (!needed)
                continue;
            int64_t missing = has >= needed ? 0 : (needed - has) / (needed / 1000 + 1);
            if (missing <= worst_missing)
                continue;
            worst_missing = missing;
            out->resource = which;
            memcpy(out->role, job->needs[n].role, sizeof(job->needs[n].role));
            out->needed = needed;
            out->best_free = best;
            out->best_node = best_node;
            out->largest = largest;
        }
    }
}

/* Jobs that hold what is scarce, those with the most of it first. */
static void find_holders(const struct scheduler *s, uint64_t now_us, struct explain *out)
{
    for (int j = 0; j < s->jobs_count; j++) {
        const struct job *job = s->jobs[j];
        struct explain_holder holder = {.job = job->number, .state = job->state, .ends_us = -1};
        struct scheduler_resources held = {0};
        for (int t = 0; t < job->tasks_count; t++) {
            if (job->tasks[t].state == TASK_EXITED)
                continue;
            held.cpu_millis += job->tasks[t].resources.cpu_millis;
            held.memory_bytes += job->tasks[t].resources.memory_bytes;
            held.gpus += job->tasks[t].resources.gpus;
        }
        int64_t much = amount(&held, out->resource);
        if (!much)
            continue;
        holder.cpu_millis = held.cpu_millis;
        holder.memory_bytes = held.memory_bytes;
        holder.gpus = (int)held.gpus;
        uint64_t ends_us = scheduler_job_next_us(s, job);
        if (job->state == JOB_RUNNING && ends_us != UINT64_MAX)
            holder.ends_us = ends_us > now_us ? (int64_t)(ends_us - now_us) : 0;

        int at = out->holders_count;
        for (; at > 0; at--) {
            const struct explain_holder *h = &out->holders[at - 1];
            struct scheduler_resources other = {h->cpu_millis, h->memory_bytes, h->gpus};
            if (amount(&other, out->resource) >= much)
                break;
        }
        if (at == EXPLAIN_HOLDERS_MAX)
            continue;
        if (out->holders_count < EXPLAIN_HOLDERS_MAX)
            out->holders_count++;
        memmove(&out->holders[at + 1], &out->holders[at],
                (size_t)(out->holders_count - at - 1) * sizeof(holder));
        out->holders[at] = holder;
    }
}

static const char *node_name(const struct scheduler *s, int64_t id)
{
    const struct node *node = scheduler_find_node(s, id);
    return node ? node->name : "none";
}

static bool explain_too_large(const struct scheduler *s, const struct job *job,
                              struct explain *out)
{
    char needed[64], largest[64];
    find_scarcest(s, job, true, out);
    amount_text(out->needed, out->resource, needed, sizeof(needed));
    amount_text(out->largest, out->resource, largest, sizeof(largest));
    if (out->largest >= out->needed) {
        advise(out, "Ask for fewer replicas, or for less in each.");
        return say(out, EXPLAIN_TOO_LARGE,
                   "The nodes are too few: even when all are empty, its %d tasks do not fit on "
                   "them at once.",
                   job->tasks_max);
    }
    advise(out, "Ask for at most %s, or add a larger node.", largest);
    return say(
        out, EXPLAIN_TOO_LARGE,
        "Can never start on these nodes: each %s task needs %s; the largest node has %s.",
        out->role, needed, largest);
}

static bool explain_resources(const struct scheduler *s, const struct job *job, uint64_t now_us,
                              struct explain *out)
{
    char needed[64], best[64];
    find_scarcest(s, job, false, out);
    find_holders(s, now_us, out);
    amount_text(out->needed, out->resource, needed, sizeof(needed));
    amount_text(out->best_free, out->resource, best, sizeof(best));
    if (out->best_free >= out->needed)
        say(out, EXPLAIN_RESOURCES,
            "Waiting: its %d tasks do not fit beside what runs; each %s task needs %s, and "
            "node "
            "%s has %s free.",
            job->tasks_max, out->role, needed, node_name(s, out->best_node), best);
    else if (out->best_node)
        say(out, EXPLAIN_RESOURCES,
            "Waiting: each %s task needs %s on one node; the best node, %s, has %s free.",
            out->role, needed, node_name(s, out->best_node), best);
    else
        say(out, EXPLAIN_RESOURCES,
            "Waiting: each %s task needs %s on one node; no node has any free.", out->role,
            needed);
    if (out->holders_count) {
        char held[64];
        const struct explain_holder *h = &out->holders[0];
        struct scheduler_resources most = {h->cpu_millis, h->memory_bytes, h->gpus};
        advise(out, "Starts when enough of the %d job%s that hold%s it end; job %lld holds %s.",
               out->holders_count, out->holders_count == 1 ? "" : "s",
               out->holders_count == 1 ? "s" : "", (long long)h->job,
               amount_text(amount(&most, out->resource), out->resource, held, sizeof(held)));
    }
    return true;
}

/* Which waiting jobs come before it, as the last pass went. */
static void find_ahead(const struct scheduler *s, const struct job *job, struct explain *out)
{
    int first = job->place;
    for (int i = 0; i < s->queue.count; i++) {
        const struct job *other = s->queue.jobs[i];
        out->ahead_count += other->place < job->place;
        if (other->place < first) {
            first = other->place;
            out->ahead_job = other->number;
        }
    }
}

/* What of its quota a project would exceed with this job; the job holds it up if it is alone
 * too large. */
static bool explain_quota(const struct job *job, struct explain *out)
{
    const struct project *project = job->project;
    const struct scheduler_amount *quota = &project->quota, *held = &project->held;
    const struct scheduler_amount *asks = &job->asks;
    char has[64], may[64], wants[64];
    enum explain_resource which = EXPLAIN_NONE;
    if (quota->gpu_millis >= 0 && held->gpu_millis + asks->gpu_millis > quota->gpu_millis)
        which = EXPLAIN_GPU;
    else if (quota->cpu_millis >= 0 && held->cpu_millis + asks->cpu_millis > quota->cpu_millis)
        which = EXPLAIN_CPU;
    else if (quota->memory_bytes >= 0 &&
             held->memory_bytes + asks->memory_bytes > quota->memory_bytes)
        which = EXPLAIN_MEMORY;
    out->resource = which;
    if (which == EXPLAIN_NONE) {
        out->needed = 1;
        out->largest = quota->jobs;
        advise(out, "Starts when one of them ends, or raise the quota of project %s.",
               project->name);
        return say(out, EXPLAIN_QUOTA,
                   "Waiting: project %s runs %lld jobs, as many as its quota allows.",
                   project->name, (long long)held->jobs);
    }
    struct scheduler_resources one = {held->cpu_millis, held->memory_bytes,
                                      held->gpu_millis / SCHEDULER_GPU_WHOLE};
    struct scheduler_resources all = {quota->cpu_millis, quota->memory_bytes,
                                      quota->gpu_millis / SCHEDULER_GPU_WHOLE};
    struct scheduler_resources more = {asks->cpu_millis, asks->memory_bytes,
                                       asks->gpu_millis / SCHEDULER_GPU_WHOLE};
    out->needed = amount(&more, which);
    out->largest = amount(&all, which);
    out->best_free = out->largest - amount(&one, which);
    advise(out, "Starts when jobs of project %s end, or raise its quota.", project->name);
    if (!scheduler_share_within(asks, quota))
        advise(out, "It alone exceeds the quota: ask for at most %s, or raise the quota.",
               amount_text(out->largest, which, may, sizeof(may)));
    return say(out, EXPLAIN_QUOTA,
               "Waiting: it needs %s; project %s holds %s, and its quota is %s.",
               amount_text(out->needed, which, wants, sizeof(wants)), project->name,
               amount_text(amount(&one, which), which, has, sizeof(has)),
               amount_text(out->largest, which, may, sizeof(may)));
}

static bool explain_preempting(const struct scheduler *s, int count, uint64_t now_us,
                               struct explain *out)
{
    out->start_us = s->head_start_us > now_us ? (int64_t)(s->head_start_us - now_us) : 0;
    find_holders(s, now_us, out);
    return say(out, EXPLAIN_PREEMPTING,
               "Waiting: %d job%s of lower priority write%s a checkpoint and make%s room for "
               "it; at most %lld s more.",
               count, count == 1 ? "" : "s", count == 1 ? "s" : "", count == 1 ? "s" : "",
               (long long)(out->start_us / 1000000 + 1));
}

/* How many attempts end now to make room for others, while this job is the head. */
static int making_room(const struct scheduler *s, const struct job *job)
{
    int count = 0;
    for (int i = 0; i < s->jobs_count && s->head == job->number; i++)
        count += s->jobs[i]->state == JOB_STOPPING && s->jobs[i]->intent == INTENT_PREEMPT;
    return count;
}

/* It would fit now: what keeps it from starting? */
static bool explain_turn(const struct scheduler *s, const struct job *job, uint64_t now_us,
                         struct explain *out)
{
    if (!s->head || s->head == job->number)
        return say(out, EXPLAIN_PENDING, "About to start.");
    int64_t first = s->kept_for ? s->kept_for : s->head;
    advise(out, "Raise its priority, or wait for job %lld%s.", (long long)first,
           job->stop_us || s->kept_for
               ? ""
               : "; with a stop.max_seconds that is short enough it could go first");
    if (s->head_start_us == UINT64_MAX)
        return say(out, EXPLAIN_PRIORITY,
                   "Waiting: %d job%s ahead; job %lld waits so long that it is not overtaken "
                   "any more.",
                   out->ahead_count, out->ahead_count == 1 ? " is" : "s are", (long long)first);
    int64_t in_us = s->head_start_us > now_us ? (int64_t)(s->head_start_us - now_us) : 0;
    return say(out, EXPLAIN_PRIORITY,
               "Waiting: %d job%s ahead; the room is kept for job %lld, which starts in %lld s "
               "at the latest.",
               out->ahead_count, out->ahead_count == 1 ? " is" : "s are", (long long)s->head,
               (long long)(in_us / 1000000));
}

/* The jobs that must succeed first are those that hold it up. */
static bool explain_after(const struct scheduler *s, const struct job *job, struct explain *out)
{
    for (int i = 0; i < job->after_count && i < EXPLAIN_HOLDERS_MAX; i++) {
        const struct job *other = scheduler_find_job(s, job->after[i]);
        out->holders[out->holders_count++] = (struct explain_holder){
            .job = job->after[i], .state = other ? other->state : JOB_QUEUED, .ends_us = -1};
    }
    char more[40] = "";
    if (job->after_count > 1)
        snprintf(more, sizeof(more), " and %d more", job->after_count - 1);
    advise(out, "Starts when they have succeeded; fails if one of them does not.");
    return say(out, EXPLAIN_DEPENDENCY, "Waiting: it comes after job %lld (%s)%s.",
               (long long)job->after[0], db_job_state_name(out->holders[0].state), more);
}

/* "n1 and 2 more": the nodes that the job passes over. */
static const char *excluded_text(const struct scheduler *s, const struct job *job, char *out,
                                 size_t size)
{
    const char *first = node_name(s, job->excluded[0]);
    if (job->excluded_count == 1)
        snprintf(out, size, "%.100s", first);
    else
        snprintf(out, size, "%.100s and %d more", first, job->excluded_count - 1);
    return out;
}

static bool explain_excluded(const struct scheduler *s, const struct job *job,
                             struct explain *out)
{
    char nodes[140];
    advise(out, "Add a node, or submit it again without restart.exclude_bad_nodes.");
    return say(out, EXPLAIN_EXCLUDED,
               "Waiting: it passes over %s, where it has failed %d time%s or more, and does "
               "not fit on the other nodes even when they are empty.",
               excluded_text(s, job, nodes, sizeof(nodes)), job->exclude_bad,
               job->exclude_bad == 1 ? "" : "s");
}

/* What else there would be, had it not failed there. */
static bool add_excluded(const struct scheduler *s, const struct job *job, struct explain *out)
{
    char nodes[140];
    size_t used = strlen(out->text);
    if (job->excluded_count)
        snprintf(out->text + used, sizeof(out->text) - used,
                 " It passes over %s, where it has failed.",
                 excluded_text(s, job, nodes, sizeof(nodes)));
    return true;
}

/* Whether there is no room for the job, whoever else waits; says why. */
static bool explain_room(const struct scheduler *s, const struct job *job, struct explain *out)
{
    if (!fits(s, job, ALL_EMPTY))
        return explain_too_large(s, job, out);
    if (!fits(s, job, JOINED_EMPTY)) {
        advise(out, "Look after the nodes that are silent or lost.");
        return say(
            out, EXPLAIN_NODES_AWAY,
            "Waiting: nodes that could hold it are silent, lost, or being cleaned; %d of "
            "%d are there.",
            out->nodes_count, s->nodes_count);
    }
    if (!fits(s, job, UNDRAINED_EMPTY)) {
        advise(out, "Undrain a node.");
        return say(out, EXPLAIN_DRAINING, "Waiting: nodes that could hold it are drained.");
    }
    return !fits(s, job, WELCOME_EMPTY) && explain_excluded(s, job, out);
}

static const struct task *first_away(const struct job *job)
{
    for (int i = 0; i < job->tasks_count && job->state == JOB_RUNNING; i++) {
        if (job->tasks[i].away)
            return &job->tasks[i];
    }
    return NULL;
}

/* A job that runs without one of its tasks: the task waits as a job of its own would. */
static bool explain_away(const struct scheduler *s, const struct job *job,
                         const struct task *task, uint64_t now_us, struct explain *out)
{
    struct scheduler_need need;
    struct fit_ask ask = scheduler_alone_ask(job, task, &need);
    struct job one = *job;
    char why[sizeof(out->text)] = "about to be placed anew.";
    one.needs = &need;
    one.needs_count = one.tasks_max = 1;
    one.suits = (bool **)ask.suits;
    if (task->again_us > now_us)
        snprintf(why, sizeof(why), "it is placed anew in %lld s.",
                 (long long)((task->again_us - now_us) / 1000000 + 1));
    else if (explain_room(s, &one, out) ||
             (!fits(s, &one, OFFERED) && explain_resources(s, &one, now_us, out)))
        snprintf(why, sizeof(why), "%s", out->text);
    return say(out, EXPLAIN_TASK_AWAY,
               "The job runs without %s:%d, which was lost on %.64s. Of that task: %.280s",
               task->role, task->index, task->node->name, why);
}

bool explain_job(const struct scheduler *s, int64_t number, uint64_t now_us,
                 struct explain *out)
{
    *out = (struct explain){.resource = EXPLAIN_NONE, .start_us = -1};
    const struct job *job = scheduler_find_job(s, number);
    if (!job)
        return false;
    for (int i = 0; i < s->nodes_count; i++)
        out->nodes_count += s->nodes[i]->session && s->nodes[i]->state != NODE_LOST;
    if (first_away(job))
        return explain_away(s, job, first_away(job), now_us, out);
    if (job->state != JOB_QUEUED)
        return say(out, EXPLAIN_NOT_WAITING, "The job is %s.", db_job_state_name(job->state));
    if (job->paused) {
        advise(out, "trainyard resume %lld", (long long)number);
        return say(out, EXPLAIN_PAUSED, "Paused by a user: it holds nothing, and %s.",
                   job->attempt ? "goes on from its checkpoint when it is resumed"
                                : "does not start before it is resumed");
    }
    if (job->after_count)
        return explain_after(s, job, out);
    find_ahead(s, job, out);
    if (s->head == job->number && s->head_start_us != UINT64_MAX)
        out->start_us = s->head_start_us > now_us ? (int64_t)(s->head_start_us - now_us) : 0;

    if (job->retry_us > now_us) {
        out->retry_us = (int64_t)(job->retry_us - now_us);
        return say(out, EXPLAIN_BACKOFF, "Waiting %lld s before attempt %d of %d.",
                   (long long)(out->retry_us / 1000000 + 1), job->attempt + 1,
                   job->restart_max + 1);
    }
    if (s->nodes_count == 0) {
        advise(out, "Start `trainyard agent --server ADDRESS` on a machine.");
        return say(out, EXPLAIN_NO_NODES, "Waiting: no node has joined yet.");
    }
    if (explain_room(s, job, out))
        return true;
    if (!scheduler_share_allows(job))
        return explain_quota(job, out);
    int making = making_room(s, job);
    if (making)
        return explain_preempting(s, making, now_us, out);
    if (!fits(s, job, OFFERED))
        return explain_resources(s, job, now_us, out) && add_excluded(s, job, out);
    return explain_turn(s, job, now_us, out) && add_excluded(s, job, out);
}
