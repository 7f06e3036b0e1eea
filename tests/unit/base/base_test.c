/* base_test.c - the modules of base/ that hold data: arena, str, map, mailbox, error, clock. */

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error_whole.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/map.h"
#include "base/str.h"
#include "tests/unit/test.h"

TEST(error_texts_carry_code_pointer_and_errno)
{
    struct error err;
    CHECK(!fail(&err, NOT_FOUND, "job %d", 7));
    CHECK_INT(err.code, NOT_FOUND);
    CHECK_TEXT(err.text, "job 7");
    CHECK_TEXT(err.pointer, "");
    CHECK(!error_prefix(&err, "node '%s': ", "a"));
    CHECK_TEXT(err.text, "node 'a': job 7");
    CHECK(!error_at(&err, "/train/steps", INVALID, "is %d", -1));
    CHECK_TEXT(err.pointer, "/train/steps");
    FILE *file = fopen("/nonexistent/x", "r");
    CHECK(!file);
    CHECK(!error_errno(&err, NOT_FOUND, "open"));
    CHECK_TEXT(err.text, "open: No such file or directory");
    CHECK(!fail_null(&err, DATA_LOSS, "x"));
    CHECK_TEXT(error_code_name(err.code), "DATA_LOSS");
}

/* Text longer than the buffer is cut, never overrun. */
TEST(error_text_is_cut_to_fit)
{
    struct error err;
    char *big = alloc_bytes(5000);
    memset(big, 'x', 4999);
    CHECK(!fail(&err, INVALID, "%s", big));
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    CHECK(!error_prefix(&err, "%s", big));
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    free(big);
}

/* Texts quote whatever bytes users gave, and a cut may go through a letter; but what they are
 * sent in takes UTF-8 alone. */
TEST(error_texts_are_utf8)
{
    struct error err;
    struct str whole = {0};
    CHECK(!error_at(&err, "/a\xff", INVALID, "'%s' and '%s'", "\xe2\x82\xac",
                    "\xe2\x82 \xc0\x80z"));
    CHECK_TEXT(err.text, "'\xe2\x82\xac' and '?? ??z'");
    CHECK_TEXT(err.pointer, "/a?");
    CHECK(!error_prefix(&err, "%s: ", "\xed\xa0\x80"));
    CHECK_TEXT(err.text, "???: '\xe2\x82\xac' and '?? ??z'");
    char *big = alloc_bytes(5000);
    for (int i = 0; i < 4998; i += 2)
        memcpy(big + i, "\xc3\xa9", 2);
    CHECK(!fail(&err, INVALID, "x%s\xff", big));
    CHECK(str_is_utf8(err.text, strlen(err.text)));
    error_whole_add(&err, &whole);
    CHECK_INT(whole.size, 5000);
    CHECK(str_is_utf8(whole.data, whole.size));
    CHECK_TEXT(str_text(&whole) + 4997, "\xc3\xa9?");
    CHECK(!error_prefix(&err, "%s", big));
    CHECK(str_is_utf8(err.text, strlen(err.text)));
    str_release(&whole);
    free(big);
}

TEST(arena_gives_zeroed_aligned_memory)
{
    struct arena *arena = arena_new();
    for (size_t size = 0; size < 9000; size += 37) {
        char *bytes = arena_alloc(arena, size);
        CHECK_INT((uintptr_t)bytes % 16, 0);
        for (size_t i = 0; i < size; i++)
            CHECK(!bytes[i]);
        memset(bytes, 0xff, size);
    }
    CHECK_TEXT(arena_printf(arena, "%d-%s", 3, "x"), "3-x");
    for (int size = 250; size < 260; size++) { /* about where it is printed twice */
        const char *text = arena_printf(arena, "%0*d", size, 7);
        CHECK_INT(strlen(text), size);
        CHECK_INT(text[0], '0');
        CHECK_INT(text[size - 1], '7');
    }
    arena_clear(arena);
    CHECK_INT(arena_used(arena), 0);
    arena_free(arena);
    arena_free(NULL);
}

TEST(arena_keeps_its_budget)
{
    struct arena *arena = arena_new_limited(1000);
    CHECK(arena_try(arena, 600));
    CHECK(!arena_try(arena, 600));
    CHECK(!arena_try(arena, SIZE_MAX));
    CHECK(arena_try(arena, 300));
    arena_free(arena);
}

TEST(str_grows_drops_and_prints)
{
    struct str str = {0};
    CHECK_TEXT(str_text(&str), "");
    for (int i = 0; i < 1000; i++)
        str_printf(&str, "%d,", i);
    CHECK_INT(str.size, 3890);
    str_drop(&str, 3886);
    CHECK_TEXT(str_text(&str), "999,");
    str_drop(&str, 4);
    CHECK_INT(str.size, 0);
    str_release(&str);
}

TEST(str_json_escapes_and_replaces_bad_utf8)
{
    struct str str = {0};
    str_add_json(&str, "a\"b\\\n\xff\xc3\xa9", 8);
    CHECK_TEXT(str_text(&str), "\"a\\\"b\\\\\\u000a\xef\xbf\xbd\xc3\xa9\"");
    str_release(&str);
}

TEST(str_utf8_refuses_overlong_and_surrogates)
{
    CHECK(str_is_utf8("gr\xc3\xbc\xc3\x9f", 6));
    CHECK(str_is_utf8("\xf0\x9f\x9a\x82", 4));
    CHECK(!str_is_utf8("\xc0\x80", 2));
    CHECK(!str_is_utf8("\xed\xa0\x80", 3));
    CHECK(!str_is_utf8("\xf5\x80\x80\x80", 4));
    CHECK(!str_is_utf8("\xc3", 1));
}

