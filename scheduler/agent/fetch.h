/*
 * fetch.h - one file from the server, piece by piece.
 *
 * It is written beside its name and gets that when it is whole; nothing of a file that was
 * broken off is used.
 */
#pragma once

#include "base/base.h"
#include "proto/agent_pb.h"

struct error;
struct fetch;
struct link;

enum fetch_result {
    FETCH_DONE,
    FETCH_MORE,   /* there is more of it */
    FETCH_LATER,  /* others are to be waited for */
    FETCH_ABSENT, /* the server does not answer, `err` says why */
    FETCH_FAILED, /* it cannot be had, `err` says why */
};

struct fetch_file {
    struct agent_fetch_what what;
    const char *path;   /* where it is put; folders above it are made */
    const char *sha256; /* what it must be, or NULL */
    int64_t size;       /* likewise; -1: any */
    bool executable;    /* it may be run */
    bool kept;          /* for later tasks, too: what has its name outlives a power cut */
};

struct fetch *fetch_new(void);
void fetch_free(struct fetch *fetch); /* NULL is fine */

/*
 * Does a piece of `file`, which must be the same until the result is FETCH_DONE or
 * FETCH_FAILED; then another may begin.
 */
enum fetch_result fetch_piece(struct fetch *fetch, const struct fetch_file *file,
                              struct link *link, const struct agent_task_ref *task,
                              struct error *err);

/* What has come by now, of all files. */
int64_t fetch_bytes(const struct fetch *fetch);

/* What a call that failed means: whether to ask again (FETCH_ABSENT). */
enum fetch_result fetch_call_failed(const struct error *err);
