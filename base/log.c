/* log.c - formats a line into one buffer and writes it with one call, so lines never mix. */

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

static enum log_level log_least = LOG_INFO;

void log_set_level(enum log_level level)
{
    __atomic_store_n(&log_least, level, __ATOMIC_RELAXED);
}

void log_line(enum log_level level, const char *at, const char *fields, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if (level < __atomic_load_n(&log_least, __ATOMIC_RELAXED))
        return;

    char line[4096];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    int used = (int)strftime(line, sizeof(line), "time=%Y-%m-%dT%H:%M:%S", &utc);
    used += snprintf(line + used, sizeof(line) - (size_t)used, ".%03ldZ level=%s at=%s ",
                     now.tv_nsec / 1000000, names[level], at);
    va_list args;
    va_start(args, fields);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used, fields, args);
    va_end(args);
    used += more < 0 ? 0 : more;
    if (used > (int)sizeof(line) - 2)
        used = (int)sizeof(line) - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0) {
        /* There is nobody left to tell. */
    }
}

const char *log_quote(const char *text, char *out, size_t out_size)
{
    assert(out_size >= 8);
    size_t used = 0;
    out[used++] = '"';
    for (const char *c = text; *c && used + 6 < out_size; c++) {
        if (*c == '"' || *c == '\\') {
            out[used++] = '\\';
            out[used++] = *c;
        } else if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            used += (size_t)snprintf(out + used, out_size - used, "\\x%02x", (unsigned char)*c);
        } else {
            out[used++] = *c;
        }
    }
    out[used++] = '"';
    out[used] = 0;
    return out;
}
