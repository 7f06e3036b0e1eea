/* nearest_test.c - what somebody may have meant. */

#include "base/nearest.h"
#include "tests/unit/test.h"

static const char *const names[] = {"train", "submit", "dataset", "serve", "show", NULL};

TEST(nearest_finds_what_was_meant)
{
    CHECK_TEXT(nearest_name("trian", names), "train"); /* two letters swapped */
    CHECK_TEXT(nearest_name("sumbit", names), "submit");
    CHECK_TEXT(nearest_name("datasets", names), "dataset");
    CHECK_TEXT(nearest_name("SERVE", names), "serve");
    CHECK_TEXT(nearest_name("shw", names), "show");
}

TEST(nearest_leaves_strangers_alone)
{
    const char *const none[] = {NULL};
    char longer[300];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CHECK(!nearest_name("elephant", names));
    CHECK(!nearest_name("train", none));
    CHECK(!nearest_name(longer, names));
}
