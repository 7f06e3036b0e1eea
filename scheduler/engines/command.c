/* command.c - runs a program of the engine's, with bounds. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/engines/command.h"

#define LOOK_MS 50 /* how soon an early end is seen */
#define COMPLAINT_MAX 400

/* A program that runs; its output and complaints come by pipes. */
struct child {
    pid_t pid;
    int in; /* -1: closed */
    int out;
    int complaints;
};

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void pipes_close(int pipes[3][2])
{
    for (int i = 0; i < 6; i++)
        close_one(&pipes[i / 2][i % 2]);
}

static bool pipes_open(int pipes[3][2], struct error *err)
{
    for (int i = 0; i < 3; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) < 0) {
            error_errno(err, EXHAUSTED, "pipe");
            pipes_close(pipes);
            return false;
        }
    }
    return true;
}

static bool start(const struct command *command, struct child *child, struct error *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    if (!pipes_open(pipes, err))
        return false;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, pipes[0][0], 0);
    posix_spawn_file_actions_adddup2(&files, pipes[1][1], 1);
    posix_spawn_file_actions_adddup2(&files, pipes[2][1], 2);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    char *const *environment = command->environment ? command->environment : environ;
    int failed = posix_spawnp(&child->pid, command->words[0], &files, &attributes,
                              command->words, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (failed) {
        pipes_close(pipes);
        errno = failed;
        return error_errno(err, INTERNAL, "cannot run %s", command->words[0]);
    }
    child->in = pipes[0][1];
    child->out = pipes[1][0];
    child->complaints = pipes[2][0];
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    return true;
}

/* What can be read now; closes at its end.  No more than `most` is kept. */
static bool take(int *fd, struct str *into, size_t most)
{
    char bytes[16384];
    ssize_t got = read(*fd, bytes, sizeof(bytes));
    if (got <= 0) {
        if (got == 0 || errno != EINTR)
            close_one(fd);
        return true;
    }
    size_t room = into->size < most ? most - into->size : 0;
    str_add_bytes(into, bytes, (size_t)got < room ? (size_t)got : room);
    return (size_t)got <= room;
}

static void give(int *fd, const char **input)
{
    size_t left = *input ? strlen(*input) : 0;
    ssize_t given = left ? write(*fd, *input, left) : 0;
    if (given > 0)
        *input += given;
    if (!left || (given < 0 && errno != EAGAIN && errno != EINTR))
        close_one(fd);
}

/* Until it has closed its output; false when it is to be killed. */
static bool talk(const struct command *command, struct child *child, struct str *out,
                 struct str *complaints, struct error *err)
{
    const char *input = command->input;
    uint64_t end_us = clock_monotonic_us() + (uint64_t)command->timeout_ms * 1000;
    while (child->out >= 0 || child->complaints >= 0) {
        struct pollfd polls[] = {
            {child->out, POLLIN, 0}, {child->complaints, POLLIN, 0}, {child->in, POLLOUT, 0}};
        poll(polls, 3, LOOK_MS);
        if (polls[2].revents)
            give(&child->in, &input);
        if (polls[0].revents && !take(&child->out, out, COMMAND_OUTPUT_MAX))
            return fail(err, EXHAUSTED, "%s writes more than %d bytes", command->words[0],
                        COMMAND_OUTPUT_MAX);
        if (polls[1].revents && !take(&child->complaints, complaints, COMPLAINT_MAX))
            continue; /* the first words are enough */
        if (command->stop && atomic_load(command->stop))
            return fail(err, CANCELLED, "%s: the server is ending", command->words[0]);
        if (clock_monotonic_us() >= end_us)
            return fail(err, DEADLINE, "%s did not end within %d ms", command->words[0],
                        command->timeout_ms);
    }
    return true;
}

bool command_run(const struct command *command, struct str *out, struct error *err)
{
    struct child child = {.in = -1, .out = -1, .complaints = -1};
    struct str complaints = {0};
    char quoted[COMPLAINT_MAX * 2];
    if (!start(command, &child, err))
        return false;
    bool ok = talk(command, &child, out, &complaints, err);
    close_one(&child.in);
    close_one(&child.out);
    close_one(&child.complaints);
    /* It may have children, or have closed its output without ending. */
    if (!ok)
        kill(-child.pid, SIGKILL);
    int status = 0;
    for (int tries = 0; waitpid(child.pid, &status, tries < 100 ? WNOHANG : 0) == 0; tries++) {
        if (tries == 99)
            kill(-child.pid, SIGKILL);
        usleep(tries < 20 ? 1000 : 10000);
    }
    if (ok && (!WIFEXITED(status) || WEXITSTATUS(status)))
        ok = fail(err, UNAVAILABLE, "%s failed: %s", command->words[0],
                  complaints.size ? log_quote(str_text(&complaints), quoted, sizeof(quoted))
                                  : "it says nothing");
    str_release(&complaints);
    return ok;
}
