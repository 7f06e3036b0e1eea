/* mirror.c - what has changed in a folder goes to the server. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/path.h"
#include "scheduler/agent/bring.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/mirror.h"

#define PIECES_A_TURN 8
#define SETTLED_US 1000000
#define SHIPPED "shipped.list" /* in the attempt's folder: a line for each name */
#define UNKNOWN_SIZE (-1)      /* of a file that the server may have, in some form */

struct entry {
    char *path;
    int64_t size;
    int64_t mtime_ns;
};

struct entries {
    struct entry *list;
    int count;
    int capacity;
};

struct mirror {
    char *attempt_folder;
    char *folder;
    bool settles;
    struct entries known; /* what the server has */
    struct entry sending; /* path NULL: none */
    int fd;               /* of it, -1 */
    int64_t offset;
    uint64_t again_us;
    char complaint[600];
};

/* --- entries --- */

static void entries_release(struct entries *entries)
{
    for (int i = 0; i < entries->count; i++)
        free(entries->list[i].path);
    free(entries->list);
    *entries = (struct entries){0};
}

static struct entry *entries_add(struct entries *entries, const char *path)
{
    entries->list =
        alloc_grow(entries->list, entries->count, &entries->capacity, sizeof(*entries->list));
    entries->list[entries->count] = (struct entry){.path = alloc_text(path)};
    return &entries->list[entries->count++];
}

static struct entry *entries_find(const struct entries *entries, const char *path)
{
    for (int i = 0; i < entries->count; i++) {
        if (strcmp(entries->list[i].path, path) == 0)
            return &entries->list[i];
    }
    return NULL;
}

static void entry_set(struct entry *entry, const struct stat *info)
{
    entry->size = info->st_size;
    entry->mtime_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static bool entry_is(const struct entry *entry, const struct entry *other)
{
    return entry && entry->size == other->size && entry->mtime_ns == other->mtime_ns;
}

static void known_set(struct mirror *mirror, const struct entry *now)
{
    struct entry *entry = entries_find(&mirror->known, now->path);
    if (!entry)
        entry = entries_add(&mirror->known, now->path);
    entry->size = now->size;
    entry->mtime_ns = now->mtime_ns;
}

/* --- life --- */

bool mirror_wants(const char *path)
{
    if (strcmp(path, "epoch") == 0 || strcmp(path, "lock") == 0 || strstr(path, ".tmp-"))
        return false;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t size = strcspn(part, "/");
        if (part[0] == '.' || (size >= 4 && strncmp(part + size - 4, ".tmp", 4) == 0))
            return false;
    }
    return true;
}

struct mirror *mirror_new(const char *attempt_folder, const char *folder, bool settles)
{
    struct mirror *mirror = alloc_bytes(sizeof(*mirror));
    mirror->attempt_folder = alloc_text(attempt_folder);
    mirror->folder = alloc_text(folder);
    mirror->settles = settles;
    mirror->fd = -1;
    return mirror;
}

static void sending_end(struct mirror *mirror)
{
    if (mirror->fd >= 0)
        close(mirror->fd);
    mirror->fd = -1;
    free(mirror->sending.path);
    mirror->sending = (struct entry){0};
}

void mirror_free(struct mirror *mirror)
{
    if (!mirror)
        return;
    sending_end(mirror);
    entries_release(&mirror->known);
    free(mirror->attempt_folder);
    free(mirror->folder);
    free(mirror);
}

uint64_t mirror_again_us(const struct mirror *mirror)
{
    return mirror->again_us;
}

const char *mirror_complaint(const struct mirror *mirror)
{
    return mirror->complaint;
}

/* What came from the server, and what an earlier agent may have shipped.  Read whenever nothing
 * is known: the task may not have been prepared when the mirror was made. */
static void known_read(struct mirror *mirror)
{
    struct error none;
    const char *path;
    json_t *one, *list = files_read_json(mirror->attempt_folder, BRING_LIST, &none);
    json_object_foreach(list, path, one)
    {
        const struct entry entry = {(char *)path, files_int(one, "size"),
                                    files_int(one, "mtime_ns")};
        known_set(mirror, &entry);
    }
    json_decref(list);
    char *name = alloc_printf("%s/" SHIPPED, mirror->attempt_folder), line[PATH_BYTES_MAX + 2];
    FILE *file = fopen(name, "re");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        const struct entry entry = {line, UNKNOWN_SIZE, 0};
        if (path_is_below(line))
            known_set(mirror, &entry);
    }
    if (file)
        fclose(file);
    free(name);
}

