/* secrets.c - sealing, storing and opening secrets. */

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/secrets.h"

#define KEY_BYTES crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES crypto_aead_xchacha20poly1305_ietf_ABYTES

/* --- the key --- */

/* The file in `fd` as a key. */
static bool key_take(int fd, const char *path, uint8_t key[KEY_BYTES], struct error *err)
{
    struct stat info;
    if (fstat(fd, &info))
        return error_errno(err, INTERNAL, "cannot read %s", path);
    if (info.st_mode & 077)
        return fail(err, PRECONDITION,
                    "%s has mode %03o, so others may read it; allowed: 600 (chmod 600, and set "
                    "the secrets anew)",
                    path, (unsigned)info.st_mode & 0777);
    if (info.st_size != KEY_BYTES || pread(fd, key, KEY_BYTES, 0) != KEY_BYTES)
        return fail(err, DATA_LOSS, "%s has %lld bytes, a key has %d; put the right one back",
                    path, (long long)info.st_size, KEY_BYTES);
    return true;
}

/* Written aside, and on disk before anything is sealed with it. */
static bool key_make(const char *folder, const char *path, uint8_t key[KEY_BYTES],
                     struct error *err)
{
    char *aside = alloc_printf("%s.tmp", path);
    randombytes_buf(key, KEY_BYTES);
    unlink(aside);
    int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int above = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && above >= 0 && write(fd, key, KEY_BYTES) == KEY_BYTES &&
              fsync(fd) == 0 && rename(aside, path) == 0 && fsync(above) == 0;
    if (!ok)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : INTERNAL, "cannot write %s", path);
    if (fd >= 0)
        close(fd);
    if (above >= 0)
        close(above);
    free(aside);
    return ok;
}

/* `may_make`: nothing has been sealed yet, so a new key loses nothing. */
static bool key_load(const char *folder, bool may_make, uint8_t key[KEY_BYTES],
                     struct error *err)
{
    char *path = alloc_printf("%s/" DB_SECRET_KEY_FILE, folder);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool ok;
    if (fd >= 0)
        ok = key_take(fd, path, key, err);
    else if (errno != ENOENT)
        ok = error_errno(err, INTERNAL, "cannot read %s", path);
    else
        ok = may_make ? key_make(folder, path, key, err)
                      : fail(err, DATA_LOSS,
                             "%s is missing, without which no secret can be read; put it back, "
                             "or remove all secrets",
                             path);
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

/* --- changes --- */

struct secret_set {
    const char *folder;
    const char *name;
    const char *value;
    int64_t user_id;
};

static bool set_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct secret_set *set = arg;
    uint8_t key[KEY_BYTES];
    uint8_t sealed[NONCE_BYTES + DB_SECRET_BYTES_MAX + TAG_BYTES];
    unsigned long long size;
    int64_t count, now_us = (int64_t)clock_wall_us();
    bool known;
    if (!db_number(conn, err, &count, 0, "SELECT count(*) FROM secrets", "") ||
        !db_secrets_known(conn, set->name, &known, err))
        return false;
    if (!known && count >= DB_SECRETS_MAX)
        return fail(err, EXHAUSTED, "there are %lld secrets, allowed: at most %d",
                    (long long)count, DB_SECRETS_MAX);
    if (!key_load(set->folder, count == 0, key, err))
        return false;
    randombytes_buf(sealed, NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        sealed + NONCE_BYTES, &size, (const uint8_t *)set->value, strlen(set->value),
        (const uint8_t *)set->name, strlen(set->name), NULL, sealed, key);
    sodium_memzero(key, sizeof(key));
    return db_run(conn, err,
                  "INSERT INTO secrets (name, sealed, user_id, created_us, changed_us)"
                  " VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO UPDATE SET sealed = ?2,"
                  " user_id = ?3, changed_us = ?4",
                  "tbii", set->name, sealed, NONCE_BYTES + (size_t)size, set->user_id, now_us);
}

bool db_secrets_set(struct db *db, const char *name, const char *value, int64_t user_id,
                    struct error *err)
{
    struct secret_set set = {db_folder(db), name, value, user_id};
    size_t size = strlen(value);
    if (size < DB_SECRET_BYTES_MIN || size > DB_SECRET_BYTES_MAX)
        return error_at(err, "/value", INVALID,
                        "the value of secret %.128s has %zu bytes, allowed: %d to %d", name,
                        size, DB_SECRET_BYTES_MIN, DB_SECRET_BYTES_MAX);
    return db_write(db, DB_CONTROL, set_run, &set, err);
}

static bool remove_run(struct db_conn *conn, void *arg, struct error *err)
{
    const char *name = arg;
    if (!db_run(conn, err, "DELETE FROM secrets WHERE name = ?1", "t", name))
        return false;
    return db_changes_count(conn) > 0 ||
           fail(err, NOT_FOUND, "there is no secret '%.128s'", name);
}

bool db_secrets_remove(struct db *db, const char *name, struct error *err)
{
    return db_write(db, DB_CONTROL, remove_run, (void *)name, err);
}

/* --- reading --- */

bool db_secrets_list(struct db_conn *conn, struct arena *arena, struct db_secret **secrets,
                     int *secrets_count, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err,
                 "SELECT s.name, u.name, s.created_us, s.changed_us FROM secrets AS s"
                 " JOIN users AS u ON u.id = s.user_id ORDER BY s.name",
                 "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_secret)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_secret *)db_rows_add(&rows) = (struct db_secret){
            .name = db_column_text(stmt, 0, arena),
            .user = db_column_text(stmt, 1, arena),
            .created_us = sqlite3_column_int64(stmt, 2),
            .changed_us = sqlite3_column_int64(stmt, 3),
        };
    *secrets = db_rows_end(&rows, arena, secrets_count);
    return row == 0;
}

bool db_secrets_known(struct db_conn *conn, const char *name, bool *known, struct error *err)
{
    int64_t count;
    if (!db_number(conn, err, &count, 0, "SELECT count(*) FROM secrets WHERE name = ?1", "t",
                   name))
        return false;
    *known = count > 0;
    return true;
}

bool db_secrets_read(const struct db *db, struct db_conn *conn, const char *name,
                     struct arena *arena, const char **value, struct error *err)
{
    uint8_t key[KEY_BYTES];
    size_t size;
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT sealed FROM secrets WHERE name = ?1", "t", name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "there is no secret '%.128s'", name);
    const uint8_t *sealed = db_column_blob(stmt, 0, arena, &size);
    db_query_end(stmt);
    if (size < NONCE_BYTES + TAG_BYTES)
        return fail(err, DATA_LOSS, "secret %.128s is damaged: set it anew", name);
    if (!key_load(db_folder(db), false, key, err))
        return false;
    char *out = arena_alloc(arena, size - NONCE_BYTES - TAG_BYTES + 1);
    bool ok = crypto_aead_xchacha20poly1305_ietf_decrypt(
                  (uint8_t *)out, NULL, NULL, sealed + NONCE_BYTES, size - NONCE_BYTES,
                  (const uint8_t *)name, strlen(name), sealed, key) == 0;
    sodium_memzero(key, sizeof(key));
    if (!ok)
        return fail(err, DATA_LOSS,
                    "secret %.128s does not open with %s/" DB_SECRET_KEY_FILE
                    ": put the right key back, or set the secret anew",
                    name, db_folder(db));
    out[size - NONCE_BYTES - TAG_BYTES] = '\0';
    *value = out;
    return true;
}
