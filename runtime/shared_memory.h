/*
 * shared_memory.h - memory that other processes of this user can map: a file that has no name.
 *
 * It can not be made shorter, so who maps it never reads past its end.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct shared_memory {
    void *data;
    size_t size; /* in whole large pages */
    int file;    /* of this process, never 0; -1: it is another's memory */
};

/*
 * `size` bytes at least, in large pages where the system has them, which takes it a
 * millisecond for each megabyte: it is meant to be kept.  False: the system gives none.
 */
bool shared_memory_new(struct shared_memory *out, size_t size) CHECKED;

/* What one of `size` bytes, half of all there can be at most, has. */
size_t shared_memory_size(size_t size);

/* Maps `size` bytes of another process's.  False: it has no such file, that is shorter, can be
 * made so, or the system does not let it be mapped. */
bool shared_memory_open(struct shared_memory *out, pid_t pid, int file, size_t size,
                        bool writable) CHECKED;

void shared_memory_free(const struct shared_memory *memory);
