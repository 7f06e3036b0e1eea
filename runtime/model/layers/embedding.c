/* embedding.c - Embedding, PositionEmbedding, ReversibleEmbedding: vectors for numbers;
 * Masking. */

#include "runtime/model/layer.h"

#define EMBEDDING_ARGUMENTS                                                                    \
    {CONFIG_ARG("input_dim", CONFIG_INT, NULL), CONFIG_RANGE(1, 2147483647),                   \
     .wanted = "how many different numbers there are"},                                        \
        {CONFIG_ARG("output_dim", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),         \
         .wanted = "how long the vectors are"},                                                \
        LAYER_WEIGHT("embeddings", "uniform")

static const struct config_argument arguments[] = {
    EMBEDDING_ARGUMENTS, LAYER_FLAG("mask_zero", "false"), LAYER_ACTIVITY};
static const struct config_argument masking_arguments[] = {
    {CONFIG_ARG("mask_value", CONFIG_REAL, "0"), CONFIG_RANGE(-1e30, 1e30)}};
static const struct config_argument position_arguments[] = {
    {CONFIG_ARG("sequence_length", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),
     .wanted = "the longest sequence there is"},
    LAYER_CONFIG("position_embeddings_initializer", "\"glorot_uniform\"",
                 build_initializer_family)};
static const struct config_argument reversible_arguments[] = {EMBEDDING_ARGUMENTS};

/* The index of the weight. */
static int table(struct layer_call *call)
{
    return layer_state(
        call, "embeddings",
        &SHAPE(config_int(call->config, "input_dim"), config_int(call->config, "output_dim")),
        "uniform", true);
}

/* Reads the rows that are asked for, not the whole table. */
static struct edge look_up(struct layer_call *call, int table)
{
    struct build *m = call->m;
    struct edge numbers = call->inputs[0];
    if (!build_ok(m) || table < 0)
        return numbers;
    if (build_dtype(numbers) != I32 && build_dtype(numbers) != I64)
        numbers = build_cast(m, numbers, I32); /* as Keras does */
    if (m->weights[table].parts)
        return build_parts_gather(m, table, numbers);
    return builder_add(&m->b, "ResourceGather", "embedding_lookup",
                       INPUTS(build_weight_handle(m, table), numbers),
                       ATTRS(attr_type("dtype", F32)));
}

static void embedding(struct layer_call *call)
{
    struct build *m = call->m;
    layer_give(call, look_up(call, table(call)));
    if (config_bool(call->config, "mask_zero"))
        layer_give_mask(call, 0, build_with_number(m, "NotEqual", call->inputs[0], 0));
}

/* Steps of nothing but "mask_value" are not there, and zeros from now on. */
static void masking(struct layer_call *call)
{
    struct build *m = call->m;
    const int64_t last = -1;
    struct edge x = call->inputs[0];
    struct edge differs =
        build_with_number(m, "NotEqual", x, config_real(call->config, "mask_value"));
    struct edge mask = build_reduce(m, "Any", differs, &last, 1, true);
    layer_give(call, build_select(m, mask, x, build_unary(m, "ZerosLike", x)));
    layer_give_mask(call, 0, build_squeeze(m, mask, -1));
}

/*
 * The first call looks numbers up, one that reuses it goes back: from vectors to a logit for
 * each number.  Vectors are told from numbers by their type.
 */
static void reversible(struct layer_call *call)
{
    struct build *m = call->m;
    struct edge x = call->inputs[0];
    int weights = table(call);
    enum dtype dtype = build_dtype(x);
    if (dtype == I32 || dtype == I64) {
        layer_give(call, look_up(call, weights));
        return;
    }
    const struct shape shape = *layer_shape(call, 0);
    int64_t width = config_int(call->config, "output_dim");
    if (build_ok(m) && shape.dims[shape.rank - 1] != width) {
        layer_refuse(call, "vectors of \"output_dim\" numbers");
        return;
    }
    x = build_reshape(m, x, (const int64_t[]){-1, width}, 2);
    x = build_matmul(m, x, build_weight_read(m, weights), false, true);
    int64_t dims[LIMIT_TENSOR_RANK];
    memcpy(dims, shape.dims + 1, (size_t)(shape.rank - 1) * sizeof(*dims));
    dims[shape.rank - 2] = config_int(call->config, "input_dim");
    layer_give(call, build_reshape_examples(m, x, dims, shape.rank - 1));
}

/* A vector for each place of a sequence, to be added to what stands there. */
static void position(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape *known = layer_examples(call, 2, "steps, channels (a sequence)");
    int64_t longest = config_int(call->config, "sequence_length");
    if (!known)
        return;
    int64_t steps = known->dims[1], width = known->dims[2];
    if (steps > longest) {
        layer_refuse(call, "no more steps than \"sequence_length\"");
        return;
    }
    struct edge all = layer_weight(call, "position_embeddings", &SHAPE(longest, width));
    if (steps < longest)
        all = build_slice(m, all, (const int64_t[]){0, 0}, (const int64_t[]){steps, width}, 2);
    layer_give(call, build_binary(m, "AddV2", call->inputs[0], all));
}

const struct layer_class layer_embedding = {
    .config = {.name = "Embedding", CONFIG_ARGUMENTS(arguments)}, .call = embedding};
const struct layer_class layer_reversible_embedding = {
    .config = {.name = "ReversibleEmbedding", CONFIG_ARGUMENTS(reversible_arguments)},
    .call = reversible};
const struct layer_class layer_position_embedding = {
    .config = {.name = "PositionEmbedding", CONFIG_ARGUMENTS(position_arguments)},
    .call = position};
const struct layer_class layer_masking = {
    .config = {.name = "Masking", CONFIG_ARGUMENTS(masking_arguments)}, .call = masking};
