/* passwords.c - argon2id, a few at a time, and a count of failures for each user. */

#include <pthread.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/error.h"
#include "server/passwords.h"

#define PASSWORD_ROWS 1024 /* users share them by their names' hashes: at worst too strict */
#define PASSWORD_MINUTE_US UINT64_C(60000000)

static_assert(crypto_pwhash_STRBYTES <= PASSWORD_HASH_BYTES, "room for a hash");

/* What everybody tries first. */
static const uint32_t common[] = {
#include "server/passwords_common.inc"
};

struct failures {
    uint64_t since_us;
    int count;
};

struct passwords {
    pthread_mutex_t lock; /* guards: all below */
    int running;
    struct failures all;
    struct failures of[PASSWORD_ROWS];
};

struct passwords *passwords_new(void)
{
    struct passwords *passwords = alloc_bytes(sizeof(*passwords));
    pthread_mutex_init(&passwords->lock, NULL);
    return passwords;
}

void passwords_free(struct passwords *passwords)
{
    if (!passwords)
        return;
    pthread_mutex_destroy(&passwords->lock);
    free(passwords);
}

static bool begin(struct passwords *passwords, struct error *err)
{
    pthread_mutex_lock(&passwords->lock);
    bool room = passwords->running < PASSWORD_AT_ONCE;
    passwords->running += room;
    pthread_mutex_unlock(&passwords->lock);
    return room || fail(err, EXHAUSTED, "others are signing in at this moment; try again");
}

static void end(struct passwords *passwords)
{
    pthread_mutex_lock(&passwords->lock);
    passwords->running--;
    pthread_mutex_unlock(&passwords->lock);
}

static bool make(const char *password, char hash[PASSWORD_HASH_BYTES], struct error *err)
{
    return crypto_pwhash_str(hash, password, strlen(password),
                             crypto_pwhash_OPSLIMIT_INTERACTIVE,
                             crypto_pwhash_MEMLIMIT_INTERACTIVE) == 0 ||
           fail(err, EXHAUSTED, "there is no memory to hash a password");
}

static uint64_t short_hash(const char *text, size_t size)
{
    uint64_t hash = 0;
    static const unsigned char key[crypto_shorthash_KEYBYTES];
    static_assert(crypto_shorthash_BYTES == sizeof(hash), "a short hash is a number");
    crypto_shorthash((unsigned char *)&hash, (const unsigned char *)text, size, key);
    return hash;
}

static int compare_hashes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool is_common(const char *password, size_t size)
{
    char lower[PASSWORD_BYTES_MAX];
    for (size_t i = 0; i < size; i++)
        lower[i] = (char)(password[i] >= 'A' && password[i] <= 'Z' ? password[i] + ('a' - 'A')
                                                                   : password[i]);
    uint32_t hash = (uint32_t)short_hash(lower, size);
    sodium_memzero(lower, sizeof(lower));
    return bsearch(&hash, common, ARRAY_LEN(common), sizeof(common[0]), compare_hashes);
}

bool passwords_hash(struct passwords *passwords, const char *password,
                    char hash[PASSWORD_HASH_BYTES], struct error *err)
{
    size_t size = strlen(password);
    if (size < PASSWORD_BYTES_MIN || size > PASSWORD_BYTES_MAX)
        return error_at(err, "/password", INVALID,
                        "the password has %zu bytes, allowed: %d to %d", size,
                        PASSWORD_BYTES_MIN, PASSWORD_BYTES_MAX);
    if (is_common(password, size))
        return error_at(err, "/password", INVALID,
                        "the password is one of those that are tried first: take another, a "
                        "few words will do");
    if (!begin(passwords, err))
        return false;
    bool ok = make(password, hash, err);
    end(passwords);
    return ok;
}

static struct failures *row_of(struct passwords *passwords, const char *user)
{
    return &passwords->of[short_hash(user, strlen(user)) % PASSWORD_ROWS];
}

static int count_now(struct failures *failures, uint64_t now_us)
{
    if (now_us - failures->since_us >= PASSWORD_MINUTE_US)
        *failures = (struct failures){.since_us = now_us};
    return failures->count;
}

/* One that runs counts as wrong until it was right: many at once must not get round the bound.
 */
static bool may_try(struct passwords *passwords, struct failures *of, uint64_t now_us)
{
    pthread_mutex_lock(&passwords->lock);
    bool few = count_now(of, now_us) < PASSWORD_FAILURES_MAX &&
               count_now(&passwords->all, now_us) < PASSWORD_FAILURES_ALL_MAX;
    of->count += few;
    passwords->all.count += few;
    pthread_mutex_unlock(&passwords->lock);
    return few;
}

static void was_right(struct passwords *passwords, struct failures *of)
{
    pthread_mutex_lock(&passwords->lock);
    of->count -= of->count > 0;
    passwords->all.count -= passwords->all.count > 0;
    pthread_mutex_unlock(&passwords->lock);
}

bool passwords_check(struct passwords *passwords, const char *user, const char *hash,
                     const char *password, uint64_t now_us, struct error *err)
{
    struct failures *of = row_of(passwords, user);
    char unused[PASSWORD_HASH_BYTES];
    bool right = false;
    if (!begin(passwords, err))
        return false;
    bool few = may_try(passwords, of, now_us);
    if (few && *hash)
        right = crypto_pwhash_str_verify(hash, password, strlen(password)) == 0;
    else if (few && !make(password, unused, err)) {
        end(passwords);
        return false;
    }
    end(passwords);
    if (!few)
        return fail(err, EXHAUSTED, "too many wrong passwords in a minute; wait a little");
    if (!right)
        return fail(err, UNAUTHENTICATED, "the user or the password is wrong");
    was_right(passwords, of);
    return true;
}
