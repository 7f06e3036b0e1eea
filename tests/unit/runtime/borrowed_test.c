/* borrowed_test.c - tensors in the memory of a task that is near. */
/* Faults of docs/reliability.md: F47. */

#include "base/clock.h"
#include "runtime/buffer_shared.h"
#include "runtime/turn.h"
#include "runtime/worker/lender.h"
#include "runtime/worker/lent.h"
#include "tests/unit/runtime/near.h"

enum { COUNT = 1500000 };

static char key[300];

/* Memory that it can be mapped from, or else not. */
static struct tensor numbers(bool shared)
{
    struct tensor value;
    bool made = shared ? tensor_init_sent(&value, F32, &SHAPE(COUNT), &err)
                       : tensor_init(&value, F32, &SHAPE(COUNT), &err);
    CHECK_OK(made, &err);
    for (int64_t k = 0; k < value.count; k++)
        tensor_f32_mut(&value)[k] = (float)k;
    return value;
}

/* A cluster whose ps is known to be near. */
static void start_near(void)
{
    start();
    scalar(world, "one", 1);
    send_key(key);
    struct tensor value = numbers(false);
    CHECK_INT(settle_peer(1000, key, &value), PEER_NEAR);
    tensor_release(&value);
    await_no_loans();
}

/* As a kernel there would send it; then it comes here by the link. */
static struct tensor bring(int64_t step_id, struct tensor *value, bool last)
{
    struct arrival arrival = {.keeps = true};
    struct worker_link *ps = cluster->links[0];
    put(step_id, key, NULL); /* the step begins */
    CHECK_OK(worker_send(cluster->workers[0], step_id, key, value, &err), &err);
    if (last)
        tensor_release(value);
    ps->kind->receive(ps, step_id, key, arrive, &arrival);
    await_arrival(&arrival);
    CHECK_OK(arrival.err.code == OK, &arrival.err);
    return arrival.value;
}

TEST(what_a_near_task_lends_is_mapped)
{
    start_near();
    struct tensor value = numbers(true), wanted = numbers(false);
    struct tensor got = bring(1, &value, false);
    CHECK_INT(got.buffer->file, -1);
    CHECK(tensor_equal(&got, &wanted));
    CHECK_INT(worker_lent_count(cluster->workers[0]), 1);

    /* Nobody writes it: neither who has it, nor who lends it. */
    CHECK(!tensor_is_exclusive(&got));
    CHECK(!tensor_is_exclusive(&value));
    tensor_release(&got);
    await_no_loans();
    CHECK(tensor_is_exclusive(&value));

    /* Nothing is copied: it is the same memory. */
    got = bring(2, &value, false);
    tensor_f32_mut(&value)[COUNT - 1] = -1;
    CHECK(tensor_f32(&got)[COUNT - 1] == -1);
    tensor_release(&got);
    await_no_loans();
    tensor_release(&wanted);
    tensor_release(&value);
    stop();
}

/* Then who has it may write there, and its maker uses the memory again. */
TEST(what_nobody_looks_at_any_more_is_given_away)
{
    start_near();
    struct tensor value = numbers(true);
    struct tensor got = bring(1, &value, true);
    CHECK(tensor_is_exclusive(&got));
    tensor_f32_mut(&got)[0] = 5;
    tensor_release(&got);
    await_no_loans();
    stop();
}

/* Other memory is read, as are bools, which may not be any. */
TEST(the_rest_is_read)
{
    start_near();
    struct tensor value = numbers(false), bools, got;
    got = bring(1, &value, false);
    CHECK(got.buffer->file != -1 && tensor_equal(&got, &value));
    CHECK_INT(value.buffer->copied, 1);
    tensor_release(&got);
    tensor_release(&value);

    CHECK_OK(tensor_init_sent(&bools, BOOL, &SHAPE(5 << 20), &err), &err);
    memset(bools.data, 7, tensor_bytes(&bools));
    got = bring(2, &bools, false);
    CHECK(got.buffer->file != -1);
    CHECK_INT(((uint8_t *)got.data)[5], 1);
    tensor_release(&got);
    tensor_release(&bools);
    await_no_loans();
    stop();
}

/* The values of a step may outlive it where they went. */
TEST(a_step_ends_before_its_values)
{
    start_near();
    struct tensor value = numbers(true);
    struct tensor got = bring(1, &value, false);
    cluster->links[0]->kind->cleanup_graph(cluster->links[0], 1);
    for (int i = 0; !is_over(1, key) && i < 5000; i++)
        usleep(1000);
    CHECK_INT(worker_lent_count(cluster->workers[0]), 1);
    CHECK(!tensor_is_exclusive(&value));
    tensor_release(&got);
    await_no_loans();
    CHECK(tensor_is_exclusive(&value));
    tensor_release(&value);
    stop();
}

/* Who does not give it back keeps it: nobody else gets that memory. */
TEST(what_is_not_given_back_is_left_to_who_has_it)
{
    struct lent *lent = lent_new(LENT_MS);
    struct near_place place;
    buffer_share_large();
    struct tensor value = numbers(true);
    CHECK(lent_add(lent, &(struct loan){1, 7}, &value, &place, NULL));
    CHECK_INT(place.file, value.buffer->file);
    CHECK(!place.writable);
    lent_end_step(lent, 1);
    CHECK_INT(lent_count(lent), 1);
    CHECK(!lent_has_step(lent, 1));
    uint64_t start_ns = clock_monotonic_ns();
    while (lent_count(lent) && clock_monotonic_ns() - start_ns < UINT64_C(20000000000))
        usleep(10000);
    CHECK_INT(lent_count(lent), 0);
    for (int i = 0; value.buffer->references > 1 && i < 5000; i++)
        usleep(1000);
    CHECK_INT(value.buffer->references, 1);
    CHECK(!tensor_is_exclusive(&value));
    CHECK(!lent_end(lent, 7));
    lent_free(lent);
    tensor_release(&value);
    buffer_free_spare();
}

