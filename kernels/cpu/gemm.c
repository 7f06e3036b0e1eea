/*
 * gemm.c - matrix multiplication: cut into a rectangle per thread, blocks per cache, tiles per
 * register file.
 *
 * Each thread works alone on its part of C: for a block of rows and a depth of k it multiplies
 * all row tiles of the block with one panel of B (in L1) after the other.  B whose rows are
 * contiguous is packed by the first tile that reads a panel, unless only two do; else a group
 * of panels is packed before (in L2).  A is read in place where its rows are contiguous and not
 * crowded (see is_crowded()), else packed by block.
 *
 * A factor or a result that is too large for the caches and is gone through once (a layer's
 * weights in a small batch, their gradient) goes along its rows, as memory likes it: see
 * cuts_of().
 *
 * Narrow results (n <= 16 and deep k, the last layer of a classifier) waste half of a tile:
 * those are computed as dot products along k, or with the roles of A and B swapped.  So are
 * flat ones (m <= 8) of a large B whose columns are contiguous.
 */
#include "kernels/cpu/gemm.h"

#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

enum {
    BLOCK_DEPTH = 320,     /* where a panel's width does not ask for less */
    PANEL_FLOATS = 6144,   /* of B: fits L1, beside what passes by of A and C */
    BLOCK_ROWS = 264,      /* of A, so that they and what is made of them stay in L2 */
    GROUP = 16,            /* panels packed at a time: long reads along B's rows */
    WHOLE_BYTES = 1 << 20, /* of B, to be packed once for all blocks of rows */
    NARROW_COLUMNS = 16,
    FLAT_ROWS = 8,
    LARGE_FLOATS = 1 << 18, /* what goes through the caches once it is so large */
    STREAM_DEPTH = 16,      /* rows of B that are gone through together */
    STREAM_COLUMNS = 4096,  /* of C, which stay in L2 beside them */
    WIDE_COLUMNS = 1024,    /* of fewer, the rows of a block are in L2 together */
    WIDE_DEPTH = 64,
    CROWDED = 1024,      /* floats between rows, see is_crowded() */
    SERIAL_WORK = 200000 /* multiplications that one thread does sooner than two start */
};

/* One thread's rectangle of C. */
struct part {
    int64_t m_from, m_to, n_from, n_to;
};

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* k in equal parts, so deep that a panel fits L1. */
static int64_t depth_of(int64_t k)
{
    int64_t most = minimum(BLOCK_DEPTH, PANEL_FLOATS / isa()->tile_columns);
    int64_t depths = (k + most - 1) / most;
    return (k + depths - 1) / depths;
}

static size_t panels_bytes(void)
{
    return (size_t)GROUP * PANEL_FLOATS * sizeof(float);
}

static size_t block_bytes(void)
{
    return BLOCK_ROWS * BLOCK_DEPTH * sizeof(float);
}

/* Computes with dot products along k: each row of A and, packed, each column of B contiguous.
 */
static bool is_narrow(const struct gemm *g)
{
    return g->n <= NARROW_COLUMNS && g->k >= 64 && g->a_column == 1 && g->alpha == 1 &&
           g->beta == 0 && !g->relu;
}

/* Better as C^T = B^T A^T: few columns, many rows that are contiguous in A. */
static bool is_tall(const struct gemm *g)
{
    bool put = g->alpha == 1 && g->beta == 0;
    bool add = g->beta == 1 && g->c_row == g->n;
    return g->n <= NARROW_COLUMNS && g->m >= 64 && g->a_row == 1 && (put || add) && !g->bias &&
           !g->relu;
}

/* The same of few rows, where B is too large to be turned for them: its columns, which are
 * contiguous, times the rows of A. */
static bool is_flat(const struct gemm *g)
{
    return g->m <= FLAT_ROWS && g->k >= 64 && g->b_row == 1 && g->a_column == 1 &&
           g->k * g->n >= LARGE_FLOATS && g->alpha == 1 && g->beta == 0 && !g->bias && !g->relu;
}

/* B is packed by the way where its rows are contiguous; else so many rows take all of it
 * packed, where it is small. */
