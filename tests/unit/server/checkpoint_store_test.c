/* checkpoint_store_test.c - checkpoints that agents ship: whole, in order, of the newest
 * attempt. */
/* Faults of docs/reliability.md: F7. */

#include <jansson.h>

#include "base/error.h"
#include "base/limits.h"
#include "proto/agent_pb.h"
#include "server/checkpoint_store.h"
#include "tests/unit/folder.h"

static bool ship(int64_t epoch, const char *file, int64_t offset, const char *text, bool last,
                 struct error *err)
{
    const struct agent_ship_request request = {.task = {3, epoch, "worker", 0},
                                               .file = file,
                                               .offset = offset,
                                               .data = text,
                                               .data_size = strlen(text),
                                               .last = last};
    int64_t cursor;
    bool ok = checkpoint_store_ship(folder_path(""), &request, &cursor, err);
    if (ok)
        CHECK_INT(cursor, offset + (int64_t)strlen(text));
    return ok;
}

static bool gone(int64_t epoch, const char *file, struct error *err)
{
    const struct agent_ship_request request = {
        .task = {3, epoch, "worker", 0}, .file = file, .removed = true};
    int64_t cursor;
    return checkpoint_store_ship(folder_path(""), &request, &cursor, err);
}

static void check_list(const char *wanted)
{
    struct error err;
    json_t *list = checkpoint_store_list(folder_path(""), 3, &err);
    CHECK_OK(list != NULL, &err);
    char *text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS);
    CHECK_TEXT(text, wanted);
    free(text);
    json_decref(list);
}

static void check_read(const char *path, const char *wanted)
{
    struct error err;
    char text[64];
    size_t got;
    CHECK_OK(checkpoint_store_read(folder_path(""), 3, path, 0, text, sizeof(text), &got, &err),
             &err);
    text[got] = '\0';
    CHECK_TEXT(text, wanted);
}

TEST(checkpoints_are_there_with_their_last_piece)
{
    struct error err;
    check_list("[]");
    CHECK_OK(ship(5, "checkpoints/a.data", 0, "hello ", false, &err), &err);
    check_list("[]");
    CHECK_OK(ship(5, "checkpoints/a.data", 6, "world", true, &err), &err);
    check_list("[{\"path\":\"a.data\",\"size\":11}]");
    check_read("a.data", "hello world");
    /* A piece that does not follow: from the start again. */
    CHECK_FAILS(ship(5, "checkpoints/a.data", 6, "x", true, &err), &err, ABORTED);
    CHECK_OK(ship(5, "checkpoints/a.data", 0, "new", false, &err), &err);
    CHECK_FAILS(ship(5, "checkpoints/a.data", 2, "x", true, &err), &err, ABORTED);
    check_read("a.data", "hello world");
    CHECK_OK(ship(5, "checkpoints/a.data", 0, "new", true, &err), &err);
    check_read("a.data", "new");
    CHECK_OK(ship(5, "checkpoints/deep/er", 0, "", true, &err), &err); /* an empty one */
    CHECK_OK(gone(5, "checkpoints/a.data", &err), &err);
    CHECK_OK(gone(5, "checkpoints/a.data", &err), &err); /* said again */
    check_list("[{\"path\":\"deep/er\",\"size\":0}]");
    CHECK_OK(gone(5, "checkpoints/deep/er", &err), &err);
    CHECK(access(folder_path("jobs/3/checkpoints/deep"), F_OK) != 0);
    check_list("[]");
}

TEST(checkpoints_of_an_attempt_that_is_over_are_refused)
{
    struct error err;
    CHECK_OK(ship(7, "checkpoints/old", 0, "old", true, &err), &err);
    CHECK_OK(ship(7, "checkpoints/half", 0, "ha", false, &err), &err);
    CHECK_OK(checkpoint_store_claim(folder_path(""), 3, 9, &err), &err);
    CHECK_FAILS(ship(7, "checkpoints/half", 2, "lf", true, &err), &err, ABORTED);
    CHECK_FAILS(ship(7, "checkpoints/old", 0, "older", true, &err), &err, DENIED);
    CHECK_TEXT(err.text, "attempt with epoch 7 may not publish checkpoints: the one with epoch "
                         "9 does");
    CHECK_FAILS(gone(7, "checkpoints/old", &err), &err, DENIED);
    CHECK_FAILS(checkpoint_store_claim(folder_path(""), 3, 8, &err), &err, DENIED);
    check_read("old", "old");
    CHECK_OK(ship(9, "checkpoints/old", 0, "newer", true, &err), &err);
    check_read("old", "newer");
    CHECK_OK(gone(9, "checkpoints/old", &err), &err);
}

TEST(checkpoints_have_names_below_their_folder)
{
    static const char *const names[] = {"../x",   "/x",      "a/../../x", "epoch", "lock",
                                        ".ship-", "x/.hide", "x.tmp",     "",      "a//b"};
    struct error err;
    char text[8];
    size_t got;
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        char *name = alloc_printf("checkpoints/%s", names[i]);
        CHECK_FAILS(ship(9, name, 0, "x", true, &err), &err, INVALID);
        CHECK_FAILS(checkpoint_store_read(folder_path(""), 3, names[i], 0, text, sizeof(text),
                                          &got, &err),
                    &err, NOT_FOUND);
        free(name);
    }
    folder_put_text("jobs/3/checkpoints", "real", "x");
    CHECK_INT(symlink("/etc/passwd", folder_path("jobs/3/checkpoints/link")), 0);
    CHECK_FAILS(
        checkpoint_store_read(folder_path(""), 3, "link", 0, text, sizeof(text), &got, &err),
        &err, NOT_FOUND);
    check_list("[{\"path\":\"real\",\"size\":1}]");
}
