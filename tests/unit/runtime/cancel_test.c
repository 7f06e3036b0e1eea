/* cancel_test.c - who waits is woken: by the client, by closing the session, by the clock. */

#include <unistd.h>

#include "tests/unit/runtime/flow.h"

/* --- the list --- */

static int called[8];
static int called_count;

static void note(void *arg)
{
    called[called_count++] = (int)(intptr_t)arg;
}

TEST(all_that_are_registered_are_called_in_order)
{
    struct cancel *cancel = cancel_new();
    uint64_t tickets[3], late;
    called_count = 0;
    for (intptr_t i = 0; i < 3; i++)
        CHECK(cancel_add(cancel, note, (void *)i, &tickets[i]));
    CHECK(cancel_remove(cancel, tickets[1]));
    CHECK(!cancel_requested(cancel));
    cancel_now(cancel);
    cancel_now(cancel);
    CHECK(cancel_requested(cancel));
    CHECK_INT(called_count, 2);
    CHECK_INT(called[0], 0);
    CHECK_INT(called[1], 2);
    CHECK(!cancel_remove(cancel, tickets[0]));
    CHECK(!cancel_add(cancel, note, NULL, &late));
    cancel_clear(cancel);
    CHECK(cancel_add(cancel, note, (void *)7, &late));
    CHECK(cancel_remove(cancel, late));
    cancel_free(cancel);
}

struct slow {
    int entered; /* __atomic */
    int left;    /* __atomic */
};

static void slowly(void *arg)
{
    struct slow *slow = arg;
    __atomic_store_n(&slow->entered, 1, __ATOMIC_RELEASE);
    usleep(20000);
    __atomic_store_n(&slow->left, 1, __ATOMIC_RELEASE);
}

static void *cancel_thread(void *arg)
{
    cancel_now(arg);
    return NULL;
}

TEST(who_withdraws_waits_for_a_callback_that_runs)
{
    struct cancel *cancel = cancel_new();
    struct slow slow = {0};
    uint64_t ticket;
    pthread_t thread;
    CHECK(cancel_add(cancel, slowly, &slow, &ticket));
    pthread_create(&thread, NULL, cancel_thread, cancel);
    while (!__atomic_load_n(&slow.entered, __ATOMIC_ACQUIRE))
        usleep(100);
    CHECK(!cancel_remove(cancel, ticket));
    CHECK(__atomic_load_n(&slow.left, __ATOMIC_ACQUIRE));
    pthread_join(thread, NULL);
    cancel_free(cancel);
}

/* --- runs --- */

/* "wait" waits, "spin" goes round for ever, "x" is a number. */
static struct world *world_of_waits(void)
{
    struct world *w = world_new_with(true);
    struct edge x = scalar(w, "x", 3);
    node1(w, "Wait", "wait", x);
    struct loop loop = loop_begin(w, "loop", scalar(w, "zero", 0), scalar(w, "n", 1e30), 10);
    node1(w, "Identity", "spin", loop.exit);
    begin(w);
    return w;
}

static void check_usable(struct world *w)
{
    struct tensor out;
    CHECK_OK(run_with(w, NULL, NULL, "x", &out, &err), &err);
    CHECK(tensor_number(&out, 0) == 3);
    tensor_release(&out);
}

TEST(a_client_ends_its_run_while_a_kernel_waits)
{
    struct world *w = world_of_waits();
    for (int round = 0; round < 3; round++) {
        struct one_run one = {.w = w, .fetch = "wait", .cancel = cancel_new()};
        pthread_t thread;
        pthread_create(&thread, NULL, run_once, &one);
        await_waits(1);
        cancel_now(one.cancel);
        pthread_join(thread, NULL);
        CHECK_FAILS(one.ok, &one.err, CANCELLED);
        run_once(&one); /* cancelled before it begins */
        CHECK_FAILS(one.ok, &one.err, CANCELLED);
        cancel_free(one.cancel);
        check_usable(w);
    }
    world_free(w);
}

TEST(a_client_ends_a_loop_that_goes_on_for_ever)
{
    struct world *w = world_of_waits();
    struct one_run one = {.w = w, .fetch = "spin", .cancel = cancel_new()};
    pthread_t thread;
    pthread_create(&thread, NULL, run_once, &one);
    usleep(20000);
    cancel_now(one.cancel);
    pthread_join(thread, NULL);
    CHECK_FAILS(one.ok, &one.err, CANCELLED);
    cancel_free(one.cancel);
    check_usable(w);
    world_free(w);
}

TEST(a_run_ends_when_its_time_is_over)
{
    struct world *w = world_of_waits();
    const char *const fetches[] = {"wait", "spin"};
    for (int i = 0; i < 2; i++) {
        struct one_run one = {.w = w, .fetch = fetches[i], .timeout_ms = 30};
        run_once(&one);
        CHECK_FAILS(one.ok, &one.err, DEADLINE);
        check_usable(w);
    }
    world_free(w);
}

TEST(all_runs_of_a_session_are_cancelled_and_others_may_begin)
{
    struct world *w = world_of_waits();
    struct one_run runs[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        runs[i] = (struct one_run){.w = w, .fetch = i < 2 ? "wait" : "spin"};
        pthread_create(&threads[i], NULL, run_once, &runs[i]);
    }
    await_waits(2);
    usleep(10000);
    session_cancel_all(w->session);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK_FAILS(runs[i].ok, &runs[i].err, CANCELLED);
    }
    check_usable(w);
    world_free(w);
}

TEST(a_session_that_is_closed_ends_its_runs_and_takes_no_more)
{
    struct world *w = world_of_waits();
    struct one_run runs[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        runs[i] = (struct one_run){.w = w, .fetch = "wait"};
        pthread_create(&threads[i], NULL, run_once, &runs[i]);
    }
    await_waits(2);
    session_close(w->session);
    session_close(w->session);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_FAILS(runs[i].ok, &runs[i].err, CANCELLED);
        CHECK_TEXT(runs[i].err.text, "Session has been closed.");
    }
    struct tensor out;
    CHECK_FAILS(run_with(w, NULL, NULL, "x", &out, &err), &err, CANCELLED);
    CHECK_TEXT(err.text, "Session has been closed.");
    world_free(w);
}

/* The graph may grow while a run waits for what the new nodes will bring. */
TEST(a_session_is_extended_while_a_run_waits)
{
    struct world *w = world_of_waits();
    struct one_run one = {.w = w, .fetch = "wait"};
    pthread_t thread;
    pthread_create(&thread, NULL, run_once, &one);
    await_waits(1);
    struct graph *more = graph_new();
    struct builder b = {.graph = more, .scope = "", .err = &err};
    builder_scalar(&b, "more", F32, 4);
    CHECK_OK(session_extend_graph(w->session, more, &err), &err);
    graph_free(more);
    struct tensor out;
    CHECK_OK(run_with(w, NULL, NULL, "more", &out, &err), &err);
    tensor_release(&out);
    end_wait(0);
    pthread_join(thread, NULL);
    CHECK_OK(one.ok, &one.err);
    world_free(w);
}
