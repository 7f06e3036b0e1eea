/*
 * work.c - the thread that owns the node's attempts.
 *
 * Each turn: join if there is no session, start what is to be started, ship what was written,
 * say what has changed, kill what is overdue; then wait for the shims, the files, the server.
 */

#include <dirent.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "scheduler/agent/credentials.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/internal.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/view.h"

#define AGENT_VERSION "1"
#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS 5000
#define REJOIN_MS 1000 /* between two joins */
#define TROUBLE_AGAIN_MS 30000
#define ROOM_AGAIN_MS 1000   /* between two attempts to ship to a full disk */
#define REPORT_AGAIN_MS 2000 /* an exit that is not acknowledged is reported again */

/* --- trouble --- */

/* The same again and again, as on a full disk, is one line in a while. */
static void log_trouble(struct agent *agent, const char *what, const struct error *err)
{
    char text[700];
    uint64_t now_us = clock_monotonic_us();
    if (strcmp(err->text, agent->trouble.text) == 0 && now_us < agent->trouble_until_us)
        return;
    agent->trouble = *err;
    agent->trouble_until_us = now_us + TROUBLE_AGAIN_MS * 1000;
    log_line(LOG_WARN, "agent", "node=%s what=\"%s\" code=%s msg=%s", agent->node_name, what,
             error_code_name(err->code), log_quote(err->text, text, sizeof(text)));
}

/* No calls for a while: a random time that doubles, so that many agents do not come at once. */
static void back_off(struct agent *agent)
{
    agent->retry_ms = agent->retry_ms ? agent->retry_ms * 2 : RETRY_FIRST_MS;
    if (agent->retry_ms > RETRY_MAX_MS)
        agent->retry_ms = RETRY_MAX_MS;
    agent->random = agent->random * 1103515245u + 12345u;
    int wait_ms =
        agent->retry_ms / 2 + (int)((agent->random >> 8) % (unsigned)(agent->retry_ms / 2 + 1));
    agent->quiet_until_us = clock_monotonic_us() + (uint64_t)wait_ms * 1000;
}

static void give_up(struct agent *agent, const struct error *err)
{
    log_trouble(agent, "join refused", err);
    pthread_mutex_lock(&agent->lock);
    agent->failed = true;
    agent->error = *err;
    pthread_cond_broadcast(&agent->failing);
    pthread_mutex_unlock(&agent->lock);
}

/* A call failed: either the session is over, or the server is to be left alone for a while. */
static void call_failed(struct agent *agent, const char *what, const struct error *err)
{
    if (err->code == CANCELLED)
        return; /* agent_stop() */
    if (err->code == PRECONDITION || err->code == UNAUTHENTICATED) {
        log_line(LOG_INFO, "agent", "node=%s msg=\"the session is over: joining again\"",
                 agent->node_name);
        link_leave(agent->link);
        uint64_t next_us = agent->joined_us + REJOIN_MS * 1000;
        if (next_us > agent->quiet_until_us)
            agent->quiet_until_us = next_us;
        return;
    }
    log_trouble(agent, what, err);
    back_off(agent);
}

/* --- the attempts that are held --- */

static struct held *held_find(struct agent *agent, const struct agent_task_ref *task)
{
    for (int i = 0; i < agent->held_count; i++) {
        if (agent_task_ref_equal(attempt_task(agent->held[i].attempt), task))
            return &agent->held[i];
    }
    return NULL;
}

static struct held *held_add(struct agent *agent, struct attempt *attempt)
{
    agent->held =
        alloc_grow(agent->held, agent->held_count, &agent->held_capacity, sizeof(*agent->held));
    struct held *held = &agent->held[agent->held_count++];
    *held = (struct held){.attempt = attempt, .to_ship = true, .to_report = true};
    attempt_watch(attempt, agent->inotify);
    return held;
}

/* Whether no other task of its job is here. */
static bool is_last(const struct agent *agent, const struct held *held)
{
    for (int i = 0; i < agent->held_count; i++) {
        const struct held *other = &agent->held[i];
        if (other != held &&
            attempt_task(other->attempt)->job_id == attempt_task(held->attempt)->job_id)
            return false;
    }
    return true;
}

