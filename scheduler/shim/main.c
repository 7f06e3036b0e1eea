/*
 * main.c - trainyard-shim: owns the processes of one task, so that agent and server may die.
 *
 *   trainyard-shim --folder DIR --cookie C [--memory BYTES] [--log-limit BYTES]
 *                  [--workdir DIR] [--user UID:GROUP] [--restarts N]
 *                  [--private task|group|tmp] [--hide DIR] [--show PATH] [--named PATH]
 *                  -- PROGRAM [ARG]...
 *   trainyard-shim --private probe
 *
 * Goes into the background and returns once shim.json is written: 0 when the task is on its
 * way, 3 when DIR has had its task already, 1 with a line on stderr when the shim cannot work
 * there. A folder runs a task once: that makes a repeated start harmless, also while the first
 * is on its way still; it waits for that one's shim.json.
 * With --restarts a task that falls (by a signal, or with a code of no outcome of its own: all
 * but 0, 2 and 3) is started again up to N times, in the same folder; the last end counts.
 * With --private its /tmp is DIR/tmp, and the folders of --hide are empty to it but for the
 * paths of --show (private.h); of a `group`, /dev/shm stays the machine's; `tmp` is $TMPDIR
 * alone, as it is where the system allows no more.  `probe` exits with 0 where it does, else
 * with an errno.
 *
 * DESIGN: one thread, one poll loop; libc alone.  The shim is the reaper of all that the task
 * forks.  When the task's first process ends, the rest are killed; when none is left to reap,
 * exit.json is written, and the shim goes.  Environment and standard input are as given.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "scheduler/shim/capture.h"
#include "scheduler/shim/control.h"
#include "scheduler/shim/filter.h"
#include "scheduler/shim/group.h"
#include "scheduler/shim/mask.h"
#include "scheduler/shim/options.h"
#include "scheduler/shim/private.h"
#include "scheduler/shim/record.h"

#define WATCH_MS 500                 /* between looks at the memory of the task */
#define REAP_MS 100                  /* between attempts to kill what is left of it */
#define TELL_MS 1000                 /* between attempts to write how it ended */
#define FOLDER_MS 2000               /* between looks whether the folder is still there */
#define USER_FAILED INT_MIN          /* in place of an errno, ... */
#define PRIVATE_FAILED (INT_MIN / 2) /* ... or below it by one */
#define CLAIM_MS 60000       /* for another shim to write its shim.json, or to die; ... */
#define CLAIM_LOOK_MS 5      /* ... between looks */
#define RESTART_FIRST_MS 500 /* before a task that fell is started again; doubles ... */
#define RESTART_MAX_MS 30000 /* ... up to this */

enum { SHIM_STARTED = 0, SHIM_FAILED = 1, SHIM_ALREADY = 3 };

struct shim {
    struct options options;
    int restarts; /* that are left */
    int restarted;
    bool resting; /* it fell, and will be started again */

    int signals; /* signalfd */
    struct control control;
    struct mask mask; /* the task's secrets */
    struct capture output;
    struct capture errors;
    pid_t pid; /* of the task's first process */
    bool ended;
    bool all_gone;
    bool telling;  /* it is over; its end is being written, ... */
    bool given_up; /* ... and nobody wants it any more */
    struct record_exit outcome;
    char error[1000];
};

static bool say(const char *what)
{
    fprintf(stderr, "trainyard-shim: %s: %s\n", what, strerror(errno));
    return false;
}

/* --- starting --- */

/* Leaves the starter behind; it waits on the pipe for the byte that is its exit status. */
static int detach(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid > 0) {
        char status = SHIM_FAILED;
        close(ends[1]);
        while (read(ends[0], &status, 1) < 0 && errno == EINTR) {
        }
        _exit(status);
    }
    close(ends[0]);
    setsid();
    return ends[1];
}

/*
 * The folder is ours alone as long as this process lives.  Another shim may have it and not
 * have said so yet: who started it died, and its disk is slow.
 */
static int folder_claim(const char *folder)
{
    umask(077);
    if (chdir(folder)) {
        say(folder);
        return SHIM_FAILED;
    }
    int lock = open("shim.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        say("shim.lock");
        return SHIM_FAILED;
    }
    for (int looks = 0; looks <= CLAIM_MS / CLAIM_LOOK_MS; looks++) {
        bool locked = flock(lock, LOCK_EX | LOCK_NB) == 0;
        if (access("shim.json", F_OK) == 0)
            return SHIM_ALREADY;
        if (locked)
            return SHIM_STARTED; /* the lock is held until the process ends */
        poll(NULL, 0, CLAIM_LOOK_MS);
    }
    errno = ETIMEDOUT;
    say("another shim has shim.lock and writes no shim.json");
    return SHIM_FAILED;
}

