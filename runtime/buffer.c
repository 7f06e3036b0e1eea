/*
 * buffer.c - counted, aligned memory.
 *
 * DESIGN: where tasks exchange tensors, memory of large buffers that came free waits a while
 * for others of about their size, as a step needs the same again and the system takes longer to
 * clear such memory than a processor to fill it.  A session alone plans its memory once, and
 * would only hold what it needed while it began.  Whoever finds nothing that fits gives all
 * that waits back first, so no more is ever held than is needed at one time.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/buffer_shared.h"
#include "runtime/pages.h"
#include "runtime/tensor.h"

enum { SPARE_MAX = 16, SPARE_BYTES_MIN = 4 << 20, DROPPED_MAX = 8 };
#define SPARE_BYTES_MAX ((size_t)256 << 20)

/* A sanitizer is to see who uses a buffer that came free. */
#ifdef __SANITIZE_ADDRESS__
#define SPARE_COUNT_MAX 0
#else
#define SPARE_COUNT_MAX SPARE_MAX
#endif

static struct {
    atomic_bool wanted;   /* by a process that exchanges tensors */
    pthread_mutex_t lock; /* guards: all below */
    struct buffer *buffers[SPARE_MAX];
    int count;
    size_t bytes;
    int dropped; /* by buffer_drop_spare() */
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* One that is a quarter larger at most; NULL: there is none. */
static struct buffer *take_fitting_locked(size_t size)
{
    for (int i = 0; i < spare.count; i++) {
        struct buffer *buffer = spare.buffers[i];
        if (buffer->capacity < size || buffer->capacity / 5 * 4 > size)
            continue;
        spare.bytes -= buffer->capacity;
        spare.buffers[i] = spare.buffers[--spare.count];
        return buffer;
    }
    return NULL;
}

/* If none fits, all are the caller's to free. */
static struct buffer *take_spare(size_t size, struct buffer *unfit[SPARE_MAX], int *unfit_count)
{
    pthread_mutex_lock(&spare.lock);
    struct buffer *found = take_fitting_locked(size);
    *unfit_count = found ? 0 : spare.count;
    if (!found) {
        memcpy(unfit, spare.buffers, sizeof(spare.buffers));
        spare.count = 0;
        spare.bytes = 0;
    }
    pthread_mutex_unlock(&spare.lock);
    return found;
}

/* Header and elements are one allocation: the header fills the first TENSOR_ALIGN bytes. */
static void buffer_destroy(struct buffer *buffer)
{
    bool keeps = false;
    if (buffer->capacity >= SPARE_BYTES_MIN && spare.wanted) {
        pthread_mutex_lock(&spare.lock);
        keeps =
            spare.count < SPARE_COUNT_MAX && spare.bytes + buffer->capacity <= SPARE_BYTES_MAX;
        if (keeps) {
            spare.buffers[spare.count++] = buffer;
            spare.bytes += buffer->capacity;
        }
        pthread_mutex_unlock(&spare.lock);
    }
    if (!keeps)
        free(buffer);
}

void buffer_keep_spare(void)
{
    spare.wanted = true;
}

void buffer_drop_spare(size_t size)
{
    pthread_mutex_lock(&spare.lock);
    struct buffer *fitting = spare.dropped < DROPPED_MAX ? take_fitting_locked(size) : NULL;
    spare.dropped += fitting != NULL;
    pthread_mutex_unlock(&spare.lock);
    free(fitting);
}

/* What waits in the one kind of memory is not held beside more of the other. */
void buffer_free_spare_plain(void)
{
    struct buffer *unfit[SPARE_MAX];
    int count;
    struct buffer *none = take_spare(SIZE_MAX, unfit, &count);
    assert(!none);
    for (int i = 0; i < count; i++)
        free(unfit[i]);
}

void buffer_free_spare(void)
{
    buffer_free_spare_plain();
    buffer_free_spare_shared();
}

struct buffer *buffer_new(size_t size)
{
    static_assert(sizeof(struct buffer) <= TENSOR_ALIGN, "the header fits in front");
    struct buffer *buffer = NULL, *unfit[SPARE_MAX];
    int unfit_count = 0;
    if (size >= SPARE_BYTES_MIN)
        buffer = take_spare(size, unfit, &unfit_count);
    for (int i = 0; i < unfit_count; i++)
        free(unfit[i]);
    size_t capacity = buffer ? buffer->capacity : size;
    if (!buffer && size < SIZE_MAX - TENSOR_ALIGN)
        buffer = pages_new(TENSOR_ALIGN + size);
    if (!buffer)
        return NULL;
    *buffer = (struct buffer){.references = 1,
                              .data = (char *)buffer + TENSOR_ALIGN,
                              .size = size,
                              .destroy = buffer_destroy,
                              .capacity = capacity};
    return buffer;
}

void buffer_ref(struct buffer *buffer)
{
    __atomic_add_fetch(&buffer->references, 1, __ATOMIC_RELAXED);
}

void buffer_unref(struct buffer *buffer)
{
    if (buffer && __atomic_sub_fetch(&buffer->references, 1, __ATOMIC_ACQ_REL) == 0)
        buffer->destroy(buffer);
}
