/* passes_test.c - the optimiser's passes over real kernels: what they make, and that results
 * are the same with each of them off. */

#include "runtime/gradient.h"
#include "tests/kernels/passes.h"

/* --- chains --- */

TEST(elementwise_chains_are_one_node_and_the_same_bits)
{
    const struct shape shapes[] = {SHAPE(300, 37), SHAPE(1, 1), SHAPE(3, 1), SHAPE(0, 4),
                                   SHAPE(4, 37)};
    const struct shape unknown = SHAPE(-1, -1);
    for (int s = 0; s < ARRAY_LEN(shapes); s++) {
        begin();
        seed = 11;
        struct edge x = placeholder("x", &unknown);
        struct edge row = constant("row", &SHAPE(shapes[s].dims[1]));
        struct edge column =
            constant("column", &SHAPE(shapes[s].dims[0] ? shapes[s].dims[0] : 1, 1));
        struct edge scalar = constant("scalar", &SHAPE_SCALAR);
        struct edge small =
            unary("Tanh", binary("Mul", row, unary("Exp", placeholder("p", &SHAPE_SCALAR))));
        struct edge y = unary("Sigmoid", binary("AddV2", binary("Mul", x, small), column));
        y = binary("Sub", binary("Maximum", unary("Square", y), unary("Neg", x)), scalar);
        struct tensor feeds[2];
        fill(&feeds[0], &shapes[s]);
        fill(&feeds[1], &SHAPE_SCALAR);
        const char *fetch = y.from->name;
        const struct what what = {.run = {.feeds = (const char *const[]){"x", "p"},
                                          .feed_values = feeds,
                                          .feeds_count = 2,
                                          .fetches = &fetch,
                                          .fetches_count = 1},
                                  .runs = 3};
        check_count(&what, OPTIMISE_CHAIN, "_Elementwise", 1, 0);
        check_same(&what);
        tensor_release(&feeds[0]);
        tensor_release(&feeds[1]);
        graph_free(graph);
    }
}

/* A net of random ops over operands of random shapes that broadcast together. */
static struct edge random_net(int nodes, struct edge *made)
{
    static const char *const unaries[] = {"Neg", "Abs",  "Square", "Relu",
                                          "Exp", "Tanh", "Sigmoid"};
    static const char *const binaries[] = {
        "Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"};
    int count = 0;
    made[count++] = placeholder("x", &SHAPE(5, 7));
    made[count++] = constant("a", &SHAPE(7));
    made[count++] = constant("b", &SHAPE(5, 1));
    made[count++] = constant("c", &SHAPE_SCALAR);
    made[count++] = constant("d", &SHAPE(1, 1, 1));
    while (count < nodes) {
        struct edge one = made[next() % (uint64_t)count], two = made[next() % (uint64_t)count];
        if (next() % 3 == 0)
            made[count++] = unary(unaries[next() % ARRAY_LEN(unaries)], one);
        else
            made[count++] = binary(binaries[next() % ARRAY_LEN(binaries)], one, two);
    }
    return made[count - 1];
}

TEST(random_nets_give_the_same_bits_with_each_pass_off)
{
    for (int n = 1; n <= 60; n++) {
        begin();
        seed = (uint64_t)n * UINT64_C(0x9e3779b97f4a7c15);
        struct edge made[48];
        int nodes = 8 + (int)(next() % 40);
        const char *fetches[] = {random_net(nodes, made).from->name,
                                 made[5 + next() % (uint64_t)(nodes - 5)].from->name};
        struct tensor x;
        fill(&x, &SHAPE(5, 7));
        const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                          .feed_values = &x,
                                          .feeds_count = 1,
                                          .fetches = fetches,
                                          .fetches_count = 2},
                                  .runs = 2};
        check_same(&what);
        tensor_release(&x);
        graph_free(graph);
    }
}

