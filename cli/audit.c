/* audit.c - trainyard audit: who changed what, newest first. */

#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "server/url.h"

static void print_entries(const json_t *answer)
{
    static const char *const head[] = {"TIME", "USER",    "BY",     "METHOD",
                                       "PATH", "REQUEST", ">STATUS"};
    static const char *const fields[] = {"time", "user", "way", "method", "path", "request_id"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(answer, "items"), i, entry)
    {
        for (int f = 0; f < ARRAY_LEN(fields); f++)
            table_cell(table, "%s", json_string_value(json_object_get(entry, fields[f])));
        table_cell(table, "%lld",
                   (long long)json_integer_value(json_object_get(entry, "status")));
    }
    table_print(table);
}

int audit_main(int argc, char **argv)
{
    static const char usage[] = "audit [--user NAME] [--limit N]";
    const char *folder = NULL, *user = NULL;
    int64_t limit = 50;
    bool json = false;
    const struct option_row rows[] = {
        {"user", OPTION_TEXT, &user, "changes of this user alone"},
        {"limit", OPTION_NUMBER, &limit, "this many, at most (50)"},
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &json, "as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 0, &words, &err))
        return cli_usage(usage, rows, &err);
    struct str what = {0};
    str_printf(&what, "audit?limit=%lld", (long long)limit);
    if (user) {
        str_add(&what, "&user=");
        url_encode(&what, user);
    }
    json_t *answer = change_send(folder, "GET", str_text(&what), NULL, NULL, &status);
    str_release(&what);
    if (!answer || (json && change_print(answer)))
        return status;
    print_entries(answer);
    json_decref(answer);
    return status;
}
