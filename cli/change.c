/* change.c - one request of a verb, and its answer. */

#include "cli/change.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "server/url.h"

static json_t *send(const char *folder, const char *method, const char *path, json_t *body,
                    int *status)
{
    struct error err;
    struct client *client = client_open(folder, &err);
    json_t *answer = NULL;
    if (client) {
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        answer = client_json(client, method, path, text, NULL, &err);
        free(text);
    }
    client_close(client);
    json_decref(body);
    *status = answer ? CLI_OK : cli_fail(&err);
    return answer;
}

json_t *change_send(const char *folder, const char *method, const char *collection,
                    const char *name, json_t *body, int *status)
{
    struct str path = {0};
    str_printf(&path, "/api/v1/%s", collection);
    if (name) {
        str_add_char(&path, '/');
        url_encode(&path, name);
    }
    json_t *answer = send(folder, method, str_text(&path), body, status);
    str_release(&path);
    return answer;
}

json_t *change_verb(const char *folder, const char *collection, const char *name,
                    const char *verb, json_t *body, int *status)
{
    struct str path = {0};
    str_printf(&path, "/api/v1/%s/", collection);
    url_encode(&path, name);
    str_printf(&path, ":%s", verb);
    json_t *answer = send(folder, "POST", str_text(&path), body, status);
    str_release(&path);
    return answer;
}

bool change_print(json_t *answer)
{
    char *text = json_dumps(answer, JSON_INDENT(2));
    puts(text);
    free(text);
    json_decref(answer);
    return true;
}

json_t *change_list(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t size = strcspn(text, ",");
        json_array_append_new(list, json_stringn(text, size));
        text += size + (text[size] == ',');
    }
    return list;
}

void change_add(json_t *object, const char *name, int64_t value)
{
    if (value != CHANGE_NOT_GIVEN)
        json_object_set_new(object, name, value < 0 ? json_null() : json_integer(value));
}