/* A mask of a comparison, and the gradient of Relu, in one pass. */
TEST(comparisons_and_masks_join_chains)
{
    const struct shape shapes[] = {SHAPE(300, 37), SHAPE(3, 5), SHAPE(0, 4)};
    static const char *const ops[] = {"Greater", "GreaterEqual", "Less", "LessEqual"};
    for (int s = 0; s < ARRAY_LEN(shapes) * ARRAY_LEN(ops); s++) {
        const struct shape *shape = &shapes[s % ARRAY_LEN(shapes)];
        begin();
        seed = 13;
        struct edge x = placeholder("x", &SHAPE(-1, -1));
        struct edge keep =
            binary(ops[s % ARRAY_LEN(ops)], x, builder_scalar(&b, "rate", F32, 0.25));
        struct edge mask = builder_add(&b, "Cast", "mask", INPUTS(keep),
                                       ATTRS(attr_type("SrcT", BOOL), attr_type("DstT", F32)));
        struct edge y = binary("ReluGrad", binary("Mul", unary("Exp", x), mask), x);
        struct tensor feed;
        fill(&feed, shape);
        if (feed.count)
            tensor_f32_mut(&feed)[0] = NAN;
        const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                          .feed_values = &feed,
                                          .feeds_count = 1,
                                          .fetches = &y.from->name,
                                          .fetches_count = 1},
                                  .runs = 2};
        check_count(&what, OPTIMISE_CHAIN, "_Elementwise", 1, 0);
        check_count(&what, OPTIMISE_CHAIN, "Cast", 0, 1);
        check_same_without(&what, OPTIMISE_CHAIN, OPTIMISE_CHAIN + 1);
        tensor_release(&feed);
        graph_free(graph);
    }
}

/* --- updates --- */

static struct edge variable(const char *name, const struct shape *shape, bool by_ref,
                            struct node **init)
{
    struct edge value = unary("Square", constant("value", shape)); /* slots have no signs */
    if (by_ref) {
        struct edge var =
            builder_add(&b, "VariableV2", name, NO_INPUTS,
                        ATTRS(attr_type("dtype", F32), attr_shape("shape", shape)));
        *init = builder_add(&b, "Assign", "init", INPUTS(var, value), NO_ATTRS).from;
        return var;
    }
    struct edge var = builder_add(&b, "VarHandleOp", name, NO_INPUTS,
                                  ATTRS(attr_type("dtype", F32), attr_shape("shape", shape),
                                        attr_string("shared_name", name)));
    *init = builder_add(&b, "AssignVariableOp", "init", INPUTS(var, value),
                        ATTRS(attr_type("dtype", F32)))
                .from;
    return var;
}

enum { UPDATES = 5 };

/* One training step of UPDATES variables; fetches all of them. */
static void check_updates(const char *op, int slots, int settings, int grad, bool by_ref)
{
    begin();
    seed = 5;
    struct node *inits[4 * UPDATES], *updates[UPDATES];
    struct edge vars[4 * UPDATES], shared[8];
    char *names[UPDATES];
    int count = 0;
    for (int i = 0; i < settings; i++)
        shared[i] = builder_scalar(&b, "setting", F32, 0.25 + 0.05 * i);
    for (int u = 0; u < UPDATES; u++) {
        const struct shape shape = u % 2 ? SHAPE(3 + u, 11) : SHAPE(17 * u + 1);
        struct edge inputs[10];
        int at = 0, setting = 0;
        for (int i = 0; i < slots; i++, count++) {
            char *name = alloc_printf("v%d_%d", u, i);
            vars[count] = variable(name, &shape, by_ref, &inits[count]);
            inputs[at++] = vars[count];
            free(name);
        }
        struct edge gradient = unary("Square", constant("gradient", &shape));
        while (at < slots + settings + 1)
            inputs[at] = at == grad ? gradient : shared[setting++], at++;
        updates[u] = builder_add(&b, op, "update", inputs, at, NO_ATTRS).from;
    }
    builder_group(&b, "init_all", inits, count);
    builder_group(&b, "train", updates, UPDATES);
    for (int u = 0; u < UPDATES; u++) {
        struct edge read =
            by_ref ? unary("Identity", vars[u * slots])
                   : builder_add(&b, "ReadVariableOp", "read", INPUTS(vars[u * slots]),
                                 ATTRS(attr_type("dtype", F32)));
        graph_add_control(graph, read.from, graph_find(graph, "train"));
        names[u] = alloc_text(read.from->name);
    }
    const char *target = "train";
    const struct what what = {.run = {.fetches = (const char *const *)names,
                                      .fetches_count = UPDATES,
                                      .targets = &target,
                                      .targets_count = 1},
                              .first = "init_all",
                              .runs = 4};
    check_count(&what, OPTIMISE_UPDATE, by_ref ? "_UpdateRefs" : "_UpdateResources", 1, 0);
    check_count(&what, OPTIMISE_UPDATE, op, 0, UPDATES);
    check_same(&what);
    for (int u = 0; u < UPDATES; u++)
        free(names[u]);
    graph_free(graph);
}

