/* tail.c - cursors over the files of an attempt. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/tail.h"

#define BATCH_BYTES_MAX                                                                        \
    (LIMIT_CONTROL_MESSAGE_BYTES - (64 << 10)) /* room for the rest of a message */
#define BATCHES_A_TURN 8
#define FILES_MAX 64

struct tail_file {
    char *name;
    int64_t cursor; /* -1: the server must be asked */
    int64_t tried;  /* size of the file when the server last took nothing of it, -1 */
    size_t batch_bytes;
    bool given_up;
};

struct tail {
    char *folder;
    bool fresh;
    struct tail_file files[FILES_MAX];
    int files_count;
    char complaint[600];
};

struct tail *tail_new(const char *folder, bool fresh)
{
    struct tail *tail = alloc_bytes(sizeof(*tail));
    tail->folder = alloc_text(folder);
    tail->fresh = fresh;
    return tail;
}

void tail_free(struct tail *tail)
{
    if (!tail)
        return;
    for (int i = 0; i < tail->files_count; i++)
        free(tail->files[i].name);
    free(tail->folder);
    free(tail);
}

const char *tail_complaint(const struct tail *tail)
{
    return tail->complaint;
}

static bool is_shipped(const char *name)
{
    return strcmp(name, "stdout.log") == 0 || strcmp(name, "stderr.log") == 0 ||
           strncmp(name, "events.out.tfevents.", 20) == 0;
}

/* Finds files that have appeared. */
static void tail_look(struct tail *tail)
{
    DIR *folder = opendir(tail->folder);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) && tail->files_count < FILES_MAX) {
        bool known = !is_shipped(entry->d_name);
        for (int i = 0; i < tail->files_count && !known; i++)
            known = strcmp(tail->files[i].name, entry->d_name) == 0;
        if (known)
            continue;
        struct tail_file *file = &tail->files[tail->files_count++];
        file->name = alloc_text(entry->d_name);
        file->cursor = tail->fresh ? 0 : -1;
        file->tried = -1;
        file->batch_bytes = LIMIT_SHIP_BYTES;
    }
    if (folder)
        closedir(folder);
}

static void tail_give_up(struct tail *tail, struct tail_file *file, const char *why)
{
    file->given_up = true;
    if (!tail->complaint[0])
        snprintf(tail->complaint, sizeof(tail->complaint), "%.80s: %.500s", file->name, why);
}

/* What a failed call means for the file. */
static enum tail_result tail_failed(struct tail *tail, struct tail_file *file,
                                    const struct error *err)
{
    switch (err->code) {
    case PRECONDITION:
    case UNAUTHENTICATED:
        return TAIL_FENCED;
    case INVALID:
    case DENIED:
    case NOT_FOUND:
    case OUT_OF_RANGE:
    case DATA_LOSS:
    case UNIMPLEMENTED: /* these bytes will never be taken */
        tail_give_up(tail, file, err->text);
        return TAIL_DONE;
    default:
        return TAIL_LATER;
    }
}

/*
 * The server has stored up to `stored`; sets what comes next.  False when that is less than it
 * once had: it keeps the start of a record in memory, and has lost it.
 */
static bool tail_advance(struct tail *tail, struct tail_file *file, int64_t stored,
                         int64_t size, size_t sent, struct error *err)
{
    bool lost = stored < file->cursor;
    if (stored != file->cursor) {
        file->batch_bytes = LIMIT_SHIP_BYTES;
        file->tried = -1;
    } else if (file->cursor + (int64_t)sent >= size) {
        file->tried = size; /* the start of something: wait for the rest of it */
    } else if (file->batch_bytes < BATCH_BYTES_MAX) {
        file->batch_bytes *= 2;
        if (file->batch_bytes > BATCH_BYTES_MAX)
            file->batch_bytes = BATCH_BYTES_MAX;
    } else {
        tail_give_up(tail, file, "a record is too large to be shipped");
    }
    file->cursor = stored;
    return !lost || fail(err, UNAVAILABLE,
                         "%s: the server has lost the start of a record, which is said again",
                         file->name);
}

static enum tail_result tail_ship_file(struct tail *tail, struct tail_file *file, int fd,
                                       struct link *link, const struct agent_task_ref *task,
                                       struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        tail_give_up(tail, file, "not a file");
        return TAIL_DONE;
    }
    int64_t stored = file->cursor;
    if (stored < 0 && !link_ship(link, task, file->name, 0, NULL, 0, &stored, err))
        return tail_failed(tail, file, err);
    file->cursor = stored;
    char *bytes = NULL;
    enum tail_result result = TAIL_DONE;
    int batches = 0;
    while (!file->given_up && file->cursor < info.st_size && file->tried != info.st_size) {
        if (batches++ == BATCHES_A_TURN) {
            result = TAIL_MORE;
            break;
        }
        int64_t rest = info.st_size - file->cursor;
        size_t size = rest < (int64_t)file->batch_bytes ? (size_t)rest : file->batch_bytes;
        bytes = alloc_resize(bytes, size);
        ssize_t got = pread(fd, bytes, size, file->cursor);
        if (got <= 0) {
            tail_give_up(tail, file, got < 0 ? strerror(errno) : "it was cut short");
            break;
        }
        if (!link_ship(link, task, file->name, file->cursor, bytes, (size_t)got, &stored,
                       err)) {
            result = tail_failed(tail, file, err);
            break;
        }
        if (stored < 0 || stored > file->cursor + (int64_t)got) {
            tail_give_up(tail, file, "the server has more of it than there is");
            break;
        }
        if (!tail_advance(tail, file, stored, info.st_size, (size_t)got, err)) {
            result = TAIL_LATER; /* a server that goes on losing it is asked ever less often */
            break;
        }
    }
    free(bytes);
    return result;
}

enum tail_result tail_ship(struct tail *tail, struct link *link,
                           const struct agent_task_ref *task, struct error *err)
{
    enum tail_result worst = TAIL_DONE;
    tail_look(tail);
    for (int i = 0; i < tail->files_count && worst <= TAIL_MORE; i++) {
        struct tail_file *file = &tail->files[i];
        if (file->given_up)
            continue;
        int folder = open(tail->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd = openat(folder, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (folder >= 0)
            close(folder);
        if (fd < 0) {
            tail_give_up(tail, file, strerror(errno));
            continue;
        }
        enum tail_result result = tail_ship_file(tail, file, fd, link, task, err);
        close(fd);
        if (result > worst)
            worst = result;
    }
    return worst;
}
