/* scheduler_test.c - the pure core, one event at a time, with a clock of its own. */
/* Faults of docs/reliability.md: F2 F8 F9 F11 F28 F39. */

#include "base/alloc.h"
#include "base/error.h"
#include "scheduler/fit.h"
#include "scheduler/refuse.h"
#include "tests/unit/scheduler/core.h"

/* --- fit --- */

/* One more node, with the id that its place gives it. */
static struct fit_node *fit_node(struct fit *fit, int64_t cpu_millis, int gpus)
{
    fit->nodes = alloc_grow(fit->nodes, fit->count, &fit->capacity, sizeof(*fit->nodes));
    struct fit_node *node = &fit->nodes[fit->count++];
    *node = (struct fit_node){
        .id = fit->count, .offered = true, .free = {cpu_millis, 0, gpus}, .gpus_count = gpus};
    for (int g = 0; g < gpus; g++)
        node->gpu_free[g] = SCHEDULER_GPU_WHOLE;
    return node;
}

TEST(fit_places_all_tasks_or_none)
{
    struct scheduler_need need = {.role = "worker", .replicas = 3, .each = {0, 0, 2}};
    struct fit_ask ask = {.needs = &need, .needs_count = 1};
    struct fit_place places[3];
    struct fit fit = {0};
    fit_node(&fit, 0, 4);
    fit_node(&fit, 0, 8)->offered = false;
    fit_ready(&fit);
    CHECK(!fit_job(&ask, &fit, places));
    CHECK_INT(fit.nodes[0].free.gpus, 4); /* what was taken is given back */
    fit.nodes[1].offered = true;
    fit_ready(&fit);
    CHECK(fit_job(&ask, &fit, places));
    CHECK_INT(places[0].node, 0); /* where it leaves the fewest idle */
    CHECK_INT(places[1].node, 0);
    CHECK_INT(places[2].node, 1);
    CHECK_INT(places[0].gpu_mask, 3);
    CHECK_INT(places[1].gpu_mask, 12);
    CHECK_INT(fit.nodes[1].free.gpus, 6);
    fit_undo(&ask, &fit, places);
    CHECK_INT(fit.nodes[0].free.gpus, 4);
    CHECK_INT(fit.nodes[1].free.gpus, 8);
    ask.spread = true;
    CHECK(fit_job(&ask, &fit, places));
    CHECK_INT(places[1].node, 1);
    CHECK_INT(places[2].node, 0);
    fit_release(&fit);
    fit_ready(&fit);
    CHECK(!fit_job(&ask, &fit, places));
}

/* Parts of GPUs go together, so that whole ones stay whole. */
TEST(fit_shares_a_gpu_before_it_breaks_another)
{
    struct scheduler_need parts = {.replicas = 3, .gpu_share = 400};
    struct scheduler_need whole = {.replicas = 1, .each = {0, 0, 3}};
    struct fit_ask ask = {.needs = &parts, .needs_count = 1};
    struct fit_ask more = {.needs = &whole, .needs_count = 1};
    struct fit_place places[3];
    struct fit fit = {0};
    fit_node(&fit, 0, 2);
    fit_node(&fit, 0, 4);
    fit_ready(&fit);
    CHECK(fit_job(&ask, &fit, places));
    CHECK_INT(places[0].node, 0);
    CHECK_INT(places[0].gpu_mask, 1);
    CHECK_INT(places[1].gpu_mask, 1);
    CHECK_INT(places[2].node, 0);
    CHECK_INT(places[2].gpu_mask, 2);
    CHECK_INT(fit.nodes[0].free.gpus, 0);
    CHECK(fit_job(&more, &fit, places));
    CHECK_INT(places[0].node, 1);
    CHECK_INT(places[0].gpu_mask, 7);
    CHECK(!fit_job(&more, &fit, places));
    fit_release(&fit);
}

