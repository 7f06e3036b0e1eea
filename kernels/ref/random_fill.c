/* random_fill.c - distributions made from the words of Philox. */

#include "kernels/ref/random.h"

#include <math.h>

void kernel_philox_skip(struct philox *philox, uint64_t blocks)
{
    philox->low += blocks;
    philox->high += philox->low < blocks;
}

struct philox kernel_philox_from_seeds(uint64_t seed0, uint64_t seed1)
{
    const struct philox mixer = {
        .key = UINT64_C(0x02461e293ec8f720), .low = seed0, .high = seed1};
    uint32_t words[4];
    philox_block(&mixer, 0, words);
    return (struct philox){.key = words[0] | (uint64_t)words[1] << 32,
                           .low = 0,
                           .high = words[2] | (uint64_t)words[3] << 32};
}

/* --- numbers in [0, 1) from the bits of a mantissa --- */

static float unit_f32(uint32_t word)
{
    uint32_t bits = UINT32_C(127) << 23 | (word & 0x7fffff);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value - 1;
}

static double unit_f64(uint32_t w0, uint32_t w1)
{
    uint64_t bits = UINT64_C(1023) << 52 | (uint64_t)(w0 & 0xfffff) << 32 | w1;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value - 1;
}

static float unit_f16(uint32_t word)
{
    return dtype_f16_to_f32((uint16_t)(15u << 10 | (word & 0x3ff))) - 1;
}

static float unit_bf16(uint32_t word)
{
    return dtype_bf16_to_f32((uint16_t)(127u << 7 | (word & 0x7f))) - 1;
}

/* --- normal numbers by pairs (Box and Muller) --- */

static void normal_pair_f32(uint32_t w0, uint32_t w1, double out[2])
{
    float u = fmaxf(unit_f32(w0), 1e-7f), v = (float)(2 * M_PI * unit_f32(w1));
    float radius = sqrtf(-2 * logf(u));
    out[0] = sinf(v) * radius;
    out[1] = cosf(v) * radius;
}

static void normal_pair_f64(const uint32_t w[4], double out[2])
{
    double u = fmax(unit_f64(w[0], w[1]), 1e-7), v = 2 * M_PI * unit_f64(w[2], w[3]);
    double radius = sqrt(-2 * log(u));
    out[0] = sin(v) * radius;
    out[1] = cos(v) * radius;
}

/* Normal numbers of one block: four of 32 bits, two of 64. */
static int normal_block(const uint32_t words[4], bool wide, double out[4])
{
    if (wide) {
        normal_pair_f64(words, out);
        return 2;
    }
    normal_pair_f32(words[0], words[1], out);
    normal_pair_f32(words[2], words[3], out + 2);
    return 4;
}

static double uniform_of(enum dtype dtype, const uint32_t words[4], int64_t i)
{
    switch (dtype) {
    case F64:
        return unit_f64(words[2 * (i % 2)], words[2 * (i % 2) + 1]);
    case F32:
        return unit_f32(words[i % 4]);
    case F16:
        return unit_f16(words[i % 4]);
    default:
        return unit_bf16(words[i % 4]);
    }
}

int kernel_random_block(const struct philox *philox, uint64_t index, enum random_kind kind,
                        enum dtype dtype, double numbers[4])
{
    uint32_t words[4];
    philox_block(philox, index, words);
    if (kind == RANDOM_NORMAL)
        return normal_block(words, dtype == F64, numbers);
    int count = dtype == F64 ? 2 : 4;
    for (int i = 0; i < count; i++)
        numbers[i] = uniform_of(dtype, words, i);
    return count;
}

/* Each number has 64 blocks to its name: groups of a block's size start as many blocks apart,
 * and leave out what is 2 or more from 0. */
static void fill_truncated(const struct philox *philox, struct tensor *out, int64_t from,
                           int64_t limit)
{
    kernel_store *store = kernel_store_for(out->dtype);
    int group = out->dtype == F64 ? 2 : 4;
    for (int64_t start = from; start < limit; start += group) {
        uint64_t block = (uint64_t)start * 64;
        int64_t end = start + group < limit ? start + group : limit;
        for (int64_t to = start; to < end; block++) {
            double numbers[4];
            int count = kernel_random_block(philox, block, RANDOM_NORMAL, out->dtype, numbers);
            for (int i = 0; i < count && to < end; i++)
                if (fabs(numbers[i]) < 2)
                    store(out->data, to++, numbers[i]);
        }
    }
}

void kernel_random_fill_range(const struct philox *philox, enum random_kind kind,
                              struct tensor *out, int64_t from, int64_t to)
{
    kernel_store *store = kernel_store_for(out->dtype);
    int per_block = out->dtype == F64 ? 2 : 4;
    assert(from % 4 == 0);
    if (kind == RANDOM_TRUNCATED) {
        fill_truncated(philox, out, from, to);
        return;
    }
    for (int64_t start = from; start < to; start += per_block) {
        double numbers[4];
        kernel_random_block(philox, (uint64_t)(start / per_block), kind, out->dtype, numbers);
        for (int i = 0; i < per_block && start + i < to; i++)
            store(out->data, start + i, numbers[i]);
    }
}

void kernel_random_fill(const struct philox *philox, enum random_kind kind, struct tensor *out)
{
    kernel_random_fill_range(philox, kind, out, 0, out->count);
}

void kernel_random_fill_integers(const struct philox *philox, uint64_t low, uint64_t range,
                                 struct tensor *out)
{
    bool wide = dtype_size(out->dtype) == 8;
    int per_block = wide ? 2 : 4;
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        uint32_t words[4];
        philox_block(philox, (uint64_t)(i / per_block), words);
        uint64_t word =
            wide ? words[2 * (i % 2)] | (uint64_t)words[2 * (i % 2) + 1] << 32 : words[i % 4];
        if (range)
            word %= range;
        store(out->data, i, low + word);
    }
}
