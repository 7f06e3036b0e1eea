/*
 * isa_body.h - one instruction set's struct isa; included by isa_base.c, isa_avx2.c,
 * isa_avx512.c.
 *
 * The includer defines ISA (the constant's name), ISA_NAME, LANES (floats per vector register)
 * and TILE_ROWS (of the register tile; its columns are two vectors).
 */
#include "kernels/cpu/isa.h"

#include <math.h>

#define TILE_COLUMNS (2 * LANES)

#include "kernels/cpu/vec_body.h"

#include "kernels/cpu/elementwise_body.h"

#include "kernels/cpu/bf16_body.h"
#include "kernels/cpu/chain_body.h"
#include "kernels/cpu/dot_body.h"
#include "kernels/cpu/norm_body.h"
#include "kernels/cpu/pack_body.h"
#include "kernels/cpu/philox_body.h"
#include "kernels/cpu/pool_body.h"
#include "kernels/cpu/recurrent_body.h"
#include "kernels/cpu/rows_body.h"
#include "kernels/cpu/tile_body.h"
#include "kernels/cpu/transformer_body.h"
#include "kernels/cpu/winograd_body.h"
#include "kernels/cpu/winograd_product_body.h"

TILES(tile, false)
TILES(tile_bf16, true)
WINOGRAD_SPREAD(winograd_spread, WINOGRAD_WHOLE)
WINOGRAD_GATHER(winograd_gather)
WINOGRAD_PRODUCTS(winograd, false)

const struct isa ISA = {
    .name = ISA_NAME,
    .lanes = LANES,
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .tile = tile,
    .bf16 = {.instructions = HAS_BF16,
             .tile = tile_bf16,
             .pair_columns = pair_columns,
             .pair_rows = pair_rows,
             .round = round_bf16},
    .pack = pack,
    .pack_tiles = pack_tiles,
    .transpose = transpose,
    .dot = dot,
    .binary = binary,
    .unary = unary,
    .chain = chain,
    .scale_add = scale_add,
    .momentum = momentum,
    .keras_momentum = keras_momentum,
    .adam = adam,
    .sum = sum,
    .maximum = maximum,
    .bias = bias_rows,
    .column_sums = column_sums,
    .relu_grad_sums = relu_grad_sums,
    .moments = moments,
    .normalise = normalise,
    .norm_sums = norm_sums,
    .norm_grad = norm_grad,
    .softmax = softmax,
    .xent_sparse = xent_sparse,
    .xent_dense = xent_dense,
    .max_pool = max_pool,
    .max_pool_grad = max_pool_grad,
    .winograd_spread = winograd_spread,
    .winograd_gather = winograd_gather,
    .winograd_product = winograd_product,
    .winograd_sums = winograd_sums,
    .lstm_gates = lstm_gates,
    .lstm_gates_grad = lstm_gates_grad,
    .gru_gates = gru_gates,
    .gru_gates_grad = gru_gates_grad,
    .tanh_grad = tanh_grad,
    .layer_norm = layer_norm,
    .layer_norm_grad = layer_norm_grad,
    .gelu = gelu,
    .attention_weights = attention_weights,
    .attention_weights_grad = attention_weights_grad,
    .philox = philox,
};
