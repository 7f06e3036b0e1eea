/* hostile_test.c - sizes whose sums and products overflow are refused, not computed. */

#include "tests/unit/kernels/world.h"

#define LARGEST INT64_MAX
#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

static struct world *begin(void)
{
    return world_new(&(struct session_options){.no_optimise = true});
}

static struct edge ints(struct world *world, const struct shape *shape, const int64_t *values)
{
    struct tensor tensor;
    CHECK_OK(tensor_init_copy(&tensor, I64, shape, values, &world->err), &world->err);
    struct edge edge = builder_const(&world->b, "ints", &tensor);
    tensor_release(&tensor);
    return edge;
}

static struct edge zeros(struct world *world, const struct shape *shape)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, F32, shape, &world->err), &world->err);
    memset(tensor.data, 0, tensor_bytes(&tensor));
    struct edge edge = builder_const(&world->b, "zeros", &tensor);
    tensor_release(&tensor);
    return edge;
}

/* The code with which the node "y" fails, when the graph is extended or run; -1: it does not.
 */
static int end(struct world *world)
{
    struct error err;
    struct tensor out = {0};
    CHECK_OK(builder_ok(&world->b), &world->err);
    bool ok = session_extend_graph(world->session, world->graph, &err) &&
              world_run(world, "y:0", &out, &err);
    tensor_release(&out);
    world_free(world);
    return ok ? -1 : (int)err.code;
}

TEST(paddings_that_overflow)
{
    static const char *const ops[] = {"Pad", "MirrorPad"};
    for (int i = 0; i < ARRAY_LEN(ops); i++) {
        struct world *w = begin();
        struct edge x = zeros(w, &SHAPE(3));
        struct edge pads = ints(w, &SHAPE(1, 2), VALUES(LARGEST, LARGEST));
        builder_add(&w->b, ops[i], "y", INPUTS(x, pads), ATTRS(attr_string("mode", "REFLECT")));
        CHECK_INT(end(w), INVALID);
    }
    struct world *w = begin();
    struct edge x = zeros(w, &SHAPE(3));
    struct edge pads = ints(w, &SHAPE(1, 2), VALUES(LARGEST, LARGEST));
    builder_add(&w->b, "MirrorPadGrad", "y", INPUTS(x, pads),
                ATTRS(attr_string("mode", "REFLECT")));
    CHECK_INT(end(w), INVALID);
}

TEST(multiples_that_overflow)
{
    struct world *w = begin();
    struct edge x = zeros(w, &SHAPE(4));
    builder_add(&w->b, "Tile", "y", INPUTS(x, ints(w, &SHAPE(1), VALUES(INT64_C(1) << 62))),
                NO_ATTRS);
    CHECK_INT(end(w), INVALID);
}

TEST(blocks_whose_square_overflows)
{
    static const char *const ops[] = {"DepthToSpace", "SpaceToDepth"};
    for (int i = 0; i < ARRAY_LEN(ops); i++) {
        struct world *w = begin();
        struct edge x = zeros(w, &SHAPE(1, 2, 2, 4));
        builder_add(&w->b, ops[i], "y", INPUTS(x),
                    ATTRS(attr_int("block_size", INT64_C(1) << 32)));
        CHECK_INT(end(w), INVALID);
    }
}

TEST(radii_below_the_least)
{
    static const int64_t bad[] = {-1, INT32_MAX, INT64_MIN, LARGEST};
    for (int i = 0; i < 2 * ARRAY_LEN(bad); i++) {
        struct world *w = begin();
        struct edge x = zeros(w, &SHAPE(1, 2, 2, 4));
        const struct attr radius = attr_int("depth_radius", bad[i / 2]);
        builder_add(&w->b, i % 2 ? "LRNGrad" : "LRN", "y", (const struct edge[]){x, x, x},
                    i % 2 ? 3 : 1, &radius, 1);
        CHECK_INT(end(w), INVALID);
    }
}

TEST(numbers_of_outputs_that_no_graph_has)
{
    static const char *const ops[] = {"Split", "Unpack"};
    for (int i = 0; i < ARRAY_LEN(ops); i++) {
        struct world *w = begin();
        struct edge x = zeros(w, &SHAPE(2, 4));
        struct edge axis = builder_scalar(&w->b, "axis", I32, 0);
        const struct attr number = attr_int(i ? "num" : "num_split", INT64_C(1) << 62);
        const struct edge inputs[] = {axis, x};
        builder_add(&w->b, ops[i], "y", inputs + i, 2 - i, &number, 1);
        CHECK(!builder_ok(&w->b));
        CHECK(strstr(w->err.text, "must be at most"));
        world_free(w);
    }
}

