/* shared_memory.c - files in memory, mapped at the border of a large page. */

#include "runtime/shared_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define LARGE_PAGE ((size_t)2 << 20)

size_t shared_memory_size(size_t size)
{
    return (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

/* NULL when it cannot be.  Both ends of what is reserved but not needed are given back. */
static void *map(int file, size_t size, int protection)
{
    char *reserved = mmap(NULL, size + LARGE_PAGE, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return NULL;
    size_t before = (LARGE_PAGE - (uintptr_t)reserved % LARGE_PAGE) % LARGE_PAGE;
    char *data = reserved + before;
    void *mapped = mmap(data, size, protection, MAP_SHARED | MAP_FIXED, file, 0);
    if (mapped == MAP_FAILED) {
        munmap(reserved, size + LARGE_PAGE);
        return NULL;
    }
    if (before)
        munmap(reserved, before);
    munmap(data + size, LARGE_PAGE - before);
    return mapped;
}

/* -1, with no signal: files may be limited to less. */
static int make_file(size_t size)
{
    struct rlimit limit;
    if (size > INT64_MAX || getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < size)
        return -1;
    int file = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (file < 0)
        file = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && file <= STDERR_FILENO) {
        int higher = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(file);
        file = higher;
    }
    if (file < 0)
        return -1;
    if (!ftruncate(file, (off_t)size) &&
        !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return file;
    close(file);
    return -1;
}

/* The system makes large pages of small ones that are there, whatever its settings for files
 * are; if it does not, small ones do, too. */
static void make_pages_large(char *data, size_t size)
{
    for (size_t at = 0; at < size; at += LARGE_PAGE)
        *(volatile char *)(data + at) = 0;
    madvise(data, size, MADV_COLLAPSE);
}

bool shared_memory_new(struct shared_memory *out, size_t size)
{
    if (!size || size > SIZE_MAX / 2)
        return false;
    size = shared_memory_size(size);
    int file = make_file(size);
    void *data = file >= 0 ? map(file, size, PROT_READ | PROT_WRITE) : NULL;
    if (!data) {
        if (file >= 0)
            close(file);
        return false;
    }
    make_pages_large(data, size);
    *out = (struct shared_memory){data, size, file};
    return true;
}

static bool is_lasting(int file, size_t size)
{
    struct stat status;
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(file, &status) &&
           S_ISREG(status.st_mode) && (uintmax_t)status.st_size >= size;
}

bool shared_memory_open(struct shared_memory *out, pid_t pid, int file, size_t size,
                        bool writable)
{
    char path[64];
    if (file <= 0 || !size || size > SIZE_MAX / 2)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, file);
    /* Of what is no file, such as a pipe, opening does not wait. */
    int opened = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0)
        return false;
    size = shared_memory_size(size);
    void *data = is_lasting(opened, size)
                     ? map(opened, size, PROT_READ | (writable ? PROT_WRITE : 0))
                     : NULL;
    close(opened);
    *out = (struct shared_memory){data, size, -1};
    return data;
}

void shared_memory_free(const struct shared_memory *memory)
{
    munmap(memory->data, memory->size);
    if (memory->file >= 0)
        close(memory->file);
}
