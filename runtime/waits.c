/* waits.c - see waits.h. */

#include "runtime/waits.h"

#include <stdlib.h>

#include "base/alloc.h"

struct waits_row *waits_of(struct waits *waits, const char *device)
{
    const char *end = strstr(device, "/device:");
    size_t size = end ? (size_t)(end - device) : strlen(device);
    if (size >= WAITS_TASK_BYTES)
        size = WAITS_TASK_BYTES - 1;
    for (int i = 0; i < waits->rows_count; i++) {
        struct waits_row *row = &waits->rows[i];
        if (!strncmp(row->task, device, size) && !row->task[size])
            return row;
    }
    waits->rows =
        alloc_grow(waits->rows, waits->rows_count, &waits->rows_capacity, sizeof(*waits->rows));
    struct waits_row *row = &waits->rows[waits->rows_count++];
    *row = (struct waits_row){0};
    memcpy(row->task, device, size);
    return row;
}

void waits_release(struct waits *waits)
{
    free(waits->rows);
    *waits = (struct waits){0};
}
