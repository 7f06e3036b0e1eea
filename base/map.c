/* map.c - entries in an array, found through open addressing over their indexes. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"

struct map_entry {
    char *key;
    size_t size;
    void *value;
    uint64_t hash;
};

struct map {
    struct map_entry *entries;
    int count;
    int capacity;
    int *slots; /* index + 1 of the entry, 0 when free */
    int slots_count;
};

/* FNV-1a, with a final mix so that the low bits are good. */
static uint64_t map_hash(const char *key, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

struct map *map_new(void)
{
    return alloc_bytes(sizeof(struct map));
}

void map_free(struct map *map)
{
    if (!map)
        return;
    for (int i = 0; i < map->count; i++)
        free(map->entries[i].key);
    free(map->entries);
    free(map->slots);
    free(map);
}

/* The slot of the key, or the free slot where it would go. */
static int map_slot(const struct map *map, const char *key, size_t size, uint64_t hash)
{
    int slot = (int)(hash & (uint64_t)(map->slots_count - 1));
    while (map->slots[slot]) {
        const struct map_entry *entry = &map->entries[map->slots[slot] - 1];
        if (entry->hash == hash && entry->size == size && !memcmp(entry->key, key, size))
            break;
        slot = (slot + 1) & (map->slots_count - 1);
    }
    return slot;
}

static void map_rebuild(struct map *map, int slots_count)
{
    free(map->slots);
    map->slots = alloc_array((size_t)slots_count, sizeof(int));
    map->slots_count = slots_count;
    for (int i = 0; i < map->count; i++) {
        const struct map_entry *entry = &map->entries[i];
        map->slots[map_slot(map, entry->key, entry->size, entry->hash)] = i + 1;
    }
}

void map_set(struct map *map, const char *key, void *value)
{
    if (map->count * 2 >= map->slots_count)
        map_rebuild(map, map->slots_count ? map->slots_count * 2 : 16);

    size_t size = strlen(key);
    uint64_t hash = map_hash(key, size);
    int slot = map_slot(map, key, size, hash);
    if (map->slots[slot]) {
        map->entries[map->slots[slot] - 1].value = value;
        return;
    }
    map->entries = alloc_grow(map->entries, map->count, &map->capacity, sizeof(*map->entries));
    map->entries[map->count] = (struct map_entry){alloc_text_n(key, size), size, value, hash};
    map->slots[slot] = ++map->count;
}

static const struct map_entry *map_entry_find(const struct map *map, const char *key,
                                              size_t size)
{
    if (!map->slots_count)
        return NULL;
    int slot = map_slot(map, key, size, map_hash(key, size));
    return map->slots[slot] ? &map->entries[map->slots[slot] - 1] : NULL;
}

void *map_find_n(const struct map *map, const char *key, size_t size)
{
    const struct map_entry *entry = map_entry_find(map, key, size);
    return entry ? entry->value : NULL;
}

void *map_find(const struct map *map, const char *key)
{
    return map_find_n(map, key, strlen(key));
}

bool map_has(const struct map *map, const char *key)
{
    return map_entry_find(map, key, strlen(key)) != NULL;
}

void *map_remove(struct map *map, const char *key)
{
    const struct map_entry *entry = map_entry_find(map, key, strlen(key));
    if (!entry)
        return NULL;
    void *value = entry->value;
    int index = (int)(entry - map->entries);
    free(map->entries[index].key);
    memmove(&map->entries[index], &map->entries[index + 1],
            (size_t)(map->count - index - 1) * sizeof(*map->entries));
    map->count--;
    map_rebuild(map, map->slots_count);
    return value;
}

int map_count(const struct map *map)
{
    return map->count;
}

const char *map_key(const struct map *map, int index)
{
    assert(index >= 0 && index < map->count);
    return map->entries[index].key;
}

void *map_value(const struct map *map, int index)
{
    assert(index >= 0 && index < map->count);
    return map->entries[index].value;
}
