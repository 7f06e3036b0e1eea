/* attempt.c - from StartTask to the last report of a task. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/str.h"
#include "scheduler/agent/attempt.h"
#include "scheduler/agent/exit.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "scheduler/agent/gpus.h"
#include "scheduler/agent/keep.h"
#include "scheduler/agent/launch.h"
#include "scheduler/agent/prepare.h"
#include "scheduler/agent/program.h"
#include "scheduler/agent/shims.h"
#include "scheduler/agent/tail.h"
#include "scheduler/agent/usage.h"
#include "scheduler/agent/users.h"
#include "scheduler/agent/watchdog.h"

struct attempt {
    struct agent_task_ref task; /* owns role */
    const struct attempt_places *places;
    char *folder;  /* NULL: there is none */
    json_t *start; /* start.json */
    struct tail *tail;
    struct prepare *prepare; /* of a program, until it is launched */
    bool waiting;            /* ... for other tasks */

    enum agent_task_state state;
    int pidfd; /* of the shim, -1 when it is gone or not started */
    int claim; /* of an adopted one that no shim has: keeps late ones from it; else -1 */
    pid_t shim_pid;
    int64_t pid; /* of the task */
    int64_t started_us;
    int64_t ended_us;
    enum agent_exit_reason reason;
    int exit_code;
    int exit_signal;
    char error[1000];

    bool asked; /* to end */
    struct watchdog watchdog;
    struct usage usage;
    enum agent_exit_reason failed; /* by attempt_fail(), ... */
    char why[400];                 /* ... and why; "": it has not been */
};

/* --- outcomes --- */

static void attempt_end(struct attempt *attempt, enum agent_exit_reason reason, const char *why)
{
    attempt->state = AGENT_TASK_EXITED;
    attempt->reason = reason;
    if (!attempt->ended_us)
        attempt->ended_us = (int64_t)clock_wall_us();
    if (attempt->tail)
        tail_end(attempt->tail);
    if (why && *why)
        snprintf(attempt->error, sizeof(attempt->error), "%s", why);
}

static bool is_program(const struct attempt *attempt)
{
    return json_object_get(attempt->start, "program") != NULL;
}

/* Fills the outcome from exit.json; false when there is none. */
static bool exit_read(struct attempt *attempt)
{
    struct error err;
    json_t *end = files_read_json(attempt->folder, "exit.json", &err);
    if (!end)
        return false;
    char why[sizeof(attempt->error)];
    attempt->started_us = files_int(end, "started_us");
    attempt->ended_us = files_int(end, "ended_us");
    attempt->exit_code = (int)files_int(end, "code");
    attempt->exit_signal = (int)files_int(end, "signal");
    exit_text(attempt->folder, end, attempt->start, why, sizeof(why));
    if (*attempt->why)
        attempt_end(attempt, attempt->failed, attempt->why);
    else
        attempt_end(attempt, exit_reason(end, is_program(attempt)), why);
    json_decref(end);
    return true;
}

/* --- the shim --- */

/* The shim has gone or never was: reads how the task ended. */
static void shim_gone(struct attempt *attempt)
{
    struct error err;
    if (attempt->pidfd >= 0)
        close(attempt->pidfd);
    attempt->pidfd = -1;
    failpoint("agent.ended");
    if (exit_read(attempt))
        return;
    json_t *shim = files_read_json(attempt->folder, "shim.json", &err);
    attempt->started_us = files_int(shim, "started_us");
    launch_kill_strays(files_text(attempt->start, "cookie"), files_text(shim, "cgroup"));
    json_decref(shim);
    attempt_end(attempt, AGENT_EXIT_LOST,
                "the shim that watched over the task has gone without a word");
}

/* Takes over a shim that has written shim.json. */
static void shim_adopt(struct attempt *attempt, const json_t *shim)
{
    attempt->shim_pid = (pid_t)files_int(shim, "pid");
    attempt->pid = files_int(shim, "task_pid");
    attempt->started_us = files_int(shim, "started_us");
    attempt->pidfd = shims_open(shim);
    if (attempt->pidfd >= 0)
        attempt->state = AGENT_TASK_RUNNING;
    else
        shim_gone(attempt);
}

static void claim_release(struct attempt *attempt)
{
    if (attempt->claim >= 0)
        close(attempt->claim);
    attempt->claim = -1;
}

