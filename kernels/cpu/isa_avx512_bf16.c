/* isa_avx512_bf16.c - what differs where a machine with AVX-512 multiplies bfloat16 as well. */
#ifdef __x86_64__
#define LANES 16
#define TILE_ROWS 12
#include "kernels/cpu/isa.h"

#include <math.h>

#define TILE_COLUMNS (2 * LANES)

#include "kernels/cpu/vec_body.h"

#include "kernels/cpu/bf16_body.h"
#include "kernels/cpu/tile_body.h"
#include "kernels/cpu/winograd_body.h"
#include "kernels/cpu/winograd_product_body.h"

TILES(tile_bf16, true)
WINOGRAD_SPREAD(winograd_spread_channels, WINOGRAD_CHANNELS)
WINOGRAD_SPREAD(winograd_spread_patches, WINOGRAD_PATCHES)
WINOGRAD_PRODUCTS(winograd_bf16, true)

const struct isa_bf16 isa_avx512_bf16 = {.instructions = HAS_BF16,
                                         .tile = tile_bf16,
                                         .pair_columns = pair_columns,
                                         .pair_rows = pair_rows,
                                         .round = round_bf16,
                                         .winograd_spread_channels = winograd_spread_channels,
                                         .winograd_spread_patches = winograd_spread_patches,
                                         .winograd_product = winograd_bf16_product,
                                         .winograd_sums = winograd_bf16_sums};
#endif
