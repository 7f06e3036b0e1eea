/* collective_test.c - collectives over three tasks, which reach each other directly or by RPC.
 */

#include "kernels/list.h"
#include "runtime/internal.h"
#include "tests/unit/runtime/one_session.h"

static void start(bool over_rpc)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    world = world_new();
    cluster = cluster_new(false, over_rpc);
    session = open_session(cluster, "s", (struct cluster_options){0});
}

/* What the task gives: [task + 1, 10 * (task + 1)]. */
static struct edge value_at(int task)
{
    const float values[] = {(float)(task + 1), (float)(10 * (task + 1))};
    struct tensor tensor;
    CHECK_OK(tensor_init_copy(&tensor, F32, &SHAPE(2), values, &err), &err);
    struct edge value = builder_const(&world->b, "x", &tensor);
    value.from->requested_device = task_names[task];
    tensor_release(&tensor);
    return value;
}

static char names[TASKS][64];

static void name_result(int task, struct edge result)
{
    CHECK_OK(builder_ok(&world->b), &err);
    result.from->requested_device = task_names[task];
    snprintf(names[task], sizeof(names[task]), "%s:0", result.from->name);
}

#define KEYS_(size, instance)                                                                  \
    attr_int("group_size", size), attr_int("group_key", 7), attr_int("instance_key", instance)

static float timeout_seconds; /* of what is added from now on */

static void add_reduce(int task, int size, int instance, const char *merge, const char *last)
{
    const int64_t rings[] = {0};
    name_result(task,
                builder_add(&world->b, "CollectiveReduce", "reduce", INPUTS(value_at(task)),
                            ATTRS(KEYS_(size, instance), attr_string("merge_op", merge),
                                  attr_string("final_op", last),
                                  attr_float("timeout_seconds", timeout_seconds),
                                  attr_int_list("subdiv_offsets", rings, 1))));
}

static void add_gather(int task, int instance)
{
    name_result(
        task,
        builder_add(&world->b, "CollectiveGather", "gather", INPUTS(value_at(task)),
                    ATTRS(KEYS_(TASKS, instance), attr_shape("shape", &SHAPE(2 * TASKS)))));
}

static void add_broadcast(int task, int source, int instance)
{
    if (task == source)
        name_result(
            task, builder_add(&world->b, "CollectiveBcastSend", "send", INPUTS(value_at(task)),
                              ATTRS(KEYS_(TASKS, instance), attr_shape("shape", &SHAPE(2)))));
    else
        name_result(task, builder_add(&world->b, "CollectiveBcastRecv", "recv", NO_INPUTS,
                                      ATTRS(attr_type("T", F32), KEYS_(TASKS, instance),
                                            attr_shape("shape", &SHAPE(2)))));
}

static bool try_run(int count, int timeout_ms, struct tensor *got)
{
    const char *const fetches[] = {names[0], names[1], names[2]};
    const struct session_run run = {
        .fetches = fetches, .fetches_count = count, .timeout_ms = timeout_ms};
    return cluster_session_run(session, &run, got, &err);
}

/* All members have these values, in this run and the next. */
static void check_values(const float *want, int count)
{
    extend(session, world);
    for (int again = 0; again < 2; again++) {
        struct tensor got[TASKS];
        CHECK_OK(try_run(TASKS, 20000, got), &err);
        for (int t = 0; t < TASKS; t++) {
            CHECK(got[t].count == count);
            for (int i = 0; i < count; i++)
                CHECK(tensor_f32(&got[t])[i] == want[i]);
            tensor_release(&got[t]);
        }
    }
    stop();
}

static void check_all(bool over_rpc)
{
    start(over_rpc);
    for (int t = 0; t < TASKS; t++)
        add_reduce(t, TASKS, 1, "Add", "Div");
    check_values((const float[]){2, 20}, 2);

    start(over_rpc);
    for (int t = 0; t < TASKS; t++)
        add_reduce(t, TASKS, 1, "Max", "Id");
    check_values((const float[]){3, 30}, 2);

    start(over_rpc);
    for (int t = 0; t < TASKS; t++)
        add_gather(t, 2);
    check_values((const float[]){1, 10, 2, 20, 3, 30}, 6);

    for (int source = 0; source < TASKS; source++) {
        start(over_rpc);
        for (int t = 0; t < TASKS; t++)
            add_broadcast(t, source, 3);
        check_values((const float[]){(float)(source + 1), (float)(10 * (source + 1))}, 2);
    }
}

