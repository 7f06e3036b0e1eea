/* end.c - asking for jobs to end. */

#include "cli/end.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "server/url.h"

static void print(const json_t *answer, const struct end *end, bool array, const char *job)
{
    if (end->method)
        printf("job %s is removed\n", job);
    else if (array)
        printf("array %lld: %lld of %lld jobs %s\n",
               (long long)json_integer_value(json_object_get(answer, "array")),
               (long long)json_integer_value(json_object_get(answer, "told")),
               (long long)json_integer_value(json_object_get(answer, "count")),
               strcmp(end->verb, "pause") == 0    ? "are paused"
               : strcmp(end->verb, "resume") == 0 ? "are not paused"
                                                  : "had not ended");
    else
        printf("job %lld is %s%s%s\n",
               (long long)json_integer_value(json_object_get(answer, "number")),
               json_string_value(json_object_get(answer, "state")),
               json_is_true(json_object_get(answer, "paused")) ? ", paused" : "",
               json_is_true(json_object_get(answer, "archived")) ? ", archived" : "");
}

int end_jobs(int argc, char **argv, const struct end *end)
{
    const char *folder = NULL;
    bool array = false, undo = false;
    int count = 0;
    struct option_row rows[4] = {{0}};
    rows[count++] =
        (struct option_row){"dir", OPTION_TEXT, &folder, "folder of a server on this machine"};
    if (end->arrays)
        rows[count++] = (struct option_row){"array", OPTION_FLAG, &array,
                                            "all jobs of the array that JOB is of"};
    if (end->undo)
        rows[count++] = (struct option_row){"undo", OPTION_FLAG, &undo, "the other way"};
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(end->usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, OPTIONS_WORDS_MAX, &words, &err))
        return cli_usage(end->usage, rows, &err);
    struct client *client = client_open(folder, &err);
    if (!client)
        return cli_fail(&err);
    int status = CLI_OK;
    for (int i = 0; i < words.count; i++) {
        struct str path = {0};
        str_add(&path, array ? "/api/v1/arrays/" : "/api/v1/jobs/");
        url_encode(&path, words.word[i]);
        if (!end->method)
            str_printf(&path, ":%s", undo ? end->undo : end->verb);
        json_t *answer = client_json(client, end->method ? end->method : "POST",
                                     str_text(&path), end->method ? NULL : "{}", NULL, &err);
        str_release(&path);
        if (answer)
            print(answer, end, array, words.word[i]);
        else
            status = cli_fail(&err);
        json_decref(answer);
    }
    client_close(client);
    return status;
}
