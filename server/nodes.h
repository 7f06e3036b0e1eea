/*
 * nodes.h - the server's side of pb.Agent: agents join, say what their tasks do, take commands,
 * and ship what the tasks wrote.
 *
 * DESIGN: rpc handlers check who calls and hand over to the scheduler's loop, which answers
 * joins and has commands sent; a Sync is held until there is something to say, which is at
 * least three times before its node would count as silent. Sessions live in memory only: after
 * a restart of the server every agent is told to join again, and what it then says of its tasks
 * decides what is adopted.
 *
 * A thread of its own (nodes_errand_main) stores what is shipped and reads what is fetched, so
 * that a slow disk never keeps heartbeats waiting.
 */
#pragma once

#include "proto/agent_pb.h"
#include "proto/rpc.h"

struct authority;
struct db;
struct error;
struct loop;
struct nodes;

/*
 * Stores what a task wrote.  `ship` has been checked: the caller's session is alive and the
 * task is the node's.  Sets `*cursor` to where the agent must go on (whatever was stored).
 */
typedef bool nodes_ship_fn(void *self, const struct agent_ship_request *ship, int64_t *cursor,
                           struct error *err);

struct nodes_options {
    struct db *db;
    struct loop *loop;           /* made, not started yet */
    struct authority *authority; /* that certifies remote nodes, borrowed; NULL: a join token
                                    each time, behind somebody else's certificates */
    const char *folder;          /* DIR: jobs/ and datasets/ are below it */
    nodes_ship_fn *ship;         /* called by one thread at a time */
    void *ship_self;
    int64_t suspect_ms; /* the loop's: a node silent for so long gets nothing new; 0: default */
};

/* Ready to serve, once loop_start() was called. */
struct nodes *nodes_new(const struct nodes_options *options, struct error *err) CHECKED;

/*
 * Ends every session, so that no call is held any more.  The order at the end of a server:
 * loop_stop(), nodes_stop(), rpc_server_stop() of both, nodes_free(), loop_free().
 */
void nodes_stop(struct nodes *nodes);
void nodes_free(struct nodes *nodes); /* NULL is fine */

/*
 * For rpc_server_start(), with the struct nodes as `self`.  The embedded agent calls a server
 * at "local:..." and needs no token; everyone else needs a certificate, which he gets for a
 * join token (server/authority.h), or without an authority the token alone.
 */
extern const struct rpc_method nodes_methods_local[];
extern const struct rpc_method nodes_methods_remote[];
