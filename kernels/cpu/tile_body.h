/*
 * tile_body.h - the register tile of matrix multiplication; see isa.h.
 */

#define TILE_AHEAD 16 /* rows of B that are asked for before they are packed */

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
    float *panel = bf16 || vecs < 2 ? NULL : t->panel;
    for (int64_t k = t->k; k > 0; k--) {
        vec b0 = load(b);
        vec b1 = vecs > 1 ? load(b + LANES) : b0;
        if (panel) {
            store(panel, b0);
            store(panel + LANES, b1);
            panel += 2 * LANES;
            __builtin_prefetch(b + TILE_AHEAD * b_row);
            __builtin_prefetch(b + TILE_AHEAD * b_row + LANES);
        }
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
#define TILE(name, bf16, rows)                                                                 \
    static void name##_##rows##x1(const struct isa_tile *t)                                    \
    {                                                                                          \
        tile_body(rows, 1, bf16, t);                                                           \
    }                                                                                          \
    static void name##_##rows##x2(const struct isa_tile *t)                                    \
    {                                                                                          \
        tile_body(rows, 2, bf16, t);                                                           \
    }
#define TILE_ROW(name, rows)                                                                   \
    {                                                                                          \
        name##_##rows##x1, name##_##rows##x2                                                   \
    }

#if TILE_ROWS > 6
#define TILE_ABOVE_4(name, bf16)                                                               \
    TILE(name, bf16, 5)                                                                        \
    TILE(name, bf16, 6)                                                                        \
    TILE(name, bf16, 7)                                                                        \
    TILE(name, bf16, 8)                                                                        \
    TILE(name, bf16, 9)                                                                        \
    TILE(name, bf16, 10)                                                                       \
    TILE(name, bf16, 11)                                                                       \
    TILE(name, bf16, 12)
#define ROWS_ABOVE_4(name)                                                                     \
    TILE_ROW(name, 5), TILE_ROW(name, 6), TILE_ROW(name, 7), TILE_ROW(name, 8),                \
        TILE_ROW(name, 9), TILE_ROW(name, 10), TILE_ROW(name, 11), TILE_ROW(name, 12)
#elif TILE_ROWS > 4
#define TILE_ABOVE_4(name, bf16)                                                               \
    TILE(name, bf16, 5)                                                                        \
    TILE(name, bf16, 6)
#define ROWS_ABOVE_4(name) TILE_ROW(name, 5), TILE_ROW(name, 6)
#else
#define TILE_ABOVE_4(name, bf16)
#define ROWS_ABOVE_4(name)
#endif

#define TILES(name, bf16)                                                                      \
    TILE(name, bf16, 1)                                                                        \
    TILE(name, bf16, 2)                                                                        \
    TILE(name, bf16, 3)                                                                        \
    TILE(name, bf16, 4)                                                                        \
    TILE_ABOVE_4(name, bf16)                                                                   \
    static void name(const struct isa_tile *t)                                                 \
    {                                                                                          \
        static void (*const tiles[TILE_ROWS][2])(const struct isa_tile *) = {                  \
            TILE_ROW(name, 1), TILE_ROW(name, 2), TILE_ROW(name, 3), TILE_ROW(name, 4),        \
            ROWS_ABOVE_4(name)};                                                               \
        tiles[t->rows - 1][t->columns > LANES](t);                                             \
    }
