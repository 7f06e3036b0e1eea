/*
 * main.c - what passes of the optimiser are worth: the same graph with the pass and without,
 * one JSON object a line.  Medians of runs that take turns, so that both see the same machine.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/gradient.h"
#include "runtime/optimise.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

enum { ROUNDS = 200, BUDGET_US = 3000000 };

static struct error err;
static struct builder b;

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, error_code_name(err.code), err.text);
    exit(1);
}

static void begin(void)
{
    b = (struct builder){.graph = graph_new(), .scope = "", .err = &err};
}

static void fill(struct tensor *tensor, const struct shape *shape)
{
    if (!tensor_init(tensor, F32, shape, &err))
        stop("tensor");
    for (int64_t i = 0; i < tensor->count; i++)
        tensor_f32_mut(tensor)[i] = (float)(i * 7919 % 2003) / 2003.0f - 0.3f;
}

static struct edge placeholder(const struct shape *shape)
{
    return builder_add(&b, "Placeholder", "x", NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", shape)));
}

static struct edge constant(const struct shape *shape)
{
    struct tensor value;
    fill(&value, shape);
    struct edge edge = builder_const(&b, "constant", &value);
    tensor_release(&value);
    return edge;
}

static struct edge unary(const char *op, struct edge x)
{
    return builder_add(&b, op, op, INPUTS(x), NO_ATTRS);
}

static struct edge binary(const char *op, struct edge x, struct edge y)
{
    return builder_add(&b, op, op, INPUTS(x, y), NO_ATTRS);
}

/* --- cases: graphs of x, and the node to run --- */

struct what {
    const char *name;
    int pass;
    struct shape x;
    const char *(*build)(const struct shape *x, const char **init);
};

static const char *build_cheap(const struct shape *x, const char **init)
{
    (void)init;
    struct edge in = placeholder(x), one = constant(&SHAPE_SCALAR);
    struct edge y = binary("AddV2", binary("Mul", in, one), constant(x));
    return unary("Relu", binary("Sub", unary("Square", y), in)).from->name;
}

static const char *build_dear(const struct shape *x, const char **init)
{
    (void)init;
    struct edge in = placeholder(x);
    struct edge y = unary("Tanh", binary("AddV2", in, constant(x)));
    return binary("Mul", unary("Sigmoid", y), binary("Sub", in, y)).from->name;
}

static const char *build_updates(const struct shape *x, const char **init)
{
    enum { COUNT = 60 };
    struct node *inits[3 * COUNT], *updates[COUNT];
    struct edge in = placeholder(x), settings[6];
    for (int i = 0; i < 6; i++)
        settings[i] = builder_scalar(&b, "setting", F32, 0.1 + 0.1 * i);
    for (int u = 0; u < COUNT; u++) {
        struct edge vars[3];
        for (int s = 0; s < 3; s++) {
            char *name = alloc_printf("v%d_%d", u, s);
            vars[s] = builder_add(&b, "VarHandleOp", name, NO_INPUTS,
                                  ATTRS(attr_type("dtype", F32), attr_shape("shape", x),
                                        attr_string("shared_name", name)));
            free(name);
            inits[3 * u + s] = builder_add(&b, "AssignVariableOp", "init",
                                           INPUTS(vars[s], unary("Square", constant(x))),
                                           ATTRS(attr_type("dtype", F32)))
                                   .from;
        }
        updates[u] = builder_add(&b, "ResourceApplyAdam", "update",
                                 INPUTS(vars[0], vars[1], vars[2], settings[0], settings[1],
                                        settings[2], settings[3], settings[4], settings[5], in),
                                 NO_ATTRS)
                         .from;
    }
    *init = builder_group(&b, "init_all", inits, 3 * COUNT)->name;
    return builder_group(&b, "train", updates, COUNT)->name;
}

static const char *build_norm(const struct shape *x, const char **init)
{
    (void)init;
    const struct shape c = SHAPE(x->dims[3]);
    struct edge norm = builder_add(
        &b, "FusedBatchNormV3", "norm",
        INPUTS(placeholder(x), constant(&c), constant(&c), constant(&c), constant(&c)),
        ATTRS(attr_type("T", F32), attr_type("U", F32)));
    return unary("Relu", norm).from->name;
}

