/*
 * sequence_test.c - the CPU kernels of recurrent sequences, attention and what goes with them,
 * against their references.
 */
#include "tests/kernels/sample.h"

struct sizes {
    int64_t steps, batch, inputs, cells;
};

static const struct sizes sizes[] = {{3, 2, 3, 4},  {1, 1, 1, 1},     {4, 5, 7, 17},
                                     {2, 9, 33, 8}, {3, 32, 20, 64},  {2, 0, 3, 4},
                                     {0, 2, 3, 4},  {2, 40, 70, 130}, {2, 9, 5, 256}};

/*
 * In bfloat16 the factors are rounded at each step, which the reference does not do: the
 * weights are made so small that a difference fades from step to step, not grows.
 */
static void use_precision(struct sample *s, bool bf16)
{
    s->precision = bf16 ? BF16 : F32;
    if (!bf16)
        return;
    s->tolerance = 2e-2;
    for (int i = 0; i < s->inputs_count; i++) {
        struct tensor *input = &s->inputs[i];
        if (input->dtype != F32 || input->shape.rank != 2)
            continue;
        float scale = 1 / sqrtf((float)input->shape.dims[0] + 1);
        for (int64_t k = 0; k < input->count; k++)
            tensor_f32_mut(input)[k] *= scale;
    }
}

static struct tensor state(const struct sizes *z)
{
    return random_tensor(SHAPE(z->steps, z->batch, z->cells));
}

static struct tensor scalar64(int64_t value)
{
    struct tensor t = make(I64, SHAPE_SCALAR);
    tensor_set_number(&t, 0, (double)value);
    return t;
}

/* What both ops of an LSTM begin with. */
static void lstm_inputs(struct sample *s, const struct sizes *z, int64_t length)
{
    const struct tensor inputs[] = {scalar64(length),
                                    random_tensor(SHAPE(z->steps, z->batch, z->inputs)),
                                    random_tensor(SHAPE(z->batch, z->cells)),
                                    random_tensor(SHAPE(z->batch, z->cells)),
                                    random_tensor(SHAPE(z->inputs + z->cells, 4 * z->cells)),
                                    random_tensor(SHAPE(z->cells)),
                                    random_tensor(SHAPE(z->cells)),
                                    random_tensor(SHAPE(z->cells)),
                                    random_tensor(SHAPE(4 * z->cells))};
    memcpy(s->inputs, inputs, sizeof(inputs));
    s->inputs_count = ARRAY_LEN(inputs);
}

TEST(lstm_sequences)
{
    for (int i = 0; i < 4 * ARRAY_LEN(sizes); i++) {
        const struct sizes *z = &sizes[i / 2 % ARRAY_LEN(sizes)];
        const struct attr attrs[] = {attr_float("cell_clip", (float)(i % 3) - 1)};
        struct sample s = {.op = i & 1 ? "BlockLSTMV2" : "BlockLSTM",
                           .attrs = attrs,
                           .attrs_count = 1,
                           .outputs_count = 7,
                           .tolerance = 2e-5};
        lstm_inputs(&s, z, z->steps - (i == 5));
        use_precision(&s, i >= 2 * ARRAY_LEN(sizes));
        check_sample(&s);
    }
}

TEST(gradients_of_lstm_sequences)
{
    for (int i = 0; i < 4 * ARRAY_LEN(sizes); i++) {
        const struct sizes *z = &sizes[i / 2 % ARRAY_LEN(sizes)];
        const struct attr attrs[] = {attr_bool("use_peephole", false)};
        struct sample s = {.op = i & 1 ? "BlockLSTMGradV2" : "BlockLSTMGrad",
                           .attrs = attrs,
                           .attrs_count = 1,
                           .outputs_count = 8,
                           .tolerance = 1e-4};
        lstm_inputs(&s, z, z->steps - (i == 9));
        while (s.inputs_count < 18)
            s.inputs[s.inputs_count++] = state(z);
        use_precision(&s, i >= 2 * ARRAY_LEN(sizes));
        check_sample(&s);
    }
}

