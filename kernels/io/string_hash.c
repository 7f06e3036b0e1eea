/* string_hash.c - the hashes themselves. */

#include "kernels/io/string_hash.h"

static uint64_t fetch64(const char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint64_t fetch32(const char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static uint64_t rotate_right(uint64_t value, int by)
{
    return value >> by | value << (64 - by);
}

/* --- FarmHash --- */

static const uint64_t k0 = UINT64_C(0xc3a5c85c97cb3127);
static const uint64_t k1 = UINT64_C(0xb492b66fbe98f273);
static const uint64_t k2 = UINT64_C(0x9ae16a3b2f90404f);

static uint64_t mix_shifted(uint64_t value)
{
    return value ^ value >> 47;
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t factor)
{
    uint64_t a = mix_shifted((u ^ v) * factor);
    return mix_shifted((v ^ a) * factor) * factor;
}

static uint64_t farm_upto16(const char *s, size_t size)
{
    uint64_t factor = k2 + size * 2;
    if (size >= 8) {
        uint64_t a = fetch64(s) + k2, b = fetch64(s + size - 8);
        uint64_t c = rotate_right(b, 37) * factor + a, d = (rotate_right(a, 25) + b) * factor;
        return join(c, d, factor);
    }
    if (size >= 4)
        return join(size + (fetch32(s) << 3), fetch32(s + size - 4), factor);
    if (size == 0)
        return k2;
    uint8_t first = (uint8_t)s[0], middle = (uint8_t)s[size >> 1], last = (uint8_t)s[size - 1];
    uint32_t y = first + ((uint32_t)middle << 8), z = (uint32_t)size + ((uint32_t)last << 2);
    return mix_shifted(y * k2 ^ z * k0) * k2;
}

static uint64_t farm_upto32(const char *s, size_t size)
{
    uint64_t factor = k2 + size * 2;
    uint64_t a = fetch64(s) * k1, b = fetch64(s + 8);
    uint64_t c = fetch64(s + size - 8) * factor, d = fetch64(s + size - 16) * k2;
    return join(rotate_right(a + b, 43) + rotate_right(c, 30) + d,
                a + rotate_right(b + k2, 18) + c, factor);
}

static uint64_t farm_upto64(const char *s, size_t size)
{
    uint64_t factor = k2 + size * 2;
    uint64_t a = fetch64(s) * k2, b = fetch64(s + 8);
    uint64_t c = fetch64(s + size - 8) * factor, d = fetch64(s + size - 16) * k2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = join(y, a + rotate_right(b + k2, 18) + c, factor);
    uint64_t e = fetch64(s + 16) * factor, f = fetch64(s + 24);
    uint64_t g = (y + fetch64(s + size - 32)) * factor;
    uint64_t h = (z + fetch64(s + size - 24)) * factor;
    return join(rotate_right(e + f, 43) + rotate_right(g, 30) + h,
                e + rotate_right(f + a, 18) + g, factor);
}

struct pair {
    uint64_t first, second;
};

static struct pair weak_hash32(const char *s, uint64_t a, uint64_t b)
{
    uint64_t w = fetch64(s), x = fetch64(s + 8), y = fetch64(s + 16), z = fetch64(s + 24);
    a += w;
    b = rotate_right(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += rotate_right(a, 44);
    return (struct pair){a + z, b + c};
}

/* What is carried from one block of 64 bytes to the next. */
struct farm {
    uint64_t x, y, z;
    struct pair v, w;
};

/* `nine` is 9 for the last block, 1 for those before it. */
static void farm_block(struct farm *f, const char *s, uint64_t factor, uint64_t nine)
{
    f->x = rotate_right(f->x + f->y + f->v.first + fetch64(s + 8), 37) * factor;
    f->y = rotate_right(f->y + f->v.second + fetch64(s + 48), 42) * factor;
    f->x ^= f->w.second * nine;
    f->y += f->v.first * nine + fetch64(s + 40);
    f->z = rotate_right(f->z + f->w.first, 33) * factor;
    f->v = weak_hash32(s, f->v.second * factor, f->x + f->w.first);
    f->w = weak_hash32(s + 32, f->z + f->w.second, f->y + fetch64(s + 16));
    uint64_t swapped = f->z;
    f->z = f->x;
    f->x = swapped;
}

uint64_t kernel_fingerprint64(const void *bytes, size_t size)
{
    const char *s = bytes;
    if (size <= 16)
        return farm_upto16(s, size);
    if (size <= 32)
        return farm_upto32(s, size);
    if (size <= 64)
        return farm_upto64(s, size);
    const uint64_t seed = 81;
    struct farm f = {.x = seed, .y = seed * k1 + 113};
    f.z = mix_shifted(f.y * k2 + 113) * k2;
    f.x = f.x * k2 + fetch64(s);
    const char *end = s + (size - 1) / 64 * 64;
    size_t rest = (size - 1) & 63;
    for (; s != end; s += 64)
        farm_block(&f, s, k1, 1);
    uint64_t factor = k1 + ((f.z & 0xff) << 1);
    f.w.first += rest;
    f.v.first += f.w.first;
    f.w.first += f.v.first;
    farm_block(&f, end + rest - 63, factor, 9);
    return join(join(f.v.first, f.w.first, factor) + mix_shifted(f.y) * k0 + f.z,
                join(f.v.second, f.w.second, factor) + f.x, factor);
}

uint64_t kernel_fingerprint_cat(uint64_t a, uint64_t b)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t result = a ^ factor;
    result ^= mix_shifted(b * factor) * factor;
    result *= factor;
    result = mix_shifted(result) * factor;
    return mix_shifted(result);
}

/* --- MurmurHash --- */

uint64_t kernel_legacy_hash64(const void *bytes, size_t size)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t hash = UINT64_C(0xDECAFCAFFE) ^ size * factor;
    const char *s = bytes;
    size_t left = size;
    for (; left >= 8; left -= 8, s += 8) {
        uint64_t k = fetch64(s) * factor;
        k = mix_shifted(k) * factor;
        hash = (hash ^ k) * factor;
    }
    for (size_t i = left; i > 0; i--)
        hash ^= (uint64_t)(uint8_t)s[i - 1] << 8 * (i - 1);
    if (left)
        hash *= factor;
    hash = mix_shifted(hash) * factor;
    return mix_shifted(hash);
}

/* --- SipHash --- */

static uint64_t rotate_left(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t kernel_siphash(const uint64_t key[2], const void *bytes, size_t size)
{
    uint64_t v[4] = {
        UINT64_C(0x736f6d6570736575) ^ key[0], UINT64_C(0x646f72616e646f6d) ^ key[1],
        UINT64_C(0x6c7967656e657261) ^ key[0], UINT64_C(0x7465646279746573) ^ key[1]};
    const char *s = bytes;
    size_t left = size;
    for (; left >= 8; left -= 8, s += 8)
        sip_word(v, fetch64(s));
    uint64_t last = (uint64_t)size << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)(uint8_t)s[i] << 8 * i;
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int round = 0; round < 4; round++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