static bool signals_open(struct shim *shim)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    shim->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return shim->signals >= 0;
}

/* For good: no program that it starts gets more again. */
static bool become_user(const struct shim *shim)
{
    return setgroups(1, &shim->options.group) == 0 &&
           setresgid(shim->options.user, shim->options.user, shim->options.user) == 0 &&
           setresuid(shim->options.user, shim->options.user, shim->options.user) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           (filter_enter() || errno == ENOSYS || errno == EINVAL); /* no such kernel */
}

/* The rest of the child: becomes the task, or says into `report` why it could not. */
static void become_task(struct shim *shim, pid_t parent, int output, int errors, int report)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0 && write(score, "500", 3) < 0) {
        /* Then it is killed for memory no sooner than others. */
    }
    group_enter();
    dup2(output, 1);
    dup2(errors, 2);
    dup2(report, 3);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    close_range(4, ~0U, 0);
    int why = 0;
    if (shim->options.own_tmp && !private_become(&shim->options.view, shim->options.folder,
                                                 shim->options.user, shim->options.group))
        why = PRIVATE_FAILED - errno;
    if (!why && shim->options.user &&
        (fchown(1, shim->options.user, shim->options.user) || /* for /dev/stdout */
         fchown(2, shim->options.user, shim->options.user) || !become_user(shim)))
        why = USER_FAILED;
    /* Nobody would hear of its end if it outlived the shim; a change of user forgets it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before it was asked for */
        _exit(127);
    if (!why && shim->options.workdir && chdir(shim->options.workdir))
        why = -errno; /* below 0: it was the folder */
    if (!why) {
        execvp(shim->options.command[0], shim->options.command);
        why = errno;
    }
    if (write(3, &why, sizeof(why)) < 0) {
        /* The exit code says nearly as much. */
    }
    _exit(127);
}

/* Forks the task.  When it cannot be run the outcome says so, and it counts as ended. */
static void task_start(struct shim *shim)
{
    int report[2];
    int output =
        capture_open(&shim->output, "stdout.log", shim->options.log_bytes, &shim->mask);
    int errors =
        capture_open(&shim->errors, "stderr.log", shim->options.log_bytes, &shim->mask);
    shim->outcome.started_us = record_now_us();
    pid_t parent = getpid();
    int why = 0;
    bool forked = false;
    if (output < 0 || errors < 0 ||
        (shim->options.own_tmp && !private_make_tmp(shim->options.user)) ||
        pipe2(report, O_CLOEXEC) || (shim->pid = fork()) < 0) {
        why = errno;
        shim->pid = 0;
    } else if (shim->pid == 0) {
        become_task(shim, parent, output, errors, report[1]);
    } else {
        forked = true;
        close(report[1]);
        if (read(report[0], &why, sizeof(why)) != (ssize_t)sizeof(why))
            why = 0;
        close(report[0]);
    }
    if (output >= 0)
        close(output);
    if (errors >= 0)
        close(errors);
    if (!why)
        return;
    bool system = why <= PRIVATE_FAILED;
    if (why == USER_FAILED)
        snprintf(shim->error, sizeof(shim->error),
                 "cannot start a task as user %u: this machine does not let the agent",
                 shim->options.user);
    else if (why <= PRIVATE_FAILED)
        snprintf(shim->error, sizeof(shim->error), "cannot make folders of the task's own: %s",
                 strerror(PRIVATE_FAILED - why));
    else if (why < 0)
        snprintf(shim->error, sizeof(shim->error), "cannot go to the folder %.500s: %s",
                 shim->options.workdir, strerror(-why));
    else
        snprintf(shim->error, sizeof(shim->error), "cannot run %.500s: %s",
                 shim->options.command[0], strerror(why));
    shim->outcome.error = shim->error;
    shim->outcome.refused = forked && !system;
    shim->outcome.code = 127;
    shim->outcome.ended_us = record_now_us();
    shim->ended = true;
}

/* --- while it runs --- */

static void reap(struct shim *shim)
{
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            shim->all_gone = true; /* ECHILD: orphans would have become ours */
        if (pid <= 0)
            return;
        if (pid != shim->pid || shim->ended)
            continue;
        shim->ended = true;
        shim->outcome.ended_us = record_now_us();
        shim->outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        shim->outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        shim->outcome.cpu_us +=
            ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
            usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
        if ((int64_t)usage.ru_maxrss * 1024 > shim->outcome.memory_bytes)
            shim->outcome.memory_bytes = (int64_t)usage.ru_maxrss * 1024;
        shim->outcome.oom = shim->outcome.oom || group_oom();
    }
}

