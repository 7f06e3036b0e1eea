/* advise.c - tries what would start a job. */

#include <stdarg.h>

#include "base/arena.h"
#include "base/limits.h"
#include "scheduler/advise.h"
#include "scheduler/explain.h"
#include "scheduler/forecast.h"
#include "scheduler/internal.h"

#define MEMORY_STEP (INT64_C(256) << 20)
#define CPU_STEP 500
#define NODES_TRIED 8 /* drained ones */

enum kind {
    OTHER_LABEL,
    OTHER_GPU_TYPE,
    OTHER_QUEUE,
    OTHER_PRIORITY,
    OTHER_LIMIT,
    FEWER_GPUS,
    FEWER_CPUS,
    LESS_MEMORY,
    FEWER_TASKS,
    NODE_UNDRAINED,
    QUOTA_RAISED,
    JOB_ENDED,
};

/* One change. */
struct variant {
    enum kind kind;
    int need;
    int index;     /* of a label, queue, node */
    int64_t value; /* amount, priority, microseconds, job */
};

/* What came of it. */
struct outcome {
    uint64_t in_us; /* 0: it starts at once; else when room is made for it */
    char where[160];
    char value[LIMIT_NAME_BYTES + 1]; /* that all its nodes have of the label, or type; "" */
};

struct advise {
    const struct scheduler *s;
    const struct job *job;
    uint64_t now_us;
    int64_t work;
    struct fit offers; /* what is free now */
    struct explain *why;
    int costs[EXPLAIN_CHANGES_MAX];
    struct arena *arena;
};

/* --- changes --- */

/* The job's needs with the change, in the arena; texts are borrowed. */
static struct scheduler_need *changed_needs(const struct job *job, const struct variant *v,
                                            struct arena *arena)
{
    struct scheduler_need *needs =
        arena_copy(arena, job->needs, (size_t)job->needs_count * sizeof(*needs));
    struct scheduler_need *need = &needs[v->need];
    struct scheduler_label *labels;
    switch (v->kind) {
    case OTHER_LABEL:
        labels = arena_array(arena, (size_t)need->labels_count, sizeof(*labels));
        for (int i = 0, kept = 0; i < need->labels_count; i++)
            if (i != v->index)
                labels[kept++] = need->labels[i];
        need->labels = labels;
        need->labels_count--;
        break;
    case OTHER_GPU_TYPE:
        need->gpu_type = "";
        break;
    case FEWER_GPUS:
        need->each.gpus = v->value;
        break;
    case FEWER_CPUS:
        need->each.cpu_millis = v->value;
        break;
    case LESS_MEMORY:
        need->each.memory_bytes = v->value;
        break;
    case FEWER_TASKS:
        need->replicas = (int)v->value;
        break;
    default:
        break;
    }
    return needs;
}

static void end_job(struct scheduler *s, int64_t number, uint64_t now_us,
                    struct scheduler_actions *actions)
{
    struct job *job = scheduler_find_job(s, number);
    scheduler_job_cancel(s, job, true, now_us, actions);
    for (int i = 0; i < job->tasks_count; i++)
        if (job->tasks[i].state != TASK_EXITED)
            scheduler_job_task_exits(s, job, &job->tasks[i], EXIT_STOPPED, NULL, actions);
    scheduler_job_review(s, job, now_us, actions);
}

static void raise_to(int64_t *quota, int64_t needed)
{
    if (*quota >= 0 && *quota < needed)
        *quota = needed;
}

static void raise_quota(struct job *job)
{
    struct scheduler_amount *quota = &job->project->quota;
    const struct scheduler_amount *held = &job->project->held;
    raise_to(&quota->cpu_millis, held->cpu_millis + job->asks.cpu_millis);
    raise_to(&quota->memory_bytes, held->memory_bytes + job->asks.memory_bytes);
    raise_to(&quota->gpu_millis, held->gpu_millis + job->asks.gpu_millis);
    raise_to(&quota->jobs, held->jobs + job->asks.jobs);
}

/* Makes the change in a copy. */
static void apply(struct scheduler *s, struct job *job, const struct variant *v,
                  uint64_t now_us, struct scheduler_actions *actions)
{
    queue_remove(&s->queue, job);
    struct scheduler_need *before = job->needs;
    job->needs = scheduler_books_needs(changed_needs(job, v, actions->arena), job->needs_count);
    scheduler_books_needs_free(before, job->needs_count);
    scheduler_books_asks(s, job);
    if (v->kind == OTHER_QUEUE)
        job->lane = s->lanes[v->index];
    if (v->kind == OTHER_PRIORITY)
        job->priority = (int)v->value;
    if (v->kind == OTHER_LIMIT)
        job->stop_us = job->ran_us + (uint64_t)v->value;
    if (v->kind == QUOTA_RAISED)
        raise_quota(job);
    queue_add(&s->queue, job);
    if (v->kind == NODE_UNDRAINED)
        scheduler_node_drain(s, s->nodes[v->index], false, "", actions);
    if (v->kind == JOB_ENDED)
        end_job(s, v->value, now_us, actions);
    s->dirty = true;
}

