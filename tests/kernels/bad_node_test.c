/*
 * bad_node_test.c - nodes that a graph may hold though they cannot run: whatever the passes
 * make of the nodes around them, a run that needs them fails with what is wrong with them.
 */

#include "base/str.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct error err;
static struct graph *graph;
static struct builder b;

static void begin(void)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    graph = graph_new();
    b = (struct builder){.graph = graph, .scope = "", .err = &err};
}

static struct edge zeros(const char *name, int64_t rows, int64_t columns)
{
    struct shape shape = rows ? SHAPE(rows, columns) : SHAPE(columns);
    struct edge sizes = builder_ints(&b, "sizes", I32, shape.dims, shape.rank);
    return builder_add(&b, "Fill", name, INPUTS(sizes, builder_scalar(&b, "zero", F32, 0)),
                       NO_ATTRS);
}

/* Serializes the graph, with the type T of the node `name` made none that there is. */
static void export_with_bad_type(const char *name, struct str *out)
{
    static const char type[] = "\n\1T\022\2\060";
    CHECK_OK(builder_ok(&b), &err);
    graph_export(graph, false, 0, out);
    char *node = memmem(out->data, out->size, name, strlen(name));
    CHECK(node);
    char *attr = memmem(node, (size_t)(out->data + out->size - node), type, strlen(type));
    CHECK(attr);
    attr[strlen(type)] = 0;
}

/* A run of the node `name`, which is bad, and one of the node `good`, which is not. */
static void check_bad(const char *name, const char *good)
{
    struct str text = {0};
    export_with_bad_type(name, &text);
    struct session *session = session_new(NULL, &err);
    CHECK_OK(session_extend(session, text.data, text.size, &err), &err);
    struct tensor out;
    const struct session_run bad = {.fetches = &name, .fetches_count = 1};
    CHECK_FAILS(session_run(session, &bad, &out, &err), &err, INVALID);
    const struct session_run fine = {.fetches = &good, .fetches_count = 1};
    CHECK_OK(session_run(session, &fine, &out, &err), &err);
    tensor_release(&out);
    session_free(session);
    graph_free(graph);
    str_release(&text);
}

TEST(a_bad_node_may_read_what_is_fused)
{
    begin();
    struct edge product = builder_add(&b, "MatMul", "product",
                                      INPUTS(zeros("x", 2, 3), zeros("w", 3, 4)), NO_ATTRS);
    struct edge sum =
        builder_add(&b, "BiasAdd", "sum", INPUTS(product, zeros("bias", 0, 4)), NO_ATTRS);
    builder_add(&b, "Tanh", "reads_sum", INPUTS(sum), NO_ATTRS);
    check_bad("reads_sum", "sum");
}

TEST(a_bad_node_is_not_fused)
{
    begin();
    struct edge product = builder_add(&b, "MatMul", "product",
                                      INPUTS(zeros("x", 2, 3), zeros("w", 3, 4)), NO_ATTRS);
    builder_add(&b, "BiasAdd", "bad_sum", INPUTS(product, zeros("bias", 0, 4)), NO_ATTRS);
    check_bad("bad_sum", "product");
}

static struct edge integers(const char *name, int64_t value, int count)
{
    int64_t values[40];
    for (int i = 0; i < count; i++)
        values[i] = value;
    return builder_ints(&b, name, I64, values, count);
}

