/*
 * cpu_test.c - every CPU kernel against its reference, on random and on edge shapes, at one and
 * at two threads.
 */
#include "tests/kernels/sample.h"

/* --- products --- */

static void check_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    const struct attr attrs[] = {attr_bool("transpose_a", ta), attr_bool("transpose_b", tb)};
    struct sample s = {.op = "MatMul",
                       .inputs = {random_tensor(ta ? SHAPE(k, m) : SHAPE(m, k)),
                                  random_tensor(tb ? SHAPE(n, k) : SHAPE(k, n))},
                       .inputs_count = 2,
                       .attrs = attrs,
                       .attrs_count = 2,
                       .outputs_count = 1,
                       .tolerance = 2e-5};
    check_sample(&s);
}

TEST(products_of_odd_sizes)
{
    static const int64_t sizes[] = {0, 1, 2, 5, 7, 10, 16, 17, 33, 65, 100, 130};
    for (int i = 0; i < 80; i++) {
        int64_t m = sizes[pick(0, ARRAY_LEN(sizes) - 1)],
                n = sizes[pick(0, ARRAY_LEN(sizes) - 1)];
        check_product(m, n, sizes[pick(0, ARRAY_LEN(sizes) - 1)], i & 1, i & 2);
    }
}

TEST(products_that_are_narrow_tall_or_deep)
{
    for (int i = 0; i < 4; i++) {
        check_product(100, 10, 784, i & 1, i & 2);
        check_product(784, 10, 100, i & 1, i & 2);
        check_product(300, 96, 700, i & 1, i & 2);
        check_product(3, 520, 641, i & 1, i & 2);
    }
}

/* --- elementwise --- */

static struct shape random_shape(int rank_max, int64_t dim_max)
{
    struct shape shape = SHAPE_SCALAR;
    shape.rank = (int)pick(0, rank_max);
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = pick(pick(0, 9) == 0 ? 0 : 1, dim_max);
    return shape;
}

/* Some dimensions of `shape` as 1, some leading ones left out. */
static struct shape shrunk(const struct shape *shape)
{
    struct shape out = SHAPE_SCALAR;
    for (int i = (int)pick(0, shape->rank); i < shape->rank; i++)
        out.dims[out.rank++] = pick(0, 2) ? shape->dims[i] : 1;
    return out;
}

static void check_binary(const char *op, struct shape a, struct shape b)
{
    struct sample s = {.op = op,
                       .inputs = {random_tensor(a), random_tensor(b)},
                       .inputs_count = 2,
                       .outputs_count = 1,
                       .tolerance = 1e-6};
    check_sample(&s);
}

TEST(binary_operations_broadcast)
{
    static const char *const ops[] = {"Add",     "AddV2",   "Sub",
                                      "Mul",     "Div",     "RealDiv",
                                      "Maximum", "Minimum", "SquaredDifference"};
    for (int i = 0; i < ARRAY_LEN(ops); i++) {
        for (int n = 0; n < 8; n++) {
            struct shape whole = random_shape(4, 9), part = shrunk(&whole);
            check_binary(ops[i], n & 1 ? whole : part, n & 1 ? part : whole);
        }
        check_binary(ops[i], SHAPE(300, 301), SHAPE(300, 301));
        check_binary(ops[i], SHAPE(300, 301), SHAPE(301));
        check_binary(ops[i], SHAPE_SCALAR, SHAPE(300, 301));
    }
}

TEST(unary_operations_at_the_ends_of_floats)
{
    static const char *const ops[] = {"Neg",        "Abs",  "Square", "Sqrt", "Rsqrt",
                                      "Reciprocal", "Relu", "Exp",    "Tanh", "Sigmoid"};
    static const float ends[] = {0.0f,     -0.0f,     1e-42f, -1e-42f, 1e-20f, -1e-20f,
                                 0.6249f,  0.6251f,   88.5f,  -88.0f,  200.0f, -200.0f,
                                 INFINITY, -INFINITY, NAN,    3e38f};
    for (int i = 0; i < ARRAY_LEN(ops); i++) {
        for (int n = 0; n < 4; n++) {
            struct sample s = {
                .op = ops[i], .inputs_count = 1, .outputs_count = 1, .tolerance = 5e-7};
            s.inputs[0] = random_tensor(n == 3 ? SHAPE(200, 333) : random_shape(3, 20));
            check_sample(&s);
        }
        for (int n = 0; n < ARRAY_LEN(ends); n++) { /* each alone: tolerance is of its size */
            struct sample s = {
                .op = ops[i], .inputs_count = 1, .outputs_count = 1, .tolerance = 1e-6};
            s.inputs[0] = make(F32, SHAPE(1));
            *tensor_f32_mut(&s.inputs[0]) = ends[n];
            check_sample(&s);
        }
    }
}

