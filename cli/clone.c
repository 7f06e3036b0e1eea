/* clone.c - trainyard clone: the same job once more, or with other values. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"

int clone_main(int argc, char **argv)
{
    static const char usage[] =
        "clone JOB [options]     (--set is JSON, \"{\\\"seed\\\": 2}\")";
    const char *folder = NULL, *set = NULL, *name = NULL;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"name", OPTION_TEXT, &name, "in place of the spec's name"},
        {"set", OPTION_TEXT, &set, "fields over those of the spec, as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    json_error_t where;
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    json_t *body = json_loads(set ? set : "{}", JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(body)) {
        fail(&err, INVALID, "--set is no JSON object: column %d: %s", where.column, where.text);
        json_decref(body);
        return cli_usage(usage, rows, &err);
    }
    if (name)
        json_object_set_new(body, "name", json_string(name));
    json_t *answer = change_verb(folder, "jobs", words.word[0], "clone", body, &status);
    if (answer)
        printf("job %lld submitted (%s)\n",
               (long long)json_integer_value(json_object_get(answer, "number")),
               json_string_value(json_object_get(answer, "id")));
    json_decref(answer);
    return status;
}