/* The server may have the file from now on, whether its answer comes or not: should the task
 * remove it, that is told, by a later agent as well. */
static bool known_note(struct mirror *mirror, const char *path, struct error *err)
{
    if (entries_find(&mirror->known, path))
        return true;
    char *name = alloc_printf("%s/" SHIPPED, mirror->attempt_folder);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool ok = (fd >= 0 && dprintf(fd, "%s\n", path) > 0) ||
              error_errno(err, INTERNAL, "cannot write %s", name);
    if (fd >= 0)
        close(fd);
    free(name);
    if (ok)
        entries_add(&mirror->known, path)->size = UNKNOWN_SIZE;
    return ok;
}

/* --- what is there --- */

static void refuse(struct mirror *mirror, const char *path, const char *why)
{
    if (!mirror->complaint[0])
        snprintf(mirror->complaint, sizeof(mirror->complaint), MIRROR_NAMES "%.80s: %.480s",
                 path, why);
}

struct looking {
    struct mirror *mirror;
    struct entries found;
};

static bool found_one(void *self, const char *path, bool is_folder)
{
    struct looking *looking = self;
    struct stat info;
    if (*path && !mirror_wants(path))
        return false;
    if (is_folder)
        return true;
    if (!path_is_below(path) || looking->found.count >= LIMIT_CHECKPOINT_FILES) {
        refuse(looking->mirror, path, "left out: such a name, or so many files, are not kept");
        return true;
    }
    char *whole = alloc_printf("%s/%s", looking->mirror->folder, path);
    if (lstat(whole, &info) == 0)
        entry_set(entries_add(&looking->found, path), &info);
    free(whole);
    return true;
}

/* TensorFlow's state files name others that may have been written in the same instant. */
static bool is_state(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcmp(name, "checkpoint") == 0 || strcmp(name, "best") == 0;
}

static int compare_times(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->mtime_ns != y->mtime_ns)
        return x->mtime_ns < y->mtime_ns ? -1 : 1;
    return is_state(x->path) != is_state(y->path) ? is_state(x->path) - is_state(y->path)
                                                  : strcmp(x->path, y->path);
}

/* --- shipping --- */

/* What a failed call means; TAIL_DONE: that file will never be taken. */
static enum tail_result ship_failed(const struct error *err)
{
    if (err->code == PRECONDITION || err->code == UNAUTHENTICATED)
        return TAIL_FENCED;
    if (err->code == ABORTED) /* from its start again */
        return TAIL_MORE;
    return link_is_final(err->code) ? TAIL_DONE : TAIL_LATER;
}

/* Opens the file that was found; false when it is another by now. */
static bool send_begin(struct mirror *mirror, const struct entry *found)
{
    struct stat info;
    struct entry now = {0};
    mirror->fd = files_open_below(mirror->folder, found->path);
    if (mirror->fd < 0 || fstat(mirror->fd, &info) || !S_ISREG(info.st_mode))
        return false;
    entry_set(&now, &info);
    mirror->sending = (struct entry){alloc_text(found->path), now.size, now.mtime_ns};
    mirror->offset = 0;
    return entry_is(found, &now);
}

/* A piece of the file that is being sent. */
static enum tail_result send_piece(struct mirror *mirror, char *bytes, struct link *link,
                                   const struct agent_task_ref *task, struct error *err)
{
    struct stat info;
    struct entry now = {0};
    int64_t cursor, rest = mirror->sending.size - mirror->offset;
    size_t size = rest < LIMIT_SHIP_BYTES ? (size_t)rest : LIMIT_SHIP_BYTES;
    ssize_t got = size ? pread(mirror->fd, bytes, size, mirror->offset) : 0;
    if (got != (ssize_t)size || fstat(mirror->fd, &info))
        return TAIL_MORE; /* it was cut short: what it is now is found anew */
    entry_set(&now, &info);
    if (!entry_is(&mirror->sending, &now))
        return TAIL_MORE;
    bool last = mirror->offset + got == mirror->sending.size;
    if (last && !known_note(mirror, mirror->sending.path, err))
        return TAIL_LATER;
    char *name = alloc_printf(MIRROR_NAMES "%s", mirror->sending.path);
    failpoint("agent.before_mirror");
    bool ok =
        link_ship(link, task, name, mirror->offset, bytes, (size_t)got, last, &cursor, err);
    failpoint("agent.after_mirror");
    free(name);
    if (!ok)
        return ship_failed(err);
    mirror->offset += got;
    return TAIL_DONE;
}

