/* regex_test.c - matches of bytes among characters. */

#include "kernels/io/regex.h"
#include "tests/unit/test.h"

static struct error err;

/* The leftmost match as "from-to"; "none". */
static const char *match(const char *pattern, const char *text, bool whole)
{
    static char found[64];
    struct kernel_regex_span span;
    struct kernel_regex *regex = kernel_regex_new(pattern, strlen(pattern), &err);
    CHECK_OK(regex, &err);
    snprintf(found, sizeof(found), "none");
    if (kernel_regex_match(regex, text, strlen(text), 0, whole, &span, 1))
        snprintf(found, sizeof(found), "%lld-%lld", (long long)span.from, (long long)span.to);
    kernel_regex_free(regex);
    return found;
}

#define E_ACUTE "\xc3\xa9" /* two bytes */

TEST(a_byte_may_be_part_of_a_character)
{
    CHECK_TEXT(match("\\C", E_ACUTE, false), "0-1");
    CHECK_TEXT(match("\\C", E_ACUTE, true), "none");
    CHECK_TEXT(match("\\C\\C", E_ACUTE, true), "0-2");
    CHECK_TEXT(match("a\\Cb", "a" E_ACUTE "b", false), "none");
    CHECK_TEXT(match(".\\C", "a" E_ACUTE "b", false), "0-2");
    CHECK_TEXT(match("\\C*b", "a" E_ACUTE "b", true), "0-4");
}

/* With \C the text is walked by bytes: characters beside it are taken as a whole still. */
TEST(characters_stay_whole_beside_bytes)
{
    CHECK_TEXT(match("a.\\C", "a" E_ACUTE "b", true), "0-4");
    CHECK_TEXT(match(E_ACUTE "+\\C", E_ACUTE E_ACUTE "x", true), "0-5");
    CHECK_TEXT(match("(.|\\C)b", E_ACUTE "b", true), "0-3");
    CHECK_TEXT(match("[^a]\\C?$", "x" E_ACUTE, false), "1-3");
    CHECK_TEXT(match("\\C", "\xff", true), "0-1");
    CHECK_TEXT(match(".", "\xff", true), "none");
}
