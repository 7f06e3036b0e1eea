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

void audit_request(const struct request *req)
{
    if (!changes(req) || req->user.way == AUTH_BY_NOTHING || req->reply.status >= 400)
        return;
    struct db_audit entry = {
        .wall_us = (int64_t)clock_wall_us(),
        .user = req->user.user,
        .way = auth_way_name(req->user.way),
        .method = req->method,
        .path = req->url.path,
        .status = req->reply.status,
        .request = req->id,
    };
    struct error err;
    char text[400];
    if (!db_audit_add(req->services->db, &entry, &err))
        log_line(LOG_WARN, "audit", "request=%s user=%s method=%s status=%d msg=%s", req->id,
                 req->user.user, req->method, req->reply.status,
                 log_quote(err.text, text, sizeof(text)));
}