TEST(fit_goes_where_it_may)
{
    struct scheduler_need need = {.replicas = 1, .each = {1000, 0, 0}};
    bool only_second[] = {false, true};
    bool *suits[] = {only_second};
    int64_t bad[] = {3};
    struct fit_ask ask = {.needs = &need, .needs_count = 1, .suits = suits};
    struct fit_place places[1];
    struct fit fit = {0};
    fit_node(&fit, 1000, 0);
    fit_node(&fit, 8000, 0)->kind = 1;
    fit_node(&fit, 4000, 0)->kind = 1;
    fit_ready(&fit);
    CHECK(fit_job(&ask, &fit, places));
    CHECK_INT(places[0].node, 2);
    ask.excluded = bad;
    ask.excluded_count = 1;
    CHECK(fit_job(&ask, &fit, places));
    CHECK_INT(places[0].node, 1);
    fit_release(&fit);
}

/* The large task would find no room any more if the small one went first. */
TEST(fit_places_large_tasks_first)
{
    struct scheduler_need needs[] = {
        {.role = "ps", .replicas = 2, .each = {1000, 0, 0}},
        {.role = "worker", .replicas = 1, .each = {4000, 0, 0}},
    };
    struct fit_ask ask = {.needs = needs, .needs_count = 2};
    struct fit_place places[3];
    struct fit fit = {0};
    fit_node(&fit, 4000, 0);
    fit_node(&fit, 2000, 0);
    fit_ready(&fit);
    CHECK(fit_job(&ask, &fit, places));
    CHECK_INT(places[2].node, 0);
    CHECK_INT(places[0].node, 1);
    CHECK_INT(places[1].node, 1);
    fit_release(&fit);
}

/* --- the queue --- */

TEST(queue_goes_by_priority_then_by_number)
{
    struct world world = world_new();
    submit_with(&world, 1, 10, 1, 1, 0, 0, 0);
    submit_with(&world, 2, 90, 1, 1, 0, 0, 0);
    submit_with(&world, 3, 90, 1, 1, 0, 0, 0);
    CHECK_INT(explained(&world, 2).ahead_count, 0);
    CHECK_INT(explained(&world, 3).ahead_count, 1);
    CHECK_INT(explained(&world, 1).ahead_count, 2);
    joins(&world, 1, 2, 0);
    CHECK_INT(action(&world, DO_START, 0)->job, 2);
    CHECK_INT(action(&world, DO_START, 1)->job, 3);
    CHECK(!action(&world, DO_START, 2));
    world_free(&world);
}

/* Small jobs pass a large one that does not fit, but not for ever. */
TEST(queue_lets_nobody_starve)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submit(&world, 1, 3);
    int64_t epoch = started_epoch(&world, 1);
    submit(&world, 2, 4); /* waits for all of the node */
    submit(&world, 3, 1);
    int64_t third = started_epoch(&world, 3);
    passes(&world, 601, session);
    reports(&world, session, 3, third, TASK_EXITED, EXIT_OK);
    submit(&world, 4, 1);
    CHECK(!action(&world, DO_START, 0));
    struct explain why = explained(&world, 4);
    CHECK_TEXT(explain_code_name(why.code), "PRIORITY");
    CHECK(strstr(why.next, "job 2"));
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_OK);
    started_epoch(&world, 2);
    world_free(&world);
}

/* --- lives of jobs --- */

TEST(scheduler_waits_longer_after_each_crash)
{
    static const int waits[] = {10, 20, 40, 80, 160};
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    int64_t epoch = started_epoch(&world, 1);
    for (int i = 0; i < 5; i++) {
        reports(&world, session, 1, epoch, TASK_EXITED, EXIT_CRASH);
        CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
        CHECK_INT(became(&world, 1)->retry_in_us, (uint64_t)waits[i] * SECOND);
        CHECK_TEXT(explain_code_name(explained(&world, 1).code), "BACKOFF");
        passes(&world, waits[i] - 1, session);
        CHECK(!action(&world, DO_START, 0));
        passes(&world, 1, session);
        CHECK(started_epoch(&world, 1) > epoch);
        epoch = started_epoch(&world, 1);
    }
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_MEMORY);
    CHECK_INT(became(&world, 1)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 1)->reason, "MEMORY");
    CHECK(strstr(became(&world, 1)->text, "all 5 restarts are used up"));
    world_free(&world);
}

