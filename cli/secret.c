/* secret.c - trainyard secret: what jobs are told and nobody else sees. */

#include "base/alloc.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/prompt.h"
#include "cli/table.h"
#include "db/secrets.h"

/* Owned; NULL on failure. */
static char *read_value(const char *name, size_t *size, struct error *err)
{
    char *value = alloc_bytes(DB_SECRET_BYTES_MAX + 3);
    char *label = alloc_printf("value of %s", name);
    *size = prompt_read(label, value, DB_SECRET_BYTES_MAX + 1); /* with its newline */
    free(label);
    if (*size >= DB_SECRET_BYTES_MIN && *size <= DB_SECRET_BYTES_MAX)
        return value;
    fail(err, INVALID, "the value of %.128s has %s%zu bytes, allowed: %d to %d", name,
         *size > DB_SECRET_BYTES_MAX ? "at least " : "", *size, DB_SECRET_BYTES_MIN,
         DB_SECRET_BYTES_MAX);
    free(value);
    return NULL;
}

static int set(const char *folder, const char *name)
{
    struct error err;
    size_t size;
    int status;
    char *value = read_value(name, &size, &err);
    if (!value)
        return cli_fail(&err);
    json_t *text = memchr(value, '\0', size) ? NULL : json_stringn(value, size);
    explicit_bzero(value, size);
    free(value);
    if (!text) {
        fail(&err, INVALID,
             "the value of %.128s is no UTF-8 text, or has a NUL; encode it, as with base64",
             name);
        return cli_fail(&err);
    }
    json_decref(change_send(folder, "PUT", "secrets", name, json_pack("{s:o}", "value", text),
                            &status));
    return status;
}

static int list(const char *folder, bool json)
{
    static const char *const head[] = {"SECRET", "SET BY", "CREATED", "CHANGED"};
    int status;
    json_t *answer = change_send(folder, "GET", "secrets", NULL, NULL, &status);
    if (!answer || (json && change_print(answer)))
        return status;
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *secret;
    json_array_foreach(json_object_get(answer, "items"), i, secret)
    {
        table_cell(table, "%s", json_string_value(json_object_get(secret, "name")));
        table_cell(table, "%s", json_string_value(json_object_get(secret, "user")));
        table_cell(table, "%s", json_string_value(json_object_get(secret, "created_at")));
        table_cell(table, "%s", json_string_value(json_object_get(secret, "changed_at")));
    }
    table_print(table);
    json_decref(answer);
    return CLI_OK;
}

int secret_main(int argc, char **argv)
{
    static const char usage[] =
        "secret set NAME < FILE | secret list | secret remove NAME     (a job names it in "
        "\"secrets\")";
    const char *folder = NULL;
    bool json = false;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &json, "list: as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 2, &words, &err))
        return cli_usage(usage, rows, &err);
    const char *verb = words.word[0];
    if (words.count == 2 && strcmp(verb, "set") == 0)
        return set(folder, words.word[1]);
    if (words.count == 1 && strcmp(verb, "list") == 0)
        return list(folder, json);
    if (words.count == 2 && strcmp(verb, "remove") == 0) {
        json_decref(change_send(folder, "DELETE", "secrets", words.word[1], NULL, &status));
        return status;
    }
    fail(&err, INVALID, "'secret %.40s' with %d names; there are: set NAME, list, remove NAME",
         verb, words.count - 1);
    return cli_usage(usage, rows, &err);
}
