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
    if (ranked->text)
        return arena_printf(arena, "%" PRId64 ":%s", ranked->job, ranked->text);
    memcpy(&bits, &ranked->value, sizeof(bits));
    return arena_printf(arena, "%016" PRIx64 "-%" PRId64, bits, ranked->job);
}

static bool refuse(const char *text, struct error *err)
{
    return fail(err, INVALID, "cursor '%.60s' is none that this list has given", text);
}

bool job_cursor_read_text(const char *text, struct db_ranked *ranked, struct error *err)
{
    char *end;
    *ranked = (struct db_ranked){0};
    errno = 0;
    if (text[0] < '1' || text[0] > '9')
        return refuse(text, err);
    ranked->job = strtoll(text, &end, 10);
    ranked->text = end + 1;
    return (*end == ':' && !errno) || refuse(text, err);
}

bool job_cursor_read(const char *text, struct db_ranked *ranked, struct error *err)
{
    uint64_t bits = 0;
    char *end = NULL;
    *ranked = (struct db_ranked){0};
    bool ok = strlen(text) > 17 && strspn(text, "0123456789abcdef") == 16 && text[16] == '-' &&
              text[17] >= '0' && text[17] <= '9';
    if (ok) {
        bits = strtoull(text, NULL, 16);
        memcpy(&ranked->value, &bits, sizeof(bits));
        errno = 0;
        ranked->job = strtoll(text + 17, &end, 10);
    }
    return (ok && !*end && !errno && !isnan(ranked->value)) || refuse(text, err);
}
