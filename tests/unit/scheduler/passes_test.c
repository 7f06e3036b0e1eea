/* passes_test.c - the longest passes are kept, the longest first. */

#include "scheduler/passes.h"
#include "tests/unit/test.h"

TEST(the_longest_passes_are_kept)
{
    static const int took[] = {5, 3, 9, 1, 7, 9, 2, 8, 4, 6, 10, 1};
    static const int kept[] = {10, 9, 9, 8, 7, 6, 5, 4};
    struct passes passes = {0};
    int sum = 0;
    for (int i = 0; i < ARRAY_LEN(took); i++) {
        passes_note(&passes, &(struct pass){.took_us = (uint64_t)took[i], .messages = i});
        sum += took[i];
    }
    CHECK_INT(passes.count, ARRAY_LEN(took));
    CHECK_INT(passes.took_us, sum);
    CHECK_INT(passes.longest_count, PASSES_KEPT);
    for (int i = 0; i < PASSES_KEPT; i++)
        CHECK_INT(passes.longest[i].took_us, kept[i]);
    CHECK_INT(passes.longest[1].messages, 2); /* of equals the first stands first */
    CHECK_INT(passes.longest[2].messages, 5);
}
