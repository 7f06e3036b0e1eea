/* jobs.c - trainyard jobs: the list. */

#include "base/alloc.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/table.h"
#include "server/url.h"

static const char *text_of(json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void add_row(struct table *table, json_t *job)
{
    char age[40];
    json_t *step = json_object_get(job, "step");
    json_t *steps = json_object_get(job, "steps");
    json_t *loss = json_object_get(json_object_get(job, "last"), "loss");
    table_cell(table, "%lld", (long long)json_integer_value(json_object_get(job, "number")));
    bool rests = json_is_true(json_object_get(job, "paused")) &&
                 strcmp(text_of(job, "state"), "queued") == 0;
    table_cell(table, "%s", rests ? "paused" : text_of(job, "state"));
    table_cell(table, "%s", text_of(job, "name"));
    if (json_is_integer(step) && json_is_integer(steps))
        table_cell(table, "%lld/%lld", (long long)json_integer_value(step),
                   (long long)json_integer_value(steps));
    else
        table_cell(table, json_is_integer(step) ? "%lld" : "-",
                   (long long)json_integer_value(step));
    if (json_is_number(loss))
        table_cell(table, "%.4f", json_number_value(loss));
    else
        table_cell(table, "%s", json_is_string(loss) ? json_string_value(loss) : "-");
    table_cell(table, "%s",
               table_duration(table_age(text_of(job, "created_at")), age, sizeof(age)));
    table_cell(table, "%.100s", text_of(job, "reason"));
}

static void print_jobs(json_t *page)
{
    static const char *const head[] = {">JOB",  "STATE", "NAME", ">STEP",
                                       ">LOSS", ">AGE",  "WHY"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t index;
    json_t *job;
    json_array_foreach(json_object_get(page, "items"), index, job)
    {
        add_row(table, job);
    }
    table_print(table);
    if (json_is_string(json_object_get(page, "next_cursor")))
        printf("There are more: --limit N\n");
}

int jobs_main(int argc, char **argv)
{
    const char *folder = NULL;
    const char *state = NULL;
    const char *array = NULL;
    const char *order = NULL;
    const char *filter = NULL;
    bool archived = false;
    int64_t limit = 50;
    bool json = false;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"state", OPTION_TEXT, &state, "only these states, by commas"},
        {"array", OPTION_TEXT, &array, "only those of the array that began with this job"},
        {"archived", OPTION_FLAG, &archived, "those that are archived, in place of the others"},
        {"order-by", OPTION_TEXT, &order,
         "name, created_at, priority or metrics.NAME; -metrics.NAME: highest first (newest "
         "first)"},
        {"filter", OPTION_TEXT, &filter,
         "such as \"metrics.loss < 0.3 and tags = 'baseline'\""},
        {"limit", OPTION_NUMBER, &limit, "at most this many (50)"},
        {"json", OPTION_FLAG, &json, "as JSON"},
        {0},
    };
    static const char usage[] = "jobs [options]";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 0, &words, &err))
        return cli_usage(usage, rows, &err);
    struct client *client = client_open(folder, &err);
    if (!client)
        return cli_fail(&err);
    struct str path = {0};
    str_printf(&path, "/api/v1/jobs?limit=%lld", (long long)limit);
    if (state) {
        str_add(&path, "&state=");
        url_encode(&path, state);
    }
    if (order) {
        str_add(&path, "&order_by=");
        url_encode(&path, order);
    }
    if (filter) {
        str_add(&path, "&filter=");
        url_encode(&path, filter);
    }
    if (archived)
        str_add(&path, "&archived=true");
    if (array) {
        str_add(&path, "&array=");
        url_encode(&path, array);
    }
    json_t *page = client_json(client, "GET", str_text(&path), NULL, NULL, &err);
    str_release(&path);
    client_close(client);
    if (!page)
        return cli_fail(&err);
    if (json) {
        json_dumpf(page, stdout, JSON_INDENT(2));
        puts("");
    } else {
        print_jobs(page);
    }
    json_decref(page);
    return CLI_OK;
}
