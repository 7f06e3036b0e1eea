/* loop.c - the thread that owns the scheduler's state. */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "scheduler/loop_state.h"

#define MAILBOX_MESSAGES 4096
#define SLEEP_MS 1000 /* the longest sleep: a lost wake-up costs no more */
/* New jobs alone wait nine times as long as the last batch took, and no longer than this. */
#define RESTS 9
#define RESTS_US_MAX 500000
#define REST_MS 500 /* after the database has failed */

/* --- events --- */

void loop_step(struct loop *loop, const struct scheduler_event *event)
{
    scheduler_step(loop->scheduler, event, clock_monotonic_us(), &loop->actions);
}

static void join_refuse(struct loop *loop, struct loop_join *join, const struct error *err)
{
    if (loop->agents.joined)
        loop->agents.joined(loop->agents.self, join, NULL, 0, err);
    else
        loop_join_free(join);
}

/* Two machines cannot share a name while the first one is heard of. */
static bool join_is_welcome(const struct loop *loop, const struct loop_join *join,
                            const struct loop_known *known, struct error *err)
{
    if (!known || strcmp(known->identity, join->identity) == 0)
        return true;
    for (int i = 0; i < scheduler_nodes_count(loop->scheduler); i++) {
        struct scheduler_node_view view;
        scheduler_node_view(loop->scheduler, i, &view);
        if (view.id == known->id && view.session && view.state == NODE_JOINED)
            return fail(
                err, EXISTS,
                "there is a node '%s' already, on another machine or in another folder: "
                "give this one another name",
                join->name);
    }
    return true;
}

/* The node's row in what is known, added or taken over. */
static struct loop_known *join_known(struct loop *loop, const struct loop_join *join,
                                     struct loop_known *known)
{
    if (known) {
        free(known->identity);
        known->identity = alloc_text(join->identity);
        return known;
    }
    int64_t id = 0;
    for (int i = 0; i < loop->known.count; i++)
        id = loop->known.list[i].id > id ? loop->known.list[i].id : id;
    return loop_load_known_add(&loop->known, id + 1, join->name, join->identity);
}

static void message_join(struct loop *loop, struct loop_message *message)
{
    struct loop_join *join = message->join;
    struct error err;
    struct loop_known *known = loop_load_known(&loop->known, join->name);
    if (!join_is_welcome(loop, join, known, &err)) {
        join_refuse(loop, join, &err);
        message->join = NULL;
        return;
    }
    join->node_id = join_known(loop, join, known)->id;
    struct scheduler_node_info info = {
        .id = join->node_id,
        .name = join->name,
        .capacity = join->capacity,
        .gpu_type = join->gpu_type,
        .gpu_memory_bytes = join->gpu_memory_bytes,
        .gpus_away = join->gpus_away,
        .boot_id = join->boot_id,
        .asked_us = (uint64_t)join->asked_us,
    };
    info.labels_count = loop_load_labels(join->labels, join->arena, &info.labels);
    int64_t epoch_before = scheduler_epoch(loop->scheduler);
    loop_step(loop, &(struct scheduler_event){.kind = ON_JOIN,
                                              .node = &info,
                                              .reports = join->tasks,
                                              .reports_count = join->tasks_count});
    join->node_epoch = scheduler_epoch(loop->scheduler);
    if (join->node_epoch == epoch_before) {
        fail(&err, ABORTED, "node '%s' has asked again since: this request is too old",
             join->name);
        join_refuse(loop, join, &err);
        message->join = NULL;
        return;
    }
    loop->joins[loop->joins_count++] = join;
}

static void message_step(struct loop *loop, struct loop_message *message)
{
    switch (message->kind) {
    case LOOP_WAKE:
        break;
    case LOOP_JOIN:
        failpoint("server.on_join");
        message_join(loop, message);
        break;
    case LOOP_HEARD:
        if (message->heard.reports_count)
            failpoint("server.on_report");
        loop_step(loop, &(struct scheduler_event){
                            .kind = message->heard.reports_count ? ON_REPORT : ON_SEEN,
                            .id = message->heard.node,
                            .epoch = message->heard.node_epoch,
                            .asked_us = (uint64_t)message->heard.asked_us,
                            .reports = message->heard.reports,
                            .reports_count = message->heard.reports_count,
                        });
        break;
    case LOOP_REQUEST:
        loop_request_step(loop, message->request);
        break;
    }
}

