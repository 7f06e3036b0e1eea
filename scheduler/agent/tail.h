/*
 * tail.h - ships what a task writes, byte for byte, to the server.
 *
 * The cursor of a file is what the server has stored of it; after a restart the server is
 * asked. The server may take less than it is given (an event file is stored by whole records):
 * the rest is sent again when there is more.
 */
#pragma once

#include "base/base.h"

struct agent_task_ref;
struct error;
struct link;
struct tail;

enum tail_result {
    TAIL_DONE,  /* all that can be shipped now is stored by the server */
    TAIL_MORE,  /* there is more; it is another attempt's turn */
    TAIL_LATER, /* the server cannot take it now */
    TAIL_FENCED /* the session is over: join again */
};

/*
 * The files in `folder` of one attempt: its output, and its event files, of a program those
 * anywhere below out/.  `fresh` when the server cannot have any of them.
 */
struct tail *tail_new(const char *folder, bool program, bool fresh);
void tail_free(struct tail *tail); /* NULL is fine */

/*
 * Also what is in `folder` below it, a copy of the job's checkpoints (mirror.h, with its
 * `settles`).  What event files tell is shipped when the checkpoints are that it may name.
 */
void tail_mirror(struct tail *tail, const char *folder, bool settles);

/* When to ship again whatever happens (monotonic, microseconds); 0: not for time. */
uint64_t tail_again_us(const struct tail *tail);

/* Has `inotify` watch the folders that are looked into, from now on. */
void tail_watch(struct tail *tail, int inotify);
bool tail_watches(const struct tail *tail, int watch);

/* The task has ended: what a program has left in out/artifacts/ is shipped too. */
void tail_end(struct tail *tail);

/* Ships what is new.  `err` says why when the result is TAIL_LATER or TAIL_FENCED. */
enum tail_result tail_ship(struct tail *tail, struct link *link,
                           const struct agent_task_ref *task, struct error *err);

/* Why a file was given up (the server refuses its bytes), or "". */
const char *tail_complaint(const struct tail *tail);
