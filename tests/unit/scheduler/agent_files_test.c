/* agent_files_test.c - the agent's small files, and what it finds of the machine. */

#include <fcntl.h>
#include <sys/stat.h>

#include "scheduler/agent/files.h"
#include "scheduler/agent/inventory.h"
#include "scheduler/agent/users.h"
#include "tests/unit/folder.h"

TEST(files_come_back)
{
    struct error err;
    char line[20];
    const char *folder = folder_path("a/b/c");
    CHECK_OK(files_make_folder(folder, &err), &err);
    CHECK_OK(files_make_folder(folder, &err), &err);
    CHECK_OK(files_write_json(folder, "x.json",
                              json_pack("{s:s, s:I, s:b}", "text", "caf\xc3\xa9", "int",
                                        (json_int_t)INT64_MAX, "yes", 1),
                              &err),
             &err);
    json_t *json = files_read_json(folder, "x.json", &err);
    CHECK_OK(json != NULL, &err);
    CHECK_TEXT(files_text(json, "text"), "caf\xc3\xa9");
    CHECK_TEXT(files_text(json, "int"), "");
    CHECK_INT(files_int(json, "int"), INT64_MAX);
    CHECK_INT(files_int(json, "none"), 0);
    CHECK(files_bool(json, "yes"));
    json_decref(json);

    CHECK_OK(files_write(folder, "log", "one\ntwo three\r\n\n", &err), &err);
    CHECK_TEXT(files_last_line(folder, "log", line, sizeof(line)), "two three");
    CHECK_TEXT(files_last_line(folder, "none", line, sizeof(line)), "");
    CHECK_OK(files_write(folder, "log", "\n\n", &err), &err);
    CHECK_TEXT(files_last_line(folder, "log", line, sizeof(line)), "");
    CHECK(access(folder_path("a/b/c/log.tmp"), F_OK) != 0);
    files_remove_folder(folder_path("a"));
    CHECK(access(folder_path("a"), F_OK) != 0);
}

/* Deeper than descriptors go round, with links out of it that must not be followed. */
TEST(files_remove_what_a_task_has_made)
{
    struct error err;
    char name[24];
    folder_put_text("outside", "kept", "x");
    const char *outside = folder_path("outside"), *tree = folder_path("tree");
    CHECK_OK(files_make_folder(tree, &err), &err);
    int top = open(tree, O_RDONLY | O_DIRECTORY), at = dup(top);
    for (int i = 0; i < 1000; i++) {
        CHECK_INT(mkdirat(at, "deeper", 0700), 0);
        CHECK_INT(symlinkat(outside, at, "link"), 0);
        int file = openat(at, ".moved-0", O_WRONLY | O_CREAT, 0600); /* as ours are called */
        CHECK(file >= 0);
        close(file);
        int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY);
        CHECK(next >= 0);
        close(at);
        at = next;
    }
    close(at);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), ".moved-%d", i + 1);
        CHECK_INT(mkdirat(top, name, 0700), 0);
    }
    close(top);
    CHECK_INT(mkfifo(folder_path("tree/pipe"), 0600), 0);
    files_remove_folder(tree);
    CHECK(access(tree, F_OK) != 0);
    CHECK_INT(access(folder_path("outside/kept"), F_OK), 0);
    CHECK_INT(symlink(outside, folder_path("alias")), 0);
    files_remove_folder(folder_path("alias")); /* a link is no folder */
    CHECK_INT(access(folder_path("outside/kept"), F_OK), 0);
}

/* A task that puts something else where the agent reads is not waited for. */
TEST(files_are_not_what_a_task_has_put_there)
{
    struct error err;
    folder_put_text("task", "real.json", "{\"a\": 1}");
    CHECK_INT(mkfifo(folder_path("task/pipe.json"), 0600), 0);
    CHECK_INT(symlink(folder_path("task/real.json"), folder_path("task/link.json")), 0);
    CHECK(!files_read_json(folder_path("task"), "pipe.json", &err));
    CHECK(!files_read_json(folder_path("task"), "link.json", &err));
    json_t *json = files_read_json(folder_path("task"), "real.json", &err);
    CHECK_INT(files_int(json, "a"), 1);
    json_decref(json);
}

TEST(users_of_a_range)
{
    static const char *const bad[] = {"",     "5",   "0-9", "7-7",          "9-7",
                                      "1-2x", "a-b", "1-",  "1-4294967295", "1000000-2000001"};
    struct error err;
    struct users users;
    char text[200];
    bool warn;
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_FAILS(users_parse(bad[i], &users, &err), &err, INVALID);
    CHECK_OK(users_parse(NULL, &users, &err), &err);
    CHECK_INT(users.count, 0);
    users_text(&users, text, sizeof(text), &warn);
    CHECK_INT(warn, geteuid() == 0);

    users = (struct users){70000, 3}; /* 70001, 70002, 70003 */
    CHECK_INT(users_first(&users, 3), 70001);
    CHECK_INT(users_first(&users, 5), 70003);
    CHECK_INT(users_next(&users, 70002), 70003);
    CHECK_INT(users_next(&users, 70003), 70001);
}

TEST(files_that_are_damaged)
{
    struct error err;
    const char *folder = folder_path("damaged");
    CHECK_OK(files_make_folder(folder, &err), &err);
    CHECK_FAILS(files_read_json(folder, "none.json", &err), &err, NOT_FOUND);
    static const char *const texts[] = {"", "{\"a\": ", "[1]", "{}x", "\"\xff\""};
    for (int i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_OK(files_write(folder, "x.json", texts[i], &err), &err);
        CHECK_FAILS(files_read_json(folder, "x.json", &err), &err, DATA_LOSS);
        CHECK(strstr(err.text, "damaged/x.json"));
    }
    CHECK_FAILS(files_write(folder_path("nowhere"), "x", "", &err), &err, INTERNAL);
    CHECK(strstr(err.text, "nowhere/x"));
}

TEST(inventory_finds_something)
{
    char boot_id[64];
    CHECK(inventory_cpu_millis() >= 1);
    CHECK(inventory_cpu_millis() <= 1000 * sysconf(_SC_NPROCESSORS_CONF));
    CHECK(inventory_memory_bytes() > (1 << 20));
    CHECK_INT(strlen(inventory_boot_id(boot_id, sizeof(boot_id))), 36);
}
