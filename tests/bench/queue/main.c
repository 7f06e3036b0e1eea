/*
 * main.c - queue [NODES] [JOBS] [PASSES]: how long the scheduler looks at a long queue.
 *
 * NODES of several kinds are full, JOBS wait: of many projects and three queues, with needs
 * that differ.  Then, PASSES times over, one job ends and another is submitted, and the time of
 * that batch, with its pass, is measured; then a copy of the state, and answers to why a job
 * waits, with what would start it.  Prints a line of JSON.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "scheduler/advise.h"
#include "scheduler/explain.h"
#include "scheduler/scheduler.h"
#include "tests/sim/random.h"

struct live { /* a task that runs */
    int64_t job;
    int64_t epoch;
    int64_t node;
};

struct bench {
    struct scheduler *scheduler;
    struct scheduler_actions actions;
    struct random random;
    uint64_t now_us;
    int64_t jobs;
    int64_t *sessions; /* by node */
    struct live *live;
    int live_count;
    int live_capacity;
    long started;
};

static void step(struct bench *bench, const struct scheduler_event *event)
{
    scheduler_step(bench->scheduler, event, bench->now_us, &bench->actions);
}

/* Ends a batch: a tick, and what it has started is remembered. */
static void tick(struct bench *bench)
{
    step(bench, &(struct scheduler_event){.kind = ON_TICK});
    for (int i = 0; i < bench->actions.count; i++) {
        const struct scheduler_action *a = &bench->actions.list[i];
        if (a->kind == DO_JOINED)
            bench->sessions[a->node] = a->epoch;
        if (a->kind != DO_START)
            continue;
        bench->live = alloc_grow(bench->live, bench->live_count, &bench->live_capacity,
                                 sizeof(*bench->live));
        bench->live[bench->live_count++] = (struct live){a->job, a->epoch, a->node};
        bench->started++;
    }
    scheduler_actions_clear(&bench->actions);
    arena_clear(bench->actions.arena);
}

