/* attention.c - MultiHeadAttention, GroupedQueryAttention, Attention. */

#include "runtime/model/layers/attention.h"

#include <math.h>

#include "base/arena.h"

#define MASKED (-1e9) /* what Keras adds where nothing may be looked at */

static const char *const score_modes[] = {"dot", "concat", NULL};

#define HEAD_ARGUMENTS                                                                         \
    {CONFIG_ARG("dropout", CONFIG_REAL, "0"), CONFIG_RANGE(0, 0.99)}, LAYER_BIAS,              \
        LAYER_WEIGHT("kernel", "glorot_uniform"), LAYER_ACTIVITY, LAYER_SEED,                  \
        LAYER_FLAG("use_causal_mask", "false"), LAYER_FLAG("return_attention_scores", "false")
#define COUNT(name, initial, wanted_)                                                          \
    {                                                                                          \
        CONFIG_ARG(name, CONFIG_INT, initial), CONFIG_RANGE(1, LAYER_UNITS_MAX),               \
            .wanted = (wanted_)                                                                \
    }

static const struct config_argument multi_arguments[] = {
    COUNT("num_heads", NULL, "how many heads look at once"),
    COUNT("key_dim", NULL, "how long the queries and keys of a head are"),
    COUNT("value_dim", "null", NULL),
    {CONFIG_ARG("output_shape", CONFIG_INTS, "null"), CONFIG_RANGE(1, LAYER_UNITS_MAX)},
    {CONFIG_ARG("attention_axes", CONFIG_INTS, "null"), CONFIG_RANGE(-7, 7)},
    HEAD_ARGUMENTS};
static const struct config_argument grouped_arguments[] = {
    COUNT("head_dim", NULL, "how long the queries and keys of a head are"),
    COUNT("num_query_heads", NULL, "how many heads look at once"),
    COUNT("num_key_value_heads", NULL, "how many of keys and values there are"),
    HEAD_ARGUMENTS};
static const struct config_argument dot_arguments[] = {
    LAYER_FLAG("use_scale", "false"),
    LAYER_CHOICE("score_mode", "\"dot\"", score_modes),
    {CONFIG_ARG("dropout", CONFIG_REAL, "0"), CONFIG_RANGE(0, 0.99)},
    LAYER_SEED,
    LAYER_FLAG("use_causal_mask", "false")};

/* --- the core --- */

/* 0 where key step <= query step, else a number that the softmax makes nothing of. */
static struct edge causal_bias(struct build *m, int64_t queries, int64_t keys, enum dtype dtype)
{
    struct edge zero = build_number(m, I32, 0), one = build_number(m, I32, 1);
    struct edge rows =
        builder_add(&m->b, "Range", "Range",
                    INPUTS(zero, build_number(m, I32, (double)queries), one), NO_ATTRS);
    struct edge columns =
        builder_add(&m->b, "Range", "Range",
                    INPUTS(zero, build_number(m, I32, (double)keys), one), NO_ATTRS);
    struct edge later =
        build_binary(m, "Less", build_expand(m, rows, 1), build_expand(m, columns, 0));
    return build_with_number(m, "Mul", build_cast(m, later, dtype), MASKED);
}

/* True where key step <= query step. */
static struct edge causal_mask(struct build *m, int64_t queries, int64_t keys)
{
    return build_with_number(m, "GreaterEqual", causal_bias(m, queries, keys, F32), 0);
}

/*
 * The masks of the inputs, what the call allows and what comes later as one mask, as Keras does
 * it: steps of queries that are not there look at nothing.
 */