/* --- trying --- */

static int rooms_made(const struct scheduler *s)
{
    int count = 0;
    for (int i = 0; i < s->jobs_count; i++)
        count += s->jobs[i]->state == JOB_STOPPING && s->jobs[i]->intent == INTENT_PREEMPT;
    return count;
}

/* What a node has for a label of this name; for NULL, as type of its GPUs. */
static const char *value_of(const struct scheduler *s, const struct node *node,
                            const char *name)
{
    const struct match_kind *kind = &s->match.kinds[node->kind];
    for (int i = 0; name && i < kind->labels_count; i++)
        if (strcmp(kind->labels[i].name, name) == 0)
            return kind->labels[i].value;
    return name ? "" : kind->gpu_type;
}

/* Where the job's tasks went, and whether all nodes there have one value of what was dropped.
 */
static void look_where(const struct scheduler *s, const struct job *job, const char *name,
                       struct outcome *out)
{
    int others = 0;
    const struct node *first = job->tasks[0].node;
    const char *value = value_of(s, first, name);
    for (int i = 1; i < job->tasks_count; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = job->tasks[j].node == job->tasks[i].node;
        others += !seen;
        if (strcmp(value, value_of(s, job->tasks[i].node, name)) != 0)
            value = "";
    }
    snprintf(out->value, sizeof(out->value), "%s", value);
    if (others)
        snprintf(out->where, sizeof(out->where), " on %.100s and %d more node%s", first->name,
                 others, others == 1 ? "" : "s");
    else
        snprintf(out->where, sizeof(out->where), " on %.100s", first->name);
}

/* What is cheap to see: with no room on the nodes for it, nothing else can help. */
static bool is_hopeless(struct advise *a, const struct variant *v)
{
    const struct lane *lane = v->kind == OTHER_QUEUE ? a->s->lanes[v->index] : a->job->lane;
    bool makes_room = v->kind == NODE_UNDRAINED || v->kind == JOB_ENDED ||
                      (lane->preempt && (v->kind == OTHER_QUEUE || v->kind == OTHER_PRIORITY));
    if (makes_room)
        return false;
    struct fit_place places[LIMIT_JOB_TASKS];
    struct scheduler_need *needs = changed_needs(a->job, v, a->arena);
    struct fit_ask ask = scheduler_books_ask(a->job);
    ask.needs = needs;
    bool **suits = scheduler_books_suits(a->s, needs, ask.needs_count);
    ask.suits = suits;
    bool fits = fit_job(&ask, &a->offers, places);
    if (fits)
        fit_undo(&ask, &a->offers, places);
    scheduler_books_suits_free(suits, ask.needs_count);
    arena_clear(a->arena);
    a->work -= a->s->nodes_count;
    return !fits;
}

/* Whether the job would start, or room be made for it, after the change. */
static bool try_it(struct advise *a, const struct variant *v, struct outcome *out)
{
    *out = (struct outcome){0};
    if (a->work < 0 || is_hopeless(a, v))
        return false;
    a->work -= a->s->jobs_count + a->s->nodes_count;
    struct scheduler *s = scheduler_copy(a->s);
    struct job *job = scheduler_find_job(s, a->job->number);
    struct scheduler_actions actions = {.arena = a->arena};
    const char *name =
        v->kind == OTHER_LABEL ? a->job->needs[v->need].labels[v->index].name : NULL;
    apply(s, job, v, a->now_us, &actions);
    scheduler_step(s, &(struct scheduler_event){.kind = ON_TICK}, a->now_us, &actions);
    job = scheduler_find_job(s, a->job->number); /* one that comes after what ended is gone */
    bool starts = job && job->state != JOB_QUEUED;
    bool room = job && !starts && s->head == job->number && s->head_start_us != UINT64_MAX &&
                rooms_made(s) > rooms_made(a->s);
    if (starts)
        look_where(s, job, name, out);
    if (room)
        out->in_us = s->head_start_us > a->now_us ? s->head_start_us - a->now_us : 1;
    scheduler_actions_release(&actions);
    scheduler_free(s);
    arena_clear(a->arena);
    return starts || room;
}