TEST(scheduler_stops_a_job_when_its_time_is_up)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit_with(&world, 1, 50, 1, 1, 0, 0, 60 * SECOND);
    int64_t epoch = started_epoch(&world, 1);
    passes(&world, 100, session); /* waiting to start does not count */
    reports(&world, session, 1, epoch, TASK_RUNNING, EXIT_NONE);
    passes(&world, 59, session);
    CHECK(!action(&world, DO_STOP, 0));
    passes(&world, 1, session);
    CHECK(action(&world, DO_STOP, 0));
    CHECK(!action(&world, DO_STOP, 0)->kill);
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_STOPPED);
    CHECK_INT(became(&world, 1)->to, JOB_SUCCEEDED);
    CHECK_TEXT(became(&world, 1)->reason, "TIME");
    world_free(&world);
}

TEST(scheduler_finishes_when_the_workers_have)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    struct scheduler_need needs[] = {{.role = "worker", .replicas = 1, .each = {1000, 0, 0}},
                                     {.role = "ps", .replicas = 1, .each = {1000, 0, 0}}};
    struct scheduler_job_info job = {
        .number = 1, .reason = "", .needs = needs, .needs_count = 2, .restart_max = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    int64_t epoch = started_epoch(&world, 1);
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_OK);
    CHECK_INT(became(&world, 1)->to, JOB_STOPPING);
    CHECK_TEXT(action(&world, DO_STOP, 0)->role, "ps");
    /* How the server of parameters ends does not matter any more; nor does a late cancel. */
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 1});
    struct scheduler_report ps = {.job = 1,
                                  .epoch = epoch,
                                  .role = "ps",
                                  .state = TASK_EXITED,
                                  .reason = EXIT_CRASH,
                                  .error = ""};
    happens(
        &world,
        &(struct scheduler_event){
            .kind = ON_REPORT, .id = 1, .epoch = session, .reports = &ps, .reports_count = 1});
    CHECK_INT(became(&world, 1)->to, JOB_SUCCEEDED);
    world_free(&world);
}

/* The tasks of a job die together; the one that failed by itself is named. */
TEST(scheduler_names_the_culprit)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submit_with(&world, 1, 50, 2, 1, 0, 5, 0);
    int64_t epoch = started_epoch(&world, 1);
    struct scheduler_report both[] = {
        {.job = 1,
         .epoch = epoch,
         .role = "worker",
         .index = 0,
         .state = TASK_EXITED,
         .reason = EXIT_CRASH,
         .error = ""},
        {.job = 1,
         .epoch = epoch,
         .role = "worker",
         .index = 1,
         .state = TASK_EXITED,
         .reason = EXIT_USER,
         .error = ""},
    };
    happens(
        &world,
        &(struct scheduler_event){
            .kind = ON_REPORT, .id = 1, .epoch = session, .reports = both, .reports_count = 2});
    CHECK_INT(became(&world, 1)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 1)->reason, "USER");
    CHECK(strstr(became(&world, 1)->text, "worker:1 on n1"));
    world_free(&world);
}

/* --- nodes --- */

TEST(scheduler_suspects_then_gives_up)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    passes(&world, 6, 0);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_SUSPECT);
    submit(&world, 2, 1);
    CHECK_TEXT(explain_code_name(explained(&world, 2).code), "NODES_AWAY");
    passes(&world, 1, session);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_JOINED);
    passes(&world, 299, 0);
    CHECK(!action(&world, DO_NODE, 0));
    passes(&world, 1, 0);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_LOST);
    CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
    world_free(&world);
}

