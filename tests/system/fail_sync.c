/* fail_sync.c - a disk that does not sync: fsync and fdatasync fail with EIO for every file
 * whose path has in it what the file $FAIL_SYNC says, or ends like that before a $, as long as
 * that is there.
 *
 * To be preloaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(int file)
{
    char wanted[200] = "", link[64], path[4096] = "";
    const char *from = getenv("FAIL_SYNC");
    int fd = from ? open(from, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, wanted, sizeof(wanted) - 1);
    close(fd);
    wanted[size < 0 ? 0 : size] = '\0';
    wanted[strcspn(wanted, "\n")] = '\0';
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    size_t length = strcspn(wanted, "$");
    if (!length || readlink(link, path, sizeof(path) - 1) < (ssize_t)length)
        return 0;
    if (!wanted[length])
        return strstr(path, wanted) != NULL;
    wanted[length] = '\0';
    return strcmp(path + strlen(path) - length, wanted) == 0;
}

static int sync_one(long call, int fd)
{
    if (!fails(fd))
        return (int)syscall(call, fd);
    errno = EIO;
    return -1;
}

int fsync(int fd)
{
    return sync_one(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_one(SYS_fdatasync, fd);
}
