/*
 * main.c - flood DIR [JOBS] [NODES]: very many short jobs through the server's core, with
 * agents that only say so.
 *
 * A database is made in DIR, with the scheduler's loop over it as in a server.  NODES agents
 * join; what they are told to start has run and ended at once.  Jobs are added in arrays of
 * 500, as long as fewer than 2,000 of them wait.  For each tenth of JOBS it prints a line of
 * JSON: jobs a second, resident memory, size of the database.  Exits 1 when a job was lost or
 * ran twice, or when the last tenth takes twice the time of the second, or a quarter more
 * memory than after it.
 */

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mailbox.h"
#include "db/db.h"
#include "db/jobs.h"
#include "scheduler/loop.h"

enum { ARRAY_JOBS = 500, WAITING_MAX = 2000, PARTS = 10 };

struct flood {
    const char *folder;
    struct db *db;
    struct loop *loop;
    struct mailbox *told; /* of what the loop told the agents */
    int64_t *sessions;    /* by node */
    int joined;
    long jobs;
    long added;
    long ended;
    long started;
};

enum told_kind { TOLD_JOINED, TOLD_START, TOLD_ACKNOWLEDGE };

struct told {
    enum told_kind kind;
    int64_t node;
    int64_t epoch; /* of the session, or the attempt */
    int64_t job;
    char role[16];
    int index;
};

static void stop_with(const char *what, const struct error *err)
{
    fprintf(stderr, "flood: %s: %s\n", what, err ? err->text : "");
    exit(1);
}

/* --- in the loop's thread --- */

static void tell(struct flood *flood, enum told_kind kind, int64_t node, int64_t epoch,
                 const struct loop_task *task)
{
    struct told *told = alloc_bytes(sizeof(*told));
    *told = (struct told){.kind = kind, .node = node, .epoch = epoch};
    if (task) {
        told->job = task->job;
        told->index = task->index;
        snprintf(told->role, sizeof(told->role), "%s", task->role);
    }
    if (!mailbox_post(flood->told, told))
        stop_with("the agents' mailbox is full", NULL);
}

static void on_joined(void *self, struct loop_join *join, const struct loop_task *discard,
                      int discard_count, const struct error *err)
{
    (void)discard;
    if (err || discard_count)
        stop_with("join", err);
    tell(self, TOLD_JOINED, join->node_id, join->node_epoch, NULL);
    loop_join_free(join);
}

static void on_start(void *self, int64_t node, const struct loop_task *task)
{
    tell(self, TOLD_START, node, task->epoch, task);
}

static void on_stop(void *self, int64_t node, const struct loop_task *task, bool kill,
                    int64_t grace_ms)
{
    (void)self, (void)node, (void)task, (void)kill, (void)grace_ms;
    stop_with("a task was to be stopped", NULL);
}

static void on_acknowledge(void *self, int64_t node, const struct loop_task *task)
{
    tell(self, TOLD_ACKNOWLEDGE, node, task->epoch, task);
}

static void on_heard(void *self, void *call, int64_t node, int64_t epoch,
                     const struct error *err)
{
    (void)self, (void)call, (void)node, (void)epoch;
    if (err)
        stop_with("report", err);
}

static void on_forget(void *self, int64_t node)
{
    (void)self, (void)node;
    stop_with("a session was ended", NULL);
}

static uint64_t on_flush(void *self)
{
    (void)self;
    return UINT64_MAX;
}

/* --- the agents --- */

static void join(struct flood *flood, int node)
{
    struct arena *arena = arena_new();
    struct loop_join *join = arena_alloc(arena, sizeof(*join));
    *join = (struct loop_join){.arena = arena,
                               .name = arena_printf(arena, "n%d", node),
                               .identity = arena_printf(arena, "identity-%d", node),
                               .boot_id = "boot",
                               .version = "1",
                               .labels = "{}",
                               .capacity = {8000, INT64_C(32) << 30, 0},
                               .gpu_type = "",
                               .asked_us = (int64_t)clock_monotonic_us()};
    if (!loop_join(flood->loop, join))
        stop_with("join", NULL);
}