static struct tensor random_bits(enum dtype dtype, int64_t count)
{
    struct tensor t = make(dtype, SHAPE(count));
    uint8_t *bytes = t.data;
    for (int64_t i = 0; i < count * (int64_t)dtype_size(dtype); i++)
        bytes[i] = dtype == BOOL ? (uint8_t)(next_number() & 1) : (uint8_t)next_number();
    for (int64_t i = 0; i < count; i++) {
        bool tiny = fabs(tensor_number(&t, i)) < 1e-30; /* the reference flushes it to 0 */
        if (tiny || i % 3 == 0)                         /* and what is not huge */
            tensor_set_number(&t, i, dtype == BOOL ? (double)(i & 1) : (double)(i % 120) + 0.5);
    }
    return t;
}

TEST(casts_of_all_bits)
{
    static const enum dtype types[] = {F16, BF16, F32, F64, U8,  I8,  U16,
                                       I16, U32,  I32, U64, I64, BOOL};
    for (int i = 0; i < ARRAY_LEN(types) * ARRAY_LEN(types); i++) {
        const enum dtype from = types[i / ARRAY_LEN(types)], to = types[i % ARRAY_LEN(types)];
        const struct attr attrs[] = {attr_type("DstT", to)};
        int64_t count = i % 5 ? 129 : 70001;
        struct sample s = {.op = "Cast",
                           .inputs = {random_bits(from, count)},
                           .inputs_count = 1,
                           .attrs = attrs,
                           .attrs_count = 1,
                           .outputs_count = 1};
        check_sample(&s);
    }
}

TEST(numbers_that_are_none_stay_so_in_bfloat16)
{
    const uint32_t bits[] = {0x7f800001, 0x7fc00000, 0xff80ffff, 0xffffffff, 0x7f800000};
    for (int i = 0; i < ARRAY_LEN(bits); i++) {
        const struct attr attrs[] = {attr_type("DstT", BF16)};
        struct sample s = {.op = "Cast",
                           .inputs = {make(F32, SHAPE(1))},
                           .inputs_count = 1,
                           .attrs = attrs,
                           .attrs_count = 1,
                           .outputs_count = 1};
        struct tensor out;
        float value;
        memcpy(s.inputs[0].data, &bits[i], 4);
        memcpy(&value, &bits[i], 4);
        add_tables();
        run_session(&s, 1, FAST, &out);
        CHECK_INT(*(const uint16_t *)out.data, dtype_f32_to_bf16(value));
        tensor_release(&out);
        tensor_release(&s.inputs[0]);
    }
}

TEST(relu_grad)
{
    for (int n = 0; n < 6; n++) {
        struct shape shape = n == 5 ? SHAPE(333, 200) : random_shape(3, 20);
        struct sample s = {.op = "ReluGrad",
                           .inputs = {random_tensor(shape), whole_tensor(shape)},
                           .inputs_count = 2,
                           .outputs_count = 1};
        check_sample(&s);
    }
}

/* --- bias --- */

TEST(bias_and_its_gradient)
{
    static const int64_t columns[] = {1, 3, 8, 10, 32, 33, 64, 500};
    for (int i = 0; i < ARRAY_LEN(columns); i++) {
        for (int n = 0; n < 3; n++) {
            struct shape shape = n == 0   ? SHAPE(pick(0, 5), columns[i])
                                 : n == 1 ? SHAPE(3, pick(1, 4), 5, columns[i])
                                          : SHAPE(4000, columns[i]);
            struct sample add = {
                .op = "BiasAdd",
                .inputs = {random_tensor(shape), random_tensor(SHAPE(columns[i]))},
                .inputs_count = 2,
                .outputs_count = 1,
                .tolerance = 1e-7};
            check_sample(&add);
            struct sample grad = {.op = "BiasAddGrad",
                                  .inputs = {whole_tensor(shape)},
                                  .inputs_count = 1,
                                  .outputs_count = 1};
            check_sample(&grad);
        }
    }
}

