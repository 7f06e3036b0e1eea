/*
 * pack_body.h - matrices moved to where products read them best: transposed, in panels, in
 * tiles; see isa.h.
 */

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

enum { TILES_ABREAST = 32 };

/* The tiles [first,last) of pack_tiles(), along A's rows of memory, which are far apart.  Whole
 * vectors are read and stored while they stay within A and within the tile, for a part of a
 * vector costs some processors a dozen times as much: what is stored too much, the next p
 * stores over. */
static void pack_some_tiles(float *to, int64_t k, int64_t rows, int64_t tiles, const float *a,
                            int64_t column, int64_t first, int64_t last)
{
    int64_t from[TILES_ABREAST + 1];
    int count = (int)(last - first);
    for (int t = 0; t <= count; t++)
        from[t] = rows * (first + t) / tiles;
    int64_t lowest = rows / tiles;
    int64_t whole = k - (LANES + lowest - 1) / lowest;
    int64_t p = 0;
    for (; p <= whole; p++, a += column)
        for (int t = 0; t < count; t++)
            store(to + from[t] * k + p * (from[t + 1] - from[t]), load(a + from[t]));
    for (; p < k; p++, a += column) {
        for (int t = 0; t < count; t++) {
            int64_t high = from[t + 1] - from[t];
            store_part(to + from[t] * k + p * high, high, load_part(a + from[t], high, 0));
        }
    }
}

/* A tile's column is at most one vector: TILE_ROWS <= LANES. */
static void pack_tiles(float *to, int64_t k, int64_t rows, int64_t tiles, const float *a,
                       int64_t column)
{
    for (int64_t t = 0; t < tiles; t += TILES_ABREAST) {
        int64_t end = t + TILES_ABREAST < tiles ? t + TILES_ABREAST : tiles;
        pack_some_tiles(to, k, rows, tiles, a, column, t, end);
    }
}