/* A node with three GPUs, of which `away` are lost or used by others; it runs no task. */
static int64_t joins_without(struct world *world, uint64_t away)
{
    struct scheduler_node_info node = {
        .id = 1, .name = "n1", .capacity = {8000, 1 << 30, 3}, .gpus_away = away};
    happens(world, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
    return world->actions.list[0].epoch;
}

static int gpus_free(const struct world *world)
{
    struct scheduler_node_view view;
    scheduler_node_view(world->scheduler, 0, &view);
    return view.gpus_free;
}

TEST(gpus_that_are_away_are_not_given)
{
    struct world world = world_new();
    joins_without(&world, 1 << 1);
    CHECK_INT(gpus_free(&world), 2);
    submit_with(&world, 1, 50, 1, 1, 2, 5, 0);
    CHECK_INT(action(&world, DO_START, 0)->gpu_mask, 5);
    CHECK_INT(gpus_free(&world), 0);

    /* One of its own is lost before it was started: it gets others. */
    int64_t session = joins_without(&world, 1 << 0);
    CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
    for (int i = 0; i < 30 && !action(&world, DO_START, 0); i++)
        passes(&world, 1, session);
    int64_t epoch = started_epoch(&world, 1);
    CHECK_INT(action(&world, DO_START, 0)->gpu_mask, 6);

    /* Nobody is ended for what would not be free then. */
    submit_with(&world, 2, 90, 1, 1, 3, 5, 0);
    CHECK_INT(world.actions.count, 0);
    CHECK_TEXT(explain_code_name(explained(&world, 2).code), "RESOURCES");

    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_OK);
    CHECK(!action(&world, DO_START, 0));
    joins_without(&world, 0);
    CHECK_INT(action(&world, DO_START, 0)->gpu_mask, 7);
    CHECK_INT(action(&world, DO_START, 0)->job, 2);
    CHECK_INT(gpus_free(&world), 0);
    world_free(&world);
}

/* F2: when it was we who stood still, no node is blamed for it. */
TEST(scheduler_forgives_its_own_stall)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    passes(&world, 3, session);
    world.now_us += 3600 * SECOND;
    happens(&world, NULL);
    CHECK_INT(world.actions.count, 0);
    passes(&world, 5, 0);
    CHECK_INT(world.actions.count, 0);
    passes(&world, 1, 0);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_SUSPECT);
    world_free(&world);
}

TEST(scheduler_drains_the_node_of_an_unkillable_task)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 2, 0);
    submit(&world, 1, 1);
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 1, .kill = true});
    CHECK(action(&world, DO_STOP, 0)->kill);
    passes(&world, 89, session);
    CHECK(!action(&world, DO_NODE, 0));
    passes(&world, 1, session);
    CHECK(action(&world, DO_NODE, 0)->draining);
    CHECK_TEXT(action(&world, DO_NOTE, 0)->text,
               "worker:0 cannot be killed: its node n1 gets nothing new");
    enum job_state state;
    CHECK(scheduler_job_state(world.scheduler, 1, &state));
    CHECK_INT(state, JOB_STOPPING); /* its room is not given to others */
    world_free(&world);
}

/* Its process has ended, and a large checkpoint is on its way. */
TEST(scheduler_waits_for_what_an_ended_task_wrote)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 2, 0);
    submit(&world, 1, 1);
    const struct scheduler_report report = {.job = 1,
                                            .epoch = started_epoch(&world, 1),
                                            .role = "worker",
                                            .state = TASK_RUNNING,
                                            .ended_us = 5,
                                            .error = ""};
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 1, .kill = true});
    happens(&world, &(struct scheduler_event){.kind = ON_REPORT,
                                              .id = 1,
                                              .epoch = session,
                                              .reports = &report,
                                              .reports_count = 1});
    for (int i = 0; i < 40; i++) {
        passes(&world, 5, session);
        CHECK(!action(&world, DO_NODE, 0));
    }
    enum job_state state;
    CHECK(scheduler_job_state(world.scheduler, 1, &state));
    CHECK_INT(state, JOB_STOPPING);
    reports(&world, session, 1, report.epoch, TASK_EXITED, EXIT_STOPPED);
    CHECK(!scheduler_job_state(world.scheduler, 1, &state)); /* it is over */
    world_free(&world);
}

/* --- explain --- */

