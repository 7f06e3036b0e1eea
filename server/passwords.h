/*
 * passwords.h - hashing and checking what people sign in with (argon2id).
 *
 * A hash takes 64 MiB and some 60 ms, on purpose: at most PASSWORD_AT_ONCE are made at the same
 * time, so that nobody can use up the machine by trying.
 */
#pragma once

#include "base/base.h"

struct error;
struct passwords;

#define PASSWORD_BYTES_MIN 8
#define PASSWORD_BYTES_MAX 128
#define PASSWORD_HASH_BYTES 128
#define PASSWORD_AT_ONCE 2
#define PASSWORD_FAILURES_MAX 5       /* of one user in a minute ... */
#define PASSWORD_FAILURES_ALL_MAX 100 /* ... and of all together */

struct passwords *passwords_new(void);
void passwords_free(struct passwords *passwords); /* NULL is fine */

/* INVALID when it is too short, too long or one of the 5,000 that are tried first; EXHAUSTED
 * when others are being hashed. */
bool passwords_hash(struct passwords *passwords, const char *password,
                    char hash[PASSWORD_HASH_BYTES], struct error *err) CHECKED;

/*
 * Whether `password` is what `hash` was made of; `hash` "" (nobody of that name, or without a
 * password) takes as long and fails alike, with UNAUTHENTICATED.  EXHAUSTED after too many
 * wrong ones for `user` or for all in a minute (`now_us`, monotonic), or when others are being
 * hashed.
 */
bool passwords_check(struct passwords *passwords, const char *user, const char *hash,
                     const char *password, uint64_t now_us, struct error *err) CHECKED;