static void shim_start(struct attempt *attempt)
{
    struct error err;
    claim_release(attempt);
    failpoint("agent.before_launch");
    if (!users_give(attempt->folder, attempt->start, &err) ||
        !launch_shim(attempt->places->shim_path, attempt->places->task_path, attempt->folder,
                     attempt->start, &err)) {
        attempt_end(attempt, AGENT_EXIT_START, err.text);
        return;
    }
    failpoint("agent.after_launch");
    json_t *shim = shims_find(attempt->folder, &attempt->claim, &err);
    if (shim)
        shim_adopt(attempt, shim);
    else
        attempt_end(attempt, AGENT_EXIT_START, err.text);
    json_decref(shim);
}

bool attempt_launch(struct attempt *attempt, struct link *link, const char *host, bool *more,
                    struct error *err)
{
    enum prepare_result result = PREPARE_DONE;
    if (attempt->state != AGENT_TASK_STARTING)
        return true;
    if (prepare_wanted(attempt->start)) {
        if (!attempt->prepare)
            attempt->prepare =
                prepare_new(attempt->folder, attempt->start, attempt->places->datasets);
        result = prepare_go_on(attempt->prepare, link, &attempt->task, host, err);
    }
    attempt->waiting = result == PREPARE_LATER;
    *more = *more || result == PREPARE_MORE;
    if (result == PREPARE_DONE)
        shim_start(attempt);
    else if (result == PREPARE_FAILED)
        attempt_end(attempt, AGENT_EXIT_START, err->text);
    return result != PREPARE_ABSENT;
}

uint64_t attempt_again_us(const struct attempt *attempt)
{
    bool waits = attempt->state == AGENT_TASK_STARTING && attempt->waiting;
    if (waits)
        return prepare_again_us(attempt->prepare);
    return attempt->tail ? tail_again_us(attempt->tail) : 0;
}

void attempt_check(struct attempt *attempt)
{
    struct pollfd gone = {.fd = attempt->pidfd, .events = POLLIN};
    if (attempt->pidfd >= 0 && poll(&gone, 1, 0) > 0)
        shim_gone(attempt);
}

void attempt_cancel(struct attempt *attempt)
{
    if (attempt->state == AGENT_TASK_STARTING)
        attempt_end(attempt, AGENT_EXIT_STOPPED, "stopped before it was started");
}

void attempt_kill(struct attempt *attempt)
{
    if (attempt->pidfd < 0 || shims_command(attempt->folder, "KILL\n"))
        return;
    attempt_check(attempt);
    if (attempt->pidfd >= 0) /* it hangs; the task does not outlive it */
        syscall(SYS_pidfd_send_signal, attempt->pidfd, SIGKILL, NULL, 0);
}

void attempt_term(struct attempt *attempt)
{
    attempt->asked = true;
    /* A shim that does not answer is dealt with when the time is up. */
    if (attempt->pidfd >= 0)
        (void)shims_command(attempt->folder, "TERM\n");
}

void attempt_fail(struct attempt *attempt, enum agent_exit_reason reason, const char *text)
{
    if (*attempt->why)
        return;
    attempt->failed = reason;
    snprintf(attempt->why, sizeof(attempt->why), "%s", text);
    if (attempt->state == AGENT_TASK_STARTING)
        attempt_end(attempt, reason, text);
    else
        attempt_kill(attempt);
}

static bool is_watched(const struct attempt *attempt)
{
    return attempt->state == AGENT_TASK_RUNNING && !attempt->asked && !*attempt->why;
}

uint64_t attempt_due_us(const struct attempt *attempt)
{
    return is_watched(attempt) ? watchdog_next_us(&attempt->watchdog) : 0;
}

void attempt_look(struct attempt *attempt)
{
    if (!is_watched(attempt) ||
        !watchdog_look(&attempt->watchdog, attempt->folder, clock_monotonic_us()))
        return;
    char text[200];
    watchdog_text(&attempt->watchdog, attempt->folder, text, sizeof(text));
    attempt_fail(attempt, AGENT_EXIT_CRASH, text);
}

/* --- life --- */

static struct attempt *attempt_make(const struct agent_task_ref *task)
{
    struct attempt *attempt = alloc_bytes(sizeof(*attempt));
    attempt->task = *task;
    attempt->task.role = alloc_text(task->role);
    attempt->pidfd = attempt->claim = -1;
    attempt->state = AGENT_TASK_STARTING;
    return attempt;
}