TEST(explain_says_what_is_missing)
{
    struct world world = world_new();
    submit_with(&world, 1, 50, 1, 1, 2, 0, 0);
    CHECK_TEXT(explain_code_name(explained(&world, 1).code), "NO_NODES");
    int64_t session = joins(&world, 1, 4, 1);
    struct explain why = explained(&world, 1);
    CHECK_TEXT(explain_code_name(why.code), "TOO_LARGE");
    CHECK_TEXT(why.text, "Can never start on these nodes: each worker task needs 2 GPUs; the "
                         "largest node has 1 GPU.");
    CHECK_INT(why.needed, 2);
    CHECK_INT(why.largest, 1);
    CHECK_TEXT(explain_resource_name(why.resource), "gpus");

    submit(&world, 2, 3);
    int64_t epoch = started_epoch(&world, 2);
    submit(&world, 3, 2);
    why = explained(&world, 3);
    CHECK_TEXT(explain_code_name(why.code), "RESOURCES");
    CHECK_TEXT(why.text,
               "Waiting: each worker task needs 2 CPUs on one node; the best node, n1, "
               "has 1 CPU free.");
    CHECK_INT(why.holders_count, 1);
    CHECK_INT(why.holders[0].job, 2);
    CHECK_INT(why.holders[0].cpu_millis, 3000);
    CHECK(strstr(why.next, "job 2 holds 3 CPUs"));

    submit_with(&world, 4, 50, 5, 1, 0, 0, 0);
    CHECK(strstr(explained(&world, 4).text, "its 5 tasks do not fit"));
    happens(&world, &(struct scheduler_event){.kind = ON_DRAIN, .id = 1, .drain = true});
    CHECK_TEXT(explain_code_name(explained(&world, 3).code), "DRAINING");
    CHECK_TEXT(explain_code_name(explained(&world, 2).code), "NOT_WAITING");
    reports(&world, session, 2, epoch, TASK_EXITED, EXIT_OK);
    struct explain none;
    CHECK(!explain_job(world.scheduler, 2, world.now_us, &none));
    world_free(&world);
}

/* --- what can never run --- */

static void refused(const struct world *world, struct scheduler_need need, const char *pointer,
                    const char *text)
{
    struct error err;
    snprintf(need.role, sizeof(need.role), "worker");
    if (refuse_check(world->scheduler, &need, 1, &err))
        CHECK_STOP("%s was let pass", text);
    CHECK_TEXT(err.pointer, pointer);
    if (!strstr(err.text, text))
        CHECK_STOP("said '%s', expected '%s'", err.text, text);
}

TEST(refuse_says_the_largest_value_possible)
{
    struct world world = world_new();
    struct error err;
    struct scheduler_label zones[] = {{"zone", "a"}, {"zone", "b"}, {"rack", "1"}};
    struct scheduler_need any = {.replicas = 1, .each = {64000, 0, 0}};
    CHECK_OK(refuse_check(world.scheduler, &any, 1, &err), &err); /* nodes may come */
    struct scheduler_node_info node = {.id = 1,
                                       .name = "n1",
                                       .capacity = {4000, 1 << 30, 2},
                                       .gpu_type = "h100",
                                       .gpu_memory_bytes = 80000,
                                       .labels = zones,
                                       .labels_count = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
    struct scheduler_node_info big = {.id = 2,
                                      .name = "n2",
                                      .capacity = {8000, 1 << 20, 0},
                                      .labels = &zones[2],
                                      .labels_count = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_JOIN, .node = &big});
    refused(&world, any, "/tasks/worker/cpus", "the largest has 8.000");
    refused(&world, (struct scheduler_need){.replicas = 1, .each = {0, INT64_C(1) << 40, 0}},
            "/tasks/worker/memory_bytes", "the largest has 1073741824");
    refused(&world, (struct scheduler_need){.replicas = 1, .each = {0, 0, 3}},
            "/tasks/worker/gpus", "the largest has 2");
    refused(&world, (struct scheduler_need){.replicas = 1, .gpu_type = "a100"},
            "/tasks/worker/gpu_type", "no node has GPUs of type 'a100'; there are: h100");
    refused(&world, (struct scheduler_need){.replicas = 1, .gpu_memory_bytes = 80001},
            "/tasks/worker/gpu_memory_bytes", "the largest has 80000");
    refused(&world,
            (struct scheduler_need){.replicas = 1, .gpu_share = 500, .gpu_memory_bytes = 40001},
            "/tasks/worker/gpu_memory_bytes", "the largest has 40000");
    refused(&world,
            (struct scheduler_need){.replicas = 1, .labels = &zones[1], .labels_count = 1},
            "/tasks/worker/node_labels/zone", "no node has zone=b; there are: a");
    refused(&world,
            (struct scheduler_need){.replicas = 1, .each = {8000, 0, 0}, .gpu_type = "h100"},
            "/tasks/worker", "together");
    refused(
        &world, (struct scheduler_need){.replicas = 13, .each = {1000, 0, 0}}, "/tasks",
        "its 13 tasks do not fit on the 2 nodes at once, even when all are empty; with 12 of "
        "role worker in place of 13 they would");
    struct scheduler_need good = {.replicas = 2,
                                  .gpu_share = 500,
                                  .gpu_type = "h100",
                                  .gpu_memory_bytes = 40000,
                                  .labels = zones,
                                  .labels_count = 1};
    CHECK_OK(refuse_check(world.scheduler, &good, 1, &err), &err);
    world_free(&world);
}

