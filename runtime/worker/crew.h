/*
 * crew.h - threads that each do one thing that may take long, kept for the next.
 *
 * DESIGN: a part of a step may wait for another part, so parts never queue behind each other:
 * there is a thread for each, up to a limit.  Idle ones end after a while.
 */
#pragma once

#include "base/base.h"

struct crew;
struct error;

struct crew *crew_new(int threads_max);

/* Waits until all work is done and all threads have ended.  NULL is fine. */
void crew_free(struct crew *crew);

/* Another's thread does such work from here to crew_leave(): crew_free() waits for it, too. */
void crew_join(struct crew *crew);
void crew_leave(struct crew *crew);

/* Calls `work(arg)` on a thread of its own.  Fails with EXHAUSTED when all are busy. */
bool crew_do(struct crew *crew, void (*work)(void *arg), void *arg, struct error *err) CHECKED;