/* Writes the folder aside and gives it its name last: it is there whole or not at all. */
static bool folder_write(struct attempt *attempt, const struct agent_start_task *start,
                         struct error *err)
{
    char *aside = alloc_printf("%s.tmp", attempt->folder);
    files_remove_folder(aside);
    bool ok =
        files_make_folder(aside, err) &&
        (start->program.words_count ? program_make(aside, &start->program, err)
                                    : files_write(aside, "spec.json", start->spec, err)) &&
        files_write_json(aside, "start.json", json_incref(attempt->start), err);
    failpoint("agent.folder_before_rename");
    if (ok && rename(aside, attempt->folder))
        ok = error_errno(err, INTERNAL, "cannot make the folder %s", attempt->folder);
    if (!ok)
        files_remove_folder(aside);
    failpoint("agent.folder_after_rename");
    free(aside);
    return ok;
}

/* What the task writes goes to the server. */
static void tail_make(struct attempt *attempt, bool fresh)
{
    attempt->tail = tail_new(attempt->folder, is_program(attempt), fresh);
    if (!folders_are_own(attempt->start))
        return;
    char *folder = alloc_printf("jobs/%lld/checkpoints", (long long)attempt->task.job_id);
    tail_mirror(attempt->tail, folder, is_program(attempt));
    free(folder);
}

/* What NVIDIA's libraries know the task's GPUs by. */
static json_t *gpu_uuids(const json_t *numbers, const struct gpus *gpus)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        json_int_t number = json_integer_value(json_array_get(numbers, i));
        if (gpus && number < gpus->count)
            json_array_append_new(list, json_string(gpus->list[number].uuid));
    }
    return list;
}

uint64_t attempt_gpus(const struct attempt *attempt)
{
    const json_t *numbers = json_object_get(attempt->start, "gpu_ids");
    uint64_t mask = 0;
    for (size_t i = 0; i < json_array_size(numbers); i++)
        mask |= UINT64_C(1) << (json_integer_value(json_array_get(numbers, i)) & 63);
    return mask;
}

bool attempt_has_gpus(const struct attempt *attempt)
{
    return attempt->state != AGENT_TASK_EXITED && files_int(attempt->start, "gpus") > 0;
}

struct attempt *attempt_new(const struct attempt_places *places,
                            const struct agent_start_task *start, const struct attempt_own *own)
{
    struct error err;
    unsigned char noise[16];
    char cookie[2 * sizeof(noise) + 1];
    struct attempt *attempt = attempt_make(&start->task);
    attempt->places = places;
    if (start->program.problem && *start->program.problem) {
        attempt_end(attempt, AGENT_EXIT_USER, start->program.problem);
        return attempt;
    }
    if (own->user == ATTEMPT_NO_USER) {
        attempt_end(attempt, AGENT_EXIT_START,
                    "all users of --task-user are taken on this node: give it a larger range");
        return attempt;
    }
    bool ok = getrandom(noise, sizeof(noise), 0) == (ssize_t)sizeof(noise);
    if (!ok)
        error_errno(&err, INTERNAL, "no random numbers");
    for (size_t i = 0; i < sizeof(noise); i++)
        snprintf(cookie + 2 * i, 3, "%02x", noise[i]);
    /* The role becomes part of a path. */
    if (ok && (!*start->task.role || strspn(start->task.role, "abcdefghijklmnopqrstuvwxyz_") !=
                                         strlen(start->task.role)))
        ok = fail(&err, INVALID, "'%s' is no role", start->task.role);
    if (ok) {
        attempt->start = launch_start_json(start, cookie);
        json_object_set_new(attempt->start, "port", json_integer(own->port));
        json_object_set_new(attempt->start, "user", json_integer(own->user));
        json_object_set_new(attempt->start, "group", json_integer(own->group));
        json_object_set_new(attempt->start, "gpu_uuids",
                            gpu_uuids(json_object_get(attempt->start, "gpu_ids"), own->gpus));
        attempt->folder = alloc_printf("%s/%lld-%s-%d", places->attempts_folder,
                                       (long long)start->task.attempt_epoch, start->task.role,
                                       start->task.index);
        if (places->no_shared_folder || !folders_are_shared(start))
            folders_make_own(attempt->start, attempt->folder);
        ok = folder_write(attempt, start, &err);
    }
    if (ok) {
        tail_make(attempt, true);
        attempt->watchdog.stall_ms = start->stall_ms;
    } else {
        free(attempt->folder);
        attempt->folder = NULL;
        attempt_end(attempt, AGENT_EXIT_START, err.text);
    }
    return attempt;
}

