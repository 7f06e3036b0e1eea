/* workspace_test.c - runs that follow each other share memory, runs that overlap do not. */

#include "runtime/workspace.h"

#include "tests/unit/test.h"

TEST(what_was_given_back_is_lent_again)
{
    struct workspace_pool all;
    workspace_pool_init(&all);
    struct workspace *large = workspace_take(&all, 5000), *small = workspace_take(&all, 100);
    CHECK(large && small && large->memory != small->memory);
    CHECK((uintptr_t)large->memory % 64 == 0 && large->size >= 5000);
    memset(large->memory, 1, 5000);
    memset(small->memory, 2, 100);
    int64_t bytes = workspace_pool_bytes(&all);
    workspace_give(&all, large);
    workspace_give(&all, small);
    CHECK(workspace_take(&all, 90) == small); /* the smallest that is large enough */
    CHECK(workspace_take(&all, 90) == large);
    CHECK_INT(workspace_pool_bytes(&all), bytes);
    workspace_give(&all, small);
    workspace_give(&all, large);
    workspace_pool_release(&all);
}

TEST(one_that_is_too_small_is_replaced)
{
    struct workspace_pool all;
    workspace_pool_init(&all);
    workspace_give(&all, workspace_take(&all, 1000));
    struct workspace *w = workspace_take(&all, 3000);
    CHECK(w && w->size >= 3000);
    CHECK_INT(workspace_pool_bytes(&all), (int64_t)w->size);
    workspace_drop(&all, w);
    CHECK_INT(workspace_pool_bytes(&all), 0);
    workspace_give(&all, NULL);
    workspace_drop(&all, NULL);
    workspace_pool_release(&all);
}
