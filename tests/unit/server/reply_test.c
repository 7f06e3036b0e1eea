/* reply_test.c - problems, and the table from codes to HTTP. */

#include <zlib.h>

#include "base/alloc.h"
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

/* Answers `size` bytes of JSON to a client that accepts so; what comes of them. */
static void answer(struct request *req, size_t size, const struct url_pair *header)
{
    struct error err;
    char *text = alloc_bytes(size + 1);
    memset(text, 'a', size);
    *req = (struct request){.arena = arena_new(),
                            .id = "req_7",
                            .url = {"/", NULL, 0},
                            .headers = header,
                            .headers_count = 1};
    CHECK_OK(reply_json(req, 200, json_pack("{s:s}", "text", text), &err), &err);
    reply_compress(req);
    free(text);
}

TEST(long_answers_are_compressed_for_those_who_take_it)
{
    static const struct url_pair takes = {"accept-encoding", "br, gzip"},
                                 refuses = {"Accept-Encoding", "gzip;q=0"};
    struct request req;
    answer(&req, 100000, &takes);
    CHECK(req.reply.size < 2000 && req.reply.owned);
    CHECK_TEXT(req.reply.headers[0].name, "Content-Encoding");
    char bytes[110000];
    z_stream z = {.next_in = (void *)req.reply.bytes,
                  .avail_in = (uInt)req.reply.size,
                  .next_out = (void *)bytes,
                  .avail_out = sizeof(bytes)};
    CHECK_INT(inflateInit2(&z, 15 + 16), Z_OK);
    CHECK_INT(inflate(&z, Z_FINISH), Z_STREAM_END);
    CHECK_INT(z.total_out, 100000 + strlen("{\"text\":\"\"}"));
    inflateEnd(&z);
    drop(&req);

    answer(&req, 100, &takes);
    CHECK_INT(req.reply.headers_count, 0);
    drop(&req);
    answer(&req, 100000, &refuses);
    CHECK(req.reply.size > 100000 && !req.reply.headers_count);
    drop(&req);
}
