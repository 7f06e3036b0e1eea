/* plan.c - trainyard plan: what would happen if a job were submitted, or nodes came or went. */

#include <jansson.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/specfile.h"

static void print_moves(json_t *plan, const char *field, const char *head)
{
    size_t index;
    json_t *move;
    json_array_foreach(json_object_get(plan, field), index, move)
    {
        if (!index)
            printf("%s\n", head);
        printf("  - %s\n", json_string_value(json_object_get(move, "text")));
    }
}

static void print_plan(json_t *plan)
{
    size_t index;
    json_t *place;
    printf("%s\n", json_string_value(json_object_get(plan, "text")));
    json_array_foreach(json_object_get(plan, "placement"), index, place)
    {
        printf("  - %s on %s\n", json_string_value(json_object_get(place, "task")),
               json_string_value(json_object_get(place, "node")));
    }
    print_moves(plan, "stopped", "Stopped, to wait again:");
    print_moves(plan, "delayed", "Delayed:");
    print_moves(plan, "sooner", "Sooner:");
    json_t *looked = json_object_get(plan, "looked_seconds");
    if (json_is_number(looked))
        printf("Looked at the next %.0f s.\n", json_number_value(looked));
}

static void add_named(json_t *nodes, const struct options_words *names, const char *field,
                      bool value)
{
    for (int i = 0; i < names->count; i++)
        json_array_append_new(
            nodes, json_pack("{s:s, s:b}", "name", names->word[i], field, (int)value));
}

/* Nodes as JSON objects: {"name": "n9", "cpus": 64, "gpus": 8, "count": 2}. */
static bool add_new(json_t *nodes, const struct options_words *texts, struct error *err)
{
    for (int i = 0; i < texts->count; i++) {
        json_error_t where;
        json_t *node = json_loads(texts->word[i], JSON_REJECT_DUPLICATES, &where);
        if (!json_is_object(node)) {
            json_decref(node);
            return fail(err, INVALID,
                        "--add is '%s'; it is an object like {\"name\": \"n9\", \"cpus\": 8}",
                        texts->word[i]);
        }
        json_array_append_new(nodes, node);
    }
    return true;
}

static int ask(const char *folder, const json_t *body, bool as_json)
{
    struct error err;
    struct client *client = client_open(folder, &err);
    if (!client)
        return cli_fail(&err);
    char *text = json_dumps(body, JSON_COMPACT);
    json_t *plan = client_json(client, "POST", "/api/v1/plan", text, NULL, &err);
    free(text);
    client_close(client);
    if (!plan)
        return cli_fail(&err);
    if (as_json) {
        json_dumpf(plan, stdout, JSON_INDENT(2));
        puts("");
    } else {
        print_plan(plan);
    }
    json_decref(plan);
    return CLI_OK;
}

int plan_main(int argc, char **argv)
{
    static const char usage[] = "plan [FILE|EXAMPLE] [options]     (FILE may be -, for stdin)";
    const char *folder = NULL;
    bool as_json = false;
    struct options_words drained = {0}, undrained = {0}, removed = {0}, added = {0};
    const struct option_row rows[] = {
        {"drain", OPTION_LIST, &drained, "a node that takes nothing new (may be given again)"},
        {"undrain", OPTION_LIST, &undrained, "one that does again"},
        {"remove", OPTION_LIST, &removed, "one that is lost, with what runs there"},
        {"add", OPTION_LIST, &added,
         "new ones: {\"name\": \"n9\", \"cpus\": 64, \"count\": 2}"},
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &as_json, "as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    json_t *nodes = json_array(), *body = json_pack("{s:O}", "nodes", nodes);
    add_named(nodes, &removed, "remove", true);
    add_named(nodes, &drained, "drain", true);
    add_named(nodes, &undrained, "drain", false);
    json_t *spec = words.count ? specfile_read(words.word[0], &err) : NULL;
    bool ok = add_new(nodes, &added, &err) && (spec || !words.count);
    if (spec) {
        json_object_del(spec, "files"); /* they decide nothing, and may not be there yet */
        json_object_set_new(body, "spec", spec);
    }
    int status = CLI_USAGE;
    if (!ok)
        (void)cli_fail(&err);
    else
        status = ask(folder, body, as_json);
    json_decref(nodes);
    json_decref(body);
    return status;
}
