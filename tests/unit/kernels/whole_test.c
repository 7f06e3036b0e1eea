/* whole_test.c - whole numbers of 64 bits stay exact, and wrap around as their type does. */

#include "runtime/tensor.h"
#include "tests/unit/kernels/world.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})
#define COUNT(...) ((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
/* A vector of that type. */
#define VECTOR(w, dtype, ...) values(w, dtype, &SHAPE(COUNT(__VA_ARGS__)), VALUES(__VA_ARGS__))

static const int64_t big = INT64_C(1) << 60;

static struct edge values(struct world *world, enum dtype dtype, const struct shape *shape,
                          const int64_t *values)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, dtype, shape, &world->err), &world->err);
    for (int64_t i = 0; i < tensor.count; i++)
        if (dtype == I64)
            ((int64_t *)tensor.data)[i] = values[i];
        else
            tensor_set_number(&tensor, i, (double)values[i]);
    struct edge edge = builder_const(&world->b, "values", &tensor);
    tensor_release(&tensor);
    return edge;
}

static struct world *begin(void)
{
    return world_new(&(struct session_options){.no_optimise = true});
}

/* Runs the node "y" and ends the world: its elements must be these. */
static void check_end(struct world *world, int64_t count, const int64_t *expected)
{
    struct tensor out = {0};
    world_begin(world);
    CHECK_OK(world_run(world, "y:0", &out, &world->err), &world->err);
    CHECK_INT(out.count, count);
    for (int64_t i = 0; i < count; i++)
        CHECK_INT(tensor_integer(&out, i), expected[i]);
    tensor_release(&out);
    world_free(world);
}
#define CHECK_END(w, ...) check_end(w, COUNT(__VA_ARGS__), VALUES(__VA_ARGS__))

TEST(segments_are_summed_exactly)
{
    struct world *w = begin();
    builder_add(
        &w->b, "SegmentSum", "y",
        INPUTS(VECTOR(w, I64, big + 1, big + 3, -big - 5, 7), VECTOR(w, I32, 0, 0, 1, 1)),
        NO_ATTRS);
    CHECK_END(w, 2 * big + 4, -big + 2);
    w = begin();
    struct edge two = builder_scalar(&w->b, "two", I32, 2);
    builder_add(
        &w->b, "UnsortedSegmentSum", "y",
        INPUTS(VECTOR(w, I64, big + 1, big + 3, -big - 5, 7), VECTOR(w, I32, 1, 1, -1, 0), two),
        NO_ATTRS);
    CHECK_END(w, 7, 2 * big + 4);
}

/* 127 + 127 is -2 in 8 bits, and half of that -1. */
TEST(means_of_segments_wrap_as_the_type_does)
{
    struct world *w = begin();
    builder_add(&w->b, "SegmentMean", "y",
                INPUTS(VECTOR(w, I8, 127, 127, 9, 2), VECTOR(w, I32, 0, 0, 2, 2)), NO_ATTRS);
    CHECK_END(w, -1, 0, 5);
    w = begin();
    builder_add(&w->b, "SegmentMean", "y",
                INPUTS(VECTOR(w, U8, 255, 255), VECTOR(w, I32, 0, 0)), NO_ATTRS);
    CHECK_END(w, 127);
}

static struct attr ones(const char *name)
{
    static const int64_t all[] = {1, 1, 2, 1};
    return (struct attr){
        .name = name, .kind = ATTR_INT, .is_list = true, .count = 4, .ints = all};
}
#define PAIRS ATTRS(ones("ksize"), ones("strides"), attr_string("padding", "VALID"))

TEST(maxima_are_told_apart)
{
    const struct shape image = SHAPE(1, 1, 4, 1);
    const int64_t pixels[] = {big + 1, big + 2, -big, -big - 1};
    struct world *w = begin();
    builder_add(&w->b, "MaxPool", "y", INPUTS(values(w, I64, &image, pixels)), PAIRS);
    CHECK_END(w, big + 2, -big);
    w = begin();
    struct edge x = values(w, I64, &image, pixels);
    struct edge pooled = values(w, I64, &SHAPE(1, 1, 2, 1), VALUES(big + 2, -big));
    builder_add(&w->b, "MaxPoolGrad", "y", INPUTS(x, pooled, pooled), PAIRS);
    CHECK_END(w, 0, big + 2, -big, 0);
}

TEST(clipping_keeps_every_bit)
{
    struct world *w = begin();
    struct edge low = values(w, I64, &SHAPE_SCALAR, VALUES(big + 1));
    struct edge high = values(w, I64, &SHAPE_SCALAR, VALUES(big + 5));
    builder_add(&w->b, "ClipByValue", "y",
                INPUTS(VECTOR(w, I64, big, big + 2, big + 6), low, high), NO_ATTRS);
    CHECK_END(w, big + 1, big + 2, big + 5);
}

TEST(mirrored_gradients_add_up_exactly)
{
    struct world *w = begin();
    builder_add(&w->b, "MirrorPadGrad", "y",
                INPUTS(VECTOR(w, I64, big + 1, big + 2, 3, 4),
                       values(w, I32, &SHAPE(1, 2), VALUES(1, 1))),
                ATTRS(attr_string("mode", "SYMMETRIC")));
    CHECK_END(w, 2 * big + 3, 7);
}

/* Sorting is TopKV2 of all: the work must not grow with the square of the count. */
TEST(a_whole_row_is_sorted_fast)
{
    enum { ALL = 300000 };
    struct world *w = begin();
    struct tensor x, out = {0};
    CHECK_OK(tensor_init(&x, I64, &SHAPE(ALL), &w->err), &w->err);
    for (int64_t i = 0; i < ALL; i++)
        ((int64_t *)x.data)[i] = i * 7919 % ALL / 2; /* pairs, in no order */
    struct edge k = builder_scalar(&w->b, "k", I32, ALL);
    builder_add(&w->b, "TopKV2", "y", INPUTS(builder_const(&w->b, "x", &x), k), NO_ATTRS);
    world_begin(w);
    CHECK_OK(world_run(w, "y:1", &out, &w->err), &w->err);
    const int32_t *order = out.data;
    const int64_t *number = x.data;
    for (int64_t i = 1; i < ALL; i++) {
        int64_t before = number[order[i - 1]], after = number[order[i]];
        CHECK(before > after || (before == after && order[i - 1] < order[i]));
    }
    tensor_release(&out);
    tensor_release(&x);
    world_free(w);
}