/* Each of these fails when it runs, and its shape is not known before. */
static void check_fails(struct edge edge)
{
    CHECK_OK(builder_ok(&b), &err);
    const char *name = edge.from->name;
    struct session *session = session_new(NULL, &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    struct tensor out;
    const struct session_run run = {.fetches = &name, .fetches_count = 1};
    if (session_run(session, &run, &out, &err))
        CHECK_STOP("%s has an answer", name);
    CHECK(err.code == INVALID || err.code == EXHAUSTED);
    session_free(session);
    graph_free(graph);
}

TEST(many_numbers_where_one_is_wanted)
{
    for (int count = 2; count <= 40; count += 19) {
        begin();
        struct edge x = zeros("x", 2, 3), zero = builder_scalar(&b, "zero", I32, 0);
        check_fails(builder_add(&b, "GatherV2", "gather",
                                INPUTS(x, zero, integers("axis", 0, count)), NO_ATTRS));
        begin();
        x = zeros("x", 2, 3);
        check_fails(builder_add(&b, "ExpandDims", "expand",
                                INPUTS(x, integers("axis", 0, count)), NO_ATTRS));
        begin();
        x = zeros("x", 2, 3);
        check_fails(builder_add(&b, "ConcatV2", "concat",
                                INPUTS(x, x, integers("axis", 0, count)),
                                ATTRS(attr_int("N", 2))));
        begin();
        x = zeros("x", 2, 3);
        check_fails(
            builder_add(&b, "ArgMax", "arg", INPUTS(x, integers("axis", 0, count)), NO_ATTRS));
    }
}

TEST(sizes_beyond_all_numbers)
{
    begin();
    check_fails(builder_add(&b, "Tile", "tile",
                            INPUTS(zeros("x", 2, 3), integers("n", INT64_MAX / 2, 2)),
                            NO_ATTRS));
    begin();
    const int64_t paddings[] = {INT64_MAX, INT64_MAX};
    struct edge pairs = builder_ints(&b, "flat", I64, paddings, 2);
    pairs = builder_add(&b, "Reshape", "pairs",
                        INPUTS(pairs, builder_ints(&b, "two", I64, (const int64_t[]){1, 2}, 2)),
                        NO_ATTRS);
    check_fails(builder_add(&b, "Pad", "pad", INPUTS(zeros("x", 0, 3), pairs), NO_ATTRS));
    begin();
    struct edge x = zeros("x", 0, 3);
    check_fails(builder_add(&b, "Slice", "slice",
                            INPUTS(x, integers("begin", INT64_MIN, 1), integers("size", -1, 1)),
                            NO_ATTRS));
}

TEST(blocks_larger_than_any_image)
{
    static const char *const ops[] = {"DepthToSpace", "SpaceToDepth"};
    for (int i = 0; i < 2; i++) {
        begin();
        const int64_t sizes[] = {1, 2, 2, 4};
        struct edge shape = builder_ints(&b, "sizes", I32, sizes, 4);
        struct edge image = builder_add(
            &b, "Fill", "image", INPUTS(shape, builder_scalar(&b, "zero", F32, 0)), NO_ATTRS);
        check_fails(builder_add(&b, ops[i], "blocks", INPUTS(image),
                                ATTRS(attr_int("block_size", 1ll << 32))));
    }
}

TEST(dimensions_more_than_a_tensor_can_have)
{
    int64_t ones[LIMIT_TENSOR_RANK];
    for (int d = 0; d < LIMIT_TENSOR_RANK; d++)
        ones[d] = 1;
    for (int op = 0; op < 5; op++) {
        begin();
        struct edge sizes = builder_ints(&b, "sizes", I32, ones, LIMIT_TENSOR_RANK);
        struct edge zero = builder_scalar(&b, "zero", I32, 0);
        struct edge one = builder_scalar(&b, "one", I32, 1);
        struct edge all = builder_add(&b, "Fill", "all",
                                      INPUTS(sizes, builder_scalar(&b, "x", F32, 0)), NO_ATTRS);
        struct edge none = builder_add(&b, "Fill", "none", INPUTS(sizes, zero), NO_ATTRS);
        struct edge made[] = {
            builder_add(&b, "UnsortedSegmentSum", "sum", INPUTS(all, zero, one), NO_ATTRS),
            builder_add(&b, "DynamicPartition", "partition", INPUTS(all, zero),
                        ATTRS(attr_int("num_partitions", 1))),
            builder_add(&b, "DynamicStitch", "stitch", INPUTS(zero, all),
                        ATTRS(attr_int("N", 1))),
            builder_add(&b, "Bitcast", "bits", INPUTS(all), ATTRS(attr_type("type", I16))),
            builder_add(&b, "GatherNd", "gather", INPUTS(all, none), NO_ATTRS)};
        check_fails(made[op]);
    }
}

TEST(a_number_with_none_above_it_is_not_counted)
{
    begin();
    struct edge values = integers("values", INT64_MAX, 2);
    struct edge sizes = builder_ints(&b, "sizes", I32, (const int64_t[]){2}, 1);
    struct edge ones = builder_add(&b, "Fill", "ones",
                                   INPUTS(sizes, builder_scalar(&b, "one", F32, 1)), NO_ATTRS);
    check_fails(builder_add(&b, "DenseCountSparseOutput", "counts", INPUTS(values, ones),
                            ATTRS(attr_bool("binary_output", false))));
}

TEST(what_asks_for_a_bad_node_s_shape_is_left_alone)
{
    begin();
    struct edge neg = builder_add(&b, "Neg", "bad_neg", INPUTS(zeros("x", 2, 3)), NO_ATTRS);
    builder_add(&b, "Shape", "shape", INPUTS(neg), NO_ATTRS);
    struct str text = {0};
    export_with_bad_type("bad_neg", &text);
    struct session *session = session_new(NULL, &err);
    CHECK_OK(session_extend(session, text.data, text.size, &err), &err);
    struct tensor out;
    const char *name = "shape";
    const struct session_run run = {.fetches = &name, .fetches_count = 1};
    CHECK_FAILS(session_run(session, &run, &out, &err), &err, INVALID);
    session_free(session);
    graph_free(graph);
    str_release(&text);
}

/* ImageSummary has one. */
TEST(a_default_that_is_a_tensor_outlives_its_nodes)
{
    for (int i = 0; i < 3; i++) {
        begin();
        const int64_t sizes[] = {1, 2, 2, 1};
        struct edge shape = builder_ints(&b, "sizes", I32, sizes, 4);
        struct edge image = builder_add(
            &b, "Fill", "image", INPUTS(shape, builder_scalar(&b, "zero", F32, 0)), NO_ATTRS);
        struct edge summary =
            builder_add(&b, "ImageSummary", "summary",
                        INPUTS(builder_text(&b, "tag", "image"), image), NO_ATTRS);
        CHECK_OK(builder_ok(&b), &err);
        const struct tensor *color = node_attr_tensor(summary.from, "bad_color");
        CHECK_INT(color->count, 4);
        CHECK_INT(((const uint8_t *)color->data)[0], 255);
        CHECK_INT(tensor_is_exclusive(color), false);
        graph_free(graph);
    }
}

/* What a graph asks for may be many times the machine: it is refused, not tried. */
TEST(a_result_over_the_memory_limit_is_refused_before_it_is_made)
{
    begin();
    zeros("large", 50000, 50000);
    struct session *session =
        session_new(&(struct session_options){.memory_bytes_max = 1 << 20}, &err);
    CHECK_OK(builder_ok(&b) && session_extend_graph(session, graph, &err), &err);
    const char *name = "large";
    const struct session_run run = {.fetches = &name, .fetches_count = 1};
    struct tensor out;
    CHECK_FAILS(session_run(session, &run, &out, &err), &err, EXHAUSTED);
    CHECK(strstr(err.text, "limit of 1048576 bytes"));
    session_free(session);
    graph_free(graph);
}

/* What a shape's numbers come to is over any number: nothing is worked out of them. */
TEST(a_reshape_to_huge_dimensions_is_refused)
{
    static const int64_t dims[] = {INT64_C(1) << 62, INT64_C(1) << 62, -1};
    begin();
    struct edge shape = builder_ints(&b, "dims", I64, dims, 3);
    builder_add(&b, "Reshape", "huge", INPUTS(zeros("few", 2, 3), shape), NO_ATTRS);
    struct session *session = session_new(NULL, &err);
    CHECK_OK(builder_ok(&b) && session_extend_graph(session, graph, &err), &err);
    const char *name = "huge";
    const struct session_run run = {.fetches = &name, .fetches_count = 1};
    struct tensor out;
    CHECK_FAILS(session_run(session, &run, &out, &err), &err, INVALID);
    session_free(session);
    graph_free(graph);
}
