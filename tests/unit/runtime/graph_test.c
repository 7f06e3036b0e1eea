/* graph_test.c - signatures, nodes, their checks, names and order. */

#include "base/arena.h"
#include "runtime/builder.h"
#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct error err;

static struct node *add(struct graph *graph, const char *op, const char *name,
                        const struct edge *inputs, int inputs_count, const struct attr *attrs,
                        int attrs_count)
{
    const struct node_def def = {.name = name,
                                 .op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = attrs_count};
    return graph_add(graph, &def, &err);
}

static struct node *add_placeholder(struct graph *graph, const char *name)
{
    struct node *node =
        add(graph, "Placeholder", name, NO_INPUTS, ATTRS(attr_type("dtype", F32)));
    CHECK(node);
    return node;
}

TEST(every_signature_in_the_table_is_well_formed)
{
    CHECK(op_count() > 0);
    for (int i = 0; i < op_count(); i++) {
        CHECK(op_signature(op_at(i)));
        CHECK(op_find(op_at(i)->name) == op_at(i));
    }
    CHECK(!op_find("NoSuchOp"));
}

TEST(types_follow_from_inputs_and_defaults_are_filled)
{
    struct graph *graph = graph_new();
    struct node *x = add_placeholder(graph, "x");
    CHECK(node_attr_shape(x, "shape"));
    CHECK_INT(node_attr_shape(x, "shape")->rank, -1);
    struct node *y = add(graph, "Identity", "y", INPUTS({x, 0}), NO_ATTRS);
    CHECK(y);
    CHECK_INT(node_attr_type(y, "T"), F32);
    CHECK_INT(y->outputs_count, 1);
    CHECK_INT(y->output_types[0], F32);
    graph_free(graph);
}

TEST(bad_nodes_are_refused_with_a_text_that_names_them)
{
    struct graph *graph = graph_new();
    struct node *x = add_placeholder(graph, "x");
    CHECK_FAILS(add(graph, "Placeholder", "x", NO_INPUTS, ATTRS(attr_type("dtype", F32))), &err,
                EXISTS);
    CHECK_FAILS(add(graph, "Placeholder", "p", NO_INPUTS, NO_ATTRS), &err, NOT_FOUND);
    CHECK(strstr(err.text, "'p'"));
    CHECK(strstr(err.text, "'dtype'"));
    CHECK_FAILS(add(graph, "Identity", "i", NO_INPUTS, ATTRS(attr_type("T", F32))), &err,
                INVALID);
    CHECK_FAILS(add(graph, "Identity", "i", INPUTS({x, 0}, {x, 0}), NO_ATTRS), &err, INVALID);
    CHECK_FAILS(add(graph, "Identity", "i", INPUTS({x, 1}), ATTRS(attr_type("T", F32))), &err,
                INVALID);
    CHECK_FAILS(add(graph, "Identity", "i", INPUTS({x, 0}), ATTRS(attr_type("T", I32))), &err,
                INVALID);
    CHECK(strstr(err.text, "float"));
    CHECK(strstr(err.text, "int32"));
    CHECK_FAILS(add(graph, "Identity", "a b", INPUTS({x, 0}), NO_ATTRS), &err, INVALID);
    CHECK_FAILS(add(graph, "Identity", "", INPUTS({x, 0}), NO_ATTRS), &err, INVALID);
    CHECK_FAILS(add(graph, "Identity", "i", INPUTS({x, 0}), ATTRS(attr_int("T", 1))), &err,
                INVALID);
    CHECK_INT(graph_count(graph), 1);
    graph_free(graph);
}

TEST(names_of_tensors_are_parsed_as_tensorflow_does)
{
    struct graph *graph = graph_new();
    struct node *x = add_placeholder(graph, "x");
    struct edge edge;
    CHECK_OK(graph_edge(graph, "x", &edge, &err), &err);
    CHECK(edge.from == x);
    CHECK_INT(edge.output, 0);
    CHECK_OK(graph_edge(graph, "x:0", &edge, &err), &err);
    CHECK_FAILS(graph_edge(graph, "x:1", &edge, &err), &err, INVALID);
    CHECK_FAILS(graph_edge(graph, "x:99999999999999999999", &edge, &err), &err, INVALID);
    CHECK_FAILS(graph_edge(graph, "y:0", &edge, &err), &err, NOT_FOUND);
    CHECK_FAILS(graph_edge(graph, "x:a", &edge, &err), &err, NOT_FOUND);
    CHECK_FAILS(graph_edge(graph, "^x", &edge, &err), &err, INVALID);
    CHECK_FAILS(graph_edge(graph, "", &edge, &err), &err, INVALID);
    graph_free(graph);
}

