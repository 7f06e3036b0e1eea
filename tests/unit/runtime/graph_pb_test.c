/* graph_pb_test.c - GraphDef and TensorProto, there and back, and what is refused. */

#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/op.h"
#include "runtime/tensor_pb.h"
#include "tests/unit/test.h"

static struct error err;

static struct graph *make_graph(void)
{
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .scope = "", .device = "/cpu:0", .err = &err};
    const int64_t values[] = {1, 2, 3};
    struct edge c = builder_ints(&b, "c", I32, values, 3);
    struct edge i = builder_add(&b, "Identity", "i", INPUTS(c), ATTRS(attr_int("_mark", 7)));
    builder_add(&b, "Placeholder", "p", NO_INPUTS,
                ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(-1, 3))));
    struct node *done = builder_group(&b, "done", (struct node *[]){i.from, c.from}, 2);
    CHECK(builder_ok(&b));
    CHECK(done);
    return graph;
}

TEST(a_graph_comes_back_as_it_went)
{
    struct graph *graph = make_graph();
    struct str first = {0}, second = {0};
    graph_export(graph, false, 0, &first);
    struct graph *copy = graph_new();
    CHECK_OK(graph_import(copy, first.data, first.size, &err), &err);
    CHECK_INT(graph_count(copy), graph_count(graph));
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *a = graph_node(graph, i);
        const struct node *b = graph_node(copy, i);
        CHECK_TEXT(a->name, b->name);
        CHECK(a->op == b->op);
        CHECK_TEXT(a->requested_device, b->requested_device);
        CHECK_INT(a->inputs_count, b->inputs_count);
        CHECK_INT(a->controls_count, b->controls_count);
        CHECK_INT(a->attrs_count, b->attrs_count);
        for (int k = 0; k < a->attrs_count; k++)
            CHECK(attr_equal(&a->attrs[k], &b->attrs[k]));
    }
    graph_export(copy, false, 0, &second);
    CHECK_INT(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);

    /* Once more into the same graph: refused whole. */
    CHECK_FAILS(graph_import(copy, first.data, first.size, &err), &err, INVALID);
    CHECK_INT(graph_count(copy), graph_count(graph));
    str_release(&first);
    str_release(&second);
    graph_free(copy);
    graph_free(graph);
}

/* A part of a graph goes to its task, whose errors name a node as its function does. */
TEST(the_name_that_errors_have_comes_along)
{
    struct graph *graph = make_graph();
    graph_node(graph, 1)->shown_name = "inner";
    struct str text = {0};
    graph_export(graph, false, 0, &text);
    struct graph *copy = graph_new();
    CHECK_OK(graph_import(copy, text.data, text.size, &err), &err);
    CHECK_TEXT(graph_node(copy, 1)->name, graph_node(graph, 1)->name);
    CHECK_TEXT(node_shown_name(graph_node(copy, 1)), "inner");
    CHECK(!graph_node(copy, 0)->shown_name);
    str_release(&text);
    graph_free(copy);
    graph_free(graph);
}

TEST(large_constants_may_be_left_out)
{
    struct graph *graph = make_graph();
    struct str text = {0};
    graph_export(graph, false, 4, &text);
    struct graph *copy = graph_new();
    CHECK_OK(graph_import(copy, text.data, text.size, &err), &err);
    const struct tensor *value = node_attr_tensor(graph_find(copy, "c"), "value");
    CHECK(shape_equal(&value->shape, &SHAPE(3)));
    CHECK_INT(tensor_i32(value)[2], 0);
    str_release(&text);
    graph_free(copy);
    graph_free(graph);
}

/* Any cut of a good message is refused or is a smaller graph, and leaves nothing behind. */
TEST(a_cut_message_is_refused_whole)
{
    struct graph *graph = make_graph();
    struct str text = {0};
    graph_export(graph, false, 0, &text);
    for (size_t size = 0; size < text.size; size++) {
        struct graph *copy = graph_new();
        if (!graph_import(copy, text.data, size, &err))
            CHECK_INT(graph_count(copy), 0);
        graph_free(copy);
    }
    str_release(&text);
    graph_free(graph);
}

