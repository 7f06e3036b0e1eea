/* show.c - trainyard show, explain, nodes: one answer of the server, for people or as JSON. */

#include "cli/show.h"
#include "base/alloc.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "server/url.h"

int show_answer(int argc, char **argv, const struct show *show)
{
    const char *folder = NULL;
    bool json = false;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &json, "as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(show->usage, rows, NULL);
    int count = show->takes_job ? 1 : 0;
    if (!options_parse(argc, argv, rows, count, count, &words, &err))
        return cli_usage(show->usage, rows, &err);
    struct client *client = client_open(folder, &err);
    if (!client)
        return cli_fail(&err);
    struct str path = {0};
    str_add(&path, show->path);
    if (show->takes_job) {
        url_encode(&path, words.word[0]);
        str_add(&path, show->after);
    }
    json_t *answer = client_json(client, "GET", str_text(&path), NULL, NULL, &err);
    str_release(&path);
    client_close(client);
    if (!answer)
        return cli_fail(&err);
    if (json) {
        json_dumpf(answer, stdout, JSON_INDENT(2));
        puts("");
    } else {
        show->print(answer);
    }
    json_decref(answer);
    return CLI_OK;
}

static void print_field(json_t *job, const char *name, const char *label)
{
    json_t *value = json_object_get(job, name);
    if (json_is_string(value))
        printf("%-12s %s\n", label, json_string_value(value));
    else if (json_is_integer(value))
        printf("%-12s %lld\n", label, (long long)json_integer_value(value));
}

static void print_job(json_t *job)
{
    static const char *const fields[][2] = {
        {"number", "job"},         {"id", "id"},
        {"name", "name"},          {"project", "project"},
        {"state", "state"},        {"reason", "why"},
        {"attempt", "attempt"},    {"created_at", "submitted"},
        {"started_at", "started"}, {"ended_at", "ended"},
        {"step", "step"},          {"steps", "of steps"},
    };
    for (int i = 0; i < ARRAY_LEN(fields); i++)
        print_field(job, fields[i][0], fields[i][1]);
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(job, "last"), name, value)
    {
        printf("%-20s %.6g\n", name, json_number_value(value));
    }
}

int show_main(int argc, char **argv)
{
    static const struct show show = {"show JOB", "/api/v1/jobs/", true, "", print_job};
    return show_answer(argc, argv, &show);
}
