/* top.c - trainyard top: the nodes and what runs on them, or the tasks of one job, drawn anew.
 */

#include <unistd.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/top.h"

#define TOP_SECONDS 2
#define GIB (1 << 30)

const char *top_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

double top_number(const json_t *object, const char *name)
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
        table_cell(table, "%s", top_text(node, "name"));
        table_cell(table, "%s", top_text(node, "state"));
        table_cell(table, "%g/%g", top_number(node, "cpus_used"), top_number(node, "cpus"));
        table_cell(table, "%.1f/%.1f GiB", top_number(node, "memory_bytes_used") / GIB,
                   top_number(node, "memory_bytes") / GIB);
        table_cell(table, "%g/%g", top_number(node, "gpus_used"), top_number(node, "gpus"));
        table_cell(table, "%g", top_number(node, "tasks"));
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
        const char *started = top_text(job, "started_at");
        table_cell(table, "%lld",
                   (long long)json_integer_value(json_object_get(job, "number")));
        table_cell(table, "%.40s", top_text(job, "name"));
        table_cell(table, "%s", top_text(job, "user"));
        table_cell(table, "%s", top_text(job, "state"));
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

static bool draw_once(struct client *client, const char *job, bool clear, struct error *err)
{
    return job ? top_job(client, job, clear, err) : draw(client, clear, err);
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
