/* webhook.c - trainyard webhook: programs that are told of a project's jobs. */

#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "db/state.h"

static const char usage[] =
    "webhook list | add URL --project P [--states A,B] | change ID [--url URL] [--states A,B] "
    "[--disable|--enable] | remove ID | test ID | log ID | again ID DELIVERY";

struct wish {
    const char *folder;
    const char *project;
    const char *url;
    const char *states;
    bool disable, enable;
    bool json;
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static long long number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void add_states(struct table *table, const json_t *states)
{
    struct str text = {0};
    size_t i;
    json_t *state;
    json_array_foreach(states, i, state)
        str_printf(&text, "%s%s", i ? "," : "", json_string_value(state));
    table_cell(table, "%s",
               json_array_size(states) == JOB_STATES_COUNT ? "all" : str_text(&text));
    str_release(&text);
}

static int list(const struct wish *wish)
{
    static const char *const head[] = {">ID", "PROJECT", "URL", "STATES", "", ">WAITING"};
    int status;
    json_t *answer = change_send(wish->folder, "GET", "webhooks", NULL, NULL, &status);
    if (!answer || (wish->json && change_print(answer)))
        return status;
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *webhook;
    json_array_foreach(json_object_get(answer, "items"), i, webhook)
    {
        table_cell(table, "%lld", number_of(webhook, "id"));
        table_cell(table, "%s", text_of(webhook, "project"));
        table_cell(table, "%s", text_of(webhook, "url"));
        add_states(table, json_object_get(webhook, "states"));
        table_cell(table, "%s",
                   json_is_true(json_object_get(webhook, "disabled")) ? "disabled" : "");
        table_cell(table, "%lld", number_of(webhook, "waiting"));
    }
    table_print(table);
    json_decref(answer);
    return CLI_OK;
}

static json_t *body_of(const struct wish *wish)
{
    json_t *body = json_object();
    if (wish->project)
        json_object_set_new(body, "project", json_string(wish->project));
    if (wish->url)
        json_object_set_new(body, "url", json_string(wish->url));
    if (wish->states)
        json_object_set_new(body, "states", change_list(wish->states));
    if (wish->disable || wish->enable)
        json_object_set_new(body, "disabled", json_boolean(wish->disable));
    return body;
}

static int add(const struct wish *wish)
{
    int status;
    json_t *answer =
        change_send(wish->folder, "POST", "webhooks", NULL, body_of(wish), &status);
    if (!answer)
        return status;
    printf("webhook %lld; its secret, shown this once: %s\n", number_of(answer, "id"),
           text_of(answer, "secret"));
    json_decref(answer);
    return CLI_OK;
}

/* Sends something about one webhook, and prints `told` where that went well. */
static int tell(json_t *answer, int status, const char *told, const char *id)
{
    if (answer)
        printf("webhook %s %s\n", id, told);
    json_decref(answer);
    return status;
}

static int log_of(const struct wish *wish, const char *id)
{
    static const char *const head[] = {">DELIVERY", "TYPE",    "STATE", "CREATED",
                                       ">TRIES",    ">STATUS", "ERROR"};
    int status;
    struct str name = {0};
    str_printf(&name, "webhooks/%s", id); /* a number, as main has seen to */
    json_t *answer =
        change_send(wish->folder, "GET", str_text(&name), "deliveries", NULL, &status);
    str_release(&name);
    if (!answer || (wish->json && change_print(answer)))
        return status;
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(answer, "items"), i, row)
    {
        table_cell(table, "%lld", number_of(row, "id"));
        table_cell(table, "%s", text_of(row, "type"));
        table_cell(table, "%s", text_of(row, "state"));
        table_cell(table, "%s", text_of(row, "created_at"));
        table_cell(table, "%lld", number_of(row, "tries"));
        if (json_is_integer(json_object_get(row, "status")))
            table_cell(table, "%lld", number_of(row, "status"));
        else
            table_cell(table, "-");
        table_cell(table, "%s", text_of(row, "error"));
    }
    table_print(table);
    json_decref(answer);
    return CLI_OK;
}

static int again(const struct wish *wish, const char *id, const char *delivery)
{
    int status;
    struct str name = {0};
    str_printf(&name, "webhooks/%s/deliveries", id);
    json_t *answer =
        change_verb(wish->folder, str_text(&name), delivery, "redeliver", NULL, &status);
    str_release(&name);
    return tell(answer, status, "is told once more", id);
}

static int one(const struct wish *wish, const char *verb, const char *id)
{
    int status = CLI_USAGE;
    json_t *answer;
    if (strcmp(verb, "log") == 0)
        return log_of(wish, id);
    if (strcmp(verb, "remove") == 0) {
        answer = change_send(wish->folder, "DELETE", "webhooks", id, NULL, &status);
        return tell(answer, status, "is removed", id);
    }
    if (strcmp(verb, "test") == 0) {
        answer = change_verb(wish->folder, "webhooks", id, "test", NULL, &status);
        return tell(answer, status, "is sent something; see: trainyard webhook log", id);
    }
    answer = change_send(wish->folder, "PATCH", "webhooks", id, body_of(wish), &status);
    return tell(answer, status, "is changed", id);
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

int webhook_main(int argc, char **argv)
{
    struct wish wish = {0};
    const struct option_row rows[] = {
        {"project", OPTION_TEXT, &wish.project, "whose jobs it is told of"},
        {"states", OPTION_TEXT, &wish.states, "only these, by commas (all)"},
        {"url", OPTION_TEXT, &wish.url, "where it is told"},
        {"disable", OPTION_FLAG, &wish.disable, "tell it nothing for now"},
        {"enable", OPTION_FLAG, &wish.enable, "tell it again"},
        {"dir", OPTION_TEXT, &wish.folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &wish.json, "list, log: as JSON"},
        {0},
    };
    static const char *const of_one[] = {"change", "remove", "test", "log", NULL};
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 3, &words, &err))
        return cli_usage(usage, rows, &err);
    const char *verb = words.word[0];
    if (words.count == 1 && strcmp(verb, "list") == 0)
        return list(&wish);
    if (words.count == 2 && strcmp(verb, "add") == 0) {
        wish.url = words.word[1];
        return add(&wish);
    }
    for (int i = 0; words.count == 2 && of_one[i]; i++)
        if (strcmp(verb, of_one[i]) == 0 && is_number(words.word[1]))
            return one(&wish, verb, words.word[1]);
    if (words.count == 3 && strcmp(verb, "again") == 0 && is_number(words.word[1]) &&
        is_number(words.word[2]))
        return again(&wish, words.word[1], words.word[2]);
    fail(&err, INVALID,
         "'webhook %.40s' with %d words; there are: list, add URL, change ID, remove ID, test "
         "ID, log ID, again ID DELIVERY (an ID is a number)",
         verb, words.count - 1);
    return cli_usage(usage, rows, &err);
}
