/*
 * gemm_body.h - the register tile of matrix multiplication, and dot products; see isa.h.
 */

/* Scales, adds bias, clips and stores the accumulators. */
INLINE void tile_finish(const int rows, const int vecs, const struct isa_tile *t,
                        vec acc[TILE_ROWS][2])
{
#pragma GCC unroll 2
    for (int v = 0; v < vecs; v++) {
        int columns = t->columns - v * LANES;
        vec bias = t->bias ? load_part(t->bias + v * LANES, columns, 0) : (vec){0};
        float *c = t->c + v * LANES;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            vec y = acc[i][v];
            if (t->alpha != 1)
                y *= t->alpha;
            if (t->beta != 0)
                y += load_part(c, columns, 0) * t->beta;
            if (t->bias)
                y += bias;
            if (t->relu)
                y = choose(y < 0, (vec){0}, y); /* a NaN stays */
            store_part(c, columns, y);
            c += t->c_row;
        }
    }
}

/* The usual: whole vectors, stored or added to what is there. */
INLINE void tile_finish_plain(const int rows, const int vecs, const struct isa_tile *t,
                              vec acc[TILE_ROWS][2])
{
    float *c = t->c;
    const bool add = t->beta != 0;
    const float alpha = t->alpha;
    const int64_t c_row = t->c_row;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++) {
            vec y = add ? load(c + v * LANES) + acc[i][v] * alpha : acc[i][v] * alpha;
            store(c + v * LANES, y);
        }
        c += c_row;
    }
}

INLINE void tile_body(const int rows, const int vecs, const bool bf16, const struct isa_tile *t)
{
    vec acc[TILE_ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        acc[i][0] = acc[i][1] = (vec){0};

    const float *a = t->a;
    const float *b = t->b;
    const int64_t a_row = t->a_row;
    const int64_t a_column = t->a_column;
    const int64_t b_row = t->b_row;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs * LANES; v += 16)
            __builtin_prefetch(t->c + i * t->c_row + v, 1);
    for (int64_t k = t->k; k > 0; k--) {
        vec b0 = load(b);
        vec b1 = vecs > 1 ? load(b + LANES) : b0;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            if (bf16) {
                ivec x = splat_pair(a + i * a_row);
                acc[i][0] = multiply_pairs(acc[i][0], x, b0);
                if (vecs > 1)
                    acc[i][1] = multiply_pairs(acc[i][1], x, b1);
            } else {
                vec x = splat(a[i * a_row]);
                acc[i][0] += x * b0;
                if (vecs > 1)
                    acc[i][1] += x * b1;
            }
        }
        a += a_column;
        b += b_row;
    }
    if (t->columns == vecs * LANES && (t->beta == 0 || t->beta == 1) && !t->bias && !t->relu)
        tile_finish_plain(rows, vecs, t, acc);
    else
        tile_finish(rows, vecs, t, acc);
}

/* A function per height, so that the accumulators of each live in registers. */
#define TILE(rows)                                                                             \
    static void tile_##rows##x1(const struct isa_tile *t)                                      \
    {                                                                                          \
        tile_body(rows, 1, false, t);                                                          \
    }                                                                                          \
    static void tile_##rows##x2(const struct isa_tile *t)                                      \
    {                                                                                          \
        tile_body(rows, 2, false, t);                                                          \
    }                                                                                          \
    static void tile_bf16_##rows##x1(const struct isa_tile *t)                                 \
    {                                                                                          \
        tile_body(rows, 1, true, t);                                                           \
    }                                                                                          \
    static void tile_bf16_##rows##x2(const struct isa_tile *t)                                 \
    {                                                                                          \
        tile_body(rows, 2, true, t);                                                           \
    }

TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if TILE_ROWS > 4
TILE(5)
TILE(6)
#endif
#if TILE_ROWS > 6
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#endif

#define TILE_ROW(name, rows)                                                                   \
    {                                                                                          \
        name##_##rows##x1, name##_##rows##x2                                                   \
    }

