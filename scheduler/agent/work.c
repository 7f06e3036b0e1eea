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
#define TROUBLE_AGAIN_MS 30000

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

static void give_up(struct agent *agent, const struct error *err)
{
    log_trouble(agent, "join refused", err);
    core_give_up(&agent->core);
    pthread_mutex_lock(&agent->lock);
    agent->failed = true;
    agent->error = *err;
    pthread_cond_broadcast(&agent->failing);
    pthread_mutex_unlock(&agent->lock);
}

void work_leave(struct agent *agent)
{
    core_leave(&agent->core);
    link_leave(agent->link);
}

static void call_failed(struct agent *agent, const char *what, const struct error *err)
{
    if (err->code == CANCELLED)
        return; /* agent_stop() */
    if (!core_failed(&agent->core, err->code, clock_monotonic_us())) {
        log_trouble(agent, what, err);
        return;
    }
    log_line(LOG_INFO, "agent", "node=%s msg=\"the session is over: joining again\"",
             agent->node_name);
    link_leave(agent->link);
}

/* --- the tasks that are held --- */

static struct core_task *task_add(struct agent *agent, struct attempt *attempt)
{
    attempt_watch(attempt, agent->inotify);
    return core_add(&agent->core, attempt_task(attempt), attempt, attempt_state(attempt),
                    clock_monotonic_us());
}

static void task_remove(struct agent *agent, struct core_task *task)
{
    struct attempt *attempt = task->attempt;
    attempt_clean(attempt, core_is_last(&agent->core, task));
    core_remove(&agent->core, task);
    attempt_free(attempt);
}

/* What was done to the task may have changed how it is. */
static void task_see(struct agent *agent, struct core_task *task)
{
    if (core_sees(task, attempt_state(task->attempt), clock_monotonic_us()) &&
        task->state == AGENT_TASK_EXITED)
        gpu_watch_ended(agent, task);
}

static void task_order(struct agent *agent, struct core_task *task, enum core_order order)
{
    switch (order) {
    case CORE_CANCEL:
        attempt_cancel(task->attempt);
        break;
    case CORE_TERM:
        attempt_term(task->attempt);
        break;
    case CORE_KILL:
        attempt_kill(task->attempt);
        break;
    case CORE_NOTHING:
    case CORE_START:
    case CORE_UNKNOWN:
        break;
    }
    task_see(agent, task);
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
            task_add(agent, attempt);
        else
            log_trouble(agent, "adopt", &problem);
    }
    closedir(folder);
    return true;
}

/* --- what the server says --- */

static void discard(struct agent *agent, const struct agent_task_ref *ref)
{
    struct core_task *task = core_find(&agent->core, ref);
    if (!task)
        return;
    log_line(LOG_INFO, "agent", "job=%lld epoch=%lld role=%s index=%d msg=discarded",
             (long long)ref->job_id, (long long)ref->attempt_epoch, ref->role, ref->index);
    task_order(agent, task, core_discard(task));
}

static bool listens(const struct agent_start_task *start)
{
    return start->program.words_count || start->tasks > 1 || start->idle_seconds;
}

static struct attempt *start(struct agent *agent, const struct agent_start_task *start)
{
    const struct attempt_own own = {
        .port = listens(start) ? port_take(agent) : 0,
        .user = port_user(agent, start->task.job_id),
        .group = agent->users.group,
        .gpus = &agent->gpus,
    };
    return attempt_new(&agent->places, start, &own);
}

static void command_log(const struct agent_command *command)
{
    const struct agent_task_ref *ref =
        command->kind == AGENT_COMMAND_START ? &command->start.task : &command->stop.task;
    log_line(LOG_INFO, "agent", "job=%lld epoch=%lld role=%s index=%d msg=%s",
             (long long)ref->job_id, (long long)ref->attempt_epoch, ref->role, ref->index,
             command->kind == AGENT_COMMAND_START  ? "start"
             : command->kind == AGENT_COMMAND_NONE ? "unknown"
             : command->stop.kill                  ? "kill"
                                                   : "stop");
}

