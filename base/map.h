/*
 * map.h - from a name to a pointer.
 *
 * Keys are copied.  Entries are kept in the order in which they were added, so that walking a
 * map never depends on hashes: for (int i = 0; i < map_count(m); i++) map_key(m, i) ...
 */
#pragma once

#include "base/base.h"

struct map;

struct map *map_new(void);
void map_free(struct map *map); /* keys, not values; NULL is fine */

/* Adds or replaces. */
void map_set(struct map *map, const char *key, void *value);

/* The value, or NULL. */
void *map_find(const struct map *map, const char *key);
void *map_find_n(const struct map *map, const char *key, size_t size);

bool map_has(const struct map *map, const char *key);

/* Takes an entry out and returns its value, NULL if there was none.  O(n). */
void *map_remove(struct map *map, const char *key);

int map_count(const struct map *map);
const char *map_key(const struct map *map, int index); /* borrowed from the map */
void *map_value(const struct map *map, int index);