#if TILE_ROWS > 6
#define TILES_ABOVE_4(name)                                                                    \
    TILE_ROW(name, 5), TILE_ROW(name, 6), TILE_ROW(name, 7), TILE_ROW(name, 8),                \
        TILE_ROW(name, 9), TILE_ROW(name, 10), TILE_ROW(name, 11), TILE_ROW(name, 12)
#elif TILE_ROWS > 4
#define TILES_ABOVE_4(name) TILE_ROW(name, 5), TILE_ROW(name, 6)
#else
#define TILES_ABOVE_4(name)
#endif

#define TILES(name)                                                                            \
    static void name(const struct isa_tile *t)                                                 \
    {                                                                                          \
        static void (*const tiles[TILE_ROWS][2])(const struct isa_tile *) = {                  \
            TILE_ROW(name, 1), TILE_ROW(name, 2), TILE_ROW(name, 3), TILE_ROW(name, 4),        \
            TILES_ABOVE_4(name)};                                                              \
        tiles[t->rows - 1][t->columns > LANES](t);                                             \
    }

TILES(tile)
TILES(tile_bf16)

/* Loaded once: the compiler would rather load it again for each multiplication. */
INLINE vec load_once(const float *p)
{
    vec v = load(p);
#ifdef __x86_64__
    __asm__("" : "+x"(v));
#endif
    return v;
}

/* `rows` times `width` dot products at once: 2x5 keeps the loads below the multiplications. */
INLINE void dot_block(const int rows, const int width, int64_t k, const float *x, int64_t x_row,
                      const float *w, int64_t w_row, float *c, int64_t c_row, const float *bias)
{
    vec acc[2][5];
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 5
        for (int j = 0; j < width; j++)
            acc[i][j] = (vec){0};
    for (int64_t p = 0; p < k; p += LANES) {
        vec a[2];
#pragma GCC unroll 2
        for (int i = 0; i < rows; i++)
            a[i] = load_once(x + i * x_row + p);
#pragma GCC unroll 5
        for (int j = 0; j < width; j++) {
            vec b = load_once(w + j * w_row + p);
#pragma GCC unroll 2
            for (int i = 0; i < rows; i++)
                acc[i][j] += a[i] * b;
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 5
        for (int j = 0; j < width; j++)
            c[i * c_row + j] = lanes_sum(acc[i][j]) + (bias ? bias[j] : 0);
}

/* All rows for `width` columns of W, which stay in L1 meanwhile. */
INLINE void dot_columns(const int width, int64_t m, int64_t k, const float *x, int64_t x_row,
                        const float *w, int64_t w_row, float *c, int64_t c_row,
                        const float *bias)
{
    int64_t i = 0;
    for (; i + 2 <= m; i += 2)
        dot_block(2, width, k, x + i * x_row, x_row, w, w_row, c + i * c_row, c_row, bias);
    if (i < m)
        dot_block(1, width, k, x + i * x_row, x_row, w, w_row, c + i * c_row, c_row, bias);
}

/* What is left of k after whole vectors. */
static void dot_rest(int64_t m, int n, int64_t from, int64_t k, const float *x, int64_t x_row,
                     const float *w, int64_t w_row, float *c, int64_t c_row)
{
    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int64_t p = from; p < k; p++)
                c[i * c_row + j] += x[i * x_row + p] * w[j * w_row + p];
}

static void dot(int64_t m, int n, int64_t k, const float *x, int64_t x_row, const float *w,
                int64_t w_row, float *c, int64_t c_row, const float *bias)
{
    int64_t whole = k / LANES * LANES;
    int j = 0;
    for (; j + 5 <= n; j += 5)
        dot_columns(5, m, whole, x, x_row, w + j * w_row, w_row, c + j, c_row,
                    bias ? bias + j : NULL);
    for (; j < n; j++)
        dot_columns(1, m, whole, x, x_row, w + j * w_row, w_row, c + j, c_row,
                    bias ? bias + j : NULL);
    if (whole < k)
        dot_rest(m, n, whole, k, x, x_row, w, w_row, c, c_row);
}