/* Says that tasks have run and ended, all of one node. */
static void report(struct flood *flood, struct told *const *tasks, int count)
{
    struct arena *arena = arena_new();
    struct scheduler_report *reports = arena_array(arena, (size_t)count, sizeof(*reports));
    for (int i = 0; i < count; i++) {
        reports[i] = (struct scheduler_report){.job = tasks[i]->job,
                                               .epoch = tasks[i]->epoch,
                                               .index = tasks[i]->index,
                                               .state = TASK_EXITED,
                                               .reason = EXIT_OK,
                                               .error = ""};
        snprintf(reports[i].role, sizeof(reports[i].role), "%s", tasks[i]->role);
    }
    struct loop_heard heard = {.node = tasks[0]->node,
                               .node_epoch = flood->sessions[tasks[0]->node],
                               .asked_us = (int64_t)clock_monotonic_us(),
                               .arena = arena,
                               .reports = reports,
                               .reports_count = count,
                               .call = flood};
    while (!loop_hear(flood->loop, &heard))
        usleep(1000); /* its mailbox is full */
}

static int by_node(const void *left, const void *right)
{
    const struct told *const *a = left, *const *b = right;
    return (*a)->node < (*b)->node ? -1 : (*a)->node > (*b)->node;
}

/* Does what the agents were told until nothing more comes at once. */
static void agents_serve(struct flood *flood)
{
    struct told *starts[4096], *told = mailbox_take(flood->told, 20);
    int count = 0;
    for (; told; told = count < ARRAY_LEN(starts) ? mailbox_take(flood->told, 0) : NULL) {
        if (told->kind == TOLD_START) {
            starts[count++] = told;
            continue;
        }
        if (told->kind == TOLD_JOINED) {
            flood->sessions[told->node] = told->epoch;
            flood->joined++;
        } else {
            flood->ended++;
        }
        free(told);
    }
    flood->started += count;
    qsort(starts, (size_t)count, sizeof(struct told *), by_node);
    for (int first = 0, next; first < count; first = next) {
        for (next = first; next < count && starts[next]->node == starts[first]->node; next++)
            continue;
        report(flood, starts + first, next - first);
    }
    for (int i = 0; i < count; i++)
        free(starts[i]);
}

/* --- the jobs --- */

static void add_jobs(struct flood *flood)
{
    static const struct db_need need = {
        .role = "worker", .replicas = 1, .cpu_millis = 1000, .memory_bytes = 1 << 20};
    struct db_job_new jobs[ARRAY_JOBS];
    struct db_job_added added;
    struct error err;
    for (int i = 0; i < ARRAY_JOBS; i++)
        jobs[i] = (struct db_job_new){
            .user_id = 1,
            .name = "flood",
            .project = i % 4 ? "a" : "b",
            .queue = "default",
            .priority = 50,
            .spec = "{\"command\": [\"true\"]}",
            .dataset = "",
            .program = "true",
            .needs = &need,
            .needs_count = 1,
            .restart_max = 5,
        };
    if (!db_jobs_add_array(flood->db, jobs, ARRAY_JOBS, &added, &err))
        stop_with("submit", &err);
    flood->added += ARRAY_JOBS;
    loop_wake(flood->loop);
}

static double resident_mib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* Of a file in the database's folder; 0: there is none. */
static double file_mib(const char *folder, const char *name)
{
    char path[4096];
    struct stat stat_of;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &stat_of) == 0 ? (double)stat_of.st_size / (1 << 20) : 0;
}

struct part {
    double seconds;
    double mib;
};

