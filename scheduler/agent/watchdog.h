/*
 * watchdog.h - whether a task still gets on: it is seen by what it writes.
 *
 * A task that trains writes an event file as its steps go by; a program writes those, or lines.
 * One that has written nothing for `stall_ms` is taken to hang.
 */
#pragma once

#include "base/base.h"

struct watchdog {
    int64_t stall_ms;   /* 0: nobody watches */
    int64_t bytes;      /* that it had written when last looked at */
    uint64_t looked_us; /* monotonic; 0: never */
    uint64_t moved_us;  /* when it had last written something */
};

/* When to look next, monotonic; 0: never. */
uint64_t watchdog_next_us(const struct watchdog *watchdog);

/* Looks, if it is time; true when the task in `folder` has stalled. */
bool watchdog_look(struct watchdog *watchdog, const char *folder, uint64_t now_us);

/* "no step for 30 s; the last was step 1200". */
void watchdog_text(const struct watchdog *watchdog, const char *folder, char *out,
                   size_t out_size);
