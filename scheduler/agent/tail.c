/* tail.c - cursors over the files of an attempt. */

#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "scheduler/agent/cursor.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/mirror.h"
#include "scheduler/agent/program.h"
#include "scheduler/agent/tail.h"
#include "scheduler/agent/usage.h"

#define BATCHES_A_TURN 8
#define TURN_US 100000 /* of calls, each of which may wait for the server's disk */
#define EVENT_FILES_MAX 256

struct tail_file {
    char *name;
    struct cursor cursor;
    bool given_up;
    bool artifact; /* shipped once, when it cannot change any more */
    bool done;     /* the server has all of it */
    int64_t seen;  /* of an event file: its size before checkpoints were looked at */
    int64_t may;   /* ... up to there the server has the checkpoints that it may name */
};

struct tail {
    char *folder;
    bool fresh;
    bool program;
    bool ended;
    bool artifacts_seen;
    struct tail_file *files;
    int files_count;
    int files_capacity;
    unsigned turn; /* counts files: where the next turn begins */
    int artifacts_count;
    int64_t artifacts_bytes;
    struct mirror *mirror; /* NULL: the checkpoints are in the server's own folder */
    char *mirrored;        /* its folder, from `folder` */
    int inotify;           /* -1 */
    int *watches;
    int watches_count;
    int watches_capacity;
    char complaint[600];
};

struct tail *tail_new(const char *folder, bool program, bool fresh)
{
    struct tail *tail = alloc_bytes(sizeof(*tail));
    tail->folder = alloc_text(folder);
    tail->fresh = fresh;
    tail->program = program;
    tail->inotify = -1;
    return tail;
}

void tail_free(struct tail *tail)
{
    if (!tail)
        return;
    for (int i = 0; i < tail->watches_count; i++)
        inotify_rm_watch(tail->inotify, tail->watches[i]);
    for (int i = 0; i < tail->files_count; i++)
        free(tail->files[i].name);
    mirror_free(tail->mirror);
    free(tail->mirrored);
    free(tail->watches);
    free(tail->files);
    free(tail->folder);
    free(tail);
}

const char *tail_complaint(const struct tail *tail)
{
    const char *other = tail->mirror ? mirror_complaint(tail->mirror) : "";
    return *tail->complaint ? tail->complaint : other;
}

void tail_mirror(struct tail *tail, const char *folder, bool settles)
{
    char *whole = alloc_printf("%s/%s", tail->folder, folder);
    tail->mirror = mirror_new(tail->folder, whole, settles);
    tail->mirrored = alloc_text(folder);
    free(whole);
}

uint64_t tail_again_us(const struct tail *tail)
{
    return tail->mirror ? mirror_again_us(tail->mirror) : 0;
}

void tail_end(struct tail *tail)
{
    tail->ended = true;
}

/* --- watching --- */

bool tail_watches(const struct tail *tail, int watch)
{
    for (int i = 0; i < tail->watches_count; i++) {
        if (tail->watches[i] == watch)
            return true;
    }
    return false;
}

/* A folder that is watched already keeps its number. */
static void watch_folder(struct tail *tail, const char *path)
{
    if (tail->inotify < 0)
        return;
    char *whole = alloc_printf("%s/%s", tail->folder, path);
    int watch = inotify_add_watch(tail->inotify, whole, IN_CREATE | IN_MODIFY | IN_MOVED_TO);
    free(whole);
    if (watch < 0 || tail_watches(tail, watch))
        return;
    tail->watches = alloc_grow(tail->watches, tail->watches_count, &tail->watches_capacity,
                               sizeof(*tail->watches));
    tail->watches[tail->watches_count++] = watch;
}

void tail_watch(struct tail *tail, int inotify)
{
    tail->inotify = inotify;
    watch_folder(tail, "");
}

/* --- finding --- */

static bool is_events(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "events.out.tfevents.", 20) == 0;
}

static struct tail_file *file_add(struct tail *tail, const char *path)
{
    for (int i = 0; i < tail->files_count; i++) {
        if (strcmp(tail->files[i].name, path) == 0)
            return NULL;
    }
    tail->files =
        alloc_grow(tail->files, tail->files_count, &tail->files_capacity, sizeof(*tail->files));
    struct tail_file *file = &tail->files[tail->files_count++];
    *file = (struct tail_file){.name = alloc_text(path)};
    cursor_init(&file->cursor, tail->fresh);
    return file;
}

