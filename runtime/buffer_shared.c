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
#include <sys/resource.h>

#include "base/alloc.h"
#include "runtime/machine.h"
#include "runtime/shared_memory.h"

enum {
    SPARE_MAX = 128,
    SPARE_SHARE = 8, /* of the machine's memory */
    FILES_MAX = 4096,
};

/* A sanitizer is to see who uses memory that came free. */
#ifdef __SANITIZE_ADDRESS__
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif

static struct {
    atomic_bool wanted;
    pthread_mutex_t lock;                   /* guards: all below */
    struct shared_memory memory[SPARE_MAX]; /* the oldest first */
    int count;
    size_t bytes, bytes_max;
    int files, files_max; /* of all such buffers, and of what waits */
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

void buffer_share_large(void)
{
    struct rlimit files;
    bool limited = !getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < FILES_MAX * 4;
    pthread_mutex_lock(&spare.lock);
    spare.files_max = limited ? (int)files.rlim_cur / 4 : FILES_MAX;
    spare.bytes_max = KEEPS * (size_t)machine_memory() / SPARE_SHARE;
    pthread_mutex_unlock(&spare.lock);
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

static void drop_file(void)
{
    pthread_mutex_lock(&spare.lock);
    spare.files--;
    pthread_mutex_unlock(&spare.lock);
}

static void give_up(const struct shared_memory *memory)
{
    shared_memory_free(memory);
    drop_file();
}

/* Counts one more, unless there would be too many; what waits gives way to it. */
static bool add_file(void)
{
    struct shared_memory old;
    pthread_mutex_lock(&spare.lock);
    bool too_many = spare.files >= spare.files_max;
    bool gives_way = too_many && spare.count;
    if (gives_way)
        old = take_locked(0);
    spare.files += !too_many || gives_way;
    pthread_mutex_unlock(&spare.lock);
    if (gives_way)
        give_up(&old);
    return !too_many || gives_way;
}

/* One that is a quarter larger at most than a new one would be. */
static bool take(size_t size, struct shared_memory *out)
{
    bool found = false;
    size_t rounded = shared_memory_size(size);
    pthread_mutex_lock(&spare.lock);
    for (int i = spare.count - 1; i >= 0 && !found; i--) {
        found = spare.memory[i].size >= rounded && spare.memory[i].size / 5 * 4 <= rounded;
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
           (spare.count == SPARE_MAX || spare.bytes + memory->size > spare.bytes_max))
        old[count++] = take_locked(0);
    if (memory->size > spare.bytes_max) {
        old[count++] = *memory;
    } else {
        spare.memory[spare.count++] = *memory;
        spare.bytes += memory->size;
    }
    pthread_mutex_unlock(&spare.lock);
    for (int i = 0; i < count; i++)
        give_up(&old[i]);
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
        give_up(&all[i]);
}

/* --- buffers --- */

static void destroy(struct buffer *buffer)
{
    const struct shared_memory memory = {buffer->data, buffer->capacity, buffer->file};
    if (__atomic_load_n(&buffer->borrowers, __ATOMIC_ACQUIRE))
        give_up(&memory);
    else
        keep(&memory);
    free(buffer);
}

static bool make(size_t size, struct shared_memory *out)
{
    if (!add_file())
        return false;
    buffer_free_spare_plain();
    if (shared_memory_new(out, size))
        return true;
    spare.wanted = false; /* nor will there be any later */
    drop_file();
    return false;
}

struct buffer *buffer_new_shared(size_t size)
{
    struct shared_memory memory;
    if (!buffer_is_shared_at(size) || (!take(size, &memory) && !make(size, &memory)))
        return NULL;
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
