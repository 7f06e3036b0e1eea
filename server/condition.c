/* condition.c - changes on condition that what they change is as it was seen. */

#include "server/condition.h"

#include <pthread.h>
#include <sodium.h>

#include "base/arena.h"
#include "base/error.h"
#include "server/reply.h"
#include "server/request.h"

#define TAG_BYTES 12

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; /* held from the look to the end */

static const char *tag_of(struct arena *arena, const json_t *json, const char *const fields[])
{
    unsigned char hash[crypto_generichash_BYTES];
    char hex[2 * TAG_BYTES + 1];
    json_t *seen = json_object();
    for (int i = 0; fields[i]; i++)
        json_object_set(seen, fields[i], json_object_get(json, fields[i]));
    char *text = json_dumps(seen, JSON_COMPACT | JSON_SORT_KEYS);
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)text, strlen(text), NULL, 0);
    free(text);
    json_decref(seen);
    sodium_bin2hex(hex, sizeof(hex), hash, TAG_BYTES);
    return arena_printf(arena, "\"%s\"", hex);
}

bool condition_reply(struct request *req, json_t *json, const char *const fields[],
                     struct error *err)
{
    if (json)
        reply_header(req, "ETag", tag_of(req->arena, json, fields));
    return reply_json(req, 200, json, err);
}

static bool is_as_seen(struct request *req, route_handler *show, const char *wanted,
                       struct error *err)
{
    struct request look = *req;
    const char *tag = NULL;
    look.method = "GET";
    look.reply = (struct reply){0};
    if (show(&look, err)) {
        for (int i = 0; i < look.reply.headers_count; i++)
            if (strcmp(look.reply.headers[i].name, "ETag") == 0)
                tag = look.reply.headers[i].value;
    } else if (err->code != NOT_FOUND) {
        return false;
    }
    if (look.reply.owned)
        free((void *)look.reply.bytes);
    if (tag && (strcmp(wanted, "*") == 0 || strcmp(wanted, tag) == 0))
        return true;
    req->reply.status = 412;
    return fail(err, PRECONDITION,
                tag ? "it is no longer as you saw it: its ETag is %s now, If-Match says %.60s"
                    : "there is none now: %s, If-Match says %.60s",
                tag ? tag : req->url.path, wanted);
}

bool condition_change(struct request *req, route_handler *show, route_handler *change,
                      struct error *err)
{
    const char *wanted = request_header(req, "If-Match");
    pthread_mutex_lock(&changing);
    bool ok = (!wanted || is_as_seen(req, show, wanted, err)) && change(req, err);
    pthread_mutex_unlock(&changing);
    return ok;
}