/* In the folder itself. */
static bool found_file(void *self, const char *path, bool is_folder)
{
    struct tail *tail = self;
    if (is_folder)
        return !*path; /* not those in it */
    bool output = strcmp(path, "stdout.log") == 0 || strcmp(path, "stderr.log") == 0;
    if (output || (is_events(path) && tail->files_count < EVENT_FILES_MAX))
        (void)file_add(tail, path);
    return true;
}

/* What the agent itself samples. */
static bool found_samples(void *self, const char *path, bool is_folder)
{
    struct tail *tail = self;
    if (!is_folder && is_events(path) && tail->files_count < EVENT_FILES_MAX)
        (void)file_add(tail, path);
    return is_folder && strcmp(path, USAGE_FOLDER) == 0;
}

/* Below out/. */
static bool found_events(void *self, const char *path, bool is_folder)
{
    struct tail *tail = self;
    if (is_folder && strcmp(path, PROGRAM_ARTIFACTS) == 0)
        return false;
    if (is_folder)
        watch_folder(tail, path);
    else if (is_events(path) && tail->files_count < EVENT_FILES_MAX)
        (void)file_add(tail, path);
    return true;
}

static void complain(struct tail *tail, const char *path, const char *why)
{
    if (!tail->complaint[0])
        snprintf(tail->complaint, sizeof(tail->complaint), "%.80s: %.500s", path, why);
}

/* Below out/artifacts/. */
static bool found_artifact(void *self, const char *path, bool is_folder)
{
    struct tail *tail = self;
    struct stat info;
    char *whole = alloc_printf("%s/%s", tail->folder, path);
    bool known = !is_folder && lstat(whole, &info) == 0;
    free(whole);
    if (!known)
        return is_folder;
    if (tail->artifacts_count >= LIMIT_ARTIFACTS ||
        tail->artifacts_bytes + info.st_size > LIMIT_ARTIFACTS_BYTES) {
        complain(tail, path, "left out: the task has too many artifacts, or too large ones");
        return true;
    }
    struct tail_file *file = file_add(tail, path);
    if (!file)
        return true;
    file->artifact = true;
    tail->artifacts_count++;
    tail->artifacts_bytes += info.st_size;
    return true;
}

/* Finds files that have appeared. */
static void tail_look(struct tail *tail)
{
    files_walk(tail->folder, "", found_file, tail);
    files_walk(tail->folder, USAGE_FOLDER, found_samples, tail);
    if (tail->program)
        files_walk(tail->folder, PROGRAM_OUT, found_events, tail);
    if (tail->program && tail->ended && !tail->artifacts_seen) {
        tail->artifacts_seen = true;
        files_walk(tail->folder, PROGRAM_ARTIFACTS, found_artifact, tail);
    }
}

/* --- checkpoints --- */

static bool found_checkpoints(void *self, const char *path, bool is_folder)
{
    if (is_folder)
        watch_folder(self, path);
    return is_folder;
}

/* Whether it may name checkpoints. */
static bool names_checkpoints(const struct tail_file *file)
{
    return is_events(file->name) &&
           strncmp(file->name, USAGE_FOLDER "/", strlen(USAGE_FOLDER "/")) != 0;
}

/* How large the event files are now: what they name is in the folder already. */
static void sizes_note(struct tail *tail)
{
    for (int i = 0; i < tail->files_count; i++) {
        struct tail_file *file = &tail->files[i];
        struct stat info;
        char *path = alloc_printf("%s/%s", tail->folder, file->name);
        if (names_checkpoints(file) && lstat(path, &info) == 0)
            file->seen = info.st_size;
        free(path);
    }
}

static enum tail_result checkpoints_ship(struct tail *tail, uint64_t until_us,
                                         struct link *link, const struct agent_task_ref *task,
                                         struct error *err)
{
    sizes_note(tail);
    files_walk(tail->folder, tail->mirrored, found_checkpoints, tail);
    enum tail_result result = mirror_ship(tail->mirror, tail->ended, until_us, link, task, err);
    for (int i = 0; result == TAIL_DONE && i < tail->files_count; i++)
        tail->files[i].may = tail->files[i].seen;
    return result;
}

/* --- shipping --- */

