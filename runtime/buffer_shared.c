/*
 * buffer_shared.c - their memory, and that which waits for the next of its size.
 *
 * DESIGN: the system takes long to make such memory, so what a step needed waits for the next
 * step, and gives way only where there would be too much of it.
 */

#include "runtime/buffer_shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/shared_memory.h"

enum { SPARE_MAX = 16 };

/* A sanitizer is to see who uses memory that came free. */
#ifdef __SANITIZE_ADDRESS__
#define SPARE_BYTES_MAX ((size_t)0)
#else
#define SPARE_BYTES_MAX ((size_t)256 << 20)
#endif

static struct {
    atomic_bool wanted;
    pthread_mutex_t lock;                   /* guards: all below */
    struct shared_memory memory[SPARE_MAX]; /* the oldest first */
    int count;
    size_t bytes;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

void buffer_share_large(void)
{
    spare.wanted = true;
}

bool buffer_is_shared_at(size_t size)
{
    return size >= BUFFER_SHARED_BYTES_MIN && spare.wanted;
}

/* --- memory that waits --- */

static struct shared_memory take_locked(int index)
{
    struct shared_memory taken = spare.memory[index];
    spare.count--;
    spare.bytes -= taken.size;
    memmove(&spare.memory[index], &spare.memory[index + 1],
            (size_t)(spare.count - index) * sizeof(taken));
    return taken;
}

/* One that is a quarter larger at most. */
static bool take(size_t size, struct shared_memory *out)
{
    bool found = false;
    pthread_mutex_lock(&spare.lock);
    for (int i = spare.count - 1; i >= 0 && !found; i--) {
        found = spare.memory[i].size >= size && spare.memory[i].size / 5 * 4 <= size;
        if (found)
            *out = take_locked(i);
    }
    pthread_mutex_unlock(&spare.lock);
    return found;
}

static void keep(const struct shared_memory *memory)
{
    struct shared_memory old[SPARE_MAX + 1];
    int count = 0;
    pthread_mutex_lock(&spare.lock);
    while (spare.count &&
           (spare.count == SPARE_MAX || spare.bytes + memory->size > SPARE_BYTES_MAX))
        old[count++] = take_locked(0);
    if (memory->size > SPARE_BYTES_MAX) {
        old[count++] = *memory;
    } else {
        spare.memory[spare.count++] = *memory;
        spare.bytes += memory->size;
    }
    pthread_mutex_unlock(&spare.lock);
    for (int i = 0; i < count; i++)
        shared_memory_free(&old[i]);
}

void buffer_free_spare_shared(void)
{
    struct shared_memory all[SPARE_MAX];
    pthread_mutex_lock(&spare.lock);
    int count = spare.count;
    memcpy(all, spare.memory, (size_t)count * sizeof(all[0]));
    spare.count = 0;
    spare.bytes = 0;
    pthread_mutex_unlock(&spare.lock);
    for (int i = 0; i < count; i++)
        shared_memory_free(&all[i]);
}

/* --- buffers --- */

static void destroy(struct buffer *buffer)
{
    const struct shared_memory memory = {buffer->data, buffer->capacity, buffer->file};
    if (__atomic_load_n(&buffer->borrowers, __ATOMIC_ACQUIRE))
        shared_memory_free(&memory);
    else
        keep(&memory);
    free(buffer);
}

struct buffer *buffer_new_shared(size_t size)
{
    struct shared_memory memory;
    if (!buffer_is_shared_at(size))
        return NULL;
    if (!take(size, &memory)) {
        buffer_free_spare_plain();
        if (!shared_memory_new(&memory, size)) {
            spare.wanted = false; /* nor will it later */
            return NULL;
        }
    }
    struct buffer *buffer = alloc_bytes(sizeof(*buffer));
    *buffer = (struct buffer){.references = 1,
                              .data = memory.data,
                              .size = size,
                              .destroy = destroy,
                              .capacity = memory.size,
                              .file = memory.file};
    return buffer;
}

void buffer_borrow(struct buffer *buffer)
{
    __atomic_add_fetch(&buffer->borrowers, 1, __ATOMIC_RELAXED);
}

void buffer_give_back(struct buffer *buffer)
{
    __atomic_sub_fetch(&buffer->borrowers, 1, __ATOMIC_RELEASE);
}
