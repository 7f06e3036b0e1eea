/* nodes.c - trainyard nodes. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/show.h"
#include "cli/table.h"

static const char usage[] = "nodes | nodes remove NODE...     (remove: its tasks are tried "
                            "elsewhere, and it needs a new "
                            "token to come back)";

static double number(json_t *node, const char *name)
{
    return json_number_value(json_object_get(node, name));
}

static void print_nodes(json_t *answer)
{
    static const char *const head[] = {"NODE",  "STATE",  ">CPUS", ">MEMORY",
                                       ">GPUS", ">TASKS", ">SEEN"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t index;
    json_t *node;
    json_array_foreach(json_object_get(answer, "items"), index, node)
    {
        char seen[40];
        const char *time = json_string_value(json_object_get(node, "last_seen_at"));
        table_cell(table, "%s", json_string_value(json_object_get(node, "name")));
        table_cell(table, "%s", json_string_value(json_object_get(node, "state")));
        table_cell(table, "%g/%g", number(node, "cpus_used"), number(node, "cpus"));
        table_cell(table, "%.1f/%.1f GiB", number(node, "memory_bytes_used") / (1 << 30),
                   number(node, "memory_bytes") / (1 << 30));
        table_cell(table, "%g/%g", number(node, "gpus_used"), number(node, "gpus"));
        table_cell(table, "%g", number(node, "tasks"));
        table_cell(table, "%s",
                   table_duration(time ? table_age(time) : -1, seen, sizeof(seen)));
    }
    table_print(table);
}

static int remove_nodes(int argc, char **argv)
{
    const char *folder = NULL;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status = CLI_OK;
    if (!options_parse(argc, argv, rows, 1, OPTIONS_WORDS_MAX, &words, &err))
        return cli_usage(usage, rows, &err);
    for (int i = 0; i < words.count; i++) {
        int one = CLI_OK;
        json_decref(change_send(folder, "DELETE", "nodes", words.word[i], NULL, &one));
        if (one == CLI_OK)
            printf("%s is removed: what ran there is tried elsewhere\n", words.word[i]);
        else
            status = one;
    }
    return status;
}

int nodes_main(int argc, char **argv)
{
    static const struct show show = {usage, "/api/v1/nodes", false, "", print_nodes};
    if (argc > 1 && strcmp(argv[1], "remove") == 0)
        return remove_nodes(argc - 1, argv + 1);
    return show_answer(argc, argv, &show);
}
