/*
 * gemm_body.h - the register tile of matrix multiplication, packing, and dot products; see
 * isa.h.
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
    bool add = t->beta != 0;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            store(c + v * LANES, add ? acc[i][v] + load(c + v * LANES) : acc[i][v]);
        c += t->c_row;
    }
}

INLINE void tile_body(const int rows, const int vecs, const struct isa_tile *t)
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
        __builtin_prefetch(t->c + i * t->c_row, 1);
    for (int64_t k = t->k; k > 0; k--) {
        vec b0 = load(b);
        vec b1 = vecs > 1 ? load(b + LANES) : b0;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            vec x = splat(a[i * a_row]);
            acc[i][0] += x * b0;
            if (vecs > 1)
                acc[i][1] += x * b1;
        }
        a += a_column;
        b += b_row;
    }
    if (t->columns == vecs * LANES && t->alpha == 1 && (t->beta == 0 || t->beta == 1) &&
        !t->bias && !t->relu)
        tile_finish_plain(rows, vecs, t, acc);
    else
        tile_finish(rows, vecs, t, acc);
}

/* A function per height, so that the accumulators of each live in registers. */
#define TILE(rows)                                                                             \
    static void tile_##rows##x1(const struct isa_tile *t)                                      \
    {                                                                                          \
        tile_body(rows, 1, t);                                                                 \
    }                                                                                          \
    static void tile_##rows##x2(const struct isa_tile *t)                                      \
    {                                                                                          \
        tile_body(rows, 2, t);                                                                 \
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

static void tile(const struct isa_tile *t)
{
    static void (*const tiles[TILE_ROWS][2])(const struct isa_tile *) = {
        {tile_1x1, tile_1x2},
        {tile_2x1, tile_2x2},
        {tile_3x1, tile_3x2},
        {tile_4x1, tile_4x2},
#if TILE_ROWS > 4
        {tile_5x1, tile_5x2},
        {tile_6x1, tile_6x2},
#endif
#if TILE_ROWS > 6
        {tile_7x1, tile_7x2},
        {tile_8x1, tile_8x2},
        {tile_9x1, tile_9x2},
        {tile_10x1, tile_10x2},
        {tile_11x1, tile_11x2},
        {tile_12x1, tile_12x2},
#endif
    };
    tiles[t->rows - 1][t->columns > LANES](t);
}

/* Eight rows of eight, transposed: to[j * to_row + i] = from[i * from_row + j]. */
typedef float vec8 __attribute__((vector_size(32)));
typedef float vec8_memory __attribute__((vector_size(32), aligned(4), may_alias));

INLINE void transpose8(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    vec8 r[8], s[8], t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = *(const vec8_memory *)(from + i * from_row);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 8; h += 4) {
        t[h] = __builtin_shufflevector(s[h], s[h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        t[h + 1] = __builtin_shufflevector(s[h], s[h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        t[h + 2] = __builtin_shufflevector(s[h + 1], s[h + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        t[h + 3] = __builtin_shufflevector(s[h + 1], s[h + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        vec8 low = __builtin_shufflevector(t[j], t[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        vec8 high = __builtin_shufflevector(t[j], t[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        *(vec8_memory *)(to + j * to_row) = low;
        *(vec8_memory *)(to + (j + 4) * to_row) = high;
    }
}

/* to[j * to_row + i] = from[i * from_row + j], for (rows,columns) of `from`. */
static __attribute__((noinline)) void transpose(int64_t rows, int64_t columns,
                                                const float *from, int64_t from_row, float *to,
                                                int64_t to_row)
{
    int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
    for (int64_t i = 0; i < whole_rows; i += 8)
        for (int64_t j = 0; j < whole_columns; j += 8)
            transpose8(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
    for (int64_t j = whole_columns; j < columns; j++)
        for (int64_t i = 0; i < whole_rows; i++)
            to[j * to_row + i] = from[i * from_row + j];
    for (int64_t i = whole_rows; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * to_row + i] = from[i * from_row + j];
}

/* Panels of whole width, B's rows contiguous: along the rows, as memory likes it. */
static void pack_rows(float *panels, int64_t k, int64_t count, const float *b, int64_t row)
{
    for (int64_t p = 0; p < k; p++) {
        const float *from = b + p * row;
        float *to = panels + p * TILE_COLUMNS;
        for (int64_t i = 0; i < count; i++) {
            store(to, load(from));
            store(to + LANES, load(from + LANES));
            from += TILE_COLUMNS;
            to += k * TILE_COLUMNS;
        }
    }
}

static void pack(float *panels, int64_t k, int64_t columns, const float *b, int64_t row,
                 int64_t column)
{
    int64_t whole = columns / TILE_COLUMNS;
    int64_t rest = columns % TILE_COLUMNS;
    if (column == 1)
        pack_rows(panels, k, whole, b, row);
    else
        for (int64_t i = 0; i < whole; i++)
            transpose(TILE_COLUMNS, k, b + i * TILE_COLUMNS * column, column,
                      panels + i * k * TILE_COLUMNS, TILE_COLUMNS);
    if (rest == 0)
        return;
    b += whole * TILE_COLUMNS * column;
    float *panel = panels + whole * k * TILE_COLUMNS;
    for (int64_t i = 0; i < k * TILE_COLUMNS; i++)
        panel[i] = 0;
    if (column == 1) {
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < rest; j++)
                panel[p * TILE_COLUMNS + j] = b[p * row + j];
    } else {
        transpose(rest, k, b, column, panel, TILE_COLUMNS);
    }
}

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
