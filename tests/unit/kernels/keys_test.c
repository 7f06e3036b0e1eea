/* keys_test.c - keys and their numbers, against a list that is searched from end to end. */

#include "base/alloc.h"
#include "kernels/state/keys.h"
#include "tests/unit/test.h"

enum { KEYS = 200, STEPS = 20000 };

/* Short and long keys, one of them empty. */
static size_t make_key(char *out, size_t out_size, int which)
{
    return which ? (size_t)snprintf(out, out_size, which % 2 ? "%d" : "a key with number %d",
                                    which)
                 : 0;
}

TEST(keys_are_found_until_they_are_removed)
{
    struct keys *keys = kernel_keys_new();
    int64_t numbers[KEYS]; /* -1: not there */
    int64_t count = 0;
    uint32_t random = 1;
    char key[64];
    for (int i = 0; i < KEYS; i++)
        numbers[i] = -1;
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        int which = (int)(random >> 8) % KEYS, what = (int)(random >> 24) % 5;
        size_t size = make_key(key, sizeof(key), which);
        CHECK_INT(kernel_keys_find(keys, key, size), numbers[which]);
        if (what < 3) {
            int64_t number = kernel_keys_add(keys, key, size);
            CHECK(numbers[which] < 0 || numbers[which] == number);
            count += numbers[which] < 0;
            numbers[which] = number;
        } else if (what == 3) {
            CHECK_INT(kernel_keys_remove(keys, key, size), numbers[which]);
            count -= numbers[which] >= 0;
            numbers[which] = -1;
        }
        CHECK_INT(kernel_keys_count(keys), count);
    }
    CHECK(kernel_keys_numbers(keys) <= KEYS); /* numbers are given again */
    kernel_keys_free(keys);
}

TEST(each_number_has_its_key)
{
    struct keys *keys = kernel_keys_new();
    char key[64];
    for (int i = 0; i < KEYS; i++)
        CHECK_INT(kernel_keys_add(keys, key, make_key(key, sizeof(key), i)), i);
    for (int i = 0; i < KEYS; i += 3)
        CHECK_INT(kernel_keys_remove(keys, key, make_key(key, sizeof(key), i)), i);
    for (int i = 0; i < KEYS; i++) {
        size_t size, wanted = make_key(key, sizeof(key), i);
        const void *found = kernel_keys_at(keys, i, &size);
        CHECK(!found == (i % 3 == 0));
        if (found) {
            CHECK_INT(size, wanted);
            CHECK(!memcmp(found, key, size));
        }
    }
    kernel_keys_clear(keys);
    CHECK_INT(kernel_keys_count(keys), 0);
    CHECK_INT(kernel_keys_find(keys, "1", 1), -1);
    CHECK_INT(kernel_keys_add(keys, "1", 1), 0);
    kernel_keys_free(keys);
}