TEST(updates_of_small_variables_are_one_call)
{
    check_updates("ApplyGradientDescent", 1, 1, 2, true);
    check_updates("ResourceApplyGradientDescent", 1, 1, 2, false);
    check_updates("ApplyMomentum", 2, 2, 3, true);
    check_updates("ResourceApplyMomentum", 2, 2, 3, false);
    check_updates("ResourceApplyKerasMomentum", 2, 2, 3, false);
    check_updates("ApplyAdam", 3, 6, 9, true);
    check_updates("ResourceApplyAdam", 3, 6, 9, false);
}

/* One training step of a variable whose gradient is put together from pieces of these sizes;
 * `watched`: something else reads it, too. */
static void check_pieces(const char *op, int slots, int settings, int grad, bool by_ref,
                         bool watched)
{
    static const int64_t sizes[] = {1600, 64, 337};
    static const char *const feeds[] = {"first", "second", "third"};
    struct tensor fed[3];
    const struct shape shape = SHAPE(29, 69);
    begin();
    seed = 7;
    struct node *inits[3];
    struct edge inputs[10], pieces[4], vars[3];
    int at = 0;
    for (int i = 0; i < 3; i++)
        pieces[i] = placeholder(feeds[i], &SHAPE(sizes[i])), fill(&fed[i], &SHAPE(sizes[i]));
    pieces[3] = builder_scalar(&b, "axis", I32, 0);
    struct edge row = builder_add(&b, "ConcatV2", "row", pieces, 4, ATTRS(attr_int("N", 3)));
    struct edge gradient =
        builder_add(&b, "Reshape", "gradient",
                    INPUTS(row, builder_ints(&b, "dims", I32, shape.dims, 2)), NO_ATTRS);
    for (; at < slots; at++) {
        char *name = alloc_printf("v%d", at);
        inputs[at] = vars[at] = variable(name, &shape, by_ref, &inits[at]);
        free(name);
    }
    while (at < slots + settings + 1)
        inputs[at] =
            at == grad ? gradient : builder_scalar(&b, "setting", F32, 0.2 + 0.05 * at),
        at++;
    struct node *update = builder_add(&b, op, "update", inputs, at, NO_ATTRS).from;
    builder_group(&b, "init_all", inits, slots);
    builder_group(&b, "train", &update, 1);
    char *names[4];
    for (int i = 0; i < slots; i++) {
        struct edge read = by_ref ? unary("Identity", vars[i])
                                  : builder_add(&b, "ReadVariableOp", "read", INPUTS(vars[i]),
                                                ATTRS(attr_type("dtype", F32)));
        graph_add_control(graph, read.from, graph_find(graph, "train"));
        names[i] = alloc_text(read.from->name);
    }
    names[slots] = alloc_text(unary("Neg", gradient).from->name);
    const char *target = "train";
    const struct what what = {.run = {.feeds = feeds,
                                      .feed_values = fed,
                                      .feeds_count = 3,
                                      .fetches = (const char *const *)names,
                                      .fetches_count = slots + watched,
                                      .targets = &target,
                                      .targets_count = 1},
                              .first = "init_all",
                              .runs = 4};
    const char *many = by_ref ? "_UpdateRefs" : "_UpdateResources";
    check_count(&what, OPTIMISE_UPDATE, many, !watched, 0);
    check_count(&what, OPTIMISE_UPDATE, "ConcatV2", watched, 1);
    check_same(&what);
    for (int i = 0; i <= slots; i++)
        free(names[i]);
    for (int i = 0; i < 3; i++)
        tensor_release(&fed[i]);
    graph_free(graph);
}

