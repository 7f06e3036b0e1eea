/* mask_test.c - secrets in streams, against a search that is obvious. */

#include <stdlib.h>

#include "base/str.h"
#include "scheduler/shim/mask.h"
#include "tests/unit/test.h"

static void add_out(void *self, const char *bytes, size_t size)
{
    str_add_bytes(self, bytes, size);
}

/* `text` in pieces of `piece` bytes through a mask of `secrets`. */
static const char *masked(const char *const *secrets, const char *text, size_t piece)
{
    static struct str out;
    struct mask mask = {0};
    struct mask_stream stream = {0};
    str_release(&out);
    out = (struct str){0};
    for (int i = 0; secrets[i]; i++)
        CHECK(mask_add(&mask, secrets[i], strlen(secrets[i])));
    for (size_t at = 0, size = strlen(text); at < size; at += piece)
        mask_take(&mask, &stream, text + at, size - at < piece ? size - at : piece, add_out,
                  &out);
    mask_end(&mask, &stream, add_out, &out);
    mask_close(&mask);
    return str_text(&out);
}

TEST(mask_hides_secrets_however_they_are_cut)
{
    static const struct {
        const char *secrets[4];
        const char *text, *wanted;
    } rows[] = {
        {{NULL}, "nothing to hide", "nothing to hide"},
        {{"hunter2"}, "pass hunter2 word", "pass *** word"},
        {{"hunter2"}, "hunter2hunter2", "***"},
        {{"hunter2"}, "hunter hunter22", "hunter ***2"},
        {{"hunter2"}, "hunhunter2", "hun***"},
        {{"abab"}, "xabababy", "x***y"},               /* overlaps itself */
        {{"abcd", "abcdefgh"}, "abcdefgx", "***efgx"}, /* one begins the other */
        {{"abcd", "abcdefgh"}, "abcdefgh!", "***!"},
        {{"xxab", "abyy"}, "-xxabyy-", "-***-"},              /* both, one into the other */
        {{"longsecret", "sec"}, "a sec", "a sec"},            /* too short for a secret */
        {{"longsecret"}, "ends with longs", "ends with ***"}, /* cut off by its end */
        {{"longsecret"}, "ends with lon", "ends with lon"},
        {{"first line\nsecond line\n"}, "> first line\n> second line\n", "> ***\n> ***\n"},
        {{"first line\nsecond line"}, "first line\nsecond line", "***"},
        {{"a\nline of it\nb c"}, "a b c line of it", "a b c ***"},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t piece = 1; piece < 20; piece++)
            CHECK_TEXT(masked(rows[i].secrets, rows[i].text, piece), rows[i].wanted);
    }
}

/* Hides every place of every secret, one after the other. */
static const char *plainly(const char *const *secrets, const char *text, char *out)
{
    size_t size = strlen(text), used = 0;
    bool hidden[256] = {false};
    assert(size < sizeof(hidden));
    for (int i = 0; secrets[i]; i++) {
        size_t length = strlen(secrets[i]);
        for (size_t at = 0; at + length <= size; at++) {
            if (memcmp(text + at, secrets[i], length) == 0)
                memset(hidden + at, true, length);
        }
    }
    for (size_t at = 0; at < size; at++) {
        if (!hidden[at])
            out[used++] = text[at];
        else if (!at || !hidden[at - 1])
            used = (size_t)(stpcpy(out + used, "***") - out);
    }
    out[used] = '\0';
    return out;
}

TEST(mask_agrees_with_a_plain_search)
{
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        char words[3][12] = {""}, text[128], wanted[256];
        const char *secrets[4] = {words[0], words[1], words[2], NULL};
        for (int i = 0; i < 3; i++) {
            size_t size = 4 + (size_t)rand_r(&seed) % 7;
            for (size_t at = 0; at < size; at++)
                words[i][at] = "ab"[rand_r(&seed) % 2];
        }
        size_t size = (size_t)rand_r(&seed) % 100;
        for (size_t at = 0; at < size; at++)
            text[at] = "aab"[rand_r(&seed) % 3];
        memcpy(text + size, "----", 5); /* so that its end begins no secret */
        CHECK_TEXT(masked(secrets, text, 1 + (size_t)rand_r(&seed) % 9),
                   plainly(secrets, text, wanted));
    }
}
