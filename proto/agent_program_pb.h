/*
 * agent_program_pb.h - what agents ask for to run a task: files, and the others' addresses.  A
 * part of agent_pb.h, which includes it.
 */
#pragma once

#include "proto/agent_pb.h"

/* --- fetch --- */

enum agent_fetch_kind {
    AGENT_FETCH_FILE = 0,
    AGENT_FETCH_DATASET = 1,
    AGENT_FETCH_CHECKPOINTS = 2,
};

struct agent_fetch_what {
    enum agent_fetch_kind kind;
    const char *sha256;
    const char *path;
    int64_t job;
};

struct agent_fetch_request {
    int64_t node_id;
    int64_t node_epoch;
    const char *node_key;
    struct agent_task_ref task;
    struct agent_fetch_what what;
    int64_t offset;
};

struct agent_fetch_response {
    const void *data;
    size_t data_size;
};

/* --- meet --- */

struct agent_meet_request {
    int64_t node_id;
    int64_t node_epoch;
    const char *node_key;
    struct agent_task_ref task;
    const char *host;
    int port;
};

struct agent_meet_response {
    const struct agent_task_address *cluster;
    int cluster_count;
    const char *certificate; /* PEM, or "" */
    const char *key;
};

/* --- to and from bytes, as agent_pb.h says --- */

void agent_fetch_request_pack(const struct agent_fetch_request *from, struct str *out);
void agent_fetch_response_pack(const struct agent_fetch_response *from, struct str *out);
void agent_meet_request_pack(const struct agent_meet_request *from, struct str *out);
void agent_meet_response_pack(const struct agent_meet_response *from, struct str *out);
bool agent_fetch_request_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_fetch_request *to, struct error *err) CHECKED;
bool agent_fetch_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                 struct agent_fetch_response *to, struct error *err) CHECKED;
bool agent_meet_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_meet_request *to, struct error *err) CHECKED;
bool agent_meet_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_meet_response *to, struct error *err) CHECKED;
