#!/usr/bin/env python3
# Faults of docs/reliability.md: F2 F28 F29 F32 F33 F48.
"""planted.py [--places | --seeds N] [NAME...] - plants known bugs into a copy of the scheduler, one at a time, and sees that the
simulator finds each.  A simulator that misses one is itself failing.  With --places it only sees that each has its place."""

import os
import shutil
import subprocess
import sys
import tempfile

# name, file, what is there, what is put in its place
BUGS = [
    ("no_epoch_check", "scheduler/scheduler_node.c", "if (!task || task->epoch != report->epoch || task->node != node)", "if (!task || task->node != node)"),
    ("epoch_given_twice", "scheduler/scheduler_job.c", "job->epoch = ++s->epoch;", "job->epoch = s->epoch;"),
    ("room_given_back_twice", "scheduler/scheduler_job.c", "    scheduler_books_give(task->node, task);\n",
     "    scheduler_books_give(task->node, task);\n    scheduler_books_give(task->node, task);\n"),
    ("room_never_given_back", "scheduler/scheduler_job.c", "    scheduler_books_give(task->node, task);\n", ""),
    ("gpu_given_twice", "scheduler/scheduler_books.c", "away ? SCHEDULER_GPU_WHOLE : node->gpu_held[g];", "away ? SCHEDULER_GPU_WHOLE : node->gpu_held[g] / 2;"),
    ("drained_node_used", "scheduler/scheduler_node.c", "node->state == NODE_JOINED && !node->draining &&", "node->state == NODE_JOINED &&"),
    ("suspect_node_used", "scheduler/scheduler_node.c", "node->state == NODE_JOINED && !node->draining &&", "!node->draining &&"),
    ("ghosts_not_waited_for", "scheduler/scheduler_node.c", "!node->draining &&\n           !node->ghosts_count;", "!node->draining;"),
    ("orphans_live_on", "scheduler/scheduler_node.c", "    ghost_add(node, report);\n    if (joining)\n        answer(DO_DISCARD, node, report, actions);\n    else\n        answer(DO_STOP, node, report, actions)->kill = true;",
     "    (void)joining;\n    (void)ghost_add;"),
    ("old_reports_taken", "scheduler/scheduler_node.c", "    if (event->asked_us && event->asked_us <= node->reported_us)\n        return;", "    if (false)\n        return;"),
    ("lost_node_keeps_its_tasks", "scheduler/scheduler_node.c", "                scheduler_job_task_exits(s, job, &job->tasks[t], EXIT_LOST, NULL, actions);", "                continue;"),
    ("budget_off_by_one", "scheduler/scheduler_job.c", "job->restarts < job->restart_max", "job->restarts <= job->restart_max"),
    ("cancel_forgotten_while_stopping", "scheduler/scheduler_job.c", "    if (cancels)\n        job->intent = INTENT_CANCEL;\n", ""),
    ("cancel_not_stored", "scheduler/scheduler_job.c", "    if (cancels || kills)\n        scheduler_intent_note(job, text, actions);\n", ""),
    ("backoff_ignored", "scheduler/scheduler_pass.c", "job->retry_us > now_us || ", ""),
    ("servers_waited_for", "scheduler/scheduler_job.c", 'return strcmp(task->role, "ps") == 0 || ', 'return '),
    ("predecessors_ignored", "scheduler/scheduler_job.c", "job->after_count > 0 || job->paused;", "job->paused;"),
    ("pause_ignored", "scheduler/scheduler_job.c", "job->after_count > 0 || job->paused;", "job->after_count > 0;"),
    ("failed_predecessor_forgotten", "scheduler/scheduler_after.c", "if (has && s->ended[at].state != JOB_SUCCEEDED)", "if (has && s->ended[at].state == JOB_CANCELLED)"),
    ("quota_ignored", "scheduler/scheduler_pass.c", " || !scheduler_share_allows(job)", ""),
    ("preemption_costs_a_restart", "scheduler/scheduler_job.c", "    job->preemptions++;\n    if (job->paused)\n", "    job->preemptions++;\n    job->restarts++;\n    if (job->paused)\n"),
    ("equals_preempted", "scheduler/scheduler_preempt.c", "scheduler_share_rank(job, head) < 0", "scheduler_share_rank(job, head) <= 0"),
    ("labels_ignored", "scheduler/match.c", "        if (!has_label(kind, &need->labels[i]))\n            return false;", "        (void)has_label;"),
    ("attempt_charged_twice", "scheduler/scheduler_share.c", "action->cpu_ms = job->asks.cpu_millis", "action->cpu_ms = 2 * job->asks.cpu_millis"),
    ("told_before_the_commit", "tests/sim/server.c", "    if (world->actions.count && world_fault(world, FAULT_SERVER_CRASH, 1)) {\n        server_crash(world, \"before its commit\");",
     "    for (int i = 0; i < world->actions.count; i++)\n        if (world->actions.list[i].kind == DO_START)\n            session_command(world, &world->actions.list[i]);\n"
     "    for (int i = 0; i < world->agents_count; i++)\n        if (world->sessions[i].epoch && world->sessions[i].commands_count)\n            send_synced(world, i, NULL);\n"
     "    if (world->actions.count && world_fault(world, FAULT_SERVER_CRASH, 1)) {\n        server_crash(world, \"before its commit\");"),
    ("exit_acknowledged_before_the_commit", "tests/sim/server.c", "    if (world->actions.count && world_fault(world, FAULT_SERVER_CRASH, 1)) {\n        server_crash(world, \"before its commit\");",
     "    for (int i = 0; i < world->actions.count; i++)\n        if (world->actions.list[i].kind == DO_ACKNOWLEDGE)\n            send_action(world, &world->actions.list[i]);\n"
     "    if (request)\n        send_synced(world, request->node, request);\n"
     "    if (world->actions.count && world_fault(world, FAULT_SERVER_CRASH, 1)) {\n        server_crash(world, \"before its commit\");"),
    ("submit_answered_before_the_commit", "tests/sim/server.c", "    int64_t number = store_submit(",
     "    if (world_fault(world, FAULT_SERVER_CRASH, 1)) {\n        world->acked[index] = true;\n        server_crash(world, \"before it stored a job\");\n        return;\n    }\n"
     "    int64_t number = store_submit("),
    ("stall_not_forgiven", "scheduler/scheduler.c", "    if (gap_us < s->options.stall_us)\n        return;", "    if (gap_us)\n        return;"),
    ("stale_join_taken", "scheduler/scheduler_node.c", "    if (node && join_is_stale(node, event->node))\n        return;", "    (void)join_is_stale;"),
    ("restarts_not_stored", "scheduler/loop_commit.c", ".restarts = action->restarts,", ".restarts = 0,"),
    ("away_gpu_given", "scheduler/scheduler_books.c", "held = empty ? 0 : away ? SCHEDULER_GPU_WHOLE : node->gpu_held[g];", "held = empty ? 0 : node->gpu_held[g]; (void)away;"),
    ("started_on_a_gpu_that_went_away", "scheduler/scheduler_node.c", "    bool away = task->gpu_mask & task->node->gpus_away;\n", "    bool away = false;\n"),
    ("gpus_not_loaded", "scheduler/loop_load.c", "        .gpu_mask = from->gpu_mask,\n", ""),
    ("end_told_before_what_was_written", "scheduler/agent/core.c", "return is_unshipped(task) || task->unproven;", "return task->unproven;"),
    ("end_told_before_gpus_are_free", "scheduler/agent/core.c", "return is_unshipped(task) || task->unproven;", "return is_unshipped(task);"),
    ("end_told_once", "scheduler/agent/core.c", "        return task->said_us + REPORT_AGAIN_US;", "        return UINT64_MAX;"),
    ("orders_taken_twice", "scheduler/agent/core.c", "    if (command->sequence <= core->commands_done)\n        return CORE_NOTHING;\n", ""),
    ("orders_of_the_session_before_counted", "scheduler/agent/core.c", "    core->commands_done = 0;\n", ""),
    ("never_killed", "scheduler/agent/core.c", "return due ? kill_now(task) : CORE_NOTHING;", "return due ? CORE_NOTHING : CORE_NOTHING;"),
    ("superseded_lives_on", "scheduler/agent/core.c", "    task->discarded = true;\n    return kill_now(task);", "    task->discarded = true;\n    return CORE_NOTHING;"),
    ("cursor_not_looked_at", "db/ship.c", "return ship->offset == cursor && ship->end > cursor;", "return ship->end > cursor;"),
    ("older_points_not_cut", "db/ship.c", "    return db_run(conn, err, CUT_POINTS(OF_ONE), \"ii\", before, tally->series) &&\n           db_run(", "    return db_run("),
    ("lost_start_not_said_again", "scheduler/agent/cursor.c", "    cursor->at = stored;\n", "    cursor->at = stored < cursor->at ? cursor->at : stored;\n"),
    ("start_of_another_piece_continued", "server/partials.c", "    if (partial->offset + (int64_t)partial->bytes.size != piece->offset) {", "    if (false) {"),
    ("cursor_stored_apart_from_the_points", "tests/sim/store.c", "    row->cursor = ship->end;\n    store_mix(", "    if (row->next_step % 7 != 3)\n        row->cursor = ship->end;\n    store_mix("),
    ("piece_acknowledged_before_it_is_stored", "tests/sim/server.c", "        server_crash(world, \"before it stored a piece\");\n        return false;\n",
     "        *cursor = ship->end;\n        return true;\n"),
    ("placed_anew_with_its_old_epoch", "scheduler/scheduler_alone.c", "    task->epoch = ++s->epoch;\n", "    (void)s;\n"),
    ("first_task_placed_anew", "scheduler/scheduler_alone.c", "job->state != JOB_RUNNING || task->index == 0 || ", "job->state != JOB_RUNNING || "),
    ("placed_anew_takes_no_room", "scheduler/scheduler_alone.c", "    scheduler_books_take(node, task);\n", ""),
    ("placed_anew_for_nothing", "scheduler/scheduler_alone.c", "    job->restarts++;\n", ""),
    ("one_that_is_away_is_waited_for", "scheduler/scheduler_alone.c", "    return task->away || task->epoch != job->epoch;", "    return false && task && job;"),
    ("where_it_was_placed_anew_not_stored", "scheduler/loop_commit.c", "        .placed = action->task_epoch,\n", ""),
    ("away_not_loaded", "scheduler/loop_load.c", "        .away = from->away,\n", ""),
    ("time_run_not_loaded", "scheduler/loop_load.c", "            info->ran_us +=\n", "            info->ran_us =\n"),
]
# What is wrong with what is stored shows only where it is.
SQLITE = ("scheduler/loop_commit.c", "scheduler/loop_load.c", "db/ship.c")

