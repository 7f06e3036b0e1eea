/* gradient_test.c - which nodes a gradient adds, and where there is none. */

#include "runtime/gradient.h"
#include "runtime/op.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct edge placeholder(struct builder *b, const char *name)
{
    return builder_add(b, "Placeholder", name, NO_INPUTS, ATTRS(attr_type("dtype", F32)));
}

/* x*x uses x twice: one gradient, the sum of both. */
TEST(gradient_sums_all_uses_of_an_input)
{
    struct error err;
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .err = &err};
    struct edge x = placeholder(&b, "x");
    struct edge y = builder_add(&b, "Mul", "y", INPUTS(x, x), NO_ATTRS);
    CHECK(builder_ok(&b));
    struct edge grad;
    CHECK_OK(gradient_build(graph, &y, 1, NULL, &x, 1, &grad, &err), &err);
    CHECK_TEXT(grad.from->op->name, "AddN");
    CHECK_INT(grad.from->inputs_count, 2);
    graph_free(graph);
}

TEST(gradient_of_y_itself_is_what_was_given)
{
    struct error err;
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .err = &err};
    struct edge x = placeholder(&b, "x");
    struct edge given = placeholder(&b, "given");
    struct edge grad;
    CHECK_OK(gradient_build(graph, &x, 1, &given, &x, 1, &grad, &err), &err);
    CHECK(grad.from == given.from);
    graph_free(graph);
}

TEST(gradient_is_absent_where_x_does_not_reach_y)
{
    struct error err;
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .err = &err};
    struct edge x = placeholder(&b, "x");
    struct edge other = placeholder(&b, "other");
    struct edge stopped = builder_add(&b, "StopGradient", "stopped", INPUTS(other), NO_ATTRS);
    struct edge y = builder_add(&b, "Add", "y", INPUTS(x, stopped), NO_ATTRS);
    struct edge alone = placeholder(&b, "alone");
    CHECK(builder_ok(&b));
    struct edge xs[] = {x, other, alone}, grads[3];
    CHECK_OK(gradient_build(graph, &y, 1, NULL, xs, 3, grads, &err), &err);
    CHECK(grads[0].from);
    CHECK(!grads[1].from);
    CHECK(!grads[2].from);
    graph_free(graph);
}

/* A long chain and a wide fan: neither recursion nor quadratic time. */
TEST(gradient_walks_deep_and_wide_graphs)
{
    struct error err;
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .err = &err};
    struct edge x = placeholder(&b, "x");
    struct edge at = x;
    for (int i = 0; i < 20000; i++)
        at = builder_add(&b, i % 2 ? "Neg" : "Identity", "step", INPUTS(at), NO_ATTRS);
    CHECK(builder_ok(&b));
    struct edge grad;
    CHECK_OK(gradient_build(graph, &at, 1, NULL, &x, 1, &grad, &err), &err);
    CHECK(grad.from);
    graph_free(graph);
}

/* Variables are reached through their reads, by handle and by reference. */
TEST(gradient_reaches_variables_through_reads)
{
    struct error err;
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .err = &err};
    struct edge handle =
        builder_add(&b, "VarHandleOp", "v", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(2))));
    struct edge read = builder_add(&b, "ReadVariableOp", "v/read", INPUTS(handle),
                                   ATTRS(attr_type("dtype", F32)));
    struct edge ref =
        builder_add(&b, "VariableV2", "w", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(2))));
    struct edge w = builder_add(&b, "Identity", "w/read", INPUTS(ref), NO_ATTRS);
    struct edge y = builder_add(&b, "Mul", "y", INPUTS(read, w), NO_ATTRS);
    CHECK(builder_ok(&b));
    struct edge xs[] = {handle, ref}, grads[2];
    CHECK_OK(gradient_build(graph, &y, 1, NULL, xs, 2, grads, &err), &err);
    CHECK(grads[0].from);
    CHECK(grads[1].from);
    CHECK_INT(dtype_base(grads[0].from->output_types[grads[0].output]), F32);
    graph_free(graph);
}
