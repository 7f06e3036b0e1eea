/* priority.c - trainyard priority: whose turn comes sooner. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"

int priority_main(int argc, char **argv)
{
    static const char usage[] = "priority JOB N     (0 to 100, higher first)";
    const char *folder = NULL;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 2, 2, &words, &err))
        return cli_usage(usage, rows, &err);
    char *end;
    long long priority = strtoll(words.word[1], &end, 10);
    if (*end || end == words.word[1]) {
        fail(&err, INVALID, "'%s' is no priority: 0 to 100", words.word[1]);
        return cli_usage(usage, rows, &err);
    }
    json_t *answer = change_send(folder, "PATCH", "jobs", words.word[0],
                                 json_pack("{s:I}", "priority", (json_int_t)priority), &status);
    if (answer)
        printf("job %lld has priority %lld\n",
               (long long)json_integer_value(json_object_get(answer, "number")),
               (long long)json_integer_value(json_object_get(answer, "priority")));
    json_decref(answer);
    return status;
}