static void command_run(struct agent *agent, const struct agent_command *command)
{
    struct core_task *task;
    bool is_new = command->sequence > agent->core.commands_done;
    enum core_order order = core_command(&agent->core, command, clock_monotonic_us(), &task);
    if (!is_new)
        return;
    command_log(command);
    failpoint("agent.command");
    if (order == CORE_START)
        task_add(agent, start(agent, &command->start));
    else if (order == CORE_UNKNOWN)
        task_add(agent, attempt_unknown(&command->stop.task));
    else if (task)
        task_order(agent, task, order);
}

static void response_take(struct agent *agent, const struct agent_sync_response *response)
{
    for (int i = 0; i < response->commands_count; i++)
        command_run(agent, &response->commands[i]);
    for (int i = 0; i < response->acknowledged_count; i++) {
        struct core_task *task = core_acknowledged(&agent->core, &response->acknowledged[i]);
        failpoint("agent.acknowledged");
        if (task)
            task_remove(agent, task);
    }
}

static void mail_take(struct agent *agent, struct link_mail *mail)
{
    int wait_ms = 0;
    if (mail->node_epoch != agent->core.epoch) {
        /* An answer to an earlier session. */
    } else if (mail->ok) {
        core_answered(&agent->core);
        response_take(agent, &mail->response);
    } else {
        call_failed(agent, "sync", &mail->error);
        wait_ms = agent->core.retry_ms;
    }
    link_continue(agent->link, mail, agent->core.commands_done, wait_ms);
}

/* --- what is said to the server --- */

/* Somebody removed this node: what runs here is tried elsewhere already. */
static void discard_all(struct agent *agent)
{
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        task_order(agent, task, core_discard(task));
    }
}

static void join_refused(struct agent *agent, const struct error *err)
{
    bool refused =
        err->code == UNAUTHENTICATED || err->code == DENIED || err->code == NOT_FOUND;
    if (refused && agent->credentials && credentials_refused(agent->credentials)) {
        log_trouble(agent, "join by the certificate, now by the token", err);
        core_back_off(&agent->core, clock_monotonic_us());
    } else if (err->code == NOT_FOUND) {
        discard_all(agent);
        give_up(agent, err);
    } else if (!agent->core.joined_us &&
               (refused || err->code == INVALID || err->code == EXISTS)) {
        give_up(agent, err);
    } else {
        log_trouble(agent, "join", err);
        core_back_off(&agent->core, clock_monotonic_us());
    }
}

/* Of one whose end cannot be told yet, that its process has ended. */
static void report_fill(const struct core_task *task, struct agent_task_report *report)
{
    attempt_report(task->attempt, report);
    if (report->state != core_tells_as(task))
        *report = (struct agent_task_report){.task = report->task,
                                             .state = core_tells_as(task),
                                             .pid = report->pid,
                                             .started_us = report->started_us,
                                             .ended_us = report->ended_us,
                                             .step = -1};
}

static void join(struct agent *agent)
{
    int count = agent->core.tasks_count;
    struct agent_task_report *tasks =
        alloc_array((size_t)count + 1, sizeof(struct agent_task_report));
    for (int i = 0; i < count; i++) {
        const struct core_task *task = &agent->core.tasks[i];
        report_fill(task, &tasks[i]);
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
        core_joined(&agent->core, response.node_epoch, clock_monotonic_us());
        for (int i = 0; i < response.discard_count; i++)
            discard(agent, &response.discard[i]);
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
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        int again_ms = 0;
        if (!core_ships(task, clock_monotonic_us()))
            continue;
        /* Cleared first only when shipped whole: inotify may set it again meanwhile. */
        if (attempt_ship(task->attempt, agent->link, &again_ms, &err)) {
            task->to_ship = false;
        } else if (again_ms == 0) {
            *more = true;
        } else if (err.code == EXHAUSTED) {
            log_trouble(agent, "ship", &err);
            core_no_room(task, clock_monotonic_us());
        } else {
            call_failed(agent, "ship", &err);
            return false;
        }
    }
    return true;
}

