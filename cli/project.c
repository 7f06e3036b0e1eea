/* project.c - trainyard project: weights, quotas, and what was used. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"

static void cell_bound(struct table *table, json_t *quota, const char *name)
{
    json_t *value = json_object_get(quota, name);
    if (json_is_number(value))
        table_cell(table, "%g", json_number_value(value));
    else
        table_cell(table, "-");
}

static void print_projects(json_t *answer)
{
    static const char *const head[] = {"PROJECT", ">WEIGHT", ">CPUS",      ">MEMORY",
                                       ">GPUS",   ">JOBS",   ">CPU HOURS", ">GPU HOURS"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *project;
    json_array_foreach(json_object_get(answer, "items"), i, project)
    {
        json_t *quota = json_object_get(project, "quota");
        table_cell(table, "%s", json_string_value(json_object_get(project, "name")));
        table_cell(table, "%g", json_number_value(json_object_get(project, "weight")));
        cell_bound(table, quota, "cpus");
        cell_bound(table, quota, "memory_bytes");
        cell_bound(table, quota, "gpus");
        cell_bound(table, quota, "jobs");
        table_cell(table, "%.2f",
                   json_number_value(json_object_get(project, "cpu_seconds")) / 3600);
        table_cell(table, "%.2f",
                   json_number_value(json_object_get(project, "gpu_seconds")) / 3600);
    }
    table_print(table);
}

int project_main(int argc, char **argv)
{
    static const char usage[] =
        "project [NAME [--weight N] [--cpus N] [--memory BYTES] [--gpus N] [--jobs N]]";
    const char *folder = NULL;
    bool json = false;
    int64_t weight = CHANGE_NOT_GIVEN, cpus = CHANGE_NOT_GIVEN, memory = CHANGE_NOT_GIVEN,
            gpus = CHANGE_NOT_GIVEN, jobs = CHANGE_NOT_GIVEN;
    const struct option_row rows[] = {
        {"weight", OPTION_NUMBER, &weight, "1 to 1000: its share beside others (100)"},
        {"cpus", OPTION_NUMBER, &cpus, "it may hold at once; -1: no bound"},
        {"memory", OPTION_NUMBER, &memory, "bytes it may hold at once; -1: no bound"},
        {"gpus", OPTION_NUMBER, &gpus, "it may hold at once; -1: no bound"},
        {"jobs", OPTION_NUMBER, &jobs, "it may run at once; -1: no bound"},
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &json, "as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    if (words.count) {
        json_t *quota = json_object();
        change_add(quota, "cpus", cpus);
        change_add(quota, "memory_bytes", memory);
        change_add(quota, "gpus", gpus);
        change_add(quota, "jobs", jobs);
        json_t *body = json_pack("{s:o}", "quota", quota);
        change_add(body, "weight", weight);
        json_decref(change_send(folder, "PUT", "projects", words.word[0], body, &status));
        if (status != CLI_OK)
            return status;
    }
    json_t *answer = change_send(folder, "GET", "projects", NULL, NULL, &status);
    if (!answer || (json && change_print(answer)))
        return status;
    print_projects(answer);
    json_decref(answer);
    return status;
}
