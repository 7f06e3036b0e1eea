/*
 * winograd_test.c - convolutions by Winograd's algorithm and their gradients against the
 * references, at edge shapes, and how exact they are.
 */
#include "kernels/cpu/isa.h"
#include "runtime/optimise.h"
#include "tests/kernels/sample.h"

struct window {
    int64_t batch, height, width, in, out, taps;
    const char *padding;
    int64_t pads[8];
};

static int64_t size_of(const struct window *w, int axis)
{
    int64_t size = axis ? w->width : w->height;
    if (!strcmp(w->padding, "SAME"))
        return size;
    return size + w->pads[2 + 2 * axis] + w->pads[3 + 2 * axis] - w->taps + 1;
}

/* The gradients and the convolution itself, against their references. */
static void check_samples(const struct window *w, int precision, const struct attr *attrs,
                          int attrs_count)
{
    struct shape image = SHAPE(w->batch, w->height, w->width, w->in);
    struct shape filter = SHAPE(w->taps, w->taps, w->in, w->out);
    struct shape result = SHAPE(w->batch, size_of(w, 0), size_of(w, 1), w->out);
    struct sample all[] = {
        {.op = "Conv2D",
         .inputs = {random_tensor(image), random_tensor(filter)},
         .inputs_count = 2},
        {.op = "Conv2DBackpropInput",
         .inputs = {ints(image.dims, 4), random_tensor(filter), random_tensor(result)},
         .inputs_count = 3},
        {.op = "Conv2DBackpropFilter",
         .inputs = {random_tensor(image), ints(filter.dims, 4), random_tensor(result)},
         .inputs_count = 3},
    };
    for (int i = 0; i < ARRAY_LEN(all); i++) {
        all[i].attrs = attrs;
        all[i].attrs_count = attrs_count;
        all[i].outputs_count = 1;
        all[i].precision = precision;
        all[i].tolerance = precision == BF16 ? 5e-2 : 2e-5;
        check_sample(&all[i]);
    }
}

/* Bias and Relu behind are those of the convolution's result, to the bit. */
static void check_fused(const struct window *w, const struct attr *attrs, int attrs_count)
{
    struct sample s = {.op = "Conv2D",
                       .inputs = {random_tensor(SHAPE(w->batch, w->height, w->width, w->in)),
                                  random_tensor(SHAPE(w->taps, w->taps, w->in, w->out)),
                                  random_tensor(SHAPE(w->out))},
                       .inputs_count = 2,
                       .attrs = attrs,
                       .attrs_count = attrs_count - 2,
                       .outputs_count = 1};
    struct tensor plain, fused;
    run_session(&s, 2, FAST, &plain);
    s.op = "_FusedConv2D";
    s.inputs_count = 3;
    s.attrs_count = attrs_count;
    run_session(&s, 2, FAST, &fused);
    CHECK(shape_equal(&plain.shape, &fused.shape));
    for (int64_t i = 0; i < plain.count; i++) {
        float y = tensor_f32(&plain)[i] + tensor_f32(&s.inputs[2])[i % w->out];
        CHECK(tensor_f32(&fused)[i] == (y < 0 ? 0 : y));
    }
    tensor_release(&plain);
    tensor_release(&fused);
    release_all(s.inputs, 3);
}

static void check_window(const struct window *w)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    static const struct attr_bytes names[] = {{"BiasAdd", 7}, {"Relu", 4}};
    const struct attr attrs[] = {
        attr_int_list("strides", ones, 4),
        attr_bool(OPTIMISE_WINOGRAD_ATTR, true),
        attr_string("padding", w->padding),
        attr_int_list("explicit_paddings", w->pads, strcmp(w->padding, "EXPLICIT") ? 0 : 8),
        attr_int("num_args", 1),
        {.name = "fused_ops",
         .kind = ATTR_STRING,
         .is_list = true,
         .count = 2,
         .strings = names}};
    check_samples(w, F32, attrs, ARRAY_LEN(attrs) - 2);
    check_samples(w, BF16, attrs, ARRAY_LEN(attrs) - 2);
    check_fused(w, attrs, ARRAY_LEN(attrs));
}

