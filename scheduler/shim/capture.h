/*
 * capture.h - what the task prints, from a pipe into a file of bounded size.
 *
 * The task is never made to wait and never fills the disk: what is over the limit is dropped,
 * but for the last CAPTURE_TAIL_BYTES, which say why it ended.  The file then reads
 * "...first part\n[trainyard: N bytes dropped]\nlast part".
 * Secrets are masked before they reach the file.
 */
#pragma once

#include "base/base.h"
#include "scheduler/shim/mask.h"

#define CAPTURE_TAIL_BYTES 65536

struct capture {
    int pipe;         /* read end, non-blocking; -1 at its end */
    int file;         /* -1 when it could not be made: all is dropped */
    int64_t size;     /* of the file */
    int64_t limit;    /* of the file, but for marker and tail */
    int64_t overflow; /* bytes that came after the limit */
    char *tail;       /* ring of the last of these */
    const struct mask *mask;
    struct mask_stream masked; /* what it keeps back */
};

/* Makes the file (in the current folder) and a pipe; returns its write end, or -1.  Borrows
 * `mask`. */
int capture_open(struct capture *capture, const char *name, int64_t limit,
                 const struct mask *mask);

/* Takes what is in the pipe, at most a megabyte a turn. */
void capture_read(struct capture *capture);

/* Takes the rest, writes the marker and the tail if bytes were dropped, and syncs the file. */
void capture_close(struct capture *capture);
