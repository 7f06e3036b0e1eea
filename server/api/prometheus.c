/* prometheus.c - what a monitoring system asks for every few seconds, in Prometheus' text form.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "db/jobs.h"
#include "db/nodes.h"
#include "db/queues.h"
#include "scheduler/engines/engine.h"
#include "scheduler/loop.h"
#include "scheduler/passes.h"
#include "server/api/api.h"
#include "server/reply.h"
#include "server/request.h"

/* All that is told, read before any of it is written. */
struct facts {
    int64_t jobs[JOB_STATES_COUNT];
    struct db_job_group *groups;
    int groups_count;
    struct db_project *projects;
    int projects_count;
    struct db_node *nodes;
    int nodes_count;
    const struct loop_node **loads; /* of each node; NULL: has no session */
};

/* Both lists are in the order of their ids. */
static bool read_loads(struct request *req, struct facts *facts, struct error *err)
{
    struct loop_node *now;
    int count, at = 0;
    if (!loop_nodes(req->services->loop, req->arena, &now, &count, err))
        return false;
    facts->loads =
        arena_array(req->arena, (size_t)facts->nodes_count + 1, sizeof(*facts->loads));
    for (int i = 0; i < facts->nodes_count; i++) {
        while (at < count && now[at].id < facts->nodes[i].id)
            at++;
        bool here = at < count && now[at].id == facts->nodes[i].id && now[at].session;
        facts->loads[i] = here ? &now[at] : NULL;
    }
    return true;
}

static bool read_facts(struct request *req, struct facts *facts, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok =
        conn && db_jobs_count(conn, facts->jobs, err) &&
        db_jobs_groups(conn, req->arena, &facts->groups, &facts->groups_count, err) &&
        db_projects_list(conn, req->arena, &facts->projects, &facts->projects_count, err) &&
        db_nodes_list(conn, req->arena, &facts->nodes, &facts->nodes_count, err);
    db_read_done(req->services->db, conn);
    return ok && read_loads(req, facts, err);
}

static void family(struct str *out, const char *name, const char *type, const char *help)
{
    str_printf(out, "# HELP trainyard_%s %s\n# TYPE trainyard_%s %s\n", name, help, name, type);
}

/* One line; `labels` are pairs of name and value, ended by NULL. */
static void sample(struct str *out, const char *name, double value, ...)
{
    va_list labels;
    const char *label;
    char before = '{';
    str_printf(out, "trainyard_%s", name);
    va_start(labels, value);
    while ((label = va_arg(labels, const char *))) {
        str_printf(out, "%c%s=\"", before, label);
        for (const char *c = va_arg(labels, const char *); *c; c++) {
            if (*c == '\\' || *c == '"')
                str_add_char(out, '\\');
            if (*c == '\n')
                str_add(out, "\\n");
            else
                str_add_char(out, *c);
        }
        str_add_char(out, '"');
        before = ',';
    }
    va_end(labels);
    str_printf(out, "%s %.17g\n", before == ',' ? "}" : "", value);
}

static void add_server(struct str *out, uint64_t started_us)
{
    struct rusage usage;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    family(out, "uptime_seconds", "gauge", "Since the server started.");
    sample(out, "uptime_seconds", (double)(clock_monotonic_us() - started_us) / 1e6, NULL);
    family(out, "resident_memory_bytes", "gauge", "Of the server's process.");
    sample(out, "resident_memory_bytes", (double)pages * (double)sysconf(_SC_PAGESIZE), NULL);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        family(out, "processor_seconds_total", "counter", "Used by the server's process.");
        sample(out, "processor_seconds_total",
               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
               NULL);
    }
}

static void add_jobs(struct str *out, const struct facts *facts)
{
    family(out, "jobs", "gauge", "Jobs by state, of all time.");
    for (int state = 0; state < JOB_STATES_COUNT; state++)
        sample(out, "jobs", (double)facts->jobs[state], "state",
               db_job_state_name((enum job_state)state), NULL);
    family(out, "jobs_active", "gauge", "Jobs that have not ended.");
    for (int i = 0; i < facts->groups_count; i++) {
        const struct db_job_group *group = &facts->groups[i];
        sample(out, "jobs_active", (double)group->count, "project", group->project, "queue",
               group->queue, "state", db_job_state_name(group->state), NULL);
    }
}

static void add_projects(struct str *out, const struct facts *facts)
{
    family(out, "project_cpu_seconds_total", "counter", "CPUs times seconds that were held.");
    for (int i = 0; i < facts->projects_count; i++)
        sample(out, "project_cpu_seconds_total", (double)facts->projects[i].cpu_ms / 1000,
               "project", facts->projects[i].name, NULL);
    family(out, "project_gpu_seconds_total", "counter", "GPUs times seconds that were held.");
    for (int i = 0; i < facts->projects_count; i++)
        sample(out, "project_gpu_seconds_total", (double)facts->projects[i].gpu_ms / 1000,
               "project", facts->projects[i].name, NULL);
}

