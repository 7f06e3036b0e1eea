/* buffer.c - counted, aligned memory. */

#include <stdlib.h>

#include "runtime/pages.h"
#include "runtime/tensor.h"

/* Header and elements are one allocation: the header fills the first TENSOR_ALIGN bytes. */
static void buffer_destroy(struct buffer *buffer)
{
    free(buffer);
}

struct buffer *buffer_new(size_t size)
{
    static_assert(sizeof(struct buffer) <= TENSOR_ALIGN, "the header fits in front");
    struct buffer *buffer =
        size < SIZE_MAX - TENSOR_ALIGN ? pages_new(TENSOR_ALIGN + size) : NULL;
    if (!buffer)
        return NULL;
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