static void take_masks(struct attention *a, struct edge query, struct edge key, bool queries)
{
    struct layer_call *call = a->call;
    struct build *m = call->m;
    struct edge mask = {0};
    int last = call->inputs_count > 2 ? 2 : call->inputs_count - 1;
    for (int i = queries ? 0 : 1; i <= last; i++) {
        struct edge of = layer_mask(call, i);
        if (of.from) /* (batch, 1, steps, 1) or (batch, 1, 1, steps) */
            mask = layer_mask_and(m, mask, build_expand(m, build_expand(m, of, i ? 1 : 2), 1));
    }
    if (call->inputs_count == 1 && layer_mask(call, 0).from)
        mask = layer_mask_and(m, mask,
                              build_expand(m, build_expand(m, layer_mask(call, 0), 1), 1));
    if (!mask.from || !build_ok(m))
        return;
    if (a->mask.from)
        mask = layer_mask_and(m, mask, build_cast(m, a->mask, BOOL));
    const struct shape *rows = build_shape(m, query);
    int64_t steps = rows->dims[1];
    if (a->causal)
        mask = layer_mask_and(m, mask, causal_mask(m, steps, build_shape(m, key)->dims[1]));
    a->mask = mask;
    a->causal = false;
    a->hides = true;
}

struct edge attention_build(struct attention *a, struct edge *scores)
{
    struct build *m = a->call->m;
    struct edge query = build_with_number(m, "Mul", a->query, a->scale);
    struct edge x = build_matmul(m, query, a->key, false, true);
    if (a->causal) {
        const struct shape shape = *build_shape(m, x);
        if (shape.rank != 4 || shape.dims[2] < 0 || shape.dims[3] < 0)
            build_refuse(m, INVALID, "a causal mask needs to know how many steps there are");
        else
            x = build_binary(m, "AddV2", x,
                             causal_bias(m, shape.dims[2], shape.dims[3], build_dtype(x)));
    }
    if (a->hides) {
        x = build_select(m, a->mask, x, build_number(m, build_dtype(x), MASKED));
    } else if (a->mask.from) {
        struct edge allowed = build_cast(m, a->mask, build_dtype(x));
        struct edge hidden =
            build_binary(m, "Sub", build_number(m, build_dtype(x), 1), allowed);
        x = build_binary(m, "AddV2", x, build_with_number(m, "Mul", hidden, MASKED));
    }
    x = build_unary(m, "Softmax", x);
    if (a->hides && a->zeroes)
        x = build_select(m, a->mask, x, build_number(m, build_dtype(x), 0));
    *scores = x;
    if (a->call->training && a->dropout > 0) {
        struct edge kept = build_dropout_mask(m, x, NULL, a->dropout, a->call->name);
        x = build_binary(m, "Mul", x, build_with_number(m, "Mul", kept, 1 / (1 - a->dropout)));
    }
    return build_matmul(m, x, a->value, false, false);
}

/* --- several heads --- */

/* NAME/what/kernel and bias, as Keras's EinsumDense inside of the layer has them. */
static struct edge head_weight(struct layer_call *call, const char *what, const char *kind,
                               const struct shape *shape)
{
    struct layer_call inner = *call;
    inner.name = arena_printf(call->m->arena, "%s/%s", call->name, what);
    return layer_weight(&inner, kind, shape);
}

/* Between (batch, steps, heads, size) and (batch, heads, steps, size). */
static struct edge turn(struct build *m, struct edge x)
{
    return build_transpose(m, x, (const int64_t[]){0, 2, 1, 3}, 4);
}

/* (batch, steps, width) to (batch, steps, heads, size). */
static struct edge to_heads(struct layer_call *call, const char *what, struct edge x,
                            int64_t heads, int64_t size)
{
    struct build *m = call->m;
    const struct shape shape = *build_shape(m, x);
    if (!build_ok(m))
        return x;
    if (shape.rank != 3 || shape.dims[1] < 0 || shape.dims[2] < 0) {
        layer_refuse(call, "steps, numbers (a sequence)");
        return x;
    }
    int64_t width = shape.dims[2], steps = shape.dims[1];
    struct edge kernel = head_weight(call, what, "kernel", &SHAPE(width, heads, size));
    kernel = build_reshape(m, kernel, (const int64_t[]){width, heads * size}, 2);
    x = build_reshape(m, x, (const int64_t[]){-1, width}, 2);
    x = build_matmul(m, x, kernel, false, false);
    if (config_bool(call->config, "use_bias")) {
        struct edge bias = head_weight(call, what, "bias", &SHAPE(heads, size));
        x = build_bias(m, x, build_reshape(m, bias, (const int64_t[]){heads * size}, 1));
    }
    return build_reshape_examples(m, x, (const int64_t[]){steps, heads, size}, 3);
}