static void held_remove(struct agent *agent, struct held *held)
{
    attempt_clean(held->attempt, is_last(agent, held));
    attempt_free(held->attempt);
    *held = agent->held[--agent->held_count];
}

bool work_adopt(struct agent *agent, struct error *err)
{
    DIR *folder = opendir(agent->attempts_folder);
    if (!folder)
        return error_errno(err, INTERNAL, "cannot read %s", agent->attempts_folder);
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        const char *dot = strchr(entry->d_name, '.');
        if (dot == entry->d_name)
            continue;
        if (dot) { /* NAME.tmp: half made, or half removed */
            char *path = alloc_printf("%s/%s", agent->attempts_folder, entry->d_name);
            files_remove_folder(path);
            free(path);
            continue;
        }
        struct error problem;
        struct attempt *attempt = attempt_adopt(&agent->places, entry->d_name, &problem);
        if (attempt)
            held_add(agent, attempt)->adopted = true;
        else
            log_trouble(agent, "adopt", &problem);
    }
    closedir(folder);
    return true;
}

/* --- what the server says --- */

static void discard(struct agent *agent, const struct agent_task_ref *task)
{
    struct held *held = held_find(agent, task);
    if (!held)
        return;
    log_line(LOG_INFO, "agent", "job=%lld epoch=%lld role=%s index=%d msg=discarded",
             (long long)task->job_id, (long long)task->attempt_epoch, task->role, task->index);
    held->discarded = true;
    attempt_kill(held->attempt);
}

static bool listens(const struct agent_start_task *start)
{
    return start->program.words_count || start->tasks > 1 || start->idle_seconds;
}

static void command_run(struct agent *agent, const struct agent_command *command)
{
    const struct agent_task_ref *task =
        command->kind == AGENT_COMMAND_START ? &command->start.task : &command->stop.task;
    struct held *held = command->kind == AGENT_COMMAND_NONE ? NULL : held_find(agent, task);
    log_line(LOG_INFO, "agent", "job=%lld epoch=%lld role=%s index=%d msg=%s",
             (long long)task->job_id, (long long)task->attempt_epoch, task->role, task->index,
             command->kind == AGENT_COMMAND_START  ? "start"
             : command->kind == AGENT_COMMAND_NONE ? "unknown"
             : command->stop.kill                  ? "kill"
                                                   : "stop");
    failpoint("agent.command");
    if (command->kind == AGENT_COMMAND_START) {
        const struct attempt_own own = {
            .port = listens(&command->start) ? port_take(agent) : 0,
            .user = port_user(agent, task->job_id),
            .group = agent->users.group,
            .gpus = &agent->gpus,
        };
        if (!held)
            held = held_add(agent, attempt_new(&agent->places, &command->start, &own));
        held->to_report = true;
    } else if (command->kind == AGENT_COMMAND_STOP) {
        if (!held)
            held = held_add(agent, attempt_unknown(task));
        if (command->stop.kill)
            attempt_kill(held->attempt);
        else
            attempt_stop(held->attempt, command->stop.grace_ms);
    }
}

static void response_take(struct agent *agent, const struct agent_sync_response *response)
{
    for (int i = 0; i < response->commands_count; i++) {
        const struct agent_command *command = &response->commands[i];
        if (command->sequence <= agent->commands_done)
            continue;
        command_run(agent, command);
        agent->commands_done = command->sequence;
    }
    for (int i = 0; i < response->acknowledged_count; i++) {
        struct held *held = held_find(agent, &response->acknowledged[i]);
        failpoint("agent.acknowledged");
        if (held && attempt_ended(held->attempt))
            held_remove(agent, held);
    }
}

static void mail_take(struct agent *agent, struct link_mail *mail)
{
    int wait_ms = 0;
    if (mail->node_epoch != link_epoch(agent->link)) {
        /* An answer to an earlier session. */
    } else if (mail->ok) {
        agent->retry_ms = 0;
        agent->quiet_until_us = 0;
        response_take(agent, &mail->response);
    } else {
        call_failed(agent, "sync", &mail->error);
        wait_ms = agent->retry_ms;
    }
    link_continue(agent->link, mail, agent->commands_done, wait_ms);
}

