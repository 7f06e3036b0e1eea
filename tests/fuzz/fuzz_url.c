/* fuzz_url.c - targets of HTTP requests: what parses leads nowhere else, and comes back. */

#include "server/url.h"
#include "tests/fuzz/fuzz.h"

/* Each segment encoded by itself. */
static void encode_path(const char *path, struct str *out)
{
    for (const char *at = path; *at;) {
        const char *end = at + strcspn(at, "/");
        char *segment = strndup(at, (size_t)(end - at));
        FUZZ_CHECK(segment);
        FUZZ_CHECK(strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0);
        url_encode(out, segment);
        free(segment);
        at = *end ? end + 1 : end;
        if (*end)
            str_add(out, "/");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct url url, again;
    struct arena *arena = arena_new();
    char *target = strndup((const char *)data, size);
    FUZZ_CHECK(target);
    if (url_parse(arena, target, &url, &err)) {
        struct str encoded = {0};
        FUZZ_CHECK(url.path[0] == '/');
        FUZZ_CHECK(str_is_utf8(url.path, strlen(url.path)));
        encode_path(url.path, &encoded);
        for (int i = 0; i < url.query_count; i++) {
            str_add(&encoded, i ? "&" : "?");
            url_encode(&encoded, url.query[i].name);
            str_add(&encoded, "=");
            url_encode(&encoded, url.query[i].value);
        }
        FUZZ_CHECK(url_parse(arena, str_text(&encoded), &again, &err));
        FUZZ_CHECK(!strcmp(url.path, again.path) && url.query_count == again.query_count);
        for (int i = 0; i < url.query_count; i++) {
            FUZZ_CHECK(!strcmp(url.query[i].name, again.query[i].name));
            FUZZ_CHECK(!strcmp(url.query[i].value, again.query[i].value));
        }
        str_release(&encoded);
    } else {
        FUZZ_CHECK(err.code == INVALID && err.text[0]);
    }
    free(target);
    arena_free(arena);
    return 0;
}
