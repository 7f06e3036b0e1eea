/* summary_writer.c - the event file behind a resource. */

#include "kernels/io/summary_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "proto/record.h"
#include "proto/tfevent.h"
#include "runtime/resource.h"

#define BUFFER_MAX (1 << 20)

struct summary_writer {
    struct resource resource; /* first */
    pthread_mutex_t lock;     /* guards: all below */
    int fd;                   /* -1: no file */
    char *path;
    struct str buffer;
    int64_t queued, queue_max;
    int64_t flush_us;
    uint64_t written_us;
};

static bool io_error(struct error *err, const char *what, const char *path)
{
    enum error_code code = errno == ENOENT                       ? NOT_FOUND
                           : errno == ENOSPC || errno == EDQUOT  ? EXHAUSTED
                           : errno == ENOTDIR || errno == EEXIST ? PRECONDITION
                           : errno == EACCES || errno == EPERM   ? DENIED
                                                                 : UNKNOWN;
    return error_errno(err, code, "cannot %s %s", what, path);
}

/* What could not be written is kept for the next time, up to a limit. */
static bool flush_locked(struct summary_writer *writer, struct error *err)
{
    size_t done = 0;
    bool ok = true;
    while (ok && done < writer->buffer.size) {
        ssize_t n = write(writer->fd, writer->buffer.data + done, writer->buffer.size - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            ok = io_error(err, "write the event file", writer->path);
    }
    str_drop(&writer->buffer, done);
    if (ok)
        writer->queued = 0;
    writer->written_us = clock_monotonic_us();
    return ok;
}

static bool close_locked(struct summary_writer *writer, struct error *err)
{
    bool ok = flush_locked(writer, err);
    if (close(writer->fd) != 0 && ok)
        ok = io_error(err, "close the event file", writer->path);
    writer->fd = -1;
    free(writer->path);
    writer->path = NULL;
    str_release(&writer->buffer);
    writer->queued = 0;
    return ok;
}

static void writer_destroy(struct resource *resource)
{
    struct summary_writer *writer = (struct summary_writer *)resource;
    struct error err;
    char quoted[1024];
    /* Nobody waits for an answer any more. */
    if (writer->fd >= 0 && !close_locked(writer, &err))
        log_line(LOG_WARN, "summaries", "msg=%s", log_quote(err.text, quoted, sizeof(quoted)));
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

struct resource *kernel_summary_writer_new(void)
{
    struct summary_writer *writer = alloc_bytes(sizeof(*writer));
    writer->resource = (struct resource){
        .kind = SUMMARY_WRITER_KIND, .references = 1, .destroy = writer_destroy};
    writer->fd = -1;
    pthread_mutex_init(&writer->lock, NULL);
    return &writer->resource;
}

/* --- opening --- */

/* With all folders on the way. */
static bool make_folders(const char *folder, struct error *err)
{
    char *path = alloc_text(folder);
    struct stat there;
    bool ok = true;
    for (char *c = path + 1; ok && *path && c[-1]; c++) {
        char end = *c;
        if (end && end != '/')
            continue;
        *c = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            ok = io_error(err, "make the folder", path);
        *c = end;
    }
    if (ok && stat(folder, &there) != 0)
        ok = io_error(err, "find the folder", folder);
    else if (ok && !S_ISDIR(there.st_mode))
        ok = fail(err, PRECONDITION, "%s is no folder", folder);
    free(path);
    return ok;
}

/* events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER.SUFFIX, as nobody else's is named. */
static char *new_path(const struct summary_writer_place *place)
{
    static uint64_t count; /* __atomic */
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c; c++) {
        if (*c == '/')
            *c = '_';
    }
    return alloc_printf("%s/events.out.tfevents.%010llu.%s.%d.%llu%s%s", place->folder,
                        (unsigned long long)(clock_wall_us() / 1000000), *host ? host : "host",
                        (int)getpid(),
                        (unsigned long long)__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED),
                        place->suffix[0] == '.' ? "" : ".", place->suffix);
}

static bool open_locked(struct summary_writer *writer, const struct summary_writer_place *place,
                        struct error *err)
{
    if (!place->folder[0])
        return fail(err, INVALID, "logdir must not be empty");
    if (!make_folders(place->folder, err))
        return false;
    writer->path = new_path(place);
    writer->fd = open(writer->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (writer->fd < 0) {
        io_error(err, "make the event file", writer->path);
        free(writer->path);
        writer->path = NULL;
        return false;
    }
    writer->queue_max = place->queue_max;
    writer->flush_us = place->flush_us;
    tfevent_add_version(&writer->buffer, (double)clock_wall_us() / 1e6, "trainyard");
    struct error late;
    return flush_locked(writer, err) || (close_locked(writer, &late), false);
}

bool kernel_summary_writer_open(struct resource *resource,
                                const struct summary_writer_place *place, struct error *err)
{
    struct summary_writer *writer = (struct summary_writer *)resource;
    pthread_mutex_lock(&writer->lock);
    bool ok = writer->fd >= 0 || open_locked(writer, place, err);
    pthread_mutex_unlock(&writer->lock);
    return ok;
}

/* --- writing --- */

static bool no_file(struct error *err)
{
    return fail(err, NOT_FOUND,
                "Resource of kind %s does not exist: the writer was not created, "
                "or was closed",
                SUMMARY_WRITER_KIND);
}

static bool add_locked(struct summary_writer *writer, const void *data, size_t size,
                       struct error *err)
{
    if (writer->fd < 0)
        return no_file(err);
    /* Nobody sees to what a full disk keeps from being written. */
    if (writer->buffer.size > BUFFER_MAX && !flush_locked(writer, err))
        return false;
    record_add(&writer->buffer, data, size);
    writer->queued++;
    bool due = writer->queued > writer->queue_max || writer->buffer.size > BUFFER_MAX ||
               (int64_t)(clock_monotonic_us() - writer->written_us) > writer->flush_us;
    return !due || flush_locked(writer, err);
}

bool kernel_summary_writer_is_open(struct resource *resource)
{
    struct summary_writer *writer = (struct summary_writer *)resource;
    pthread_mutex_lock(&writer->lock);
    bool is_open = writer->fd >= 0;
    pthread_mutex_unlock(&writer->lock);
    return is_open;
}

bool kernel_summary_writer_add(struct resource *resource, const void *data, size_t size,
                               struct error *err)
{
    struct summary_writer *writer = (struct summary_writer *)resource;
    pthread_mutex_lock(&writer->lock);
    bool ok = add_locked(writer, data, size, err);
    pthread_mutex_unlock(&writer->lock);
    return ok;
}

bool kernel_summary_writer_flush(struct resource *resource, struct error *err)
{
    struct summary_writer *writer = (struct summary_writer *)resource;
    pthread_mutex_lock(&writer->lock);
    bool ok = writer->fd >= 0 ? flush_locked(writer, err) : no_file(err);
    pthread_mutex_unlock(&writer->lock);
    return ok;
}

bool kernel_summary_writer_close(struct resource *resource, struct error *err)
{
    struct summary_writer *writer = (struct summary_writer *)resource;
    pthread_mutex_lock(&writer->lock);
    bool ok = writer->fd >= 0 ? close_locked(writer, err) : no_file(err);
    pthread_mutex_unlock(&writer->lock);
    return ok;
}
