/* near.c - proving to be of one machine, and reading memory there. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/worker/near.h"

enum {
    CHUNK = 2 << 20,
    PARALLEL_MIN = 4 * CHUNK, /* less is not worth waking threads */
};

bool near_host(char out[NEAR_HOST_BYTES], struct error *err)
{
    char boot[40] = {0}, space[40] = {0};
    const char *wanted = getenv(NEAR_VARIABLE);
    if (wanted && !strcmp(wanted, "no"))
        return fail(err, UNAVAILABLE, NEAR_VARIABLE " is no");
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, boot, sizeof(boot) - 1);
    if (file >= 0)
        close(file);
    if (got <= 0 || readlink("/proc/self/ns/pid", space, sizeof(space) - 1) <= 0)
        return error_errno(err, UNAVAILABLE, "/proc does not say which system this is");
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(out, NEAR_HOST_BYTES, "%s %s %ju", boot, space, (uintmax_t)geteuid());
    return true;
}

/* All of it: 0, or errno. */
static int read_chunk(pid_t pid, uint64_t address, char *to, size_t size)
{
    for (size_t have = 0; have < size;) {
        const struct iovec here = {to + have, size - have};
        const struct iovec there = {(void *)(uintptr_t)(address + have), size - have};
        ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (got <= 0)
            return got ? errno : EFAULT;
        have += (size_t)got;
    }
    return 0;
}

/* By all threads, as one does not take all that the memory gives.  All, or false with errno. */
static bool read_all(pid_t pid, uint64_t address, void *to, size_t size)
{
    long count = (long)((size + CHUNK - 1) / CHUNK);
    int failed = 0;
#pragma omp parallel for schedule(static) if (size >= PARALLEL_MIN) reduction(max : failed)
    for (long i = 0; i < count; i++) {
        size_t from = (size_t)i * CHUNK;
        size_t part = size - from < CHUNK ? size - from : CHUNK;
        int error = read_chunk(pid, address + from, (char *)to + from, part);
        failed = error > failed ? error : failed;
    }
    errno = failed;
    return !failed;
}

static bool not_readable(const struct near_process *process, struct error *err)
{
    return error_errno(err, UNAVAILABLE, "cannot read the memory of process %d",
                       (int)process->pid);
}

bool near_prove(const struct near_process *process, struct error *err)
{
    unsigned char proof[NEAR_NONCE_BYTES];
    if (!read_all(process->pid, process->proof, proof, sizeof(proof)))
        return not_readable(process, err);
    return !memcmp(proof, process->nonce, sizeof(proof)) ||
           fail(err, UNAVAILABLE, "process %d is not the task that it was", (int)process->pid);
}

bool near_is_lent(const struct near_process *process, const struct near_place *place,
                  int64_t request_id, struct error *err)
{
    int64_t mark;
    if (!near_prove(process, err))
        return false;
    if (!read_all(process->pid, place->mark, &mark, sizeof(mark)))
        return not_readable(process, err);
    return mark == request_id ||
           fail(err, UNAVAILABLE, "a tensor was read after it had been given up");
}

bool near_read(const struct near_process *process, const struct near_place *place,
               int64_t request_id, void *to, size_t size, struct error *err)
{
    if (!read_all(process->pid, place->address, to, size))
        return not_readable(process, err);
    return near_is_lent(process, place, request_id, err);
}
