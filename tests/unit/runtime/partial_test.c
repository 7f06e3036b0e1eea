/* partial_test.c - a run in several calls: feeds and fetches a few at a time. */

#include "runtime/partial.h"
#include "tests/unit/runtime/flow.h"

#define NAMES(...)                                                                             \
    (const char *const[]){__VA_ARGS__},                                                        \
        (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* r1 = a + b, r2 = r1 + c, r3 = wait(r2), which nobody may end */
static struct world *world_of_sums(void)
{
    struct world *w = world_new();
    struct edge a = placeholder(w, "a", F32), b = placeholder(w, "b", F32);
    struct edge r1 = node2(w, "AddV2", "r1", a, b);
    struct edge r2 = node2(w, "AddV2", "r2", r1, placeholder(w, "c", F32));
    node1(w, "Wait", "r3", r2);
    begin(w);
    return w;
}

static bool call(struct world *w, struct partial *partial, const char *feed, double value,
                 const char *fetch, double *result)
{
    struct tensor in = number(F32, value), out;
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = feed ? 1 : 0,
                                    .fetches = &fetch,
                                    .fetches_count = fetch ? 1 : 0};
    bool ok = session_partial_run(w->session, partial, &run, &out, &err);
    tensor_release(&in);
    if (ok && fetch) {
        *result = tensor_number(&out, 0);
        tensor_release(&out);
    }
    return ok;
}

static struct partial *setup(struct world *w, const char *const *fetches, int fetches_count)
{
    const char *const feeds[] = {"a", "b:0", "c"};
    const struct session_run run = {
        .feeds = feeds, .feeds_count = 3, .fetches = fetches, .fetches_count = fetches_count};
    struct partial *partial = session_partial_setup(w->session, &run, &err);
    CHECK_OK(partial, &err);
    return partial;
}

TEST(fetches_are_taken_as_soon_as_their_feeds_have_come)
{
    struct world *w = world_of_sums();
    double result = 0;
    for (int round = 0; round < 3; round++) {
        struct partial *partial = setup(w, NAMES("r1", "r2:0"));
        CHECK_OK(call(w, partial, "a:0", 1, NULL, NULL), &err);
        CHECK_OK(call(w, partial, "b", 2, "r1", &result), &err);
        CHECK(result == 3);
        CHECK(!partial_is_done(partial));
        CHECK_OK(call(w, partial, "c", 10 * round, "r2", &result), &err);
        CHECK(result == 3 + 10 * round);
        CHECK(partial_is_done(partial));
        partial_free(partial);
    }
    world_free(w);
}

TEST(a_call_that_asks_too_much_changes_nothing)
{
    struct world *w = world_of_sums();
    double result = 0;
    struct partial *partial = setup(w, NAMES("r1", "r2"));
    CHECK_FAILS(call(w, partial, "a", 1, "r1", &result), &err, INVALID);
    CHECK_FAILS(call(w, partial, NULL, 0, "r2", &result), &err, INVALID);
    CHECK_FAILS(call(w, partial, "x", 1, NULL, &result), &err, INVALID);
    CHECK_FAILS(call(w, partial, NULL, 0, "r3", &result), &err, INVALID);
    CHECK_OK(call(w, partial, "a", 4, NULL, &result), &err);
    CHECK_FAILS(call(w, partial, "a", 4, NULL, &result), &err, INVALID);
    CHECK_OK(call(w, partial, "b", 5, "r1", &result), &err);
    CHECK(result == 9);
    CHECK_FAILS(call(w, partial, NULL, 0, "r1", &result), &err, INVALID);
    partial_free(partial); /* before it is done */
    world_free(w);
}

TEST(a_partial_run_that_waits_is_ended)
{
    struct world *w = world_of_sums();
    double result = 0;
    struct partial *partial = setup(w, NAMES("r1", "r2", "r3"));
    CHECK_OK(call(w, partial, "a", 1, NULL, NULL), &err);
    CHECK_OK(call(w, partial, "b", 2, "r1", &result), &err);
    CHECK_OK(call(w, partial, "c", 3, "r2", &result), &err); /* r3 waits now */
    CHECK(result == 6);
    partial_free(partial);

    partial = setup(w, NAMES("r1", "r2", "r3"));
    CHECK_OK(call(w, partial, "a", 1, NULL, NULL), &err);
    session_close(w->session);
    CHECK_FAILS(call(w, partial, "b", 2, "r1", &result), &err, CANCELLED);
    partial_free(partial);
    world_free(w);
}

static void *end_first_wait(void *arg)
{
    (void)arg;
    await_waits(1);
    end_wait(0);
    return NULL;
}

TEST(the_last_call_waits_for_all)
{
    struct world *w = world_of_sums();
    double result = 0;
    pthread_t thread;
    struct partial *partial = setup(w, NAMES("r3"));
    CHECK_OK(call(w, partial, "a", 1, NULL, NULL), &err);
    CHECK_OK(call(w, partial, "b", 2, NULL, NULL), &err);
    pthread_create(&thread, NULL, end_first_wait, NULL);
    CHECK_OK(call(w, partial, "c", 3, "r3", &result), &err);
    pthread_join(thread, NULL);
    CHECK(result == 6);
    CHECK(partial_is_done(partial));
    partial_free(partial);
    world_free(w);
}
