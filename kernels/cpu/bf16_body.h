/*
 * bf16_body.h - floats rounded to bfloat16, to the nearest and if there are two to the even
 * one, two of them in the room of a float, and products of such pairs; see isa_bf16.h.
 *
 * Instructions for it differ from what is written here by one thing: they take numbers below
 * 1e-38 for 0, as all our kernels do.
 */

/* The bits of x rounded: those of a bfloat16 in the upper half, 0 in the lower. */
INLINE uint32_t rounded_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if (x != x)
        return (bits | 0x400000) & 0xffff0000u; /* a NaN stays one */
    return (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
}

INLINE float paired(float low, float high)
{
    uint32_t bits = rounded_bits(low) >> 16 | rounded_bits(high);
    float pair;
    memcpy(&pair, &bits, sizeof(pair));
    return pair;
}

/* All lanes are the pair at `p`, whose bits no instruction for floats may see. */
INLINE ivec splat_pair(const float *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof(bits));
    return bits - (ivec){0};
}

/* sums + the products of both halves, lane by lane. */
INLINE vec multiply_pairs(vec sums, ivec a, vec b)
{
#ifdef __AVX512BF16__
    return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
#else
    const ivec upper = (int32_t)0xffff0000u - (ivec){0};
    sums += (vec)(a & upper) * (vec)((ivec)b & upper);
    return sums + (vec)(a << 16) * (vec)((ivec)b << 16);
#endif
}

#ifdef __AVX512BF16__
#define HAS_BF16 true

INLINE void store_pairs(float *to, __m512bh pairs)
{
    _mm512_storeu_si512(to, (__m512i)pairs);
}

static void pair_columns(int64_t rows, int64_t k, const float *from, int64_t from_row,
                         float *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++, from += from_row, to += to_row) {
        int64_t p = 0;
        for (; p + 2 * LANES <= k; p += 2 * LANES)
            store_pairs(to + p / 2,
                        _mm512_cvtne2ps_pbh(load(from + p + LANES), load(from + p)));
        int64_t rest = k - p;
        if (rest) {
            vec high = rest > LANES ? load_part(from + p + LANES, rest - LANES, 0) : (vec){0};
            vec low = load_part(from + p, rest, 0);
            store_part(to + p / 2, (rest + 1) / 2, (vec)_mm512_cvtne2ps_pbh(high, low));
        }
    }
}

/* Lane j: the bfloat16 of `first` and of `second` there. */
INLINE vec pair_lanes(vec first, vec second)
{
    typedef uint16_t words __attribute__((vector_size(64)));
    const words order = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return (vec)_mm512_permutexvar_epi16((__m512i)order,
                                         (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

static void pair_rows(int64_t k, int64_t columns, const float *from, int64_t from_row,
                      float *to, int64_t to_row)
{
    for (int64_t p = 0; p < k; p += 2, from += 2 * from_row, to += to_row) {
        bool two = p + 1 < k;
        for (int64_t j = 0; j < columns; j += LANES) {
            vec first = load_part(from + j, columns - j, 0);
            vec second = two ? load_part(from + from_row + j, columns - j, 0) : (vec){0};
            store_part(to + j, columns - j, pair_lanes(first, second));
        }
    }
}

#else
#define HAS_BF16 false

static void pair_columns(int64_t rows, int64_t k, const float *from, int64_t from_row,
                         float *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++, from += from_row, to += to_row) {
        for (int64_t p = 0; p < k / 2; p++)
            to[p] = paired(from[2 * p], from[2 * p + 1]);
        if (k % 2)
            to[k / 2] = paired(from[k - 1], 0);
    }
}

static void pair_rows(int64_t k, int64_t columns, const float *from, int64_t from_row,
                      float *to, int64_t to_row)
{
    for (int64_t p = 0; p < k; p += 2, from += 2 * from_row, to += to_row) {
        if (p + 1 < k)
            for (int64_t j = 0; j < columns; j++)
                to[j] = paired(from[j], from[from_row + j]);
        else
            for (int64_t j = 0; j < columns; j++)
                to[j] = paired(from[j], 0);
    }
}
#endif

static void round_bf16(int64_t count, const float *from, float *to)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = rounded_bits(from[i]);
        memcpy(to + i, &bits, sizeof(bits));
    }
}
