/* health.c - for those who watch over the server, and the page behind each kind of error. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/events.h"
#include "server/api/api.h"
#include "server/reply.h"
#include "server/request.h"

/* GET /healthz: the process answers.  Says nothing else, since anybody may ask. */
static bool health_live(struct request *req, struct error *err)
{
    (void)err;
    return reply_bytes(req, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

/* GET /readyz: the database can be read, so requests can be answered. */
static bool health_ready(struct request *req, struct error *err)
{
    int64_t oldest;
    int64_t newest;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_events_range(conn, &oldest, &newest, err);
    db_read_done(req->services->db, conn);
    if (!ok) {
        req->reply.status = 503;
        return false;
    }
    return reply_bytes(req, 200, "text/plain; charset=utf-8", "ready\n", 6);
}

/* GET /errors/{code}: what the "type" of a problem points to. */
static bool health_error(struct request *req, struct error *err)
{
    for (int code = 1; code <= UNAUTHENTICATED; code++) {
        const char *name = error_code_name((enum error_code)code);
        char *slug = arena_text(req->arena, name);
        for (char *c = slug; *c; c++)
            *c = *c == '_' ? '-' : (char)(*c | 0x20);
        if (strcmp(slug, req->params[0]) != 0)
            continue;
        const char *text =
            arena_printf(req->arena, "%s (HTTP %d %s)\n\n%s\n", name, reply_status(code),
                         reply_status_text(reply_status(code)), reply_hint(code));
        return reply_bytes(req, 200, "text/plain; charset=utf-8", text, strlen(text));
    }
    return fail(err, NOT_FOUND, "there is no error '%.60s'", req->params[0]);
}

const struct route health_routes[] = {
    {"GET", "/healthz", AUTH_PUBLIC, health_live, "The process answers", NULL, NULL, 200,
     "text/plain"},
    {"GET", "/readyz", AUTH_PUBLIC, health_ready, "Requests can be answered", NULL, NULL, 200,
     "text/plain"},
    {"GET", "/errors/{code}", AUTH_PUBLIC, health_error, "What an error code means", NULL, NULL,
     200, "text/plain"},
    {0},
};
