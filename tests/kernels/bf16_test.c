/*
 * bf16_test.c - the CPU kernels with factors in bfloat16, against the references with factors
 * that were rounded before, and attention, which rounds on its way, against plain sums.
 */
#include "kernels/cpu/isa.h"
#include "tests/kernels/sample.h"

static void round_inputs(struct sample *s)
{
    for (int i = 0; i < s->inputs_count; i++) {
        struct tensor *t = &s->inputs[i];
        if (t->dtype == F32)
            isa()->bf16.round(t->count, tensor_f32(t), tensor_f32_mut(t));
    }
}

/* The same result whether factors come rounded or not; with two threads the same bits again. */
static void check_rounded(struct sample *s)
{
    add_tables();
    for (int threads = 1; threads <= 2; threads++) {
        struct tensor is[OUTPUTS_MAX], again[OUTPUTS_MAX], wanted[OUTPUTS_MAX];
        struct sample rounded = *s;
        struct error err;
        for (int i = 0; i < s->inputs_count; i++)
            CHECK_OK(tensor_clone(&rounded.inputs[i], &s->inputs[i], &err), &err);
        round_inputs(&rounded);
        s->precision = rounded.precision = BF16;
        run_session(s, threads, FAST, is);
        run_session(&rounded, threads, FAST, again);
        rounded.precision = F32;
        run_session(&rounded, threads, PLAIN, wanted);
        for (int i = 0; i < s->outputs_count; i++) {
            CHECK(tensor_equal(&is[i], &again[i]));
            check_close(s, &is[i], &wanted[i]);
        }
        release_all(is, s->outputs_count);
        release_all(again, s->outputs_count);
        release_all(wanted, s->outputs_count);
        release_all(rounded.inputs, s->inputs_count);
    }
    release_all(s->inputs, s->inputs_count);
}

TEST(products)
{
    for (int round = 0; round < 60; round++) {
        bool ta = round & 1, tb = round & 2;
        int64_t m = pick(1, 70), n = pick(1, 70), k = round < 50 ? pick(0, 90) : pick(300, 900);
        const struct attr attrs[] = {attr_bool("transpose_a", ta),
                                     attr_bool("transpose_b", tb)};
        struct sample s = {.op = "MatMul",
                           .inputs = {random_tensor(ta ? SHAPE(k, m) : SHAPE(m, k)),
                                      random_tensor(tb ? SHAPE(n, k) : SHAPE(k, n))},
                           .inputs_count = 2,
                           .attrs = attrs,
                           .attrs_count = 2,
                           .outputs_count = 1,
                           .tolerance = 1e-5};
        check_rounded(&s);
    }
}

TEST(products_of_more_rows_than_a_block)
{
    struct sample s = {
        .op = "MatMul",
        .inputs = {random_tensor(SHAPE(1100, 333)), random_tensor(SHAPE(333, 300))},
        .inputs_count = 2,
        .outputs_count = 1,
        .tolerance = 1e-5};
    check_rounded(&s);
}

TEST(batches_of_products)
{
    for (int round = 0; round < 20; round++) {
        bool x = round & 1, y = round & 2;
        int64_t count = pick(1, 5), m = pick(1, 40), n = pick(1, 40), k = pick(1, 40);
        const struct attr attrs[] = {attr_bool("adj_x", x), attr_bool("adj_y", y)};
        struct sample s = {
            .op = "BatchMatMulV2",
            .inputs = {random_tensor(x ? SHAPE(count, k, m) : SHAPE(count, m, k)),
                       random_tensor(y ? SHAPE(count, n, k) : SHAPE(count, k, n))},
            .inputs_count = 2,
            .attrs = attrs,
            .attrs_count = 2,
            .outputs_count = 1,
            .tolerance = 1e-5};
        check_rounded(&s);
    }
}

/* --- convolutions --- */

struct window {
    int64_t batch, height, width, in, out, filter, stride, groups;
};

static void check_convolution(const struct window *w)
{
    const int64_t strides[] = {1, w->stride, w->stride, 1};
    const struct attr attrs[] = {attr_int_list("strides", strides, 4),
                                 attr_string("padding", "SAME")};
    struct shape image = SHAPE(w->batch, w->height, w->width, w->in);
    struct shape filter = SHAPE(w->filter, w->filter, w->in / w->groups, w->out);
    struct shape result = SHAPE(w->batch, (w->height + w->stride - 1) / w->stride,
                                (w->width + w->stride - 1) / w->stride, w->out);
    struct sample samples[] = {
        {.op = "Conv2D",
         .inputs = {random_tensor(image), random_tensor(filter)},
         .inputs_count = 2},
        {.op = "Conv2DBackpropInput",
         .inputs = {ints(image.dims, 4), random_tensor(filter), random_tensor(result)},
         .inputs_count = 3},
        {.op = "Conv2DBackpropFilter",
         .inputs = {random_tensor(image), ints(filter.dims, 4), random_tensor(result)},
         .inputs_count = 3}};
    for (int i = 0; i < ARRAY_LEN(samples); i++) {
        samples[i].attrs = attrs;
        samples[i].attrs_count = 2;
        samples[i].outputs_count = 1;
        samples[i].tolerance = 2e-5;
        check_rounded(&samples[i]);
    }
}