static bool is_packed_whole(const struct gemm *g)
{
    return g->b_column != 1 && g->m > BLOCK_ROWS &&
           (uint64_t)g->k * (uint64_t)g->n <= WHOLE_BYTES / sizeof(float);
}

static int threads_for(const struct gemm *g, int threads)
{
    return g->m * g->n * g->k < SERIAL_WORK ? 1 : threads;
}

size_t gemm_scratch(const struct gemm *g, int threads)
{
    if (g->bf16)
        return gemm_bf16_scratch(g, threads_for(g, threads));
    if (is_narrow(g))
        return (size_t)(g->k * g->n) * sizeof(float);
    if (is_flat(g))
        return 0;
    size_t bytes = (size_t)threads_for(g, threads) * (panels_bytes() + block_bytes());
    if (is_tall(g))
        bytes += 2 * (size_t)(g->m * g->n) * sizeof(float);
    else if (is_packed_whole(g))
        bytes += gemm_pack_bytes(g->k, g->n);
    return bytes;
}

static void scale_rows(const struct gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->c_row;
        for (int64_t j = 0; j < g->n; j++) {
            float y = g->beta == 0 ? 0 : g->beta * c[j];
            y += g->bias ? g->bias[j] : 0;
            c[j] = g->relu && y < 0 ? 0 : y;
        }
    }
}

/* A block of C += A B in work: rows [i0,i1), depth [p0,p1). */
struct block {
    int64_t i0, i1, p0, p1;
    const float *a; /* of i0 and p0, perhaps packed */
    int64_t a_row, a_column;
    bool tiled; /* A is packed by isa()->pack_tiles(): row i begins its tile at i * a_row */
};

/* How many tiles so many rows make; equally high ones, for low tiles leave the FMA units idle.
 */
static int64_t tiles_of(int64_t rows)
{
    return (rows + isa()->tile_rows - 1) / isa()->tile_rows;
}

/* All row tiles of the block, for the columns from j on that fit one tile.  With `panel`, the
 * first of them packs B there for the others. */
static void run_column(const struct gemm *g, const struct block *block, int64_t j, int columns,
                       const float *b, int64_t b_row, float *panel)
{
    const struct isa *ops = isa();
    bool last = block->p1 == g->k;
    struct isa_tile tile = {.columns = columns,
                            .k = block->p1 - block->p0,
                            .a_row = block->a_row,
                            .a_column = block->a_column,
                            .b = b,
                            .b_row = b_row,
                            .panel = panel,
                            .c_row = g->c_row,
                            .alpha = g->alpha,
                            .beta = block->p0 == 0 ? g->beta : 1,
                            .bias = last && g->bias ? g->bias + j : NULL,
                            .relu = last && g->relu};
    int64_t rows = block->i1 - block->i0;
    int64_t tiles = tiles_of(rows);
    for (int64_t t = 0; t < tiles; t++) {
        int64_t i = rows * t / tiles;
        tile.rows = (int)(rows * (t + 1) / tiles - i);
        tile.a = block->a + i * block->a_row;
        if (block->tiled) {
            tile.a_row = 1;
            tile.a_column = tile.rows;
        }
        tile.c = g->c + (block->i0 + i) * g->c_row + j;
        ops->tile(&tile);
        if (panel) {
            tile.panel = NULL;
            tile.b = panel;
            tile.b_row = ops->tile_columns;
        }
    }
}

/* Columns [j0,j1) of the block, of panels or, with NULL, of B in place, which `room` takes a
 * panel of where many tiles read it. */
static void run_group(const struct gemm *g, const struct block *block, int64_t j0, int64_t j1,
                      const float *panels, float *room)
{
    const struct isa *ops = isa();
    int64_t depth = block->p1 - block->p0;
    int width = ops->tile_columns;
    bool many = block->i1 - block->i0 > 2 * ops->tile_rows;
    for (int64_t j = j0; j < j1; j += width) {
        int columns = (int)minimum(j1 - j, width);
        const float *b = g->b + block->p0 * g->b_row + j * g->b_column;
        if (panels) {
            run_column(g, block, j, columns, panels + (j - j0) * depth, width, NULL);
        } else if (columns == width) {
            run_column(g, block, j, columns, b, g->b_row, many ? room : NULL);
        } else {
            ops->pack(room, depth, columns, b, g->b_row, 1);
            run_column(g, block, j, columns, room, width, NULL);
        }
    }
}

