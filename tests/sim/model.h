/*
 * model.h - the parts of the simulated world, as its files see each other.
 */
#pragma once

#include "base/arena.h"
#include "scheduler/agent/core.h"
#include "scheduler/agent/cursor.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

struct ref {
    int64_t job;
    int64_t epoch;
    char role[SCHEDULER_ROLE_BYTES];
    int index;
};

struct command {
    int64_t sequence;
    bool start;
    bool kill;
    struct ref task;
    struct scheduler_resources resources;
    int gpu_share;
    uint64_t gpu_mask;
    uint64_t grace_us;
};

enum message_kind {
    SAYS_JOIN,
    SAYS_JOINED,
    SAYS_SYNC,
    SAYS_SYNCED,
    SAYS_SHIP,
    SAYS_SHIPPED,
    SAYS_FENCED,
};

/* Lives in the world's arena; never changed once sent. */
struct message {
    enum message_kind kind;
    int node; /* index */
    int64_t epoch;
    int64_t done;
    const struct scheduler_report *reports;
    int reports_count;
    const struct command *commands;
    int commands_count;
    const struct ref *tasks; /* acknowledged, or to discard */
    int tasks_count;
    const struct message *request; /* of an answer */
    const char *boot_id;           /* of a join */
    uint64_t gpus_away;            /* of a join */
    uint64_t asked_us;
    int file; /* of a ship: index of world.files ... */
    int64_t offset;
    const char *bytes; /* ... from `offset` on; none: how far is it stored? */
    size_t size;
    int64_t stored; /* of its answer */
};

/*
 * A task on a node: what lies on its disk, and the process.  It writes one file, a log or one
 * of records, in which stands which file it is, and again and again how far it has come.
 */
struct attempt {
    struct ref task;
    struct scheduler_resources resources;
    int gpu_share;
    uint64_t gpu_mask;
    enum agent_task_state state;
    enum exit_reason reason;
    bool alive;       /* there is a process */
    bool hangs;       /* it does not end by itself, nor by TERM */
    bool unkillable;  /* nor by KILL, ... */
    bool killed;      /* ... which waits for it */
    bool unknown;     /* nothing is on the disk: forgotten with the agent */
    int file;         /* index of world.files */
    int first_step;   /* of its records */
    uint64_t runs_us; /* since when it writes */
    int64_t bytes;    /* that it has written, once it has ended */

    struct cursor cursor; /* the agent's: forgotten with it, as the next is */
    int64_t seen;         /* bytes that the agent knows to be written */
};

struct agent {
    bool machine_up;
    bool agent_up;
    int boots;
    struct core core;
    const struct message *call; /* that waits for its answer: one at a time; NULL */
    struct scheduler_resources capacity;
    const char *gpu_type;
    int64_t gpu_memory_bytes;
    uint64_t gpus_away;                       /* bit i: GPU i is lost, or others use it */
    uint64_t gpu_free_us[SCHEDULER_GPUS_MAX]; /* until then what has ended may still be on it */
    const struct scheduler_label *labels;
    int labels_count;
    struct attempt **attempts; /* on its disk, in the order in which they came */
    int attempts_count;
    int attempts_capacity;
    uint64_t cut_to_us;   /* until then nothing goes to the server */
    uint64_t cut_from_us; /* ... or comes from it */
    uint64_t door_us;     /* when its newest message came to a server that stood still */
};

/* Whether the file with this index is a log. */
static inline bool file_is_log(int file)
{
    return file % 3 == 0;
}

struct session {
    int64_t epoch;
    int64_t last_sequence;
    struct command *commands;
    int commands_count;
    int commands_capacity;
    struct ref *acknowledged;
    int acknowledged_count;
    int acknowledged_capacity;
};

enum happening_kind {
    AT_SERVER, /* a message arrives */
    AT_AGENT,  /* a message arrives */
    SERVER_TICK,
    SERVER_UP,
    AGENT_SYNC,
    AGENT_UP,
    MACHINE_UP,
    PROCESS_RUNS,
    PROCESS_ENDS,
    PROCESS_KILLED,
    CLIENT_SUBMITS,
    USER_ACTS,
    FAULT_STRIKES,
    HEAL,
};