TEST(convolutions_and_their_gradients)
{
    static const struct window windows[] = {
        {3, 28, 28, 1, 32, 5, 1, 1}, {2, 14, 14, 32, 64, 5, 1, 1}, {5, 9, 7, 3, 16, 3, 2, 1},
        {2, 8, 8, 16, 32, 1, 2, 1},  {2, 8, 8, 7, 5, 1, 2, 1},     {2, 5, 5, 6, 6, 3, 1, 6},
        {1, 40, 40, 8, 8, 3, 1, 1},  {2, 6, 6, 12, 8, 3, 1, 4}};
    for (int i = 0; i < ARRAY_LEN(windows); i++)
        check_convolution(&windows[i]);
}

/* --- attention --- */

struct attention {
    int64_t batch, queries, keys, heads, size, value_size;
    bool causal;
};

static const struct attention attentions[] = {
    {2, 5, 5, 3, 4, 4, true},      {1, 1, 1, 1, 1, 1, false},    {2, 7, 12, 2, 5, 9, false},
    {2, 20, 9, 2, 17, 3, true},    {1, 64, 64, 4, 32, 32, true}, {0, 3, 3, 1, 2, 2, false},
    {1, 33, 70, 2, 40, 48, false}, {1, 37, 37, 1, 7, 33, true}};

#define ATTENTION_SCALE 0.3

/* Element (a,b,c,d) of a tensor, and as a factor. */
static double at(const struct tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t *dims = t->shape.dims;
    return (double)tensor_f32(t)[((a * dims[1] + b) * dims[2] + c) * dims[3] + d];
}

static double rounded(double x)
{
    float in = (float)x, out;
    isa()->bf16.round(1, &in, &out);
    return (double)out;
}

static double factor(const struct tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return rounded(at(t, a, b, c, d));
}

static int64_t seen(const struct attention *a, int64_t query)
{
    return a->causal && query + 1 < a->keys ? query + 1 : a->keys;
}

/* The weights of query i in head h of example b. */
static void softmax_of(const struct attention *a, const struct tensor *in, int64_t b, int64_t h,
                       int64_t i, double *weights)
{
    double total = 0;
    memset(weights, 0, (size_t)a->keys * sizeof(*weights));
    for (int64_t j = 0; j < seen(a, i); j++) {
        double score = 0;
        for (int64_t d = 0; d < a->size; d++)
            score += factor(&in[0], b, i, h, d) * factor(&in[1], b, j, h, d);
        total += weights[j] = exp(ATTENTION_SCALE * score);
    }
    for (int64_t j = 0; j < a->keys; j++)
        weights[j] /= total;
}

/* `out` is the results and the weights, which say what the results are. */
static void check_forward(const struct attention *a, const struct tensor *in,
                          const struct tensor *out)
{
    double weights[70];
    for (int64_t n = 0; n < a->batch * a->heads * a->queries; n++) {
        int64_t b = n / a->queries / a->heads, h = n / a->queries % a->heads;
        int64_t i = n % a->queries;
        softmax_of(a, in, b, h, i, weights);
        for (int64_t j = 0; j < a->keys; j++)
            CHECK(fabs(at(&out[1], b, h, i, j) - weights[j]) <= 2e-6);
        for (int64_t d = 0; d < a->value_size; d++) {
            double sum = 0;
            for (int64_t j = 0; j < a->keys; j++)
                sum += factor(&out[1], b, h, i, j) * factor(&in[2], b, j, h, d);
            CHECK(fabs(at(&out[0], b, i, h, d) - sum) <= 5e-6);
        }
    }
}

/* What the gradient of query and key multiplies: (queries,keys) of head h of example b. */
static void slopes_of(const struct attention *a, const struct tensor *in, int64_t b, int64_t h,
                      double (*slopes)[70])
{
    for (int64_t i = 0; i < a->queries; i++) {
        double mean = 0;
        for (int64_t j = 0; j < a->keys; j++) {
            slopes[i][j] = 0;
            for (int64_t d = 0; d < a->value_size; d++)
                slopes[i][j] += factor(&in[0], b, i, h, d) * factor(&in[3], b, j, h, d);
            mean += at(&in[4], b, h, i, j) * slopes[i][j];
        }
        for (int64_t j = 0; j < a->keys; j++)
            slopes[i][j] =
                rounded(at(&in[4], b, h, i, j) * (slopes[i][j] - mean) * ATTENTION_SCALE);
    }
}