TEST(a_gradient_in_pieces_is_not_put_together_for_its_update)
{
    for (int watched = 0; watched < 2; watched++) {
        check_pieces("ApplyGradientDescent", 1, 1, 2, true, watched);
        check_pieces("ResourceApplyGradientDescent", 1, 1, 2, false, watched);
        check_pieces("ApplyMomentum", 2, 2, 3, true, watched);
        check_pieces("ResourceApplyMomentum", 2, 2, 3, false, watched);
        check_pieces("ResourceApplyKerasMomentum", 2, 2, 3, false, watched);
        check_pieces("ApplyAdam", 3, 6, 9, true, watched);
        check_pieces("ResourceApplyAdam", 3, 6, 9, false, watched);
    }
}

TEST(an_update_that_waits_for_another_stays_alone)
{
    begin();
    seed = 3;
    struct node *inits[2], *updates[2];
    struct edge rate = builder_scalar(&b, "rate", F32, 0.5);
    for (int i = 0; i < 2; i++) {
        struct edge var = variable(i ? "second" : "first", &SHAPE(4), false, &inits[i]);
        updates[i] = builder_add(&b, "ResourceApplyGradientDescent", "update",
                                 INPUTS(var, rate, constant("gradient", &SHAPE(4))), NO_ATTRS)
                         .from;
    }
    graph_add_control(graph, updates[1], updates[0]);
    builder_group(&b, "train", updates, 2);
    const char *target = "train";
    const struct what what = {.run = {.targets = &target, .targets_count = 1}};
    check_count(&what, OPTIMISE_UPDATE, "ResourceApplyGradientDescent", 2, 2);
    graph_free(graph);
}

/* --- images --- */

static void check_norm(bool training)
{
    begin();
    seed = 9;
    struct edge x = placeholder("x", &SHAPE(-1, 5, 6, 8));
    struct edge norm = builder_add(
        &b, "FusedBatchNormV3", "norm",
        INPUTS(x, constant("scale", &SHAPE(8)), constant("offset", &SHAPE(8)),
               constant("mean", &SHAPE(8)), unary("Square", constant("variance", &SHAPE(8)))),
        ATTRS(attr_type("T", F32), attr_type("U", F32), attr_bool("is_training", training)));
    struct edge relu = unary("Relu", norm);
    struct edge mean = unary("Neg", builder_output(norm, 1));
    const char *fetches[] = {relu.from->name, mean.from->name, "norm:2"};
    struct tensor feed;
    fill(&feed, &SHAPE(3, 5, 6, 8));
    const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                      .feed_values = &feed,
                                      .feeds_count = 1,
                                      .fetches = fetches,
                                      .fetches_count = 3},
                              .runs = 2};
    check_count(&what, OPTIMISE_NORM, "_FusedBatchNormEx", 1, 0);
    check_same(&what);
    tensor_release(&feed);
    graph_free(graph);
}

TEST(batch_normalisation_takes_its_relu)
{
    check_norm(true);
    check_norm(false);
}