/* Rows that are multiples of 4 KiB apart share so few sets of the first cache that those of a
 * tile drive each other out. */
static bool is_crowded(const struct gemm *g)
{
    return g->a_column == 1 && g->a_row % CROWDED == 0;
}

/* Rows [i0,i1) of A, packed into `room` where they are not read in place. */
static struct block take_block(const struct gemm *g, int64_t i0, int64_t i1, int64_t p0,
                               int64_t p1, bool pack, float *room)
{
    int64_t rows = i1 - i0, depth = p1 - p0;
    struct block block = {.i0 = i0,
                          .i1 = i1,
                          .p0 = p0,
                          .p1 = p1,
                          .a = g->a + i0 * g->a_row + p0 * g->a_column,
                          .a_row = g->a_row,
                          .a_column = g->a_column};
    if (pack && g->a_column != 1) {
        isa()->pack_tiles(room, depth, rows, tiles_of(rows), block.a, g->a_column);
        block.tiled = true;
    } else if (pack && is_crowded(g)) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(room + i * depth, block.a + i * g->a_row, (size_t)depth * sizeof(float));
    } else {
        return block;
    }
    block.a = room;
    block.a_row = depth;
    return block;
}

/* Depth [p0,p1) of columns [j0,j1) of B. */
static void pack_panels(const struct gemm *g, int64_t p0, int64_t p1, int64_t j0, int64_t j1,
                        float *panels)
{
    isa()->pack(panels, p1 - p0, j1 - j0, g->b + p0 * g->b_row + j0 * g->b_column, g->b_row,
                g->b_column);
}

/* Where depth [p0,p1) of column j is among all of B, a depth after the other. */
static float *whole_panel(const struct gemm *g, const float *whole, int64_t p0, int64_t p1,
                          int64_t j)
{
    size_t depth_bytes = gemm_pack_bytes(1, g->n);
    return (float *)whole + (size_t)p0 * depth_bytes / sizeof(float) + j * (p1 - p0);
}

static void pack_whole(const struct gemm *g, int threads, float *whole)
{
    int64_t depth = depth_of(g->k);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(g->n, isa()->tile_columns, threads, t);
        for (int64_t p0 = 0; p0 < g->k; p0 += depth) {
            int64_t p1 = minimum(p0 + depth, g->k);
            pack_panels(g, p0, p1, r.from, r.to, whole_panel(g, whole, p0, p1, r.from));
        }
    }
}

/* How a thread's part is cut: blocks of rows, depths, columns for which a depth follows the
 * other before the next columns come, and of these so many that are packed together. */
struct cuts {
    int64_t rows, depth, columns, group;
};

/* B that few rows read from memory, once, is taken a few whole rows at a time; C of a small k,
 * whose B stays in L2, is written a tile's whole rows at a time. */
static struct cuts cuts_of(const struct gemm *g, const struct part *part, bool in_place)
{
    const struct isa *ops = isa();
    struct cuts cuts = {.rows = BLOCK_ROWS,
                        .depth = depth_of(g->k),
                        .columns = part->n_to - part->n_from,
                        .group = (int64_t)GROUP * ops->tile_columns};
    if (!in_place || cuts.columns < WIDE_COLUMNS)
        return cuts;
    if (part->m_to - part->m_from <= 2 * ops->tile_rows &&
        g->k * cuts.columns >= LARGE_FLOATS) {
        cuts.depth = minimum(g->k, STREAM_DEPTH);
        cuts.columns = minimum(cuts.columns, STREAM_COLUMNS);
        cuts.group = cuts.columns;
    } else if (g->k <= WIDE_DEPTH && g->k * cuts.columns <= LARGE_FLOATS &&
               (part->m_to - part->m_from) * cuts.columns >= LARGE_FLOATS) {
        cuts.rows = ops->tile_rows;
        cuts.group = cuts.columns;
    }
    return cuts;
}

