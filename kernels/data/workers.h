/*
 * workers.h - threads that do work for datasets: one pool for all of the process.
 *
 * Whoever waits for work that nobody has begun takes it back and does it himself, so work may
 * wait for other work.
 */
#pragma once

#include "base/base.h"

/* Embedded in what is to be done; the owner keeps it until it is done or taken back. */
struct kernel_work {
    void (*run)(struct kernel_work *work);
    struct kernel_work *next, *before; /* private, like queued */
    bool queued;
};

/* Asks for work->run() to be called by one of the threads. */
void kernel_workers_add(struct kernel_work *work);

/* Takes it back; false if a thread has begun it, or nobody asked. */
bool kernel_workers_withdraw(struct kernel_work *work);

/* How many threads there may be. */
int kernel_workers_max(void);
