/* agent_pb_test.c - every message survives the way to bytes and back. */

#include "base/arena.h"
#include "base/str.h"
#include "proto/agent_pb.h"
#include "tests/unit/test.h"

static const struct agent_task_ref worker1 = {7, 12, "worker", 1};

TEST(agent_pb_join)
{
    const struct agent_task_report report = {.task = worker1,
                                             .state = AGENT_TASK_EXITED,
                                             .pid = 99,
                                             .started_us = 5,
                                             .ended_us = 6,
                                             .reason = AGENT_EXIT_MEMORY,
                                             .exit_code = -1,
                                             .signal = 9,
                                             .error = "out of memory",
                                             .step = -1};
    const struct agent_label label = {"zone", "eu"};
    const struct agent_join_request request = {
        .token = "t",
        .node_name = "n1",
        .boot_id = "b",
        .version = "1",
        .identity = "i",
        .asked_us = 7,
        .capacity = {2000, INT64_C(1) << 40, 3, "fake", 8},
        .labels = &label,
        .labels_count = 1,
        .tasks = &report,
        .tasks_count = 1};
    struct error err;
    struct str bytes = {0};
    struct arena *arena = arena_new();
    agent_join_request_pack(&request, &bytes);
    struct agent_join_request got;
    CHECK_OK(agent_join_request_unpack(bytes.data, bytes.size, arena, &got, &err), &err);
    CHECK_TEXT(got.token, "t");
    CHECK_TEXT(got.node_name, "n1");
    CHECK_TEXT(got.identity, "i");
    CHECK_INT(got.asked_us, 7);
    CHECK_INT(got.capacity.memory_bytes, INT64_C(1) << 40);
    CHECK_TEXT(got.capacity.gpu_type, "fake");
    CHECK_INT(got.labels_count, 1);
    CHECK_TEXT(got.labels[0].value, "eu");
    CHECK_INT(got.tasks_count, 1);
    CHECK(agent_task_ref_equal(&got.tasks[0].task, &worker1));
    CHECK_INT(got.tasks[0].reason, AGENT_EXIT_MEMORY);
    CHECK_INT(got.tasks[0].exit_code, -1);
    CHECK_INT(got.tasks[0].step, -1);
    CHECK_TEXT(got.tasks[0].error, "out of memory");

    const struct agent_join_response response = {3, 4, "key", &worker1, 1};
    str_clear(&bytes);
    agent_join_response_pack(&response, &bytes);
    struct agent_join_response back;
    CHECK_OK(agent_join_response_unpack(bytes.data, bytes.size, arena, &back, &err), &err);
    CHECK_INT(back.node_epoch, 4);
    CHECK_INT(back.discard_count, 1);
    CHECK(agent_task_ref_equal(&back.discard[0], &worker1));
    arena_free(arena);
    str_release(&bytes);
}

TEST(agent_pb_sync)
{
    const char *const words[] = {"sh", "-c", "x"};
    const struct agent_variable variables[] = {{"A", "1"}};
    const struct agent_secret secrets[] = {{"KEY", "v1", false}, {"TOKEN", "v2", true}};
    const struct agent_task_address cluster[] = {{"worker", 0, "a:1"}, {"ps", 0, "b:2"}};
    const struct agent_command commands[] = {
        {.sequence = 1,
         .kind = AGENT_COMMAND_START,
         .start = {.task = worker1,
                   .attempt = 2,
                   .spec = "{}",
                   .job_folder = "/j",
                   .cpu_millis = 1500,
                   .memory_bytes = 9,
                   .gpus = 1,
                   .gpu_mask = UINT64_C(1) << 63,
                   .gpu_share = 250,
                   .cluster = cluster,
                   .cluster_count = 2,
                   .program = {.words = words,
                               .words_count = 3,
                               .variables = variables,
                               .variables_count = 1,
                               .secrets = secrets,
                               .secrets_count = 2,
                               .tasks = 2,
                               .problem = "none"}}},
        {.sequence = 2,
         .kind = AGENT_COMMAND_STOP,
         .stop = {.task = worker1, .kill = true, .grace_ms = 30}},
    };
    const struct agent_sync_response response = {commands, 2, &worker1, 1};
    struct error err;
    struct str bytes = {0};
    struct arena *arena = arena_new();
    agent_sync_response_pack(&response, &bytes);
    struct agent_sync_response got;
    CHECK_OK(agent_sync_response_unpack(bytes.data, bytes.size, arena, &got, &err), &err);
    CHECK_INT(got.commands_count, 2);
    CHECK_INT(got.commands[0].kind, AGENT_COMMAND_START);
    CHECK_TEXT(got.commands[0].start.job_folder, "/j");
    CHECK_TEXT(got.commands[0].start.dataset_folder, "");
    CHECK_INT(got.commands[0].start.cluster_count, 2);
    CHECK_TEXT(got.commands[0].start.cluster[1].address, "b:2");
    const struct agent_program *program = &got.commands[0].start.program;
    CHECK_TEXT(program->words[2], "x");
    CHECK_TEXT(program->variables[0].value, "1");
    CHECK_INT(program->secrets_count, 2);
    CHECK_TEXT(program->secrets[0].name, "KEY");
    CHECK(!program->secrets[0].in_env);
    CHECK_TEXT(program->secrets[1].value, "v2");
    CHECK(program->secrets[1].in_env);
    CHECK_TEXT(program->problem, "none");
    CHECK_INT(got.commands[1].kind, AGENT_COMMAND_STOP);
    CHECK(got.commands[1].stop.kill);
    CHECK_INT(got.commands[1].stop.grace_ms, 30);
    CHECK_INT(got.acknowledged_count, 1);

    const struct agent_sync_request request = {
        .node_id = 1, .node_key = "k", .commands_done = 8};
    str_clear(&bytes);
    agent_sync_request_pack(&request, &bytes);
    struct agent_sync_request back;
    CHECK_OK(agent_sync_request_unpack(bytes.data, bytes.size, arena, &back, &err), &err);
    CHECK_INT(back.commands_done, 8);
    CHECK_INT(back.reports_count, 0);
    arena_free(arena);
    str_release(&bytes);
}