/* Columns [j0,j1) of a block, a group after the other. */
static void run_block(const struct gemm *g, const struct block *block, int64_t j0, int64_t j1,
                      int64_t wide, const float *whole, float *panels)
{
    bool in_place = !whole && g->b_column == 1;
    for (int64_t j = j0; j < j1; j += wide) {
        int64_t end = minimum(j + wide, j1);
        const float *group = in_place ? NULL : panels;
        if (whole)
            group = whole_panel(g, whole, block->p0, block->p1, j);
        else if (!in_place)
            pack_panels(g, block->p0, block->p1, j, end, panels);
        run_group(g, block, j, end, group, panels);
    }
}

/* `room` is of panels_bytes() and block_bytes(); `whole` is B of pack_whole(), or NULL. */
static void run_part(const struct gemm *g, const struct part *part, char *room,
                     const float *whole)
{
    float *panels = (float *)(void *)room, *a_block = (float *)(void *)(room + panels_bytes());
    int64_t rows = part->m_to - part->m_from;
    bool in_place = !whole && g->b_column == 1;
    bool pack = part->n_to - part->n_from > 64;
    struct cuts cuts = cuts_of(g, part, in_place);
    int64_t blocks = (rows + cuts.rows - 1) / cuts.rows;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t i0 = part->m_from + rows * i / blocks;
        int64_t i1 = part->m_from + rows * (i + 1) / blocks;
        for (int64_t j0 = part->n_from; j0 < part->n_to; j0 += cuts.columns) {
            int64_t j1 = minimum(j0 + cuts.columns, part->n_to);
            for (int64_t p0 = 0; p0 < g->k; p0 += cuts.depth) {
                int64_t p1 = minimum(p0 + cuts.depth, g->k);
                struct block block = take_block(g, i0, i1, p0, p1, pack, a_block);
                run_block(g, &block, j0, j1, cuts.group, whole, panels);
            }
        }
    }
}

int gemm_threads_across(const struct gemm *g, int threads)
{
    const struct isa *ops = isa();
    int best = 1;
    double best_cost = 0;
    for (int across = 1; across <= threads; across++) {
        if (threads % across)
            continue;
        struct range rows =
            parallel_range(g->m, ops->tile_rows, threads / across, threads / across - 1);
        struct range columns = parallel_range(g->n, ops->tile_columns, across, across - 1);
        /* work of the largest part, and what it has to pack or read */
        double m = (double)(rows.to - rows.from);
        double n = (double)(columns.to - columns.from);
        double cost = m * n + 8 * (m + n) + (double)g->n;
        if (best_cost == 0 || cost < best_cost) {
            best = across;
            best_cost = cost;
        }
    }
    return best;
}

static void run_parallel(const struct gemm *g, int threads, char *scratch)
{
    int across = gemm_threads_across(g, threads);
    size_t each = panels_bytes() + block_bytes();
    float *whole =
        is_packed_whole(g) ? (float *)(void *)(scratch + (size_t)threads * each) : NULL;
    if (whole)
        pack_whole(g, threads, whole);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range m = parallel_range(g->m, isa()->tile_rows, threads / across, t / across);
        struct range n = parallel_range(g->n, isa()->tile_columns, across, t % across);
        struct part part = {m.from, m.to, n.from, n.to};
        run_part(g, &part, scratch + (size_t)t * each, whole);
    }
}

static void run_narrow(const struct gemm *g, int threads, float *w)
{
    const struct isa *ops = isa();
    if (g->b_column == 1)
        ops->transpose(g->k, g->n, g->b, g->b_row, w, g->k);
    else
        for (int64_t j = 0; j < g->n; j++)
            memcpy(w + j * g->k, g->b + j * g->b_column, (size_t)g->k * sizeof(float));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(g->m, 2, threads, t);
        ops->dot(r.to - r.from, (int)g->n, g->k, g->a + r.from * g->a_row, g->a_row, w, g->k,
                 g->c + r.from * g->c_row, g->c_row, g->bias);
    }
}