struct attempt *attempt_adopt(const struct attempt_places *places, const char *name,
                              struct error *err)
{
    char *folder = alloc_printf("%s/%s", places->attempts_folder, name);
    json_t *start = files_read_json(folder, "start.json", err);
    if (!start) {
        free(folder);
        return NULL;
    }
    const struct agent_task_ref task = {.job_id = files_int(start, "job_id"),
                                        .attempt_epoch = files_int(start, "attempt_epoch"),
                                        .role = files_text(start, "role"),
                                        .index = (int)files_int(start, "index")};
    struct attempt *attempt = attempt_make(&task);
    struct error none;
    attempt->places = places;
    attempt->folder = folder;
    attempt->start = start;
    tail_make(attempt, false);
    attempt->watchdog.stall_ms = files_int(start, "stall_ms");
    attempt->usage.adopted = true;
    json_t *shim = shims_find(folder, &attempt->claim, &none);
    if (shim)
        shim_adopt(attempt, shim);
    else if (none.code != NOT_FOUND)
        shim_gone(attempt);
    json_decref(shim);
    return attempt;
}

struct attempt *attempt_unknown(const struct agent_task_ref *task)
{
    struct attempt *attempt = attempt_make(task);
    attempt_end(attempt, AGENT_EXIT_LOST, "the node knows nothing of this task");
    return attempt;
}

void attempt_free(struct attempt *attempt)
{
    if (!attempt)
        return;
    if (attempt->pidfd >= 0)
        close(attempt->pidfd);
    claim_release(attempt);
    network_release(&attempt->usage.network);
    tail_free(attempt->tail);
    prepare_free(attempt->prepare);
    json_decref(attempt->start);
    free(attempt->folder);
    free((char *)attempt->task.role);
    free(attempt);
}

const struct agent_task_ref *attempt_task(const struct attempt *attempt)
{
    return &attempt->task;
}

void attempt_watch(struct attempt *attempt, int inotify)
{
    if (attempt->tail)
        tail_watch(attempt->tail, inotify);
}

bool attempt_watches(const struct attempt *attempt, int watch)
{
    return attempt->tail && tail_watches(attempt->tail, watch);
}

bool attempt_has_port(const struct attempt *attempt, int port)
{
    return attempt->state != AGENT_TASK_EXITED && files_int(attempt->start, "port") == port;
}

uid_t attempt_user(const struct attempt *attempt)
{
    return users_of(attempt->start);
}

const char *attempt_folder(const struct attempt *attempt)
{
    return attempt->folder;
}

pid_t attempt_shim(const struct attempt *attempt)
{
    return attempt->pidfd >= 0 ? attempt->shim_pid : 0;
}

int attempt_fd(const struct attempt *attempt)
{
    return attempt->pidfd;
}

enum agent_task_state attempt_state(const struct attempt *attempt)
{
    return attempt->state;
}

struct usage *attempt_usage(struct attempt *attempt)
{
    return &attempt->usage;
}

/* --- what the server hears --- */

bool attempt_ship(struct attempt *attempt, struct link *link, int *again_ms, struct error *err)
{
    if (!attempt->tail)
        return true;
    switch (tail_ship(attempt->tail, link, &attempt->task, err)) {
    case TAIL_DONE:
        return true;
    case TAIL_MORE:
        *again_ms = 0;
        return false;
    case TAIL_FENCED:
        err->code = PRECONDITION;
        break;
    case TAIL_LATER:
        break;
    }
    *again_ms = -1;
    return false;
}

void attempt_report(const struct attempt *attempt, struct agent_task_report *report)
{
    const char *complaint = attempt->tail ? tail_complaint(attempt->tail) : "";
    *report = (struct agent_task_report){
        .task = attempt->task,
        .state = attempt->state,
        .pid = attempt->pid,
        .started_us = attempt->started_us,
        .ended_us = attempt->ended_us,
        .reason = attempt->reason,
        .exit_code = attempt->exit_code,
        .signal = attempt->exit_signal,
        .error = *attempt->error ? attempt->error : complaint,
        .step = -1,
    };
}

void attempt_clean(struct attempt *attempt, bool last)
{
    if (!attempt->folder)
        return;
    failpoint("agent.before_clean");
    users_take_back(attempt->folder, attempt->start, last);
    if (!folders_are_own(attempt->start))
        keep_events(attempt->folder, files_text(attempt->start, "job_folder"));
    /* A half-removed folder must not look like an attempt. */
    char *aside = alloc_printf("%s.tmp", attempt->folder);
    files_remove_folder(aside);
    bool moved = rename(attempt->folder, aside) == 0;
    failpoint("agent.folder_aside");
    files_remove_folder(moved ? aside : attempt->folder);
    free(aside);
}
