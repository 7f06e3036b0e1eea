/* alloc.c - malloc that does not return NULL. */

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"

static void *alloc_check(void *memory, size_t size)
{
    if (!memory) {
        fprintf(stderr, "level=error at=alloc msg=\"out of memory\" bytes=%zu\n", size);
        abort();
    }
    return memory;
}

void *alloc_bytes(size_t size)
{
    return alloc_check(calloc(1, size ? size : 1), size);
}

void *alloc_array(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        alloc_check(NULL, SIZE_MAX);
    return alloc_bytes(bytes);
}

void *alloc_resize(void *memory, size_t size)
{
    return alloc_check(realloc(memory, size ? size : 1), size);
}

void *alloc_grow(void *array, int count, int *capacity, size_t element_size)
{
    assert(count >= 0 && count <= *capacity);
    if (count < *capacity)
        return array;
    int wanted = *capacity ? *capacity * 2 : 8;
    assert(wanted > *capacity);
    array = alloc_resize(array, (size_t)wanted * element_size);
    memset((char *)array + (size_t)count * element_size, 0,
           (size_t)(wanted - count) * element_size);
    *capacity = wanted;
    return array;
}

char *alloc_text(const char *text)
{
    return alloc_text_n(text, strlen(text));
}

char *alloc_text_n(const char *text, size_t size)
{
    char *copy = alloc_bytes(size + 1);
    if (size)
        memcpy(copy, text, size);
    return copy;
}

char *alloc_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(size >= 0);
    char *text = alloc_bytes((size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}