/* --- windows --- */

struct window {
    int64_t batch, height, width, in, out, filter_height, filter_width;
    int64_t strides[4], dilations[4], pads[8];
    const char *padding;
    int64_t groups; /* 0 and 1: none */
};

static struct window random_window(void)
{
    static const int64_t channels[] = {1, 3, 4, 8, 16, 17, 32};
    static const char *const paddings[] = {"SAME", "VALID", "EXPLICIT"};
    struct window w = {.batch = pick(1, 3),
                       .filter_height = pick(1, 4),
                       .filter_width = pick(1, 4),
                       .in = channels[pick(0, 6)],
                       .out = channels[pick(0, 6)],
                       .strides = {1, pick(1, 3), pick(1, 3), 1},
                       .dilations = {1, pick(0, 4) ? 1 : 2, pick(0, 4) ? 1 : 2, 1},
                       .padding = paddings[pick(0, 2)]};
    w.groups = w.in % 4 == 0 && w.out % 4 == 0 && pick(0, 3) == 0 ? 4 : 1;
    w.height = 2 * w.filter_height + pick(0, 7);
    w.width = 2 * w.filter_width + pick(0, 7);
    for (int i = 2; i < 6; i++)
        w.pads[i] =
            pick(0, w.filter_height < w.filter_width ? w.filter_height : w.filter_width) / 2;
    return w;
}

static int64_t window_size(const struct window *w, int axis)
{
    int64_t size = axis ? w->width : w->height,
            filter = axis ? w->filter_width : w->filter_height;
    int64_t stride = w->strides[1 + axis], extent = (filter - 1) * w->dilations[1 + axis] + 1;
    if (!strcmp(w->padding, "SAME"))
        return (size + stride - 1) / stride;
    if (!strcmp(w->padding, "EXPLICIT"))
        size += w->pads[2 + 2 * axis] + w->pads[3 + 2 * axis];
    return (size - extent) / stride + 1;
}

static void check_convolution(const struct window *w)
{
    bool is_explicit = !strcmp(w->padding, "EXPLICIT");
    const struct attr attrs[] = {
        attr_int_list("strides", w->strides, 4), attr_int_list("dilations", w->dilations, 4),
        attr_string("padding", w->padding), attr_int_list("explicit_paddings", w->pads, 8)};
    int attrs_count = is_explicit ? 4 : 3;
    struct shape image = SHAPE(w->batch, w->height, w->width, w->in);
    struct shape filter =
        SHAPE(w->filter_height, w->filter_width, w->in / (w->groups ? w->groups : 1), w->out);
    struct shape result = SHAPE(w->batch, window_size(w, 0), window_size(w, 1), w->out);
    struct sample forward = {.op = "Conv2D",
                             .inputs = {random_tensor(image), random_tensor(filter)},
                             .inputs_count = 2};
    struct sample input = {
        .op = "Conv2DBackpropInput",
        .inputs = {ints(image.dims, 4), random_tensor(filter), random_tensor(result)},
        .inputs_count = 3};
    struct sample weights = {
        .op = "Conv2DBackpropFilter",
        .inputs = {random_tensor(image), ints(filter.dims, 4), random_tensor(result)},
        .inputs_count = 3};
    struct sample *all[] = {&forward, &input, &weights};
    bool dilated = w->dilations[1] * w->dilations[2] > 1; /* its gradient has no reference */
    for (int i = 0; i < 3; i++) {
        if (i > 0 && dilated) {
            release_all(all[i]->inputs, all[i]->inputs_count);
            continue;
        }
        all[i]->attrs = attrs;
        all[i]->attrs_count = attrs_count;
        all[i]->outputs_count = 1;
        all[i]->tolerance = 2e-5;
        check_sample(all[i]);
    }
}

