/*
 * alloc.h - heap memory for metadata.
 *
 * These never return NULL: when the host has no memory left for small things the process says
 * so and aborts.  Sizes that come from outside are checked against limits.h first; tensors and
 * request bodies have their own allocation that fails politely.
 */
#pragma once

#include "base/base.h"

/* Returns `size` zeroed bytes (at least one), owned by the caller, freed with free(). */
void *alloc_bytes(size_t size);

/* Returns `count` zeroed elements; aborts if count * size overflows. */
void *alloc_array(size_t count, size_t size);

/* realloc() that aborts when memory is out; new bytes are not zeroed. */
void *alloc_resize(void *memory, size_t size);

/*
 * Makes room for one more element in a growable array and returns the (moved) array.
 * `*capacity` is doubled when `count` has reached it.  New elements are zeroed.
 */
void *alloc_grow(void *array, int count, int *capacity, size_t element_size);

/* Copies of strings, owned by the caller. */
char *alloc_text(const char *text);
char *alloc_text_n(const char *text, size_t size);
char *alloc_printf(const char *format, ...) PRINTF_LIKE(1, 2);