static void recurrent_inputs(struct sample *s, const struct sizes *z, int64_t gates)
{
    int64_t columns = gates * z->cells;
    const struct tensor inputs[] = {
        random_tensor(SHAPE(z->steps, z->batch, z->inputs)),
        random_tensor(SHAPE(z->batch, z->cells)), random_tensor(SHAPE(z->inputs, columns)),
        random_tensor(SHAPE(z->cells, columns)),
        random_tensor(gates == 3 ? SHAPE(2, columns) : SHAPE(columns))};
    memcpy(s->inputs, inputs, sizeof(inputs));
    s->inputs_count = ARRAY_LEN(inputs);
}

TEST(gru_and_simple_sequences)
{
    for (int i = 0; i < 4 * ARRAY_LEN(sizes); i++) {
        bool gru = i & 1;
        struct sample s = {.op = gru ? "_GRUSequence" : "_RNNSequence",
                           .outputs_count = gru ? 5 : 1,
                           .tolerance = 2e-5};
        recurrent_inputs(&s, &sizes[i / 2 % ARRAY_LEN(sizes)], gru ? 3 : 1);
        use_precision(&s, i >= 2 * ARRAY_LEN(sizes));
        check_sample(&s);
    }
}

TEST(gradients_of_gru_and_simple_sequences)
{
    for (int i = 0; i < 4 * ARRAY_LEN(sizes); i++) {
        bool gru = i & 1;
        struct sample s = {.op = gru ? "_GRUSequenceGrad" : "_RNNSequenceGrad",
                           .outputs_count = 5,
                           .tolerance = 1e-4};
        recurrent_inputs(&s, &sizes[i / 2 % ARRAY_LEN(sizes)], gru ? 3 : 1);
        for (int k = 0; k < (gru ? 6 : 2); k++)
            s.inputs[s.inputs_count++] = state(&sizes[i / 2 % ARRAY_LEN(sizes)]);
        use_precision(&s, i >= 2 * ARRAY_LEN(sizes));
        check_sample(&s);
    }
}

/* batch, queries, keys, heads, size, value size */
static const int64_t heads[][6] = {
    {2, 5, 5, 3, 4, 4},     {1, 1, 1, 1, 1, 1}, {2, 7, 12, 2, 5, 9},   {2, 20, 9, 2, 17, 3},
    {3, 64, 64, 4, 32, 32}, {0, 3, 3, 1, 2, 2}, {1, 33, 70, 2, 40, 48}};

TEST(attention_and_its_gradient)
{
    for (int i = 0; i < 2 * ARRAY_LEN(heads); i++) {
        const int64_t *h = heads[i / 2];
        const struct attr attrs[] = {attr_float("scale", 0.3f), attr_bool("causal", i & 1)};
        struct shape q = SHAPE(h[0], h[1], h[3], h[4]), k = SHAPE(h[0], h[2], h[3], h[4]);
        struct shape v = SHAPE(h[0], h[2], h[3], h[5]), out = SHAPE(h[0], h[1], h[3], h[5]);
        struct sample s = {.op = "_Attention",
                           .inputs = {random_tensor(q), random_tensor(k), random_tensor(v)},
                           .inputs_count = 3,
                           .attrs = attrs,
                           .attrs_count = 2,
                           .outputs_count = 2,
                           .tolerance = 1e-5};
        check_sample(&s);
        struct tensor weights = random_tensor(SHAPE(h[0], h[3], h[1], h[2]));
        for (int64_t at = 0; (i & 1) && at < weights.count; at++)
            if (at % h[2] > at / h[2] % h[1])
                tensor_f32_mut(&weights)[at] = 0; /* as the op leaves what comes later */
        struct sample grad = {.op = "_AttentionGrad",
                              .inputs = {random_tensor(out), random_tensor(q), random_tensor(k),
                                         random_tensor(v), weights},
                              .inputs_count = 5,
                              .attrs = attrs,
                              .attrs_count = 2,
                              .outputs_count = 3,
                              .tolerance = 1e-5};
        check_sample(&grad);
    }
}