/* A block of a residual network: norm, Relu, norm, sum with what went in, Relu; gradients. */
TEST(batch_normalisation_takes_sums_and_gradients)
{
    begin();
    seed = 11;
    const struct shape shape = SHAPE(3, 5, 6, 8);
    const struct attr types[] = {attr_type("T", F32), attr_type("U", F32)};
    struct edge x = placeholder("x", &shape), vectors[4], y = x;
    for (int layer = 0; layer < 2; layer++) {
        vectors[2 * layer] = constant("scale", &SHAPE(8));
        vectors[2 * layer + 1] = constant("offset", &SHAPE(8));
        struct edge none = constant("none", &SHAPE(0));
        y = builder_add(&b, "FusedBatchNormV3", "norm",
                        INPUTS(y, vectors[2 * layer], vectors[2 * layer + 1], none, none),
                        types, 2);
        y = unary("Relu", layer ? binary("AddV2", x, y) : y);
    }
    struct edge loss = binary("Mul", y, constant("weights", &shape));
    struct edge of[] = {x, vectors[0], vectors[1], vectors[2], vectors[3]}, grads[5];
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, of, 5, grads, &err), &err);
    const char *fetches[6] = {y.from->name};
    char names[5][64];
    for (int i = 0; i < 5; i++) {
        snprintf(names[i], sizeof(names[i]), "%s:%d", grads[i].from->name, grads[i].output);
        fetches[i + 1] = names[i];
    }
    struct tensor feed;
    fill(&feed, &shape);
    const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                      .feed_values = &feed,
                                      .feeds_count = 1,
                                      .fetches = fetches,
                                      .fetches_count = 6},
                              .runs = 2};
    check_count(&what, OPTIMISE_NORM, "_FusedBatchNormEx", 2, 0);
    check_count(&what, OPTIMISE_NORM, "_FusedBatchNormGradEx", 2, 0);
    check_same(&what);
    tensor_release(&feed);
    graph_free(graph);
}

