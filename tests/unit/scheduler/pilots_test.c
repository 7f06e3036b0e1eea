/* pilots_test.c - which pilots are asked for and let go: the pure core, a second at a time. */
/* Faults of docs/reliability.md: F36. */

#include "scheduler/engines/pilots.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)
#define SEEN_MAX 8

/* An engine that does as it is told, and the nodes that come of it. */
struct yard {
    struct pilots *pilots;
    struct pilots_orders orders; /* of the last second */
    uint64_t now_us;
    struct pilots_seen seen[SEEN_MAX];
    int seen_count;
    struct pilots_node nodes[SEEN_MAX];
    int nodes_count;
    struct pilots_demand demand;
    int submitted;
};

static struct yard yard_new(int min, int max)
{
    struct yard yard = {.now_us = 1000 * SECOND};
    struct pilots_bounds bounds = {
        .queue = "q", .min = min, .max = max, .idle_us = 10 * SECOND, .join_us = 20 * SECOND};
    yard.pilots = pilots_new(&(struct pilots_options){.prefix = "slurm",
                                                      .what = "Slurm job",
                                                      .bounds = &bounds,
                                                      .bounds_count = 1,
                                                      .retry_us = 4 * SECOND,
                                                      .retry_max_us = 10 * SECOND});
    return yard;
}

static void yard_free(struct yard *yard)
{
    pilots_free(yard->pilots);
    pilots_orders_release(&yard->orders);
}

static struct pilots_seen *job(struct yard *yard, const char *id)
{
    for (int i = 0; i < yard->seen_count; i++)
        if (strcmp(yard->seen[i].id, id) == 0)
            return &yard->seen[i];
    return NULL;
}

static void says(struct yard *yard, const char *id, enum pilots_phase phase, const char *text)
{
    job(yard, id)->phase = phase;
    snprintf(job(yard, id)->says, PILOTS_SAYS_BYTES, "%s", text);
}

static void appears(struct yard *yard, const char *name, const char *id)
{
    struct pilots_seen *seen = &yard->seen[yard->seen_count++];
    assert_true(yard->seen_count <= SEEN_MAX);
    *seen = (struct pilots_seen){.phase = PILOTS_WAITS, .says = "PENDING (Resources)"};
    snprintf(seen->name, sizeof(seen->name), "%s", name);
    snprintf(seen->id, sizeof(seen->id), "%s", id);
}

static struct pilots_node *node(struct yard *yard, const char *name)
{
    for (int i = 0; i < yard->nodes_count; i++)
        if (strcmp(yard->nodes[i].name, name) == 0)
            return &yard->nodes[i];
    assert_true(yard->nodes_count < SEEN_MAX);
    struct pilots_node *made = &yard->nodes[yard->nodes_count];
    *made = (struct pilots_node){.name = name, .id = ++yard->nodes_count};
    return made;
}

static int ordered(const struct yard *yard, enum pilots_order_kind kind)
{
    int count = 0;
    for (int i = 0; i < yard->orders.count; i++)
        count += yard->orders.list[i].kind == kind;
    return count;
}

static const struct pilots_order *the(const struct yard *yard, enum pilots_order_kind kind)
{
    for (int i = 0; i < yard->orders.count; i++)
        if (yard->orders.list[i].kind == kind)
            return &yard->orders.list[i];
    CHECK_STOP("no such order: %d", (int)kind);
    return NULL;
}

/* One second, and what is ordered is done. */
static void passes(struct yard *yard)
{
    struct pilots_view view = {yard->seen, yard->seen_count, yard->nodes, yard->nodes_count};
    yard->now_us += SECOND;
    yard->orders.count = 0;
    pilots_look(yard->pilots, &view, yard->now_us, &yard->orders);
    pilots_decide(yard->pilots, &view, &yard->demand, yard->now_us, &yard->orders);
    for (int i = 0; i < yard->orders.count; i++) {
        const struct pilots_order *order = &yard->orders.list[i];
        char id[16];
        snprintf(id, sizeof(id), "%d", 100 + yard->submitted);
        for (int n = 0; n < yard->nodes_count; n++) {
            struct pilots_node *one = &yard->nodes[n];
            if (one->id == order->node && order->kind == PILOTS_DRAIN)
                one->draining = order->drain;
            if (one->id == order->node && order->kind == PILOTS_GONE)
                *one = (struct pilots_node){
                    .name = one->name, .id = one->id, .lost = true, .draining = one->draining};
        }
        if (order->kind == PILOTS_CANCEL)
            says(yard, order->id, PILOTS_ENDED, "CANCELLED");
        if (order->kind != PILOTS_SUBMIT)
            continue;
        yard->submitted++;
        appears(yard, order->name, id);
        pilots_submitted(yard->pilots, order->place, id, NULL, yard->now_us);
    }
}

