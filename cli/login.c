/* login.c - trainyard login: keeps a token for a server, or prints a link for the browser. */

#include <sodium.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/prompt.h"
#include "server/passwords.h"

/* On the server's machine: a new one-time link. */
static bool print_link(const char *folder, struct error *err)
{
    struct client *client = client_open(folder, err);
    if (!client)
        return false;
    json_t *answer = client_json(client, "POST", "/api/v1/login-links", "{}", NULL, err);
    client_close(client);
    if (!answer)
        return false;
    puts(json_string_value(json_object_get(answer, "url")));
    json_decref(answer);
    return true;
}

/* The token from the environment, or a line of stdin; never an argument, which others could
 * see. */
static char *read_token(void)
{
    const char *given = getenv("TRAINYARD_TOKEN");
    char line[200] = "";
    if (given && *given)
        return alloc_text(given);
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "Token (trainyard token create on the server's machine prints one): ");
    if (!fgets(line, sizeof(line), stdin))
        line[0] = 0;
    line[strcspn(line, "\r\n")] = 0;
    return alloc_text(line);
}

/* A token of one's own, by name and password; owned, NULL on failure. */
static char *ask_token(const char *url, const char *user, struct error *err)
{
    char password[PASSWORD_BYTES_MAX + 3];
    size_t size = prompt_read("password", password, PASSWORD_BYTES_MAX + 1);
    json_t *request =
        json_pack("{s:s, s:s%}", "user", user, "password", password, (size_t)size);
    sodium_memzero(password, sizeof(password));
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!body)
        return fail_null(err, INVALID, "the user or the password is no UTF-8 text");
    struct client *client = client_open_url(url, NULL, err);
    json_t *answer =
        client ? client_json(client, "POST", "/api/v1/session/token", body, NULL, err) : NULL;
    const char *token = json_string_value(json_object_get(answer, "token"));
    char *own = token ? alloc_text(token) : NULL;
    sodium_memzero(body, strlen(body));
    free(body);
    json_decref(answer);
    client_close(client);
    return own;
}

static bool sign_in(const char *url, const char *user, struct error *err)
{
    char *token = user ? ask_token(url, user, err) : read_token();
    if (!token)
        return false;
    struct client *client = client_open_url(url, token, err);
    json_t *session =
        client ? client_json(client, "GET", "/api/v1/session", NULL, NULL, err) : NULL;
    bool ok = session && client_keep(url, token, err);
    if (ok)
        printf("signed in to %s as %s\n", url,
               json_string_value(json_object_get(session, "user")));
    json_decref(session);
    client_close(client);
    free(token);
    return ok;
}

int login_main(int argc, char **argv)
{
    const char *folder = NULL, *user = NULL;
    const struct option_row rows[] = {
        {"user", OPTION_TEXT, &user, "sign in by name and password, which is asked for"},
        {"dir", OPTION_TEXT, &folder,
         "print a one-time link to the page of this folder's server"},
        {0},
    };
    static const char usage[] = "login URL [--user NAME] | login --dir DIR     (the token is "
                                "asked for, or in TRAINYARD_TOKEN)";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 1, &words, &err) ||
        ((folder != NULL) == (words.count == 1) &&
         !fail(&err, INVALID, "give a URL, or --dir DIR")))
        return cli_usage(usage, rows, &err);
    bool ok = folder ? print_link(folder, &err) : sign_in(words.word[0], user, &err);
    return ok ? CLI_OK : cli_fail(&err);
}
