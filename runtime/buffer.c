/* buffer.c - counted, aligned memory. */

#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/tensor.h"

/* Large ones come in large pages: the system fills them 512 times as seldom. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_MIN ((size_t)4 << 20)

/* Header and elements are one allocation: the header fills the first TENSOR_ALIGN bytes. */
static void buffer_destroy(struct buffer *buffer)
{
    free(buffer);
}

struct buffer *buffer_new(size_t size)
{
    static_assert(sizeof(struct buffer) <= TENSOR_ALIGN, "the header fits in front");
    if (size > SIZE_MAX - 2 * HUGE_PAGE)
        return NULL;
    size_t align = size >= HUGE_MIN ? HUGE_PAGE : TENSOR_ALIGN;
    size_t rounded = (TENSOR_ALIGN + size + align - 1) / align * align;
    struct buffer *buffer = aligned_alloc(align, rounded);
    if (!buffer)
        return NULL;
    if (size >= HUGE_MIN)
        madvise(buffer, rounded, MADV_HUGEPAGE); /* a hint: no matter if it is not taken */
    *buffer = (struct buffer){.references = 1,
                              .data = (char *)buffer + TENSOR_ALIGN,
                              .size = size,
                              .destroy = buffer_destroy};
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
