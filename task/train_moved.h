/* train_moved.h - a task that was placed anew tells the others of its attempt where it is. */
#pragma once

#include "base/base.h"

struct train_moved;
struct worker_link;

/*
 * NULL when it was not placed anew: the agent says so in TRAINYARD_PLACED, with its epoch.
 * `links` are those to all tasks, the first worker's first and this one's at `home`; they and
 * the texts are borrowed.
 */
struct train_moved *train_moved_new(struct worker_link *const *links, int count, int home,
                                    const char *address);

/* After the links were freed.  NULL is fine. */
void train_moved_free(struct train_moved *moved);

/*
 * Called often: tells those who are to be told now, without waiting for them.  The first
 * worker, whose steps come here, is told when the others have been, or cannot be reached; all
 * are told again for ever, as some may be started again where they are, or come later.
 * NULL is fine.
 */
void train_moved_tell(struct train_moved *moved);
