/* optimise_test.c - the passes: what they leave out, and what they must not touch. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "tests/unit/runtime/kernels.h"
#include "tests/unit/test.h"

static struct error err;
static struct graph *graph;
static struct builder b;

static void begin(void)
{
    static bool added;
    if (!added)
        kernel_add_table(kernels_for_tests);
    added = true;
    graph = graph_new();
    b = (struct builder){.graph = graph, .scope = "", .err = &err};
}

static struct edge add(const char *name, struct edge x, struct edge y)
{
    return builder_add(&b, "AddV2", name, INPUTS(x, y), NO_ATTRS);
}

/* Runs twice with x = 1 fed; returns how many kernels ran in the second run, *result the sum.
 */
static int count_runs(bool optimise, const char *const *fetches, int fetches_count,
                      float *result)
{
    const struct session_options options = {.threads = 1, .no_optimise = !optimise};
    struct session *session = session_new(&options, &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    struct tensor x, fetched[8];
    CHECK_OK(tensor_init_scalar(&x, F32, 1, &err), &err);
    const struct session_run run = {.feeds = (const char *const[]){"x"},
                                    .feed_values = &x,
                                    .feeds_count = 1,
                                    .fetches = fetches,
                                    .fetches_count = fetches_count};
    for (int i = 0; i < 2; i++) {
        kernels_runs = 0;
        *result = 0;
        CHECK_OK(session_run(session, &run, fetched, &err), &err);
        for (int k = 0; k < fetches_count; k++) {
            *result += tensor_f32(&fetched[k])[0] * (float)(k + 1);
            tensor_release(&fetched[k]);
        }
    }
    tensor_release(&x);
    session_free(session);
    return kernels_runs;
}

static void check(int plain, int optimised, const char *const *fetches, int fetches_count)
{
    float first, second;
    if (!builder_ok(&b))
        CHECK_STOP("%s", err.text);
    CHECK_INT(count_runs(false, fetches, fetches_count, &first), plain);
    CHECK_INT(count_runs(true, fetches, fetches_count, &second), optimised);
    CHECK(first == second);
    graph_free(graph);
}

#define FETCH(...)                                                                             \
    (const char *const[]){__VA_ARGS__},                                                        \
        (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static struct edge placeholder(void)
{
    return builder_add(&b, "Placeholder", "x", NO_INPUTS, ATTRS(attr_type("dtype", F32)));
}

TEST(what_depends_on_constants_alone_is_computed_once)
{
    begin();
    struct edge x = placeholder();
    struct edge c = builder_scalar(&b, "c", F32, 2);
    struct edge cc = add("cc", c, c);
    struct edge ccc = add("ccc", cc, c);
    add("y", x, ccc);
    add("z", cc, ccc);
    check(4, 1, FETCH("y", "z", "cc"));
}

TEST(a_fed_constant_is_no_constant)
{
    begin();
    struct edge x = builder_scalar(&b, "x", F32, 5);
    add("y", add("xx", x, x), x);
    check(2, 2, FETCH("y"));
}

TEST(equal_nodes_are_computed_once)
{
    begin();
    struct edge x = placeholder();
    struct edge p = add("p", x, x);
    struct edge q = add("q", x, x);
    struct edge pq = add("pq", p, q);
    struct edge qp = add("qp", q, p);
    add("y", pq, qp);
    check(5, 3, FETCH("y", "q"));
}

/* A control edge says when; such a node is not merged. */
TEST(nodes_with_controls_are_left_alone)
{
    begin();
    struct edge x = placeholder();
    struct edge p = add("p", x, x);
    struct edge q = add("q", x, x);
    struct edge r = add("r", x, p);
    graph_add_control(graph, q.from, r.from);
    add("y", p, q);
    check(4, 4, FETCH("y"));
}

TEST(nodes_that_only_pass_on_are_passed_by)
{
    begin();
    struct edge x = placeholder();
    struct edge at = x;
    for (int i = 0; i < 5; i++)
        at = builder_add(&b, "Identity", "i", INPUTS(at), NO_ATTRS);
    add("y", at, x);
    check(6, 1, FETCH("y", "i_4"));
}

/* Folding must not hide that a graph fails, nor fail what is not run. */
TEST(a_constant_part_that_fails_fails_when_it_runs)
{
    begin();
    struct tensor three;
    CHECK_OK(tensor_init(&three, F32, &SHAPE(3), &err), &err);
    memset(three.data, 0, 12);
    struct edge a = builder_scalar(&b, "a", F32, 1);
    struct edge bad = add("bad", a, builder_const(&b, "three", &three));
    tensor_release(&three);
    add("good", a, a);
    add("y", bad, a);
    CHECK(builder_ok(&b));
    struct session *session = session_new(&(struct session_options){.threads = 1}, &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    struct tensor got;
    struct session_run run = {.fetches = (const char *const[]){"y"}, .fetches_count = 1};
    CHECK_FAILS(session_run(session, &run, &got, &err), &err, INVALID);
    CHECK(strstr(err.text, "node 'bad'"));
    run.fetches = (const char *const[]){"good"};
    CHECK_OK(session_run(session, &run, &got, &err), &err);
    CHECK(tensor_f32(&got)[0] == 2);
    tensor_release(&got);
    session_free(session);
    graph_free(graph);
}

/* Two reads of a variable with an update between them are not one. */
TEST(reads_of_variables_are_not_merged)
{
    begin();
    struct edge x = placeholder();
    struct edge h =
        builder_add(&b, "VarHandleOp", "h", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR),
                          attr_string("shared_name", "h")));
    struct edge set = builder_add(&b, "AssignVariableOp", "set", INPUTS(h, x), NO_ATTRS);
    struct edge before =
        builder_add(&b, "ReadVariableOp", "before", INPUTS(h), ATTRS(attr_type("dtype", F32)));
    graph_add_control(graph, before.from, set.from);
    struct edge update =
        builder_add(&b, "AssignAddVariableOp", "update", INPUTS(h, x), NO_ATTRS);
    graph_add_control(graph, update.from, before.from);
    struct edge after =
        builder_add(&b, "ReadVariableOp", "after", INPUTS(h), ATTRS(attr_type("dtype", F32)));
    graph_add_control(graph, after.from, update.from);
    add("y", before, after);
    float first, second;
    CHECK_INT(count_runs(false, FETCH("before", "after", "y"), &first), 1);
    CHECK_INT(count_runs(true, FETCH("before", "after", "y"), &second), 1);
    CHECK(first == 1 + 2 * 2 + 3 * 3);
    CHECK(first == second);
    graph_free(graph);
}
