/*
 * arena.h - memory that lives and dies together: a graph, a request, a step.
 *
 * One thread fills an arena.  Nothing in it is freed alone; arena_free() frees it all.  An
 * arena may have a budget: what is parsed from outside gets one, so that a small message cannot
 * grow into much memory.
 */
#pragma once

#include "base/base.h"

struct arena;

/* Returns an empty arena without a budget, owned by the caller. */
struct arena *arena_new(void);

/* An arena that holds at most `budget_bytes`; see arena_try(). */
struct arena *arena_new_limited(size_t budget_bytes);

void arena_free(struct arena *arena); /* NULL is fine */

/* Forgets all that was allocated but keeps the memory of the first block for use again. */
void arena_clear(struct arena *arena);

/* Returns `size` zeroed bytes, aligned to 16.  Asserts that the budget holds. */
void *arena_alloc(struct arena *arena, size_t size);

/* As arena_alloc(), but returns NULL when the budget is spent. */
void *arena_try(struct arena *arena, size_t size);

/* `count` zeroed elements of `size` bytes; aborts on overflow. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Copies, NUL-terminated. */
char *arena_text(struct arena *arena, const char *text);
char *arena_text_n(struct arena *arena, const char *text, size_t size);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* A copy of `size` bytes. */
void *arena_copy(struct arena *arena, const void *bytes, size_t size);

/* Bytes handed out so far. */
size_t arena_used(const struct arena *arena);
