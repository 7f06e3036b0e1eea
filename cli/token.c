/* token.c - trainyard token create: through the server of a folder, or in the folder itself
 * when none runs. */

#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "db/tokens.h"

struct token_options {
    const char *folder;
    const char *name;
    int64_t days;
    bool join;
};

static bool ask_server(struct client *client, const struct token_options *options,
                       struct error *err)
{
    json_t *request =
        json_pack("{s:s, s:s, s:I}", "name", options->name, "kind",
                  options->join ? "join" : "api", "days", (json_int_t)options->days);
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
    struct db *db = db_open(options->folder, err);
    if (!db)
        return false;
    char token[DB_TOKEN_BYTES];
    int64_t expires_us =
        options->days ? (int64_t)clock_wall_us() + options->days * 86400 * 1000000 : 0;
    bool ok = db_tokens_add(db, DB_USER_ADMIN, options->join ? TOKEN_JOIN : TOKEN_API,
                            options->name, expires_us, token, err);
    db_close(db);
    if (ok)
        puts(token);
    return ok;
}

int token_main(int argc, char **argv)
{
    struct token_options options = {.name = "command line"};
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &options.folder,
         "folder of a server on this machine (else the server signed in to)"},
        {"name", OPTION_TEXT, &options.name, "what to call it"},
        {"days", OPTION_NUMBER, &options.days, "valid for this long (for ever)"},
        {"join", OPTION_FLAG, &options.join, "for `trainyard agent` in place of the API"},
        {0},
    };
    static const char usage[] =
        "token create [--dir DIR] [options]     (prints the token, alone)";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    if (strcmp(words.word[0], "create") != 0) {
        fail(&err, INVALID, "there is no 'token %.40s'; there is 'token create'",
             words.word[0]);
        return cli_usage(usage, rows, &err);
    }
    struct client *client = client_open(options.folder, &err);
    bool ok = client && ask_server(client, &options, &err);
    client_close(client);
    if (!ok && err.code == UNAVAILABLE && options.folder)
        ok = make_here(&options, &err);
    return ok ? CLI_OK : cli_fail(&err);
}