/* A slope next to the middle of two bfloat16 may have become the other one: 2^-8 of it. */
static void check_gradient(const struct attention *a, const struct tensor *in,
                           const struct tensor *out)
{
    double slopes[70][70];
    for (int64_t n = 0; n < a->batch * a->heads; n++) {
        int64_t b = n / a->heads, h = n % a->heads;
        slopes_of(a, in, b, h, slopes);
        for (int64_t j = 0; j < a->keys; j++)
            for (int64_t d = 0; d < a->value_size; d++) {
                double sum = 0;
                for (int64_t i = 0; i < a->queries; i++)
                    sum += factor(&in[4], b, h, i, j) * factor(&in[0], b, i, h, d);
                CHECK(fabs(at(&out[2], b, j, h, d) - sum) <= 1e-5);
            }
        for (int64_t d = 0; d < a->size; d++)
            for (int64_t i = 0; i < a->queries; i++) {
                double sum = 0, most = 0;
                for (int64_t j = 0; j < a->keys; j++) {
                    sum += slopes[i][j] * factor(&in[2], b, j, h, d);
                    most = fmax(most, fabs(slopes[i][j]));
                }
                CHECK(fabs(at(&out[0], b, i, h, d) - sum) <= 1e-5 + most / 128);
            }
        for (int64_t d = 0; d < a->size; d++)
            for (int64_t j = 0; j < a->keys; j++) {
                double sum = 0, most = 0;
                for (int64_t i = 0; i < a->queries; i++) {
                    sum += slopes[i][j] * factor(&in[1], b, i, h, d);
                    most = fmax(most, fabs(slopes[i][j]));
                }
                CHECK(fabs(at(&out[1], b, j, h, d) - sum) <= 1e-5 + most / 128);
            }
    }
}

/* The same bits with one thread and two; `out` is the caller's to release. */
static void run_attention(struct sample *s, struct tensor *out)
{
    struct tensor again[OUTPUTS_MAX];
    s->precision = BF16;
    run_session(s, 1, FAST, out);
    run_session(s, 2, FAST, again);
    for (int i = 0; i < s->outputs_count; i++)
        CHECK(tensor_equal(&out[i], &again[i]));
    release_all(again, s->outputs_count);
}

TEST(attention_and_its_gradient)
{
    add_tables();
    for (int i = 0; i < ARRAY_LEN(attentions); i++) {
        const struct attention *a = &attentions[i];
        const struct attr attrs[] = {attr_float("scale", (float)ATTENTION_SCALE),
                                     attr_bool("causal", a->causal)};
        struct shape q = SHAPE(a->batch, a->queries, a->heads, a->size);
        struct shape k = SHAPE(a->batch, a->keys, a->heads, a->size);
        struct shape v = SHAPE(a->batch, a->keys, a->heads, a->value_size);
        struct shape o = SHAPE(a->batch, a->queries, a->heads, a->value_size);
        struct tensor out[2], grads[3];
        struct sample s = {.op = "_Attention",
                           .inputs = {random_tensor(q), random_tensor(k), random_tensor(v)},
                           .inputs_count = 3,
                           .attrs = attrs,
                           .attrs_count = 2,
                           .outputs_count = 2};
        run_attention(&s, out);
        check_forward(a, s.inputs, out);
        struct sample grad = {
            .op = "_AttentionGrad",
            .inputs = {random_tensor(o), s.inputs[0], s.inputs[1], s.inputs[2], out[1]},
            .inputs_count = 5,
            .attrs = attrs,
            .attrs_count = 2,
            .outputs_count = 3};
        run_attention(&grad, grads);
        check_gradient(a, grad.inputs, grads);
        release_all(grads, 3);
        release_all(grad.inputs, 5);
        tensor_release(&out[0]);
    }
}

/* --- tensors of bfloat16 --- */

static struct tensor small_numbers(const struct shape *shape, bool whole)
{
    struct tensor from = whole ? whole_tensor(*shape) : random_tensor(*shape);
    struct tensor to = make(BF16, *shape);
    for (int64_t i = 0; i < from.count; i++)
        tensor_set_number(&to, i, tensor_number(&from, i));
    tensor_release(&from);
    return to;
}

/* Sums of whole numbers are exact; others may end on the other side of a middle. */
TEST(products_of_tensors_of_bfloat16)
{
    for (int round = 0; round < 60; round++) {
        bool x = round & 1, y = round & 2, whole = round & 4, batches = round & 8;
        int64_t count = pick(1, 4), m = pick(0, 60), n = pick(1, 60), k = pick(0, 60);
        struct shape a =
            batches ? SHAPE(count, x ? k : m, x ? m : k) : SHAPE(x ? k : m, x ? m : k);
        struct shape b = batches ? SHAPE(1, y ? n : k, y ? k : n) : SHAPE(y ? n : k, y ? k : n);
        const struct attr attrs[] = {attr_bool(batches ? "adj_x" : "transpose_a", x),
                                     attr_bool(batches ? "adj_y" : "transpose_b", y)};
        struct sample s = {.op = batches ? "BatchMatMulV2" : "MatMul",
                           .inputs = {small_numbers(&a, whole), small_numbers(&b, whole)},
                           .inputs_count = 2,
                           .attrs = attrs,
                           .attrs_count = 2,
                           .outputs_count = 1,
                           .tolerance = whole ? 0 : 1.0 / 256};
        check_sample(&s);
    }
}