/* As many counts as segments, though the output is empty: memory that nobody has. */
TEST(segments_that_overflow)
{
    struct world *w = begin();
    struct edge ids = ints(w, &SHAPE(2), VALUES(0, 100000));
    struct edge segments = ints(w, &SHAPE_SCALAR, VALUES(INT64_C(1) << 61));
    builder_add(&w->b, "SparseSegmentSumWithNumSegments", "y",
                INPUTS(zeros(w, &SHAPE(2, 0)), ints(w, &SHAPE(2), VALUES(0, 1)), ids, segments),
                NO_ATTRS);
    CHECK_INT(end(w), EXHAUSTED);
}

/* An LSTM of one cell over two steps that is told to be shorter than nothing: no step counts.
 */
TEST(lengths_below_the_least)
{
    struct world *w = begin();
    struct shape steps = SHAPE(2, 1, 1), state = SHAPE(1, 1), cell = SHAPE(1);
    struct edge s = zeros(w, &steps), h = zeros(w, &state), c = zeros(w, &cell);
    struct edge weights = zeros(w, &SHAPE(2, 4)), bias = zeros(w, &SHAPE(4));
    struct edge length = ints(w, &SHAPE_SCALAR, VALUES(INT64_MIN));
    builder_add(&w->b, "BlockLSTMGrad", "y",
                INPUTS(length, s, h, h, weights, c, c, c, bias, s, s, s, s, s, s, s, s, s),
                ATTRS(attr_bool("use_peephole", false)));
    CHECK_INT(end(w), -1);
}

/* As many dimensions as there may be, of size 1. */
static struct shape deep(void)
{
    struct shape shape = {.rank = LIMIT_TENSOR_RANK};
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = 1;
    return shape;
}

TEST(ranks_beyond_the_last)
{
    struct shape shape = deep();
    struct world *w = begin();
    builder_add(&w->b, "Bitcast", "y", INPUTS(zeros(w, &shape)), ATTRS(attr_type("type", U8)));
    CHECK_INT(end(w), INVALID);

    /* Indices of 31 dimensions and one coordinate, each naming a slice of 31. */
    w = begin();
    struct edge x = zeros(w, &shape);
    builder_add(&w->b, "GatherNd", "y",
                INPUTS(x, builder_add(&w->b, "Cast", "indices", INPUTS(zeros(w, &shape)),
                                      ATTRS(attr_type("DstT", I32)))),
                NO_ATTRS);
    CHECK_INT(end(w), INVALID);

    w = begin();
    struct edge zero = builder_scalar(&w->b, "zero", I32, 0);
    builder_add(&w->b, "DynamicStitch", "y", INPUTS(zero, zeros(w, &shape)),
                ATTRS(attr_int("N", 1)));
    CHECK_INT(end(w), INVALID);

    w = begin();
    zero = builder_scalar(&w->b, "zero", I32, 0);
    builder_add(&w->b, "DynamicPartition", "y", INPUTS(zeros(w, &shape), zero),
                ATTRS(attr_int("num_partitions", 1)));
    CHECK_INT(end(w), INVALID);

    w = begin();
    zero = builder_scalar(&w->b, "zero", I32, 0);
    struct edge one = builder_scalar(&w->b, "one", I32, 1);
    builder_add(&w->b, "UnsortedSegmentSum", "y", INPUTS(zeros(w, &shape), zero, one),
                NO_ATTRS);
    CHECK_INT(end(w), INVALID);
}

TEST(axes_beyond_the_last)
{
    struct world *w = begin();
    struct shape shape = deep();
    struct edge x = zeros(w, &shape), zero = ints(w, &SHAPE(1), VALUES(0));
    struct edge one = ints(w, &SHAPE(1), VALUES(1));
    builder_add(&w->b, "StridedSlice", "y", INPUTS(x, zero, one, one),
                ATTRS(attr_int("new_axis_mask", 1)));
    CHECK_INT(end(w), INVALID);
}

