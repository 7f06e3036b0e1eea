/* url_test.c - targets of requests, good and hostile. */

#include "base/arena.h"
#include "base/str.h"
#include "server/url.h"
#include "tests/unit/test.h"

TEST(path_and_query_are_decoded)
{
    struct error err;
    struct url url;
    struct arena *arena = arena_new();
    CHECK_OK(url_parse(arena, "/api/v1/jobs/a%20b?limit=5&q=x+%26y&empty=&bare", &url, &err),
             &err);
    CHECK_TEXT(url.path, "/api/v1/jobs/a b");
    CHECK_INT(url.query_count, 4);
    CHECK_TEXT(url_find(url.query, 4, "q", false), "x &y");
    CHECK_TEXT(url_find(url.query, 4, "empty", false), "");
    CHECK_TEXT(url_find(url.query, 4, "bare", false), "");
    CHECK(!url_find(url.query, 4, "LIMIT", false));
    CHECK_TEXT(url_find(url.query, 4, "LIMIT", true), "5");
    arena_free(arena);
}

/* A slash or question mark may be escaped in the query, where it means nothing else. */
TEST(query_may_hold_what_a_path_may_not)
{
    struct error err;
    struct url url;
    struct arena *arena = arena_new();
    CHECK_OK(url_parse(arena, "/x?task=worker%2F0&u=a?b/c", &url, &err), &err);
    CHECK_TEXT(url_find(url.query, url.query_count, "task", false), "worker/0");
    CHECK_TEXT(url_find(url.query, url.query_count, "u", false), "a?b/c");
    arena_free(arena);
}

TEST(hostile_targets_are_refused)
{
    static const char *const targets[] = {
        "",          "x",           "*",
        "http://h/", "/a/../b",     "/a/..",
        "/.",        "/a/./b",      "/%2e%2e/x",
        "/a/%2E%2E", "/a%00b",      "/a%2fb",
        "/a%2Fb",    "/a\\b",       "/a%5cb",
        "//a",       "/a//b",       "/a%",
        "/a%4",      "/a%zz",       "/a%0d%0aX: y",
        "/a#b",      "/a%ff",       "/a%c0%af",
        "/a?x=%00",  "/a?x=%0a",    "/a?%zz=1",
        "/a\x01",    "/a%7f",       "/a?x=%c3",
        "/a?x=\x7f", "/a%ed%a0%80",
    };
    for (int i = 0; i < ARRAY_LEN(targets); i++) {
        struct error err;
        struct url url;
        struct arena *arena = arena_new();
        if (url_parse(arena, targets[i], &url, &err))
            CHECK_STOP("'%s' was taken as '%s'", targets[i], url.path);
        CHECK_INT(err.code, INVALID);
        arena_free(arena);
    }
}

TEST(too_many_parameters_are_refused)
{
    struct error err;
    struct url url;
    struct arena *arena = arena_new();
    struct str target = {0};
    str_add(&target, "/a?x=1");
    for (int i = 0; i < 40; i++)
        str_add(&target, "&x=1");
    CHECK_FAILS(url_parse(arena, str_text(&target), &url, &err), &err, INVALID);
    str_release(&target);
    arena_free(arena);
}

TEST(encoding_comes_back)
{
    struct error err;
    struct url url;
    struct arena *arena = arena_new();
    struct str target = {0};
    str_add(&target, "/?q=");
    url_encode(&target, "a b&c=d/ü%+");
    CHECK_OK(url_parse(arena, str_text(&target), &url, &err), &err);
    CHECK_TEXT(url.query[0].value, "a b&c=d/ü%+");
    str_release(&target);
    arena_free(arena);
}