/* --- after the commit --- */

static struct loop_task action_task(const struct scheduler_action *action)
{
    return (struct loop_task){
        .job = action->job,
        .attempt = action->attempt,
        .epoch = action->task_epoch,
        .attempt_epoch = action->epoch,
        .role = action->role,
        .index = action->index,
        .resources = action->resources,
        .gpu_share = action->gpu_share,
        .gpu_mask = action->gpu_mask,
    };
}

/* Lets a node in, with all that it is to discard. */
static void send_joined(struct loop *loop, const struct scheduler_action *joined)
{
    struct loop_join *join = NULL;
    for (int i = 0; i < loop->joins_count; i++) {
        if (loop->joins[i]->node_epoch == joined->epoch)
            join = loop->joins[i];
    }
    assert(join);

    int count = 0;
    struct loop_task *discard =
        arena_array(join->arena, (size_t)join->tasks_count, sizeof(*discard));
    const struct scheduler_action *end = loop->actions.list + loop->actions.count;
    for (const struct scheduler_action *a = joined + 1; a < end && a->kind != DO_JOINED; a++) {
        if (a->kind == DO_DISCARD && a->node == joined->node)
            discard[count++] = action_task(a);
    }
    loop->agents.joined(loop->agents.self, join, discard, count, NULL);
}

static void send_action(struct loop *loop, const struct scheduler_action *action)
{
    const struct loop_agents *agents = &loop->agents;
    struct loop_task task = action_task(action);
    switch (action->kind) {
    case DO_JOINED:
        send_joined(loop, action);
        break;
    case DO_START:
        agents->start(agents->self, action->node, &task);
        break;
    case DO_STOP:
        agents->stop(agents->self, action->node, &task, action->kill,
                     (int64_t)(action->grace_us / 1000));
        break;
    case DO_ACKNOWLEDGE:
        agents->acknowledge(agents->self, action->node, &task);
        break;
    case DO_NODE:
        if (action->node_state == NODE_LOST)
            agents->forget(agents->self, action->node);
        break;
    default:
        break;
    }
}

/* What is remembered of the nodes may no longer be so. */
static void batch_forget(struct loop *loop)
{
    bool nodes = false;
    for (int i = 0; i < loop->actions.count; i++) {
        enum scheduler_action_kind kind = loop->actions.list[i].kind;
        nodes = nodes || kind == DO_JOINED || kind == DO_NODE;
    }
    if (nodes)
        loop_check_forget(loop);
}

static void batch_send(struct loop *loop)
{
    if (loop->agents.self) {
        for (int i = 0; i < loop->actions.count; i++) {
            failpoint("server.before_send");
            send_action(loop, &loop->actions.list[i]);
            failpoint("server.after_send");
        }
    }
    for (int i = 0; i < loop->batch_count; i++) {
        const struct loop_message *message = loop->batch[i];
        if (message->heard.call)
            loop->agents.heard(loop->agents.self, message->heard.call, message->heard.node,
                               message->heard.node_epoch, NULL);
        if (message->request)
            loop_request_finish(loop, message->request);
    }
}

static void batch_refuse(struct loop *loop, const struct error *err)
{
    for (int i = 0; i < loop->batch_count; i++) {
        const struct loop_message *message = loop->batch[i];
        if (message->join)
            join_refuse(loop, message->join, err);
        if (message->heard.call)
            loop->agents.heard(loop->agents.self, message->heard.call, message->heard.node,
                               message->heard.node_epoch, err);
        if (message->request)
            loop_request_refuse(loop, message->request, err);
    }
}

/* --- the thread --- */

/* What was decided is not on disk: forget it, and begin again from what is. */
static void state_drop(struct loop *loop, const struct error *err)
{
    char text[600];
    log_line(LOG_ERROR, "scheduler", "code=%s msg=%s", error_code_name(err->code),
             log_quote(err->text, text, sizeof(text)));
    batch_refuse(loop, err);
    scheduler_free(loop->scheduler);
    loop->scheduler = NULL;
    loop_check_forget(loop);
    if (loop->agents.self)
        loop->agents.forget(loop->agents.self, 0);
}

