/* seal.c - the key, and what is sealed with it. */

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/internal.h"
#include "db/seal.h"

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

/*
 * Written aside, and on disk before anything is made with it.  Where two do so at once, the
 * file of the first stays: who comes later reads it.
 */
static bool key_make(const char *folder, const char *path, struct error *err)
{
    uint8_t key[KEY_BYTES];
    char *aside = alloc_printf("%s.XXXXXX", path);
    randombytes_buf(key, KEY_BYTES);
    int fd = mkostemp(aside, O_CLOEXEC); /* mode 600 */
    int above = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && above >= 0 && write(fd, key, KEY_BYTES) == KEY_BYTES &&
              fsync(fd) == 0 && (link(aside, path) == 0 || errno == EEXIST) &&
              fsync(above) == 0;
    if (!ok)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : INTERNAL, "cannot write %s", path);
    if (fd >= 0) {
        close(fd);
        unlink(aside);
    }
    if (above >= 0)
        close(above);
    sodium_memzero(key, sizeof(key));
    free(aside);
    return ok;
}

/* `may_make`: nothing has been sealed yet, so a new key loses nothing. */
static bool key_load(const char *folder, bool may_make, uint8_t key[KEY_BYTES],
                     struct error *err)
{
    char *path = alloc_printf("%s/" DB_SEAL_KEY_FILE, folder);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = true;
    if (fd < 0 && errno == ENOENT && may_make) {
        ok = key_make(folder, path, err);
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (ok && fd >= 0)
        ok = key_take(fd, path, key, err);
    else if (ok && errno == ENOENT)
        ok = fail(err, DATA_LOSS,
                  "%s is missing, without which no secret can be read; put it back, or remove "
                  "all secrets and webhooks",
                  path);
    else if (ok)
        ok = error_errno(err, INTERNAL, "cannot read %s", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

/* Whether nothing has been sealed yet. */
static bool key_is_free(struct db_conn *conn, bool *is_free, struct error *err)
{
    int64_t count = 0;
    bool ok = db_number(conn, err, &count, 0,
                        "SELECT (SELECT count(*) FROM secrets) +"
                        " (SELECT count(*) FROM webhooks WHERE length(sealed) > 0)",
                        "");
    *is_free = count == 0;
    return ok;
}

/* --- sealing --- */

bool db_seal(struct db_conn *conn, const char *folder, const char *name, const char *value,
             struct arena *arena, struct db_sealed *sealed, struct error *err)
{
    uint8_t key[KEY_BYTES];
    unsigned long long size;
    bool is_free;
    if (!key_is_free(conn, &is_free, err) || !key_load(folder, is_free, key, err))
        return false;
    sealed->bytes = arena_alloc(arena, NONCE_BYTES + strlen(value) + TAG_BYTES);
    randombytes_buf(sealed->bytes, NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        sealed->bytes + NONCE_BYTES, &size, (const uint8_t *)value, strlen(value),
        (const uint8_t *)name, strlen(name), NULL, sealed->bytes, key);
    sodium_memzero(key, sizeof(key));
    sealed->size = NONCE_BYTES + (size_t)size;
    return true;
}

bool db_seal_open(const char *folder, const char *name, const struct db_sealed *sealed,
                  struct arena *arena, const char **value, struct error *err)
{
    uint8_t key[KEY_BYTES];
    if (sealed->size < NONCE_BYTES + TAG_BYTES)
        return fail(err, DATA_LOSS, "secret %.128s is damaged: set it anew", name);
    if (!key_load(folder, false, key, err))
        return false;
    size_t size = sealed->size - NONCE_BYTES - TAG_BYTES;
    char *out = arena_alloc(arena, size + 1);
    bool ok =
        crypto_aead_xchacha20poly1305_ietf_decrypt(
            (uint8_t *)out, NULL, NULL, sealed->bytes + NONCE_BYTES, sealed->size - NONCE_BYTES,
            (const uint8_t *)name, strlen(name), sealed->bytes, key) == 0;
    sodium_memzero(key, sizeof(key));
    if (!ok)
        return fail(err, DATA_LOSS,
                    "secret %.128s does not open with %s/" DB_SEAL_KEY_FILE
                    ": put the right key back, or set the secret anew",
                    name, folder);
    out[size] = '\0';
    *value = out;
    return true;
}

/* --- what is made of the key --- */

bool db_seal_derive(struct db_conn *conn, const char *folder, const char *purpose,
                    int64_t number, uint8_t out[DB_SEAL_DERIVED_BYTES], struct error *err)
{
    uint8_t key[KEY_BYTES];
    bool is_free;
    if (!key_is_free(conn, &is_free, err) || !key_load(folder, is_free, key, err))
        return false;
    char *text = alloc_printf("%s %lld", purpose, (long long)number);
    crypto_generichash(out, DB_SEAL_DERIVED_BYTES, (const uint8_t *)text, strlen(text), key,
                       sizeof(key));
    sodium_memzero(key, sizeof(key));
    free(text);
    return true;
}
