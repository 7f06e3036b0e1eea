/*
 * cluster_passes_test.c - what the optimiser may not make one of in a part of a graph, because
 * the parts of two tasks would wait for each other.
 */

#include <math.h>

#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/cluster/cluster.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "runtime/worker/worker.h"
#include "tests/unit/test.h"

enum { TASKS = 2 };

static const char *const devices[TASKS] = {"/job:worker/task:0", "/job:worker/task:1"};
static struct error err;
static struct worker *workers[TASKS];
static struct worker_link *links[TASKS];
static struct cluster_session *session;
static struct builder b;

static void start(void)
{
    kernels_add(false);
    for (int i = 0; i < TASKS; i++) {
        workers[i] = worker_new(
            &(struct worker_options){.job = "worker", .task = i, .threads = 1}, &err);
        CHECK(workers[i]);
        links[i] = link_local_new(workers[i]);
    }
    for (int i = 0; i < TASKS; i++)
        worker_set_peers(workers[i], links, TASKS);
    const struct cluster_options options = {.links = links, .links_count = TASKS};
    session = cluster_session_new(&options, "s", &err);
    CHECK(session);
    b = (struct builder){.graph = graph_new(), .scope = "", .err = &err};
}

static void stop(void)
{
    cluster_session_free(session);
    graph_free(b.graph);
    for (int i = 0; i < TASKS; i++) {
        worker_free(workers[i]);
        link_free(links[i]);
    }
}

static struct edge placeholder(void)
{
    return builder_add(&b, "Placeholder", "zero", NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR)));
}

/* What a node gives when "zero" is, within a time in which nothing can still be on its way. */
static double fetch_soon(const char *fetch)
{
    const float nothing = 0;
    struct tensor zero, out;
    const char *feed = "zero";
    CHECK_OK(tensor_init_copy(&zero, F32, &SHAPE_SCALAR, &nothing, &err), &err);
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &zero,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
    double value = tensor_number(&out, 0);
    tensor_release(&out);
    tensor_release(&zero);
    return value;
}

/* b is updated by what comes when another task has heard that a was. */
TEST(updates_that_wait_for_each_other)
{
    static const char *const names[] = {"a", "b"}, *const inits[] = {"set_a", "set_b"};
    struct edge v[2];
    start();
    b.device = devices[0];
    struct edge zero = placeholder(), lr = builder_scalar(&b, "lr", F32, 1);
    for (int i = 0; i < 2; i++) {
        v[i] = builder_add(&b, "VariableV2", names[i], NO_INPUTS,
                           ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR)));
        builder_add(&b, "Assign", inits[i], INPUTS(v[i], builder_scalar(&b, "ten", F32, 10)),
                    NO_ATTRS);
    }
    struct edge first =
        builder_add(&b, "ApplyGradientDescent", "first",
                    INPUTS(v[0], lr, builder_scalar(&b, "three", F32, 3)), NO_ATTRS);
    b.device = devices[1];
    struct edge there = builder_add(&b, "Exp", "there", INPUTS(zero), NO_ATTRS);
    graph_add_control(b.graph, there.from, first.from);
    b.device = devices[0];
    struct edge second =
        builder_add(&b, "ApplyGradientDescent", "second", INPUTS(v[1], lr, there), NO_ATTRS);
    struct edge both = builder_add(&b, "Neg", "both", INPUTS(zero), NO_ATTRS);
    graph_add_control(b.graph, both.from, second.from);
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(cluster_session_extend_graph(session, b.graph, &err), &err);
    CHECK(fetch_soon("set_a") == 10);
    CHECK(fetch_soon("set_b") == 10);
    CHECK(fetch_soon("both") == 0);
    CHECK(fetch_soon("a") == 7);
    CHECK(fetch_soon("b") == 9);
    stop();
}

/* The gradient of losses is scaled by what another task makes of them. */
TEST(losses_that_are_waited_for)
{
    const float values[] = {1, 2, 3, 1, 1, 1};
    const int64_t classes[] = {2, 0}, first[] = {0};
    struct tensor logits;
    start();
    CHECK_OK(tensor_init_copy(&logits, F32, &SHAPE(2, 3), values, &err), &err);
    b.device = devices[0];
    struct edge x =
        builder_add(&b, "AddV2", "x",
                    INPUTS(builder_const(&b, "logits", &logits), placeholder()), NO_ATTRS);
    struct edge labels = builder_ints(&b, "labels", I32, classes, 2);
    struct edge losses = builder_add(&b, "SparseSoftmaxCrossEntropyWithLogits", "losses",
                                     INPUTS(x, labels), NO_ATTRS);
    b.device = devices[1];
    struct edge sum = builder_add(
        &b, "Sum", "sum", INPUTS(losses, builder_ints(&b, "axis", I32, first, 1)), NO_ATTRS);
    b.device = devices[0];
    builder_add(&b, "Mul", "scaled", INPUTS(builder_output(losses, 1), sum), NO_ATTRS);
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(cluster_session_extend_graph(session, b.graph, &err), &err);
    double loss = log(exp(-2) + exp(-1) + 1) + log(3);
    CHECK(fabs(fetch_soon("scaled") - loss / (1 + exp(1) + exp(2))) < 1e-6);
    tensor_release(&logits);
    stop();
}
