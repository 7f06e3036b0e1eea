/*
 * link.h - the agent's side of pb.Agent: one session with the server.
 *
 * DESIGN: link_main keeps a Sync without reports open at the server, the long poll, and posts
 * each answer to the agent's mailbox; it polls again only when the agent has dealt with it. All
 * other calls are made by the agent's thread and block it, for LIMIT_RPC_MS at most.
 */
#pragma once

#include "base/base.h"
#include "base/error.h"
#include "proto/agent_pb.h"

struct agent_certify_request;
struct agent_certify_response;
struct arena;
struct link;
struct mailbox;
struct rpc_tls;

struct link_mail { /* what the long poll brought */
    struct arena *arena;
    int64_t node_epoch; /* of the session that asked */
    bool ok;
    struct agent_sync_response response; /* when ok */
    struct error error;                  /* when not */
};

/* Whether the server will never take or give what a call failed with this was about; else it
 * may later. */
bool link_is_final(enum error_code code);

/* Calls can be made once it is connected. */
struct link *link_new(const char *server, struct mailbox *mailbox);

/* Calls go this way from now on; a poll that is under way ends as it began.  By the agent's
 * thread, or before it. */
bool link_connect(struct link *link, const struct rpc_tls *tls, struct error *err) CHECKED;

/* Makes calls fail and the long poll end, for ever; from any thread. */
void link_cancel(struct link *link);
void link_free(struct link *link); /* after link_cancel(); NULL is fine */

/* Asks for a certificate.  The response lives in `arena`. */
bool link_certify(struct link *link, const struct agent_certify_request *request,
                  struct arena *arena, struct agent_certify_response *response,
                  struct error *err) CHECKED;

/* Opens a session, and the long poll with it.  The response lives in `arena`. */
bool link_join(struct link *link, const struct agent_join_request *request, struct arena *arena,
               struct agent_join_response *response, struct error *err) CHECKED;

/* Forgets the session: no long poll until the next link_join(). */
void link_leave(struct link *link);

/* Of the session, 0 when there is none. */
int64_t link_epoch(struct link *link);

/* Frees `mail`; the next long poll starts after `wait_ms` and says `commands_done`. */
void link_continue(struct link *link, struct link_mail *mail, int64_t commands_done,
                   int wait_ms);

/* A Sync with reports.  The response lives in `arena`. */
bool link_report(struct link *link, const struct agent_task_report *reports, int reports_count,
                 int64_t commands_done, struct arena *arena,
                 struct agent_sync_response *response, struct error *err) CHECKED;

/*
 * Ships a piece of a file, or asks with size 0; `*cursor` is what the server has.  `last`: an
 * artifact ends with this piece.
 */
bool link_ship(struct link *link, const struct agent_task_ref *task, const char *file,
               int64_t offset, const void *data, size_t size, bool last, int64_t *cursor,
               struct error *err) CHECKED;

/* Tells that the task has removed a file of its checkpoints. */
bool link_remove(struct link *link, const struct agent_task_ref *task, const char *file,
                 struct error *err) CHECKED;

/* A piece of a file, of LIMIT_SHIP_BYTES but for the last; in `arena`. */
bool link_fetch(struct link *link, const struct agent_task_ref *task,
                const struct agent_fetch_what *what, int64_t offset, struct arena *arena,
                struct agent_fetch_response *piece, struct error *err) CHECKED;

/* Tells where the task is; `met` is empty until all of its attempt have told.  In `arena`. */
bool link_meet(struct link *link, const struct agent_task_ref *task, const char *host, int port,
               struct arena *arena, struct agent_meet_response *met, struct error *err) CHECKED;
