/* download.c - ranges and entity tags. */

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "server/download.h"
#include "server/reply.h"
#include "server/request.h"

/* Digits alone, at `*at`, which moves behind them; false when there are none or too many. */
static bool read_number(const char **at, int64_t *number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

enum download_part download_range(const char *header, int64_t size, int64_t *first,
                                  int64_t *count)
{
    int64_t last = INT64_MAX;
    if (!header || strncmp(header, "bytes=", 6) != 0)
        return DOWNLOAD_WHOLE;
    const char *at = header + 6;
    if (*at == '-') { /* the last so many */
        at++;
        if (!read_number(&at, &last) || *at)
            return DOWNLOAD_WHOLE;
        *count = last < size ? last : size;
        *first = size - *count;
        return *count > 0 ? DOWNLOAD_PART : DOWNLOAD_NOTHING;
    }
    if (!read_number(&at, first) || *at++ != '-' || (*at && !read_number(&at, &last)) || *at ||
        last < *first)
        return DOWNLOAD_WHOLE;
    if (*first >= size)
        return DOWNLOAD_NOTHING;
    *count = (last < size ? last + 1 : size) - *first;
    return DOWNLOAD_PART;
}

/* One of the tags of a list, or "*". */
static bool names_tag(const char *list, const char *tag)
{
    const char *at = list ? strstr(list, tag) : NULL;
    return at || (list && strcmp(list, "*") == 0);
}

bool download_reply(struct request *req, int file, struct error *err)
{
    struct stat info;
    int64_t first = 0, count = 0;
    if (fstat(file, &info)) {
        close(file);
        return error_errno(err, UNAVAILABLE, "the file cannot be read");
    }
    const char *tag = arena_printf(req->arena, "\"%llx-%llx%08lx\"", (long long)info.st_size,
                                   (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    const char *only_if = request_header(req, "If-Range");
    bool ranged = !only_if || strcmp(only_if, tag) == 0;
    enum download_part part = download_range(ranged ? request_header(req, "Range") : NULL,
                                             info.st_size, &first, &count);
    reply_header(req, "ETag", tag);
    if (names_tag(request_header(req, "If-None-Match"), tag)) {
        close(file);
        return reply_bytes(req, 304, NULL, "", 0);
    }
    if (part == DOWNLOAD_NOTHING) {
        close(file);
        req->reply.status = 416;
        reply_header(req, "Content-Range",
                     arena_printf(req->arena, "bytes */%" PRId64, (int64_t)info.st_size));
        return fail(err, OUT_OF_RANGE, "the range '%.80s' lies outside of the %lld bytes",
                    request_header(req, "Range"), (long long)info.st_size);
    }
    reply_header(req, "Content-Disposition", "attachment");
    reply_header(req, "Accept-Ranges", "bytes");
    if (part == DOWNLOAD_WHOLE)
        return reply_file(req, 200, "application/octet-stream", file, 0, (size_t)info.st_size);
    reply_header(req, "Content-Range",
                 arena_printf(req->arena, "bytes %" PRId64 "-%" PRId64 "/%" PRId64, first,
                              first + count - 1, (int64_t)info.st_size));
    return reply_file(req, 206, "application/octet-stream", file, first, (size_t)count);
}
