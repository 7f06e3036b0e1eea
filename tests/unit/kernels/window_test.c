/* window_test.c - windows that cannot be: which error each gives. */

#include "tests/unit/kernels/world.h"

static struct attr sizes(const char *name, const int64_t *values, int count)
{
    return (struct attr){
        .name = name, .kind = ATTR_INT, .is_list = true, .count = count, .ints = values};
}

/* Pools ones of that rank with that window and stride; the error's code, or -1. */
static int pool(const char *op, const int64_t *ksize, const int64_t *strides, int rank)
{
    struct world *world = world_new(&(struct session_options){.no_optimise = true});
    struct shape shape = {.rank = rank, .dims = {2, 2, 2, 2, 2}};
    struct error err;
    struct tensor ones, out = {0};
    CHECK_OK(tensor_init(&ones, F32, &shape, &err), &err);
    for (int64_t i = 0; i < ones.count; i++)
        tensor_set_number(&ones, i, 1);
    struct edge x = builder_const(&world->b, "x", &ones);
    builder_add(&world->b, op, "y", INPUTS(x),
                ATTRS(sizes("ksize", ksize, rank), sizes("strides", strides, rank),
                      attr_string("padding", "VALID")));
    world_begin(world);
    bool ok = world_run(world, "y:0", &out, &err);
    tensor_release(&out);
    tensor_release(&ones);
    world_free(world);
    return ok ? -1 : (int)err.code;
}

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

TEST(windows_over_examples_are_unimplemented)
{
    const int64_t *one = SIZES(1, 1, 1, 1, 1);
    CHECK_INT(pool("AvgPool", SIZES(2, 1, 1, 1), one, 4), UNIMPLEMENTED);
    CHECK_INT(pool("AvgPool", one, SIZES(2, 1, 1, 1), 4), UNIMPLEMENTED);
    CHECK_INT(pool("MaxPool", SIZES(2, 1, 1, 1), one, 4), UNIMPLEMENTED);
    CHECK_INT(pool("MaxPool3D", SIZES(2, 1, 1, 1, 1), one, 5), UNIMPLEMENTED);
}

TEST(windows_over_channels_are_unimplemented)
{
    const int64_t *one = SIZES(1, 1, 1, 1, 1);
    CHECK_INT(pool("AvgPool", SIZES(1, 1, 1, 2), one, 4), UNIMPLEMENTED);
    CHECK_INT(pool("MaxPoolWithArgmax", SIZES(1, 1, 1, 2), one, 4), UNIMPLEMENTED);
    CHECK_INT(pool("AvgPool3D", SIZES(1, 1, 1, 1, 2), one, 5), UNIMPLEMENTED);
    CHECK_INT(pool("AvgPool3D", one, SIZES(1, 1, 1, 1, 2), 5), UNIMPLEMENTED);
    CHECK_INT(pool("AvgPool", one, SIZES(1, 1, 1, 2), 4), -1);
}

/* Sums and products of sizes must not overflow. */
TEST(sizes_have_32_bits)
{
    const int64_t *one = SIZES(1, 1, 1, 1, 1);
    int64_t much = INT64_C(1) << 62;
    CHECK_INT(pool("AvgPool", SIZES(1, much, 1, 1), one, 4), INVALID);
    CHECK_INT(pool("AvgPool", one, SIZES(1, 1, much, 1), 4), INVALID);
    CHECK_INT(pool("MaxPool3D", SIZES(1, 1, much, 1, 1), one, 5), INVALID);
    CHECK_INT(pool("MaxPool", SIZES(1, 0, 1, 1), one, 4), INVALID);
}
