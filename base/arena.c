/* arena.c - a list of blocks, filled from the front. */

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"

#define ARENA_ALIGN 16
#define ARENA_BLOCK_FIRST 4096
#define ARENA_BLOCK_MAX (1 << 20)
#define ARENA_PRINTF_FIRST 256 /* longer texts are printed twice */

struct arena_block {
    struct arena_block *next; /* the older block */
    size_t size;              /* bytes of data */
    size_t used;
    size_t pad;
    char data[];
};

struct arena {
    struct arena_block *block; /* the newest */
    size_t budget;
    size_t used;
};

static struct arena_block *block_new(size_t size, struct arena_block *next)
{
    struct arena_block *block = malloc(sizeof(*block) + size);
    if (!block) {
        fprintf(stderr, "level=error at=arena msg=\"out of memory\" bytes=%zu\n", size);
        abort();
    }
    block->next = next;
    block->size = size;
    block->used = 0;
    return block;
}

struct arena *arena_new(void)
{
    return arena_new_limited(SIZE_MAX);
}

struct arena *arena_new_limited(size_t budget_bytes)
{
    struct arena *arena = alloc_bytes(sizeof(*arena));
    arena->budget = budget_bytes;
    return arena;
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    while (arena->block) {
        struct arena_block *next = arena->block->next;
        free(arena->block);
        arena->block = next;
    }
    free(arena);
}

void arena_clear(struct arena *arena)
{
    while (arena->block && arena->block->next) {
        struct arena_block *next = arena->block->next;
        free(arena->block);
        arena->block = next;
    }
    if (arena->block)
        arena->block->used = 0;
    arena->used = 0;
}

void *arena_try(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX - ARENA_ALIGN)
        return NULL;
    size_t rounded = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (rounded > arena->budget - arena->used)
        return NULL;

    struct arena_block *block = arena->block;
    if (!block || block->size - block->used < rounded) {
        size_t wanted = block ? block->size * 2 : ARENA_BLOCK_FIRST;
        if (wanted > ARENA_BLOCK_MAX)
            wanted = ARENA_BLOCK_MAX;
        if (wanted < rounded)
            wanted = rounded;
        block = arena->block = block_new(wanted, block);
    }
    void *memory = block->data + block->used;
    block->used += rounded;
    arena->used += rounded;
    return memset(memory, 0, rounded);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    void *memory = arena_try(arena, size);
    assert(memory);
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    assert(!overflow);
    return arena_alloc(arena, bytes);
}

char *arena_text(struct arena *arena, const char *text)
{
    return arena_text_n(arena, text, strlen(text));
}

char *arena_text_n(struct arena *arena, const char *text, size_t size)
{
    char *copy = arena_alloc(arena, size + 1);
    memcpy(copy, text, size);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char first[ARENA_PRINTF_FIRST];
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(first, sizeof(first), format, args);
    va_end(args);
    assert(size >= 0);
    char *text = arena_alloc(arena, (size_t)size + 1);
    if ((size_t)size < sizeof(first))
        memcpy(text, first, (size_t)size);
    else
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

void *arena_copy(struct arena *arena, const void *bytes, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

size_t arena_used(const struct arena *arena)
{
    return arena->used;
}
