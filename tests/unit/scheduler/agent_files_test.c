/* agent_files_test.c - the agent's small files, and what it finds of the machine. */

#include <fcntl.h>
#include <sys/stat.h>

#include "scheduler/agent/files.h"
#include "scheduler/agent/inventory.h"
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