static void passes_for(struct yard *yard, int seconds)
{
    for (int i = 0; i < seconds; i++)
        passes(yard);
}

/* Asks for one pilot, and lets it join. */
static void brings_one(struct yard *yard)
{
    yard->demand = (struct pilots_demand){.wanted = 1};
    passes(yard);
    CHECK_INT(ordered(yard, PILOTS_SUBMIT), 1);
    yard->demand = (struct pilots_demand){.used = 1};
    says(yard, "100", PILOTS_RUNS, "RUNNING");
    passes(yard);
    node(yard, "slurm-q-1")->here = true;
    node(yard, "slurm-q-1")->tasks_count = 1;
    node(yard, "slurm-q-1")->lost = false;
    yard->demand = (struct pilots_demand){0};
    passes(yard);
    CHECK_INT(pilots_coming(yard->pilots, 0), 0);
}

static const char *explained(struct yard *yard)
{
    static char text[400];
    return pilots_explain(yard->pilots, 0, yard->now_us, text, sizeof(text)) ? text : "";
}

TEST(as_many_as_wanted_and_no_more_than_may_be)
{
    struct yard yard = yard_new(0, 3);
    passes(&yard);
    CHECK_INT(yard.orders.count, 0);
    CHECK_TEXT(explained(&yard), "");
    yard.demand.wanted = 2;
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 2);
    CHECK_TEXT(yard.orders.list[0].name, "slurm-q-1");
    CHECK_TEXT(yard.orders.list[1].name, "slurm-q-2");
    CHECK_INT(pilots_coming(yard.pilots, 0), 2);
    CHECK_INT(pilots_room(yard.pilots, 0), 1);
    yard.demand = (struct pilots_demand){.used = 2, .wanted = 5};
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 1);
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 0);
    yard_free(&yard);
}

TEST(waiting_is_explained_in_the_engines_words)
{
    struct yard yard = yard_new(0, 2);
    yard.demand.wanted = 2;
    passes(&yard);
    yard.demand = (struct pilots_demand){.used = 2};
    passes(&yard);
    CHECK_TEXT(explained(&yard),
               "Waiting for Slurm job 100 (and 1 more), PENDING (Resources).");
    says(&yard, "100", PILOTS_RUNS, "RUNNING");
    passes(&yard);
    CHECK_TEXT(
        explained(&yard),
        "Waiting for Slurm job 100 (and 1 more), RUNNING: its agent has not joined yet.");
    yard_free(&yard);
}

TEST(an_idle_pilot_is_drained_then_let_go)
{
    struct yard yard = yard_new(0, 2);
    brings_one(&yard);
    passes_for(&yard, 30);
    CHECK_INT(ordered(&yard, PILOTS_CANCEL), 0); /* it has a task */
    node(&yard, "slurm-q-1")->tasks_count = 0;
    passes_for(&yard, 10);
    CHECK_INT(yard.orders.count, 0);
    passes(&yard);
    CHECK(the(&yard, PILOTS_DRAIN)->drain);
    passes(&yard);
    CHECK_TEXT(the(&yard, PILOTS_CANCEL)->id, "100");
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_FORGET), 1);
    CHECK_INT(the(&yard, PILOTS_GONE)->node, 1);
    CHECK(!the(&yard, PILOTS_DRAIN)->drain); /* its name's next use is not drained */
    CHECK(pilots_none(yard.pilots));
    passes(&yard);
    CHECK_INT(yard.orders.count, 0);
    CHECK_TEXT(explained(&yard), "");
    yard_free(&yard);
}

