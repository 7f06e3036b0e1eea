/*
 * held.c - a count of bytes, and one of holders in each buffer.
 *
 * DESIGN: free of locks.  The bytes of a buffer are reserved by whoever holds it first and
 * given back by whoever lets go of it last; of several that are first at once only one's
 * reservation stays.
 */

#include "runtime/held.h"

#include <stdatomic.h>

#include "base/error.h"
#include "runtime/machine.h"
#include "runtime/tensor.h"

static _Atomic int64_t held, held_max;

void held_set_max(int64_t bytes)
{
    held_max = bytes > 0 ? bytes : machine_memory() / 2;
}

int64_t held_bytes(void)
{
    return held;
}

/* The same at each call for a buffer: strings are not changed once they are shared. */
static int64_t size_of(const struct tensor *value)
{
    return (int64_t)(value->dtype == STRING ? tensor_bytes(value) : value->buffer->size);
}

/* Unless nobody holds it yet. */
static bool add_holder(struct buffer *buffer)
{
    int holders = __atomic_load_n(&buffer->holders, __ATOMIC_RELAXED);
    while (holders)
        if (__atomic_compare_exchange_n(&buffer->holders, &holders, holders + 1, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

bool held_add(const struct tensor *value, struct error *err)
{
    struct buffer *buffer = value->buffer;
    if (!buffer || add_holder(buffer))
        return true;
    int64_t size = size_of(value), before = atomic_fetch_add(&held, size), max = held_max;
    if (max && before + size > max) {
        held -= size;
        return fail(err, EXHAUSTED,
                    "no room for %lld bytes of a tensor: %lld of %lld bytes are between tasks "
                    "already (--exchange-bytes)",
                    (long long)size, (long long)before, (long long)max);
    }
    if (__atomic_fetch_add(&buffer->holders, 1, __ATOMIC_RELAXED))
        held -= size; /* another was first meanwhile */
    return true;
}

void held_add_again(const struct tensor *value)
{
    bool added = !value->buffer || add_holder(value->buffer);
    assert(added);
}

void held_drop(const struct tensor *value)
{
    if (!value->buffer)
        return;
    int64_t size = size_of(value);
    int before = __atomic_fetch_sub(&value->buffer->holders, 1, __ATOMIC_RELAXED);
    assert(before > 0);
    if (before == 1)
        held -= size;
}