/* And back, to (batch, steps, width). */
static struct edge from_heads(struct layer_call *call, struct edge x, int64_t steps,
                              int64_t heads, int64_t size, int64_t width)
{
    struct build *m = call->m;
    struct edge kernel =
        head_weight(call, "attention_output", "kernel", &SHAPE(heads, size, width));
    kernel = build_reshape(m, kernel, (const int64_t[]){heads * size, width}, 2);
    x = build_reshape(m, x, (const int64_t[]){-1, heads * size}, 2);
    x = build_matmul(m, x, kernel, false, false);
    if (config_bool(call->config, "use_bias"))
        x = build_bias(m, x, head_weight(call, "attention_output", "bias", &SHAPE(width)));
    return build_reshape_examples(m, x, (const int64_t[]){steps, width}, 2);
}

/* Each head of keys or values stands for a group of query heads. */
static struct edge repeat_heads(struct build *m, struct edge x, int64_t groups)
{
    const struct shape shape = *build_shape(m, x);
    if (groups == 1 || !build_ok(m))
        return x;
    const int64_t times[5] = {1, 1, groups, 1, 1};
    const int64_t dims[3] = {shape.dims[1] * groups, shape.dims[2], shape.dims[3]};
    x = build_binary(m, "Tile", build_expand(m, x, 2), build_ints(m, times, 5));
    return build_reshape_examples(m, x, dims, 3);
}

struct heads {
    int64_t query, other; /* how many of queries, and of keys and values */
    int64_t size, value_size;
    int64_t output; /* width; 0: that of the query */
};

/*
 * Whether _Attention can do it: in training, where all heads have keys of their own, nothing is
 * masked but what comes later, no weight is dropped, and nobody wants to see them.
 */
static bool is_whole(const struct attention *a, const struct heads *heads)
{
    const struct layer_call *call = a->call;
    return call->training && build_dtype(a->query) == F32 && heads->query == heads->other &&
           call->inputs_count <= 3 && !a->mask.from && a->dropout <= 0 &&
           !config_bool(call->config, "return_attention_scores");
}

/* (batch, steps, heads, numbers) of queries, keys and values to the same of what is seen. */
static struct edge look(struct attention *a, const struct heads *heads, struct edge *scores)
{
    struct build *m = a->call->m;
    if (is_whole(a, heads))
        return builder_add(
            &m->b, "_Attention", "Attention", INPUTS(a->query, a->key, a->value),
            ATTRS(attr_float("scale", (float)a->scale), attr_bool("causal", a->causal)));
    a->query = turn(m, a->query);
    a->key = repeat_heads(m, turn(m, a->key), heads->query / heads->other);
    a->value = repeat_heads(m, turn(m, a->value), heads->query / heads->other);
    return turn(m, attention_build(a, scores));
}

/* Inputs: query, value, key (the value), mask; the query alone looks at itself. */
static void attend(struct layer_call *call, const struct heads *heads)
{
    struct build *m = call->m;
    const struct shape query = *layer_shape(call, 0);
    struct edge value = call->inputs[call->inputs_count > 1];
    struct edge key = call->inputs_count > 2 ? call->inputs[2] : value;
    struct attention a = {.call = call,
                          .scale = 1 / sqrt((double)heads->size),
                          .dropout = config_real(call->config, "dropout"),
                          .causal = config_bool(call->config, "use_causal_mask")};
    a.query = to_heads(call, "query", call->inputs[0], heads->query, heads->size);
    a.key = to_heads(call, "key", key, heads->other, heads->size);
    a.value = to_heads(call, "value", value, heads->other, heads->value_size);
    if (!build_ok(m))
        return;
    if (call->inputs_count > 3)
        a.mask = build_shape(m, call->inputs[3])->rank == 3
                     ? build_expand(m, call->inputs[3], 1)
                     : call->inputs[3];
    take_masks(&a, call->inputs[0], key, true);
    a.zeroes = a.dropout > 0 || config_bool(call->config, "return_attention_scores");
    struct edge scores = {0}, x = look(&a, heads, &scores);
    layer_give(call, from_heads(call, x, query.dims[1], heads->query, heads->value_size,
                                heads->output ? heads->output : query.dims[2]));
    if (config_bool(call->config, "return_attention_scores"))
        layer_give(call, scores);
    layer_give_mask(call, 0, layer_mask(call, 0));
}

