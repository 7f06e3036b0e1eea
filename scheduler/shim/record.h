/*
 * record.h - what the shim writes about itself and the task: shim.json, exit.json.
 *
 * A record is there whole or not at all: written aside, synced, renamed, folder synced; but for
 * what shim.json says of the task, which no power cut leaves running.  How the task ended is
 * known here alone, and the disk may be full by then: its room is taken before the task starts.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct record_identity { /* shim.json; a pid alone proves nothing */
    pid_t pid;
    const char *cookie;
    const char *cgroup; /* "" when there is none */
    pid_t task_pid;     /* 0 before the task runs */
    int64_t started_us;
};

struct record_exit { /* exit.json */
    int code;        /* -1 when a signal ended the task */
    int signal;      /* 0 when it exited by itself */
    bool oom;        /* killed for memory, by the kernel or by the shim */
    bool killed;     /* KILL was asked for while it ran */
    bool terminated; /* TERM was */
    bool refused;    /* it could not be run: there is no such program, or no such folder */
    int64_t started_us;
    int64_t ended_us;
    int64_t cpu_us;
    int64_t memory_bytes; /* the most that was resident at once */
    const char *error;    /* why it could not be started, or NULL */
};

bool record_identity_write(const struct record_identity *identity);

/* Takes the room of exit.json, once, as exit.json.tmp.  False: there is none, by errno. */
bool record_exit_reserve(void);

/*
 * Into that room; where it is gone or does not do (a task has removed it, the file system
 * writes nothing in place), into a new file, which needs room on the disk.  May be tried again.
 */
bool record_exit_write(const struct record_exit *record);

/* Wall clock, microseconds. */
int64_t record_now_us(void);
