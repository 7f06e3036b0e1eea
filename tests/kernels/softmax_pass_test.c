/* softmax_pass_test.c - losses of a softmax as programs write them, with their gradients: one
 * node for each, and the same bits. */

#include "runtime/gradient.h"
#include "tests/kernels/passes.h"

enum form {
    LOG_OF_SOFTMAX,
    LOG_SOFTMAX,
    ENTROPY, /* labels that are the softmax itself */
    DENSE,
    SPARSE,
};

static struct edge axis_last(void)
{
    const int64_t last = -1;
    return builder_ints(&b, "axis", I32, &last, 1);
}

/* Mean over rows of the loss of logits x; labels come from `y`. */
static struct edge loss_of(enum form form, struct edge x, struct edge y)
{
    struct edge rows;
    if (form == DENSE) {
        rows = binary("SoftmaxCrossEntropyWithLogits", x, y);
    } else if (form == SPARSE) {
        struct edge labels = builder_add(
            &b, "ArgMax", "labels", INPUTS(y, builder_scalar(&b, "one", I32, 1)), NO_ATTRS);
        rows = binary("SparseSoftmaxCrossEntropyWithLogits", x, labels);
    } else {
        struct edge softmax = form == LOG_SOFTMAX ? x : unary("Softmax", x);
        struct edge log = form == LOG_SOFTMAX ? unary("LogSoftmax", x) : unary("Log", softmax);
        struct edge product = binary("Mul", form == ENTROPY ? softmax : y, log);
        rows = unary("Neg", binary("Sum", product, axis_last()));
    }
    const int64_t none = 0;
    struct edge first = builder_ints(&b, "axis", I32, &none, 1);
    return binary("Mean", rows, first);
}

struct counts {
    const char *op;
    int with;
};

/* The loss alone, or with the gradient of the logits. */
static void check_form(enum form form, const struct shape *shape, float scale, bool gradient,
                       const struct counts *counts, int counts_count)
{
    begin();
    seed = 21;
    const struct shape open = SHAPE(-1, shape->dims[1]);
    struct edge x = placeholder("x", &open), y = placeholder("y", &open);
    struct edge loss = loss_of(form, unary("Neg", x), y), grad = {0};
    if (gradient && builder_ok(&b))
        CHECK_OK(gradient_build(graph, &loss, 1, NULL, &x, 1, &grad, &err), &err);
    const char *fetches[] = {loss.from->name, gradient ? grad.from->name : NULL};
    struct tensor feeds[2];
    fill(&feeds[0], shape);
    fill(&feeds[1], shape);
    for (int64_t i = 0; i < feeds[0].count; i++) {
        tensor_f32_mut(&feeds[0])[i] *= scale;
        tensor_f32_mut(&feeds[1])[i] = fabsf(tensor_f32(&feeds[1])[i]);
    }
    const struct what what = {.run = {.feeds = (const char *const[]){"x", "y"},
                                      .feed_values = feeds,
                                      .feeds_count = 2,
                                      .fetches = fetches,
                                      .fetches_count = gradient ? 2 : 1},
                              .runs = 2};
    for (int i = 0; i < counts_count; i++)
        check_count(&what, OPTIMISE_SOFTMAX, counts[i].op, counts[i].with, 0);
    check_same_without(&what, OPTIMISE_SOFTMAX, OPTIMISE_CHAIN + 1);
    tensor_release(&feeds[0]);
    tensor_release(&feeds[1]);
    graph_free(graph);
}

/* With logits of that size some softmaxes are 0, so that the loss is infinite or no number. */
static void check_shapes(enum form form, bool gradient, const struct counts *counts, int count)
{
    const struct shape shapes[] = {SHAPE(300, 37), SHAPE(1, 500), SHAPE(7, 1), SHAPE(0, 4),
                                   SHAPE(64, 10)};
    for (int i = 0; i < ARRAY_LEN(shapes); i++) {
        check_form(form, &shapes[i], 3, gradient, counts, count);
        check_form(form, &shapes[i], 200, gradient, counts, count);
    }
}

