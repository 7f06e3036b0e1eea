/* counted.h - what happens by any thread, and how often. */
#pragma once

#include <pthread.h>
#include <unistd.h>

#include "tests/unit/test.h"

enum { PATIENCE_MS = 30000 }; /* until a test has failed */

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the counters */

static inline void count_up(int *counter, int number)
{
    pthread_mutex_lock(&count_lock);
    *counter += number;
    pthread_mutex_unlock(&count_lock);
}

static inline int count_of(const int *counter)
{
    pthread_mutex_lock(&count_lock);
    int count = *counter;
    pthread_mutex_unlock(&count_lock);
    return count;
}

static inline void wait_for(const int *counter, int number)
{
    for (int ms = 0; count_of(counter) < number; ms++) {
        if (ms > PATIENCE_MS)
            CHECK_STOP("%d in place of %d", count_of(counter), number);
        usleep(1000);
    }
    CHECK_INT(count_of(counter), number);
}