/* Without elements there is nothing to do, however often. */
TEST(nothing_takes_no_time)
{
    const int64_t many = INT64_C(1) << 50, sizes[] = {1 << 30, 1 << 30}, axis[] = {1};
    const int64_t ones[] = {1, 1, 1, 1};
    const struct attr windows[] = {attr_int_list("ksize", ones, 4),
                                   attr_int_list("strides", ones, 4),
                                   attr_string("padding", "VALID")};
    struct world *w = begin();
    builder_add(
        &w->b, "ResizeNearestNeighbor", "y",
        INPUTS(zeros(w, &SHAPE(2, 3, 3, 0)), builder_ints(&w->b, "size", I32, sizes, 2)),
        NO_ATTRS);
    CHECK_INT(end(w), -1);

    w = begin();
    builder_add(
        &w->b, "Cumsum", "y",
        INPUTS(zeros(w, &SHAPE(1 << 30, 0, 1 << 30)), builder_scalar(&w->b, "axis", I32, 1)),
        NO_ATTRS);
    CHECK_INT(end(w), -1);

    w = begin();
    builder_add(&w->b, "GatherV2", "y",
                INPUTS(zeros(w, &SHAPE(many, 4, 0)), builder_ints(&w->b, "at", I32, axis, 1),
                       builder_scalar(&w->b, "axis", I32, 1)),
                NO_ATTRS);
    CHECK_INT(end(w), -1);

    w = begin();
    builder_add(&w->b, "BatchMatMulV2", "y",
                INPUTS(zeros(w, &SHAPE(many, 0, 3)), zeros(w, &SHAPE(many, 3, 0))), NO_ATTRS);
    CHECK_INT(end(w), -1);

    static const char *const decompositions[] = {"Qr", "Svd"};
    for (int i = 0; i < ARRAY_LEN(decompositions); i++) {
        w = begin();
        builder_add(&w->b, decompositions[i], "y", INPUTS(zeros(w, &SHAPE(many, 0, 0))),
                    NO_ATTRS);
        CHECK_INT(end(w), -1);
    }

    w = begin();
    builder_add(&w->b, "MaxPool", "y", INPUTS(zeros(w, &SHAPE(many, 2, 2, 0))), windows, 3);
    CHECK_INT(end(w), -1);

    w = begin();
    builder_add(&w->b, "Conv2D", "y",
                INPUTS(zeros(w, &SHAPE(many, 0, 2, 3)), zeros(w, &SHAPE(1, 1, 3, 4))),
                windows + 1, 2);
    CHECK_INT(end(w), -1);
}

TEST(products_of_types_that_no_kernel_has)
{
    struct world *w = begin();
    builder_add(&w->b, "BatchMatMulV3", "y",
                INPUTS(zeros(w, &SHAPE(2, 3)), zeros(w, &SHAPE(3, 2))),
                ATTRS(attr_type("Tout", I16)));
    CHECK_INT(end(w), INVALID);
    w = begin();
    builder_add(&w->b, "BatchMatMulV3", "y",
                INPUTS(zeros(w, &SHAPE(2, 3)), zeros(w, &SHAPE(3, 2))),
                ATTRS(attr_type("Tout", F32)));
    CHECK_INT(end(w), -1);
}

TEST(strides_that_cannot_be)
{
    static const int64_t bad[] = {INT64_MIN, -1, 0, INT32_MAX + INT64_C(1), LARGEST};
    static const int64_t ones[] = {1, 1, 1, 1};
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        const int64_t strides[] = {1, bad[i], 1, 1};
        struct world *w = begin();
        builder_add(&w->b, "MaxPool", "y", INPUTS(zeros(w, &SHAPE(1, 4, 4, 1))),
                    ATTRS(attr_int_list("ksize", ones, 4), attr_int_list("strides", strides, 4),
                          attr_string("padding", i % 2 ? "VALID" : "SAME")));
        CHECK_INT(end(w), INVALID);
    }
}

TEST(reserved_ids_without_end)
{
    static const float unigrams[] = {1, 2, 3};
    struct world *w = begin();
    builder_add(
        &w->b, "FixedUnigramCandidateSampler", "y", INPUTS(ints(w, &SHAPE(1, 1), VALUES(0))),
        ATTRS(attr_int("num_true", 1), attr_int("num_sampled", 1), attr_bool("unique", true),
              attr_int("range_max", 3), attr_int("num_reserved_ids", LARGEST),
              attr_int("num_shards", LARGEST), attr_int("shard", LARGEST - 1),
              (struct attr){.name = "unigrams",
                            .kind = ATTR_FLOAT,
                            .is_list = true,
                            .count = 3,
                            .floats = unigrams}));
    CHECK_INT(end(w), EXHAUSTED);
}