/* Values that are lent to the transport where they are, and change there meanwhile. */
TEST(large_values_are_whole)
{
    enum { COUNT = 1 << 20 };
    struct tensor got[TASKS], values;
    start(true);
    for (int t = 0; t < TASKS; t++) {
        CHECK_OK(tensor_init(&values, F32, &SHAPE(COUNT), &err), &err);
        for (int i = 0; i < COUNT; i++)
            tensor_f32_mut(&values)[i] = (float)((t + 1) * (i % 1000));
        struct edge value = builder_const(&world->b, "x", &values);
        value.from->requested_device = task_names[t];
        name_result(t, builder_add(&world->b, "CollectiveReduce", "reduce", INPUTS(value),
                                   ATTRS(KEYS_(TASKS, 4), attr_string("merge_op", "Add"),
                                         attr_string("final_op", "Id"),
                                         attr_int_list("subdiv_offsets", NULL, 0))));
        tensor_release(&values);
    }
    extend(session, world);
    for (int again = 0; again < 5; again++) {
        CHECK_OK(try_run(TASKS, 20000, got), &err);
        for (int t = 0; t < TASKS; t++) {
            int wrong = 0;
            for (int i = 0; i < COUNT; i++)
                wrong += tensor_f32(&got[t])[i] != (float)(6 * (i % 1000));
            CHECK(!wrong);
            tensor_release(&got[t]);
        }
    }
    stop();
}

TEST(members_of_one_process_work_together)
{
    check_all(false);
}

TEST(members_of_several_processes_work_together)
{
    check_all(true);
}

static void check_gives_up(bool over_rpc)
{
    struct tensor got[TASKS];
    start(over_rpc);
    for (int t = 0; t < TASKS; t++)
        add_reduce(t, TASKS, 1, "Add", "Id");
    extend(session, world);
    for (int i = 0; i < 3; i++)
        CHECK_FAILS(try_run(TASKS - 1, 100, got), &err, DEADLINE);
    CHECK_OK(try_run(TASKS, 20000, got), &err);
    for (int t = 0; t < TASKS; t++)
        tensor_release(&got[t]);
    /* The group is known now: a member waits for bytes that never come. */
    CHECK_FAILS(try_run(TASKS - 1, 100, got), &err, DEADLINE);
    CHECK_OK(try_run(TASKS, 20000, got), &err);
    for (int t = 0; t < TASKS; t++)
        tensor_release(&got[t]);
    stop();
}

TEST(who_waits_for_a_member_is_given_up_with_his_step)
{
    check_gives_up(false);
    check_gives_up(true);
}

/* It is the member's own time that is over, not the run's. */
static void check_timeout(bool over_rpc)
{
    struct tensor got[TASKS];
    start(over_rpc);
    timeout_seconds = 0.1F;
    for (int t = 0; t < TASKS; t++)
        add_reduce(t, TASKS, 1, "Add", "Id");
    timeout_seconds = 0;
    extend(session, world);
    CHECK_FAILS(try_run(TASKS - 1, 20000, got), &err, DEADLINE);
    CHECK(strstr(err.text, "Collective has timed out waiting for other workers."));
    CHECK_OK(try_run(TASKS, 20000, got), &err);
    for (int t = 0; t < TASKS; t++)
        tensor_release(&got[t]);
    CHECK_FAILS(try_run(TASKS - 1, 20000, got), &err, DEADLINE);
    CHECK(strstr(err.text, "Collective has timed out during execution."));
    CHECK_OK(try_run(TASKS, 20000, got), &err);
    for (int t = 0; t < TASKS; t++)
        tensor_release(&got[t]);
    stop();
}

TEST(a_member_waits_no_longer_than_it_says)
{
    check_timeout(false);
    check_timeout(true);
}

TEST(members_must_agree)
{
    struct tensor got[TASKS];
    start(true);
    for (int t = 0; t < TASKS; t++)
        add_reduce(t, TASKS + t % 2, 1, "Add", "Id");
    extend(session, world);
    CHECK_FAILS(try_run(TASKS, 20000, got), &err, INTERNAL);
    CHECK(strstr(err.text, "group_size"));
    stop();
}