TEST(map_finds_what_was_set_in_order)
{
    struct map *map = map_new();
    int values[1000];
    char key[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "key%d", i * 7);
        map_set(map, key, &values[i]);
    }
    CHECK_INT(map_count(map), 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "key%d", i * 7);
        CHECK(map_find(map, key) == &values[i]);
        CHECK_TEXT(map_key(map, i), key);
    }
    CHECK(!map_find(map, "key1"));
    CHECK(map_find_n(map, "key7777", 4) == &values[1]);
    CHECK(map_remove(map, "key0") == &values[0]);
    CHECK(!map_remove(map, "key0"));
    CHECK(map_find(map, "key6993") == &values[999]);
    map_set(map, "key7", NULL);
    CHECK(map_has(map, "key7"));
    CHECK(!map_find(map, "key7"));
    map_free(map);
}

TEST(mailbox_refuses_when_full_and_signals)
{
    struct mailbox *mailbox = mailbox_new(2);
    int a, b, c;
    struct pollfd pollfd = {.fd = mailbox_fd(mailbox), .events = POLLIN};
    CHECK_INT(poll(&pollfd, 1, 0), 0);
    CHECK(mailbox_post(mailbox, &a));
    CHECK(mailbox_post(mailbox, &b));
    CHECK(!mailbox_post(mailbox, &c));
    CHECK(!mailbox_post_wait(mailbox, &c, 10));
    CHECK_INT(poll(&pollfd, 1, 0), 1);
    CHECK(mailbox_take(mailbox, 0) == &a);
    CHECK_INT(poll(&pollfd, 1, 0), 1);
    CHECK(mailbox_take(mailbox, 0) == &b);
    CHECK_INT(poll(&pollfd, 1, 0), 0);
    CHECK(!mailbox_take(mailbox, 0));
    mailbox_close(mailbox);
    CHECK(!mailbox_post(mailbox, &a));
    CHECK(!mailbox_take(mailbox, 1000));
    mailbox_free(mailbox);
}

static void *mailbox_poster(void *arg)
{
    for (intptr_t i = 1; i <= 10000; i++)
        CHECK(mailbox_post_wait(arg, (void *)i, 10000));
    return NULL;
}

TEST(mailbox_keeps_order_between_threads)
{
    struct mailbox *mailbox = mailbox_new(16);
    pthread_t thread;
    pthread_create(&thread, NULL, mailbox_poster, mailbox);
    for (intptr_t i = 1; i <= 10000; i++)
        CHECK(mailbox_take(mailbox, 10000) == (void *)i);
    pthread_join(thread, NULL);
    mailbox_free(mailbox);
}

TEST(clock_freezes_and_prints)
{
    char text[32];
    clock_freeze(UINT64_C(1700000000123456));
    CHECK_INT(clock_monotonic_us(), UINT64_C(1700000000123456));
    CHECK_TEXT(clock_rfc3339(clock_wall_us(), text, sizeof(text)), "2023-11-14T22:13:20.123Z");
    clock_freeze(0);
    uint64_t first = clock_monotonic_ns();
    CHECK(clock_monotonic_ns() >= first);
}

TEST(log_quotes_control_characters)
{
    char out[32];
    CHECK_TEXT(log_quote("a \"b\"\n", out, sizeof(out)), "\"a \\\"b\\\"\\x0a\"");
    CHECK(strlen(log_quote("0123456789012345678901234567890123456789", out, sizeof(out))) < 32);
}

/* --- long texts of errors --- */

static void check_whole(const struct error *err, const char *begins, size_t size,
                        const char *ends)
{
    struct str whole = {0};
    error_whole_add(err, &whole);
    CHECK_INT(whole.size, size);
    CHECK(!strncmp(str_text(&whole), begins, strlen(begins)));
    CHECK_TEXT(str_text(&whole) + whole.size - strlen(ends), ends);
    str_release(&whole);
}

TEST(long_texts_are_kept_for_a_while)
{
    struct error err, copy;
    char *text = alloc_bytes(20001);
    memset(text, 'x', 20000);
    (void)fail(&err, INVALID, "said: %s!", text);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    copy = err;
    check_whole(&copy, "said: xxx", 20007, "xx!");
    (void)error_prefix(&copy, "node '%s': ", "n");
    check_whole(&copy, "node 'n': said: xxx", 20017, "xx!");
    (void)fail(&err, ABORTED, "%s", copy.text); /* handed on */
    check_whole(&err, "node 'n': said: xxx", 20017, "xx!");
    (void)fail(&err, INVALID, "short");
    check_whole(&err, "short", 5, "short");
    free(text);
}

TEST(long_texts_have_an_end_and_make_room)
{
    struct error first, err;
    size_t size = ERROR_WHOLE_BYTES + 1000;
    char *text = alloc_bytes(size + 1);
    memset(text, 'y', size);
    (void)fail(&first, INVALID, "first %s", text);
    check_whole(&first, "first y", ERROR_WHOLE_BYTES - 1, "y");
    for (int i = 0; i < ERROR_WHOLE_MAX; i++)
        (void)fail(&err, INVALID, "%d %.2000s", i, text);
    check_whole(&err, "63 y", 2003, "y");
    check_whole(&first, "first y", sizeof(first.text) - 1, "y");
    free(text);
}
