/* session_calls.c - a file of recorded calls. */

#include <stdlib.h>

#include "base/alloc.h"
#include "proto/record.h"
#include "tests/interop/sessions/sessions.h"

static bool read_file(const char *path, struct str *bytes, struct error *err)
{
    char block[65536];
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_errno(err, NOT_FOUND, "%s", path);
    for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;)
        str_add_bytes(bytes, block, n);
    fclose(file);
    return true;
}

static bool add_all(struct session_calls *calls, const struct str *bytes, const char *path,
                    struct error *err)
{
    int capacity = 0;
    for (size_t at = 0; at < bytes->size;) {
        const void *data;
        size_t size, used = 0;
        enum record_result result = record_parse(bytes->data + at, bytes->size - at,
                                                 (int64_t)at, &data, &size, &used, err);
        if (result == RECORD_BAD)
            return false;
        Call *call =
            result == RECORD_OK ? trainyard__sessions__call__unpack(NULL, size, data) : NULL;
        if (!call)
            return fail(err, DATA_LOSS, "%s: record %d is no call", path, calls->count);
        calls->calls = alloc_grow(calls->calls, calls->count, &capacity, sizeof(*calls->calls));
        calls->calls[calls->count++] = call;
        at += used;
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    double x = (*(Call *const *)a)->time, y = (*(Call *const *)b)->time;
    return x < y ? -1 : x > y;
}

bool session_calls_read(struct session_calls *calls, const char *path, struct error *err)
{
    struct str bytes = {0};
    *calls = (struct session_calls){0};
    bool ok = read_file(path, &bytes, err) && add_all(calls, &bytes, path, err);
    if (ok && calls->count)
        qsort(calls->calls, (size_t)calls->count, sizeof(*calls->calls), by_time);
    str_release(&bytes);
    return ok;
}

void session_calls_release(struct session_calls *calls)
{
    for (int i = 0; i < calls->count; i++)
        trainyard__sessions__call__free_unpacked(calls->calls[i], NULL);
    free(calls->calls);
}

const char *session_calls_method(const Call *call)
{
    const char *slash = strrchr(call->method, '/');
    return slash ? slash + 1 : call->method;
}

bool session_calls_before(const Call *call, const Call *later)
{
    return call->thread == later->thread || call->time + call->seconds <= later->time;
}