/*
 * The value nearest to `from` that works, of `to`, `to` + step … before `from` (below it, or
 * above, by the sign of step).  False when even `to` does not.
 */
static bool nearest(struct advise *a, struct variant *v, int64_t from, int64_t to, int64_t step,
                    struct outcome *out)
{
    struct outcome tried;
    int64_t low = 0, high = (from - to) / step;
    if (high * step == from - to)
        high--; /* as it is now */
    v->value = to;
    if (high < 0 || !try_it(a, v, out))
        return false;
    while (low < high) {
        struct variant middle = *v;
        int64_t at = low + (high - low + 1) / 2;
        middle.value = to + at * step;
        if (try_it(a, &middle, &tried)) {
            low = at;
            *v = middle;
            *out = tried;
        } else {
            high = at - 1;
        }
    }
    return true;
}

/* --- telling --- */

/* Room for one more, in order of cost; NULL when all are cheaper. */
static struct explain_change *add_change(struct advise *a, int cost)
{
    struct explain *why = a->why;
    int at = why->changes_count;
    while (at > 0 && a->costs[at - 1] > cost)
        at--;
    if (at == EXPLAIN_CHANGES_MAX)
        return NULL;
    if (why->changes_count < EXPLAIN_CHANGES_MAX)
        why->changes_count++;
    size_t after = (size_t)(why->changes_count - at - 1);
    memmove(&why->changes[at + 1], &why->changes[at], after * sizeof(why->changes[0]));
    memmove(&a->costs[at + 1], &a->costs[at], after * sizeof(a->costs[0]));
    a->costs[at] = cost;
    why->changes[at] = (struct explain_change){0};
    return &why->changes[at];
}

/* "With 2 GPUs for each worker in place of 4" and what comes of it. */
static void PRINTF_LIKE(3, 4)
    tell(struct explain_change *change, const struct outcome *outcome, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    change->start_us = (int64_t)outcome->in_us;
    if (outcome->in_us)
        snprintf(change->text, sizeof(change->text),
                 "%s, jobs of lower rank would make room for it: it would start within %llu s.",
                 what, (unsigned long long)(outcome->in_us / 1000000 + 1));
    else
        snprintf(change->text, sizeof(change->text), "%s, it would start now%s.", what,
                 outcome->where);
}

static void field_at(struct explain_change *change, const struct scheduler_need *need,
                     const char *field)
{
    snprintf(change->field, sizeof(change->field), "/tasks/%s/%s", need->role, field);
}

static void from_to(struct explain_change *change, int64_t from, int64_t to)
{
    snprintf(change->from, sizeof(change->from), "%lld", (long long)from);
    snprintf(change->to, sizeof(change->to), "%lld", (long long)to);
}

/* --- kinds of changes --- */

static void consider_labels(struct advise *a, int n)
{
    const struct scheduler_need *need = &a->job->needs[n];
    struct outcome outcome;
    for (int i = 0; i < need->labels_count; i++) {
        struct variant v = {.kind = OTHER_LABEL, .need = n, .index = i};
        const struct scheduler_label *label = &need->labels[i];
        struct explain_change *change;
        if (!try_it(a, &v, &outcome) || !(change = add_change(a, 100)))
            continue;
        snprintf(change->field, sizeof(change->field), "/tasks/%s/node_labels/%.100s",
                 need->role, label->name);
        snprintf(change->from, sizeof(change->from), "%.100s", label->value);
        snprintf(change->to, sizeof(change->to), "%.100s", outcome.value);
        change->is_text = true;
        if (*outcome.value)
            tell(change, &outcome, "With node label %.60s=%.40s in place of %.40s", label->name,
                 outcome.value, label->value);
        else
            tell(change, &outcome, "Without node label %.60s=%.60s", label->name, label->value);
    }
}

static void consider_gpu_type(struct advise *a, int n)
{
    const struct scheduler_need *need = &a->job->needs[n];
    struct variant v = {.kind = OTHER_GPU_TYPE, .need = n};
    struct outcome outcome;
    struct explain_change *change;
    if (!*need->gpu_type || !try_it(a, &v, &outcome) || !(change = add_change(a, 110)))
        return;
    field_at(change, need, "gpu_type");
    snprintf(change->from, sizeof(change->from), "%.100s", need->gpu_type);
    snprintf(change->to, sizeof(change->to), "%.100s", outcome.value);
    change->is_text = true;
    if (*outcome.value)
        tell(change, &outcome, "With GPUs of type %.60s in place of %.60s", outcome.value,
             need->gpu_type);
    else
        tell(change, &outcome, "With GPUs of any type in place of %.60s", need->gpu_type);
}