/* Its link is gone, and nobody is left to be told. */
TEST(it_is_released_when_its_lender_is_gone)
{
    start_near();
    struct tensor value = numbers(true), wanted = numbers(false);
    struct tensor got = bring(1, &value, true);
    stop();
    CHECK(tensor_equal(&got, &wanted));
    tensor_release(&got);
    tensor_release(&wanted);
    buffer_free_spare();
}

/* Only one of several steps is to be added at a time, mapped or not. */
TEST(a_mapped_value_has_its_turn)
{
    start_near();
    struct tensor value = numbers(true);
    turn_set_wanted(true);
    struct tensor got = bring(1, &value, false);
    turn_set_wanted(false);
    CHECK(turn_current());
    tensor_release(&got);
    CHECK(!turn_current());
    await_no_loans();
    tensor_release(&value);
    stop();
}

/* What another task has read stays as it was read, whatever the variable becomes. */
TEST(a_variable_changes_while_it_is_mapped)
{
    start_near();
    const struct shape shape = SHAPE(COUNT);
    struct edge v =
        on(0, builder_add(&world->b, "VariableV2", "v", NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &shape))));
    struct edge x = placeholder(world, "x", F32);
    on(0, node2(world, "Assign", "set", v, x));
    struct edge read = on(0, node1(world, "Identity", "read", v));
    struct edge there = on(1, node1(world, "Identity", "there", read));
    struct edge more = on(0, node2(world, "AssignAdd", "more", v, x));
    struct edge late = on(1, node1(world, "Neg", "late", there));
    graph_add_control(world->graph, more.from, there.from);
    graph_add_control(world->graph, late.from, more.from);
    extend(session, world);
    struct tensor in = numbers(false), out;
    for (int step = 0; step < 12; step++) {
        const char *feed = "x", *fetch = step ? "late" : "set";
        const struct session_run run = {.feeds = &feed,
                                        .feed_values = &in,
                                        .feeds_count = 1,
                                        .fetches = &fetch,
                                        .fetches_count = 1,
                                        .timeout_ms = 20000};
        CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
        for (int i = 0; step && i < 5; i++)
            CHECK(tensor_f32(&out)[i * 1000] == (float)(-step * i * 1000));
        tensor_release(&out);
    }
    tensor_release(&in);
    stop();
}

/* --- what another task may say --- */

static void never(void *arg, int64_t request_id)
{
    (void)request_id;
    ++*(int *)arg;
}

/* What `place` says of `value`, as it comes in. */
static bool take(const struct tensor *value, const struct near_place *place,
                 struct incoming *incoming)
{
    struct str head = {0};
    wire_write_received_head(value, false, place, NULL, &head);
    bool ok =
        incoming_take(incoming, head.data, head.size, &err) && incoming_end(incoming, &err);
    str_release(&head);
    return ok;
}

TEST(files_that_another_names_are_looked_at)
{
    unsigned char nonce[NEAR_NONCE_BYTES] = "0123456789abcde";
    struct near_process self = {.pid = getpid(), .proof = (uint64_t)(uintptr_t)nonce};
    memcpy(self.nonce, nonce, sizeof(nonce));
    int told = 0;
    struct lender *lender = lender_new(never, &told);
    int64_t mark = 9;
    buffer_share_large();
    struct tensor value = numbers(true), bools = value;
    struct near_place place = {.address = (uint64_t)(uintptr_t)value.data,
                               .mark = (uint64_t)(uintptr_t)&mark,
                               .file = value.buffer->file};
    struct incoming incoming = {.near = &self, .lender = lender, .request_id = 9};
    CHECK_OK(take(&value, &place, &incoming), &err);
    CHECK(!incoming.was_lent && incoming.value.buffer->file == -1);
    incoming_release(&incoming);
    CHECK_INT(told, 1);

    /* It is no such file: it is read instead. */
    const int files[] = {-5, 1, 1000000};
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        place.file = files[i];
        incoming = (struct incoming){.near = &self, .lender = lender, .request_id = 9};
        CHECK_OK(take(&value, &place, &incoming), &err);
        CHECK(incoming.was_lent && incoming.value.buffer->file != -1);
        CHECK(tensor_equal(&incoming.value, &value));
        incoming_release(&incoming);
    }

    /* It was taken back. */
    place.file = value.buffer->file;
    mark = 8;
    incoming = (struct incoming){.near = &self, .lender = lender, .request_id = 9};
    CHECK(!take(&value, &place, &incoming));
    CHECK_INT(err.code, UNAVAILABLE);
    incoming_release(&incoming);

    /* Bytes are no bools. */
    mark = 9;
    bools.dtype = BOOL;
    bools.count = 4 * COUNT;
    bools.shape = SHAPE(4 * COUNT);
    incoming = (struct incoming){.near = &self, .lender = lender, .request_id = 9};
    CHECK(!take(&bools, &place, &incoming));
    CHECK_INT(err.code, INVALID);
    CHECK(strstr(err.text, "the elements of a bool tensor are sent, not mapped"));
    incoming_release(&incoming);
    CHECK_INT(told, 2);

    /* Nobody is told any more. */
    incoming = (struct incoming){.near = &self, .lender = lender, .request_id = 9};
    CHECK_OK(take(&value, &place, &incoming), &err);
    lender_close(lender);
    incoming_release(&incoming);
    CHECK_INT(told, 2);
    lender_unref(lender);
    tensor_release(&value);
    buffer_free_spare();
}