/* Between the drain and the cancel a task came. */
TEST(a_task_in_the_last_moment_keeps_it)
{
    struct yard yard = yard_new(0, 2);
    brings_one(&yard);
    node(&yard, "slurm-q-1")->tasks_count = 0;
    passes_for(&yard, 11);
    CHECK(node(&yard, "slurm-q-1")->draining);
    node(&yard, "slurm-q-1")->tasks_count = 1;
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_CANCEL), 0);
    CHECK(!the(&yard, PILOTS_DRAIN)->drain);
    CHECK(!node(&yard, "slurm-q-1")->draining);
    yard_free(&yard);
}

TEST(an_idle_pilot_stays_while_a_gang_waits_for_more_and_for_the_minimum)
{
    struct yard yard = yard_new(0, 2);
    brings_one(&yard);
    node(&yard, "slurm-q-1")->tasks_count = 0;
    yard.demand.wanted = 1; /* it was asked for, and comes, but not yet */
    passes(&yard);
    yard.demand = (struct pilots_demand){.used = 1};
    passes_for(&yard, 30);
    CHECK_INT(yard.orders.count, 0);
    yard_free(&yard);

    yard = yard_new(1, 2);
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 1);
    says(&yard, "100", PILOTS_RUNS, "RUNNING");
    node(&yard, "slurm-q-1")->here = true;
    passes_for(&yard, 30);
    CHECK_INT(yard.orders.count, 0);
    yard_free(&yard);
}

TEST(what_waits_and_is_not_needed_any_more_is_cancelled)
{
    struct yard yard = yard_new(0, 3);
    yard.demand.wanted = 3;
    passes(&yard);
    says(&yard, "100", PILOTS_RUNS, "RUNNING");
    yard.demand = (struct pilots_demand){.used = 1};
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_CANCEL), 2);
    CHECK_TEXT(the(&yard, PILOTS_CANCEL)->id, "102");
    passes(&yard);
    CHECK_INT(pilots_coming(yard.pilots, 0), 1); /* the one that runs may join */
    CHECK_INT(pilots_room(yard.pilots, 0), 2);
    yard_free(&yard);
}

TEST(an_agent_that_never_joins_is_cancelled_and_said_so)
{
    struct yard yard = yard_new(0, 1);
    yard.demand.wanted = 1;
    passes(&yard);
    yard.demand = (struct pilots_demand){.used = 1};
    says(&yard, "100", PILOTS_RUNS, "RUNNING");
    passes_for(&yard, 20);
    CHECK_INT(yard.orders.count, 0);
    passes(&yard);
    CHECK_TEXT(the(&yard, PILOTS_CANCEL)->id, "100");
    yard.demand = (struct pilots_demand){.wanted = 1};
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 0);
    CHECK_TEXT(
        explained(&yard),
        "Waiting for a Slurm job: the agent of Slurm job 100 did not join within 20 s of "
        "its start, and was cancelled: see its output. The next is tried in 3 s.");
    passes_for(&yard, 3);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 1);
    yard_free(&yard);
}

TEST(failures_are_tried_again_ever_more_slowly)
{
    struct yard yard = yard_new(0, 1);
    int waits[] = {4, 8, 10, 10}; /* the last ones at the bound */
    yard.demand.wanted = 1;
    for (int i = 0; i < ARRAY_LEN(waits); i++) {
        passes(&yard);
        CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 1);
        char id[16];
        snprintf(id, sizeof(id), "%d", 100 + i);
        says(&yard, id, PILOTS_ENDED, "FAILED (NonZeroExitCode)");
        passes_for(&yard, waits[i]);
        CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 0);
    }
    CHECK_TEXT(explained(&yard),
               "Waiting for a Slurm job: Slurm job 103 ended before its agent joined: FAILED "
               "(NonZeroExitCode). The next is tried in 1 s.");
    yard_free(&yard);
}

/* NODE_FAIL, PREEMPTED, TIMEOUT: nobody waits for the silence of a node that is gone. */
TEST(a_node_that_the_engine_took_is_gone_at_once)
{
    struct yard yard = yard_new(0, 1);
    brings_one(&yard);
    says(&yard, "100", PILOTS_ENDED, "PREEMPTED");
    yard.demand.wanted = 1;
    passes(&yard);
    CHECK_TEXT(the(&yard, PILOTS_GONE)->text, "its Slurm job 100 has ended: PREEMPTED");
    CHECK_INT(ordered(&yard, PILOTS_FORGET), 1);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 1); /* no failure of ours */
    yard_free(&yard);
}