static void consider_queues(struct advise *a)
{
    struct outcome outcome;
    for (int i = 0; i < a->s->lanes_count; i++) {
        struct variant v = {.kind = OTHER_QUEUE, .index = i};
        struct explain_change *change;
        if (i == a->job->lane->at || !try_it(a, &v, &outcome) || !(change = add_change(a, 150)))
            continue;
        snprintf(change->field, sizeof(change->field), "/queue");
        snprintf(change->from, sizeof(change->from), "%.100s", a->job->lane->name);
        snprintf(change->to, sizeof(change->to), "%.100s", a->s->lanes[i]->name);
        change->is_text = true;
        tell(change, &outcome, "In queue %.80s in place of %.80s", change->to, change->from);
    }
}

static void consider_priority(struct advise *a)
{
    int64_t now = a->job->priority;
    struct variant v = {.kind = OTHER_PRIORITY};
    struct outcome outcome;
    struct explain_change *change;
    if (!nearest(a, &v, now, 100, -1, &outcome) ||
        !(change = add_change(a, 160 + (int)(v.value - now) / 10)))
        return;
    snprintf(change->field, sizeof(change->field), "/priority");
    from_to(change, now, v.value);
    tell(change, &outcome, "With priority %lld in place of %lld", (long long)v.value,
         (long long)now);
}

/* So short a time limit that it does not delay the job ahead. */
static void consider_limit(struct advise *a)
{
    const struct scheduler *s = a->s;
    const struct job *job = a->job;
    uint64_t spare_us = s->head_start_us - a->now_us;
    if (!s->head || s->head == job->number || s->head_start_us == UINT64_MAX ||
        s->head_start_us < a->now_us + s->options.grace_us + 1000000)
        return;
    int64_t seconds = (int64_t)((spare_us - s->options.grace_us) / 1000000);
    struct variant v = {.kind = OTHER_LIMIT, .value = seconds * 1000000};
    struct outcome outcome;
    struct explain_change *change;
    if (!try_it(a, &v, &outcome) || !(change = add_change(a, 250)))
        return;
    int64_t ran = (int64_t)(job->ran_us / 1000000);
    snprintf(change->field, sizeof(change->field), "/stop/max_seconds");
    from_to(change, (int64_t)(job->stop_us / 1000000), ran + seconds);
    tell(change, &outcome, "With a time limit of %lld s", (long long)(ran + seconds));
}

/* An amount that each task of a need asks for. */
struct part {
    enum kind kind;
    const char *field;
    int64_t now;
    int64_t least;
    int64_t step;
};

static void tell_part(struct advise *a, const struct part *part,
                      const struct scheduler_need *need, int64_t value,
                      const struct outcome *outcome)
{
    int lost = (int)((part->now - value) / (part->now / 1000 + 1));
    struct explain_change *change = add_change(a, 300 + lost);
    if (!change)
        return;
    field_at(change, need, part->field);
    from_to(change, part->now, value);
    switch (part->kind) {
    case FEWER_CPUS:
        snprintf(change->from, sizeof(change->from), "%g", (double)part->now / 1000);
        snprintf(change->to, sizeof(change->to), "%g", (double)value / 1000);
        tell(change, outcome, "With %s CPUs for each %s task in place of %s", change->to,
             need->role, change->from);
        break;
    case LESS_MEMORY:
        tell(change, outcome, "With %lld MiB for each %s task in place of %lld",
             (long long)(value >> 20), need->role, (long long)(part->now >> 20));
        break;
    case FEWER_GPUS:
        tell(change, outcome, "With %s GPU%s for each %s task in place of %s", change->to,
             value == 1 ? "" : "s", need->role, change->from);
        break;
    default:
        tell(change, outcome, "With %s %s task%s in place of %s", change->to, need->role,
             value == 1 ? "" : "s", change->from);
    }
}

static void consider_amounts(struct advise *a, int n)
{
    const struct scheduler_need *need = &a->job->needs[n];
    const struct scheduler_resources *each = &need->each;
    const struct part parts[] = {
        {FEWER_GPUS, "gpus", each->gpus, 1, 1},
        {FEWER_TASKS, "replicas", need->replicas, 1, 1},
        {FEWER_CPUS, "cpus", each->cpu_millis, CPU_STEP, CPU_STEP},
        {LESS_MEMORY, "memory_bytes", each->memory_bytes, MEMORY_STEP, MEMORY_STEP},
    };
    for (int i = 0; i < ARRAY_LEN(parts); i++) {
        struct variant v = {.kind = parts[i].kind, .need = n};
        struct outcome outcome;
        if (nearest(a, &v, parts[i].now, parts[i].least, parts[i].step, &outcome))
            tell_part(a, &parts[i], need, v.value, &outcome);
    }
}

