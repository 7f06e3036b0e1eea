/*
 * bf16_test.c - the CPU kernels with factors in bfloat16, against the references with factors
 * that were rounded before.
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
