/*
 * slow_disk.c - a slow disk: what waits for it (fsync, fdatasync) takes up to so many
 * milliseconds more, by chance.
 *
 * Either part of a program, before libc (build/slow/), or preloaded (build/slow_disk.so).  How
 * many says $SLOW_DISK_MS ("150", or "100-150" for at least 100), or where nothing of the
 * environment is handed on (shims, tasks) the file disk_ms beside the program; without them
 * nothing is slower.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd);
int fdatasync(int fd);

static void file_read(char *text, size_t text_size)
{
    char path[1024];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - sizeof("disk_ms"));
    if (size <= 0)
        return;
    path[size] = '\0';
    char *name = strrchr(path, '/');
    memcpy(name ? name + 1 : path, "disk_ms", sizeof("disk_ms"));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    size = read(file, text, text_size - 1);
    text[size > 0 ? size : 0] = '\0';
    close(file);
}

/* Read each time: it is nothing beside the wait. */
static void wait_for_the_disk(void)
{
    char text[32] = "", *rest;
    unsigned drawn = 0;
    const char *said = getenv("SLOW_DISK_MS");
    if (!said)
        file_read(text, sizeof(text));
    long least = 0, most = strtol(said ? said : text, &rest, 10);
    if (*rest == '-') {
        least = most;
        most = strtol(rest + 1, NULL, 10);
    }
    if (most <= 0 || most < least ||
        getrandom(&drawn, sizeof(drawn), GRND_NONBLOCK) != sizeof(drawn))
        return;
    long us = least * 1000 + (long)(drawn % (unsigned long)((most - least) * 1000 + 1));
    struct timespec rest_of = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&rest_of, &rest_of)) {
    }
}

/* That of libc, or of another library that is preloaded. */
static int sync_next(const char *name, int fd)
{
    int (*next)(int) = NULL;
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(&next, &found, sizeof(next));
    wait_for_the_disk();
    return next(fd);
}

int fsync(int fd)
{
    return sync_next("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_next("fdatasync", fd);
}