static void consider_nodes(struct advise *a)
{
    int tried = 0;
    for (int i = 0; i < a->s->nodes_count && tried < NODES_TRIED; i++) {
        struct variant v = {.kind = NODE_UNDRAINED, .index = i};
        struct outcome outcome;
        struct explain_change *change;
        if (!a->s->nodes[i]->draining)
            continue;
        tried++;
        if (!try_it(a, &v, &outcome) || !(change = add_change(a, 1400)))
            continue;
        snprintf(change->field, sizeof(change->field), "node %.100s", a->s->nodes[i]->name);
        snprintf(change->from, sizeof(change->from), "drained");
        snprintf(change->to, sizeof(change->to), "undrained");
        change->is_text = true;
        tell(change, &outcome, "With node %.100s undrained", a->s->nodes[i]->name);
    }
}

static void consider_quota(struct advise *a)
{
    struct variant v = {.kind = QUOTA_RAISED};
    struct outcome outcome;
    struct explain_change *change;
    if (a->why->code != EXPLAIN_QUOTA || !try_it(a, &v, &outcome) ||
        !(change = add_change(a, 1500)))
        return;
    const char *project = a->job->project->name;
    snprintf(change->field, sizeof(change->field), "project %.100s", project);
    snprintf(change->from, sizeof(change->from), "quota");
    snprintf(change->to, sizeof(change->to), "larger quota");
    change->is_text = true;
    tell(change, &outcome, "With a quota of project %.80s that is as much larger", project);
}

/* The end of one job that holds what it needs: of those that would do, of the lowest rank. */
static void consider_holders(struct advise *a)
{
    const struct explain *why = a->why;
    for (int i = 0; i < why->holders_count; i++) {
        struct variant v = {.kind = JOB_ENDED, .value = why->holders[i].job};
        struct outcome outcome;
        struct explain_change *change;
        if (why->holders[i].state == JOB_STOPPING || !try_it(a, &v, &outcome) ||
            !(change = add_change(a, 2000 + i)))
            continue;
        snprintf(change->field, sizeof(change->field), "job %lld", (long long)v.value);
        snprintf(change->from, sizeof(change->from), "%s",
                 db_job_state_name(why->holders[i].state));
        snprintf(change->to, sizeof(change->to), "ended");
        change->is_text = true;
        tell(change, &outcome, "If job %lld ended", (long long)v.value);
    }
}

/* --- the answer --- */

static void add_start(const struct scheduler *s, int64_t number, uint64_t now_us,
                      struct arena *arena, struct explain *why)
{
    struct forecast forecast;
    int64_t work = FORECAST_WORK;
    struct scheduler *copy = scheduler_copy(s);
    forecast_play(copy, now_us, number, &work, arena, &forecast);
    scheduler_free(copy);
    const struct forecast_job *row = forecast_find(&forecast, number);
    if (!row || row->start_us == FORECAST_NEVER)
        return;
    const struct node *node = scheduler_find_node(s, row->node);
    why->start_us = (int64_t)row->start_us;
    snprintf(why->start_node, sizeof(why->start_node), "%s", node->name);
}

void advise_job(const struct scheduler *s, int64_t number, uint64_t now_us, struct explain *why)
{
    const struct job *job = scheduler_find_job(s, number);
    if (!job || job->state != JOB_QUEUED || !s->nodes_count)
        return;
    struct advise a = {.s = s, .job = job, .now_us = now_us, .work = ADVISE_WORK, .why = why};
    a.arena = arena_new();
    scheduler_books_offers(s, &a.offers);
    add_start(s, number, now_us, a.arena, why);
    arena_clear(a.arena);
    if (why->code != EXPLAIN_PAUSED && why->code != EXPLAIN_DEPENDENCY &&
        why->code != EXPLAIN_BACKOFF && why->code != EXPLAIN_PREEMPTING &&
        why->code != EXPLAIN_PENDING) {
        consider_queues(&a);
        consider_priority(&a);
        for (int n = 0; n < job->needs_count; n++) {
            consider_labels(&a, n);
            consider_gpu_type(&a, n);
            consider_amounts(&a, n);
        }
        consider_limit(&a);
        consider_quota(&a);
        consider_nodes(&a);
        consider_holders(&a);
    }
    fit_release(&a.offers);
    arena_free(a.arena);
}