TEST(winograd_convolutions_and_their_gradients)
{
    static const struct window windows[] = {
        {6, 8, 8, 16, 16, 3, "SAME", {0}},
        {2, 14, 14, 32, 64, 5, "SAME", {0}},
        {3, 17, 13, 48, 16, 3, "SAME", {0}}, /* nothing divides */
        {3, 13, 18, 16, 48, 5, "VALID", {0}},
        {30, 3, 3, 16, 32, 3, "VALID", {0}}, /* one place each */
        {30, 1, 1, 32, 16, 3, "SAME", {0}},
        {30, 2, 1, 16, 16, 5, "SAME", {0}},
        {2, 11, 9, 16, 16, 3, "EXPLICIT", {0, 0, 2, 0, 0, 5, 0, 0}},
        {2, 12, 9, 16, 16, 5, "EXPLICIT", {0, 0, 0, 6, 4, 1, 0, 0}},
        {1, 40, 44, 16, 16, 3, "SAME", {0}}, /* patches in two threads */
    };
    for (int i = 0; i < ARRAY_LEN(windows); i++)
        check_window(&windows[i]);
}

/* --- how exact --- */

/* As far as double can tell, for images (n,size,size,channels) with "SAME" padding. */
static double exact(const float *image, const float *filter, int64_t size, int64_t in,
                    int64_t out, int64_t taps, int64_t n, int64_t y, int64_t x, int64_t k)
{
    double sum = 0;
    for (int64_t i = 0; i < taps; i++)
        for (int64_t j = 0; j < taps; j++) {
            int64_t row = y + i - taps / 2, column = x + j - taps / 2;
            if (row < 0 || row >= size || column < 0 || column >= size)
                continue;
            for (int64_t c = 0; c < in; c++)
                sum += (double)image[((n * size + row) * size + column) * in + c] *
                       (double)filter[((i * taps + j) * in + c) * out + k];
        }
    return sum;
}

/* The largest error of a convolution, relative to the largest result. */
static double error_of(const struct sample *s, int64_t size, int64_t taps, bool winograd)
{
    const struct shape *image = &s->inputs[0].shape, *filter = &s->inputs[1].shape;
    static const int64_t ones[] = {1, 1, 1, 1};
    const struct attr attrs[] = {attr_int_list("strides", ones, 4),
                                 attr_string("padding", "SAME"),
                                 attr_bool(OPTIMISE_WINOGRAD_ATTR, winograd)};
    struct sample marked = *s;
    marked.attrs = attrs;
    marked.attrs_count = 3;
    struct tensor result;
    run_session(&marked, 1, FAST, &result);
    double worst = 0, largest = 0;
    int64_t out = filter->dims[3], in = image->dims[3];
    for (int64_t i = 0; i < result.count; i += 7) {
        int64_t k = i % out, x = i / out % size, y = i / out / size % size;
        double wanted = exact(tensor_f32(&s->inputs[0]), tensor_f32(&s->inputs[1]), size, in,
                              out, taps, i / out / size / size, y, x, k);
        worst = fmax(worst, fabs((double)tensor_f32(&result)[i] - wanted));
        largest = fmax(largest, fabs(wanted));
    }
    tensor_release(&result);
    return worst / largest;
}

/* Of sums of the same length as in ResNet-20 and in the network for MNIST. */
static void check_exactness(int precision, double most, bool differs)
{
    static const int64_t cases[][4] = {
        {32, 16, 16, 3}, {16, 32, 32, 3}, {8, 64, 64, 3}, {14, 32, 64, 5}};
    add_tables();
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        const int64_t *c = cases[i];
        struct sample s = {.op = "Conv2D",
                           .inputs = {random_tensor(SHAPE(8, c[0], c[0], c[1])),
                                      random_tensor(SHAPE(c[3], c[3], c[1], c[2]))},
                           .inputs_count = 2,
                           .outputs_count = 1,
                           .precision = precision};
        double direct = error_of(&s, c[0], c[3], false);
        double winograd = error_of(&s, c[0], c[3], true);
        if (getenv("SHOW"))
            printf("%lldx%lld, %lld to %lld channels: direct %.2g, winograd %.2g\n",
                   (long long)c[3], (long long)c[3], (long long)c[1], (long long)c[2], direct,
                   winograd);
        CHECK(winograd < most);
        CHECK((winograd != direct) == differs);
        release_all(s.inputs, 2);
    }
}

TEST(winograd_is_nearly_as_exact_as_a_sum)
{
    check_exactness(F32, 3e-6, true);
}

/* In bfloat16 the numbers at the points are rounded in place of the factors: what they mean for
 * the result is some times more, two in a hundred of the largest. */
TEST(winograd_in_bfloat16)
{
    check_exactness(BF16, 3e-2, isa()->bf16.instructions);
}