TEST(convolutions_and_their_gradients)
{
    for (int i = 0; i < 40; i++) {
        struct window w = random_window();
        check_convolution(&w);
    }
    struct window mnist = {.batch = 4,
                           .height = 28,
                           .width = 28,
                           .in = 1,
                           .out = 32,
                           .filter_height = 5,
                           .filter_width = 5,
                           .strides = {1, 1, 1, 1},
                           .dilations = {1, 1, 1, 1},
                           .padding = "SAME"};
    check_convolution(&mnist);
}

/* What the library's own code for such windows wrote beyond its memory; see malloc's checks. */
TEST(strided_windows_of_one_element_with_few_channels)
{
    for (int in = 1; in < 20; in += 2) {
        struct window w = {.batch = 4,
                           .height = 8,
                           .width = 8,
                           .in = in,
                           .out = 8,
                           .filter_height = 1,
                           .filter_width = 1,
                           .strides = {1, 2, 2, 1},
                           .dilations = {1, 1, 1, 1},
                           .padding = "VALID"};
        check_convolution(&w);
    }
}

/* From 0 to 2: sums that grow all the time, where the order of adding shows. */
static struct tensor positive_tensor(struct shape shape)
{
    struct tensor t = random_tensor(shape);
    for (int64_t i = 0; i < t.count; i++)
        tensor_f32_mut(&t)[i] += 1;
    return t;
}

TEST(filter_gradient_of_many_positions_is_accurate)
{
    const int64_t ones[] = {1, 1, 1, 1}, filter[] = {3, 3, 17, 8};
    const struct attr attrs[] = {attr_int_list("strides", ones, 4),
                                 attr_int_list("dilations", ones, 4),
                                 attr_string("padding", "SAME")};
    struct sample s = {.op = "Conv2DBackpropFilter",
                       .inputs = {positive_tensor(SHAPE(12, 31, 33, 17)), ints(filter, 4),
                                  positive_tensor(SHAPE(12, 31, 33, 8))},
                       .inputs_count = 3,
                       .attrs = attrs,
                       .attrs_count = 3,
                       .outputs_count = 1,
                       .tolerance = 1.5e-6};
    check_sample(&s);
}

/* Summed in strips of rows: strides, dilation and padding decide what each strip sees. */
TEST(filter_gradients_of_large_images)
{
    static const struct window windows[] = {
        {2, 70, 61, 3, 5, 5, 3, {1, 1, 1, 1}, {1, 1, 1, 1}, {0}, "SAME", 0},
        {1, 130, 90, 8, 16, 3, 3, {1, 2, 1, 1}, {1, 1, 1, 1}, {0}, "VALID", 0},
        {1, 64, 1100, 2, 3, 2, 3, {1, 1, 1, 1}, {1, 1, 1, 1}, {0}, "SAME", 0},
    };
    for (int i = 0; i < ARRAY_LEN(windows); i++)
        check_convolution(&windows[i]);
}

TEST(convolutions_of_nothing)
{
    struct window w = {.batch = 0,
                       .height = 5,
                       .width = 5,
                       .in = 2,
                       .out = 3,
                       .filter_height = 3,
                       .filter_width = 3,
                       .strides = {1, 1, 1, 1},
                       .dilations = {1, 1, 1, 1},
                       .padding = "SAME"};
    check_convolution(&w);
}

static void check_pooling(const struct window *w, bool ties)
{
    const int64_t window[] = {1, w->filter_height, w->filter_width, 1};
    const struct attr attrs[] = {attr_int_list("ksize", window, 4),
                                 attr_int_list("strides", w->strides, 4),
                                 attr_string("padding", w->padding)};
    struct shape image = SHAPE(w->batch, w->height, w->width, w->in);
    struct shape result = SHAPE(w->batch, window_size(w, 0), window_size(w, 1), w->in);
    struct tensor x = ties ? whole_tensor(image) : random_tensor(image), pooled, input;
    tensor_share(&input, &x);
    struct sample forward = {.op = "MaxPool", .inputs = {x}, .inputs_count = 1};
    struct sample backward = {.op = "MaxPoolGrad", .inputs_count = 3};
    forward.attrs = backward.attrs = attrs;
    forward.attrs_count = backward.attrs_count = 3;
    forward.outputs_count = backward.outputs_count = 1;
    run_session(&forward, 1, PLAIN, &pooled);
    check_sample(&forward);
    backward.inputs[0] = input;
    backward.inputs[1] = pooled;
    backward.inputs[2] = whole_tensor(result);
    check_sample(&backward);
}

