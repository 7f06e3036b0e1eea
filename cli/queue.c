/* queue.c - trainyard queue: which there are, and what they may. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"

static void print_queues(json_t *answer)
{
    static const char *const head[] = {"QUEUE", ">PRIORITY", ">WEIGHT", "PREEMPTS"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *queue;
    json_array_foreach(json_object_get(answer, "items"), i, queue)
    {
        table_cell(table, "%s", json_string_value(json_object_get(queue, "name")));
        table_cell(table, "%g", json_number_value(json_object_get(queue, "priority")));
        table_cell(table, "%g", json_number_value(json_object_get(queue, "weight")));
        table_cell(table, "%s", json_is_true(json_object_get(queue, "preempt")) ? "yes" : "no");
    }
    table_print(table);
}

/* How long the scheduler takes, and what took longest. */
static int show_passes(const char *folder, bool json)
{
    static const char *const head[] = {"BEGAN",     ">TOOK MS",   ">DECIDING", ">STORING",
                                       ">MESSAGES", ">DECISIONS", ">NODES"};
    static const char *const times[] = {"seconds", "decide_seconds", "store_seconds"};
    static const char *const counts[] = {"messages", "decisions", "nodes"};
    int status;
    json_t *answer = change_send(folder, "GET", "scheduler", NULL, NULL, &status);
    if (!answer || (json && change_print(answer)))
        return status;
    double passes = json_number_value(json_object_get(answer, "passes"));
    double seconds = json_number_value(json_object_get(answer, "seconds"));
    printf("%.0f passes since the server started, %.3f ms each; the longest:\n", passes,
           passes > 0 ? seconds * 1000 / passes : 0);
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *pass;
    json_array_foreach(json_object_get(answer, "longest"), i, pass)
    {
        table_cell(table, "%s", json_string_value(json_object_get(pass, "at")));
        for (int t = 0; t < ARRAY_LEN(times); t++)
            table_cell(table, "%.3f",
                       json_number_value(json_object_get(pass, times[t])) * 1000);
        for (int c = 0; c < ARRAY_LEN(counts); c++)
            table_cell(table, "%g", json_number_value(json_object_get(pass, counts[c])));
    }
    table_print(table);
    json_decref(answer);
    return status;
}

int queue_main(int argc, char **argv)
{
    static const char usage[] =
        "queue [NAME [--priority N] [--weight N] [--preempt yes|no]] | queue --passes";
    const char *folder = NULL, *preempt = NULL;
    bool json = false, passes = false;
    int64_t priority = CHANGE_NOT_GIVEN, weight = CHANGE_NOT_GIVEN;
    const struct option_row rows[] = {
        {"priority", OPTION_NUMBER, &priority, "0 to 100: before queues of lower ones (50)"},
        {"weight", OPTION_NUMBER, &weight, "1 to 1000: its share beside its equals (100)"},
        {"preempt", OPTION_TEXT, &preempt,
         "yes: its jobs may end attempts of jobs of lower priority (no)"},
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"passes", OPTION_FLAG, &passes, "how long the scheduler's passes take"},
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
    if (preempt && strcmp(preempt, "yes") != 0 && strcmp(preempt, "no") != 0) {
        fail(&err, INVALID, "--preempt is '%s'; it can be yes or no", preempt);
        return cli_usage(usage, rows, &err);
    }
    if (passes && !words.count)
        return show_passes(folder, json);
    if (words.count) {
        json_t *body = json_object();
        change_add(body, "priority", priority);
        change_add(body, "weight", weight);
        if (preempt)
            json_object_set_new(body, "preempt", json_boolean(strcmp(preempt, "yes") == 0));
        json_decref(change_send(folder, "PUT", "queues", words.word[0], body, &status));
        if (status != CLI_OK)
            return status;
    }
    json_t *answer = change_send(folder, "GET", "queues", NULL, NULL, &status);
    if (!answer || (json && change_print(answer)))
        return status;
    print_queues(answer);
    json_decref(answer);
    return status;
}
