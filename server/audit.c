/* audit.c - which requests go into the audit. */

#include "server/audit.h"

#include <pthread.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "db/audit.h"
#include "db/users.h"
#include "server/rate.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/routes.h"

#define AUDIT_REFUSALS_PER_S 2 /* of one user, or of all who are none */

/* A plan asks by POST since it brings a spec; what a job reports is no deed of a person. */
static bool changes(const struct request *req)
{
    return strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0 &&
           strcmp(req->route->pattern, "/api/v1/plan") != 0 &&
           strcmp(req->route->pattern, "/api/v1/jobs/{id}/metrics") != 0 &&
           !request_query(req, "dry_run");
}

static struct db_audit entry_of(const struct request *req, const char *user, int status)
{
    return (struct db_audit){
        .wall_us = (int64_t)clock_wall_us(),
        .user = user,
        .way = auth_way_name(req->user.way),
        .method = req->method,
        .path = req->url.path,
        .status = status,
        .request = req->id,
    };
}

static void entry_end(const struct request *req, const struct db_audit *entry)
{
    struct error err;
    char text[400];
    if (!db_audit_end(req->services->db, entry, &err))
        log_line(LOG_WARN, "audit", "request=%s user=%s method=%s status=%d msg=%s", req->id,
                 entry->user, req->method, entry->status,
                 log_quote(err.text, text, sizeof(text)));
}

/* --- what was refused --- */

static struct rate *refusals;

static void refusals_make(void)
{
    refusals = rate_new(AUDIT_REFUSALS_PER_S);
}

/* Who he is, or says he is: only if there is such a user.  A password that was typed in the
 * place of a name is not written down. */
static const char *claimed_user(struct request *req, int64_t *id)
{
    struct db_user user;
    struct error none;
    *id = req->user.user_id;
    if (req->user.way != AUTH_BY_NOTHING)
        return req->user.user;
    *id = 0;
    struct db_conn *conn = req->claimed ? db_read(req->services->db, DB_CONTROL, &none) : NULL;
    bool known = conn && db_users_find(conn, req->claimed, req->arena, &user, &none);
    db_read_done(req->services->db, conn);
    *id = known ? user.id : 0;
    return known ? user.name : "";
}

void audit_refused(struct request *req, const struct error *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool signs_in = req->user.way == AUTH_BY_NOTHING && req->claimed &&
                    (why->code == UNAUTHENTICATED || why->code == EXHAUSTED);
    bool denied = req->user.way != AUTH_BY_NOTHING && why->code == DENIED;
    int64_t id;
    if (!signs_in && !denied)
        return;
    const char *user = claimed_user(req, &id);
    pthread_once(&once, refusals_make);
    if (!rate_take(refusals, id, clock_monotonic_us()))
        return; /* it is in the log of requests; the list stays one that can be read */
    int status = req->reply.status >= 400 ? req->reply.status : reply_status(why->code);
    struct db_audit entry = entry_of(req, user, status);
    db_audit_begin(&entry);
    entry_end(req, &entry);
}

/* --- what was done --- */

bool audit_handle(struct request *req, struct error *err)
{
    bool known = req->user.way != AUTH_BY_NOTHING, change = known && changes(req);
    struct db_audit entry;
    if (change) {
        entry = entry_of(req, req->user.user, req->route->status);
        db_audit_begin(&entry);
    }
    bool ok = req->route->handler(req, err);
    bool done = ok && req->reply.status < 400;
    if (change && !done)
        db_audit_drop();
    if (!ok)
        audit_refused(req, err);
    bool signed_in =
        done && !known && req->user.way != AUTH_BY_NOTHING && !req->reply.websocket;
    if (signed_in) {
        entry = entry_of(req, req->user.user, req->reply.status);
        db_audit_begin(&entry);
    }
    if (signed_in || (change && done)) {
        entry.status = req->reply.status;
        entry_end(req, &entry);
    }
    return ok;
}

void audit_log_newest(struct db *db)
{
    struct db_audit *entries;
    struct error err;
    int count = 0;
    int64_t next;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(db, DB_CONTROL, &err);
    if (conn && db_audit_list(conn, 0, NULL, 1, arena, &entries, &count, &next, &err) && count)
        log_line(LOG_INFO, "audit", "seq=%lld hash=%s msg=\"the newest entry\"",
                 (long long)entries[0].seq, entries[0].hash);
    db_read_done(db, conn);
    arena_free(arena);
}
