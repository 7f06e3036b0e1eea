/* tokens.c - the secrets by which users and agents are known. */

#include <sodium.h>

#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/tokens.h"

static_assert(crypto_hash_sha256_BYTES == 32, "the width of tokens.hash");

static void token_hash(const char *token, uint8_t hash[crypto_hash_sha256_BYTES])
{
    crypto_hash_sha256(hash, (const uint8_t *)token, strlen(token));
}

static void token_make(char token[DB_TOKEN_BYTES])
{
    uint8_t secret[32];
    randombytes_buf(secret, sizeof(secret));
    memcpy(token, "ty_", 3);
    sodium_bin2base64(token + 3, DB_TOKEN_BYTES - 3, secret, sizeof(secret),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof(secret));
}

struct token_add {
    const struct db_token_new *made;
    const char *token;
};

static bool token_add_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct token_add *add = arg;
    const struct db_token_new *made = add->made;
    uint8_t hash[crypto_hash_sha256_BYTES];
    token_hash(add->token, hash);
    return db_run(
        conn, err,
        "INSERT INTO tokens (hash, kind, user_id, name, created_us, expires_us, used_us,"
        " revoked_us, role, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8)",
        "biitiiit", hash, sizeof(hash), (int64_t)made->kind, made->user_id, made->name,
        (int64_t)clock_wall_us(), made->expires_us, (int64_t)made->role,
        made->project ? made->project : "");
}

bool db_tokens_add(struct db *db, const struct db_token_new *made, char token[DB_TOKEN_BYTES],
                   struct error *err)
{
    token_make(token);
    struct token_add add = {made, token};
    return db_write(db, DB_CONTROL, token_add_run, &add, err);
}

#define TOKEN_COLUMNS                                                                          \
    "t.id, kind, user_id, u.name, iif(u.projects_only, -1, min(u.role, t.role)), t.name,"      \
    " t.created_us, expires_us, used_us, t.role, u.rights,"                                    \
    " (SELECT coalesce(max(m.role), -1) FROM members m WHERE m.user_id = u.id"                 \
    "  AND (t.project = '' OR m.project = t.project)), t.project"
#define TOKEN_TABLES " FROM tokens t JOIN users u ON u.id = t.user_id "

static void token_read(sqlite3_stmt *stmt, struct arena *arena, struct db_token *token)
{
    *token = (struct db_token){
        .id = sqlite3_column_int64(stmt, 0),
        .kind = (enum token_kind)sqlite3_column_int(stmt, 1),
        .user_id = sqlite3_column_int64(stmt, 2),
        .user = db_column_text(stmt, 3, arena),
        .role = (enum user_role)sqlite3_column_int(stmt, 4),
        .name = db_column_text(stmt, 5, arena),
        .created_us = sqlite3_column_int64(stmt, 6),
        .expires_us = sqlite3_column_int64(stmt, 7),
        .used_us = sqlite3_column_int64(stmt, 8),
        .most = (enum user_role)sqlite3_column_int(stmt, 9),
        .rights = sqlite3_column_int64(stmt, 10),
        .project = db_column_text(stmt, 12, arena),
    };
    enum user_role best = (enum user_role)sqlite3_column_int(stmt, 11);
    best = best < token->most ? best : token->most;
    token->best = best > token->role ? best : token->role;
    if (*token->project)
        token->role = ROLE_NONE;
}

bool db_tokens_find(struct db_conn *conn, const char *token, enum token_kind kind,
                    int64_t now_us, struct arena *arena, struct db_token *found,
                    struct error *err)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    token_hash(token, hash);
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT " TOKEN_COLUMNS TOKEN_TABLES "WHERE hash = ?1 AND kind = ?2"
                 " AND revoked_us = 0 AND (expires_us = 0 OR expires_us > ?3)"
                 " AND (kind = 3 OR NOT u.disabled)",
                 "bii", hash, sizeof(hash), (int64_t)kind, now_us);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, UNAUTHENTICATED, "this token is not valid, or no longer");
    token_read(stmt, arena, found);
    db_query_end(stmt);
    return true;
}