static bool state_ready(struct loop *loop, struct error *err)
{
    if (!loop->scheduler) {
        atomic_store(&loop->woken, false);
        loop->scheduler =
            loop_load(loop->db, &loop->options, &loop->known, &loop->last_job, err);
        return loop->scheduler != NULL;
    }
    if (!atomic_exchange(&loop->woken, false))
        return true;
    return loop_load_jobs(loop->db, loop->scheduler, &loop->last_job, err);
}

static bool batch_run(struct loop *loop, struct error *err)
{
    if (!state_ready(loop, err))
        return false;
    int64_t epoch_before = scheduler_epoch(loop->scheduler);
    uint64_t start_us = clock_monotonic_us();
    for (int i = 0; i < loop->batch_count; i++)
        message_step(loop, loop->batch[i]);
    loop_step(loop, &(struct scheduler_event){.kind = ON_TICK});
    if (loop->actions.count)
        failpoint("server.before_decide");
    uint64_t decided_us = clock_monotonic_us();
    if (!loop_commit(loop->db, &loop->actions, epoch_before, scheduler_epoch(loop->scheduler),
                     loop->joins, loop->joins_count, err))
        return false;
    loop->pass.decide_us = decided_us - start_us;
    loop->pass.store_us = clock_monotonic_us() - decided_us;
    batch_forget(loop);
    batch_send(loop);
    return true;
}

static int sleep_ms(const struct loop *loop)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t next_us = loop->scheduler ? scheduler_next_us(loop->scheduler) : now_us;
    if (loop->flush_us && loop->flush_us < next_us)
        next_us = loop->flush_us;
    if (next_us <= now_us)
        return 0;
    uint64_t ms = (next_us - now_us + 999) / 1000;
    return ms < SLEEP_MS ? (int)ms : SLEEP_MS;
}

/* How long a wake-up may wait: jobs that come one by one do not cost a pass each. */
static int rest_ms(const struct loop *loop)
{
    uint64_t now_us = clock_monotonic_us();
    return now_us < loop->rested_us ? (int)((loop->rested_us - now_us + 999) / 1000) : 0;
}

static void batch_take(struct loop *loop, int timeout_ms)
{
    struct loop_message *message = mailbox_take(loop->mailbox, timeout_ms);
    bool urgent = false;
    while (message) {
        loop->batch[loop->batch_count++] = message;
        urgent = urgent || message->kind != LOOP_WAKE;
        message = loop->batch_count < LOOP_BATCH
                      ? mailbox_take(loop->mailbox, urgent ? 0 : rest_ms(loop))
                      : NULL;
    }
}

static void pass_note(struct loop *loop, uint64_t took_us)
{
    loop->pass.took_us = took_us;
    loop->pass.messages = loop->batch_count;
    loop->pass.decisions = loop->actions.count;
    loop->pass.nodes = scheduler_nodes_count(loop->scheduler);
    pthread_mutex_lock(&loop->lock);
    passes_note(&loop->passes, &loop->pass);
    pthread_mutex_unlock(&loop->lock);
}

static void batch_free(struct loop *loop)
{
    for (int i = 0; i < loop->batch_count; i++) {
        arena_free(loop->batch[i]->heard.arena);
        free(loop->batch[i]);
    }
    loop->batch_count = 0;
    loop->joins_count = 0;
    scheduler_actions_clear(&loop->actions);
    arena_clear(loop->actions.arena);
}

static void *loop_main(void *arg)
{
    struct loop *loop = arg;
    int failed_ms = 0;
    while (!mailbox_closed(loop->mailbox)) {
        batch_take(loop, failed_ms ? failed_ms : sleep_ms(loop));
        struct error err;
        uint64_t start_us = clock_monotonic_us();
        loop->pass = (struct pass){.wall_us = (int64_t)clock_wall_us()};
        bool ok = batch_run(loop, &err);
        if (!ok)
            state_drop(loop, &err);
        failed_ms = ok ? 0 : REST_MS;
        uint64_t end_us = clock_monotonic_us(), took_us = end_us - start_us;
        loop->rested_us =
            end_us + (took_us < RESTS_US_MAX / RESTS ? RESTS * took_us : RESTS_US_MAX);
        if (ok)
            pass_note(loop, took_us);
        batch_free(loop);
        if (loop->agents.flush)
            loop->flush_us = loop->agents.flush(loop->agents.self);
    }

    struct error err;
    fail(&err, UNAVAILABLE, "the server is ending");
    batch_take(loop, 0);
    while (loop->batch_count) {
        batch_refuse(loop, &err);
        batch_free(loop);
        batch_take(loop, 0);
    }
    return NULL;
}

