/* audit.c - which requests go into the audit. */

#include "server/audit.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "db/audit.h"
#include "server/request.h"
#include "server/routes.h"

/* A plan asks by POST since it brings a spec. */
static bool changes(const struct request *req)
{
    return strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0 &&
           strcmp(req->route->pattern, "/api/v1/plan") != 0 && !request_query(req, "dry_run");
}

bool audit_handle(struct request *req, struct error *err)
{
    if (!changes(req) || req->user.way == AUTH_BY_NOTHING)
        return req->route->handler(req, err);
    struct db_audit entry = {
        .wall_us = (int64_t)clock_wall_us(),
        .user = req->user.user,
        .way = auth_way_name(req->user.way),
        .method = req->method,
        .path = req->url.path,
        .status = req->route->status,
        .request = req->id,
    };
    db_audit_begin(&entry);
    bool ok = req->route->handler(req, err);
    if (!ok || req->reply.status >= 400) {
        db_audit_drop();
        return ok;
    }
    entry.status = req->reply.status;
    struct error failure;
    char text[400];
    if (!db_audit_end(req->services->db, &entry, &failure))
        log_line(LOG_WARN, "audit", "request=%s user=%s method=%s status=%d msg=%s", req->id,
                 req->user.user, req->method, req->reply.status,
                 log_quote(failure.text, text, sizeof(text)));
    return true;
}