static void multi_head(struct layer_call *call)
{
    const struct config *config = call->config;
    int count = 0;
    const int64_t *output = config_ints(config, "output_shape", &count);
    int64_t size = config_int(config, "key_dim"), heads = config_int(config, "num_heads");
    call->ends_masks = true; /* Keras takes them from the tensors themselves */
    if (output && count != 1) {
        build_refuse(call->m, UNIMPLEMENTED, "output_shape has %d dimensions, allowed: one",
                     count);
        return;
    }
    attend(call, &(struct heads){.query = heads,
                                 .other = heads,
                                 .size = size,
                                 .value_size = config_is_null(config, "value_dim")
                                                   ? size
                                                   : config_int(config, "value_dim"),
                                 .output = output ? output[0] : 0});
}

static bool grouped_check(const struct config *config, struct error *err)
{
    int64_t query = config_int(config, "num_query_heads");
    int64_t other = config_int(config, "num_key_value_heads");
    return query % other == 0 ||
           error_at(err, config->pointer, INVALID,
                    "num_query_heads is %lld and num_key_value_heads %lld, allowed: a divisor",
                    (long long)query, (long long)other);
}

static void grouped_query(struct layer_call *call)
{
    const struct config *config = call->config;
    int64_t size = config_int(config, "head_dim");
    attend(call, &(struct heads){.query = config_int(config, "num_query_heads"),
                                 .other = config_int(config, "num_key_value_heads"),
                                 .size = size,
                                 .value_size = size});
}

/* --- one head, nothing learned but the scale --- */

static void dot_attention(struct layer_call *call)
{
    struct build *m = call->m;
    struct edge value = call->inputs[call->inputs_count > 1];
    struct edge key = call->inputs_count > 2 ? call->inputs[2] : value;
    struct edge query = call->inputs[0], scores;
    if (strcmp(config_choice(call->config, "score_mode"), "dot")) {
        build_refuse(m, UNIMPLEMENTED, "this version has the score mode \"dot\"");
        return;
    }
    if (build_shape(m, query)->rank != 3) {
        layer_refuse(call, "steps, numbers (a sequence)");
        return;
    }
    if (config_bool(call->config, "use_scale"))
        query = build_binary(
            m, "Mul", query,
            build_weight_read(m, layer_state(call, "scale", &SHAPE_SCALAR, "ones", true)));
    struct attention a = {.call = call,
                          .query = build_expand(m, query, 1),
                          .key = build_expand(m, key, 1),
                          .value = build_expand(m, value, 1),
                          .scale = 1,
                          .dropout = config_real(call->config, "dropout"),
                          .causal = config_bool(call->config, "use_causal_mask")};
    take_masks(&a, call->inputs[0], key, false);
    struct edge x = build_squeeze(m, attention_build(&a, &scores), 1);
    struct edge there = layer_mask(call, 0);
    if (there.from)
        x = build_select(m, build_expand(m, there, -1), x, build_unary(m, "ZerosLike", x));
    layer_give(call, x);
    layer_give_mask(call, 0, there);
}

const struct layer_class layer_multi_head_attention = {
    .config = {.name = "MultiHeadAttention", CONFIG_ARGUMENTS(multi_arguments)},
    .inputs_min = 1,
    .inputs_max = 4,
    .call = multi_head};
const struct layer_class layer_grouped_query_attention = {
    .config = {.name = "GroupedQueryAttention",
               .aliases = (const char *const[]){"GroupQueryAttention", NULL},
               CONFIG_ARGUMENTS(grouped_arguments),
               .check = grouped_check},
    .inputs_min = 1,
    .inputs_max = 4,
    .call = grouped_query};
const struct layer_class layer_attention = {
    .config = {.name = "Attention", CONFIG_ARGUMENTS(dot_arguments)},
    .inputs_min = 1,
    .inputs_max = 3,
    .call = dot_attention};
