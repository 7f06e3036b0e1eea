/* user.c - trainyard user: who may sign in, and as what. */

#include <sodium.h>

#include "base/alloc.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/prompt.h"
#include "cli/table.h"
#include "server/passwords.h"

struct user_options {
    const char *folder;
    const char *role;
    bool password;
    bool disable;
    bool enable;
    bool json;
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "-";
}

static int list(const struct user_options *options)
{
    static const char *const head[] = {"USER", "ROLE", "PASSWORD", "STATE", "CREATED"};
    int status;
    json_t *answer = change_send(options->folder, "GET", "users", NULL, NULL, &status);
    if (!answer || (options->json && change_print(answer)))
        return status;
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *user;
    json_array_foreach(json_object_get(answer, "items"), i, user)
    {
        bool password = json_is_true(json_object_get(user, "password"));
        bool disabled = json_is_true(json_object_get(user, "disabled"));
        table_cell(table, "%s", text_of(user, "name"));
        table_cell(table, "%s", text_of(user, "role"));
        table_cell(table, "%s", password ? "yes" : "no");
        table_cell(table, "%s", disabled ? "disabled" : "-");
        table_cell(table, "%s", text_of(user, "created_at"));
    }
    table_print(table);
    json_decref(answer);
    return CLI_OK;
}

/* What is to be sent, owned; NULL with the error printed and `*status` set. */
static json_t *read_change(const struct user_options *options, int *status)
{
    json_t *body = json_object();
    struct error err;
    char password[PASSWORD_BYTES_MAX + 3];
    if (options->role)
        json_object_set_new(body, "role", json_string(options->role));
    if (options->disable || options->enable)
        json_object_set_new(body, "disabled", json_boolean(options->disable));
    if (!options->password)
        return body;
    size_t size = prompt_read("password", password, PASSWORD_BYTES_MAX + 1);
    json_t *text = memchr(password, '\0', size) ? NULL : json_stringn(password, size);
    sodium_memzero(password, sizeof(password));
    if (text) {
        json_object_set_new(body, "password", text);
        return body;
    }
    json_decref(body);
    fail(&err, INVALID, "the password is no UTF-8 text, or has a NUL");
    *status = cli_fail(&err);
    return NULL;
}

static int add(const struct user_options *options, const char *name)
{
    int status;
    json_t *body = read_change(options, &status);
    if (!body)
        return status;
    json_object_set_new(body, "name", json_string(name));
    if (!options->role)
        json_object_set_new(body, "role", json_string("member"));
    json_decref(change_send(options->folder, "POST", "users", NULL, body, &status));
    return status;
}

static int set(const struct user_options *options, const char *name)
{
    int status;
    json_t *body = read_change(options, &status);
    if (body)
        json_decref(change_send(options->folder, "PATCH", "users", name, body, &status));
    return status;
}

static int print_link(const struct user_options *options, const char *name)
{
    int status;
    json_t *answer = change_verb(options->folder, "users", name, "link", NULL, &status);
    if (answer)
        puts(text_of(answer, "url"));
    json_decref(answer);
    return status;
}

int user_main(int argc, char **argv)
{
    static const char usage[] =
        "user list | user add NAME [options] | user set NAME [options] | user link NAME     "
        "(link prints a one-time login link)";
    struct user_options options = {0};
    const struct option_row rows[] = {
        {"role", OPTION_TEXT, &options.role,
         "none, viewer, member (of a new one) or admin, in every project"},
        {"password", OPTION_FLAG, &options.password,
         "ask for one; or it comes by standard input"},
        {"disable", OPTION_FLAG, &options.disable, "he gets in no more"},
        {"enable", OPTION_FLAG, &options.enable, "he may sign in again"},
        {"dir", OPTION_TEXT, &options.folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &options.json, "list: as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 2, &words, &err))
        return cli_usage(usage, rows, &err);
    const char *verb = words.word[0];
    if (words.count == 1 && strcmp(verb, "list") == 0)
        return list(&options);
    if (words.count == 2 && strcmp(verb, "add") == 0)
        return add(&options, words.word[1]);
    if (words.count == 2 && strcmp(verb, "set") == 0)
        return set(&options, words.word[1]);
    if (words.count == 2 && strcmp(verb, "link") == 0)
        return print_link(&options, words.word[1]);
    fail(&err, INVALID,
         "'user %.40s' with %d names; there are: list, add NAME, set NAME, link "
         "NAME",
         verb, words.count - 1);
    return cli_usage(usage, rows, &err);
}
