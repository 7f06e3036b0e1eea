/* agent_core_test.c - what an agent decides, without an agent. */

#include "scheduler/agent/core.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)

static const struct agent_task_ref worker = {7, 3, "worker", 0}, other = {7, 3, "worker", 1};

static struct agent_command start_of(int64_t sequence)
{
    return (struct agent_command){
        .sequence = sequence, .kind = AGENT_COMMAND_START, .start.task = worker};
}

static struct agent_command stop_of(int64_t sequence, bool kill, int64_t grace_ms)
{
    return (struct agent_command){.sequence = sequence,
                                  .kind = AGENT_COMMAND_STOP,
                                  .stop = {.task = worker, .kill = kill, .grace_ms = grace_ms}};
}

static struct core_task *add(struct core *core, enum agent_task_state state)
{
    return core_add(core, &worker, NULL, state, SECOND);
}

static enum core_order run(struct core *core, struct agent_command command, uint64_t now_us)
{
    struct core_task *task;
    return core_command(core, &command, now_us, &task);
}

TEST(core_carries_out_each_order_once)
{
    struct core core = {0};
    core_joined(&core, 5, SECOND);
    CHECK_INT(run(&core, start_of(1), SECOND), CORE_START);
    add(&core, AGENT_TASK_STARTING);
    CHECK_INT(run(&core, start_of(1), SECOND), CORE_NOTHING);
    CHECK_INT(core.commands_done, 1);
    /* A server that has forgotten says it again, in a new session: it is told how things are.
     */
    core_joined(&core, 6, SECOND);
    core.tasks[0].to_report = false;
    CHECK_INT(run(&core, start_of(1), SECOND), CORE_NOTHING);
    CHECK(core.tasks[0].to_report);
    core_release(&core);
}

TEST(core_stops_what_it_holds)
{
    struct core core = {0};
    core_joined(&core, 5, SECOND);
    CHECK_INT(run(&core, stop_of(1, false, 100), SECOND), CORE_UNKNOWN);
    struct core_task *task = add(&core, AGENT_TASK_STARTING);
    CHECK_INT(run(&core, stop_of(2, false, 100), SECOND), CORE_CANCEL);
    CHECK_INT(run(&core, stop_of(3, true, 0), SECOND), CORE_CANCEL);
    core_sees(task, AGENT_TASK_RUNNING, SECOND);
    CHECK_INT(run(&core, stop_of(4, false, 3000), SECOND), CORE_TERM);
    /* Asked again it keeps the time that it was given first. */
    CHECK_INT(run(&core, stop_of(5, false, 9000), 2 * SECOND), CORE_NOTHING);
    CHECK_INT(core_wake_us(&core, SECOND), SECOND);
    core_told(task, AGENT_TASK_RUNNING, SECOND);
    CHECK_INT(core_wake_us(&core, SECOND), 4 * SECOND);
    CHECK_INT(core_expires(task, 4 * SECOND - 1), CORE_NOTHING);
    CHECK_INT(core_expires(task, 4 * SECOND), CORE_KILL);
    CHECK_INT(core_expires(task, 5 * SECOND), CORE_NOTHING);
    core_sees(task, AGENT_TASK_EXITED, 5 * SECOND);
    CHECK_INT(run(&core, stop_of(6, true, 0), 5 * SECOND), CORE_NOTHING);
    core_release(&core);
}

TEST(core_tells_that_a_process_has_ended_when_the_rest_takes_a_while)
{
    struct core core = {0};
    core_joined(&core, 5, SECOND);
    struct core_task *task = add(&core, AGENT_TASK_RUNNING);
    core_told(task, AGENT_TASK_RUNNING, SECOND);
    core_sees(task, AGENT_TASK_EXITED, 2 * SECOND);
    CHECK(!core_is_news(task, 7 * SECOND - 1));
    core_no_room(task, 6 * SECOND); /* the server's disk is full */
    CHECK_INT(core_wake_us(&core, 6 * SECOND + 1), 7 * SECOND);
    CHECK(core_is_news(task, 7 * SECOND));
    CHECK_INT(core_tells_as(task), AGENT_TASK_RUNNING);
    core_told(task, AGENT_TASK_RUNNING, 7 * SECOND);
    CHECK(!core_is_news(task, 20 * SECOND));
    task->to_ship = false;
    CHECK(core_is_news(task, 20 * SECOND));
    CHECK_INT(core_tells_as(task), AGENT_TASK_EXITED);
    core_release(&core);
}

