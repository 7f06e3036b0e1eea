/* capture.c - pipe to file, with a limit. */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "scheduler/shim/capture.h"

#define TURN_BYTES (1 << 20)

int capture_open(struct capture *capture, const char *name, int64_t limit,
                 const struct mask *mask)
{
    int ends[2];
    *capture = (struct capture){.pipe = -1, .file = -1, .limit = limit, .mask = mask};
    capture->tail = malloc(CAPTURE_TAIL_BYTES);
    if (!capture->tail || pipe2(ends, O_CLOEXEC))
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    capture->pipe = ends[0];
    capture->file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return ends[1];
}

/* Writes what the disk takes; returns how many bytes that was. */
static size_t file_write(struct capture *capture, const char *bytes, size_t size)
{
    size_t done = 0;
    while (capture->file >= 0 && done < size) {
        ssize_t n = write(capture->file, bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    capture->size += (int64_t)done;
    return done;
}

/* Takes bytes that may be seen. */
static void capture_add(void *self, const char *bytes, size_t size)
{
    struct capture *capture = self;
    if (!capture->overflow) {
        int64_t room = capture->limit - capture->size;
        size_t fits = room <= 0 ? 0 : (size_t)room < size ? (size_t)room : size;
        size_t written = file_write(capture, bytes, fits);
        bytes += written;
        size -= written;
    }
    for (size_t i = 0; i < size; i++)
        capture->tail[(size_t)(capture->overflow + (int64_t)i) % CAPTURE_TAIL_BYTES] = bytes[i];
    capture->overflow += (int64_t)size;
}

void capture_read(struct capture *capture)
{
    static char buffer[65536];
    for (size_t taken = 0; capture->pipe >= 0 && taken < TURN_BYTES;) {
        ssize_t n = read(capture->pipe, buffer, sizeof(buffer));
        if (n > 0) {
            mask_take(capture->mask, &capture->masked, buffer, (size_t)n, capture_add, capture);
            taken += (size_t)n;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            close(capture->pipe);
            capture->pipe = -1;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

void capture_close(struct capture *capture)
{
    /* All writers are gone, so a pipe's worth is the most there can be. */
    capture_read(capture);
    if (capture->pipe >= 0)
        close(capture->pipe);
    if (capture->mask)
        mask_end(capture->mask, &capture->masked, capture_add, capture);
    int64_t kept =
        capture->overflow < CAPTURE_TAIL_BYTES ? capture->overflow : CAPTURE_TAIL_BYTES;
    if (capture->overflow > kept) {
        char marker[80];
        int length = snprintf(marker, sizeof(marker), "\n[trainyard: %lld bytes dropped]\n",
                              (long long)(capture->overflow - kept));
        file_write(capture, marker, (size_t)length);
    }
    for (int64_t at = capture->overflow - kept; at < capture->overflow;) {
        size_t start = (size_t)at % CAPTURE_TAIL_BYTES;
        size_t run = CAPTURE_TAIL_BYTES - start;
        if ((int64_t)run > capture->overflow - at)
            run = (size_t)(capture->overflow - at);
        file_write(capture, capture->tail + start, run);
        at += (int64_t)run;
    }
    if (capture->file >= 0) {
        fsync(capture->file);
        close(capture->file);
    }
    free(capture->tail);
    *capture = (struct capture){.pipe = -1, .file = -1};
}