TEST(layer_normalisation_and_gelu)
{
    static const int64_t columns[] = {1, 3, 8, 17, 128, 500};
    for (int i = 0; i < ARRAY_LEN(columns); i++) {
        int64_t n = columns[i], rows = i == 4 ? 700 : pick(0, 30);
        const struct attr attrs[] = {attr_float("epsilon", 1e-3f)};
        struct sample s = {.op = "_LayerNorm",
                           .inputs = {random_tensor(SHAPE(rows, n)), random_tensor(SHAPE(n)),
                                      random_tensor(SHAPE(n))},
                           .inputs_count = 3,
                           .attrs = attrs,
                           .attrs_count = 1,
                           .outputs_count = 3,
                           .tolerance = 2e-5};
        check_sample(&s);
        struct sample grad = {.op = "_LayerNormGrad",
                              .inputs = {random_tensor(SHAPE(rows, n)),
                                         random_tensor(SHAPE(rows, n)), random_tensor(SHAPE(n)),
                                         random_tensor(SHAPE(rows)),
                                         random_tensor(SHAPE(rows))},
                              .inputs_count = 5,
                              .outputs_count = 3,
                              .tolerance = 2e-5};
        check_sample(&grad);
    }
    struct sample gelu = {
        .op = "_Gelu", .inputs_count = 1, .outputs_count = 2, .tolerance = 1e-6};
    gelu.inputs[0] = make(F32, SHAPE(40001));
    for (int64_t i = 0; i < 40001; i++)
        tensor_f32_mut(&gelu.inputs[0])[i] = (float)(i - 20000) / 1000;
    check_sample(&gelu);
}

TEST(gelu_at_the_ends_of_floats)
{
    static const float ends[] = {0.0f,   -0.0f,  1e-42f,   -1e-20f, 14.0f, -13.9f,
                                 300.0f, -3e38f, INFINITY, NAN,     3e38f};
    for (int i = 0; i < ARRAY_LEN(ends); i++) {
        struct sample s = {
            .op = "_Gelu", .inputs_count = 1, .outputs_count = 2, .tolerance = 1e-5};
        s.inputs[0] = make(F32, SHAPE(1));
        *tensor_f32_mut(&s.inputs[0]) = ends[i];
        check_sample(&s);
    }
}

TEST(products_in_batches)
{
    for (int i = 0; i < 24; i++) {
        bool ax = i & 1, ay = i & 2;
        int64_t m = pick(0, 40), n = pick(1, 70), k = pick(1, 66);
        const struct attr attrs[] = {attr_bool("adj_x", ax), attr_bool("adj_y", ay)};
        struct sample s = {.op = "BatchMatMulV2",
                           .inputs = {random_tensor(ax ? SHAPE(3, 1, k, m) : SHAPE(3, 1, m, k)),
                                      random_tensor(ay ? SHAPE(4, n, k) : SHAPE(4, k, n))},
                           .inputs_count = 2,
                           .attrs = attrs,
                           .attrs_count = 2,
                           .outputs_count = 1,
                           .tolerance = 1e-5};
        check_sample(&s);
    }
}

TEST(sums_of_rows_and_of_tensors)
{
    for (int i = 0; i < 6; i++) {
        int64_t rows = pick(0, 300), columns = i == 5 ? 700 : pick(1, 40);
        struct tensor ids = make(i & 1 ? I64 : I32, SHAPE(rows));
        for (int64_t k = 0; k < rows; k++)
            tensor_set_number(&ids, k, (double)pick(-1, 9));
        const int64_t segments = 10;
        struct tensor count = ints(&segments, 1);
        count.shape = SHAPE_SCALAR;
        struct sample s = {.op = "UnsortedSegmentSum",
                           .inputs = {random_tensor(SHAPE(rows, columns)), ids, count},
                           .inputs_count = 3,
                           .outputs_count = 1,
                           .tolerance = 1e-5};
        check_sample(&s);
        struct sample sum = {.op = "AddN", .outputs_count = 1, .tolerance = 1e-6};
        for (sum.inputs_count = 0; sum.inputs_count <= i; sum.inputs_count++)
            sum.inputs[sum.inputs_count] = random_tensor(SHAPE(rows, 150));
        check_sample(&sum);
    }
}
