/*
 * isa_bf16.h - the inner loops for factors in bfloat16, whose sums are float; part of isa.h.
 *
 * Two neighbours along k lie in the room of one float, the first in its lower half: a pair.
 */
#pragma once

#include "base/base.h"

struct isa_tile;
struct isa_winograd;
struct isa_winograd_product;

struct isa_bf16 {
    bool instructions; /* that multiply it; else it is done with those for float */

    /* As struct isa's: `a` and `b` are pairs, and `k` counts them. */
    void (*tile)(const struct isa_tile *tile);

    /*
     * Rounds (rows,k) to pairs along its rows, which become (k + 1) / 2 long, `to_row` apart;
     * a last one alone is paired with 0.
     */
    void (*pair_columns)(int64_t rows, int64_t k, const float *from, int64_t from_row,
                         float *to, int64_t to_row);

    /* Rounds (k,columns) to pairs of rows: ((k + 1) / 2, columns), `to_row` apart. */
    void (*pair_rows)(int64_t k, int64_t columns, const float *from, int64_t from_row,
                      float *to, int64_t to_row);

    /* to = from, rounded to what bfloat16 can tell. */
    void (*round)(int64_t count, const float *from, float *to);

    /*
     * As struct isa's winograd_spread(), to pairs of channels, so that a vector of them is half
     * as long; and of the second of two patches, to pairs with the first, whose floats are at
     * the points.  NULL without instructions, as are the two below.
     */
    void (*winograd_spread_channels)(int n, const struct isa_winograd *w);
    void (*winograd_spread_patches)(int n, const struct isa_winograd *w);

    /* y = x filter, of pairs of channels and of rows; sums = x' y, of pairs of patches, which
     * `patches` and `room` count then. */
    void (*winograd_product)(const struct isa_winograd_product *p);
    void (*winograd_sums)(const struct isa_winograd_product *p);
};