TEST(core_tells_an_end_after_all_that_was_written)
{
    struct core core = {0};
    core_joined(&core, 5, SECOND);
    struct core_task *task = add(&core, AGENT_TASK_RUNNING);
    CHECK(core_is_news(task, SECOND));
    core_told(task, AGENT_TASK_RUNNING, SECOND);
    CHECK(!core_is_news(task, SECOND));
    CHECK(core_sees(task, AGENT_TASK_EXITED, 2 * SECOND));
    CHECK(!core_sees(task, AGENT_TASK_EXITED, 2 * SECOND));
    CHECK(core_ships(task, 2 * SECOND));
    core_no_room(task, 2 * SECOND);
    CHECK(!core_ships(task, 3 * SECOND - 1));
    CHECK(core_ships(task, 3 * SECOND));
    CHECK_INT(core_wake_us(&core, 2 * SECOND), 3 * SECOND);
    CHECK(!core_is_news(task, 2 * SECOND));
    CHECK_INT(core_tells_as(task), AGENT_TASK_RUNNING);
    /* An answer to what was said before is no answer to the end. */
    core_told(task, AGENT_TASK_RUNNING, 2 * SECOND);
    task->to_ship = false;
    CHECK(core_is_news(task, 2 * SECOND));
    CHECK_INT(core_tells_as(task), AGENT_TASK_EXITED);
    task->unproven = true;
    CHECK(!core_is_news(task, 2 * SECOND));
    task->unproven = false;
    /* Said until it is acknowledged. */
    core_told(task, AGENT_TASK_EXITED, 2 * SECOND);
    CHECK(!core_is_news(task, 4 * SECOND - 1));
    CHECK(core_is_news(task, 4 * SECOND));
    CHECK_INT(core_wake_us(&core, 3 * SECOND), 4 * SECOND);
    core_release(&core);
}

TEST(core_forgets_only_what_has_ended)
{
    struct core core = {0};
    core_joined(&core, 5, SECOND);
    struct core_task *task = add(&core, AGENT_TASK_RUNNING);
    CHECK(!core_acknowledged(&core, &worker));
    CHECK(!core_acknowledged(&core, &other));
    CHECK(core_is_last(&core, task));
    core_add(&core, &other, NULL, AGENT_TASK_RUNNING, SECOND);
    task = core_find(&core, &worker);
    CHECK(!core_is_last(&core, task));
    core_sees(task, AGENT_TASK_EXITED, SECOND);
    CHECK(core_acknowledged(&core, &worker) == task);
    core_remove(&core, task);
    CHECK(!core_find(&core, &worker));
    CHECK(core_find(&core, &other));
    core_release(&core);
}

TEST(core_tells_only_the_end_of_what_was_superseded)
{
    struct core core = {0};
    struct core_task *task = add(&core, AGENT_TASK_RUNNING);
    core_joined(&core, 5, SECOND);
    CHECK_INT(core_discard(task), CORE_KILL);
    CHECK(!core_ships(task, SECOND));
    CHECK(!core_is_news(task, SECOND));
    core_sees(task, AGENT_TASK_EXITED, SECOND);
    CHECK(core_is_news(task, SECOND));
    core_release(&core);
}

TEST(core_leaves_a_server_alone_that_does_not_answer)
{
    struct core core = {.random = 1};
    core_joined(&core, 5, SECOND);
    uint64_t now_us = SECOND, longest_us = 0;
    for (int i = 0; i < 20; i++) {
        CHECK(!core_failed(&core, UNAVAILABLE, now_us));
        CHECK(core_is_quiet(&core, now_us));
        CHECK_INT(core_wake_us(&core, now_us), core.quiet_until_us);
        /* Another call that was under way fails as well: that is the same time. */
        uint64_t quiet_until_us = core.quiet_until_us;
        int retry_ms = core.retry_ms;
        CHECK(!core_failed(&core, UNAVAILABLE, quiet_until_us - 1));
        CHECK_INT(core.quiet_until_us, quiet_until_us);
        CHECK_INT(core.retry_ms, retry_ms);
        if (core.quiet_until_us - now_us > longest_us)
            longest_us = core.quiet_until_us - now_us;
        now_us = core.quiet_until_us;
        CHECK(!core_is_quiet(&core, now_us));
    }
    CHECK(longest_us > SECOND);
    CHECK(longest_us <= 2 * SECOND);
    core_answered(&core);
    CHECK_INT(core.epoch, 5);
    /* Its session is over: it joins again, a second after it has last done so. */
    CHECK(core_failed(&core, PRECONDITION, SECOND));
    CHECK_INT(core.epoch, 0);
    CHECK_INT(core.quiet_until_us, 2 * SECOND);
    core_give_up(&core);
    CHECK(core_is_quiet(&core, UINT64_MAX - 1));
    core_release(&core);
}
