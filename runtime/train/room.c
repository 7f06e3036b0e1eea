/* room.c - waiting for a disk that is full. */

#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/train/internal.h"

bool room_wait(struct train *train, struct error *err)
{
    if (err->code != EXHAUSTED || !train->options.wait_for_room)
        return false;
    if (train->stop) {
        err->code = UNAVAILABLE; /* not the job's own fault */
        return error_prefix(err, "stopped while it waited for room on the disk: ");
    }
    if (!train->full_us) {
        char text[700];
        train->full_us = clock_monotonic_us();
        log_line(LOG_WARN, "train", "msg=\"waiting for room on the disk\" why=%s",
                 log_quote(err->text, text, sizeof(text)));
    }
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL); /* a signal ends it early */
    return true;
}

void room_found(struct train *train)
{
    if (!train->full_us)
        return;
    str_printf(&train->notice, "%sthere was no room on the disk for %llu s",
               train->notice.size ? "; " : "",
               (unsigned long long)((clock_monotonic_us() - train->full_us) / 1000000));
    train->pending |= PENDING_NOTICE;
    train->full_us = 0;
}

bool room_flush(struct train *train, struct error *err)
{
    while (train->events && !events_flush(train->events, err)) {
        if (!room_wait(train, err))
            return false;
    }
    room_found(train);
    return true;
}
