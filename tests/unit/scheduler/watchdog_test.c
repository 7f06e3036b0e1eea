/* watchdog_test.c - tasks are seen to hang by what they do not write. */
/* Faults of docs/reliability.md: F9. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "proto/tfevent.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/watchdog.h"
#include "tests/unit/test.h"

static void append(const char *folder, const char *name, const void *bytes, size_t size)
{
    char *path = alloc_printf("%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, bytes, size), size);
    close(fd);
    free(path);
}

static void append_step(const char *folder, int64_t step)
{
    struct str text = {0};
    struct tfevent_scalar loss = {"loss", 1};
    tfevent_add_scalars(&text, 1, step, &loss, 1);
    append(folder, "events.out.tfevents.1", text.data, text.size);
    str_release(&text);
}

static char *folder_new(void)
{
    char *folder = alloc_text("/tmp/ty-watchdog.XXXXXX");
    CHECK(mkdtemp(folder));
    return folder;
}

static void folder_free(char *folder)
{
    files_remove_folder(folder);
    free(folder);
}

/* Looks as often as is due, from `*now_us` on for `ms`; whether it stalled. */
static bool looks(struct watchdog *watchdog, const char *folder, uint64_t *now_us, int ms)
{
    uint64_t end_us = *now_us + (uint64_t)ms * 1000;
    for (; *now_us < end_us; *now_us += 50000) {
        if (watchdog_look(watchdog, folder, *now_us))
            return true;
    }
    return false;
}

TEST(a_task_that_writes_nothing_has_stalled)
{
    char *folder = folder_new(), text[200];
    struct watchdog watchdog = {.stall_ms = 1000};
    uint64_t now_us = 5000000;
    append(folder, "stdout.log", "hello", 5);
    CHECK(!looks(&watchdog, folder, &now_us, 900));
    CHECK(looks(&watchdog, folder, &now_us, 300));
    watchdog_text(&watchdog, folder, text, sizeof(text));
    CHECK_TEXT(text, "it hangs: nothing was written for 1 s (stop.stall_seconds)");
    folder_free(folder);
}

TEST(a_task_that_writes_is_no_stalled_one)
{
    char *folder = folder_new(), text[200];
    struct watchdog watchdog = {.stall_ms = 1000};
    uint64_t now_us = 5000000;
    for (int step = 1; step <= 5; step++) {
        append_step(folder, step * 10);
        CHECK(!looks(&watchdog, folder, &now_us, 800));
    }
    CHECK(looks(&watchdog, folder, &now_us, 400));
    append(folder, "events.out.tfevents.1", "half a record", 13);
    watchdog_text(&watchdog, folder, text, sizeof(text));
    CHECK_TEXT(text, "it hangs: no step for 1 s (stop.stall_seconds); the last was step 50");
    folder_free(folder);
}

TEST(a_watchdog_that_stood_still_itself_knows_nothing)
{
    char *folder = folder_new();
    struct watchdog watchdog = {.stall_ms = 1000};
    uint64_t now_us = 5000000;
    append_step(folder, 1);
    CHECK(!looks(&watchdog, folder, &now_us, 500));
    now_us += 60000000;
    CHECK(!looks(&watchdog, folder, &now_us, 900));
    CHECK(looks(&watchdog, folder, &now_us, 300));
    folder_free(folder);
}

TEST(nobody_watches_unless_asked_to)
{
    struct watchdog watchdog = {0};
    uint64_t now_us = 5000000;
    CHECK(!looks(&watchdog, "/nonexistent", &now_us, 60000));
    CHECK_INT(watchdog_next_us(&watchdog), 0);
}