struct happening {
    uint64_t at_us;
    uint64_t order;
    enum happening_kind kind;
    int node;
    const struct message *message;
    struct ref task;
    enum exit_reason reason;
    int64_t number;
};

struct world {
    struct random random;
    struct arena *arena;
    bool trace;
    uint64_t now_us;
    uint64_t heal_us;
    bool healed;
    uint32_t faults; /* BIT(enum fault) */

    struct happening *heap;
    int heap_count;
    int heap_capacity;
    uint64_t order;
    int events;

    struct store store;
    struct disk *disk; /* NULL: the store alone */
    struct scheduler_options options;
    struct scheduler *scheduler; /* NULL: the server is down */
    struct scheduler_actions actions;
    uint64_t stalled_until_us;
    uint64_t stalled_us;       /* how long the newest stall lasts */
    struct partials *partials; /* in the memory of a server that is up */
    struct session sessions[STORE_NODES_MAX];
    const struct scheduler_node_info *joining; /* in this batch */
    int64_t gone;                              /* in this batch: the node that is said to be */

    struct agent agents[STORE_NODES_MAX];
    int agents_count;

    struct store_job *jobs; /* what clients will submit */
    bool *acked;            /* the client was told */
    int jobs_count;
    struct ref *files; /* every task that ever got a process: each writes one */
    int files_count;
    int files_capacity;
};

/* --- world.c --- */

void world_trace(const struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);
bool world_fault(struct world *world, enum fault fault, int percent);
struct happening *world_later(struct world *world, uint64_t in_us, enum happening_kind kind);

/* Sends, through the faults of the network. */
void world_send(struct world *world, bool to_server, const struct message *message);

bool ref_equal(const struct ref *a, const struct ref *b);

/* --- server.c --- */

void server_boot(struct world *world);
void server_crash(struct world *world, const char *why);
void server_message(struct world *world, const struct message *message);
void server_tick(struct world *world);
void server_submit(struct world *world, int64_t index);
void server_user(struct world *world, const struct scheduler_event *event);

/* --- machine.c --- */

void machine_crash(struct world *world, int node);
void machine_boot(struct world *world, int node);
void gpus_change(struct world *world, int node, uint64_t away);

/* What could not be killed can be; the last job here with a task that hangs, 0: there is none.
 */
int64_t machine_heal(struct world *world, int node);

/* NULL: nothing lies there. */
struct attempt *attempt_find(const struct agent *agent, const struct ref *task);
struct attempt *attempt_add(struct world *world, struct agent *agent, const struct ref *task);
void attempt_remove(struct agent *agent, const struct attempt *attempt);
void attempt_end(struct world *world, struct attempt *attempt, enum exit_reason reason);

/* How much it has written; the bytes from `offset` on, in the world's arena. */
int64_t attempt_written(const struct world *world, const struct attempt *attempt);
const char *attempt_read(struct world *world, const struct attempt *attempt, int64_t offset,
                         size_t size);

struct attempt *process_start(struct world *world, int node, const struct command *command);
void process_later(struct world *world, int node, const struct ref *task,
                   enum happening_kind kind, enum exit_reason reason, uint64_t in_us);
void process_runs(struct world *world, int node, const struct ref *task);
void process_ends(struct world *world, int node, const struct ref *task,
                  enum exit_reason reason, bool killed);

/* The first of its tasks that is not forgotten; NULL: none. */
const struct attempt *agent_holds(const struct agent *agent);

/* Whether the task has a process there. */
bool agent_runs(const struct agent *agent, const struct ref *task);

/* --- agent.c --- */

void agent_message(struct world *world, const struct message *message);
void agent_turn(struct world *world, int node, bool heartbeat);
void agent_boot(struct world *world, int node);
void agent_crash(struct world *world, int node);
void agent_forget(struct agent *agent); /* what was in its memory */
void agent_release(struct agent *agent);