/* So many columns of B that they stay in L2 while they meet all rows of A. */
static void run_flat(const struct gemm *g, int threads)
{
    enum { ABREAST = 16, DEPTH = 640 }; /* of the rows of A so much stays in L1 */
    const struct isa *ops = isa();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        float part[ABREAST * FLAT_ROWS], turned[ABREAST * FLAT_ROWS];
        struct range r = parallel_range(g->n, ABREAST, threads, t);
        for (int64_t j = r.from; j < r.to; j += ABREAST) {
            int64_t count = minimum(r.to - j, ABREAST);
            for (int64_t p = 0; p < g->k; p += DEPTH) {
                ops->dot(count, (int)g->m, minimum(g->k - p, DEPTH), g->b + j * g->b_column + p,
                         g->b_column, g->a + p, g->a_row, p ? part : turned, g->m, NULL);
                for (int64_t i = 0; p && i < count * g->m; i++)
                    turned[i] += part[i];
            }
            ops->transpose(count, g->m, turned, g->m, g->c + j, g->c_row);
        }
    }
}

/* C^T (n,m) in slices of rows of C, turned back as soon as they are done. */
static void run_tall(const struct gemm *g, int threads, char *scratch)
{
    size_t each = panels_bytes() + block_bytes();
    float *turned = (float *)(void *)(scratch + (size_t)threads * each);
    float *straight = turned + g->m * g->n;
    bool put = g->beta == 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(g->m, isa()->tile_columns, threads, t);
        int64_t rows = r.to - r.from, at = r.from * g->n;
        struct gemm swapped = {.m = g->n,
                               .n = rows,
                               .k = g->k,
                               .a = g->b,
                               .a_row = g->b_column,
                               .a_column = g->b_row,
                               .b = g->a + r.from,
                               .b_row = g->a_column,
                               .b_column = 1,
                               .c = turned + at,
                               .c_row = rows,
                               .alpha = 1};
        struct part part = {.m_to = g->n, .n_to = rows};
        run_part(&swapped, &part, scratch + (size_t)t * each, NULL);
        isa()->transpose(g->n, rows, swapped.c, rows,
                         put ? g->c + r.from * g->c_row : straight + at, put ? g->c_row : g->n);
        if (!put)
            isa()->scale_add(rows * g->n, g->alpha, straight + at, g->c + at);
    }
}

void gemm_run(const struct gemm *g, int threads, void *scratch)
{
    threads = threads_for(g, threads);
    if (g->m == 0 || g->n == 0)
        return;
    if (g->k == 0)
        scale_rows(g);
    else if (g->bf16)
        gemm_bf16_run(g, threads, scratch);
    else if (is_narrow(g))
        run_narrow(g, threads, scratch);
    else if (is_flat(g))
        run_flat(g, threads);
    else if (is_tall(g))
        run_tall(g, threads, scratch);
    else
        run_parallel(g, threads, scratch);
}

size_t gemm_pack_bytes(int64_t k, int64_t n)
{
    int64_t width = isa()->tile_columns;
    return (size_t)(k * ((n + width - 1) / width * width)) * sizeof(float);
}

void gemm_pack(float *panels, int64_t k, int64_t n, const float *b, int64_t b_row,
               int64_t b_column)
{
    isa()->pack(panels, k, n, b, b_row, b_column);
}

void gemm_packed_run(const struct gemm_packed *g, int64_t from, int64_t to)
{
    const struct isa *ops = isa();
    int64_t width = ops->tile_columns, tiles = tiles_of(g->m);
    int64_t k = g->bf16 ? gemm_bf16_row(g->k) : g->k;
    int64_t depths = (k + BLOCK_DEPTH - 1) / BLOCK_DEPTH;
    int64_t depth = (k + depths - 1) / depths;
    struct isa_tile tile = {
        .a_row = g->a_row, .a_column = 1, .b_row = width, .c_row = g->c_row, .alpha = 1};
    for (int64_t j = from; j < to; j += width) {
        tile.columns = (int)minimum(to - j, width);
        for (int64_t p = 0; p < k; p += depth) {
            tile.k = minimum(k - p, depth);
            tile.b = g->panels + j * k + p * width;
            tile.beta = g->add || p > 0 ? 1 : 0;
            for (int64_t t = 0; t < tiles; t++) {
                int64_t i = g->m * t / tiles;
                tile.rows = (int)(g->m * (t + 1) / tiles - i);
                tile.a = g->a + i * g->a_row + p;
                tile.c = g->c + i * g->c_row + j;
                g->bf16 ? ops->bf16.tile(&tile) : ops->tile(&tile);
            }
        }
    }
}
