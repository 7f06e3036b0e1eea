/* cluster_outcome_test.c - what is told of a step some of whose parts failed. */

#include "base/error.h"
#include "base/str.h"
#include "runtime/cluster/internal.h"
#include "tests/unit/test.h"

static struct error err;

TEST(one_cause_among_consequences)
{
    const struct error cause = {.code = INVALID, .text = "no"};
    const struct error derived = {.code = ABORTED, .text = EXECUTE_DERIVED "Cleanup 1"};
    const struct cluster_outcome parts[] = {
        {"/job:ps/replica:0/task:0", &derived},
        {"/job:worker/replica:0/task:0", NULL},
        {"/job:worker/replica:0/task:1", &cause},
    };
    CHECK_FAILS(cluster_outcome_report(parts, 3, &err), &err, INVALID);
    CHECK_TEXT(err.text, "From /job:worker/replica:0/task:1:\nno");
    CHECK_FAILS(cluster_outcome_report(parts, 2, &err), &err, ABORTED);
    CHECK_TEXT(err.text, "From /job:ps/replica:0/task:0:\nCleanup 1");
    CHECK(cluster_outcome_report(parts + 1, 1, &err));
}

/* All are told, and CANCELLED only counts when there is nothing else. */
TEST(several_causes)
{
    const struct error first = {.code = CANCELLED, .text = "a"};
    const struct error second = {.code = NOT_FOUND, .text = "b"};
    const struct error derived = {.code = ABORTED, .text = EXECUTE_DERIVED "c"};
    const struct cluster_outcome parts[] = {
        {"/job:a", &first}, {"/job:b", &second}, {"/job:c", &derived}, {"/job:d", NULL}};
    CHECK_FAILS(cluster_outcome_report(parts, 4, &err), &err, NOT_FOUND);
    CHECK_TEXT(err.text, "2 root error(s) found.\n"
                         "  (0) CANCELLED: From /job:a:\na\n"
                         "  (1) NOT_FOUND: From /job:b:\nb\n"
                         "1 successful operations.\n"
                         "1 derived errors ignored.");
}

/* A stock task that is told to clean up while it runs does not mark what it says. */
TEST(a_stock_task_that_has_cleaned_up)
{
    const struct error cleanup = {.code = ABORTED, .text = "Cleanup 12\n\t [[{{node x_R6}}]]"};
    const struct error cause = {.code = INVALID, .text = "no"};
    const struct error own = {.code = ABORTED, .text = "Cleanup is not done"};
    const struct cluster_outcome parts[] = {{"/job:a", &cleanup}, {"/job:b", &cause}};
    CHECK_FAILS(cluster_outcome_report(parts, 2, &err), &err, INVALID);
    CHECK_TEXT(err.text, "From /job:b:\nno");
    CHECK_FAILS(cluster_outcome_report(parts, 1, &err), &err, ABORTED);
    CHECK_TEXT(err.text, "From /job:a:\nCleanup 12\n\t [[{{node x_R6}}]]");
    CHECK(!cluster_outcome_is_derived(&cause) && !cluster_outcome_is_derived(&own));
}