/* The end of a residual block, and its gradients. */
static const char *build_residual(const struct shape *x, const char **init)
{
    (void)init;
    const struct shape c = SHAPE(x->dims[3]);
    struct edge in = placeholder(x), scale = constant(&c), offset = constant(&c), grads[3];
    struct edge none = constant(&SHAPE(0));
    struct edge norm = builder_add(&b, "FusedBatchNormV3", "norm",
                                   INPUTS(unary("Square", in), scale, offset, none, none),
                                   ATTRS(attr_type("T", F32), attr_type("U", F32)));
    struct edge y = unary("Relu", binary("AddV2", norm, in)), dy = constant(x);
    const struct edge of[] = {in, scale, offset};
    if (!builder_ok(&b) || !gradient_build(b.graph, &y, 1, &dy, of, 3, grads, &err))
        stop("gradient");
    return builder_group(&b, "all",
                         (struct node *const[]){grads[0].from, grads[1].from, grads[2].from}, 3)
        ->name;
}

static const char *build_first(const struct shape *x, const char **init)
{
    (void)init;
    const struct attr format = attr_string("data_format", "NCHW");
    const int64_t ones[] = {1, 1, 1, 1};
    struct edge y = placeholder(x);
    for (int layer = 0; layer < 2; layer++) {
        y = builder_add(
            &b, "Conv2D", "conv", INPUTS(y, constant(&SHAPE(3, 3, x->dims[1], x->dims[1]))),
            ATTRS(format, attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
        y = builder_add(&b, "BiasAdd", "bias", INPUTS(y, constant(&SHAPE(x->dims[1]))),
                        ATTRS(format));
        y = unary("Relu", y);
    }
    return y.from->name;
}

static const char *build_product(const struct shape *x, const char **init)
{
    (void)init;
    struct edge y = binary("MatMul", placeholder(x), constant(&SHAPE(x->dims[1], 512)));
    y = builder_add(&b, "BiasAdd", "bias", INPUTS(y, constant(&SHAPE(512))), NO_ATTRS);
    return unary("Relu", y).from->name;
}

/* The loss that tutorials write, and its gradient. */
static const char *build_loss(const struct shape *x, const char **init)
{
    (void)init;
    const int64_t last = -1, first = 0;
    struct edge in = placeholder(x), grad, labels = constant(x);
    struct edge rows =
        unary("Neg", binary("Sum", binary("Mul", labels, unary("Log", unary("Softmax", in))),
                            builder_ints(&b, "axis", I32, &last, 1)));
    struct edge loss = binary("Mean", rows, builder_ints(&b, "axis", I32, &first, 1));
    if (!builder_ok(&b) || !gradient_build(b.graph, &loss, 1, NULL, &in, 1, &grad, &err))
        stop("gradient");
    return builder_group(&b, "both", (struct node *const[]){loss.from, grad.from}, 2)->name;
}

/* A cross-entropy whose gradient nobody wants, as in an evaluation. */
static const char *build_evaluation(const struct shape *x, const char **init)
{
    (void)init;
    return binary("SoftmaxCrossEntropyWithLogits", placeholder(x), constant(x)).from->name;
}

/* An LSTM of 256 over looked-up rows of 256, and the gradients of the weights and of the table
 * of 64; the indices are made of what is fed. */
static const char *build_lookup(const struct shape *x, const char **init)
{
    enum { ROWS = 64, CELLS = 256 };
    (void)init;
    const struct shape rows = SHAPE(ROWS, CELLS), state = SHAPE(x->dims[1], CELLS);
    struct edge ids = builder_add(&b, "Cast", "ids",
                                  INPUTS(binary("Mul", unary("Abs", placeholder(x)),
                                                builder_scalar(&b, "rows", F32, ROWS - 1))),
                                  ATTRS(attr_type("DstT", I32)));
    struct edge table = constant(&rows), w = constant(&SHAPE(2 * CELLS, 4 * CELLS)), grads[2];
    struct edge in = builder_add(&b, "Gather", "rows", INPUTS(table, ids), NO_ATTRS);
    struct edge begin = constant(&state), hole = constant(&SHAPE(CELLS));
    struct edge all =
        builder_add(&b, "BlockLSTM", "lstm",
                    INPUTS(builder_scalar(&b, "steps", I64, (double)x->dims[0]), in, begin,
                           begin, w, hole, hole, hole, constant(&SHAPE(4 * CELLS))),
                    NO_ATTRS);
    struct edge y = builder_output(all, 6),
                dy = constant(&SHAPE(x->dims[0], x->dims[1], CELLS));
    const struct edge of[] = {table, w};
    if (!builder_ok(&b) || !gradient_build(b.graph, &y, 1, &dy, of, 2, grads, &err))
        stop("gradient");
    return builder_group(&b, "both", (struct node *const[]){grads[0].from, grads[1].from}, 2)
        ->name;
}

/* --- measuring --- */

struct side {
    struct session *session;
    struct callable *callable;
    double us[ROUNDS];
};

static double least(const double *values, int count)
{
    double best = values[0];
    for (int i = 1; i < count; i++)
        best = values[i] < best ? values[i] : best;
    return best;
}

static void open_side(struct side *side, uint32_t passes_off, int threads, const char *result,
                      const char *init)
{
    const struct session_options options = {.threads = threads, .passes_off = passes_off};
    side->session = session_new(&options, &err);
    if (!side->session || !session_extend_graph(side->session, b.graph, &err))
        stop("session");
    const struct session_run first = {.targets = &init, .targets_count = 1};
    if (init && !session_run(side->session, &first, NULL, &err))
        stop("init");
    /* What is only run, not fetched, costs no copy. */
    const struct session_run run = {.feeds = (const char *const[]){"x"},
                                    .feeds_count = 1,
                                    .targets = &result,
                                    .targets_count = 1};
    side->callable = session_prepare(side->session, &run, &err);
    if (!side->callable)
        stop("plan");
}

static double run_us(struct side *side, const struct tensor *x)
{
    uint64_t start_ns = clock_monotonic_ns();
    if (!session_call(side->session, side->callable, x, NULL, NULL, &err))
        stop("run");
    return (double)(clock_monotonic_ns() - start_ns) / 1000;
}

static void measure(const struct what *what, int threads)
{
    struct side on, off;
    struct tensor x;
    const char *init = NULL;
    begin();
    const char *result = what->build(&what->x, &init);
    if (!builder_ok(&b))
        stop(what->name);
    fill(&x, &what->x);
    open_side(&on, 0, threads, result, init);
    open_side(&off, OPTIMISE_BIT(what->pass), threads, result, init);
    int count = 0;
    uint64_t end_us = clock_monotonic_us() + BUDGET_US;
    for (int i = -3; i < ROUNDS && (count < 3 || clock_monotonic_us() < end_us); i++) {
        double with = run_us(&on, &x), without = run_us(&off, &x);
        if (i >= 0)
            on.us[count] = with, off.us[count++] = without;
    }
    double with = least(on.us, count), without = least(off.us, count);
    printf("{\"case\": \"%s\", \"pass\": \"%s\", \"threads\": %d, \"with_us\": %.1f, "
           "\"without_us\": %.1f, \"times\": %.2f}\n",
           what->name, optimise_name(what->pass), threads, with, without, without / with);
    fflush(stdout);
    session_free(on.session);
    session_free(off.session);
    tensor_release(&x);
    graph_free(b.graph);
}

int main(void)
{
    const struct what cases[] = {
        {"5 elementwise ops, 1 M floats", OPTIMISE_CHAIN, SHAPE(1 << 20), build_cheap},
        {"5 elementwise ops with Tanh and Sigmoid, 1 M floats", OPTIMISE_CHAIN, SHAPE(1 << 20),
         build_dear},
        {"5 elementwise ops, 8 M floats", OPTIMISE_CHAIN, SHAPE(1 << 23), build_cheap},
        {"5 elementwise ops, 64 floats", OPTIMISE_CHAIN, SHAPE(64), build_cheap},
        {"60 Adam updates of 128 floats", OPTIMISE_UPDATE, SHAPE(128), build_updates},
        {"batch norm and Relu, 32x28x28x64", OPTIMISE_NORM, SHAPE(32, 28, 28, 64), build_norm},
        {"end of a residual block and its gradients, 32x28x28x64", OPTIMISE_NORM,
         SHAPE(32, 28, 28, 64), build_residual},
        {"2 convolutions NCHW, 8x32x28x28", OPTIMISE_LAYOUT, SHAPE(8, 32, 28, 28), build_first},
        {"loss by log(softmax) and its gradient, 128x4096", OPTIMISE_SOFTMAX, SHAPE(128, 4096),
         build_loss},
        {"the same, 128x10", OPTIMISE_SOFTMAX, SHAPE(128, 10), build_loss},
        {"cross-entropy alone, 2048x4096", OPTIMISE_SOFTMAX, SHAPE(2048, 4096),
         build_evaluation},
        {"LSTM of 256, 64 steps of 32, a table of 64", OPTIMISE_LOOKUP, SHAPE(64, 32),
         build_lookup},
        {"MatMul, bias, Relu, 128x512x512", OPTIMISE_FUSE, SHAPE(128, 512), build_product},
    };
    kernels_add(false);
    for (int threads = 1; threads <= 2; threads++)
        for (int i = 0; i < ARRAY_LEN(cases); i++)
            measure(&cases[i], threads);
    return 0;
}
