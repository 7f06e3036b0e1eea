/*
 * plain.c - 800 MB written and read by two threads with nothing around it: what limits a
 * checkpoint in memory.
 */

#include "tests/bench/executor/plain.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

enum { THREADS = 2, ROUNDS = 3 };

static const size_t PART = 400000000, STEP = 1 << 20;

struct half {
    int file;
    bool write;
    char *memory; /* of PART bytes */
    off_t from;
    bool failed;
};

static void *move(void *arg)
{
    struct half *half = arg;
    for (size_t done = 0; done < PART && !half->failed;) {
        size_t want = PART - done < STEP ? PART - done : STEP;
        ssize_t moved =
            half->write
                ? pwrite(half->file, half->memory + done, want, half->from + (off_t)done)
                : pread(half->file, half->memory + done, want, half->from + (off_t)done);
        half->failed = moved <= 0;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return NULL;
}

/* GB/s, or 0 when it could not be done. */
static double both(int file, bool write, char *memory)
{
    struct half halves[THREADS];
    pthread_t threads[THREADS];
    bool failed = false;
    uint64_t start = clock_monotonic_ns();
    for (int i = 0; i < THREADS; i++) {
        halves[i] = (struct half){.file = file,
                                  .write = write,
                                  .memory = memory + PART * (size_t)i,
                                  .from = (off_t)(PART * (size_t)i)};
        if (pthread_create(&threads[i], NULL, move, &halves[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failed = failed || halves[i].failed;
    }
    double seconds = (double)(clock_monotonic_ns() - start) / 1e9;
    return failed ? 0 : (double)PART * THREADS / seconds / 1e9;
}

static char *fresh(void)
{
    void *memory =
        mmap(NULL, PART * THREADS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("plain: memory");
        exit(1);
    }
    return memory;
}

void plain_bench(void)
{
    double written = 0, read = 0; /* the best of the rounds: a limit */
    char *from = fresh();
    memset(from, 1, PART * THREADS);
    for (int i = 0; i < ROUNDS; i++) {
        char path[] = "/dev/shm/trainyard-bench-XXXXXX";
        int file = mkstemp(path);
        if (file < 0)
            break;
        unlink(path);
        char *into = fresh();
        double gbps = both(file, true, from);
        written = gbps > written ? gbps : written;
        gbps = both(file, false, into);
        read = gbps > read ? gbps : read;
        munmap(into, PART * THREADS);
        close(file);
    }
    munmap(from, PART * THREADS);
    if (written > 0 && read > 0)
        printf("{\"what\":\"plain copy of 800 "
               "MB\",\"on\":\"memory\",\"written_GBps\":%.3f,\"read_GBps\":%.3f}\n",
               written, read);
    else
        printf("{\"what\":\"plain copy of 800 MB\",\"skipped\":\"no file in memory\"}\n");
    fflush(stdout);
}