TEST(a_loss_by_the_logarithm_of_a_softmax_is_one_node)
{
    const struct counts loss[] = {{"_CrossEntropySum", 1}};
    const struct counts both[] = {{"_CrossEntropySum", 1}, {"_SoftmaxGrad", 1}};
    check_shapes(LOG_OF_SOFTMAX, false, loss, 1);
    check_shapes(LOG_OF_SOFTMAX, true, both, 2);
}

TEST(a_loss_by_log_softmax_is_one_node)
{
    const struct counts loss[] = {{"_CrossEntropySum", 1}};
    const struct counts both[] = {{"_CrossEntropySum", 1}, {"_LogSoftmaxGrad", 1}};
    check_shapes(LOG_SOFTMAX, false, loss, 1);
    check_shapes(LOG_SOFTMAX, true, both, 2);
}

TEST(an_entropy_does_not_wait_for_itself)
{
    const struct counts none[] = {{"_CrossEntropySum", 0}};
    check_shapes(ENTROPY, false, none, 1);
    check_shapes(ENTROPY, true, none, 1);
}

TEST(of_a_cross_entropy_only_what_is_read_is_computed)
{
    const struct counts one[] = {{"_SoftmaxLosses", 1}};
    check_shapes(DENSE, false, one, 1);
    check_shapes(SPARSE, false, one, 1);
    check_shapes(DENSE, true, one, 1);
    check_shapes(SPARSE, true, one, 1);
}

TEST(labels_of_another_shape_broadcast_as_before)
{
    const struct shape labels[] = {SHAPE(1, 9), SHAPE(5, 1), SHAPE_SCALAR, SHAPE(3, 1, 9)};
    for (int i = 0; i < ARRAY_LEN(labels); i++) {
        begin();
        seed = 4;
        struct edge x = placeholder("x", &SHAPE(5, 9));
        struct edge log = unary("Log", unary("Softmax", x));
        struct edge sum =
            builder_add(&b, "Sum", "sum",
                        INPUTS(binary("Mul", log, constant("labels", &labels[i])), axis_last()),
                        ATTRS(attr_bool("keep_dims", i % 2)));
        struct tensor feed;
        fill(&feed, &SHAPE(5, 9));
        const struct what what = {.run = {.feeds = (const char *const[]){"x"},
                                          .feed_values = &feed,
                                          .feeds_count = 1,
                                          .fetches = &sum.from->name,
                                          .fetches_count = 1},
                                  .runs = 2};
        check_count(&what, OPTIMISE_SOFTMAX, "_CrossEntropySum", 1, 0);
        check_same_without(&what, OPTIMISE_SOFTMAX, OPTIMISE_CHAIN + 1);
        tensor_release(&feed);
        graph_free(graph);
    }
}

/* One row of logits whose gradient is multiplied by several numbers. */
TEST(a_scale_may_have_more_rows_than_the_logits)
{
    begin();
    seed = 8;
    struct edge x = placeholder("x", &SHAPE(-1, 6));
    struct edge scale = placeholder("scale", &SHAPE(-1, 1));
    struct edge labels = unary("Square", constant("labels", &SHAPE(1, 6)));
    struct edge losses = binary("SoftmaxCrossEntropyWithLogits", x, labels);
    struct edge scaled = binary("Mul", builder_output(losses, 1), scale);
    const char *fetches[] = {losses.from->name, scaled.from->name};
    for (int rows = 0; rows < 4; rows++) {
        struct tensor feeds[2];
        fill(&feeds[0], &SHAPE(1, 6));
        fill(&feeds[1], &SHAPE(rows, 1));
        const struct what what = {.run = {.feeds = (const char *const[]){"x", "scale"},
                                          .feed_values = feeds,
                                          .feeds_count = 2,
                                          .fetches = fetches,
                                          .fetches_count = 2},
                                  .runs = 2};
        check_count(&what, OPTIMISE_SOFTMAX, "_SoftmaxLosses", 1, 0);
        check_same_without(&what, OPTIMISE_SOFTMAX, OPTIMISE_CHAIN + 1);
        tensor_release(&feeds[0]);
        tensor_release(&feeds[1]);
    }
    graph_free(graph);
}
