/* pages.c - memory for numbers, see pages.h. */

#include "runtime/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/tensor.h"

/* Large ones come in large pages: the system fills them 512 times as seldom, and a kernel that
 * goes through them needs as many fewer translations. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_MIN ((size_t)4 << 20)

void *pages_new(size_t size)
{
    if (size > SIZE_MAX - HUGE_PAGE)
        return NULL;
    size_t align = size >= HUGE_MIN ? HUGE_PAGE : TENSOR_ALIGN;
    size_t rounded = (size + align - 1) / align * align;
    void *memory = aligned_alloc(align, rounded);
    if (memory && size >= HUGE_MIN)
        madvise(memory, rounded, MADV_HUGEPAGE); /* a hint: no matter if it is not taken */
    return memory;
}
