/*
 * keys.h - a set of keys, bytes of any length, each with a number by which its value is kept.
 *
 * Numbers are small: 0, 1, 2 ...; that of a removed key is given to the next new one.
 */
#pragma once

#include "base/base.h"

struct keys;

struct keys *kernel_keys_new(void);
void kernel_keys_free(struct keys *keys); /* NULL is fine */

int64_t kernel_keys_count(const struct keys *keys);

/* One more than the largest number ever given. */
int64_t kernel_keys_numbers(const struct keys *keys);

/* The number of the key, -1 if it is not there. */
int64_t kernel_keys_find(const struct keys *keys, const void *key, size_t size);

/* The number of the key, which is added (copied) if it is not there. */
int64_t kernel_keys_add(struct keys *keys, const void *key, size_t size);

/* Its number until now, -1 if it was not there. */
int64_t kernel_keys_remove(struct keys *keys, const void *key, size_t size);

/* The key of that number, borrowed until the next change; NULL if there is none. */
const void *kernel_keys_at(const struct keys *keys, int64_t number, size_t *size);

/* Removes all. */
void kernel_keys_clear(struct keys *keys);
