/*
 * winograd_body.h - Winograd's convolution: the changes between space and points, vectors along
 * the channels; see winograd.h and isa.h.
 *
 * A row of six values of an image is the product of two shorter polynomials (a filter's, and
 * what becomes of the result by transposition).  Polynomials are multiplied at six points: 0,
 * +-a, +-b and infinity.  All changes are those of a row, done to rows and then to columns.
 */
#define WINOGRAD_A 0.625f
#define WINOGRAD_B 1.5f
#define WINOGRAD_A2 (WINOGRAD_A * WINOGRAD_A)
#define WINOGRAD_B2 (WINOGRAD_B * WINOGRAD_B)

/* 1 / the product of a point's distances from the others, for 0, +-a, +-b. */
#define WINOGRAD_SCALE_0 (1 / (WINOGRAD_A2 * WINOGRAD_B2))
#define WINOGRAD_SCALE_A (1 / (2 * WINOGRAD_A2 * (WINOGRAD_A2 - WINOGRAD_B2)))
#define WINOGRAD_SCALE_B (1 / (2 * WINOGRAD_B2 * (WINOGRAD_B2 - WINOGRAD_A2)))

/* What six values of an image are at the points. */
INLINE void winograd_image(vec v[6])
{
    const float sum = WINOGRAD_A2 + WINOGRAD_B2, product = WINOGRAD_A2 * WINOGRAD_B2;
    vec zero = v[0] * product - v[2] * sum + v[4];
    vec last = v[1] * product - v[3] * sum + v[5];
    vec even_a = v[4] - v[2] * WINOGRAD_B2, odd_a = v[3] - v[1] * WINOGRAD_B2;
    vec even_b = v[4] - v[2] * WINOGRAD_A2, odd_b = v[3] - v[1] * WINOGRAD_A2;
    v[0] = zero;
    v[1] = even_a + odd_a * WINOGRAD_A;
    v[2] = even_a - odd_a * WINOGRAD_A;
    v[3] = even_b + odd_b * WINOGRAD_B;
    v[4] = even_b - odd_b * WINOGRAD_B;
    v[5] = last;
}

/* The polynomial of the first n values at the points; of a filter (n odd) with the scales. */
INLINE void winograd_evaluate(const int n, vec v[6])
{
    vec zero = v[0], last = v[n - 1];
    vec even_a = v[0], even_b = v[0], odd_a = v[1], odd_b = v[1];
    if (n > 2) {
        even_a += v[2] * WINOGRAD_A2;
        even_b += v[2] * WINOGRAD_B2;
    }
    if (n > 3) {
        odd_a += v[3] * WINOGRAD_A2;
        odd_b += v[3] * WINOGRAD_B2;
    }
    if (n > 4) {
        even_a += v[4] * (WINOGRAD_A2 * WINOGRAD_A2);
        even_b += v[4] * (WINOGRAD_B2 * WINOGRAD_B2);
    }
    if (n & 1) {
        zero *= WINOGRAD_SCALE_0;
        even_a *= WINOGRAD_SCALE_A;
        odd_a *= WINOGRAD_SCALE_A;
        even_b *= WINOGRAD_SCALE_B;
        odd_b *= WINOGRAD_SCALE_B;
    }
    v[0] = zero;
    v[1] = even_a + odd_a * WINOGRAD_A;
    v[2] = even_a - odd_a * WINOGRAD_A;
    v[3] = even_b + odd_b * WINOGRAD_B;
    v[4] = even_b - odd_b * WINOGRAD_B;
    v[5] = last;
}

/* The transposed of winograd_evaluate(): n values from those at the points. */
INLINE void winograd_collect(const int n, vec v[6])
{
    vec zero = v[0], last = v[5];
    vec sum_a = v[1] + v[2], apart_a = (v[1] - v[2]) * WINOGRAD_A;
    vec sum_b = v[3] + v[4], apart_b = (v[3] - v[4]) * WINOGRAD_B;
    if (n & 1) {
        zero *= WINOGRAD_SCALE_0;
        sum_a *= WINOGRAD_SCALE_A;
        apart_a *= WINOGRAD_SCALE_A;
        sum_b *= WINOGRAD_SCALE_B;
        apart_b *= WINOGRAD_SCALE_B;
    }
    v[0] = zero + sum_a + sum_b;
    v[1] = apart_a + apart_b;
    if (n > 2)
        v[2] = sum_a * WINOGRAD_A2 + sum_b * WINOGRAD_B2;
    if (n > 3)
        v[3] = apart_a * WINOGRAD_A2 + apart_b * WINOGRAD_B2;
    if (n > 4)
        v[4] = sum_a * (WINOGRAD_A2 * WINOGRAD_A2) + sum_b * (WINOGRAD_B2 * WINOGRAD_B2);
    v[n - 1] += last;
}

