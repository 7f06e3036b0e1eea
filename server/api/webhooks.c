/* webhooks.c - who is told of a project's jobs, and the log of what they were told. */

#include <inttypes.h>
#include <sodium.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "db/deliveries.h"
#include "db/webhooks.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"
#include "server/api/api.h"
#include "server/body.h"
#include "server/condition.h"
#include "server/delivery.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/webhooks.h"

#define SECRET_BYTES 32
#define SECRET_PREFIX "whsec_"
#define PAGE_ITEMS 50

static json_t *states_json(int states)
{
    json_t *list = json_array();
    for (int state = 0; state < JOB_STATES_COUNT; state++)
        if (states >> state & 1)
            json_array_append_new(list, json_string(db_job_state_name((enum job_state)state)));
    return list;
}

static json_t *webhook_json(const struct db_webhook *webhook)
{
    return json_pack("{s:I, s:s, s:s, s:o, s:b, s:s, s:o, s:I}", "id", (json_int_t)webhook->id,
                     "project", webhook->project, "url", webhook->url, "states",
                     states_json(webhook->states), "disabled", (int)webhook->disabled, "user",
                     webhook->user, "created_at", job_time(webhook->created_us), "waiting",
                     (json_int_t)webhook->waiting);
}

static bool reply_webhook(struct request *req, const struct db_webhook *webhook,
                          struct error *err)
{
    static const char *const fields[] = {"project", "url", "states", "disabled", NULL};
    return condition_reply(req, webhook_json(webhook), fields, err);
}

static json_t *delivery_json(const struct db_delivery *row)
{
    const char *state = row->next_us ? "waiting" : *row->error ? "failed" : "delivered";
    json_t *json = json_pack(
        "{s:I, s:o, s:s, s:s, s:o, s:i, s:o, s:o, s:o, s:o}", "id", (json_int_t)row->id, "seq",
        row->seq ? json_integer(row->seq) : json_null(), "type",
        row->seq ? "job.state" : "test", "state", state, "created_at",
        job_time(row->created_us), "tries", row->tries, "next_at", job_time(row->next_us),
        "tried_at", job_time(row->tried_us), "status",
        row->status ? json_integer(row->status) : json_null(), "error", job_text(row->error));
    return json;
}

/* --- finding --- */

static bool read_id(const char *text, const char *what, int64_t *id, struct error *err)
{
    char *end;
    *id = strtoll(text, &end, 10);
    return (*text >= '1' && *text <= '9' && !*end && *id > 0) ||
           fail(err, NOT_FOUND, "there is no %s '%.40s'", what, text);
}

