/* cursor.c - whole records only are stored: what is sent grows until one fits. */

#include "scheduler/agent/cursor.h"
#include "base/limits.h"

#define BATCH_BYTES_MAX                                                                        \
    (LIMIT_CONTROL_MESSAGE_BYTES - (64 << 10)) /* room for the rest of a message */

void cursor_init(struct cursor *cursor, bool fresh)
{
    *cursor = (struct cursor){fresh ? 0 : -1, -1, LIMIT_SHIP_BYTES};
}

size_t cursor_next(const struct cursor *cursor, int64_t size)
{
    if (cursor->at >= size || cursor->tried == size)
        return 0;
    int64_t rest = size - cursor->at;
    return rest < (int64_t)cursor->batch_bytes ? (size_t)rest : cursor->batch_bytes;
}

enum cursor_result cursor_advance(struct cursor *cursor, int64_t stored, int64_t size,
                                  size_t sent)
{
    enum cursor_result result = stored < cursor->at ? CURSOR_LOST : CURSOR_OK;
    if (stored < 0 || stored > cursor->at + (int64_t)sent)
        return CURSOR_BEYOND;
    if (stored != cursor->at) {
        cursor->batch_bytes = LIMIT_SHIP_BYTES;
        cursor->tried = -1;
    } else if (cursor->at + (int64_t)sent >= size) {
        cursor->tried = size; /* the start of something: wait for the rest of it */
    } else if (cursor->batch_bytes < BATCH_BYTES_MAX) {
        cursor->batch_bytes *= 2;
        if (cursor->batch_bytes > BATCH_BYTES_MAX)
            cursor->batch_bytes = BATCH_BYTES_MAX;
    } else {
        result = CURSOR_STUCK;
    }
    cursor->at = stored;
    return result;
}
