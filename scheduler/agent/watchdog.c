/* watchdog.c - sizes of what a task writes, and the last step in its event files. */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/record.h"
#include "proto/tfevent.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/program.h"
#include "scheduler/agent/watchdog.h"

#define LOOKS 10 /* in the time that it may write nothing */
#define LOOK_US_MAX 10000000
#define LATE_US 2000000 /* a look so much later than it was to be: this process stood still */
#define EVENTS_BYTES_MAX (INT64_C(256) << 20) /* of a file that is read for its last step */

static uint64_t look_us(const struct watchdog *watchdog)
{
    uint64_t us = (uint64_t)watchdog->stall_ms * 1000 / LOOKS;
    return us < LOOK_US_MAX ? us : LOOK_US_MAX;
}

/* --- what it has written --- */

static bool is_events(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "events.out.tfevents.", 20) == 0;
}

struct sizes {
    const char *folder;
    int64_t bytes;
};

static bool add_size(void *self, const char *path, bool is_folder)
{
    struct sizes *sizes = self;
    struct stat info;
    if (is_folder)
        return !*path || strncmp(path, PROGRAM_OUT, strlen(PROGRAM_OUT)) == 0;
    if (!is_events(path) && strcmp(path, "stdout.log") != 0 && strcmp(path, "stderr.log") != 0)
        return true;
    int fd = files_open_below(sizes->folder, path);
    if (fd >= 0 && fstat(fd, &info) == 0)
        sizes->bytes += info.st_size;
    if (fd >= 0)
        close(fd);
    return true;
}

uint64_t watchdog_next_us(const struct watchdog *watchdog)
{
    return watchdog->stall_ms ? watchdog->looked_us + look_us(watchdog) : 0;
}

bool watchdog_look(struct watchdog *watchdog, const char *folder, uint64_t now_us)
{
    if (!watchdog->stall_ms || now_us < watchdog_next_us(watchdog))
        return false;
    struct sizes sizes = {.folder = folder};
    files_walk(folder, "", add_size, &sizes);
    bool late = now_us > watchdog_next_us(watchdog) + LATE_US;
    if (!watchdog->looked_us || late || sizes.bytes != watchdog->bytes)
        watchdog->moved_us = now_us;
    watchdog->bytes = sizes.bytes;
    watchdog->looked_us = now_us;
    return now_us - watchdog->moved_us >= (uint64_t)watchdog->stall_ms * 1000;
}

/* --- the last step --- */

static void read_steps(const char *bytes, size_t size, int64_t *step)
{
    struct error err;
    const void *data;
    size_t data_size, used;
    struct arena *arena = arena_new_limited(LIMIT_CONTROL_MESSAGE_BYTES);
    for (size_t at = 0; at < size; at += used) {
        struct tfevent event;
        if (record_parse(bytes + at, size - at, (int64_t)at, &data, &data_size, &used, &err) !=
            RECORD_OK)
            break;
        if (tfevent_parse(data, data_size, arena, &event, &err) &&
            event.kind == TFEVENT_SUMMARY && event.step > *step)
            *step = event.step;
        arena_clear(arena);
    }
    arena_free(arena);
}

struct last {
    const char *folder;
    int64_t step;
};

static bool read_file(void *self, const char *path, bool is_folder)
{
    struct last *last = self;
    struct stat info;
    if (is_folder)
        return !*path || strncmp(path, PROGRAM_OUT, strlen(PROGRAM_OUT)) == 0;
    int fd = is_events(path) ? files_open_below(last->folder, path) : -1;
    if (fd < 0)
        return true;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size <= EVENTS_BYTES_MAX) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            read_steps(bytes, (size_t)info.st_size, &last->step);
            munmap(bytes, (size_t)info.st_size);
        }
    }
    close(fd);
    return true;
}

void watchdog_text(const struct watchdog *watchdog, const char *folder, char *out,
                   size_t out_size)
{
    struct last last = {.folder = folder, .step = -1};
    files_walk(folder, "", read_file, &last);
    int used = snprintf(out, out_size, "it hangs: %s for %g s (stop.stall_seconds)",
                        last.step < 0 ? "nothing was written" : "no step",
                        (double)watchdog->stall_ms / 1000);
    if (last.step >= 0 && used > 0 && (size_t)used < out_size)
        snprintf(out + used, out_size - (size_t)used, "; the last was step %lld",
                 (long long)last.step);
}
