/* nodes.c - trainyard nodes. */

#include "cli/cli.h"
#include "cli/show.h"
#include "cli/table.h"

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

int nodes_main(int argc, char **argv)
{
    static const struct show show = {"nodes", "/api/v1/nodes", false, "", print_nodes};
    return show_answer(argc, argv, &show);
}
