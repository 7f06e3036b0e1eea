/* edit.c - trainyard edit: other values for a job that is queued. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"

int edit_main(int argc, char **argv)
{
    static const char usage[] = "edit JOB --set JSON     (of a job that is queued)";
    const char *folder = NULL, *set = NULL;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"set", OPTION_TEXT, &set, "fields over those of the spec, as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    json_error_t where = {0};
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    json_t *body = set ? json_loads(set, JSON_REJECT_DUPLICATES, &where) : NULL;
    if (!json_is_object(body)) {
        fail(&err, INVALID, "--set is no JSON object: column %d: %s", where.column, where.text);
        json_decref(body);
        return cli_usage(usage, rows, &err);
    }
    json_t *answer = change_send(folder, "PATCH", "jobs", words.word[0], body, &status);
    if (answer)
        printf("job %lld is edited\n",
               (long long)json_integer_value(json_object_get(answer, "number")));
    json_decref(answer);
    return status;
}