TEST(agent_pb_ship)
{
    const struct agent_ship_request request = {.node_id = 1,
                                               .task = worker1,
                                               .file = "stdout.log",
                                               .offset = 5,
                                               .data = "a\0b",
                                               .data_size = 3,
                                               .removed = true};
    struct error err;
    struct str bytes = {0};
    struct arena *arena = arena_new();
    agent_ship_request_pack(&request, &bytes);
    struct agent_ship_request got;
    CHECK_OK(agent_ship_request_unpack(bytes.data, bytes.size, arena, &got, &err), &err);
    CHECK_INT(got.data_size, 3);
    CHECK(memcmp(got.data, "a\0b", 3) == 0);
    CHECK_TEXT(got.file, "stdout.log");
    CHECK_INT(got.offset, 5);
    CHECK(got.removed && !got.last);
    CHECK(!agent_ship_request_unpack("\xff\xff", 2, arena, &got, &err));
    CHECK_INT(err.code, INVALID);

    struct agent_ship_response back;
    str_clear(&bytes);
    agent_ship_response_pack(&(struct agent_ship_response){.offset = 77}, &bytes);
    CHECK_OK(agent_ship_response_unpack(bytes.data, bytes.size, arena, &back, &err), &err);
    CHECK_INT(back.offset, 77);
    arena_free(arena);
    str_release(&bytes);
}

TEST(agent_pb_fetch)
{
    const struct agent_fetch_request request = {
        .node_id = 1,
        .task = worker1,
        .what = {AGENT_FETCH_CHECKPOINTS, "", "model.ckpt-5.index", 12},
        .offset = 9};
    struct error err;
    struct str bytes = {0};
    struct arena *arena = arena_new();
    agent_fetch_request_pack(&request, &bytes);
    struct agent_fetch_request got;
    CHECK_OK(agent_fetch_request_unpack(bytes.data, bytes.size, arena, &got, &err), &err);
    CHECK_INT(got.what.kind, AGENT_FETCH_CHECKPOINTS);
    CHECK_TEXT(got.what.path, "model.ckpt-5.index");
    CHECK_TEXT(got.what.sha256, "");
    CHECK_INT(got.what.job, 12);
    CHECK_INT(got.offset, 9);
    arena_free(arena);
    str_release(&bytes);
}

/* A message that grows beyond its arena's budget is refused, not fatal. */
TEST(agent_pb_budget)
{
    struct agent_task_ref many[1000];
    for (int i = 0; i < ARRAY_LEN(many); i++)
        many[i] = worker1;
    const struct agent_sync_response response = {.acknowledged = many,
                                                 .acknowledged_count = ARRAY_LEN(many)};
    struct error err;
    struct str bytes = {0};
    agent_sync_response_pack(&response, &bytes);
    for (size_t budget = 1000; budget < 200000; budget += 10007) {
        struct arena *arena = arena_new_limited(budget);
        struct agent_sync_response got;
        if (!agent_sync_response_unpack(bytes.data, bytes.size, arena, &got, &err))
            CHECK_INT(err.code, EXHAUSTED);
        else
            CHECK_INT(got.acknowledged_count, ARRAY_LEN(many));
        arena_free(arena);
    }
    str_release(&bytes);
}