CORE = ["scheduler/" + name + ".c" for name in (
    "explain fit match queue refuse scheduler scheduler_after scheduler_alone scheduler_books scheduler_check scheduler_failure scheduler_intent scheduler_job scheduler_node scheduler_pass scheduler_preempt "
    "scheduler_keep scheduler_reserve scheduler_share loop_commit loop_load agent/core agent/cursor").split()] + ["server/partials.c", "db/ship.c", "proto/agent_words.c"]
SIM = ["tests/sim/" + name + ".c" for name in "agent disk machine server sim store world".split()]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-w"]


def compile_file(tree, source, output):
    subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, "-I", tree, "-c", os.path.join(tree, source), "-o", output], check=True)


def look(bug):
    """The file's text, in which the bug has one place."""
    name, path, before = bug[:3]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(before) != 1:
        sys.exit(f"FAIL planted {name}: its place in {path} is there {text.count(before)} times")
    return text


def plant(tree, bug):
    _, path, before, after = bug
    text = look(bug)
    with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
        file.write(text.replace(before, after))


def main():
    arguments = sys.argv[1:]
    seeds = "10000"
    if arguments == ["--places"]:
        for bug in BUGS:
            look(bug)
        return
    if arguments[:1] == ["--seeds"]:
        seeds, arguments = arguments[1], arguments[2:]
    build = os.environ.get("TRAINYARD_BUILD", "build")
    missed = 0
    with tempfile.TemporaryDirectory() as work:
        tree = os.path.join(work, "tree")
        for folder in ("base", "db", "proto", "scheduler", "server", "tests/sim"):
            shutil.copytree(folder, os.path.join(tree, folder))
        objects = {source: os.path.join(work, source.replace("/", "-") + ".o") for source in CORE + SIM}
        for source, output in objects.items():
            compile_file(tree, source, output)
        libraries = [os.path.join(build, name) for name in ("libdb.a", "libbase.a")]
        for bug in BUGS:
            name, path = bug[:2]
            if arguments and name not in arguments:
                continue
            plant(tree, bug)
            planted = os.path.join(work, "planted.o")
            compile_file(tree, path, planted)
            shutil.copy(path, os.path.join(tree, path))
            program = os.path.join(work, "sim")
            subprocess.run([os.environ.get("CC", "gcc"), "-o", program, planted,
                            *[output for source, output in objects.items() if source != path], *libraries,
                            "-ljansson", "-lsqlite3", "-lsodium", "-lpthread", "-lm"], check=True)
            run = subprocess.run([program, "--seeds", seeds, *(["--sqlite"] if path in SQLITE else [])], capture_output=True, text=True, check=False)
            found = [line for line in run.stdout.splitlines() if line.startswith("FAIL")]
            if found:
                print(f"ok planted {name}: {found[0][5:]}", flush=True)
            else:
                missed += 1
                print(f"FAIL planted {name}: {seeds} worlds and nothing was found", flush=True)
    sys.exit(missed > 0)


main()