/* Which GPUs a task holds survives the server, and nobody else gets them. */
TEST(scheduler_gives_gpus_by_index)
{
    struct world world = world_new();
    joins(&world, 1, 8, 4);
    submit_with(&world, 1, 50, 1, 1, 2, 0, 0);
    CHECK_INT(action(&world, DO_START, 0)->gpu_mask, 3);
    struct scheduler_need part = {.role = "worker", .replicas = 2, .gpu_share = 300};
    struct scheduler_job_info job = {
        .number = 2, .reason = "", .needs = &part, .needs_count = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    CHECK_INT(action(&world, DO_START, 0)->gpu_mask, 4);
    CHECK_INT(action(&world, DO_START, 1)->gpu_mask, 4);
    CHECK_INT(action(&world, DO_START, 1)->gpu_share, 300);
    submit_with(&world, 3, 50, 1, 1, 2, 0, 0);
    CHECK_TEXT(explain_code_name(explained(&world, 3).code), "RESOURCES");
    submit_with(&world, 4, 50, 1, 1, 1, 0, 0);
    CHECK_INT(action(&world, DO_START, 0)->gpu_mask, 8);

    /* Another scheduler, from what was stored. */
    struct scheduler_task_info tasks[] = {{.role = "worker",
                                           .node = 1,
                                           .state = TASK_RUNNING,
                                           .resources = {1000, 0, 2},
                                           .gpu_mask = 10}};
    struct world again = world_new();
    struct scheduler_node_info node = {.id = 1, .name = "n1", .capacity = {8000, 1 << 30, 4}};
    scheduler_load_epoch(again.scheduler, 9);
    scheduler_load_node(again.scheduler, &node, again.now_us);
    struct scheduler_need two = {.role = "worker", .replicas = 1, .each = {1000, 0, 2}};
    struct scheduler_job_info runs = {.number = 1,
                                      .state = JOB_RUNNING,
                                      .reason = "",
                                      .needs = &two,
                                      .needs_count = 1,
                                      .attempt = 1,
                                      .epoch = 5,
                                      .tasks = tasks,
                                      .tasks_count = 1};
    scheduler_load_job(again.scheduler, &runs, again.now_us);
    struct scheduler_report report = {
        .job = 1, .epoch = 5, .role = "worker", .state = TASK_RUNNING, .error = ""};
    happens(&again,
            &(struct scheduler_event){
                .kind = ON_JOIN, .node = &node, .reports = &report, .reports_count = 1});
    submit_with(&again, 2, 50, 1, 1, 2, 0, 0);
    CHECK_INT(action(&again, DO_START, 0)->gpu_mask, 5);
    world_free(&again);
    world_free(&world);
}
