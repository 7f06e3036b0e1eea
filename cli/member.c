/* member.c - trainyard member: who has which role in a project. */

#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "server/url.h"

static int list(const char *folder, const char *members, bool json)
{
    static const char *const head[] = {"USER", "ROLE"};
    int status;
    json_t *answer = change_send(folder, "GET", members, NULL, NULL, &status);
    if (!answer || (json && change_print(answer)))
        return status;
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(answer, "items"), i, member)
    {
        table_cell(table, "%s", json_string_value(json_object_get(member, "user")));
        table_cell(table, "%s", json_string_value(json_object_get(member, "role")));
    }
    table_print(table);
    json_decref(answer);
    return CLI_OK;
}

int member_main(int argc, char **argv)
{
    static const char usage[] =
        "member list PROJECT | member set PROJECT USER ROLE | member remove PROJECT USER     "
        "(ROLE: viewer, member, admin)";
    const char *folder = NULL;
    bool json = false;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &json, "list: as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status = CLI_USAGE;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 2, 4, &words, &err))
        return cli_usage(usage, rows, &err);
    struct str members = {0};
    str_add(&members, "projects/");
    url_encode(&members, words.word[1]);
    str_add(&members, "/members");
    const char *verb = words.word[0];
    if (words.count == 2 && strcmp(verb, "list") == 0)
        status = list(folder, str_text(&members), json);
    else if (words.count == 4 && strcmp(verb, "set") == 0)
        json_decref(change_send(folder, "PUT", str_text(&members), words.word[2],
                                json_pack("{s:s}", "role", words.word[3]), &status));
    else if (words.count == 3 && strcmp(verb, "remove") == 0)
        json_decref(
            change_send(folder, "DELETE", str_text(&members), words.word[2], NULL, &status));
    else {
        fail(&err, INVALID,
             "'member %.40s' with %d words more; there are: list PROJECT, set PROJECT USER "
             "ROLE, remove PROJECT USER",
             verb, words.count - 1);
        cli_usage(usage, rows, &err);
    }
    str_release(&members);
    return status;
}
