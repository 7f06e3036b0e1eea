/*
 * nodes_session.h - the sessions of agents: their keys, what they are to be told, and the call
 * that waits for it.
 *
 * Shared by the rpc, loop and ship threads; one lock inside.
 */
#pragma once

#include "proto/agent_pb.h"
#include "proto/rpc.h"

struct nodes_sessions;

/* A poll is answered after `hold_us` when there is nothing to say. */
struct nodes_sessions *nodes_session_new(uint64_t hold_us);
void nodes_session_free(
    struct nodes_sessions *sessions); /* no call may be held; NULL is fine */

/*
 * A new session for a node, instead of any older one; its key is owned by the sessions. `name`:
 * whose certificate each call must show, "" when none is asked for; copied.
 */
const char *nodes_session_open(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                               const char *name);

/* Ends the session of a node, or (0) of all: a held call fails with "fenced". */
void nodes_session_close(struct nodes_sessions *sessions, int64_t node);

/*
 * PRECONDITION "fenced" when this is not the newest session of the node, DENIED when the
 * caller, by its certificate, is not who opened it.
 */
bool nodes_session_check(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                         const char *key, const char *name, struct error *err) CHECKED;

/* Adds a command, copied, for the node; dropped when it has no session. */
void nodes_session_command(struct nodes_sessions *sessions, int64_t node,
                           const struct agent_command *command);
void nodes_session_acknowledge(struct nodes_sessions *sessions, int64_t node,
                               const struct agent_task_ref *task);

/* Commands up to `done` are carried out, and forgotten. */
void nodes_session_done(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                        int64_t done);

/*
 * Takes the call of a Sync: answers at once when there is something new to say, else holds it.
 * It fails with "fenced" if the session is over.
 */
void nodes_session_hold(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                        struct rpc_call *call);

/* Answers the call of a Sync now, with all there is to say, or with "fenced". */
void nodes_session_answer(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                          struct rpc_call *call);

/* Answers every held call that has something new to hear, or was held long enough. */
uint64_t nodes_session_flush(struct nodes_sessions *sessions);
