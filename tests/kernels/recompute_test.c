/* recompute_test.c - a step that may use less memory computes again what it would have kept,
 * and gives the same bits. */

#include "runtime/gradient.h"
#include "runtime/memory.h"
#include "runtime/op.h"
#include "tests/kernels/passes.h"

enum { LAYERS = 6, PASS = OPTIMISE_RECOMPUTE };

static struct edge weights[LAYERS];
static const char *fetches[LAYERS + 1];

/* The loss, and of each gradient its sum: what is fetched is small. */
static void add_fetches(struct edge y)
{
    const int64_t all[] = {0, 1, 2, 3};
    int rank = y.from->op->name[0] == 'C' ? 4 : 2;
    struct edge grads[LAYERS];
    struct edge loss =
        binary("Sum", unary("Square", y), builder_ints(&b, "all", I32, all, rank));
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, weights, LAYERS, grads, &err), &err);
    fetches[LAYERS] = loss.from->name;
    for (int i = 0; i < LAYERS; i++)
        fetches[i] =
            binary("Sum", grads[i], builder_ints(&b, "all", I32, all, rank)).from->name;
}

/* Layers of products, Swish and dropout by a stateless stream. */
static void build_mlp(void)
{
    begin();
    seed = 6;
    const int64_t shape[] = {512, 64};
    struct edge y = placeholder("x", &SHAPE(512, 64));
    struct edge key =
        builder_add(&b, "Placeholder", "key", NO_INPUTS,
                    ATTRS(attr_type("dtype", I64), attr_shape("shape", &SHAPE(2))));
    for (int i = 0; i < LAYERS; i++) {
        weights[i] = constant("w", &SHAPE(64, 64));
        y = binary("MatMul", y, weights[i]);
        y = binary("Mul", y, unary("Sigmoid", y));
        struct edge numbers = builder_add(&b, "StatelessRandomUniform", "uniform",
                                          INPUTS(builder_ints(&b, "shape", I32, shape, 2), key),
                                          ATTRS(attr_type("dtype", F32)));
        struct edge keep =
            binary("GreaterEqual", numbers, builder_scalar(&b, "rate", F32, 0.1 * (1 + i)));
        y = binary(
            "Mul", y,
            builder_add(&b, "Cast", "mask", INPUTS(keep), ATTRS(attr_type("DstT", F32))));
    }
    add_fetches(y);
}

/* Convolutions, each with batch normalisation and Relu. */
static void build_cnn(void)
{
    begin();
    seed = 7;
    const int64_t ones[] = {1, 1, 1, 1};
    const struct shape c = SHAPE(8);
    struct edge y = placeholder("x", &SHAPE(4, 16, 16, 8));
    for (int i = 0; i < LAYERS; i++) {
        weights[i] = constant("w", &SHAPE(3, 3, 8, 8));
        y = builder_add(
            &b, "Conv2D", "conv", INPUTS(y, weights[i]),
            ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
        if (i + 1 == LAYERS)
            break;
        y = builder_add(&b, "FusedBatchNormV3", "norm",
                        INPUTS(y, constant("scale", &c), constant("offset", &c),
                               constant("mean", &c), constant("variance", &c)),
                        ATTRS(attr_type("U", F32)));
        y = unary("Relu", y);
    }
    add_fetches(y);
}

struct outcome {
    int64_t estimated, arena;
    int copies; /* nodes that were made for a second time */
    struct tensor results[LAYERS + 1];
};

static void run(const struct session_options *options, const struct shape *x,
                struct outcome *out)
{
    struct tensor feeds[2];
    seed = 1;
    fill(&feeds[0], x);
    CHECK_OK(tensor_init(&feeds[1], I64, &SHAPE(2), &err), &err);
    tensor_set_number(&feeds[1], 0, 3);
    tensor_set_number(&feeds[1], 1, 4);
    const struct session_run what = {.feeds = (const char *const[]){"x", "key"},
                                     .feed_values = feeds,
                                     .feeds_count = x->dims[1] == 64 ? 2 : 1,
                                     .fetches = fetches,
                                     .fetches_count = LAYERS + 1};
    struct session *session = session_new(options, &err);
    struct memory_estimate estimate;
    struct str json = {0};
    int64_t variables;
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    struct callable *callable = session_prepare(session, &what, &err);
    CHECK_OK(callable, &err);
    session_estimate(callable, &estimate);
    *out = (struct outcome){.estimated = memory_total(&estimate)};
    memory_release(&estimate);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; i && k <= LAYERS; k++)
            tensor_release(&out->results[k]);
        CHECK_OK(session_run(session, &what, out->results, &err), &err);
    }
    session_memory(session, &out->arena, &variables);
    session_explain_placement(session, callable, &json);
    for (const char *at = str_text(&json); (at = strstr(at, "/again\",\"op\"")); at++)
        out->copies++;
    str_release(&json);
    session_free(session);
    tensor_release(&feeds[0]);
    tensor_release(&feeds[1]);
}