/* Convolution, bias, Relu, pooling, all channels first, and what leads back through them. */
TEST(channels_first_is_computed_channels_last)
{
    begin();
    seed = 21;
    const int64_t ones[] = {1, 1, 1, 1}, twos[] = {1, 1, 2, 2};
    const struct attr format = attr_string("data_format", "NCHW");
    struct edge x = placeholder("x", &SHAPE(2, 3, 8, 8));
    struct edge filter = constant("filter", &SHAPE(3, 3, 3, 4));
    struct edge conv = builder_add(
        &b, "Conv2D", "conv", INPUTS(x, filter),
        ATTRS(format, attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    struct edge bias = builder_add(&b, "BiasAdd", "bias",
                                   INPUTS(conv, constant("b", &SHAPE(4))), ATTRS(format));
    struct edge relu = unary("Relu", bias);
    struct edge pool =
        builder_add(&b, "MaxPool", "pool", INPUTS(relu),
                    ATTRS(format, attr_int_list("ksize", twos, 4),
                          attr_int_list("strides", twos, 4), attr_string("padding", "VALID")));
    struct edge grad =
        builder_add(&b, "MaxPoolGrad", "pool_grad", INPUTS(relu, pool, pool),
                    ATTRS(format, attr_int_list("ksize", twos, 4),
                          attr_int_list("strides", twos, 4), attr_string("padding", "VALID")));
    grad = binary("ReluGrad", grad, relu);
    struct edge bias_grad =
        builder_add(&b, "BiasAddGrad", "bias_grad", INPUTS(grad), ATTRS(format));
    const int64_t sizes[] = {2, 3, 8, 8}, filter_sizes[] = {3, 3, 3, 4};
    struct edge image_grad = builder_add(
        &b, "Conv2DBackpropInput", "image_grad",
        INPUTS(builder_ints(&b, "sizes", I32, sizes, 4), filter, grad),
        ATTRS(format, attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    struct edge filter_grad = builder_add(
        &b, "Conv2DBackpropFilter", "filter_grad",
        INPUTS(x, builder_ints(&b, "filter_sizes", I32, filter_sizes, 4), grad),
        ATTRS(format, attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    const char *fetches[] = {pool.from->name, bias_grad.from->name, image_grad.from->name,
                             filter_grad.from->name};
    struct tensor feed;
    fill(&feed, &SHAPE(2, 3, 8, 8));
    const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                      .feed_values = &feed,
                                      .feeds_count = 1,
                                      .fetches = fetches,
                                      .fetches_count = 4},
                              .runs = 2,
                              .tolerance = 2e-4f};
    /* x comes in, pool and the image's gradient go out. */
    check_count(&what, OPTIMISE_LAYOUT, "Transpose", 3, 0);
    check_same(&what);
    tensor_release(&feed);
    graph_free(graph);
}

/* A convolution that suits Winograd's algorithm, and its gradients: nearly the same numbers. */
TEST(small_convolutions_take_fewer_multiplications)
{
    begin();
    seed = 22;
    const int64_t ones[] = {1, 1, 1, 1}, sizes[] = {6, 9, 9, 16},
                  filter_sizes[] = {3, 3, 16, 16};
    struct edge x = placeholder("x", &SHAPE(6, 9, 9, 16));
    struct edge filter = constant("filter", &SHAPE(3, 3, 16, 16));
    struct edge conv =
        builder_add(&b, "Conv2D", "conv", INPUTS(x, filter),
                    ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    struct edge relu = unary("Relu", binary("BiasAdd", conv, constant("b", &SHAPE(16))));
    builder_add(&b, "Conv2DBackpropInput", "image_grad",
                INPUTS(builder_ints(&b, "sizes", I32, sizes, 4), filter, relu),
                ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    builder_add(&b, "Conv2DBackpropFilter", "filter_grad",
                INPUTS(x, builder_ints(&b, "filter_sizes", I32, filter_sizes, 4), relu),
                ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    const char *fetches[] = {relu.from->name, "image_grad", "filter_grad"};
    struct tensor feed, with[3], without[3];
    fill(&feed, &SHAPE(6, 9, 9, 16));
    const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                      .feed_values = &feed,
                                      .feeds_count = 1,
                                      .fetches = fetches,
                                      .fetches_count = 3},
                              .runs = 2,
                              .tolerance = 2e-3f};
    check_same(&what);
    run_with(&what, 0, 1, with);
    run_with(&what, OPTIMISE_BIT(OPTIMISE_WINOGRAD), 1, without);
    for (int i = 0; i < 3; i++) {
        CHECK(!tensor_equal(&with[i], &without[i])); /* it was computed in another way */
        tensor_release(&with[i]);
        tensor_release(&without[i]);
    }
    tensor_release(&feed);
    graph_free(graph);
}

/* --- arithmetic --- */

static struct edge permuted(struct edge x, int a, int c, int d)
{
    const int64_t places[] = {a, c, d};
    return builder_add(&b, "Transpose", "transpose",
                       INPUTS(x, builder_ints(&b, "places", I32, places, 3)), NO_ATTRS);
}

static struct edge reshaped(struct edge x, int64_t rows, int64_t columns)
{
    const int64_t dims[] = {rows, columns};
    return builder_add(&b, "Reshape", "reshape",
                       INPUTS(x, builder_ints(&b, "dims", I32, dims, 2)), NO_ATTRS);
}

static struct edge cast(struct edge x, int to)
{
    return builder_add(
        &b, "Cast", "cast", INPUTS(x),
        ATTRS(attr_type("SrcT", x.from->output_types[0]), attr_type("DstT", to)));
}

/* How many nodes are left of what `rule` makes of x (2,3,4), besides x. */
static void check_rule(struct edge (*rule)(struct edge x), int nodes, float minus_zero)
{
    begin();
    seed = 2;
    struct edge x = placeholder("x", &SHAPE(2, 3, 4));
    struct edge y = rule(x);
    const char *fetch = y.from->name;
    struct tensor feed;
    fill(&feed, &SHAPE(2, 3, 4));
    tensor_f32_mut(&feed)[0] = minus_zero;
    tensor_f32_mut(&feed)[1] = NAN;
    tensor_f32_mut(&feed)[2] = -INFINITY;
    const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                      .feed_values = &feed,
                                      .feeds_count = 1,
                                      .fetches = &fetch,
                                      .fetches_count = 1},
                              .runs = 2};
    struct session *session = open_session(0, 1);
    CHECK_INT(count_op(session, &what.run, ""), 1 + nodes);
    session_free(session);
    check_same(&what);
    tensor_release(&feed);
    graph_free(graph);
}

static struct edge scalar(double value)
{
    return builder_scalar(&b, "scalar", F32, value);
}
static struct edge rule_mul(struct edge x)
{
    return binary("Mul", scalar(1), binary("Mul", x, scalar(1)));
}
static struct edge rule_div(struct edge x)
{
    return binary("Sub", binary("RealDiv", x, scalar(1)), scalar(0));
}
static struct edge rule_add_of_floats(struct edge x)
{
    return binary("AddV2", x, scalar(0)); /* stays: 0 + -0 is 0 */
}
static struct edge rule_neg(struct edge x)
{
    return unary("Neg", unary("Neg", unary("Neg", unary("Neg", x))));
}
static struct edge rule_cast(struct edge x)
{
    return cast(cast(cast(x, F64), F32), F32);
}
static struct edge rule_cast_with_loss(struct edge x)
{
    return cast(cast(x, BF16), F32); /* stays */
}
static struct edge rule_transpose(struct edge x)
{
    return permuted(permuted(permuted(x, 1, 2, 0), 2, 0, 1), 0, 1, 2);
}
static struct edge rule_transpose_once(struct edge x)
{
    return permuted(permuted(x, 2, 0, 1), 0, 2, 1);
}
static struct edge rule_reshape(struct edge x)
{
    return reshaped(reshaped(reshaped(x, 6, 4), -1, 3), 4, 6);
}
static struct edge rule_reshape_to_itself(struct edge x)
{
    struct edge y = reshaped(x, 6, 4);
    return unary("Neg", reshaped(y, -1, 4));
}
static struct edge rule_add_n(struct edge x)
{
    return builder_add(&b, "AddN", "sum", INPUTS(x), ATTRS(attr_int("N", 1)));
}

TEST(arithmetic_that_changes_nothing_is_not_done)
{
    check_rule(rule_mul, 0, -0.0f);
    check_rule(rule_div, 0, -0.0f);
    check_rule(rule_add_of_floats, 2, -0.0f);
    check_rule(rule_neg, 0, -0.0f);
    check_rule(rule_cast, 0, -0.0f);
    check_rule(rule_cast_with_loss, 2, -0.0f);
    check_rule(rule_transpose, 0, 1);
    check_rule(rule_transpose_once, 2, 1);
    check_rule(rule_reshape, 2, 1);
    check_rule(rule_reshape_to_itself, 3, 1);
    check_rule(rule_add_n, 0, 1);
}

TEST(a_fused_node_tells_what_it_stands_for)
{
    begin();
    struct edge y = unary("Neg", unary("Exp", placeholder("x", &SHAPE(4))));
    struct session *session = open_session(0, 1);
    const struct session_run run = {.feeds = (const char *const[]){"x"},
                                    .feeds_count = 1,
                                    .fetches = &y.from->name,
                                    .fetches_count = 1};
    struct callable *callable = session_prepare(session, &run, &err);
    CHECK(callable);
    struct str json = {0};
    session_explain_placement(session, callable, &json);
    CHECK(strstr(str_text(&json), "{\"node\":\"Neg\",\"op\":\"_Elementwise\","
                                  "\"stands_for\":[\"Exp\",\"Neg\"],\"device\":"));
    str_release(&json);
    session_free(session);
    graph_free(graph);
}

TEST(names_of_passes_are_read_back)
{
    uint32_t set = 0;
    for (int i = 0; i < OPTIMISE_PASSES; i++)
        CHECK_INT(optimise_find(optimise_name(i)), i);
    CHECK_INT(optimise_find("no_such_pass"), -1);
    CHECK(optimise_parse("fold,chain", &set));
    CHECK_INT(set, OPTIMISE_BIT(OPTIMISE_FOLD) | OPTIMISE_BIT(OPTIMISE_CHAIN));
    CHECK(!optimise_parse("fold,nonsense", &set));
}