/* --- what is said to the server --- */

/* Somebody removed this node: what runs here is tried elsewhere already. */
static void discard_all(struct agent *agent)
{
    for (int i = 0; i < agent->held_count; i++) {
        agent->held[i].discarded = true;
        attempt_kill(agent->held[i].attempt);
    }
}

static void join_refused(struct agent *agent, const struct error *err)
{
    bool refused =
        err->code == UNAUTHENTICATED || err->code == DENIED || err->code == NOT_FOUND;
    if (refused && agent->credentials && credentials_refused(agent->credentials)) {
        log_trouble(agent, "join by the certificate, now by the token", err);
        back_off(agent);
    } else if (err->code == NOT_FOUND) {
        discard_all(agent);
        give_up(agent, err);
    } else if (!agent->joined_us && (refused || err->code == INVALID || err->code == EXISTS)) {
        give_up(agent, err);
    } else {
        log_trouble(agent, "join", err);
        back_off(agent);
    }
}

static void join(struct agent *agent)
{
    struct agent_task_report *tasks =
        alloc_array((size_t)agent->held_count + 1, sizeof(struct agent_task_report));
    int count = 0;
    for (int i = 0; i < agent->held_count; i++) {
        struct agent_task_report *report = &tasks[count++];
        attempt_report(agent->held[i].attempt, report);
        /* An end is told only when all before it has been shipped. */
        const struct held *held = &agent->held[i];
        if (report->state == AGENT_TASK_EXITED &&
            ((held->to_ship && !held->discarded) || held->unproven))
            *report = (struct agent_task_report){.task = report->task,
                                                 .state = AGENT_TASK_RUNNING,
                                                 .pid = report->pid,
                                                 .started_us = report->started_us,
                                                 .step = -1};
    }
    const struct agent_join_request request = {.token = agent->token,
                                               .node_name = agent->node_name,
                                               .boot_id = agent->boot_id,
                                               .version = AGENT_VERSION,
                                               .identity = agent->identity,
                                               .asked_us = (int64_t)clock_monotonic_us(),
                                               .capacity = agent->capacity,
                                               .labels = agent->labels.list,
                                               .labels_count = agent->labels.count,
                                               .tasks = tasks,
                                               .tasks_count = count};
    struct error err;
    struct agent_join_response response;
    struct arena *arena = arena_new_limited(LIMIT_CONTROL_MESSAGE_BYTES * 4);
    failpoint("agent.before_join");
    if ((!agent->credentials || credentials_connect(agent->credentials, agent->link, &err)) &&
        link_join(agent->link, &request, arena, &response, &err)) {
        failpoint("agent.after_join");
        log_line(LOG_INFO, "agent", "node=%s epoch=%lld tasks=%d msg=joined", agent->node_name,
                 (long long)response.node_epoch, count);
        agent->commands_done = 0;
        agent->joined_us = clock_monotonic_us();
        agent->retry_ms = 0;
        for (int i = 0; i < response.discard_count; i++)
            discard(agent, &response.discard[i]);
        for (int i = 0; i < agent->held_count; i++) {
            agent->held[i].to_ship = true;
            agent->held[i].to_report = true;
        }
    } else if (err.code == CANCELLED) {
        /* agent_stop() */
    } else {
        join_refused(agent, &err);
    }
    arena_free(arena);
    free(tasks);
}

/* Long before it runs out; if it fails the old one is good for some time. */
static void renew(struct agent *agent)
{
    struct error err;
    if (!credentials_renew(agent->credentials, agent->link, &err) && err.code != CANCELLED)
        log_trouble(agent, "renew the certificate", &err);
}

/* Ships what was written; sets `*more` when there is more right away.  False: call no more now.
 */
