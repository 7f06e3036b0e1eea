/*
 * vec_body.h - one vector register of floats: loads, stores, masks, sums, functions.
 *
 * GCC's and clang's vector types, so that one text serves all instruction sets.
 */
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));
typedef float vec4 __attribute__((vector_size(16)));
/* The same in memory that need not be aligned. */
typedef float vec_memory __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

INLINE vec load(const float *p)
{
    return *(const vec_memory *)p;
}

INLINE void store(float *p, vec v)
{
    *(vec_memory *)p = v;
}

INLINE vec splat(float x)
{
    return x - (vec){0};
}

/* mask ? a : b, lane by lane; the mask is that of a comparison. */
INLINE vec choose(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* x between the two; NaN stays. */
INLINE vec between(float least, float most, vec x)
{
#if LANES == 16
    return _mm512_min_ps(splat(most), _mm512_max_ps(splat(least), x)); /* NaN: the second */
#else
    return choose(x > most, splat(most), choose(x < least, splat(least), x));
#endif
}

/* The gradient of Relu: what is not finite is so also where nothing came through. */
INLINE vec relu_grad(vec grad, vec features)
{
    return grad * choose(features > 0, splat(1), (vec){0});
}

/* Whole vectors, or the first `count` lanes: the others are `fill`, and not stored. */
#if LANES == 16
INLINE vec load_part(const float *p, int64_t count, float fill)
{
    if (count >= LANES)
        return load(p);
    return _mm512_mask_loadu_ps(splat(fill), (__mmask16)((1u << count) - 1), p);
}

INLINE void store_part(float *p, int64_t count, vec v)
{
    if (count >= LANES)
        store(p, v);
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), v);
}
#elif LANES == 8
static const int32_t first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

INLINE vec load_part(const float *p, int64_t count, float fill)
{
    if (count >= LANES)
        return load(p);
    __m256i mask = _mm256_loadu_si256((const __m256i *)(const void *)(first_lanes + 8 - count));
    return choose((ivec)mask, _mm256_maskload_ps(p, mask), splat(fill));
}

INLINE void store_part(float *p, int64_t count, vec v)
{
    if (count >= LANES) {
        store(p, v);
        return;
    }
    __m256i mask = _mm256_loadu_si256((const __m256i *)(const void *)(first_lanes + 8 - count));
    _mm256_maskstore_ps(p, mask, v);
}
#else
INLINE vec load_part(const float *p, int64_t count, float fill)
{
    if (count >= LANES)
        return load(p);
    vec v = splat(fill);
    for (int i = 0; i < count; i++)
        v[i] = p[i];
    return v;
}

INLINE void store_part(float *p, int64_t count, vec v)
{
    if (count >= LANES) {
        store(p, v);
        return;
    }
    for (int i = 0; i < count; i++)
        p[i] = v[i];
}
#endif

/* The larger; NaN if either is. */
INLINE vec larger(vec a, vec b)
{
#if LANES == 16
    return _mm512_mask_mov_ps(_mm512_max_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
#else
    return choose((a < b) | (b != b), b, a);
#endif
}

INLINE vec smaller(vec a, vec b)
{
#if LANES == 16
    return _mm512_mask_mov_ps(_mm512_min_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
#else
    return choose((b < a) | (b != b), b, a);
#endif
}

INLINE vec root(vec x)
{
#if LANES == 16
    return _mm512_sqrt_ps(x);
#elif LANES == 8
    return _mm256_sqrt_ps(x);
#else
    for (int i = 0; i < LANES; i++)
        x[i] = sqrtf(x[i]);
    return x;
#endif
}

/* The sum of the lanes, halves onto each other: always in the same order. */
INLINE float lanes_sum(vec v)
{
#if LANES == 16
    typedef float half __attribute__((vector_size(32)));
    half h = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    vec h = v;
#endif
#if LANES >= 8
    vec4 q =
        __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
#else
    vec4 q = h;
#endif
    q += __builtin_shufflevector(q, q, 2, 3, 0, 1);
    return q[0] + q[1];
}

INLINE float lanes_maximum(vec v)
{
#if LANES == 16
    v = larger(
        v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    v = larger(
        v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    v = larger(
        v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    v = larger(
        v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
#elif LANES == 8
    v = larger(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    v = larger(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
    v = larger(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6));
#else
    v = larger(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
    v = larger(v, __builtin_shufflevector(v, v, 1, 0, 3, 2));
#endif
    return v[0];
}

/* e^x to 2 units in the last place; exact at the ends: 0, inf, NaN. */
INLINE vec exponential(vec x)
{
    vec clamped = between(-104.0f, 89.0f, x);
    vec n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f; /* rounded to an integer */
    vec r = clamped - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + (r + 1.0f);
    /* What would come to 0 is 0 at once: processors are slow where a result is too small. */
#if LANES == 16
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, splat(-104.0f), _CMP_NLT_UQ), p, n);
#else
    p = choose(x < -104.0f, (vec){0}, p);
    /* 2^n in two steps, for n is -150 to 129. */
    ivec whole = __builtin_convertvector(choose(n == n, n, (vec){0}), ivec);
    ivec half = whole >> 1;
    vec low = (vec)((half + 127) << 23);
    vec high = (vec)((whole - half + 127) << 23);
    return p * low * high;
#endif
}

/* log x to 1 unit in the last place; exact at the ends: -inf, inf, NaN. */
INLINE vec logarithm(vec x)
{
    ivec tiny = x < 1.17549435e-38f;
    ivec bits = (ivec)choose(tiny, x * 8388608.0f, x);
    vec exponent = __builtin_convertvector((bits >> 23) - 126, vec);
    vec m = (vec)((bits & 0x7fffff) | 0x3f000000); /* from 1/2 to 1 */
    ivec low = m < 0.707106781f;
    exponent = exponent - choose(tiny, splat(23), (vec){0}) - choose(low, splat(1), (vec){0});
    m = m - 1.0f + choose(low, m, (vec){0});
    vec z = m * m;
    vec p = m * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * z + exponent * -2.12194440e-4f - z * 0.5f;
    vec y = m + p + exponent * 0.693359375f;
    y = choose(x == INFINITY, x, y);
    y = choose(x == 0, splat(-INFINITY), y);
    return choose((x < 0) | (x != x), splat(NAN), y);
}