TEST(unique_names_count_up)
{
    struct graph *graph = graph_new();
    add_placeholder(graph, "x");
    CHECK_TEXT(graph_unique_name(graph, "y"), "y");
    CHECK_TEXT(graph_unique_name(graph, "x"), "x_1");
    add_placeholder(graph, "x_1");
    add_placeholder(graph, "x_2");
    CHECK_TEXT(graph_unique_name(graph, "x"), "x_3");
    graph_free(graph);
}

TEST(order_puts_inputs_and_controls_first)
{
    struct graph *graph = graph_new();
    struct node *a = add_placeholder(graph, "a");
    struct node *b = add_placeholder(graph, "b");
    struct node *c = add_placeholder(graph, "c");
    graph_add_control(graph, a, c);
    graph_add_control(graph, c, b);
    CHECK_OK(graph_seal(graph, &err), &err);
    const int *order = graph_order(graph);
    CHECK_INT(order[0], b->id);
    CHECK_INT(order[1], c->id);
    CHECK_INT(order[2], a->id);
    graph_free(graph);
}

TEST(a_cycle_is_refused_and_named)
{
    struct graph *graph = graph_new();
    add_placeholder(graph, "outside");
    struct node *a = add_placeholder(graph, "first");
    struct node *b = add(graph, "Identity", "second", INPUTS({a, 0}), NO_ATTRS);
    struct node *after = add(graph, "Identity", "after", INPUTS({b, 0}), NO_ATTRS);
    CHECK(after);
    graph_add_control(graph, a, b);
    CHECK_FAILS(graph_check_order(graph, &err), &err, INVALID);
    CHECK(strstr(err.text, "'first'"));
    CHECK(strstr(err.text, "'second'"));
    CHECK(!strstr(err.text, "outside"));
    CHECK_FAILS(graph_seal(graph, &err), &err, INVALID);
    graph_free(graph);
}

/* A long chain, its nodes against the order: no recursion, no quadratic time. */
TEST(a_long_chain_is_ordered)
{
    enum { COUNT = 100000 };
    struct graph *graph = graph_new();
    struct node **nodes = calloc(COUNT, sizeof(struct node *));
    char name[32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        nodes[i] = add(graph, "NoOp", name, NO_INPUTS, NO_ATTRS);
        CHECK(nodes[i]);
    }
    for (int i = 0; i + 1 < COUNT; i++)
        graph_add_control(graph, nodes[i], nodes[i + 1]);
    CHECK_OK(graph_seal(graph, &err), &err);
    for (int i = 0; i < COUNT; i++)
        CHECK_INT(graph_order(graph)[i], COUNT - 1 - i);
    free(nodes);
    graph_free(graph);
}

TEST(a_cut_graph_forgets_names)
{
    struct graph *graph = graph_new();
    add_placeholder(graph, "x");
    add_placeholder(graph, "y");
    graph_truncate(graph, 1);
    CHECK(!graph_find(graph, "y"));
    CHECK(graph_find(graph, "x"));
    add_placeholder(graph, "y");
    CHECK_INT(graph_count(graph), 2);
    graph_free(graph);
}

TEST(the_builder_keeps_its_first_failure)
{
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .scope = "layer/", .err = &err};
    struct edge x = builder_scalar(&b, "x", F32, 3);
    CHECK(builder_ok(&b));
    CHECK_TEXT(x.from->name, "layer/x");
    const int64_t values[] = {1, INT64_C(1) << 60};
    struct edge ints = builder_ints(&b, "ints", I64, values, 2);
    CHECK(tensor_i64(node_attr_tensor(ints.from, "value"))[1] == INT64_C(1) << 60);
    struct node *group = builder_group(&b, "all", (struct node *[]){x.from, ints.from}, 2);
    CHECK_INT(group->controls_count, 2);
    CHECK(!builder_add(&b, "NoSuchOp", "bad", NO_INPUTS, NO_ATTRS).from);
    CHECK(!builder_ok(&b));
    CHECK(!builder_text(&b, "text", "abc").from);
    CHECK_INT(err.code, NOT_FOUND);
    CHECK(strstr(err.text, "NoSuchOp"));
    graph_free(graph);
}

/* Two arguments of the same length: both follow from the number of inputs, or from N. */
TEST(graph_deduces_attributes_of_two_lists)
{
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .err = &err};
    struct edge i = builder_scalar(&b, "i", I32, 0);
    struct edge x = builder_scalar(&b, "x", F64, 1);
    struct edge y = builder_add(&b, "DynamicStitch", "y", INPUTS(i, i, x, x), NO_ATTRS);
    struct edge z =
        builder_add(&b, "DynamicStitch", "z", INPUTS(i, x), ATTRS(attr_int("N", 1)));
    CHECK_OK(builder_ok(&b), &err);
    CHECK_INT(node_attr_int(y.from, "N", 0), 2);
    CHECK_INT(node_attr_type(y.from, "T"), F64);
    CHECK_INT(node_attr_type(z.from, "T"), F64);
    graph_free(graph);
}