static void join(struct bench *bench, int64_t id)
{
    static const struct scheduler_label zones[] = {{"zone", "a"}, {"zone", "b"}};
    char name[16];
    snprintf(name, sizeof(name), "n%lld", (long long)id);
    struct scheduler_node_info node = {
        .id = id,
        .name = name,
        .capacity = {64000, INT64_C(256) << 30, id % 4 ? 8 : 0},
        .gpu_type = id % 4 == 1 ? "a100"
                    : id % 4    ? "h100"
                                : "",
        .gpu_memory_bytes = id % 4 ? INT64_C(80) << 30 : 0,
        .labels = &zones[id % 2],
        .labels_count = 1,
    };
    step(bench, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
}

static void submit(struct bench *bench)
{
    static const char *const queues[] = {"default", "default", "urgent", "night"};
    struct random *random = &bench->random;
    char project[16];
    snprintf(project, sizeof(project), "p%d", random_below(random, 50));
    struct scheduler_need need = {
        .role = "worker",
        .replicas = 1,
        .each = {1000 * (1 + random_below(random, 16)),
                 (int64_t)(1 + random_below(random, 32)) << 30, random_below(random, 9)},
    };
    if (need.each.gpus && random_chance(random, 30))
        need.gpu_type = "h100";
    struct scheduler_job_info job = {
        .number = ++bench->jobs,
        .queue = queues[random_below(random, 4)],
        .project = project,
        .priority = 10 * random_below(random, 10),
        .reason = "",
        .needs = &need,
        .needs_count = 1,
        .stop_us = random_chance(random, 80) ? UINT64_C(3600000000) : 0,
    };
    step(bench, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
}

static void end_one(struct bench *bench)
{
    if (!bench->live_count)
        return;
    int at = random_below(&bench->random, bench->live_count);
    struct live task = bench->live[at];
    bench->live[at] = bench->live[--bench->live_count];
    struct scheduler_report report = {.job = task.job,
                                      .epoch = task.epoch,
                                      .role = "worker",
                                      .state = TASK_EXITED,
                                      .reason = EXIT_OK,
                                      .error = ""};
    step(bench, &(struct scheduler_event){.kind = ON_REPORT,
                                          .id = task.node,
                                          .epoch = bench->sessions[task.node],
                                          .reports = &report,
                                          .reports_count = 1});
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Half of `count` answers take no longer; with how many changes they name, on average. */
static double explain_ms(struct bench *bench, int count, double *changes)
{
    uint64_t *took_us = alloc_array((size_t)count, sizeof(*took_us));
    int named = 0;
    for (int i = 0; i < count;) {
        int64_t number = 1 + random_below(&bench->random, (int)bench->jobs);
        enum job_state state;
        struct explain why;
        if (!scheduler_job_state(bench->scheduler, number, &state) || state != JOB_QUEUED)
            continue;
        uint64_t begin_us = clock_monotonic_us();
        explain_job(bench->scheduler, number, bench->now_us, &why);
        advise_job(bench->scheduler, number, bench->now_us, &why);
        took_us[i++] = clock_monotonic_us() - begin_us;
        named += why.changes_count;
    }
    qsort(took_us, (size_t)count, sizeof(*took_us), by_value);
    double middle = (double)took_us[count / 2] / 1000;
    *changes = (double)named / count;
    free(took_us);
    return middle;
}

static double copy_ms(const struct bench *bench)
{
    uint64_t begin_us = clock_monotonic_us();
    for (int i = 0; i < 10; i++)
        scheduler_free(scheduler_copy(bench->scheduler));
    return (double)(clock_monotonic_us() - begin_us) / 10000;
}

static int number(int argc, char **argv, int index, int otherwise)
{
    return argc > index ? (int)strtol(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    int nodes = number(argc, argv, 1, 1000), jobs = number(argc, argv, 2, 10000);
    int passes = number(argc, argv, 3, 2000);
    struct bench bench = {.now_us = 1000000};
    struct scheduler_options options = scheduler_defaults;
    options.lost_us = options.suspect_us = UINT64_C(1)
                                           << 60; /* heartbeats are not the matter */
    random_init(&bench.random, 1);
    bench.actions.arena = arena_new();
    bench.scheduler = scheduler_new(&options, bench.now_us);
    bench.sessions = alloc_array((size_t)nodes + 1, sizeof(*bench.sessions));
    for (int64_t id = 1; id <= nodes; id++)
        join(&bench, id);
    while (bench.jobs - bench.started < jobs) {
        for (int i = 0; i < 256; i++)
            submit(&bench);
        tick(&bench);
    }

    uint64_t *took_us = alloc_array((size_t)passes, sizeof(*took_us)), total_us = 0;
    long started = bench.started;
    for (int i = 0; i < passes; i++) {
        bench.now_us += 10000;
        uint64_t begin_us = clock_monotonic_us();
        end_one(&bench);
        submit(&bench);
        tick(&bench);
        took_us[i] = clock_monotonic_us() - begin_us;
        total_us += took_us[i];
    }
    qsort(took_us, (size_t)passes, sizeof(*took_us), by_value);
    double changes, explained = explain_ms(&bench, 20, &changes);
    printf(
        "{\"nodes\": %d, \"queued\": %lld, \"running\": %d, \"passes\": %d, \"started\": %ld, "
        "\"mean_ms\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, "
        "\"copy_ms\": %.3f, \"explain_ms\": %.3f, \"changes\": %.1f}\n",
        nodes, (long long)(bench.jobs - bench.started), bench.live_count, passes,
        bench.started - started, (double)total_us / passes / 1000,
        (double)took_us[passes / 2] / 1000, (double)took_us[passes * 99 / 100] / 1000,
        (double)took_us[passes - 1] / 1000, copy_ms(&bench), explained, changes);
    scheduler_free(bench.scheduler);
    arena_free(bench.actions.arena);
    scheduler_actions_release(&bench.actions);
    free(bench.sessions);
    free(bench.live);
    free(took_us);
    return 0;
}
