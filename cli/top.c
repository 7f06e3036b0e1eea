/* top.c - trainyard top: the nodes and what runs on them, or the tasks of one job, drawn anew.
 */

#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/table.h"
#include "server/url.h"

#define TOP_SECONDS 2
#define GIB (1 << 30)

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void print_nodes(const json_t *answer)
{
    static const char *const head[] = {"NODE", "STATE", ">CPUS", ">MEMORY", ">GPUS", ">TASKS"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *node;
    json_array_foreach(json_object_get(answer, "items"), i, node)
    {
        table_cell(table, "%s", text_of(node, "name"));
        table_cell(table, "%s", text_of(node, "state"));
        table_cell(table, "%g/%g", number_of(node, "cpus_used"), number_of(node, "cpus"));
        table_cell(table, "%.1f/%.1f GiB", number_of(node, "memory_bytes_used") / GIB,
                   number_of(node, "memory_bytes") / GIB);
        table_cell(table, "%g/%g", number_of(node, "gpus_used"), number_of(node, "gpus"));
        table_cell(table, "%g", number_of(node, "tasks"));
    }
    table_print(table);
}

/* A metric's last value; "-" where there is none. */
static void metric_cell(struct table *table, const json_t *job, const char *name)
{
    const json_t *value = json_object_get(json_object_get(job, "last"), name);
    if (json_is_number(value))
        table_cell(table, "%.4g", json_number_value(value));
    else
        table_cell(table, "%s", json_is_string(value) ? json_string_value(value) : "-");
}

static void print_jobs(const json_t *answer)
{
    static const char *const head[] = {">JOB",  "NAME",        "USER",        "STATE", ">STEP",
                                       ">LOSS", ">EXAMPLES/S", ">RUNS SINCE", "NODES"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *job;
    json_array_foreach(json_object_get(answer, "items"), i, job)
    {
        char age[40];
        const json_t *step = json_object_get(job, "step"),
                     *steps = json_object_get(job, "steps");
        const char *started = text_of(job, "started_at");
        table_cell(table, "%lld",
                   (long long)json_integer_value(json_object_get(job, "number")));
        table_cell(table, "%.40s", text_of(job, "name"));
        table_cell(table, "%s", text_of(job, "user"));
        table_cell(table, "%s", text_of(job, "state"));
        if (json_is_integer(step) && json_is_integer(steps))
            table_cell(table, "%lld/%lld", (long long)json_integer_value(step),
                       (long long)json_integer_value(steps));
        else
            table_cell(table, "-");
        metric_cell(table, job, "loss");
        metric_cell(table, job, "examples_per_second");
        table_cell(table, "%s",
                   table_duration(*started ? table_age(started) : -1, age, sizeof(age)));
        const json_t *nodes = json_object_get(job, "nodes");
        table_cell(table, "%s%s",
                   json_array_size(nodes) ? json_string_value(json_array_get(nodes, 0)) : "-",
                   json_array_size(nodes) > 1 ? " …" : "");
    }
    table_print(table);
}

static bool draw(struct client *client, bool clear, struct error *err)
{
    json_t *nodes = client_json(client, "GET", "/api/v1/nodes", NULL, NULL, err);
    json_t *jobs = nodes ? client_json(client, "GET",
                                       "/api/v1/jobs?limit=50&state=running,starting,stopping,"
                                       "allocated",
                                       NULL, NULL, err)
                         : NULL;
    json_t *queued = jobs ? client_json(client, "GET", "/api/v1/jobs?limit=1000&state=queued",
                                        NULL, NULL, err)
                          : NULL;
    if (queued) {
        size_t waiting = json_array_size(json_object_get(queued, "items"));
        bool more = json_is_string(json_object_get(queued, "next_cursor"));
        printf("%s%s: %zu running, %zu%s queued\n\n", clear ? "\033[H\033[2J" : "",
               client_name(client), json_array_size(json_object_get(jobs, "items")), waiting,
               more ? " and more" : "");
        print_nodes(nodes);
        printf("\n");
        print_jobs(jobs);
        fflush(stdout);
    }
    json_decref(nodes);
    json_decref(jobs);
    json_decref(queued);
    return queued != NULL;
}

/* --- one job: where a step's time goes --- */

/* Of several tasks that it waits for the one that it waits for most. */
static const json_t *latest_of(const json_t *task)
{
    const json_t *most = NULL;
    size_t i;
    json_t *from;
    json_array_foreach(json_object_get(task, "from"), i, from)
    {
        if (!most || number_of(from, "wait_us") > number_of(most, "wait_us"))
            most = from;
    }
    return most;
}

/* When a worker has done its share of a step; NULL: it is none, or nothing is known. */
static const json_t *arrival_of(const json_t *times, const char *task)
{
    size_t i;
    json_t *arrival;
    json_array_foreach(json_object_get(times, "arrivals"), i, arrival)
    {
        if (!strcmp(text_of(arrival, "task"), task))
            return arrival;
    }
    return NULL;
}

/* Who is much later than the others, as the task itself tells after some seconds of it. */
static void print_stragglers(const json_t *times)
{
    size_t i;
    json_t *late;
    json_array_foreach(json_object_get(times, "arrivals"), i, late)
    {
        double us = number_of(late, "us"), others = number_of(late, "others_us");
        if (others > 0 && us > 1.5 * others && us - others > 500)
            printf("\n%s is late: its share of a step takes %.1f ms, the others' %.1f ms, %.1f "
                   "times as long\n",
                   text_of(late, "task"), us / 1e3, others / 1e3, us / others);
    }
}

static void print_tasks(const json_t *times, double us)
{
    static const char *const head[] = {"TASK",     ">WORKS MS",     ">WAITS MS",
                                       ">OF STEP", ">DONE AT",      "MOST FOR",
                                       ">MS",      ">RECEIVES MIB", ">TENSORS"};
    const json_t *tasks = json_object_get(times, "tasks");
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i, k;
    json_t *task, *from;
    json_array_foreach(tasks, i, task)
    {
        double wait_us = number_of(task, "wait_us"), bytes = 0, tensors = 0;
        const json_t *most = latest_of(task);
        json_array_foreach(json_object_get(task, "from"), k, from)
        {
            bytes += number_of(from, "bytes");
            tensors += number_of(from, "tensors");
        }
        table_cell(table, "%.60s", text_of(task, "task"));
        table_cell(table, "%.3f", (number_of(task, "us") - wait_us) / 1e3);
        table_cell(table, "%.3f", wait_us / 1e3);
        table_cell(table, "%.0f %%", us > 0 ? 100 * wait_us / us : 0);
        const json_t *arrival = arrival_of(times, text_of(task, "task"));
        if (arrival)
            table_cell(table, "%.3f", number_of(arrival, "us") / 1e3);
        else
            table_cell(table, "-");
        table_cell(table, "%.60s", most ? text_of(most, "task") : "-");
        table_cell(table, "%.3f", most ? number_of(most, "wait_us") / 1e3 : 0);
        table_cell(table, "%.3f", bytes / (1 << 20));
        table_cell(table, "%.1f", tensors);
    }
    table_print(table);
}

static void print_job(const json_t *job, const json_t *times)
{
    const json_t *tasks = json_object_get(times, "tasks");
    double us = number_of(times, "us");
    printf("job %lld, %s: %s", (long long)json_integer_value(json_object_get(job, "number")),
           text_of(job, "name"), text_of(job, "state"));
    if (json_is_integer(json_object_get(job, "step")))
        printf(", step %lld", (long long)json_integer_value(json_object_get(job, "step")));
    printf("\n\n");
    if (!json_array_size(tasks)) {
        printf("No step has been measured yet: a task says where its time goes after two "
               "seconds of training, and at the end.\n");
        return;
    }
    printf("a step takes %.3f ms, and waits for its input %.3f ms before (means of %lld steps, "
           "up to step %lld)\n\n",
           us / 1e3, number_of(times, "input_us") / 1e3,
           (long long)json_integer_value(json_object_get(times, "steps")),
           (long long)json_integer_value(json_object_get(times, "step")));
    print_tasks(times, us);
    print_stragglers(times);
}

static bool draw_job(struct client *client, const char *name, bool clear, struct error *err)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, name);
    json_t *job = client_json(client, "GET", str_text(&path), NULL, NULL, err);
    str_add(&path, "/times");
    json_t *times = job ? client_json(client, "GET", str_text(&path), NULL, NULL, err) : NULL;
    if (times) {
        printf("%s", clear ? "\033[H\033[2J" : "");
        print_job(job, times);
        fflush(stdout);
    }
    json_decref(job);
    json_decref(times);
    str_release(&path);
    return times != NULL;
}

static bool draw_once(struct client *client, const char *job, bool clear, struct error *err)
{
    return job ? draw_job(client, job, clear, err) : draw(client, clear, err);
}

int top_main(int argc, char **argv)
{
    static const char usage[] =
        "top [JOB] [--once]\n\n"
        "The nodes and what runs on them; of a JOB its tasks: how long each works in a step, "
        "and whom it waits for.";
    const char *folder = NULL;
    bool once = false;
    const struct option_row rows[] = {
        {"once", OPTION_FLAG, &once, "print it once (as where there is no terminal)"},
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {0},
    };
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    struct client *client = client_open(folder, &err);
    once |= !isatty(STDOUT_FILENO);
    const char *job = words.count ? words.word[0] : NULL;
    bool ok = client && draw_once(client, job, !once, &err);
    while (ok && !once) {
        sleep(TOP_SECONDS); /* Ctrl-C ends it */
        ok = draw_once(client, job, true, &err);
    }
    client_close(client);
    return ok ? CLI_OK : cli_fail(&err);
}
