/* secrets_test.c - a secret comes back by its name alone, and nothing on disk shows it. */

#include <fcntl.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/str.h"
#include "db/internal.h"
#include "db/seal.h"
#include "db/secrets.h"
#include "db/tokens.h"
#include "tests/unit/db/folder.h"

#define VALUE "correct horse battery staple"

struct yard {
    char *folder;
    struct db *db;
    struct arena *arena;
    struct error err;
};

static struct yard yard_open(char *folder)
{
    struct yard yard = {.folder = folder, .arena = arena_new()};
    yard.db = db_open(folder, &yard.err);
    if (!yard.db)
        CHECK_STOP("%s", yard.err.text);
    return yard;
}

static void yard_close(struct yard *yard)
{
    db_close(yard->db);
    arena_free(yard->arena);
}

/* The value, or NULL with yard->err. */
static const char *value_of(struct yard *yard, const char *name)
{
    const char *value = NULL;
    struct db_conn *conn = db_read(yard->db, DB_CONTROL, &yard->err);
    CHECK(conn != NULL);
    if (!db_secrets_read(yard->db, conn, name, yard->arena, &value, &yard->err))
        value = NULL;
    db_read_done(yard->db, conn);
    return value;
}

static bool set(struct yard *yard, const char *name, const char *value)
{
    return db_secrets_set(yard->db, name, value, DB_USER_ADMIN, &yard->err);
}

static char *key_path(const struct yard *yard)
{
    return alloc_printf("%s/" DB_SEAL_KEY_FILE, yard->folder);
}

