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