INLINE void winograd_row(const int n, vec v[6])
{
    if (n == 6)
        winograd_image(v);
    else
        winograd_evaluate(n, v);
}

/* What stands at the points: floats; pairs of channels in bfloat16; or of patches, of which the
 * first one's floats are there already. */
enum winograd_form { WINOGRAD_WHOLE, WINOGRAD_CHANNELS, WINOGRAD_PATCHES };

INLINE void winograd_put(const enum winograd_form form, float *to, vec v)
{
#ifdef __AVX512BF16__
    if (form == WINOGRAD_CHANNELS) {
        _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(v));
        return;
    }
    if (form == WINOGRAD_PATCHES)
        v = pair_lanes(load(to), v);
#endif
    (void)form;
    store(to, v);
}

/* (n,n) places in space to the points. */
INLINE void winograd_to_points(const int n, const enum winograd_form form,
                               const struct isa_winograd *w)
{
    for (int64_t c = 0, at = 0; c < w->channels; c += LANES, at += w->advance) {
        vec rows[6][6], v[6];
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
#pragma GCC unroll 6
            for (int j = 0; j < n; j++)
                v[j] = load(w->space[i * n + j] + c);
#pragma GCC unroll 6
            for (int j = n > 5 ? 2 : 0; j < n; j++) /* an image's patches overlap */
                __builtin_prefetch(w->later[i * n + j] + c);
            winograd_row(n, v);
#pragma GCC unroll 6
            for (int j = 0; j < 6; j++)
                rows[i][j] = v[j];
        }
        float *points = w->points + at;
#pragma GCC unroll 6
        for (int j = 0; j < 6; j++) {
#pragma GCC unroll 6
            for (int i = 0; i < n; i++)
                v[i] = rows[i][j];
            winograd_row(n, v);
#pragma GCC unroll 6
            for (int i = 0; i < 6; i++)
                winograd_put(form, points + (i * 6 + j) * w->stride, v[i]);
        }
    }
}

/* And back, with bias and Relu behind. */
INLINE void winograd_to_space(const int n, const struct isa_winograd *w)
{
    for (int64_t c = 0, at = 0; c < w->channels; c += LANES, at += w->advance) {
        vec rows[6][6], v[6];
        const float *points = w->points + at;
        vec bias = w->bias ? load(w->bias + c) : (vec){0};
#pragma GCC unroll 6
        for (int i = 0; i < 6; i++) {
#pragma GCC unroll 6
            for (int j = 0; j < 6; j++)
                v[j] = load(points + (i * 6 + j) * w->stride);
            winograd_collect(n, v);
#pragma GCC unroll 6
            for (int j = 0; j < n; j++)
                rows[i][j] = v[j];
        }
#pragma GCC unroll 6
        for (int j = 0; j < n; j++) {
#pragma GCC unroll 6
            for (int i = 0; i < 6; i++)
                v[i] = rows[i][j];
            winograd_collect(n, v);
#pragma GCC unroll 6
            for (int i = 0; i < n; i++) {
                vec y = w->bias ? v[i] + bias : v[i];
                if (w->relu)
                    y = choose(y < 0, (vec){0}, y); /* a NaN stays */
                store(w->space[i * n + j] + c, y);
            }
        }
    }
}

/* A function of the change for each n. */
#define WINOGRAD_SPREAD(name, form)                                                            \
    static void name(int n, const struct isa_winograd *w)                                      \
    {                                                                                          \
        switch (n) {                                                                           \
        case 2:                                                                                \
            winograd_to_points(2, form, w);                                                    \
            break;                                                                             \
        case 3:                                                                                \
            winograd_to_points(3, form, w);                                                    \
            break;                                                                             \
        case 4:                                                                                \
            winograd_to_points(4, form, w);                                                    \
            break;                                                                             \
        case 5:                                                                                \
            winograd_to_points(5, form, w);                                                    \
            break;                                                                             \
        default:                                                                               \
            winograd_to_points(6, form, w);                                                    \
        }                                                                                      \
    }

#define WINOGRAD_GATHER(name)                                                                  \
    static void name(int n, const struct isa_winograd *w)                                      \
    {                                                                                          \
        switch (n) {                                                                           \
        case 2:                                                                                \
            winograd_to_space(2, w);                                                           \
            break;                                                                             \
        case 3:                                                                                \
            winograd_to_space(3, w);                                                           \
            break;                                                                             \
        case 4:                                                                                \
            winograd_to_space(4, w);                                                           \
            break;                                                                             \
        default:                                                                               \
            winograd_to_space(5, w);                                                           \
        }                                                                                      \
    }