static struct part run_part(struct flood *flood, long until)
{
    uint64_t begin_us = clock_monotonic_us();
    long first = flood->ended;
    while (flood->ended < until) {
        if (flood->added < flood->jobs && flood->added - flood->ended < WAITING_MAX)
            add_jobs(flood);
        agents_serve(flood);
        if (clock_monotonic_us() - begin_us > UINT64_C(3600000000))
            stop_with("no end of it", NULL);
    }
    struct part part = {(double)(clock_monotonic_us() - begin_us) / 1e6, resident_mib()};
    printf("{\"case\": \"jobs through agents that only say so\", \"jobs\": %ld, \"value\": "
           "%.0f, \"unit\": \"1/s\", \"resident_mib\": %.1f, \"control_mib\": %.0f, "
           "\"wal_mib\": %.0f, \"metrics_mib\": %.1f}\n",
           flood->ended, (double)(flood->ended - first) / part.seconds, part.mib,
           file_mib(flood->folder, "control.db"), file_mib(flood->folder, "control.db-wal"),
           file_mib(flood->folder, "metrics.db"));
    fflush(stdout);
    return part;
}

/* Each job that was added has succeeded, by the database. */
static int64_t count_succeeded(struct flood *flood)
{
    struct error err;
    int64_t counts[JOB_STATES_COUNT];
    struct db_conn *conn = db_read(flood->db, DB_CONTROL, &err);
    if (!conn || !db_jobs_count(conn, counts, &err))
        stop_with("count", &err);
    db_read_done(flood->db, conn);
    return counts[JOB_SUCCEEDED];
}

int main(int argc, char **argv)
{
    struct error err;
    if (argc < 2) {
        fputs("usage: flood DIR [JOBS] [NODES]\n", stderr);
        return 2;
    }
    struct flood flood = {.folder = argv[1],
                          .jobs = argc > 2 ? strtol(argv[2], NULL, 10) : 100000,
                          .told = mailbox_new(100000)};
    int nodes = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 100;
    flood.jobs = flood.jobs / (PARTS * ARRAY_JOBS) * (PARTS * ARRAY_JOBS);
    flood.sessions = alloc_array((size_t)nodes + 1, sizeof(*flood.sessions));
    flood.db = db_open(argv[1], &err);
    struct loop_options options = {.db = flood.db, .suspect_ms = 3600000, .lost_ms = 7200000};
    flood.loop = flood.db ? loop_new(&options, &err) : NULL;
    if (!flood.loop)
        stop_with("start", &err);
    loop_set_agents(flood.loop, &(struct loop_agents){.self = &flood,
                                                      .joined = on_joined,
                                                      .start = on_start,
                                                      .stop = on_stop,
                                                      .acknowledge = on_acknowledge,
                                                      .heard = on_heard,
                                                      .forget = on_forget,
                                                      .flush = on_flush});
    if (!loop_start(flood.loop, &err))
        stop_with("start", &err);
    for (int i = 1; i <= nodes; i++)
        join(&flood, i);
    while (flood.joined < nodes)
        agents_serve(&flood);

    struct part parts[PARTS];
    for (int i = 0; i < PARTS; i++)
        parts[i] = run_part(&flood, flood.jobs / PARTS * (i + 1));
    loop_stop(flood.loop);
    loop_free(flood.loop);
    int64_t succeeded = count_succeeded(&flood);
    db_close(flood.db);
    free(flood.sessions);
    mailbox_free(flood.told);
    if (succeeded != flood.jobs || flood.started != flood.jobs)
        printf("%ld jobs: %lld have succeeded, %ld attempts were started\n", flood.jobs,
               (long long)succeeded, flood.started);
    bool grew = parts[PARTS - 1].mib > 1.25 * parts[1].mib;
    bool slowed = parts[PARTS - 1].seconds > 2 * parts[1].seconds;
    printf("%ld jobs, %lld succeeded, %s\n", flood.jobs, (long long)succeeded,
           grew     ? "memory grew"
           : slowed ? "it became slower"
                    : "memory and time of a job stayed");
    return succeeded != flood.jobs || flood.started != flood.jobs || grew || slowed;
}
