/* reserve.c - blocks behind the end of a database's files. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "db/reserve.h"

/* SQLite moves what is in the log to the file when it has 1,000 pages of 4 KiB, or later where
 * somebody reads for long. */
#define LOG_BYTES (INT64_C(6) << 20)
#define GROWTH_BYTES (INT64_C(2) << 20) /* of the file ... */
#define SLACK_BYTES (GROWTH_BYTES / 8)  /* ... taken anew when that much was used */
#define AGAIN_US UINT64_C(1000000)      /* after there was no room */

struct db_reserve {
    char *path;
    int file;
    int log;
    int64_t file_end; /* up to here blocks are ours */
    int64_t log_end;
    uint64_t again_us; /* monotonic; not before */
    bool unable;       /* the file system keeps no blocks */
};

/* Opened for good: see db_reserve_free(). */
struct db_reserve *db_reserve_new(const char *path)
{
    struct db_reserve *reserve = alloc_bytes(sizeof(*reserve));
    char *log = alloc_printf("%s-wal", path);
    reserve->path = alloc_text(path);
    reserve->file = open(path, O_RDWR | O_CLOEXEC);
    reserve->log = open(log, O_RDWR | O_CLOEXEC);
    free(log);
    db_reserve_keep(reserve);
    return reserve;
}

/* Has blocks up to `end`, and `*has` say so. */
static void take(struct db_reserve *reserve, int fd, int64_t end, int64_t *has)
{
    if (fd < 0 || *has >= end || reserve->unable)
        return;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, end) == 0) {
        *has = end;
    } else if (errno == ENOSPC || errno == EDQUOT || errno == EINTR) {
        reserve->again_us = clock_monotonic_us() + AGAIN_US;
    } else {
        reserve->unable = true;
        log_line(LOG_WARN, "db",
                 "file=%s msg=\"no room can be kept for a full disk: %s; cancelling jobs and "
                 "signing in may fail when it is full\"",
                 reserve->path, strerror(errno));
    }
}

void db_reserve_keep(struct db_reserve *reserve)
{
    struct stat info;
    if (!reserve || reserve->unable || reserve->file < 0 || fstat(reserve->file, &info))
        return;
    bool grown = info.st_size + GROWTH_BYTES - SLACK_BYTES > reserve->file_end;
    if (!grown && reserve->log_end)
        return;
    if (reserve->again_us && clock_monotonic_us() < reserve->again_us)
        return;
    reserve->again_us = 0;
    take(reserve, reserve->log, LOG_BYTES, &reserve->log_end);
    take(reserve, reserve->file, info.st_size + GROWTH_BYTES, &reserve->file_end);
}

void db_reserve_free(struct db_reserve *reserve)
{
    if (!reserve)
        return;
    if (reserve->file >= 0)
        close(reserve->file);
    if (reserve->log >= 0)
        close(reserve->log);
    free(reserve->path);
    free(reserve);
}