static void tail_give_up(struct tail *tail, struct tail_file *file, const char *why)
{
    file->given_up = true;
    complain(tail, file->name, why);
}

/* What a failed call means for the file. */
static enum tail_result tail_failed(struct tail *tail, struct tail_file *file,
                                    const struct error *err)
{
    if (err->code == PRECONDITION || err->code == UNAUTHENTICATED)
        return TAIL_FENCED;
    if (!link_is_final(err->code))
        return TAIL_LATER;
    tail_give_up(tail, file, err->text);
    return TAIL_DONE;
}

/* Takes the server's answer; anything but TAIL_DONE or a file given up ends the turn. */
static enum tail_result tail_advance(struct tail *tail, struct tail_file *file, int64_t stored,
                                     int64_t size, size_t sent, struct error *err)
{
    switch (cursor_advance(&file->cursor, stored, size, sent)) {
    case CURSOR_OK:
        break;
    case CURSOR_STUCK:
        tail_give_up(tail, file, "a record is too large to be shipped");
        break;
    case CURSOR_BEYOND:
        tail_give_up(tail, file, "the server has more of it than there is");
        break;
    case CURSOR_LOST: /* a server that goes on losing it is asked ever less often */
        fail(err, UNAVAILABLE,
             "%s: the server has lost the start of a record, which is said again", file->name);
        return TAIL_LATER;
    }
    return TAIL_DONE;
}

static enum tail_result tail_ship_file(struct tail *tail, struct tail_file *file, int fd,
                                       uint64_t until_us, struct link *link,
                                       const struct agent_task_ref *task, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        tail_give_up(tail, file, "not a file");
        return TAIL_DONE;
    }
    int64_t end = info.st_size, stored = file->cursor.at;
    if (tail->mirror && names_checkpoints(file) && file->may < end)
        end = file->may;
    if (stored < 0 && !link_ship(link, task, file->name, 0, NULL, 0, false, &stored, err))
        return tail_failed(tail, file, err);
    file->cursor.at = stored;
    char *bytes = NULL;
    enum tail_result result = TAIL_DONE;
    size_t size;
    int batches = 0;
    while (result == TAIL_DONE && !file->given_up && (size = cursor_next(&file->cursor, end))) {
        if (batches == BATCHES_A_TURN || (batches && clock_monotonic_us() >= until_us)) {
            result = TAIL_MORE;
            break;
        }
        batches++;
        bytes = alloc_resize(bytes, size);
        ssize_t got = pread(fd, bytes, size, file->cursor.at);
        if (got <= 0) {
            tail_give_up(tail, file, got < 0 ? strerror(errno) : "it was cut short");
            break;
        }
        failpoint("agent.before_ship");
        if (!link_ship(link, task, file->name, file->cursor.at, bytes, (size_t)got, false,
                       &stored, err)) {
            result = tail_failed(tail, file, err);
            break;
        }
        failpoint("agent.after_ship");
        result = tail_advance(tail, file, stored, end, (size_t)got, err);
    }
    free(bytes);
    if (file->artifact && result == TAIL_DONE && !file->given_up) {
        file->done =
            link_ship(link, task, file->name, file->cursor.at, NULL, 0, true, &stored, err);
        if (!file->done)
            result = tail_failed(tail, file, err);
    }
    return result;
}

enum tail_result tail_ship(struct tail *tail, struct link *link,
                           const struct agent_task_ref *task, struct error *err)
{
    enum tail_result worst = TAIL_DONE;
    uint64_t until_us = clock_monotonic_us() + TURN_US;
    tail_look(tail);
    if (tail->mirror)
        worst = checkpoints_ship(tail, until_us, link, task, err);
    for (int i = 0; i < tail->files_count && worst <= TAIL_MORE; i++) {
        if (i && clock_monotonic_us() >= until_us)
            return TAIL_MORE;
        struct tail_file *file = &tail->files[tail->turn++ % (unsigned)tail->files_count];
        if (file->given_up || file->done)
            continue;
        int fd = files_open_below(tail->folder, file->name);
        if (fd < 0) {
            tail_give_up(tail, file, strerror(errno));
            continue;
        }
        enum tail_result result = tail_ship_file(tail, file, fd, until_us, link, task, err);
        close(fd);
        if (result > worst)
            worst = result;
    }
    return worst;
}