static void task_term(struct shim *shim)
{
    shim->outcome.terminated = shim->outcome.terminated || !shim->ended || shim->resting;
    shim->restarts = 0;
    if (!shim->ended)
        kill(-shim->pid, SIGTERM);
}

static void task_kill(struct shim *shim)
{
    shim->outcome.killed = shim->outcome.killed || !shim->ended || shim->resting;
    shim->given_up = shim->telling;
    shim->restarts = 0;
    group_kill();
}

static void serve_signals(struct shim *shim)
{
    struct signalfd_siginfo info;
    while (read(shim->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD)
            task_term(shim); /* the machine goes down, most likely */
    }
    reap(shim);
}

static void serve_control(struct shim *shim, int index)
{
    char line[160];
    switch (control_read(&shim->control, index)) {
    case CONTROL_TERM:
        task_term(shim);
        break;
    case CONTROL_KILL:
        task_kill(shim);
        break;
    case CONTROL_STATUS:
        snprintf(line, sizeof(line), "{\"state\": \"%s\", \"pid\": %d, \"cookie\": \"%s\"}\n",
                 shim->ended ? "ending" : "running", (int)shim->pid, shim->options.cookie);
        control_reply(&shim->control, index, line);
        return;
    case CONTROL_NONE:
        return;
    }
    control_reply(&shim->control, index, "OK\n");
}

static void watch_memory(struct shim *shim)
{
    if (shim->ended || !group_needs_watch() || group_memory() <= shim->options.memory_bytes)
        return;
    shim->outcome.oom = true;
    group_kill();
}

/* Whether somebody has removed it: nobody would find the task any more, nor its end. */
static bool folder_is_gone(void)
{
    struct stat info;
    return stat(".", &info) == 0 && info.st_nlink == 0;
}

/* Waits for something and serves it. */
static void serve(struct shim *shim)
{
    struct control *control = &shim->control;
    struct pollfd fds[4 + CONTROL_CONNECTIONS] = {
        {.fd = shim->signals, .events = POLLIN},
        {.fd = shim->output.pipe, .events = POLLIN},
        {.fd = shim->errors.pipe, .events = POLLIN},
        {.fd = control->listener, .events = POLLIN},
    };
    for (int i = 0; i < CONTROL_CONNECTIONS; i++)
        fds[4 + i] = (struct pollfd){.fd = control->connections[i].fd, .events = POLLIN};
    int wait_ms = shim->telling         ? TELL_MS
                  : shim->ended         ? REAP_MS
                  : group_needs_watch() ? WATCH_MS
                                        : FOLDER_MS;
    if (poll(fds, (nfds_t)ARRAY_LEN(fds), wait_ms) < 0)
        return;
    if (fds[1].revents)
        capture_read(&shim->output);
    if (fds[2].revents)
        capture_read(&shim->errors);
    if (fds[0].revents)
        serve_signals(shim);
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
        if (fds[4 + i].revents)
            serve_control(shim, i);
    }
    if (fds[3].revents)
        control_accept(control);
    watch_memory(shim);
    if (!shim->ended && folder_is_gone())
        task_kill(shim);
}

/* --- the whole --- */

/* The task cannot be started: exit.json will say it. */
static int refuse(struct shim *shim, const char *what)
{
    snprintf(shim->error, sizeof(shim->error), "%s: %s", what, strerror(errno));
    shim->outcome = (struct record_exit){.code = 127, .error = shim->error};
    shim->ended = true;
    return SHIM_STARTED;
}

static bool has_fallen(const struct shim *shim)
{
    const struct record_exit *end = &shim->outcome;
    bool by_itself = !end->signal && (end->code == 0 || end->code == 2 || end->code == 3);
    return !by_itself && !end->oom && !end->killed && !end->terminated && !end->error;
}

static void tell_restart(const struct shim *shim)
{
    const struct record_exit *end = &shim->outcome;
    int file = open("stderr.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    dprintf(file, "[trainyard: the task ended %s %d; it is started again, %d times more]\n",
            end->signal ? "by signal" : "with code", end->signal ? end->signal : end->code,
            shim->restarts);
    close(file);
}

