/*
 * core.h - what an agent decides: which orders it carries out and which it has carried out
 * before, what it tells of its tasks and when, when it kills, and when it forgets.
 *
 * Pure, as the scheduler is: no clock, file, process or socket is looked at.  work.c tells what
 * has happened and does what is said here, and so does the simulator (tests/sim) with machines
 * that do not exist.  What must survive an agent is the machine's to keep: a core begins with
 * the tasks that were found there.
 */
#pragma once

#include "base/error.h"
#include "proto/agent_pb.h"

struct attempt;

struct core_task { /* of one attempt, from its order until its end is stored by the server */
    struct agent_task_ref task; /* borrows the attempt's role */
    struct attempt *attempt;    /* the machine's, never looked into */
    enum agent_task_state state;
    bool to_ship;        /* something may have been written */
    uint64_t ship_us;    /* not before: the server has no room; 0 */
    bool to_report;      /* something is to be said */
    bool discarded;      /* superseded: killed; nothing but its end is told */
    bool unproven;       /* has ended, but its GPUs may still have processes of it */
    uint64_t ended_us;   /* when that was seen */
    bool said_ended;     /* that its process has ended, before its end could be told */
    uint64_t said_us;    /* when it was last reported, 0 */
    uint64_t kill_at_us; /* it was asked to end, and is killed then; 0 */
};

struct core {
    int64_t epoch;           /* of the session; 0: there is none */
    int64_t commands_done;   /* of this session */
    uint64_t joined_us;      /* 0: never */
    int retry_ms;            /* doubles with each failure */
    uint64_t quiet_until_us; /* no calls to the server before */
    unsigned random;
    struct core_task *tasks;
    int tasks_count;
    int tasks_capacity;
};

enum core_order {
    CORE_NOTHING,
    CORE_START,   /* make the attempt, and core_add() it */
    CORE_UNKNOWN, /* as CORE_START, but it has ended: nobody here knows of it */
    CORE_CANCEL,  /* it is not started any more */
    CORE_TERM,    /* ask it to end */
    CORE_KILL,
};

void core_release(struct core *core);

/* --- tasks --- */

/* The task is held from now on; all of it is to be shipped and told. */
struct core_task *core_add(struct core *core, const struct agent_task_ref *task,
                           struct attempt *attempt, enum agent_task_state state,
                           uint64_t now_us);
struct core_task *core_find(struct core *core, const struct agent_task_ref *task); /* or NULL */
void core_remove(struct core *core, struct core_task *task);

/* Whether no other task of its job is held. */
bool core_is_last(const struct core *core, const struct core_task *task);

/* The machine says how it is; true when that is news. */
bool core_sees(struct core_task *task, enum agent_task_state state, uint64_t now_us);

/* Whether it is to be started when what it needs is there; to be shipped now. */
bool core_launches(const struct core_task *task);
bool core_ships(const struct core_task *task, uint64_t now_us);

/* The server has no room for what the task wrote; what others are to do may still be done. */
void core_no_room(struct core_task *task, uint64_t now_us);

/* CORE_KILL when the time to end by itself is up. */
enum core_order core_expires(struct core_task *task, uint64_t now_us);

/* --- what the server says --- */

/* What it means for `*task`, NULL when that is not held.  Each command counts once. */
enum core_order core_command(struct core *core, const struct agent_command *command,
                             uint64_t now_us, struct core_task **task);

/* The server has given the task up, or never knew it. */
enum core_order core_discard(struct core_task *task);

/* The task whose end is stored, and may be forgotten; NULL: there is none, or it runs. */
struct core_task *core_acknowledged(struct core *core, const struct agent_task_ref *task);

/* A session begins. */
void core_joined(struct core *core, int64_t epoch, uint64_t now_us);

/* What a join or a report tells of a task: no end before all that it wrote.  That its process
 * has ended (agent_task_report.ended_us) is told all the same, when the rest takes a while:
 * nobody is to take it for one that cannot be killed. */
enum agent_task_state core_tells_as(const struct core_task *task);

/* The session is over by the agent's own choice. */
void core_leave(struct core *core);

/* --- what is said to the server --- */

/* Whether the task has something to say at this time. */
bool core_is_news(const struct core_task *task, uint64_t now_us);

/* The server has answered a report of the task in `state`, said at `said_us`. */
void core_told(struct core_task *task, enum agent_task_state state, uint64_t said_us);

/* --- calls --- */

bool core_is_quiet(const struct core *core, uint64_t now_us);
void core_answered(struct core *core);

/* A call failed: true when the session is over, else the server is left alone for a while. */
bool core_failed(struct core *core, enum error_code code, uint64_t now_us);

/* No calls for a random time, at most 2 s, which doubles with each time that it was over and a
 * call failed again; or none any more. */
void core_back_off(struct core *core, uint64_t now_us);
void core_give_up(struct core *core);

/* When to look again at the latest; UINT64_MAX: only when something happens. */
uint64_t core_wake_us(const struct core *core, uint64_t now_us);
