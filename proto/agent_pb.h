/*
 * agent_pb.h - the messages of pb.Agent as plain structs, to and from bytes.
 *
 * One struct for each message of proto/trainyard/{agent,task}.proto, with the same fields; what
 * they mean is said there.
 *
 * X_pack() appends the serialized message to `out`; a NULL text is the empty one, a count of 0
 * needs no array.  X_unpack() fills a struct whose texts and arrays live in `arena` (texts are
 * never NULL); it fails with INVALID when the bytes are malformed or an enum is unknown, with
 * EXHAUSTED when they are over a limit.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct str;

/* --- the service --- */

#define AGENT_PATH_CERTIFY "/pb.Agent/Certify"
#define AGENT_PATH_JOIN "/pb.Agent/Join"
#define AGENT_PATH_SYNC "/pb.Agent/Sync"
#define AGENT_PATH_SHIP "/pb.Agent/Ship"
#define AGENT_PATH_FETCH "/pb.Agent/Fetch"
#define AGENT_PATH_MEET "/pb.Agent/Meet"

/* --- a task --- */

enum agent_task_state {
    AGENT_TASK_UNKNOWN = 0,
    AGENT_TASK_STARTING = 1,
    AGENT_TASK_RUNNING = 2,
    AGENT_TASK_EXITED = 3,
};

enum agent_exit_reason {
    AGENT_EXIT_NONE = 0,
    AGENT_EXIT_OK = 1,
    AGENT_EXIT_STOPPED = 2,
    AGENT_EXIT_USER = 3,
    AGENT_EXIT_CRASH = 4,
    AGENT_EXIT_MEMORY = 5,
    AGENT_EXIT_LOST = 6,
    AGENT_EXIT_START = 7,
};

struct agent_task_ref {
    int64_t job_id;
    int64_t attempt_epoch;
    const char *role;
    int index;
};

struct agent_task_address {
    const char *role;
    int index;
    const char *address;
};

struct agent_variable {
    const char *name;
    const char *value;
};

struct agent_secret {
    const char *name;
    const char *value;
    bool in_env; /* told as a variable of this name, too */
};

struct agent_file {
    const char *path;
    const char *sha256;
};

struct agent_program {
    const char *const *words;
    int words_count; /* 0: there is no program */
    const struct agent_variable *variables;
    int variables_count;
    const struct agent_secret *secrets;
    int secrets_count;
    const struct agent_file *files;
    int files_count;
    const char *folder;
    int tasks;
    const char *problem; /* why it cannot be started, or "" */
};

struct agent_start_task {
    struct agent_task_ref task;
    int attempt;
    const char *spec;
    const char *job_folder;
    const char *dataset_folder;
    int64_t cpu_millis;
    int64_t memory_bytes;
    int gpus;
    uint64_t gpu_mask; /* bit i: it holds GPU i of the node, or its part of it */
    int gpu_share;     /* thousandths of its one GPU; 0: its GPUs are its alone */
    const struct agent_task_address *cluster;
    int cluster_count;
    int tasks;            /* of the attempt */
    int64_t idle_seconds; /* serves clients until it was unused for so long; 0: it does not */
    int64_t stall_ms;     /* it is ended when it has written nothing for so long; 0: never */
    int restarts;         /* so often it is started again where it is when it falls */
    int64_t group_epoch; /* of its attempt, when its own is later: it was placed anew; else 0 */
    const char *server_folder_id;
    struct agent_program program;
};

struct agent_stop_task {
    struct agent_task_ref task;
    bool kill;
    int64_t grace_ms;
};

struct agent_task_report {
    struct agent_task_ref task;
    enum agent_task_state state;
    int64_t pid;
    int64_t started_us;
    int64_t ended_us;
    enum agent_exit_reason reason;
    int exit_code;
    int signal;
    const char *error;
    int64_t step;
};

/* --- join --- */

struct agent_resources {
    int64_t cpu_millis;
    int64_t memory_bytes;
    int gpus;
    const char *gpu_type;
    int64_t gpu_memory_bytes;
    uint64_t gpus_away; /* bit i: nothing is started on GPU i */
};

struct agent_label {
    const char *name;
    const char *value;
};

struct agent_join_request {
    const char *token;
    const char *node_name;
    const char *boot_id;
    const char *version;
    const char *identity;
    int64_t asked_us;
    struct agent_resources capacity;
    const struct agent_label *labels;
    int labels_count;
    const struct agent_task_report *tasks;
    int tasks_count;
};

struct agent_join_response {
    int64_t node_id;
    int64_t node_epoch;
    const char *node_key;
    const struct agent_task_ref *discard;
    int discard_count;
};

/* --- sync --- */

struct agent_sync_request {
    int64_t node_id;
    int64_t node_epoch;
    const char *node_key;
    const struct agent_task_report *reports;
    int reports_count;
    int64_t commands_done;
    int64_t asked_us;
};

enum agent_command_kind {
    AGENT_COMMAND_NONE, /* of a newer server: skip it */
    AGENT_COMMAND_START,
    AGENT_COMMAND_STOP,
};

struct agent_command {
    int64_t sequence;
    enum agent_command_kind kind;
    struct agent_start_task start; /* when kind is AGENT_COMMAND_START */
    struct agent_stop_task stop;   /* when kind is AGENT_COMMAND_STOP */
};

struct agent_sync_response {
    const struct agent_command *commands;
    int commands_count;
    const struct agent_task_ref *acknowledged;
    int acknowledged_count;
};

/* --- ship --- */

struct agent_ship_request {
    int64_t node_id;
    int64_t node_epoch;
    const char *node_key;
    struct agent_task_ref task;
    const char *file;
    int64_t offset;
    const void *data;
    size_t data_size;
    bool last;
    bool removed;
    int64_t
        group_epoch; /* of the server's, not sent: of the task's attempt; 0: as the task's */
};

struct agent_ship_response {
    int64_t offset;
};

/* --- to and from bytes --- */

void agent_join_request_pack(const struct agent_join_request *from, struct str *out);
void agent_join_response_pack(const struct agent_join_response *from, struct str *out);
void agent_sync_request_pack(const struct agent_sync_request *from, struct str *out);
void agent_sync_response_pack(const struct agent_sync_response *from, struct str *out);
void agent_ship_request_pack(const struct agent_ship_request *from, struct str *out);
void agent_ship_response_pack(const struct agent_ship_response *from, struct str *out);
void agent_start_task_pack(const struct agent_start_task *from, struct str *out);

bool agent_join_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_join_request *to, struct error *err) CHECKED;
bool agent_join_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_join_response *to, struct error *err) CHECKED;
bool agent_sync_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_sync_request *to, struct error *err) CHECKED;
bool agent_sync_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_sync_response *to, struct error *err) CHECKED;
bool agent_ship_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_ship_request *to, struct error *err) CHECKED;
bool agent_ship_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_ship_response *to, struct error *err) CHECKED;
bool agent_start_task_unpack(const void *bytes, size_t size, struct arena *arena,
                             struct agent_start_task *to, struct error *err) CHECKED;

/* --- words, for logs and the database --- */

/* "running", "exited"; "ok", "user", "crash". */
const char *agent_task_state_name(enum agent_task_state state);
const char *agent_exit_reason_name(enum agent_exit_reason reason);

/* True when both name the same task of the same attempt. */
bool agent_task_ref_equal(const struct agent_task_ref *a, const struct agent_task_ref *b);

#include "proto/agent_program_pb.h"
