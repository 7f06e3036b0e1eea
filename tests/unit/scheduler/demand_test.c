/* demand_test.c - how many more nodes the jobs that wait would use. */

#include "scheduler/demand.h"
#include "tests/unit/scheduler/core.h"

static struct demand_pool pool(int cpus, int coming, int room)
{
    return (struct demand_pool){.queue = "default",
                                .like.capacity = {1000 * cpus, 1 << 30, 0},
                                .coming = coming,
                                .room = room};
}

static struct demand_pool read(struct world *world, struct demand_pool pool)
{
    int before = scheduler_nodes_count(world->scheduler);
    demand_read(world->scheduler, &pool, 1, world->now_us);
    scheduler_check(world->scheduler);
    CHECK_INT(scheduler_nodes_count(world->scheduler), before);
    return pool;
}

TEST(nobody_waits)
{
    struct world world = world_new();
    CHECK_INT(read(&world, pool(4, 1, 8)).wanted, 0);
    joins(&world, 1, 4, 0);
    submit(&world, 1, 2);
    CHECK_INT(read(&world, pool(4, 1, 8)).wanted, 0);
    CHECK_INT(read(&world, pool(4, 1, 8)).used, 0);
    world_free(&world);
}

TEST(jobs_share_nodes_as_they_would)
{
    struct world world = world_new();
    for (int i = 1; i <= 5; i++)
        submit(&world, i, 2);
    CHECK_INT(read(&world, pool(4, 0, 8)).wanted, 3);
    CHECK_INT(read(&world, pool(4, 0, 2)).wanted, 2);
    struct demand_pool some = read(&world, pool(4, 2, 8));
    CHECK_INT(some.used, 2);
    CHECK_INT(some.wanted, 1);
    some = read(&world, pool(4, 5, 8));
    CHECK_INT(some.used, 3);
    CHECK_INT(some.wanted, 0);
    world_free(&world);
}

TEST(a_gang_wants_all_its_nodes_or_none)
{
    struct world world = world_new();
    joins(&world, 1, 4, 0);
    submit_with(&world, 1, 50, 4, 4, 0, 0, 0);
    CHECK_INT(read(&world, pool(4, 0, 8)).wanted, 3); /* one is here */
    CHECK_INT(read(&world, pool(4, 0, 2)).wanted, 0); /* it would not start */
    CHECK_INT(read(&world, pool(2, 0, 8)).wanted, 0); /* they are too small */
    world_free(&world);
}

TEST(only_jobs_of_the_queue_want_its_nodes)
{
    struct world world = world_new();
    submit(&world, 1, 2);
    struct demand_pool other = pool(4, 0, 8);
    other.queue = "other";
    CHECK_INT(read(&world, other).wanted, 0);
    struct demand_pool both[] = {pool(2, 0, 8), other};
    demand_read(world.scheduler, both, 2, world.now_us);
    CHECK_INT(both[0].wanted, 1);
    CHECK_INT(both[1].wanted, 0);
    world_free(&world);
}

TEST(what_a_person_holds_wants_nothing)
{
    struct world world = world_new();
    submit(&world, 1, 2);
    happens(&world, &(struct scheduler_event){.kind = ON_PAUSE, .number = 1, .pause = true});
    CHECK_INT(read(&world, pool(4, 0, 8)).wanted, 0);
    world_free(&world);
}

TEST(labels_and_sizes_are_the_schedulers_to_judge)
{
    struct world world = world_new();
    struct scheduler_label zone = {"zone", "a"};
    struct scheduler_need need = {.role = "worker",
                                  .replicas = 1,
                                  .each = {1000, 0, 0},
                                  .labels = &zone,
                                  .labels_count = 1};
    struct scheduler_job_info job = {
        .number = 1, .priority = 50, .reason = "", .needs = &need, .needs_count = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    struct demand_pool plain = pool(4, 0, 2), labelled = plain;
    labelled.like.labels = &zone;
    labelled.like.labels_count = 1;
    CHECK_INT(read(&world, plain).wanted, 0);
    CHECK_INT(read(&world, labelled).wanted, 1);

    struct scheduler *copy = scheduler_copy(world.scheduler);
    CHECK(!demand_possible(copy, &plain, &need, 1, world.now_us));
    scheduler_free(copy);
    copy = scheduler_copy(world.scheduler);
    CHECK(demand_possible(copy, &labelled, &need, 1, world.now_us));
    scheduler_free(copy);
    world_free(&world);
}

TEST(a_node_that_is_gone_gives_its_tasks_up_at_once)
{
    struct world world = world_new();
    joins(&world, 1, 4, 0);
    submit(&world, 1, 2);
    happens(&world, &(struct scheduler_event){
                        .kind = ON_GONE, .id = 1, .text = "its Slurm job 5 has ended"});
    const struct scheduler_action *lost = action(&world, DO_NODE, 0);
    CHECK(lost && lost->node_state == NODE_LOST);
    CHECK_TEXT(lost->text, "lost: its Slurm job 5 has ended; its tasks are given up");
    CHECK(became(&world, 1)->to == JOB_QUEUED);
    happens(&world, &(struct scheduler_event){.kind = ON_GONE, .id = 1, .text = "again"});
    CHECK_INT(world.actions.count, 0);
    CHECK(joins(&world, 1, 4, 0) > 0); /* the name may come again */
    world_free(&world);
}
