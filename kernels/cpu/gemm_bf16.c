/*
 * gemm_bf16.c - matrix multiplication whose factors are rounded to bfloat16.
 *
 * As in gemm.c each thread works alone on its part of C, block by block; both factors are
 * rounded while they are packed, two neighbours along k in the room of a float, so that what
 * the tiles read is half as much.  All k here count such pairs.
 */
#include "kernels/cpu/gemm_bf16.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

enum {
    BLOCK_ROWS = 480,  /* a multiple of all tile_rows: A's block of 480 x 160 pairs fits L2 */
    BLOCK_DEPTH = 160, /* a panel of it, 160 x 32 pairs, fits L1 */
    GROUP = 8          /* panels packed at a time: long reads along B's rows, still in L2 */
};

/* One thread's rectangle of C, its room for a block of A and a group of B's panels. */
struct part {
    struct range rows, columns;
    float *a, *panels;
};

/* A block of it in work: rows [i0,i1), pairs [p0,p1) along k. */
struct block {
    int64_t i0, i1, p0, p1;
    int64_t a_row, a_column; /* of the packed block of A */
};

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t a_floats(void)
{
    return BLOCK_ROWS * BLOCK_DEPTH;
}

static int64_t panels_floats(void)
{
    return GROUP * BLOCK_DEPTH * ISA_TILE_COLUMNS_MAX;
}

static int64_t part_floats(void)
{
    return a_floats() + panels_floats();
}

size_t gemm_bf16_scratch(const struct gemm *g, int threads)
{
    (void)g;
    return (size_t)threads * (size_t)part_floats() * sizeof(float);
}

/* How many floats along k the pairs from p0 to p1 stand for. */
static int64_t depth_of(const struct gemm *g, int64_t p0, int64_t p1)
{
    return minimum(2 * p1, g->k) - 2 * p0;
}

static void pack_a(const struct gemm *g, const struct part *part, struct block *block)
{
    const struct isa *ops = isa();
    int64_t rows = block->i1 - block->i0, depth = depth_of(g, block->p0, block->p1);
    const float *a = g->a + block->i0 * g->a_row + 2 * block->p0 * g->a_column;
    bool along = g->a_column == 1;
    block->a_row = along ? block->p1 - block->p0 : 1;
    block->a_column = along ? 1 : rows;
    if (along)
        ops->bf16.pair_columns(rows, depth, a, g->a_row, part->a, block->a_row);
    else
        ops->bf16.pair_rows(depth, rows, a, g->a_column, part->a, block->a_column);
}

/* B (k,columns), which fit one tile, to a panel. */
static void pack_panel(float *panel, int64_t k, int64_t columns, const float *b, int64_t b_row,
                       int64_t b_column)
{
    enum { PIECE = 64 };
    const struct isa *ops = isa();
    float turned[ISA_TILE_COLUMNS_MAX * PIECE];
    int width = ops->tile_columns;
    if (columns < width)
        memset(panel, 0, (size_t)(gemm_bf16_row(k) * width) * sizeof(*panel));
    if (b_column == 1) {
        ops->bf16.pair_rows(k, columns, b, b_row, panel, width);
        return;
    }
    for (int64_t p = 0; p < k; p += 2 * PIECE) {
        int64_t depth = minimum(k - p, 2 * PIECE), pairs = gemm_bf16_row(depth);
        ops->bf16.pair_columns(columns, depth, b + p, b_column, turned, pairs);
        ops->transpose(columns, pairs, turned, pairs, panel + p / 2 * width, width);
    }
}

/* All row tiles of the block, for the columns from j on that fit one tile. */
static void run_column(const struct gemm *g, const struct part *part, const struct block *block,
                       int64_t j, int64_t columns, const float *panel)
{
    const struct isa *ops = isa();
    bool last = 2 * block->p1 >= g->k;
    struct isa_tile tile = {.columns = (int)columns,
                            .k = block->p1 - block->p0,
                            .a_row = block->a_row,
                            .a_column = block->a_column,
                            .b = panel,
                            .b_row = ops->tile_columns,
                            .c_row = g->c_row,
                            .alpha = g->alpha,
                            .beta = block->p0 == 0 ? g->beta : 1,
                            .bias = last && g->bias ? g->bias + j : NULL,
                            .relu = last && g->relu};
    int64_t rows = block->i1 - block->i0;
    int64_t tiles = (rows + ops->tile_rows - 1) / ops->tile_rows;
    for (int64_t t = 0; t < tiles; t++) {
        int64_t i = rows * t / tiles;
        tile.rows = (int)(rows * (t + 1) / tiles - i);
        tile.a = part->a + i * block->a_row;
        tile.c = g->c + (block->i0 + i) * g->c_row + j;
        ops->bf16.tile(&tile);
    }
}

static void run_block(const struct gemm *g, const struct part *part, struct block *block)
{
    int64_t width = isa()->tile_columns, pairs = block->p1 - block->p0;
    int64_t depth = depth_of(g, block->p0, block->p1);
    const float *b = g->b + 2 * block->p0 * g->b_row;
    pack_a(g, part, block);
    for (int64_t j0 = part->columns.from; j0 < part->columns.to; j0 += GROUP * width) {
        int64_t j1 = minimum(j0 + GROUP * width, part->columns.to);
        for (int64_t j = j0; j < j1; j += width)
            pack_panel(part->panels + (j - j0) * pairs, depth, minimum(j1 - j, width),
                       b + j * g->b_column, g->b_row, g->b_column);
        for (int64_t j = j0; j < j1; j += width)
            run_column(g, part, block, j, minimum(j1 - j, width),
                       part->panels + (j - j0) * pairs);
    }
}

static void run_part(const struct gemm *g, const struct part *part)
{
    int64_t pairs = (g->k + 1) / 2, depths = (pairs + BLOCK_DEPTH - 1) / BLOCK_DEPTH;
    for (int64_t i = part->rows.from; i < part->rows.to; i += BLOCK_ROWS)
        for (int64_t d = 0; d < depths; d++)
            run_block(g, part,
                      &(struct block){.i0 = i,
                                      .i1 = minimum(i + BLOCK_ROWS, part->rows.to),
                                      .p0 = pairs * d / depths,
                                      .p1 = pairs * (d + 1) / depths});
}

void gemm_bf16_run(const struct gemm *g, int threads, void *scratch)
{
    int across = gemm_threads_across(g, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        float *mine = (float *)scratch + t * part_floats();
        struct part part = {
            .rows = parallel_range(g->m, isa()->tile_rows, threads / across, t / across),
            .columns = parallel_range(g->n, isa()->tile_columns, across, t % across),
            .a = mine,
            .panels = mine + a_floats()};
        run_part(g, &part);
    }
}

/* --- packed once --- */

int64_t gemm_bf16_row(int64_t k)
{
    return (k + 1) / 2;
}

void gemm_pack_bf16(float *panels, int64_t k, int64_t n, const float *b, int64_t b_row,
                    int64_t b_column)
{
    int64_t width = isa()->tile_columns;
    for (int64_t j = 0; j < n; j += width)
        pack_panel(panels + j * gemm_bf16_row(k), k, minimum(n - j, width), b + j * b_column,
                   b_row, b_column);
}

void gemm_pack_a_bf16(float *pairs, int64_t m, int64_t k, const float *a, int64_t a_row)
{
    isa()->bf16.pair_columns(m, k, a, a_row, pairs, gemm_bf16_row(k));
}