/* --- for others --- */

static uint64_t option_us(int64_t ms, uint64_t otherwise)
{
    return ms > 0 ? (uint64_t)ms * 1000 : otherwise;
}

struct loop *loop_new(const struct loop_options *options, struct error *err)
{
    struct loop *loop = alloc_bytes(sizeof(*loop));
    const struct scheduler_options *defaults = &scheduler_defaults;
    loop->db = options->db;
    loop->options = *defaults;
    loop->options.suspect_us = option_us(options->suspect_ms, defaults->suspect_us);
    loop->options.lost_us = option_us(options->lost_ms, defaults->lost_us);
    loop->options.grace_us = option_us(options->grace_ms, defaults->grace_us);
    loop->options.unkillable_us = option_us(options->unkillable_ms, defaults->unkillable_us);
    loop->options.backoff_us = option_us(options->backoff_ms, defaults->backoff_us);
    loop->options.backoff_max_us = 36 * loop->options.backoff_us;
    if (loop->options.suspect_us / 2 < loop->options.stall_us)
        loop->options.stall_us = loop->options.suspect_us / 2;
    loop->mailbox = mailbox_new(MAILBOX_MESSAGES);
    loop->actions.arena = arena_new();
    pthread_mutex_init(&loop->lock, NULL);
    loop->scheduler = loop_load(loop->db, &loop->options, &loop->known, &loop->last_job, err);
    if (loop->scheduler)
        return loop;
    loop_free(loop);
    return NULL;
}

void loop_passes(struct loop *loop, struct passes *out)
{
    pthread_mutex_lock(&loop->lock);
    *out = loop->passes;
    pthread_mutex_unlock(&loop->lock);
}

void loop_set_agents(struct loop *loop, const struct loop_agents *agents)
{
    assert(!loop->started);
    loop->agents = *agents;
}

void loop_set_engine(struct loop *loop, const struct loop_engine *engine)
{
    assert(!loop->started);
    loop->engine = *engine;
}

bool loop_start(struct loop *loop, struct error *err)
{
    assert(!loop->started);
    if (pthread_create(&loop->thread, NULL, loop_main, loop))
        return fail(err, EXHAUSTED, "cannot start the scheduler's thread");
    loop->started = true;
    return true;
}

void loop_stop(struct loop *loop)
{
    mailbox_close(loop->mailbox);
    if (loop->started)
        pthread_join(loop->thread, NULL);
    loop->started = false;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    assert(!loop->started);
    scheduler_free(loop->scheduler);
    loop_load_known_clear(&loop->known);
    loop_check_forget(loop);
    arena_free(loop->actions.arena);
    scheduler_actions_release(&loop->actions);
    mailbox_free(loop->mailbox);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

bool loop_post(struct loop *loop, const struct loop_message *message)
{
    struct loop_message *copy = alloc_bytes(sizeof(*copy));
    *copy = *message;
    if (mailbox_post(loop->mailbox, copy))
        return true;
    free(copy);
    return false;
}

void loop_wake(struct loop *loop)
{
    if (atomic_exchange(&loop->woken, true))
        return; /* a wake-up is on its way already */
    struct loop_message message = {.kind = LOOP_WAKE};
    if (!loop_post(loop, &message)) {
        /* The loop is busy: it looks at `woken` with its next batch. */
    }
}

bool loop_join(struct loop *loop, struct loop_join *join)
{
    struct loop_message message = {.kind = LOOP_JOIN, .join = join};
    return loop_post(loop, &message);
}

void loop_join_free(struct loop_join *join)
{
    if (join)
        arena_free(join->arena); /* it lives there itself */
}

bool loop_hear(struct loop *loop, const struct loop_heard *heard)
{
    struct loop_message message = {.kind = LOOP_HEARD, .heard = *heard};
    return loop_post(loop, &message);
}
