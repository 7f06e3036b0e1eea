/* turn_test.c - large values of several steps that are to be added come one after another. */

#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "proto/attention.h"
#include "proto/internal.h"
#include "runtime/turn.h"
#include "tests/unit/runtime/exchange.h"

enum { LONG_BYTES = 100 << 20, ELEMENTS = 1100000 };

/* --- turns --- */

struct other {
    pthread_t thread;
    int64_t step_id;
    size_t bytes;
    uint64_t turn; /* __atomic; 0: it waits */
};

static void *other_main(void *arg)
{
    struct other *other = arg;
    uint64_t turn = turn_begin(other->step_id, other->bytes);
    __atomic_store_n(&other->turn, turn, __ATOMIC_RELEASE);
    return NULL;
}

static void other_begin(struct other *other, int64_t step_id, size_t bytes)
{
    *other = (struct other){.step_id = step_id, .bytes = bytes};
    CHECK(!pthread_create(&other->thread, NULL, other_main, other));
}

static uint64_t other_end(struct other *other)
{
    pthread_join(other->thread, NULL);
    return other->turn;
}

TEST(a_turn_begins_when_the_one_before_is_over)
{
    struct other other;
    uint64_t start_us = clock_monotonic_us(), first = turn_begin(1, LONG_BYTES);
    other_begin(&other, 2, LONG_BYTES);
    usleep(50000);
    bool began = __atomic_load_n(&other.turn, __ATOMIC_ACQUIRE);
    CHECK(!began || clock_monotonic_us() - start_us > 900000);
    CHECK(began || turn_current() == first);
    turn_end(first);
    uint64_t second = other_end(&other);
    CHECK_INT(turn_current(), second);
    turn_end(first); /* once more is nothing */
    CHECK_INT(turn_current(), second);
    turn_end(second);
    CHECK_INT(turn_current(), 0);
}

/* A step's values do not wait for each other, nor what one thread fetches: these wait for no
 * time at all, so that the test would take seconds if they did. */
TEST(what_belongs_together_is_not_held_up)
{
    struct other other;
    uint64_t start_us = clock_monotonic_us();
    for (int i = 0; i < 20; i++) {
        (void)turn_begin(1, LONG_BYTES);
        other_begin(&other, 1, LONG_BYTES);
        (void)other_end(&other);
        (void)turn_begin(1, LONG_BYTES);
        turn_end(turn_begin(2, LONG_BYTES));
    }
    CHECK(clock_monotonic_us() - start_us < 10000000);
    CHECK_INT(turn_current(), 0);
}

static bool has_come(void *arg)
{
    return *(bool *)arg;
}

static void fetch_while_attending(struct rpc_client *client, bool (*over)(void *arg), void *arg,
                                  uint64_t until_ns)
{
    (void)client, (void)over, (void)until_ns;
    *(bool *)arg = true;
    turn_end(turn_begin(2, LONG_BYTES));
}

static void hold(struct rpc_client *client)
{
    (void)client;
}

/* The value in turn may be for the very run that reads others' answers while it waits. */
TEST(who_reads_answers_for_others_goes_on_when_its_own_have_come)
{
    static const struct rpc_transport transport = {
        .client_attend = fetch_while_attending, .client_hold = hold, .client_drop = hold};
    struct rpc_client client = {.transport = &transport};
    struct other other;
    bool come = false;
    uint64_t start_us = clock_monotonic_us();
    for (int i = 0; i < 10; i++) {
        other_begin(&other, 1, LONG_BYTES);
        (void)other_end(&other);
        attention_begin();
        attention_note(&client);
        attention_give(has_come, &come, 0);
        attention_end();
    }
    CHECK(clock_monotonic_us() - start_us < 5000000); /* else a second each */
    CHECK_INT(turn_current(), 0);
}

/* Nobody waits for ever for a value that is not used. */
TEST(a_value_that_is_not_used_is_waited_for_a_while_only)
{
    struct other other;
    uint64_t start_us = clock_monotonic_us(), stuck = turn_begin(1, LONG_BYTES);
    other_begin(&other, 2, 10 << 20);
    uint64_t next = other_end(&other);
    CHECK(clock_monotonic_us() - start_us >= 100000); /* 10 ns for a byte */
    CHECK(next > stuck);
    turn_end(stuck); /* is late */
    CHECK_INT(turn_current(), next);
    turn_end(next);
}

TEST(a_turn_ends_with_its_value)
{
    struct tensor value, shared;
    for (int kept = 0; kept < 2; kept++) {
        CHECK_OK(tensor_init(&value, F32, &SHAPE(ELEMENTS), &err), &err);
        uint64_t turn = turn_begin(1, tensor_bytes(&value));
        turn_give(turn, &value);
        tensor_share(&shared, &value);
        tensor_release(&shared);
        CHECK_INT(turn_current(), turn);
        if (kept)
            turn_keep(&value);
        CHECK_INT(turn_current(), kept ? 0 : turn);
        if (kept) {
            turn_take(&value);
            CHECK(turn_current() > turn);
        }
        tensor_release(&value);
        CHECK_INT(turn_current(), 0);
    }
    CHECK_OK(tensor_init(&value, F32, &SHAPE(10), &err), &err);
    turn_keep(&value);
    turn_take(&value); /* is small */
    CHECK_INT(turn_current(), 0);
    tensor_release(&value);
}

/* --- steps --- */

/* How many turns there are in a step; all are over with it. */
static int64_t count_turns(const char *fetch, const struct tensor *x)
{
    const char *feed = "x";
    struct tensor out;
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = x,
                                    .feeds_count = 1,
                                    .targets = &fetch,
                                    .targets_count = 1,
                                    .timeout_ms = 20000};
    uint64_t before = turn_begin(-1, 0);
    turn_end(before);
    CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
    for (int i = 0; turn_current() && i < 5000; i++)
        usleep(1000);
    CHECK_INT(turn_current(), 0);
    uint64_t after = turn_begin(-1, 0);
    turn_end(after);
    return (int64_t)(after - before) - 1;
}

/* Only what is used as soon as it comes takes a turn: what a variable becomes, or is computed
 * with, does not. */
TEST(values_that_are_added_take_turns)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    struct edge far = on(2, node1(world, "Neg", "far", x));
    struct edge v = on(
        0, builder_add(&world->b, "VariableV2", "v", NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(ELEMENTS)))));
    on(0, builder_add(&world->b, "Assign", "assign", INPUTS(v, far), NO_ATTRS));
    struct edge add =
        on(0, builder_add(&world->b, "AssignAdd", "add", INPUTS(v, far), NO_ATTRS));
    struct edge first = on(0, node1(world, "Neg", "first", far));
    on(0, node2(world, "AddV2", "used_twice", node1(world, "Identity", "seen", add), first));
    extend(session, world);
    struct tensor in;
    CHECK_OK(tensor_init(&in, F32, &SHAPE(ELEMENTS), &err), &err);
    memset(in.data, 0, tensor_bytes(&in));
    for (int i = 0; i < 10; i++) /* until the tasks know that they are near */
        CHECK_INT(count_turns("assign", &in), 0);
    for (int i = 0; i < 5; i++)
        CHECK_INT(count_turns("add", &in), 1);
    CHECK_INT(count_turns("first", &in), 0);
    CHECK_INT(count_turns("used_twice", &in), 0);
    tensor_release(&in);
    stop();
}
