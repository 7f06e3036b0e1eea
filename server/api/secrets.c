/* secrets.c - values that jobs are told: set, listed by name, removed, never shown. */

#include <sodium.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "db/secrets.h"
#include "runtime/spec/spec.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

static json_t *secret_json(const struct db_secret *secret)
{
    return json_pack("{s:s, s:s, s:o, s:o}", "name", secret->name, "user", secret->user,
                     "created_at", job_time(secret->created_us), "changed_at",
                     job_time(secret->changed_us));
}

static bool read_all(struct request *req, struct db_secret **secrets, int *count,
                     struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    bool ok = db_secrets_list(conn, req->arena, secrets, count, err);
    db_read_done(req->services->db, conn);
    return ok;
}

/* GET /api/v1/secrets: who set which when; their values are told to tasks alone. */
static bool secrets_list(struct request *req, struct error *err)
{
    struct db_secret *secrets;
    int count;
    if (!read_all(req, &secrets, &count, err))
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(items, secret_json(&secrets[i]));
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

/* The body's value, borrowed from `body`; NULL on failure.  What is wrong is told without it.
 */
static const char *read_value(json_t *body, struct error *err)
{
    const char *value = json_string_value(json_object_get(body, "value"));
    if (!value || json_object_size(body) != 1)
        return fail_null(err, INVALID,
                         "the body must be {\"value\": TEXT}, of %d to %d bytes of UTF-8 "
                         "without NUL",
                         DB_SECRET_BYTES_MIN, DB_SECRET_BYTES_MAX);
    return value;
}

/* PUT /api/v1/secrets/{name} {value}: made, or given another value, which tasks are told that
 * start from now on. */
static bool secrets_set(struct request *req, struct error *err)
{
    const char *name = req->params[0];
    struct db_secret *secrets;
    json_error_t where;
    int count;
    if (!spec_is_variable(name))
        return fail(err, INVALID,
                    "'%.100s' cannot name a secret: 1 to %d of A-Z a-z 0-9 _, no digit first, "
                    "not beginning with TRAINYARD_",
                    name, LIMIT_NAME_BYTES);
    json_t *body = json_loadb(req->body, req->body_size, JSON_REJECT_DUPLICATES, &where);
    const char *value = read_value(body, err);
    bool ok = value && db_secrets_set(req->services->db, name, value, req->user.user_id, err) &&
              read_all(req, &secrets, &count, err);
    if (value)
        sodium_memzero((char *)value, strlen(value));
    sodium_memzero((char *)req->body, req->body_size); /* ours alone, and done with */
    json_decref(body);
    for (int i = 0; ok && i < count; i++) {
        if (strcmp(secrets[i].name, name) == 0)
            return reply_json(req, 200, secret_json(&secrets[i]), err);
    }
    return ok && fail(err, ABORTED, "secret %s was removed meanwhile", name);
}

/* DELETE /api/v1/secrets/{name}: tasks that run keep it; those that start later fail. */
static bool secrets_remove(struct request *req, struct error *err)
{
    return db_secrets_remove(req->services->db, req->params[0], err) &&
           reply_bytes(req, 204, NULL, "", 0);
}

const struct route secrets_routes[] = {
    {"GET", "/api/v1/secrets", ROLE_MEMBER, secrets_list, "Secrets, without their values", NULL,
     NULL, 200, "SecretList"},
    {"PUT", "/api/v1/secrets/{name}", ROLE_MEMBER, secrets_set,
     "Make a secret, or give it another value", NULL, "SecretRequest", 200, "Secret"},
    {"DELETE", "/api/v1/secrets/{name}", ROLE_MEMBER, secrets_remove, "Remove a secret", NULL,
     NULL, 204, NULL},
    {0},
};
