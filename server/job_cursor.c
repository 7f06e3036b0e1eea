/* job_cursor.c - all of the value's bits go along, so that no page repeats or misses a job. */

#include "server/job_cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/error.h"

const char *job_cursor_text(struct arena *arena, const struct db_ranked *ranked)
{
    uint64_t bits;
    memcpy(&bits, &ranked->value, sizeof(bits));
    return arena_printf(arena, "%016" PRIx64 "-%" PRId64, bits, ranked->job);
}

bool job_cursor_read(const char *text, struct db_ranked *ranked, struct error *err)
{
    uint64_t bits = 0;
    char *end = NULL;
    bool ok = strlen(text) > 17 && strspn(text, "0123456789abcdef") == 16 && text[16] == '-' &&
              text[17] >= '0' && text[17] <= '9';
    if (ok) {
        bits = strtoull(text, NULL, 16);
        memcpy(&ranked->value, &bits, sizeof(bits));
        errno = 0;
        ranked->job = strtoll(text + 17, &end, 10);
    }
    return (ok && !*end && !errno && !isnan(ranked->value)) ||
           fail(err, INVALID, "cursor '%.60s' is none that this list has given", text);
}
