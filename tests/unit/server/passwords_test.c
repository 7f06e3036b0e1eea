/* passwords_test.c - hashing, and how often one may guess. */

#include "server/passwords.h"
#include "tests/unit/test.h"

TEST(only_the_right_password_is_right)
{
    struct error err;
    char hash[PASSWORD_HASH_BYTES], again[PASSWORD_HASH_BYTES];
    struct passwords *passwords = passwords_new();
    CHECK_OK(passwords_hash(passwords, "correct horse", hash, &err), &err);
    CHECK_OK(passwords_hash(passwords, "correct horse", again, &err), &err);
    CHECK(strncmp(hash, "$argon2id$", 10) == 0 && strcmp(hash, again) != 0);
    CHECK_OK(passwords_check(passwords, "ana", hash, "correct horse", 0, &err), &err);
    CHECK_FAILS(passwords_check(passwords, "ana", hash, "correct hors", 0, &err), &err,
                UNAUTHENTICATED);
    CHECK_FAILS(passwords_check(passwords, "ana", "", "", 0, &err), &err, UNAUTHENTICATED);
    CHECK_FAILS(passwords_hash(passwords, "1234567", hash, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/password");
    passwords_free(passwords);
}

/* Five wrong ones a minute; the right one counts for nothing, and others are not held up. */
TEST(guesses_are_counted_for_each_user)
{
    struct error err;
    char hash[PASSWORD_HASH_BYTES];
    uint64_t now_us = UINT64_C(1000000000);
    struct passwords *passwords = passwords_new();
    CHECK_OK(passwords_hash(passwords, "correct horse", hash, &err), &err);
    for (int i = 0; i < PASSWORD_FAILURES_MAX; i++) {
        CHECK_OK(passwords_check(passwords, "ana", hash, "correct horse", now_us, &err), &err);
        CHECK_FAILS(passwords_check(passwords, "ana", hash, "guess", now_us, &err), &err,
                    UNAUTHENTICATED);
    }
    CHECK_FAILS(passwords_check(passwords, "ana", hash, "correct horse", now_us, &err), &err,
                EXHAUSTED);
    CHECK_OK(passwords_check(passwords, "bob", hash, "correct horse", now_us, &err), &err);
    now_us += 60000000;
    CHECK_OK(passwords_check(passwords, "ana", hash, "correct horse", now_us, &err), &err);
    passwords_free(passwords);
}