struct turn {
    int pieces; /* sent so far */
    uint64_t until_us;
};

static bool turn_goes_on(const struct turn *turn)
{
    return !turn->pieces ||
           (turn->pieces < PIECES_A_TURN && clock_monotonic_us() < turn->until_us);
}

/* Goes on with the file; TAIL_DONE: the server has it, or will not have it. */
static enum tail_result send_go_on(struct mirror *mirror, struct turn *turn, struct link *link,
                                   const struct agent_task_ref *task, struct error *err)
{
    char *bytes = alloc_bytes(LIMIT_SHIP_BYTES);
    enum tail_result result = TAIL_MORE;
    bool whole = false, refused = false;
    while (!whole && !refused && turn_goes_on(turn)) {
        int64_t before = mirror->offset;
        turn->pieces++;
        result = send_piece(mirror, bytes, link, task, err);
        if (result != TAIL_DONE)
            break;
        whole = mirror->offset == mirror->sending.size;
        refused = !whole && mirror->offset == before;
    }
    free(bytes);
    if (refused)
        refuse(mirror, mirror->sending.path, err->text);
    if (whole || refused)
        known_set(mirror, &mirror->sending);
    if (whole || refused || result != TAIL_DONE)
        sending_end(mirror);
    else
        result = TAIL_MORE; /* another's turn */
    return result;
}

/* Only what is surely gone: a folder that could not be read is no removal. */
static bool is_gone(const struct mirror *mirror, const char *path)
{
    struct stat info;
    char *whole = alloc_printf("%s/%s", mirror->folder, path);
    bool gone = lstat(whole, &info) && (errno == ENOENT || errno == ENOTDIR);
    free(whole);
    return gone;
}

/* What the server has and the task has no more. */
static enum tail_result ship_removals(struct mirror *mirror, const struct entries *found,
                                      struct link *link, const struct agent_task_ref *task,
                                      struct error *err)
{
    for (int i = mirror->known.count - 1; i >= 0; i--) {
        struct entry *known = &mirror->known.list[i];
        if (entries_find(found, known->path) || !is_gone(mirror, known->path))
            continue;
        char *name = alloc_printf(MIRROR_NAMES "%s", known->path);
        bool ok = link_remove(link, task, name, err);
        free(name);
        if (!ok && ship_failed(err) != TAIL_DONE)
            return ship_failed(err);
        free(known->path);
        *known = mirror->known.list[--mirror->known.count];
    }
    return TAIL_DONE;
}

/* The first of `found` that the server does not have; NULL: it has all that have settled. */
static const struct entry *next_of(struct mirror *mirror, const struct entries *found,
                                   bool ended)
{
    int64_t now_ns = (int64_t)clock_wall_us() * 1000;
    mirror->again_us = 0;
    for (int i = 0; i < found->count; i++) {
        const struct entry *entry = &found->list[i];
        if (entry_is(entries_find(&mirror->known, entry->path), entry))
            continue;
        int64_t age_us = (now_ns - entry->mtime_ns) / 1000;
        if (mirror->settles && !ended && age_us >= 0 && age_us < SETTLED_US) {
            /* Later ones wait with it. */
            mirror->again_us = clock_monotonic_us() + (uint64_t)(SETTLED_US - age_us);
            return NULL;
        }
        return entry;
    }
    return NULL;
}

enum tail_result mirror_ship(struct mirror *mirror, bool ended, uint64_t until_us,
                             struct link *link, const struct agent_task_ref *task,
                             struct error *err)
{
    struct turn turn = {.until_us = until_us};
    enum tail_result result = TAIL_DONE;
    if (!mirror->known.count)
        known_read(mirror);
    while (result == TAIL_DONE) {
        struct looking looking = {.mirror = mirror};
        const struct entry *next = NULL;
        if (!mirror->sending.path) {
            files_walk(mirror->folder, "", found_one, &looking);
            if (looking.found.count)
                qsort(looking.found.list, (size_t)looking.found.count,
                      sizeof(*looking.found.list), compare_times);
            next = next_of(mirror, &looking.found, ended);
            if (next && !send_begin(mirror, next)) {
                sending_end(mirror);
                result = TAIL_MORE; /* it is changing: another look */
            } else if (!next) {
                result = ship_removals(mirror, &looking.found, link, task, err);
                entries_release(&looking.found);
                return result;
            }
        }
        entries_release(&looking.found);
        if (result == TAIL_DONE)
            result = send_go_on(mirror, &turn, link, task, err);
    }
    return result;
}
