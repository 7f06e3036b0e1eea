/* request.c - reading typed values out of a request. */

#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "server/request.h"

bool request_query_int(const struct request *req, const char *name, int64_t min, int64_t max,
                       int64_t fallback, int64_t *value, struct error *err)
{
    const char *text = request_query(req, name);
    if (!text) {
        *value = fallback;
        return true;
    }
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool is_number = (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) && !*end && !errno;
    if (!is_number || number < min || number > max)
        return fail(err, INVALID,
                    "parameter %s is '%.40s'; it must be a whole number from %" PRId64
                    " to %" PRId64,
                    name, text, min, max);
    *value = number;
    return true;
}
