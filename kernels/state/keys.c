/* keys.c - keys in an array, found through open addressing over their numbers. */

#include "kernels/state/keys.h"

#include "base/alloc.h"

/* Keys up to this size need no memory of their own. */
enum { SMALL_BYTES = 16 };

struct key {
    uint64_t hash;
    size_t size;
    bool used;
    int64_t next_free; /* while it is not used: number + 1, 0 for the last */
    union {
        char small[SMALL_BYTES];
        char *large; /* owned */
    };
};

struct keys {
    struct key *all;
    int64_t numbers; /* of `all`, used or free */
    int64_t capacity;
    int64_t count;
    int64_t first_free; /* number + 1, 0 for none */
    int64_t *slots;     /* number + 1, 0 when free */
    int64_t slots_count;
};

static uint64_t hash_bytes(const unsigned char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ size;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    for (; size; bytes++, size--)
        hash = (hash ^ *bytes) * UINT64_C(0x100000001b3);
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static const char *bytes_of(const struct key *key)
{
    return key->size <= SMALL_BYTES ? key->small : key->large;
}

struct keys *kernel_keys_new(void)
{
    return alloc_bytes(sizeof(struct keys));
}

void kernel_keys_clear(struct keys *keys)
{
    for (int64_t i = 0; i < keys->numbers; i++)
        if (keys->all[i].used && keys->all[i].size > SMALL_BYTES)
            free(keys->all[i].large);
    free(keys->all);
    free(keys->slots);
    *keys = (struct keys){0};
}

void kernel_keys_free(struct keys *keys)
{
    if (!keys)
        return;
    kernel_keys_clear(keys);
    free(keys);
}

int64_t kernel_keys_count(const struct keys *keys)
{
    return keys->count;
}

int64_t kernel_keys_numbers(const struct keys *keys)
{
    return keys->numbers;
}

/* --- slots --- */

/* The slot of the key, or the free one where it would go. */
static int64_t find_slot(const struct keys *keys, const void *bytes, size_t size, uint64_t hash)
{
    int64_t slot = (int64_t)(hash & (uint64_t)(keys->slots_count - 1));
    while (keys->slots[slot]) {
        const struct key *key = &keys->all[keys->slots[slot] - 1];
        if (key->hash == hash && key->size == size &&
            (!size || !memcmp(bytes_of(key), bytes, size)))
            break;
        slot = (slot + 1) & (keys->slots_count - 1);
    }
    return slot;
}

static void fill_slots(struct keys *keys, int64_t slots_count)
{
    free(keys->slots);
    keys->slots = alloc_array((size_t)slots_count, sizeof(*keys->slots));
    keys->slots_count = slots_count;
    for (int64_t i = 0; i < keys->numbers; i++) {
        const struct key *key = &keys->all[i];
        if (key->used)
            keys->slots[find_slot(keys, bytes_of(key), key->size, key->hash)] = i + 1;
    }
}

/* What stands behind a slot that became free moves up, so that it is still found. */
static void close_gap(struct keys *keys, int64_t gap)
{
    int64_t mask = keys->slots_count - 1;
    keys->slots[gap] = 0;
    for (int64_t slot = (gap + 1) & mask; keys->slots[slot]; slot = (slot + 1) & mask) {
        int64_t home = (int64_t)(keys->all[keys->slots[slot] - 1].hash & (uint64_t)mask);
        if (((slot - home) & mask) < ((slot - gap) & mask))
            continue;
        keys->slots[gap] = keys->slots[slot];
        keys->slots[slot] = 0;
        gap = slot;
    }
}

/* --- keys --- */

int64_t kernel_keys_find(const struct keys *keys, const void *key, size_t size)
{
    if (!keys->slots_count)
        return -1;
    return keys->slots[find_slot(keys, key, size, hash_bytes(key, size))] - 1;
}

static int64_t take_number(struct keys *keys)
{
    if (keys->first_free) {
        int64_t number = keys->first_free - 1;
        keys->first_free = keys->all[number].next_free;
        return number;
    }
    if (keys->numbers == keys->capacity) {
        keys->capacity = keys->capacity ? 2 * keys->capacity : 16;
        keys->all = alloc_resize(keys->all, (size_t)keys->capacity * sizeof(*keys->all));
    }
    return keys->numbers++;
}

int64_t kernel_keys_add(struct keys *keys, const void *key, size_t size)
{
    if (2 * (keys->count + 1) > keys->slots_count)
        fill_slots(keys, keys->slots_count ? 2 * keys->slots_count : 32);
    uint64_t hash = hash_bytes(key, size);
    int64_t slot = find_slot(keys, key, size, hash);
    if (keys->slots[slot])
        return keys->slots[slot] - 1;

    int64_t number = take_number(keys);
    struct key *made = &keys->all[number];
    *made = (struct key){.hash = hash, .size = size, .used = true};
    if (size > SMALL_BYTES)
        made->large = alloc_bytes(size);
    if (size)
        memcpy(size > SMALL_BYTES ? made->large : made->small, key, size);
    keys->slots[slot] = number + 1;
    keys->count++;
    return number;
}

int64_t kernel_keys_remove(struct keys *keys, const void *key, size_t size)
{
    if (!keys->slots_count)
        return -1;
    int64_t slot = find_slot(keys, key, size, hash_bytes(key, size));
    int64_t number = keys->slots[slot] - 1;
    if (number < 0)
        return -1;
    struct key *removed = &keys->all[number];
    if (removed->size > SMALL_BYTES)
        free(removed->large);
    removed->used = false;
    removed->next_free = keys->first_free;
    keys->first_free = number + 1;
    keys->count--;
    close_gap(keys, slot);
    return number;
}

const void *kernel_keys_at(const struct keys *keys, int64_t number, size_t *size)
{
    assert(number >= 0 && number < keys->numbers);
    const struct key *key = &keys->all[number];
    *size = key->size;
    return key->used ? bytes_of(key) : NULL;
}
