/* shuffle.c - permutations from counter-based random numbers. */

#include "runtime/dataset/shuffle.h"

/* Number `index` of the stream `key`: splitmix64 at that place. */
static uint64_t random_at(uint64_t key, uint64_t index)
{
    uint64_t x = key + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* 0 .. limit - 1; the upper 32 bits of a product, off by at most limit / 2^32. */
static int64_t random_below(uint64_t key, int64_t index, int64_t limit)
{
    return (int64_t)(((random_at(key, (uint64_t)index) >> 32) * (uint64_t)limit) >> 32);
}

void shuffle_order(int64_t seed, int64_t epoch, int64_t buffer, int32_t *order, int64_t count)
{
    assert(count >= 0 && count <= INT32_MAX);
    for (int64_t i = 0; i < count; i++)
        order[i] = (int32_t)i;
    if (!buffer)
        return;
    uint64_t key = random_at(random_at(0x736875666c65, (uint64_t)seed), (uint64_t)epoch);
    if (buffer < 0 || buffer > count)
        buffer = count;
    /*
     * The buffer is the window order[i .. i + buffer): drawing one and putting the window's
     * first in its place moves the window on by one, which takes the next example in.  With a
     * window as long as what is left, this is Fisher and Yates's shuffle.
     */
    for (int64_t i = 0; i < count; i++) {
        int64_t window = count - i < buffer ? count - i : buffer;
        int64_t drawn = i + random_below(key, i, window);
        int32_t example = order[drawn];
        order[drawn] = order[i];
        order[i] = example;
    }
}
