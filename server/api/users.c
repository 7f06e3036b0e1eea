/* users.c - the people who may sign in, and the audit of what they changed. */

#include "db/users.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/audit.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "server/api/api.h"
#include "server/body.h"
#include "server/condition.h"
#include "server/feed.h"
#include "server/job.h"
#include "server/passwords.h"
#include "server/reply.h"
#include "server/request.h"

static const char *const roles[] = {"none", "viewer", "member", "admin", NULL};

static json_t *user_json(const struct db_user *user)
{
    return json_pack("{s:s, s:s, s:b, s:b, s:o}", "name", user->name, "role",
                     db_role_name(user->role), "password", *user->password != 0, "disabled",
                     (int)user->disabled, "created_at", job_time(user->created_us));
}

static bool reply_user(struct request *req, const struct db_user *user, struct error *err)
{
    static const char *const fields[] = {"name", "role", "password", "disabled", NULL};
    return condition_reply(req, user_json(user), fields, err);
}

static bool find(struct request *req, const char *name, struct db_user *user, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_users_find(conn, name, req->arena, user, err);
    db_read_done(req->services->db, conn);
    return ok;
}

/* GET /api/v1/users */
static bool users_list(struct request *req, struct error *err)
{
    struct db_user *users;
    int count = 0;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_users_list(conn, req->arena, &users, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, user_json(&users[i]));
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* GET /api/v1/users/{name} */
static bool users_show(struct request *req, struct error *err)
{
    struct db_user user;
    return find(req, req->params[0], &user, err) && reply_user(req, &user, err);
}

/* Role, password and disabled, as far as the body has them. */
static bool read_user(struct request *req, const struct spec_object *object,
                      struct db_user *user)
{
    int role = (int)user->role - ROLE_NONE;
    const char *password = NULL;
    if (!spec_read_choice(object, "role", roles, &role) ||
        !spec_read_bool(object, "disabled", &user->disabled) ||
        !spec_read_text(object, "password", PASSWORD_BYTES_MAX, &password))
        return false;
    user->role = (enum user_role)(role + ROLE_NONE);
    if (password)
        user->password = auth_hash(req->services->auth, req, password, object->err);
    return user->password != NULL;
}

/* POST /api/v1/users {name, role, password}     201 and the user; without a password he comes
 * by a link. */
static bool users_create(struct request *req, struct error *err)
{
    static const char *const allowed[] = {"name", "role", "password", NULL};
    struct spec_object object;
    struct db_user user = {.name = "", .role = ROLE_VIEWER, .password = ""};
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) &&
              spec_read_required(&object, "name", "a name: 1 to 128 of A-Z a-z 0-9 . _ -") &&
              spec_read_name(&object, "name", &user.name) &&
              spec_read_required(&object, "role", "none, viewer, member or admin") &&
              read_user(req, &object, &user);
    json_decref(body);
    return ok &&
           db_users_add(req->services->db, user.name, user.role, user.password, &user.id,
                        err) &&
           find(req, user.name, &user, err) && reply_json(req, 201, user_json(&user), err);
}

/* PATCH /api/v1/users/{name} {role, password, disabled}: what is not said stays. */
static bool change(struct request *req, struct error *err)
{
    static const char *const allowed[] = {"role", "password", "disabled", NULL};
    struct spec_object object;
    struct db_user user;
    if (!find(req, req->params[0], &user, err))
        return false;
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) && read_user(req, &object, &user);
    json_decref(body);
    if (!ok || !auth_change(req->services->auth, &user, err))
        return false;
    feed_tick(req->services->feed); /* streams of one who is disabled end */
    return reply_user(req, &user, err);
}

static bool users_change(struct request *req, struct error *err)
{
    return condition_change(req, users_show, change, err);
}

/* POST /api/v1/users/{name}:link: a link that signs him in, once. */
static bool users_link(struct request *req, struct error *err)
{
    struct db_user user;
    struct str link = {0};
    if (!find(req, req->params[0], &user, err))
        return false;
    if (user.disabled)
        return fail(err, PRECONDITION, "the user '%s' is disabled", user.name);
    bool ok = auth_link(req->services->auth, user.id, &link, err) &&
              reply_json(req, 201, json_pack("{s:s}", "url", str_text(&link)), err);
    str_release(&link);
    return ok;
}

/* GET /api/v1/audit: newest first, a page at a time. */
static bool users_audit(struct request *req, struct error *err)
{
    struct db_audit *entries;
    int count = 0;
    int64_t limit, before, next;
    if (!request_query_int(req, "limit", 1, LIMIT_PAGE_ITEMS, 50, &limit, err) ||
        !request_query_int(req, "cursor", 1, INT64_MAX, 0, &before, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_audit_list(conn, before, request_query(req, "user"), (int)limit,
                                    req->arena, &entries, &count, &next, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(
            items,
            json_pack("{s:I, s:o, s:s, s:s, s:s, s:s, s:i, s:s, s:o}", "seq",
                      (json_int_t)entries[i].seq, "time", job_time(entries[i].wall_us), "user",
                      entries[i].user, "way", entries[i].way, "method", entries[i].method,
                      "path", entries[i].path, "status", entries[i].status, "request_id",
                      entries[i].request, "hash", job_text(entries[i].hash)));
    json_t *cursor = next ? json_sprintf("%lld", (long long)next) : json_null();
    return reply_json(req, 200, json_pack("{s:o, s:o}", "items", items, "next_cursor", cursor),
                      err);
}

const struct route users_routes[] = {
    {"GET", "/api/v1/users", ROLE_ADMIN, users_list, "Users", NULL, NULL, 200, "UserList"},
    {"POST", "/api/v1/users", ROLE_ADMIN, users_create, "Add a user", NULL, "UserRequest", 201,
     "User"},
    {"GET", "/api/v1/users/{name}", ROLE_ADMIN, users_show, "One user", NULL, NULL, 200,
     "User"},
    {"PATCH", "/api/v1/users/{name}", ROLE_ADMIN, users_change,
     "Give a user another role or password, or disable him", "If-Match:header", "UserChange",
     200, "User"},
    {"POST", "/api/v1/users/{name}:link", ROLE_ADMIN, users_link,
     "Make a one-time login link of a user", NULL, NULL, 201, "LoginLink"},
    {"GET", "/api/v1/audit", ROLE_ADMIN, users_audit, "Who changed what, newest first",
     "limit:integer cursor:string user:string", NULL, 200, "AuditList"},
    {0},
};
