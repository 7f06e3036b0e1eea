/*
 * same_bits_test.c - a training step gives the same bits each time: a hundred runs with two
 * threads, and with each pass of the optimiser off; a perceptron and a convolutional network.
 */

#include "runtime/gradient.h"
#include "tests/kernels/passes.h"

enum { RUNS = 100, VARIABLES = 4, BATCH = 64 };

struct network {
    struct edge handles[VARIABLES], slots[VARIABLES];
    struct node *inits[2 * VARIABLES];
    const char *fetches[VARIABLES + 1]; /* the loss, then variables */
    int count;
};

static struct edge make_variable(struct network *n, const char *name, const struct shape *shape,
                                 struct edge start, int init)
{
    struct edge handle = builder_add(&b, "VarHandleOp", name, NO_INPUTS,
                                     ATTRS(attr_type("dtype", F32), attr_shape("shape", shape),
                                           attr_string("shared_name", name)));
    n->inits[init] = builder_add(&b, "AssignVariableOp", "init", INPUTS(handle, start),
                                 ATTRS(attr_type("dtype", F32)))
                         .from;
    return handle;
}

static struct edge read_of(struct edge handle)
{
    return builder_add(&b, "ReadVariableOp", "read", INPUTS(handle),
                       ATTRS(attr_type("dtype", F32)));
}

/* A variable with its momentum; what it is now. */
static struct edge weight(struct network *n, const struct shape *shape)
{
    char name[16], slot[16];
    int i = n->count++;
    snprintf(name, sizeof(name), "w%d", i);
    snprintf(slot, sizeof(slot), "m%d", i);
    struct edge start = constant("start", shape);
    struct edge small = binary("Mul", start, builder_scalar(&b, "scale", F32, 0.05));
    n->handles[i] = make_variable(n, name, shape, small, 2 * i);
    n->slots[i] = make_variable(n, slot, shape, unary("ZerosLike", start), 2 * i + 1);
    return read_of(n->handles[i]);
}

/* Loss of the logits, gradients, momentum; all in one step. */
static void add_step(struct network *n, struct edge logits)
{
    const int64_t none = 0;
    struct edge grads[VARIABLES], labels = placeholder("labels", &SHAPE(-1, 10));
    struct node *updates[VARIABLES];
    struct edge rows = binary("SoftmaxCrossEntropyWithLogits", logits, labels);
    struct edge loss = binary("Mean", rows, builder_ints(&b, "axis", I32, &none, 1));
    struct edge rate = builder_scalar(&b, "rate", F32, 0.1);
    struct edge keep = builder_scalar(&b, "keep", F32, 0.9);
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, n->handles, n->count, grads, &err), &err);
    for (int i = 0; i < n->count; i++)
        updates[i] =
            builder_add(&b, "ResourceApplyMomentum", "update",
                        INPUTS(n->handles[i], n->slots[i], rate, grads[i], keep), NO_ATTRS)
                .from;
    struct node *train = builder_group(&b, "train", updates, n->count);
    builder_group(&b, "start_all", n->inits, 2 * n->count);
    n->fetches[0] = loss.from->name;
    for (int i = 0; i < n->count; i++) {
        struct edge now = read_of(n->handles[i]);
        graph_add_control(graph, now.from, train);
        n->fetches[1 + i] = now.from->name;
    }
}

static struct edge biased(struct network *n, struct edge x, int64_t columns)
{
    return builder_add(&b, "BiasAdd", "bias", INPUTS(x, weight(n, &SHAPE(columns))), NO_ATTRS);
}

static void build_mlp(struct network *n)
{
    struct edge x = placeholder("x", &SHAPE(-1, 784));
    x = unary("Relu", biased(n, binary("MatMul", x, weight(n, &SHAPE(784, 96))), 96));
    add_step(n, biased(n, binary("MatMul", x, weight(n, &SHAPE(96, 10))), 10));
}

static void build_cnn(struct network *n)
{
    const int64_t ones[] = {1, 1, 1, 1}, two[] = {1, 2, 2, 1}, flat[] = {-1, 7 * 7 * 8};
    struct edge x = placeholder("x", &SHAPE(-1, 14, 14, 4));
    x = builder_add(&b, "Conv2D", "conv", INPUTS(x, weight(n, &SHAPE(3, 3, 4, 8))),
                    ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    x = unary("Relu", biased(n, x, 8));
    x = builder_add(&b, "MaxPool", "pool", INPUTS(x),
                    ATTRS(attr_int_list("ksize", two, 4), attr_int_list("strides", two, 4),
                          attr_string("padding", "VALID")));
    x = binary("Reshape", x, builder_ints(&b, "flat", I32, flat, 2));
    add_step(n, biased(n, binary("MatMul", x, weight(n, &SHAPE(392, 10))), 10));
}

static void check_runs(const struct what *what)
{
    struct session *session = open_session(0, 2);
    struct tensor first[FETCHES_MAX], got[FETCHES_MAX];
    const struct session_run start = {.targets = &what->first, .targets_count = 1};
    for (int run = 0; run < RUNS; run++) {
        struct tensor *results = run ? got : first;
        CHECK_OK(session_run(session, &start, NULL, &err), &err);
        for (int step = 0; step < what->runs; step++) {
            for (int i = 0; step && i < what->run.fetches_count; i++)
                tensor_release(&results[i]);
            CHECK_OK(session_run(session, &what->run, results, &err), &err);
        }
        for (int i = 0; run && i < what->run.fetches_count; i++) {
            if (!tensor_equal(&first[i], &got[i]))
                CHECK_STOP("run %d gives another %s", run, what->run.fetches[i]);
            tensor_release(&got[i]);
        }
    }
    for (int i = 0; i < what->run.fetches_count; i++)
        tensor_release(&first[i]);
    session_free(session);
}

static void check_network(void (*build)(struct network *n), const struct shape *x, bool exact)
{
    struct network n = {0};
    struct tensor feeds[2];
    begin();
    seed = 12;
    build(&n);
    fill(&feeds[0], x);
    fill(&feeds[1], &SHAPE(x->dims[0], 10));
    for (int64_t i = 0; i < feeds[1].count; i++)
        tensor_f32_mut(&feeds[1])[i] = i % 10 == i / 10 % 10;
    struct what what = {.run = {.feeds = (const char *const[]){"x", "labels"},
                                .feed_values = feeds,
                                .feeds_count = 2,
                                .fetches = n.fetches,
                                .fetches_count = n.count + 1,
                                .targets = (const char *const[]){"train"},
                                .targets_count = 1},
                        .first = "start_all",
                        .runs = 2};
    check_runs(&what);
    /* A convolution that ends with its bias adds it before the last products. */
    what.by_threads = !exact;
    what.never = exact ? 0 : OPTIMISE_BIT(OPTIMISE_FUSE);
    check_same(&what);
    what.never = 0;
    what.tolerance = 1e-5f;
    check_same_without(&what, OPTIMISE_FUSE, OPTIMISE_FUSE + 1);
    tensor_release(&feeds[0]);
    tensor_release(&feeds[1]);
    graph_free(graph);
}

TEST(a_perceptron_learns_the_same_bits_each_time)
{
    check_network(build_mlp, &SHAPE(BATCH, 784), true);
}

TEST(a_convolutional_network_learns_the_same_bits_each_time)
{
    check_network(build_cnn, &SHAPE(BATCH, 14, 14, 4), false);
}
