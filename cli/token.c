/* token.c - trainyard token: through a server, or to create one in a folder whose server does
 * not run. */

#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/table.h"
#include "db/tokens.h"
#include "runtime/spec/spec.h"
#include "server/authority.h"
#include "server/url.h"

struct token_options {
    const char *folder;
    const char *name;
    const char *role;
    const char *user;
    const char *project;
    int64_t days;
    bool join;
    bool json;
};

static bool ask_server(struct client *client, const struct token_options *options,
                       struct error *err)
{
    json_t *request =
        json_pack("{s:s, s:s}", "name", options->name, "kind", options->join ? "join" : "api");
    if (options->days)
        json_object_set_new(request, "days", json_integer(options->days));
    if (options->role)
        json_object_set_new(request, "role", json_string(options->role));
    if (options->project)
        json_object_set_new(request, "project", json_string(options->project));
    char *body = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    json_t *answer = client_json(client, "POST", "/api/v1/tokens", body, NULL, err);
    free(body);
    const char *token = json_string_value(json_object_get(answer, "token"));
    if (token)
        puts(token);
    json_decref(answer);
    return answer != NULL;
}

/* No server holds the folder: open its database ourselves. */
static bool make_here(const struct token_options *options, struct error *err)
{
    char *file = alloc_printf("%s/control.db", options->folder);
    bool known = access(file, F_OK) == 0;
    free(file);
    if (!known) /* a slip of the pen must not found another yard */
        return fail(err, NOT_FOUND,
                    "%s is no folder of a server; begin with: trainyard serve --dir %s",
                    options->folder, options->folder);
    enum user_role role = ROLE_ADMIN;
    if (options->role && !db_role_find(options->role, &role))
        return fail(err, INVALID, "--role is '%.40s'; it can be viewer, member, admin",
                    options->role);
    if (options->project && (options->join || !spec_is_name(options->project)))
        return options->join
                   ? fail(err, INVALID, "--project is for tokens of the API, not for --join")
                   : fail(err, INVALID,
                          "--project is '%.40s', no project can have that name: 1 to %d of "
                          "A-Z a-z 0-9 . _ -",
                          options->project, LIMIT_NAME_BYTES);
    struct db *db = db_open(options->folder, err);
    if (!db)
        return false;
    char token[DB_TOKEN_BYTES];
    struct db_token_new made = {
        .user_id = DB_USER_ADMIN,
        .kind = options->join ? TOKEN_JOIN : TOKEN_API,
        .role = role,
        .project = options->project,
        .name = options->name,
        .expires_us =
            options->days ? (int64_t)clock_wall_us() + options->days * 86400 * 1000000 : 0,
    };
    bool ok = db_tokens_add(db, &made, token, err);
    struct authority *authority = NULL;
    if (ok && options->join)
        ok = (authority = authority_new(db, options->folder, err)) != NULL;
    db_close(db);
    if (ok && authority)
        printf("%s.%s\n", token, authority_pin(authority));
    else if (ok)
        puts(token);
    authority_free(authority);
    return ok;
}

static int create(const struct token_options *options)
{
    struct error err;
    struct client *client = client_open(options->folder, &err);
    bool ok = client && ask_server(client, options, &err);
    client_close(client);
    if (!ok && err.code == UNAVAILABLE && options->folder)
        ok = make_here(options, &err);
    return ok ? CLI_OK : cli_fail(&err);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "-";
}

static int list(const struct token_options *options)
{
    static const char *const head[] = {">ID",     "KIND",    "NAME",   "ROLE",
                                       "PROJECT", "CREATED", "EXPIRES"};
    int status;
    struct str what = {0};
    str_add(&what, "tokens");
    if (options->user) {
        str_add(&what, "?user=");
        url_encode(&what, options->user);
    }
    json_t *answer = change_send(options->folder, "GET", str_text(&what), NULL, NULL, &status);
    str_release(&what);
    if (!answer || (options->json && change_print(answer)))
        return status;
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *token;
    json_array_foreach(json_object_get(answer, "items"), i, token)
    {
        table_cell(table, "%lld", (long long)json_integer_value(json_object_get(token, "id")));
        table_cell(table, "%s", text_of(token, "kind"));
        table_cell(table, "%s", text_of(token, "name"));
        table_cell(table, "%s", text_of(token, "role"));
        table_cell(table, "%s", text_of(token, "project"));
        table_cell(table, "%s", text_of(token, "created_at"));
        table_cell(table, "%s", text_of(token, "expires_at"));
    }
    table_print(table);
    json_decref(answer);
    return CLI_OK;
}

int token_main(int argc, char **argv)
{
    struct token_options options = {.name = "command line"};
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &options.folder,
         "folder of a server on this machine (else the server signed in to)"},
        {"name", OPTION_TEXT, &options.name, "what to call it"},
        {"role", OPTION_TEXT, &options.role,
         "viewer, member or admin: the most it may do (what you may)"},
        {"project", OPTION_TEXT, &options.project,
         "works in this project alone (in all of yours)"},
        {"days", OPTION_NUMBER, &options.days, "valid for this long (for ever)"},
        {"join", OPTION_FLAG, &options.join, "for `trainyard agent` in place of the API"},
        {"user", OPTION_TEXT, &options.user, "list those of another user"},
        {"json", OPTION_FLAG, &options.json, "list: as JSON"},
        {0},
    };
    static const char usage[] =
        "token create [options] | token list | token revoke ID     (create prints the token, "
        "alone)";
    struct options_words words;
    struct error err;
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 2, &words, &err))
        return cli_usage(usage, rows, &err);
    const char *verb = words.word[0];
    if (words.count == 1 && strcmp(verb, "create") == 0)
        return create(&options);
    if (words.count == 1 && strcmp(verb, "list") == 0)
        return list(&options);
    if (words.count == 2 && strcmp(verb, "revoke") == 0) {
        json_decref(
            change_send(options.folder, "DELETE", "tokens", words.word[1], NULL, &status));
        return status;
    }
    fail(&err, INVALID,
         "there is no 'token %.40s' with %d words more; there are: create, list, "
         "revoke ID",
         verb, words.count - 1);
    return cli_usage(usage, rows, &err);
}
