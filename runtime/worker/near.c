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

enum { READ_BYTES_MAX = 1 << 30 }; /* by one system call, which has a limit near 2 GB */

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

/* All of it, or false with errno. */
static bool read_all(pid_t pid, uint64_t address, void *to, size_t size)
{
    for (size_t have = 0; have < size;) {
        size_t wanted = size - have < READ_BYTES_MAX ? size - have : READ_BYTES_MAX;
        const struct iovec here = {(char *)to + have, wanted};
        const struct iovec there = {(void *)(uintptr_t)(address + have), wanted};
        ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (got <= 0) {
            errno = got ? errno : EFAULT;
            return false;
        }
        have += (size_t)got;
    }
    return true;
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

bool near_read(const struct near_process *process, const struct near_place *place,
               int64_t request_id, void *to, size_t size, struct error *err)
{
    int64_t mark;
    if (!read_all(process->pid, place->address, to, size))
        return not_readable(process, err);
    if (!near_prove(process, err))
        return false;
    if (!read_all(process->pid, place->mark, &mark, sizeof(mark)))
        return not_readable(process, err);
    return mark == request_id ||
           fail(err, UNAVAILABLE, "a tensor was read after it had been given up");
}
