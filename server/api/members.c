/* members.c - who has which role in a project. */

#include "db/members.h"
#include "base/error.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "server/api/api.h"
#include "server/body.h"
#include "server/feed.h"
#include "server/reply.h"
#include "server/request.h"

static json_t *member_json(const struct db_member *member)
{
    return json_pack("{s:s, s:s, s:s}", "project", member->project, "user", member->user,
                     "role", db_role_name(member->role));
}

/* GET /api/v1/projects/{name}/members */
static bool members_list(struct request *req, struct error *err)
{
    struct db_member *members;
    int count = 0;
    if (!auth_project(req, req->params[0], err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok =
        conn && db_members_list(conn, req->params[0], 0, req->arena, &members, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, member_json(&members[i]));
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* PUT /api/v1/projects/{name}/members/{user} {role} */
static bool members_set(struct request *req, struct error *err)
{
    static const char *const allowed[] = {"role", NULL};
    static const char *const roles[] = {"viewer", "member", "admin", NULL};
    struct spec_object object;
    int role = 0;
    if (!auth_project(req, req->params[0], err))
        return false;
    if (!spec_is_name(req->params[0]))
        return fail(err, INVALID,
                    "'%.100s' cannot name a project: 1 to 128 of A-Z a-z 0-9 . _ -",
                    req->params[0]);
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) &&
              spec_read_required(&object, "role", "viewer, member or admin") &&
              spec_read_choice(&object, "role", roles, &role);
    json_decref(body);
    struct db_member member = {req->params[0], req->params[1], (enum user_role)role};
    if (!ok || !auth_member(req->services->auth, &member, err))
        return false;
    feed_tick(
        req->services->feed); /* streams of his end, and begin again with what he may see */
    return reply_json(req, 200, member_json(&member), err);
}

/* DELETE /api/v1/projects/{name}/members/{user} */
static bool members_remove(struct request *req, struct error *err)
{
    struct db_member member = {req->params[0], req->params[1], ROLE_NONE};
    if (!auth_project(req, member.project, err) ||
        !auth_member(req->services->auth, &member, err))
        return false;
    feed_tick(req->services->feed);
    return reply_bytes(req, 204, NULL, "", 0);
}

const struct route members_routes[] = {
    {"GET", "/api/v1/projects/{name}/members", AUTH_IN_PROJECT(ROLE_ADMIN), members_list,
     "Who has which role in a project", NULL, NULL, 200, "MemberList"},
    {"PUT", "/api/v1/projects/{name}/members/{user}", AUTH_IN_PROJECT(ROLE_ADMIN), members_set,
     "Give a user a role in a project", NULL, "MemberRequest", 200, "Member"},
    {"DELETE", "/api/v1/projects/{name}/members/{user}", AUTH_IN_PROJECT(ROLE_ADMIN),
     members_remove, "Take a user's role in a project away", NULL, NULL, 204, NULL},
    {0},
};