static void report_all(struct agent *agent)
{
    uint64_t now_us = clock_monotonic_us();
    struct agent_task_report *reports =
        alloc_array((size_t)agent->core.tasks_count + 1, sizeof(struct agent_task_report));
    int count = 0;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        const struct core_task *task = &agent->core.tasks[i];
        if (core_is_news(task, now_us))
            report_fill(task, &reports[count++]);
    }
    if (count) {
        struct error err;
        struct agent_sync_response response;
        struct arena *arena = arena_new_limited(LIMIT_CONTROL_MESSAGE_BYTES * 4);
        failpoint("agent.before_report");
        if (link_report(agent->link, reports, count, agent->core.commands_done, arena,
                        &response, &err)) {
            failpoint("agent.after_report");
            for (int i = 0; i < count; i++)
                core_told(core_find(&agent->core, &reports[i].task), reports[i].state, now_us);
            core_answered(&agent->core);
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
    for (int i = agent->core.tasks_count - 1; i >= 0; i--) {
        struct core_task *task = &agent->core.tasks[i];
        attempt_check(task->attempt);
        attempt_look(task->attempt);
        uint64_t again_us = attempt_again_us(task->attempt);
        if (again_us && clock_monotonic_us() >= again_us)
            task->to_ship = true;
        task_see(agent, task);
        task_order(agent, task, core_expires(task, clock_monotonic_us()));
    }
}

/* False: the server does not answer. */
static bool launch_all(struct agent *agent, bool *more)
{
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        struct error err;
        if (!core_launches(task))
            continue;
        if (!attempt_launch(task->attempt, agent->link, agent->host, more, &err)) {
            call_failed(agent, "prepare", &err);
            return false;
        }
        task_see(agent, task);
    }
    return true;
}

/* Does what there is to do with the server; true when there is more at once. */
static bool serve(struct agent *agent)
{
    bool more = false;
    if (core_is_quiet(&agent->core, clock_monotonic_us()))
        return false;
    if (!agent->core.epoch)
        join(agent);
    if (!agent->core.epoch)
        return false;
    if (agent->credentials && credentials_are_due(agent->credentials))
        renew(agent);
    if (launch_all(agent, &more) && ship_all(agent, &more)) {
        report_all(agent);
        (void)launch_all(agent, &more); /* a report's answer may bring commands */
    }
    return more || !agent->core.epoch;
}

static int wait_ms(const struct agent *agent, bool more)
{
    uint64_t now_us = clock_monotonic_us(), until_us = now_us + 60000000;
    bool quiet = core_is_quiet(&agent->core, now_us);
    if (more)
        return 0;
    if (core_wake_us(&agent->core, now_us) < until_us)
        until_us = core_wake_us(&agent->core, now_us);
    if (gpu_watch_next_us(agent) < until_us)
        until_us = gpu_watch_next_us(agent);
    if (usage_watch_next_us(agent) < until_us)
        until_us = usage_watch_next_us(agent);
    for (int i = 0; i < agent->core.tasks_count; i++) {
        const struct attempt *attempt = agent->core.tasks[i].attempt;
        uint64_t at_us = attempt_due_us(attempt);
        if (at_us && at_us < until_us)
            until_us = at_us;
        at_us = attempt_again_us(attempt);
        if (!quiet && at_us && at_us < until_us)
            until_us = at_us;
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
            for (int i = 0; i < agent->core.tasks_count; i++) {
                struct core_task *task = &agent->core.tasks[i];
                if (event->mask & IN_Q_OVERFLOW || attempt_watches(task->attempt, event->wd))
                    task->to_ship = true;
            }
            at += (ssize_t)sizeof(*event) + event->len;
        }
    }
}

/* Waits for a shim to go, a file to grow, an answer to come, or time to pass. */
static void wait_for_something(struct agent *agent, int timeout_ms)
{
    nfds_t count = 3;
    struct pollfd *fds = alloc_array((size_t)agent->core.tasks_count + count, sizeof(*fds));
    fds[0] = (struct pollfd){.fd = mailbox_fd(agent->mailbox), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = agent->inotify, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = agent->gpus_query.fd, .events = POLLIN};
    for (int i = 0; i < agent->core.tasks_count; i++) {
        int fd = attempt_fd(agent->core.tasks[i].attempt);
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
        gpu_watch(agent);
        tend(agent);
        usage_watch(agent);
        bool more = serve(agent);
        if (!mailbox_closed(agent->mailbox))
            wait_for_something(agent, wait_ms(agent, more));
    }
    return NULL;
}