static void check_tensor(struct tensor *tensor)
{
    struct str text = {0};
    struct tensor back;
    tensor_serialize(tensor, &text);
    CHECK_OK(tensor_parse(&back, text.data, text.size, &err), &err);
    CHECK(tensor_equal(tensor, &back));
    tensor_release(tensor);
    tensor_release(&back);
    str_release(&text);
}

TEST(tensors_of_every_type_come_back)
{
    for (int i = 1; i < DTYPE_COUNT; i++) {
        if (!dtype_known(i) || !(BIT(i) & (DTYPES_PLAIN | BIT(STRING))))
            continue;
        struct tensor t;
        CHECK_OK(tensor_init(&t, (enum dtype)i, &SHAPE(2, 3), &err), &err);
        for (int64_t k = 0; k < t.count; k++) {
            if (i == STRING)
                tensor_set_string(&t, k, "abcdef", (size_t)k);
            else
                memset((char *)t.data + (size_t)k * dtype_size(i),
                       i == BOOL ? (int)k % 2 : (int)k + 1, dtype_size(i));
        }
        check_tensor(&t);
    }
    struct tensor empty;
    CHECK_OK(tensor_init(&empty, F32, &SHAPE(0, 3), &err), &err);
    check_tensor(&empty);
}

/* dtype float, shape [3], float_val 1.5 once: the last value fills the rest. */
TEST(the_last_value_fills_the_rest)
{
    const uint8_t bytes[] = {0x08, 1, 0x12, 4, 0x12, 2, 0x08, 3, 0x2a, 4, 0, 0, 0xc0, 0x3f};
    struct tensor t;
    CHECK_OK(tensor_parse(&t, bytes, sizeof(bytes), &err), &err);
    CHECK_INT(t.count, 3);
    CHECK(tensor_f32(&t)[2] == 1.5f);
    tensor_release(&t);
}

/* Strings as stock clients send them: lengths 1 and 2, then the bytes. */
TEST(strings_in_tensor_content_are_read)
{
    uint8_t bytes[] = {0x08, 7, 0x12, 4, 0x12, 2, 0x08, 2, 0x22, 5, 1, 2, 'a', 'b', 'c'};
    struct tensor t;
    CHECK_OK(tensor_parse(&t, bytes, sizeof(bytes), &err), &err);
    CHECK_INT(tensor_strings(&t)[1].size, 2);
    assert_memory_equal(tensor_strings(&t)[1].data, "bc", 2);
    tensor_release(&t);
    bytes[11] = 3; /* one byte more than there is */
    CHECK_FAILS(tensor_parse(&t, bytes, sizeof(bytes), &err), &err, INVALID);
}

TEST(bad_tensors_are_refused)
{
    struct tensor t;
    const uint8_t no_type[] = {0x12, 0};
    CHECK_FAILS(tensor_parse(&t, no_type, sizeof(no_type), &err), &err, INVALID);
    const uint8_t reference[] = {0x08, 101};
    CHECK_FAILS(tensor_parse(&t, reference, sizeof(reference), &err), &err, INVALID);
    const uint8_t unknown_rank[] = {0x08, 1, 0x12, 2, 0x18, 1};
    CHECK_FAILS(tensor_parse(&t, unknown_rank, sizeof(unknown_rank), &err), &err, INVALID);
    const uint8_t short_content[] = {0x08, 1, 0x12, 4, 0x12, 2, 0x08, 2, 0x22, 1, 0};
    CHECK_FAILS(tensor_parse(&t, short_content, sizeof(short_content), &err), &err, INVALID);
    /* 2^40 elements in 16 bytes */
    const uint8_t huge[] = {0x08, 1,    0x12, 9,    0x12, 7,   0x08,
                            0x80, 0x80, 0x80, 0x80, 0x80, 0x20};
    CHECK_FAILS(tensor_parse(&t, huge, sizeof(huge), &err), &err, EXHAUSTED);
}