struct exchange {
    const char *login;
    const char *session;
    int64_t now_us;
    int64_t expires_us;
};

static bool exchange_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct exchange *exchange = arg;
    struct arena *arena = arena_new();
    struct db_token login;
    bool ok = db_tokens_find(conn, exchange->login, TOKEN_LOGIN, exchange->now_us, arena,
                             &login, err) &&
              db_run(conn, err, "UPDATE tokens SET used_us = ?2, revoked_us = ?2 WHERE id = ?1",
                     "ii", login.id, exchange->now_us);
    if (ok) {
        struct db_token_new made = {.user_id = login.user_id,
                                    .kind = TOKEN_SESSION,
                                    .role = ROLE_ADMIN,
                                    .name = login.name,
                                    .expires_us = exchange->expires_us};
        struct token_add add = {&made, exchange->session};
        ok = token_add_run(conn, &add, err);
    }
    arena_free(arena);
    return ok;
}

bool db_tokens_exchange(struct db *db, const char *login, int64_t now_us, int64_t expires_us,
                        char session[DB_TOKEN_BYTES], struct error *err)
{
    token_make(session);
    struct exchange exchange = {login, session, now_us, expires_us};
    return db_write(db, DB_CONTROL, exchange_run, &exchange, err);
}

bool db_tokens_list(struct db_conn *conn, int64_t user_id, struct arena *arena,
                    struct db_token **tokens, int *tokens_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " TOKEN_COLUMNS TOKEN_TABLES
                                  "WHERE user_id = ?1 AND revoked_us = 0 ORDER BY t.id",
                                  "i", user_id);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_token)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        token_read(stmt, arena, db_rows_add(&rows));
    *tokens = db_rows_end(&rows, arena, tokens_count);
    return row == 0;
}

struct revoke {
    int64_t id;
    int64_t user_id;
};

static bool revoke_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct revoke *revoke = arg;
    if (!db_run(conn, err,
                "UPDATE tokens SET revoked_us = ?2 WHERE id = ?1 AND revoked_us = 0"
                " AND (?3 = 0 OR user_id = ?3)",
                "iii", revoke->id, (int64_t)clock_wall_us(), revoke->user_id))
        return false;
    return db_changes_count(conn) == 1 ||
           fail(err, NOT_FOUND, "there is no token %lld", (long long)revoke->id);
}

bool db_tokens_revoke(struct db *db, int64_t id, int64_t user_id, struct error *err)
{
    struct revoke revoke = {id, user_id};
    return db_write(db, DB_CONTROL, revoke_run, &revoke, err);
}

struct use {
    int64_t id;
    int64_t now_us;
};

static bool use_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct use *use = arg;
    return db_run(conn, err, "UPDATE tokens SET used_us = max(used_us, ?2) WHERE id = ?1", "ii",
                  use->id, use->now_us);
}

bool db_tokens_use(struct db *db, int64_t id, int64_t now_us, struct error *err)
{
    struct use use = {id, now_us};
    return db_write(db, DB_CONTROL, use_run, &use, err);
}

bool db_tokens_revoked(struct db_conn *conn, int64_t id, bool *revoked, struct error *err)
{
    int64_t found = 0;
    bool ok = db_number(conn, err, &found, 0,
                        "SELECT 1 FROM tokens WHERE id = ?1 AND revoked_us > 0", "i", id);
    *revoked = found;
    return ok;
}

bool db_tokens_valid(struct db_conn *conn, int64_t id, int64_t rights, int64_t now_us,
                     bool *valid, struct error *err)
{
    int64_t found = 0;
    if (!db_number(conn, err, &found, 0,
                   "SELECT 1 FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.id = ?1"
                   " AND revoked_us = 0 AND (expires_us = 0 OR expires_us > ?2)"
                   " AND u.rights = ?3",
                   "iii", id, now_us, rights))
        return false;
    *valid = found;
    return true;
}