/* The webhook that the path names, of a project that the sender may manage. */
static bool find(struct request *req, struct db_webhook *webhook, struct error *err)
{
    enum user_role role;
    int64_t id;
    if (!read_id(req->params[0], "webhook", &id, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_webhooks_find(conn, id, req->arena, webhook, err);
    db_read_done(req->services->db, conn);
    if (!ok || !auth_role(req->services->auth, &req->user, webhook->project, &role, err))
        return false;
    if (role == ROLE_NONE) /* of a foreign project: as if it were not there */
        return fail(err, NOT_FOUND, "there is no webhook '%" PRId64 "'", id);
    return auth_project(req, webhook->project, err);
}

/* --- the body --- */

static bool read_states(const struct spec_object *object, int *states)
{
    const char *names[JOB_STATES_COUNT + 1] = {0};
    json_t *list = spec_read_value(object, "states");
    json_t *item;
    size_t i;
    if (!list)
        return true;
    for (int state = 0; state < JOB_STATES_COUNT; state++)
        names[state] = db_job_state_name((enum job_state)state);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return error_at(object->err, "/states", INVALID,
                        "states must be a list of at least one state");
    *states = 0;
    json_array_foreach(list, i, item)
    {
        const char *name = json_string_value(item);
        int state = name ? spec_read_find(names, name) : -1;
        if (state < 0) {
            char found[SPEC_FOUND_BYTES];
            return spec_read_suggest(
                object->err, spec_read_pointer(object, "states", (int)i), "state",
                name ? name : spec_read_found(item, found, sizeof(found)), names);
        }
        *states |= 1 << state;
    }
    return true;
}

static bool read_url(const struct request *req, const struct spec_object *object,
                     const char **url)
{
    return spec_read_text(object, "url", DB_WEBHOOK_URL_BYTES, url) &&
           (!*url ||
            delivery_check_url(*url, webhooks_anywhere(req->services->webhooks), object->err));
}

/* --- the webhooks --- */

/* A new secret: "whsec_" and 256 random bits. */
static const char *make_secret(struct arena *arena)
{
    uint8_t bytes[SECRET_BYTES];
    char
        text[sodium_base64_ENCODED_LEN(SECRET_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2base64(text, sizeof(text), bytes, sizeof(bytes),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return arena_printf(arena, SECRET_PREFIX "%s", text);
}

/*
 * POST /api/v1/webhooks {project, url, states}     201 with `secret`, which is shown this once
 *
 * It is told of each state in `states` (all without it) that a job of the project takes from
 * now on.
 */
static bool webhooks_create(struct request *req, struct error *err)
{
    static const char *const allowed[] = {"project", "url", "states", NULL};
    struct db_webhook webhook = {.states = DB_WEBHOOK_STATES_ALL};
    struct spec_object object;
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) &&
              spec_read_required(&object, "project", "the name of a project") &&
              spec_read_required(&object, "url", "an https:// URL") &&
              spec_read_name(&object, "project", &webhook.project) &&
              auth_project(req, webhook.project, err) && read_url(req, &object, &webhook.url) &&
              read_states(&object, &webhook.states);
    json_decref(body);
    const char *secret = make_secret(req->arena);
    if (!ok || !db_webhooks_add(req->services->db, &webhook, req->user.user_id, secret, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    ok = conn && db_webhooks_find(conn, webhook.id, req->arena, &webhook, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *json = webhook_json(&webhook);
    json_object_set_new(json, "secret", json_string(secret));
    reply_header(req, "Location",
                 arena_printf(req->arena, "/api/v1/webhooks/%" PRId64, webhook.id));
    return reply_json(req, 201, json, err);
}

/* GET /api/v1/webhooks: of the projects that the sender may manage. */
static bool webhooks_list(struct request *req, struct error *err)
{
    struct db_webhook *webhooks;
    int count = 0;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_webhooks_list(conn, req->arena, &webhooks, &count, err);
    db_read_done(req->services->db, conn);
    json_t *items = json_array();
    for (int i = 0; ok && i < count; i++) {
        enum user_role role;
        ok = auth_role(req->services->auth, &req->user, webhooks[i].project, &role, err);
        if (ok && role == ROLE_ADMIN)
            json_array_append_new(items, webhook_json(&webhooks[i]));
    }
    json_t *body = json_pack("{s:o}", "items", items);
    if (ok)
        return reply_json(req, 200, body, err);
    json_decref(body);
    return false;
}

static bool webhooks_show(struct request *req, struct error *err)
{
    struct db_webhook webhook;
    return find(req, &webhook, err) && reply_webhook(req, &webhook, err);
}

/* PATCH /api/v1/webhooks/{id} {url, states, disabled}: what is not said stays. */
static bool change(struct request *req, struct error *err)
{
    static const char *const allowed[] = {"url", "states", "disabled", NULL};
    struct db_webhook webhook;
    struct spec_object object;
    if (!find(req, &webhook, err))
        return false;
    json_t *body = body_object(req, &object, err);
    bool ok = body && spec_read_only(&object, allowed) &&
              read_url(req, &object, &webhook.url) && read_states(&object, &webhook.states) &&
              spec_read_bool(&object, "disabled", &webhook.disabled);
    json_decref(body);
    if (!ok || !db_webhooks_change(req->services->db, &webhook, err))
        return false;
    webhooks_wake(req->services->webhooks);
    return reply_webhook(req, &webhook, err);
}

static bool webhooks_change(struct request *req, struct error *err)
{
    return condition_change(req, webhooks_show, change, err);
}

static bool webhook_remove(struct request *req, struct error *err)
{
    struct db_webhook webhook;
    return find(req, &webhook, err) && db_webhooks_remove(req->services->db, webhook.id, err) &&
           reply_bytes(req, 204, NULL, "", 0);
}

static bool webhooks_remove(struct request *req, struct error *err)
{
    return condition_change(req, webhooks_show, webhook_remove, err);
}

/* --- the log --- */

static bool reply_delivery(struct request *req, int64_t webhook_id, int64_t id,
                           struct error *err)
{
    struct db_delivery row;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_deliveries_find(conn, webhook_id, id, req->arena, &row, err);
    db_read_done(req->services->db, conn);
    return ok && reply_json(req, 202, delivery_json(&row), err);
}

/* POST /api/v1/webhooks/{id}:test: a delivery of type "test". */
static bool webhooks_test(struct request *req, struct error *err)
{
    struct db_webhook webhook;
    int64_t id;
    if (!find(req, &webhook, err) ||
        !db_deliveries_test(req->services->db, webhook.id, &id, err))
        return false;
    webhooks_wake(req->services->webhooks);
    return reply_delivery(req, webhook.id, id, err);
}

/* GET /api/v1/webhooks/{id}/deliveries: newest first. */
static bool deliveries_list(struct request *req, struct error *err)
{
    struct db_webhook webhook;
    struct db_delivery *rows;
    int64_t limit, before;
    int count = 0;
    if (!find(req, &webhook, err) ||
        !request_query_int(req, "limit", 1, LIMIT_PAGE_ITEMS, PAGE_ITEMS, &limit, err) ||
        !request_query_int(req, "cursor", 1, INT64_MAX, 0, &before, err))
        return false;
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_deliveries_list(conn, webhook.id, before, (int)limit + 1, req->arena,
                                         &rows, &count, err);
    db_read_done(req->services->db, conn);
    if (!ok)
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count && i < limit; i++)
        json_array_append_new(items, delivery_json(&rows[i]));
    json_t *next = count > limit ? json_sprintf("%" PRId64, rows[limit - 1].id) : json_null();
    return reply_json(req, 200, json_pack("{s:o, s:o}", "items", items, "next_cursor", next),
                      err);
}

/* POST /api/v1/webhooks/{id}/deliveries/{delivery}:redeliver */
static bool deliveries_again(struct request *req, struct error *err)
{
    struct db_webhook webhook;
    int64_t id;
    if (!find(req, &webhook, err) || !read_id(req->params[1], "delivery", &id, err) ||
        !db_deliveries_again(req->services->db, webhook.id, id, err))
        return false;
    webhooks_wake(req->services->webhooks);
    return reply_delivery(req, webhook.id, id, err);
}

const struct route webhooks_routes[] = {
    {"POST", "/api/v1/webhooks", AUTH_IN_PROJECT(ROLE_ADMIN), webhooks_create,
     "Have a URL told of the states of a project's jobs", NULL, "WebhookRequest", 201,
     "Webhook"},
    {"GET", "/api/v1/webhooks", AUTH_IN_PROJECT(ROLE_ADMIN), webhooks_list,
     "Webhooks of the projects that I manage", NULL, NULL, 200, "WebhookList"},
    {"GET", "/api/v1/webhooks/{id}", AUTH_IN_PROJECT(ROLE_ADMIN), webhooks_show, "One webhook",
     NULL, NULL, 200, "Webhook"},
    {"PATCH", "/api/v1/webhooks/{id}", AUTH_IN_PROJECT(ROLE_ADMIN), webhooks_change,
     "Change a webhook", "If-Match:header", "WebhookChange", 200, "Webhook"},
    {"DELETE", "/api/v1/webhooks/{id}", AUTH_IN_PROJECT(ROLE_ADMIN), webhooks_remove,
     "Remove a webhook", "If-Match:header", NULL, 204, NULL},
    {"POST", "/api/v1/webhooks/{id}:test", AUTH_IN_PROJECT(ROLE_ADMIN), webhooks_test,
     "Send a webhook something to try it", NULL, NULL, 202, "Delivery"},
    {"GET", "/api/v1/webhooks/{id}/deliveries", AUTH_IN_PROJECT(ROLE_ADMIN), deliveries_list,
     "What a webhook was told, and what came of it", "limit:integer cursor:integer", NULL, 200,
     "DeliveryList"},
    {"POST", "/api/v1/webhooks/{id}/deliveries/{delivery}:redeliver",
     AUTH_IN_PROJECT(ROLE_ADMIN), deliveries_again, "Send a delivery once more", NULL, NULL,
     202, "Delivery"},
    {0},
};
