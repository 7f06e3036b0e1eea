/* reply_test.c - problems, and the table from codes to HTTP. */

#include "base/arena.h"
#include "server/reply.h"
#include "server/request.h"
#include "tests/unit/test.h"

static json_t *body_of(const struct request *req)
{
    return json_loadb(req->reply.bytes, req->reply.size, 0, NULL);
}

static void drop(struct request *req)
{
    if (req->reply.owned)
        free((void *)req->reply.bytes);
    arena_free(req->arena);
}

TEST(every_code_has_a_status_with_a_name)
{
    for (int code = 0; code <= UNAUTHENTICATED; code++) {
        int status = reply_status(code);
        CHECK(status >= 200 && status < 600);
        CHECK(*reply_status_text(status));
        CHECK((status == 200) == (code == OK));
    }
    CHECK_INT(reply_status(999), 500);
}

TEST(problems_carry_pointer_code_and_request)
{
    struct error err;
    struct request req = {
        .arena = arena_new(), .id = "req_7", .url = {"/api/v1/jobs", NULL, 0}};
    error_at(&err, "/train/steps", INVALID, "steps is -1; \"at least\" 1");
    reply_problem(&req, 0, &err);
    CHECK_INT(req.reply.status, 400);
    CHECK_TEXT(req.reply.type, "application/problem+json");
    json_t *json = body_of(&req);
    CHECK_TEXT(json_string_value(json_object_get(json, "code")), "INVALID_ARGUMENT");
    CHECK_TEXT(json_string_value(json_object_get(json, "type")), "/errors/invalid-argument");
    CHECK_TEXT(json_string_value(json_object_get(json, "request_id")), "req_7");
    CHECK_TEXT(json_string_value(json_object_get(json, "instance")), "/api/v1/jobs");
    CHECK_INT(json_integer_value(json_object_get(json, "status")), 400);
    json_t *field = json_array_get(json_object_get(json, "errors"), 0);
    CHECK_TEXT(json_string_value(json_object_get(field, "pointer")), "/train/steps");
    CHECK_TEXT(json_string_value(json_object_get(field, "detail")),
               "steps is -1; \"at least\" 1");
    json_decref(json);
    drop(&req);
}

/* What the text holds must never break the reply: user input that is no UTF-8 ends up in there.
 */
TEST(problems_survive_bad_bytes)
{
    struct error err;
    struct request req = {.arena = arena_new(), .id = "req_7", .url = {"/", NULL, 0}};
    fail(&err, NOT_FOUND, "no job '\xff\xfe'");
    reply_problem(&req, 0, &err);
    CHECK_INT(req.reply.status, 404);
    json_t *json = body_of(&req);
    CHECK(json != NULL);
    CHECK_TEXT(json_string_value(json_object_get(json, "code")), "NOT_FOUND");
    json_decref(json);
    drop(&req);
}

TEST(a_problem_replaces_what_was_there)
{
    struct error err;
    struct request req = {.arena = arena_new(), .id = "req_7", .url = {"/", NULL, 0}};
    CHECK_OK(reply_json(&req, 200, json_pack("{s:i}", "a", 1), &err), &err);
    fail(&err, UNAUTHENTICATED, "who?");
    reply_problem(&req, 0, &err);
    CHECK_INT(req.reply.status, 401);
    CHECK_TEXT(req.reply.headers[0].name, "WWW-Authenticate");
    drop(&req);
}