static void release(struct outcome *outcome)
{
    for (int i = 0; i <= LAYERS; i++)
        tensor_release(&outcome->results[i]);
}

static void check_equal(const struct outcome *a, const struct outcome *b_)
{
    for (int i = 0; i <= LAYERS; i++)
        CHECK(tensor_equal(&a->results[i], &b_->results[i]));
}

/* With `percent` of the memory that it would take, a step takes no more, really. */
static void check_limit(const struct shape *x, int percent)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct outcome all, less, off;
        struct session_options options = {.threads = threads};
        run(&options, x, &all);
        CHECK_INT(all.copies, 0);
        options.memory_bytes_max = all.estimated * percent / 100;
        run(&options, x, &less);
        CHECK(less.copies > 0);
        CHECK(less.estimated <= options.memory_bytes_max);
        CHECK(less.arena * 100 <= all.arena * (percent + 5));
        check_equal(&all, &less);
        options.passes_off = OPTIMISE_BIT(PASS);
        options.memory_bytes_max = all.estimated;
        run(&options, x, &off);
        CHECK_INT(off.copies, 0);
        CHECK(off.estimated == all.estimated);
        check_equal(&all, &off);
        release(&all);
        release(&less);
        release(&off);
    }
}

TEST(a_perceptron_fits_into_half_of_its_memory)
{
    build_mlp();
    check_limit(&SHAPE(512, 64), 50);
    graph_free(graph);
}

TEST(a_network_with_batch_normalisation_fits_into_three_quarters)
{
    build_cnn();
    check_limit(&SHAPE(4, 16, 16, 8), 75);
    graph_free(graph);
}

/* A hint is followed without any limit, if only by gradients; so are hints on what it reads. */
TEST(what_has_a_hint_is_computed_again_for_gradients)
{
    for (int hinted = 0; hinted < 2; hinted++) {
        begin();
        seed = 9;
        struct edge y = placeholder("x", &SHAPE(20, 5));
        const struct attr hint = attr_int("_recompute_hint", 0);
        for (int i = 0; i < LAYERS; i++) {
            weights[i] = constant("w", &SHAPE(5, 5));
            struct edge z = binary("MatMul", y, weights[i]);
            y = builder_add(&b, "Tanh", "tanh", INPUTS(z), &hint, hinted);
        }
        add_fetches(y);
        const struct session_options on = {.threads = 1};
        const struct session_options off = {.threads = 1, .passes_off = OPTIMISE_BIT(PASS)};
        struct outcome with, without;
        run(&on, &SHAPE(20, 5), &with);
        run(&off, &SHAPE(20, 5), &without);
        CHECK_INT(with.copies, hinted ? LAYERS : 0);
        CHECK_INT(without.copies, 0);
        check_equal(&with, &without);
        release(&with);
        release(&without);
        graph_free(graph);
    }
}