static bool ship_all(struct agent *agent, bool *more)
{
    struct error err;
    for (int i = 0; i < agent->held_count; i++) {
        struct held *held = &agent->held[i];
        int again_ms = 0;
        if (!held->to_ship || held->discarded || clock_monotonic_us() < held->ship_us)
            continue;
        /* Cleared first only when shipped whole: inotify may set it again meanwhile. */
        if (attempt_ship(held->attempt, agent->link, &again_ms, &err)) {
            held->to_ship = false;
        } else if (again_ms == 0) {
            *more = true;
        } else if (err.code == EXHAUSTED) {
            /* Not for this one; what is being stopped may still be shipped and end. */
            log_trouble(agent, "ship", &err);
            held->ship_us = clock_monotonic_us() + ROOM_AGAIN_MS * 1000;
        } else {
            call_failed(agent, "ship", &err);
            return false;
        }
    }
    return true;
}

/* Whether the attempt has something to say at this time. */
static bool is_news(const struct held *held, uint64_t now_us)
{
    if (!attempt_ended(held->attempt))
        return held->to_report && !held->discarded;
    if ((held->to_ship && !held->discarded) || held->unproven)
        return false; /* first what it wrote, then its end */
    return held->to_report || now_us >= held->said_us + REPORT_AGAIN_MS * 1000;
}

static void report_all(struct agent *agent)
{
    uint64_t now_us = clock_monotonic_us();
    struct agent_task_report *reports =
        alloc_array((size_t)agent->held_count + 1, sizeof(struct agent_task_report));
    int count = 0;
    for (int i = 0; i < agent->held_count; i++) {
        if (is_news(&agent->held[i], now_us))
            attempt_report(agent->held[i].attempt, &reports[count++]);
    }
    if (count) {
        struct error err;
        struct agent_sync_response response;
        struct arena *arena = arena_new_limited(LIMIT_CONTROL_MESSAGE_BYTES * 4);
        failpoint("agent.before_report");
        if (link_report(agent->link, reports, count, agent->commands_done, arena, &response,
                        &err)) {
            failpoint("agent.after_report");
            for (int i = 0; i < agent->held_count; i++) {
                struct held *held = &agent->held[i];
                if (!is_news(held, now_us))
                    continue;
                held->to_report = false;
                held->said_us = now_us;
            }
            agent->retry_ms = 0;
            response_take(agent, &response);
        } else {
            call_failed(agent, "report", &err);
        }
        arena_free(arena);
    }
    free(reports);
}

/* --- the loop --- */

/* Does what does not need the server. */
static void tend(struct agent *agent)
{
    for (int i = agent->held_count - 1; i >= 0; i--) {
        struct held *held = &agent->held[i];
        bool ended = attempt_ended(held->attempt);
        attempt_check(held->attempt);
        attempt_expire(held->attempt);
        uint64_t again_us = attempt_again_us(held->attempt);
        if (again_us && clock_monotonic_us() >= again_us)
            held->to_ship = true;
        if (!ended && attempt_ended(held->attempt)) {
            gpu_watch_ended(agent, held);
            held->to_report = true;
            held->to_ship = true;
            held->ship_us = 0;
        }
    }
}

/* False: the server does not answer. */
static bool launch_all(struct agent *agent, bool *more)
{
    for (int i = 0; i < agent->held_count; i++) {
        struct held *held = &agent->held[i];
        struct agent_task_report report;
        struct error err;
        attempt_report(held->attempt, &report);
        if (report.state != AGENT_TASK_STARTING || held->discarded)
            continue;
        if (!attempt_launch(held->attempt, agent->link, agent->host, more, &err)) {
            call_failed(agent, "prepare", &err);
            return false;
        }
        attempt_report(held->attempt, &report);
        if (report.state == AGENT_TASK_STARTING)
            continue;
        held->to_report = true;
        held->to_ship = true;
    }
    return true;
}

/* Does what there is to do with the server; true when there is more at once. */
static bool serve(struct agent *agent)
{
    bool more = false;
    if (agent->failed || clock_monotonic_us() < agent->quiet_until_us)
        return false;
    if (!link_epoch(agent->link))
        join(agent);
    if (!link_epoch(agent->link))
        return false;
    if (agent->credentials && credentials_are_due(agent->credentials))
        renew(agent);
    if (launch_all(agent, &more) && ship_all(agent, &more)) {
        report_all(agent);
        (void)launch_all(agent, &more); /* a report's answer may bring commands */
    }
    return more || (!link_epoch(agent->link) && !agent->failed);
}

