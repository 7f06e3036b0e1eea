/* types_test.c - types that few programs use. */

#include <complex.h>
#include <math.h>

#include "tests/unit/kernels/world.h"

static struct edge numbers(struct world *w, enum dtype dtype, const struct shape *shape,
                           const double *values)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, dtype, shape, &w->err), &w->err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_set_number(&tensor, i, values[i]);
    struct edge edge = builder_const(&w->b, "numbers", &tensor);
    tensor_release(&tensor);
    return edge;
}
#define ROW(dtype, ...)                                                                        \
    numbers(w, dtype, &SHAPE(ARRAY_LEN(((const double[]){__VA_ARGS__}))),                      \
            (const double[]){__VA_ARGS__})

static void check(struct world *w, const double *expected)
{
    struct tensor got;
    world_begin(w);
    CHECK_OK(world_run(w, "y:0", &got, &w->err), &w->err);
    for (int64_t i = 0; i < got.count; i++)
        if (tensor_number(&got, i) != expected[i])
            CHECK_STOP("[%lld] is %g, not %g", (long long)i, tensor_number(&got, i),
                       expected[i]);
    tensor_release(&got);
    world_free(w);
}
#define CHECK_Y(...) check(w, (const double[]){__VA_ARGS__})

TEST(floats_are_divided_and_cut)
{
    static const enum dtype types[] = {F16, BF16, F32, F64};
    for (int t = 0; t < ARRAY_LEN(types); t++) {
        struct world *w = world_new(NULL);
        builder_add(&w->b, "TruncateDiv", "y",
                    INPUTS(ROW(types[t], 7.5, -7.5, 7.5, 1), ROW(types[t], 2, 2, -2, 0)),
                    NO_ATTRS);
        CHECK_Y(3, -3, -3, INFINITY);
    }
}

TEST(quantized_numbers_are_compared)
{
    static const enum dtype types[][2] = {
        {QI8, I8}, {QU8, U8}, {QI16, I16}, {QU16, U16}, {QI32, I32}};
    for (int t = 0; t < ARRAY_LEN(types); t++) {
        struct world *w = world_new(NULL);
        struct edge in[2] = {ROW(types[t][1], 1, 2, 3), ROW(types[t][1], 1, 5, 3)};
        for (int i = 0; i < 2; i++)
            in[i] = builder_add(&w->b, "Bitcast", "q", INPUTS(in[i]),
                                ATTRS(attr_type("type", types[t][0])));
        builder_add(&w->b, "Equal", "y", in, 2, NO_ATTRS);
        CHECK_Y(1, 0, 1);
    }
}

TEST(complex_numbers_are_clipped_by_parts)
{
    struct world *w = world_new(NULL);
    struct tensor x;
    CHECK_OK(tensor_init(&x, C64, &SHAPE(2), &w->err), &w->err);
    ((float complex *)x.data)[0] = CMPLXF(-3, 2);
    ((float complex *)x.data)[1] = CMPLXF(0.5F, -9);
    struct edge in = builder_const(&w->b, "x", &x);
    tensor_release(&x);
    struct edge low = builder_scalar(&w->b, "low", C64, -1);
    struct edge high = builder_scalar(&w->b, "high", C64, 1);
    builder_add(&w->b, "ClipByValue", "y", INPUTS(in, low, high), NO_ATTRS);
    world_begin(w);
    CHECK_OK(world_run(w, "y:0", &x, &w->err), &w->err);
    CHECK(((const float complex *)x.data)[0] == -1);
    CHECK(((const float complex *)x.data)[1] == 0.5F);
    tensor_release(&x);
    world_free(w);
}

/* Sums of int32 wrap around. */
TEST(integers_are_convolved)
{
    static const int64_t strides[] = {1, 1, 1, 1};
    struct world *w = world_new(NULL);
    struct edge x = numbers(w, I32, &SHAPE(1, 1, 3, 1), (const double[]){1, 65536, 3});
    struct edge f = numbers(w, I32, &SHAPE(1, 2, 1, 1), (const double[]){65536, 2});
    builder_add(&w->b, "Conv2D", "y", INPUTS(x, f),
                ATTRS(attr_string("padding", "VALID"), attr_int_list("strides", strides, 4)));
    CHECK_Y(65536 + 131072, 6);
}

TEST(segments_may_be_numbered_in_16_bits)
{
    struct world *w = world_new(NULL);
    builder_add(&w->b, "UnsortedSegmentSum", "y",
                INPUTS(ROW(F32, 1, 2, 3, 4), ROW(I16, 1, 0, -1, 1),
                       builder_scalar(&w->b, "segments", I32, 3)),
                NO_ATTRS);
    CHECK_Y(2, 5, 0);
}
