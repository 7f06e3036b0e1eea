/* audit.c - adding to the audit, and reading it page by page. */

#include "db/audit.h"

#include <sodium.h>

#include "base/arena.h"
#include "db/internal.h"

enum { HASH_BYTES = crypto_hash_sha256_BYTES };

static void hash_number(crypto_hash_sha256_state *state, int64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)number >> (56 - 8 * i));
    crypto_hash_sha256_update(state, bytes, sizeof(bytes));
}

static void hash_text(crypto_hash_sha256_state *state, const char *text)
{
    size_t size = strlen(text);
    hash_number(state, (int64_t)size);
    crypto_hash_sha256_update(state, (const uint8_t *)text, size);
}

/* Of the entry, on the hash before. */
static void hash_entry(const struct db_audit *entry, int64_t seq, uint8_t hash[HASH_BYTES])
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, hash, HASH_BYTES);
    hash_number(&state, seq);
    hash_number(&state, entry->wall_us);
    hash_text(&state, entry->user);
    hash_text(&state, entry->way);
    hash_text(&state, entry->method);
    hash_text(&state, entry->path);
    hash_number(&state, entry->status);
    hash_text(&state, entry->request);
    crypto_hash_sha256_final(&state, hash);
}

/* The hash in a column; zeros where there is none. */
static void read_hash(sqlite3_stmt *stmt, int column, uint8_t hash[HASH_BYTES])
{
    memset(hash, 0, HASH_BYTES);
    if (sqlite3_column_bytes(stmt, column) == HASH_BYTES)
        memcpy(hash, sqlite3_column_blob(stmt, column), HASH_BYTES);
}

static bool last_entry(struct db_conn *conn, int64_t *seq, uint8_t hash[HASH_BYTES],
                       struct error *err)
{
    *seq = 0;
    memset(hash, 0, HASH_BYTES);
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1", "");
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row > 0) {
        *seq = sqlite3_column_int64(stmt, 0);
        read_hash(stmt, 1, hash);
        db_query_end(stmt);
    }
    return row >= 0;
}

static bool add_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_audit *entry = arg;
    uint8_t hash[HASH_BYTES];
    int64_t seq;
    if (!last_entry(conn, &seq, hash, err))
        return false;
    seq++;
    hash_entry(entry, seq, hash);
    return db_run(conn, err, "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                  "iittttitb", seq, entry->wall_us, entry->user, entry->way, entry->method,
                  entry->path, (int64_t)entry->status, entry->request, hash, sizeof(hash));
}

void db_audit_begin(const struct db_audit *entry)
{
    db_along(add_run, (void *)entry);
}

bool db_audit_end(struct db *db, const struct db_audit *entry, struct error *err)
{
    return db_along_end() || db_write(db, DB_CONTROL, add_run, (void *)entry, err);
}

void db_audit_drop(void)
{
    (void)db_along_end();
}

static struct db_audit entry_read(sqlite3_stmt *stmt, struct arena *arena)
{
    return (struct db_audit){
        .seq = sqlite3_column_int64(stmt, 0),
        .wall_us = sqlite3_column_int64(stmt, 1),
        .user = db_column_text(stmt, 2, arena),
        .way = db_column_text(stmt, 3, arena),
        .method = db_column_text(stmt, 4, arena),
        .path = db_column_text(stmt, 5, arena),
        .status = sqlite3_column_int(stmt, 6),
        .request = db_column_text(stmt, 7, arena),
    };
}

bool db_audit_verify(struct db_conn *conn, int64_t *bad, struct error *err)
{
    uint8_t hash[HASH_BYTES] = {0}, written[HASH_BYTES];
    int64_t next = 1;
    bool chained = false;
    *bad = 0;
    sqlite3_stmt *stmt = db_query(
        conn, err,
        "SELECT seq, wall_us, user, way, method, path, status, request, hash FROM audit"
        " ORDER BY seq",
        "");
    int row = stmt ? 0 : -1;
    while (stmt && !*bad && (row = db_row(conn, stmt, err)) > 0) {
        struct arena *arena = arena_new();
        struct db_audit entry = entry_read(stmt, arena);
        bool has_hash = sqlite3_column_type(stmt, 8) != SQLITE_NULL;
        read_hash(stmt, 8, written);
        if (has_hash)
            hash_entry(&entry, entry.seq, hash);
        if (entry.seq != next)
            *bad = next > 1 ? next - 1 : entry.seq;
        else if (has_hash ? memcmp(hash, written, sizeof(hash)) != 0 : chained)
            *bad = entry.seq;
        chained |= has_hash;
        next = entry.seq + 1;
        arena_free(arena);
    }
    if (*bad)
        db_query_end(stmt);
    return row >= 0;
}

bool db_audit_list(struct db_conn *conn, int64_t before, const char *user, int limit,
                   struct arena *arena, struct db_audit **entries, int *entries_count,
                   int64_t *next, struct error *err)
{
    assert(limit > 0);
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT seq, wall_us, user, way, method, path, status, request,"
                 " lower(hex(coalesce(hash, ''))) FROM audit WHERE seq < ?1 AND (?2 IS NULL OR "
                 "user = ?2) ORDER BY seq DESC LIMIT ?3",
                 "iti", before ? before : INT64_MAX, user, (int64_t)limit + 1);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_audit)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0) {
        struct db_audit *entry = db_rows_add(&rows);
        *entry = entry_read(stmt, arena);
        entry->hash = db_column_text(stmt, 8, arena);
    }
    *entries = db_rows_end(&rows, arena, entries_count);
    *next = 0;
    if (*entries_count > limit) {
        /* The one too many says that there is another page. */
        *entries_count = limit;
        *next = (*entries)[limit - 1].seq;
    }
    return row == 0;
}