/* Whether a file of the folder has these bytes in it. */
static bool file_has(const char *folder, const char *name, const char *bytes)
{
    struct str text = {0};
    char buffer[65536];
    char *path = alloc_printf("%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    size_t n;
    while (file && (n = fread(buffer, 1, sizeof(buffer), file)) > 0)
        str_add_bytes(&text, buffer, n);
    if (file)
        fclose(file);
    bool found = text.size && memmem(text.data, text.size, bytes, strlen(bytes)) != NULL;
    str_release(&text);
    free(path);
    return found;
}

TEST(secrets_come_back_after_a_restart)
{
    char *folder = folder_new();
    struct yard yard = yard_open(folder);
    struct stat info;
    char *key = key_path(&yard);
    CHECK(stat(key, &info) != 0); /* made at first use */
    CHECK_OK(set(&yard, "TOKEN", VALUE), &yard.err);
    CHECK_OK(set(&yard, "OTHER", "abcd"), &yard.err);
    CHECK_INT(stat(key, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    CHECK_INT(info.st_size, 32);
    CHECK_TEXT(value_of(&yard, "TOKEN"), VALUE);
    CHECK(file_has(folder, "control.db-wal", "TOKEN"));
    CHECK(!file_has(folder, "control.db-wal", VALUE));
    yard_close(&yard);
    CHECK(!file_has(folder, "control.db", VALUE));

    yard = yard_open(folder);
    CHECK_TEXT(value_of(&yard, "TOKEN"), VALUE);
    CHECK_TEXT(value_of(&yard, "OTHER"), "abcd");
    CHECK_OK(set(&yard, "TOKEN", "another value"), &yard.err);
    CHECK_TEXT(value_of(&yard, "TOKEN"), "another value");
    yard_close(&yard);
    free(key);
    folder_free(folder);
}

TEST(secrets_are_listed_without_values_and_removed)
{
    char *folder = folder_new();
    struct yard yard = yard_open(folder);
    struct db_secret *list;
    int count;
    bool known;
    CHECK_OK(set(&yard, "B", VALUE), &yard.err);
    CHECK_OK(set(&yard, "A", VALUE), &yard.err);
    struct db_conn *conn = db_read(yard.db, DB_CONTROL, &yard.err);
    CHECK_OK(db_secrets_list(conn, yard.arena, &list, &count, &yard.err), &yard.err);
    CHECK_INT(count, 2);
    CHECK_TEXT(list[0].name, "A");
    CHECK_TEXT(list[1].name, "B");
    CHECK_TEXT(list[1].user, "admin");
    CHECK(list[1].created_us > 0);
    CHECK_INT(list[1].created_us, list[1].changed_us);
    CHECK_OK(db_secrets_known(conn, "A", &known, &yard.err), &yard.err);
    CHECK(known);
    db_read_done(yard.db, conn);

    CHECK_OK(db_secrets_remove(yard.db, "A", &yard.err), &yard.err);
    CHECK_FAILS(db_secrets_remove(yard.db, "A", &yard.err), &yard.err, NOT_FOUND);
    CHECK(!value_of(&yard, "A"));
    CHECK_INT(yard.err.code, NOT_FOUND);
    CHECK_TEXT(value_of(&yard, "B"), VALUE);
    yard_close(&yard);
    folder_free(folder);
}

TEST(secrets_have_bounds)
{
    char *folder = folder_new();
    struct yard yard = yard_open(folder);
    char *longest = alloc_bytes(DB_SECRET_BYTES_MAX + 2);
    memset(longest, 'x', DB_SECRET_BYTES_MAX);
    CHECK_FAILS(set(&yard, "SHORT", "abc"), &yard.err, INVALID);
    CHECK_TEXT(yard.err.text, "the value of secret SHORT has 3 bytes, allowed: 4 to 65536");
    CHECK_OK(set(&yard, "LONG", longest), &yard.err);
    CHECK_TEXT(value_of(&yard, "LONG"), longest);
    longest[DB_SECRET_BYTES_MAX] = 'x';
    CHECK_FAILS(set(&yard, "LONG", longest), &yard.err, INVALID);
    free(longest);
    yard_close(&yard);
    folder_free(folder);
}

static bool swap_run(struct db_conn *conn, void *arg, struct error *err)
{
    (void)arg;
    return db_run(conn, err,
                  "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'A')"
                  " WHERE name = 'B'",
                  "");
}

/* A value is bound to its name, to its bytes, and to the one key. */
TEST(secrets_that_were_touched_do_not_open)
{
    char *folder = folder_new();
    struct yard yard = yard_open(folder);
    char *key = key_path(&yard), *kept = alloc_printf("%s.kept", key);
    CHECK_OK(set(&yard, "A", VALUE), &yard.err);
    CHECK_OK(set(&yard, "B", "something else"), &yard.err);
    CHECK_OK(db_write(yard.db, DB_CONTROL, swap_run, NULL, &yard.err), &yard.err);
    CHECK(!value_of(&yard, "B"));
    CHECK_INT(yard.err.code, DATA_LOSS);
    CHECK_TEXT(value_of(&yard, "A"), VALUE);

    CHECK_INT(rename(key, kept), 0);
    CHECK(!value_of(&yard, "A"));
    CHECK_INT(yard.err.code, DATA_LOSS);
    CHECK_FAILS(set(&yard, "C", VALUE), &yard.err, DATA_LOSS); /* no second key is made */
    CHECK(access(key, F_OK) != 0);

    FILE *wrong = fopen(key, "wb");
    CHECK_INT(fwrite("0123456789abcdef0123456789abcdef", 1, 32, wrong), 32);
    fclose(wrong);
    CHECK_INT(chmod(key, 0644), 0);
    CHECK(!value_of(&yard, "A"));
    CHECK_INT(yard.err.code, PRECONDITION);
    CHECK_INT(chmod(key, 0600), 0);
    CHECK(!value_of(&yard, "A"));
    CHECK_INT(yard.err.code, DATA_LOSS);

    CHECK_INT(rename(kept, key), 0);
    CHECK_TEXT(value_of(&yard, "A"), VALUE);
    free(kept);
    free(key);
    yard_close(&yard);
    folder_free(folder);
}

/* --- what is made of the key --- */

struct derived {
    struct yard *yard;
    const char *purpose;
    int64_t number;
    uint8_t bytes[DB_SEAL_DERIVED_BYTES];
    struct error err;
    bool ok;
};

static void *derive_main(void *arg)
{
    struct derived *d = arg;
    struct db_conn *conn = db_read(d->yard->db, DB_CONTROL, &d->err);
    d->ok =
        conn && db_seal_derive(conn, d->yard->folder, d->purpose, d->number, d->bytes, &d->err);
    db_read_done(d->yard->db, conn);
    return NULL;
}

static struct derived derive(struct yard *yard, const char *purpose, int64_t number)
{
    struct derived d = {.yard = yard, .purpose = purpose, .number = number};
    derive_main(&d);
    return d;
}

static bool same_bytes(const struct derived *a, const struct derived *b)
{
    return !memcmp(a->bytes, b->bytes, DB_SEAL_DERIVED_BYTES);
}

TEST(what_is_derived_is_the_same_again)
{
    char *folder = folder_new();
    struct yard yard = yard_open(folder);
    struct derived one = derive(&yard, "tasks", 1), again, other[2];
    CHECK_OK(one.ok, &one.err);
    CHECK_OK(set(&yard, "A", VALUE), &yard.err); /* the key was made, and is the same */
    again = derive(&yard, "tasks", 1);
    other[0] = derive(&yard, "tasks", 2);
    other[1] = derive(&yard, "task", 1);
    CHECK(same_bytes(&one, &again));
    CHECK(!same_bytes(&one, &other[0]) && !same_bytes(&one, &other[1]));
    char *key = key_path(&yard);
    CHECK_INT(unlink(key), 0);
    again = derive(&yard, "tasks", 1);
    CHECK(!again.ok);
    CHECK_INT(again.err.code, DATA_LOSS); /* something is sealed with it: no other is made */
    CHECK_TEXT(value_of(&yard, "A") ? "it opened" : "", "");
    free(key);
    yard_close(&yard);
    folder_free(folder);
}

/* Who comes first makes the key, and nobody has another one. */
TEST(the_key_is_made_once)
{
    for (int round = 0; round < 20; round++) {
        char *folder = folder_new();
        struct yard yard = yard_open(folder);
        struct derived all[4];
        pthread_t threads[ARRAY_LEN(all)];
        for (int i = 0; i < ARRAY_LEN(all); i++) {
            all[i] = (struct derived){.yard = &yard, .purpose = "tasks", .number = 7};
            CHECK_INT(pthread_create(&threads[i], NULL, derive_main, &all[i]), 0);
        }
        CHECK_OK(set(&yard, "A", VALUE), &yard.err);
        for (int i = 0; i < ARRAY_LEN(all); i++)
            pthread_join(threads[i], NULL);
        CHECK_TEXT(value_of(&yard, "A"), VALUE);
        for (int i = 0; i < ARRAY_LEN(all); i++) {
            CHECK_OK(all[i].ok, &all[i].err);
            CHECK(same_bytes(&all[i], &all[0]));
        }
        yard_close(&yard);
        folder_free(folder);
    }
}