/* Starts a task that fell again, after a while.  False: that is its end. */
static bool restart(struct shim *shim, struct record_identity *identity)
{
    if (!shim->restarts || !has_fallen(shim) || folder_is_gone())
        return false;
    int64_t wait_ms = (int64_t)RESTART_FIRST_MS
                      << (shim->restarted < 16 ? shim->restarted : 16);
    if (wait_ms > RESTART_MAX_MS)
        wait_ms = RESTART_MAX_MS;
    shim->restarts--;
    shim->restarted++;
    tell_restart(shim);
    shim->resting = true;
    int64_t until_us = record_now_us() + wait_ms * 1000;
    while (record_now_us() < until_us && !shim->outcome.terminated && !shim->outcome.killed)
        serve(shim);
    shim->resting = false;
    if (shim->outcome.terminated || shim->outcome.killed)
        return false;
    unlink("error.json"); /* of the run that fell */
    shim->outcome = (struct record_exit){.cpu_us = shim->outcome.cpu_us,
                                         .memory_bytes = shim->outcome.memory_bytes};
    shim->ended = shim->all_gone = false;
    task_start(shim);
    identity->task_pid = shim->pid;
    (void)record_identity_write(identity);
    return true;
}

/* Runs the task to its end, and to that of all that it has left behind. */
static void run(struct shim *shim)
{
    while (!shim->ended)
        serve(shim);
    failpoint("shim.task_ended");
    reap(shim);
    while (!shim->all_gone) {
        group_kill();
        serve(shim);
        reap(shim);
    }
    capture_close(&shim->output);
    capture_close(&shim->errors);
}

/*
 * Writes exit.json.  Where its room was not kept and the disk is full, that is tried until it
 * works: nobody else knows how the task ended.  Who removes the folder, or kills what is left,
 * does not want to know.
 */
static bool tell_end(struct shim *shim)
{
    bool written = record_exit_write(&shim->outcome);
    shim->telling = true;
    while (!written && !folder_is_gone() && !shim->given_up) {
        serve(shim);
        written = record_exit_write(&shim->outcome);
    }
    return written;
}

/* Everything up to the task's start; the result is the starter's exit status. */
static int shim_start(struct shim *shim, struct record_identity *identity)
{
    int claimed = folder_claim(shim->options.folder);
    if (claimed != SHIM_STARTED)
        return claimed;
    failpoint("shim.claimed");
    if (!record_exit_reserve()) {
        say("exit.json");
        return SHIM_FAILED;
    }
    *identity = (struct record_identity){.pid = getpid(),
                                         .cookie = shim->options.cookie,
                                         .cgroup = "",
                                         .started_us = record_now_us()};
    if (!record_identity_write(identity)) {
        say("shim.json");
        return SHIM_FAILED;
    }
    failpoint("shim.after_identity");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!signals_open(shim) || !control_open(&shim->control))
        return refuse(shim, "the shim cannot make control.sock");
    if (!mask_open(&shim->mask)) /* what cannot be masked is not told */
        return refuse(shim, "the shim cannot read the secrets");
    group_open(shim->options.no_cgroup ? NULL : shim->options.cookie,
               shim->options.memory_bytes);
    failpoint("shim.before_task");
    task_start(shim);
    failpoint("shim.after_task");
    identity->cgroup = group_folder();
    identity->task_pid = shim->pid;
    identity->started_us = shim->outcome.started_us;
    (void)record_identity_write(identity);
    return SHIM_STARTED;
}

int main(int count, char **arguments)
{
    if (!failpoint_arm())
        return 2;
    struct shim shim = {
        .signals = -1, .output = {.pipe = -1, .file = -1}, .errors = {.pipe = -1, .file = -1}};
    if (count == 3 && !strcmp(arguments[1], "--private") && !strcmp(arguments[2], "probe"))
        return private_probe();
    if (!options_parse(&shim.options, count, arguments)) {
        fputs(options_usage, stderr);
        return 2;
    }
    shim.restarts = shim.options.restarts;
    int starter = detach();
    if (starter < 0) {
        say("cannot go into the background");
        return SHIM_FAILED;
    }
    struct record_identity identity;
    char status = (char)shim_start(&shim, &identity);
    failpoint("shim.before_reply");
    if (write(starter, &status, 1) < 0) {
        /* The starter was killed; the task runs all the same. */
    }
    close(starter);
    if (status != SHIM_STARTED)
        return status;

    do
        run(&shim);
    while (restart(&shim, &identity));
    mask_close(&shim.mask); /* secrets do not outlive the task */
    group_close();
    failpoint("shim.before_exit_record");
    bool written = tell_end(&shim);
    failpoint("shim.after_exit_record");
    control_close(&shim.control);
    return written ? 0 : 1;
}