TEST(a_requeued_one_waits_again_and_joins_again)
{
    struct yard yard = yard_new(0, 1);
    brings_one(&yard);
    says(&yard, "100", PILOTS_WAITS, "PENDING (BeginTime)");
    yard.demand.used = 1;
    passes(&yard);
    CHECK_TEXT(the(&yard, PILOTS_GONE)->text, "PENDING (BeginTime)");
    CHECK_INT(pilots_coming(yard.pilots, 0), 1);
    says(&yard, "100", PILOTS_RUNS, "RUNNING");
    passes(&yard);
    CHECK_INT(pilots_coming(yard.pilots, 0), 1);
    *node(&yard, "slurm-q-1") =
        (struct pilots_node){.name = "slurm-q-1", .id = 1, .here = true};
    passes(&yard);
    CHECK_INT(pilots_coming(yard.pilots, 0), 0);
    yard_free(&yard);
}

TEST(a_silent_node_that_was_given_up_is_cancelled)
{
    struct yard yard = yard_new(0, 1);
    brings_one(&yard);
    node(&yard, "slurm-q-1")->here = false;
    passes_for(&yard, 60);
    CHECK_INT(yard.orders.count, 0); /* the scheduler judges silence */
    node(&yard, "slurm-q-1")->lost = true;
    passes(&yard);
    CHECK_TEXT(the(&yard, PILOTS_CANCEL)->id, "100");
    yard_free(&yard);
}

/* sbatch did not answer in time, and the job is there or not. */
TEST(nobody_knows_whether_it_was_submitted)
{
    struct yard yard = yard_new(0, 1);
    yard.demand.wanted = 1;
    passes(&yard);
    yard.seen_count = 0;
    pilots_submitted(yard.pilots, 0, NULL, "sbatch did not end within 20000 ms", yard.now_us);
    passes_for(&yard, 29);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 0);
    appears(&yard, "slurm-q-1", "77");
    yard.demand = (struct pilots_demand){.used = 1};
    passes(&yard);
    CHECK_TEXT(explained(&yard), "Waiting for Slurm job 77, PENDING (Resources).");
    appears(&yard, "slurm-q-1", "78"); /* a second one of the name */
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_CANCEL), 1);
    CHECK_TEXT(the(&yard, PILOTS_CANCEL)->id, "78");
    CHECK_INT(pilots_coming(yard.pilots, 0), 1);
    yard_free(&yard);

    yard = yard_new(0, 1);
    yard.demand.wanted = 1;
    passes(&yard);
    yard.seen_count = 0;
    pilots_submitted(yard.pilots, 0, NULL, "no", yard.now_us);
    passes_for(&yard, 30);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 1); /* it is not: again */
    yard_free(&yard);
}

TEST(a_new_server_finds_what_runs)
{
    struct yard yard = yard_new(0, 3);
    appears(&yard, "slurm-q-1", "5");
    appears(&yard, "slurm-q-2", "6");
    says(&yard, "5", PILOTS_RUNS, "RUNNING");
    *node(&yard, "slurm-q-1") = (struct pilots_node){
        .name = "slurm-q-1", .id = 1, .here = true, .draining = true, .tasks_count = 1};
    node(&yard, "slurm-q-3")->tasks_count = 1; /* its job ended meanwhile */
    yard.demand.used = 1;
    passes(&yard);
    CHECK_INT(ordered(&yard, PILOTS_SUBMIT), 0);
    CHECK_INT(pilots_coming(yard.pilots, 0), 1);
    CHECK_INT(the(&yard, PILOTS_GONE)->node, 2);
    CHECK_INT(ordered(&yard, PILOTS_DRAIN), 0); /* a person drained it, for all we know */

    struct pilots_orders end = {0};
    struct pilots_view view = {yard.seen, yard.seen_count, yard.nodes, yard.nodes_count};
    pilots_end(yard.pilots, &view, &end);
    CHECK_INT(end.count, 1); /* the one with a task stays */
    CHECK_TEXT(end.list[0].id, "6");
    pilots_orders_release(&end);
    yard_free(&yard);
}
