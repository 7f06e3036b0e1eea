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

struct tail {
    char *name;
    int64_t cursor; /* -1: the server must be asked */
    int64_t tried;  /* size of the file when the server last took nothing of it, -1 */
    size_t batch_bytes;
    bool given_up;
};

struct tails {
    char *folder;
    bool fresh;
    struct tail files[FILES_MAX];
    int files_count;
    char complaint[600];
};

struct tails *tails_new(const char *folder, bool fresh)
{
    struct tails *tails = alloc_bytes(sizeof(*tails));
    tails->folder = alloc_text(folder);
    tails->fresh = fresh;
    return tails;
}

void tails_free(struct tails *tails)
{
    if (!tails)
        return;
    for (int i = 0; i < tails->files_count; i++)
        free(tails->files[i].name);
    free(tails->folder);
    free(tails);
}

const char *tails_complaint(const struct tails *tails)
{
    return tails->complaint;
}

static bool is_shipped(const char *name)
{
    return strcmp(name, "stdout.log") == 0 || strcmp(name, "stderr.log") == 0 ||
           strncmp(name, "events.out.tfevents.", 20) == 0;
}

/* Finds files that have appeared. */
static void tails_look(struct tails *tails)
{
    DIR *folder = opendir(tails->folder);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) && tails->files_count < FILES_MAX) {
        bool known = !is_shipped(entry->d_name);
        for (int i = 0; i < tails->files_count && !known; i++)
            known = strcmp(tails->files[i].name, entry->d_name) == 0;
        if (known)
            continue;
        struct tail *tail = &tails->files[tails->files_count++];
        tail->name = alloc_text(entry->d_name);
        tail->cursor = tails->fresh ? 0 : -1;
        tail->tried = -1;
        tail->batch_bytes = LIMIT_SHIP_BYTES;
    }
    if (folder)
        closedir(folder);
}

static void tail_give_up(struct tails *tails, struct tail *tail, const char *why)
{
    tail->given_up = true;
    if (!tails->complaint[0])
        snprintf(tails->complaint, sizeof(tails->complaint), "%.80s: %.500s", tail->name, why);
}

/* What a failed call means for the file. */
static enum tail_result tail_failed(struct tails *tails, struct tail *tail,
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
        tail_give_up(tails, tail, err->text);
        return TAIL_DONE;
    default:
        return TAIL_LATER;
    }
}

/* The server has stored up to `stored`; sets what comes next. */
static void tail_advance(struct tails *tails, struct tail *tail, int64_t stored, int64_t size,
                         size_t sent)
{
    if (stored > tail->cursor) {
        tail->batch_bytes = LIMIT_SHIP_BYTES;
        tail->tried = -1;
    } else if (tail->cursor + (int64_t)sent >= size) {
        tail->tried = size; /* the start of something: wait for the rest of it */
    } else if (tail->batch_bytes < BATCH_BYTES_MAX) {
        tail->batch_bytes *= 2;
        if (tail->batch_bytes > BATCH_BYTES_MAX)
            tail->batch_bytes = BATCH_BYTES_MAX;
    } else {
        tail_give_up(tails, tail, "a record is too large to be shipped");
    }
    tail->cursor = stored;
}

static enum tail_result tail_ship_file(struct tails *tails, struct tail *tail, int fd,
                                       struct link *link, const struct agent_task_ref *task,
                                       struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        tail_give_up(tails, tail, "not a file");
        return TAIL_DONE;
    }
    int64_t stored = tail->cursor;
    if (stored < 0 && !link_ship(link, task, tail->name, 0, NULL, 0, &stored, err))
        return tail_failed(tails, tail, err);
    tail->cursor = stored;
    char *bytes = NULL;
    enum tail_result result = TAIL_DONE;
    int batches = 0;
    while (!tail->given_up && tail->cursor < info.st_size && tail->tried != info.st_size) {
        if (batches++ == BATCHES_A_TURN) {
            result = TAIL_MORE;
            break;
        }
        int64_t rest = info.st_size - tail->cursor;
        size_t size = rest < (int64_t)tail->batch_bytes ? (size_t)rest : tail->batch_bytes;
        bytes = alloc_resize(bytes, size);
        ssize_t got = pread(fd, bytes, size, tail->cursor);
        if (got <= 0) {
            tail_give_up(tails, tail, got < 0 ? strerror(errno) : "it was cut short");
            break;
        }
        if (!link_ship(link, task, tail->name, tail->cursor, bytes, (size_t)got, &stored,
                       err)) {
            result = tail_failed(tails, tail, err);
            break;
        }
        if (stored < 0 || stored > tail->cursor + (int64_t)got) {
            tail_give_up(tails, tail, "the server has more of it than there is");
            break;
        }
        tail_advance(tails, tail, stored, info.st_size, (size_t)got);
    }
    free(bytes);
    return result;
}

enum tail_result tails_ship(struct tails *tails, struct link *link,
                            const struct agent_task_ref *task, struct error *err)
{
    enum tail_result worst = TAIL_DONE;
    tails_look(tails);
    for (int i = 0; i < tails->files_count && worst <= TAIL_MORE; i++) {
        struct tail *tail = &tails->files[i];
        if (tail->given_up)
            continue;
        int folder = open(tails->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd = openat(folder, tail->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (folder >= 0)
            close(folder);
        if (fd < 0) {
            tail_give_up(tails, tail, strerror(errno));
            continue;
        }
        enum tail_result result = tail_ship_file(tails, tail, fd, link, task, err);
        close(fd);
        if (result > worst)
            worst = result;
    }
    return worst;
}
