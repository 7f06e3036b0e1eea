/*
 * random.h - random numbers that are the same everywhere: xoshiro256**, seeded by splitmix64.
 */
#pragma once

#include "base/base.h"

struct random {
    uint64_t s[4];
};

static inline void random_init(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        random->s[i] = z ^ z >> 31;
    }
}

static inline uint64_t random_next(struct random *random)
{
    uint64_t *s = random->s;
    uint64_t x = s[1] * 5;
    uint64_t result = (x << 7 | x >> 57) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

/* 0 .. below-1 */
static inline int random_below(struct random *random, int below)
{
    return (int)(random_next(random) % (uint64_t)below);
}

static inline uint64_t random_between(struct random *random, uint64_t from, uint64_t to)
{
    return from + random_next(random) % (to - from + 1);
}

/* True in `percent` of 100 cases. */
static inline bool random_chance(struct random *random, int percent)
{
    return random_below(random, 100) < percent;
}