TEST(pooling_and_its_gradient)
{
    add_tables();
    for (int i = 0; i < 30; i++) {
        struct window w = random_window();
        w.dilations[1] = w.dilations[2] = 1;
        if (!strcmp(w.padding, "EXPLICIT"))
            w.padding = "VALID";
        check_pooling(&w, i & 1);
    }
    struct window two = {.batch = 7,
                         .height = 28,
                         .width = 28,
                         .in = 32,
                         .filter_height = 2,
                         .filter_width = 2,
                         .strides = {1, 2, 2, 1},
                         .dilations = {1, 1, 1, 1},
                         .padding = "VALID"};
    check_pooling(&two, true);
}

/* --- losses --- */

TEST(softmax_and_cross_entropy)
{
    static const int64_t classes[] = {1, 2, 8, 9, 10, 16, 17, 100, 1000};
    for (int i = 0; i < ARRAY_LEN(classes); i++) {
        int64_t n = classes[i], rows = i == 4 ? 700 : pick(1, 20);
        static const char *const plain[] = {"Softmax", "LogSoftmax"};
        for (int k = 0; k < 2; k++) {
            struct sample s = {.op = plain[k],
                               .inputs = {random_tensor(SHAPE(rows, n))},
                               .inputs_count = 1,
                               .outputs_count = 1,
                               .tolerance = 1e-6};
            check_sample(&s);
        }
        for (int wide = 0; wide < 2; wide++) {
            struct tensor labels = make(wide ? I64 : I32, SHAPE(rows));
            for (int64_t k = 0; k < rows; k++)
                tensor_set_number(&labels, k, (double)pick(0, n - 1));
            struct sample s = {.op = "SparseSoftmaxCrossEntropyWithLogits",
                               .inputs = {random_tensor(SHAPE(rows, n)), labels},
                               .inputs_count = 2,
                               .outputs_count = 2,
                               .tolerance = 2e-6};
            check_sample(&s);
        }
        struct sample s = {
            .op = "SoftmaxCrossEntropyWithLogits",
            .inputs = {random_tensor(SHAPE(rows, n)), random_tensor(SHAPE(rows, n))},
            .inputs_count = 2,
            .outputs_count = 2,
            .tolerance = 1e-5};
        check_sample(&s);
    }
}

/* --- transposes --- */

TEST(transposes_shared_among_threads)
{
    for (int i = 0; i < 40; i++) {
        struct shape shape = random_shape(5, 7);
        if (i % 8 == 5)
            shape = SHAPE(3, 170, 100);
        if (i % 8 == 6)
            shape = SHAPE(0, 4);
        int64_t order[LIMIT_TENSOR_RANK];
        for (int d = 0; d < shape.rank; d++) {
            int64_t k = pick(0, d);
            order[d] = order[k];
            order[k] = d;
        }
        struct sample s = {.op = "Transpose",
                           .inputs = {whole_tensor(shape), ints(order, shape.rank)},
                           .inputs_count = 2,
                           .outputs_count = 1};
        check_sample(&s);
    }
}

/* --- reductions --- */

TEST(reductions_over_any_axes)
{
    static const char *const ops[] = {"Sum", "Mean", "Max"};
    for (int i = 0; i < 60; i++) {
        struct shape shape = random_shape(5, 7);
        if (i % 10 == 9)
            shape = SHAPE(3, 170, 200);
        int64_t axes[LIMIT_TENSOR_RANK];
        int count = 0;
        for (int k = 0; k < shape.rank; k++) {
            if (pick(0, 1))
                axes[count++] = pick(0, 1) ? k : k - shape.rank;
        }
        const struct attr keep[] = {attr_bool("keep_dims", i & 1)};
        struct sample s = {.op = ops[i % 3],
                           .inputs = {whole_tensor(shape), ints(axes, count)},
                           .inputs_count = 2,
                           .attrs = keep,
                           .attrs_count = 1,
                           .outputs_count = 1,
                           .tolerance = 1e-6};
        check_sample(&s);
    }
}
