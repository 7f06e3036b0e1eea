/* events.c - records of an attempt, gathered and written to its event file. */

#include "runtime/events.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/str.h"

#define EVENTS_DELAY_US 50000
#define EVENTS_BUFFER_BYTES 65536

struct events {
    int fd;
    char *path;
    struct str buffer;
    uint64_t written_us; /* when the last write was */
    struct error error;  /* the first failure; code OK until then */
};

static double now(void)
{
    return (double)clock_wall_us() / 1e6;
}

static bool write_error(struct events *events)
{
    enum error_code code = errno == ENOSPC || errno == EDQUOT ? EXHAUSTED : UNKNOWN;
    return error_errno(&events->error, code, "cannot write the event file %s", events->path);
}

static bool write_all(struct events *events)
{
    size_t done = 0;
    failpoint("task.before_events");
    while (done < events->buffer.size) {
        ssize_t n = write(events->fd, events->buffer.data + done, events->buffer.size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            str_drop(&events->buffer, done);
            return write_error(events);
        }
        done += (size_t)n;
    }
    failpoint("task.after_events");
    str_clear(&events->buffer);
    events->written_us = clock_monotonic_us();
    return true;
}

bool events_flush(struct events *events, struct error *err)
{
    if (events->error.code == EXHAUSTED)
        events->error.code = OK; /* there may be room by now */
    if (events->error.code == OK && (!events->buffer.size || write_all(events)))
        return true;
    *err = events->error;
    return false;
}

bool events_flush_due(struct events *events, struct error *err)
{
    if (!events->buffer.size && events->error.code == OK)
        return true;
    if (events->buffer.size < EVENTS_BUFFER_BYTES &&
        clock_monotonic_us() - events->written_us < EVENTS_DELAY_US)
        return true;
    return events_flush(events, err);
}

static char *new_path(const char *folder)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c; c++) {
        if (*c == '/')
            *c = '_';
    }
    return alloc_printf("%s/events.out.tfevents.%llu.%s.%d", folder,
                        (unsigned long long)(clock_wall_us() / 1000000), *host ? host : "host",
                        (int)getpid());
}

struct events *events_open(const char *folder, struct error *err)
{
    struct events *events = alloc_bytes(sizeof(*events));
    events->path = new_path(folder);
    events->fd = open(events->path, O_WRONLY | O_CREAT | O_APPEND | O_EXCL | O_CLOEXEC, 0644);
    for (int i = 1; events->fd < 0 && errno == EEXIST && i < 100; i++) {
        /* A second run of one process within a second. */
        char *next = new_path(folder);
        free(events->path);
        events->path = alloc_printf("%s.%d", next, i);
        free(next);
        events->fd =
            open(events->path, O_WRONLY | O_CREAT | O_APPEND | O_EXCL | O_CLOEXEC, 0644);
    }
    if (events->fd < 0) {
        enum error_code code = errno == ENOENT                      ? NOT_FOUND
                               : errno == ENOSPC || errno == EDQUOT ? EXHAUSTED
                                                                    : DENIED;
        error_errno(err, code, "cannot make the event file %s", events->path);
        events_discard(events);
        return NULL;
    }
    tfevent_add_version(&events->buffer, now(), "trainyard");
    if (!events_flush(events, err)) {
        events_discard(events);
        return NULL;
    }
    return events;
}

const char *events_path(const struct events *events)
{
    return events->path;
}

void events_session(struct events *events, int64_t step, enum tfevent_status status,
                    const char *checkpoint_path)
{
    tfevent_add_session(&events->buffer, now(), step, status, checkpoint_path);
}

void events_run(struct events *events, int64_t step, const char *json)
{
    tfevent_add_text(&events->buffer, now(), step, "trainyard/run", "text", json, strlen(json));
}

void events_graph(struct events *events, const void *graph_def, size_t size)
{
    tfevent_add_graph(&events->buffer, now(), graph_def, size);
}

void events_placement(struct events *events, int64_t step, const char *json)
{
    tfevent_add_text(&events->buffer, now(), step, "trainyard/placement", "text", json,
                     strlen(json));
}

void events_times(struct events *events, int64_t step, const char *json)
{
    tfevent_add_text(&events->buffer, now(), step, "trainyard/times", "text", json,
                     strlen(json));
}

void events_notice(struct events *events, int64_t step, const char *text)
{
    tfevent_add_text(&events->buffer, now(), step, "trainyard/notice", "text", text,
                     strlen(text));
}

void events_scalars(struct events *events, int64_t step, const struct tfevent_scalar *scalars,
                    int scalars_count)
{
    tfevent_add_scalars(&events->buffer, now(), step, scalars, scalars_count);
}

void events_trace(struct events *events, int64_t step, const void *metadata, size_t size)
{
    char tag[40];
    snprintf(tag, sizeof(tag), "step_%lld", (long long)step);
    tfevent_add_run_metadata(&events->buffer, now(), step, tag, metadata, size);
}

bool events_close(struct events *events, struct error *err)
{
    if (!events)
        return true;
    bool ok = events_flush(events, err);
    if (ok && fsync(events->fd) && errno != EINVAL) {
        write_error(events);
        *err = events->error;
        ok = false;
    }
    events_discard(events);
    return ok;
}

void events_discard(struct events *events)
{
    if (!events)
        return;
    if (events->fd >= 0)
        close(events->fd);
    str_release(&events->buffer);
    free(events->path);
    free(events);
}