static int wait_ms(const struct agent *agent, bool more)
{
    uint64_t now_us = clock_monotonic_us(), until_us = now_us + 60000000;
    bool quiet = agent->failed || now_us < agent->quiet_until_us;
    if (more)
        return 0;
    if (!agent->failed && now_us < agent->quiet_until_us)
        until_us = agent->quiet_until_us;
    if (gpu_watch_next_us(agent) < until_us)
        until_us = gpu_watch_next_us(agent);
    if (usage_watch_next_us(agent) < until_us)
        until_us = usage_watch_next_us(agent);
    for (int i = 0; i < agent->held_count; i++) {
        const struct held *held = &agent->held[i];
        uint64_t at_us = attempt_due_us(held->attempt);
        if (at_us && at_us < until_us)
            until_us = at_us;
        at_us = attempt_again_us(held->attempt);
        if (!quiet && at_us && at_us < until_us)
            until_us = at_us;
        at_us = held->said_us + REPORT_AGAIN_MS * 1000;
        if (!quiet && held->said_us && attempt_ended(held->attempt) && !held->unproven &&
            at_us < until_us)
            until_us = at_us;
        if (!quiet && held->to_ship && held->ship_us && held->ship_us < until_us)
            until_us = held->ship_us;
        if (!quiet && is_news(held, now_us))
            return 0;
    }
    return until_us <= now_us ? 0 : (int)((until_us - now_us) / 1000 + 1);
}

static void inotify_take(struct agent *agent)
{
    char buffer[16384] __attribute__((aligned(8)));
    ssize_t size;
    while ((size = read(agent->inotify, buffer, sizeof(buffer))) > 0) {
        for (ssize_t at = 0; at < size;) {
            const struct inotify_event *event = (const struct inotify_event *)(buffer + at);
            for (int i = 0; i < agent->held_count; i++) {
                if (event->mask & IN_Q_OVERFLOW ||
                    attempt_watches(agent->held[i].attempt, event->wd))
                    agent->held[i].to_ship = true;
            }
            at += (ssize_t)sizeof(*event) + event->len;
        }
    }
}

/* Waits for a shim to go, a file to grow, an answer to come, or time to pass. */
static void wait_for_something(struct agent *agent, int timeout_ms)
{
    nfds_t count = 3;
    struct pollfd *fds = alloc_array((size_t)agent->held_count + count, sizeof(*fds));
    fds[0] = (struct pollfd){.fd = mailbox_fd(agent->mailbox), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = agent->inotify, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = agent->gpus_query.fd, .events = POLLIN};
    for (int i = 0; i < agent->held_count; i++) {
        int fd = attempt_fd(agent->held[i].attempt);
        if (fd >= 0)
            fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    poll(fds, count, timeout_ms);
    free(fds);
}

void *work_main(void *argument)
{
    struct agent *agent = argument;
    char text[200];
    bool warn;
    users_text(&agent->users, text, sizeof(text), &warn);
    log_line(warn ? LOG_WARN : LOG_INFO, "agent", "node=%s msg=\"%s\"", agent->node_name, text);
    if (agent->users.count)
        log_line(agent->view_refused ? LOG_WARN : LOG_INFO, "agent", "node=%s msg=\"%s\"",
                 agent->node_name, view_text(agent->view_refused, text, sizeof(text)));
    while (!mailbox_closed(agent->mailbox)) {
        struct link_mail *mail;
        inotify_take(agent);
        while ((mail = mailbox_take(agent->mailbox, 0)))
            mail_take(agent, mail);
        tend(agent);
        gpu_watch(agent);
        usage_watch(agent);
        bool more = serve(agent);
        if (!mailbox_closed(agent->mailbox))
            wait_for_something(agent, wait_ms(agent, more));
    }
    return NULL;
}