/* What a node has, and what of it is given to tasks: nothing without a session. */
enum node_fact { NODE_UP, NODE_CPUS, NODE_MEMORY, NODE_GPUS, NODE_TASKS };

static void add_node_fact(struct str *out, const struct facts *facts, const char *name,
                          enum node_fact fact, bool used)
{
    for (int i = 0; i < facts->nodes_count; i++) {
        const struct db_node *node = &facts->nodes[i];
        const struct loop_node *load = facts->loads[i];
        double value = 0;
        if (fact == NODE_UP)
            value = load && load->state == NODE_JOINED;
        else if (fact == NODE_TASKS)
            value = load ? load->tasks_count : 0;
        else if (fact == NODE_CPUS)
            value = (double)(used ? load ? node->cpu_millis - load->cpu_millis_free : 0
                                  : node->cpu_millis) /
                    1000;
        else if (fact == NODE_MEMORY)
            value = (double)(used ? load ? node->memory_bytes - load->memory_bytes_free : 0
                                  : node->memory_bytes);
        else
            value = used ? load ? node->gpus - load->gpus_free : 0 : node->gpus;
        sample(out, name, value, "node", node->name, NULL);
    }
}

static void add_nodes(struct str *out, const struct facts *facts)
{
    static const struct {
        const char *name;
        const char *help;
        enum node_fact fact;
        bool used;
    } rows[] = {
        {"node_up", "1: joined, and heard of lately.", NODE_UP, false},
        {"node_tasks", "Tasks that run there.", NODE_TASKS, false},
        {"node_cpus", "CPUs it lends.", NODE_CPUS, false},
        {"node_cpus_used", "CPUs given to tasks.", NODE_CPUS, true},
        {"node_memory_bytes", "Memory it lends.", NODE_MEMORY, false},
        {"node_memory_bytes_used", "Memory given to tasks.", NODE_MEMORY, true},
        {"node_gpus", "GPUs it lends.", NODE_GPUS, false},
        {"node_gpus_used", "GPUs given to tasks.", NODE_GPUS, true},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        family(out, rows[i].name, "gauge", rows[i].help);
        add_node_fact(out, facts, rows[i].name, rows[i].fact, rows[i].used);
    }
}

static void add_pilots(struct str *out, struct engine *engine)
{
    struct pilots_count counts[SETTINGS_QUEUES_MAX];
    int count = engine_counts(engine, counts);
    family(out, "pilots", "gauge", "Nodes that an engine was asked for.");
    for (int i = 0; i < count; i++) {
        const char *queue = counts[i].queue;
        sample(out, "pilots", counts[i].waiting, "queue", queue, "state", "waiting", NULL);
        sample(out, "pilots", counts[i].starting, "queue", queue, "state", "starting", NULL);
        sample(out, "pilots", counts[i].joined, "queue", queue, "state", "joined", NULL);
        sample(out, "pilots", counts[i].leaving, "queue", queue, "state", "leaving", NULL);
    }
    family(out, "pilots_max", "gauge", "Nodes that an engine may be asked for.");
    for (int i = 0; i < count; i++)
        sample(out, "pilots_max", counts[i].max, "queue", counts[i].queue, NULL);
}

static void add_passes(struct str *out, struct loop *loop)
{
    struct passes passes;
    loop_passes(loop, &passes);
    family(out, "scheduler_passes_total", "counter", "Passes of the scheduler.");
    sample(out, "scheduler_passes_total", (double)passes.count, NULL);
    family(out, "scheduler_pass_seconds_total", "counter", "That they took together.");
    sample(out, "scheduler_pass_seconds_total", (double)passes.took_us / 1e6, NULL);
    family(out, "scheduler_pass_seconds_longest", "gauge", "The longest of them.");
    sample(out, "scheduler_pass_seconds_longest",
           passes.longest_count ? (double)passes.longest[0].took_us / 1e6 : 0, NULL);
}

/* GET /metrics */
static bool prometheus_show(struct request *req, struct error *err)
{
    struct facts facts = {0};
    struct str out = {0};
    if (!read_facts(req, &facts, err))
        return false;
    add_server(&out, req->services->started_us);
    add_jobs(&out, &facts);
    add_projects(&out, &facts);
    add_nodes(&out, &facts);
    add_passes(&out, req->services->loop);
    add_pilots(&out, req->services->engine);
    size_t size = out.size;
    return reply_owned(req, 200, "text/plain; version=0.0.4; charset=utf-8", str_take(&out),
                       size);
}

const struct route prometheus_routes[] = {
    {"GET", "/metrics", ROLE_VIEWER, prometheus_show, "Numbers for Prometheus", NULL, NULL, 200,
     "text/plain"},
    {0},
};
