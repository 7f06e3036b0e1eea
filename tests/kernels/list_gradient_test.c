/*
 * list_gradient_test.c - gradients through tensor arrays and lists, in double, against finite
 * differences.  Handles cannot be varied, so each trial puts a matrix in and takes it out
 * again.
 */

#include <math.h>

#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/gradient.h"
#include "runtime/session.h"
#include "tests/unit/test.h"

#define STEP 1e-5
#define ELEMENT attr_type("element_dtype", F64)
#define T_OF attr_type("T", F64)

static struct edge ints(struct builder *b, enum dtype dtype, int count, const int64_t *values)
{
    return builder_ints(b, "ints", dtype, values, count);
}
#define I32S(...) ints(b, I32, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})
#define I64S(...) ints(b, I64, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static struct edge number(struct builder *b, int value)
{
    return builder_scalar(b, "number", I32, value);
}

/* --- trials: x is [3,2] --- */

typedef struct edge make_trial(struct builder *b, struct edge x);

static struct edge array(struct builder *b)
{
    return builder_add(b, "TensorArrayV3", "array", INPUTS(number(b, 3)),
                       ATTRS(attr_type("dtype", F64), attr_bool("clear_after_read", false)));
}

static struct edge array_scatter_gather(struct builder *b, struct edge x)
{
    struct edge a = array(b), flow = builder_output(a, 1);
    flow = builder_add(b, "TensorArrayScatterV3", "put", INPUTS(a, I32S(2, 0, 1), x, flow),
                       ATTRS(T_OF));
    return builder_add(b, "TensorArrayGatherV3", "get", INPUTS(a, I32S(0, 1, 0), flow),
                       ATTRS(attr_type("dtype", F64)));
}

static struct edge array_split_concat(struct builder *b, struct edge x)
{
    struct edge a = array(b), flow = builder_output(a, 1);
    flow = builder_add(b, "TensorArraySplitV3", "put", INPUTS(a, x, I64S(1, 0, 2), flow),
                       ATTRS(T_OF));
    return builder_add(b, "TensorArrayConcatV3", "get", INPUTS(a, flow),
                       ATTRS(attr_type("dtype", F64)));
}

static struct edge array_write_read(struct builder *b, struct edge x)
{
    struct edge a = array(b), flow = builder_output(a, 1);
    flow = builder_add(b, "TensorArrayWriteV3", "put", INPUTS(a, number(b, 1), x, flow),
                       ATTRS(T_OF));
    return builder_add(b, "TensorArrayReadV3", "get", INPUTS(a, number(b, 1), flow),
                       ATTRS(attr_type("dtype", F64)));
}

/* Of two components, only one of which a gradient reads. */
static struct edge optional_once(struct builder *b, struct edge x)
{
    static const int types[] = {F64, I32};
    const struct shape unknown[] = {SHAPE_UNKNOWN, SHAPE_UNKNOWN};
    const struct attr shapes = {.name = "output_shapes",
                                .kind = ATTR_SHAPE,
                                .is_list = true,
                                .count = 2,
                                .shapes = unknown};
    struct edge optional = builder_add(b, "OptionalFromValue", "put", INPUTS(x, number(b, 1)),
                                       ATTRS(attr_type_list("Toutput_types", types, 2)));
    return builder_add(b, "OptionalGetValue", "get", INPUTS(optional),
                       ATTRS(attr_type_list("output_types", types, 2), shapes));
}

/* Two readers: their gradients, optionals, are added. */
static struct edge optional_twice(struct builder *b, struct edge x)
{
    struct edge first = optional_once(b, x), optional = first.from->inputs[0];
    const struct edge inputs[] = {optional};
    struct edge second = builder_add(b, "OptionalGetValue", "again", inputs, 1,
                                     ATTRS(first.from->attrs[0], first.from->attrs[1]));
    return builder_add(b, "Mul", "product", INPUTS(first, second), NO_ATTRS);
}

static struct edge from_tensor(struct builder *b, struct edge x)
{
    return builder_add(b, "TensorListFromTensor", "list", INPUTS(x, I32S(2)), ATTRS(ELEMENT));
}

static struct edge stack(struct builder *b, struct edge list)
{
    return builder_add(b, "TensorListStack", "stack", INPUTS(list, I32S(2)), ATTRS(ELEMENT));
}

static struct edge list_stack(struct builder *b, struct edge x)
{
    return stack(b, from_tensor(b, x));
}

static struct edge list_push_pop(struct builder *b, struct edge x)
{
    struct edge list = builder_add(b, "EmptyTensorList", "empty",
                                   INPUTS(I32S(3, 2), number(b, -1)), ATTRS(ELEMENT));
    list = builder_add(b, "TensorListPushBack", "push", INPUTS(list, x), ATTRS(ELEMENT));
    struct edge square = builder_add(b, "Square", "square", INPUTS(x), NO_ATTRS);
    list = builder_add(b, "TensorListPushBack", "push", INPUTS(list, square), ATTRS(ELEMENT));
    struct edge last =
        builder_add(b, "TensorListPopBack", "pop", INPUTS(list, I32S(3, 2)), ATTRS(ELEMENT));
    struct edge first =
        builder_add(b, "TensorListPopBack", "pop", INPUTS(last, I32S(3, 2)), ATTRS(ELEMENT));
    return builder_add(b, "Mul", "mul",
                       INPUTS(builder_output(first, 1), builder_output(last, 1)), NO_ATTRS);
}

static struct edge list_set_get(struct builder *b, struct edge x)
{
    struct edge list = builder_add(b, "TensorListReserve", "reserve",
                                   INPUTS(I32S(3, 2), number(b, 3)), ATTRS(ELEMENT));
    list = builder_add(b, "TensorListSetItem", "set", INPUTS(list, number(b, 1), x),
                       ATTRS(ELEMENT));
    return builder_add(b, "TensorListGetItem", "get", INPUTS(list, number(b, 1), I32S(3, 2)),
                       ATTRS(ELEMENT));
}

/* Each place once: of places taken twice TensorFlow's gradient keeps one, and ours with it. */
static struct edge list_resize_gather(struct builder *b, struct edge x)
{
    struct edge list = builder_add(b, "TensorListResize", "resize",
                                   INPUTS(from_tensor(b, x), number(b, 5)), NO_ATTRS);
    return builder_add(b, "TensorListGather", "gather", INPUTS(list, I32S(2, 4, 0), I32S(2)),
                       ATTRS(ELEMENT));
}

static struct edge list_scatter(struct builder *b, struct edge x)
{
    return stack(b, builder_add(b, "TensorListScatter", "scatter",
                                INPUTS(x, I32S(2, 0, 1), I32S(2)), ATTRS(ELEMENT)));
}

static struct edge list_scatter_v2(struct builder *b, struct edge x)
{
    return stack(b,
                 builder_add(b, "TensorListScatterV2", "scatter",
                             INPUTS(x, I32S(3, 0, 1), I32S(2), number(b, 5)), ATTRS(ELEMENT)));
}

static struct edge list_scatter_into(struct builder *b, struct edge x)
{
    struct edge doubled = builder_add(b, "AddV2", "add", INPUTS(x, x), NO_ATTRS);
    struct edge list = builder_add(b, "TensorListResize", "resize",
                                   INPUTS(from_tensor(b, x), number(b, 5)), NO_ATTRS);
    return stack(b, builder_add(b, "TensorListScatterIntoExistingList", "scatter",
                                INPUTS(list, doubled, I32S(1, 4, 3)), ATTRS(ELEMENT)));
}

static struct edge split(struct builder *b, struct edge x)
{
    return builder_add(b, "TensorListSplit", "split", INPUTS(x, I32S(-1, 2), I64S(1, 2)),
                       ATTRS(ELEMENT));
}

static struct edge list_concat(struct builder *b, struct edge x)
{
    return builder_add(b, "TensorListConcat", "concat", INPUTS(split(b, x)),
                       ATTRS(ELEMENT, attr_shape("element_shape", &SHAPE(-1, 2))));
}

static struct edge list_concat_v2(struct builder *b, struct edge x)
{
    return builder_add(b, "TensorListConcatV2", "concat",
                       INPUTS(split(b, x), I32S(-1, 2), I64S(1, 2)), ATTRS(ELEMENT));
}

/* --- checking --- */

static double run(struct session *session, const double *x, const char *fetch, double *all)
{
    struct error err;
    struct tensor in, out;
    const char *feed = "x";
    CHECK_OK(tensor_init_copy(&in, F64, &SHAPE(3, 2), x, &err), &err);
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1};
    CHECK_OK(session_run(session, &run, &out, &err), &err);
    double first = tensor_number(&out, 0);
    if (all) {
        CHECK_INT(out.count, 6);
        memcpy(all, out.data, 6 * sizeof(double));
    }
    tensor_release(&in);
    tensor_release(&out);
    return first;
}

/* The loss weights squares of all results by their places, so that each counts otherwise. */
static void check(make_trial *make)
{
    struct error err = {0};
    struct graph *graph = graph_new();
    struct builder build = {.graph = graph, .scope = "", .err = &err}, *b = &build;
    struct edge x =
        builder_add(b, "Placeholder", "x", NO_INPUTS, ATTRS(attr_type("dtype", F64)));
    struct edge y = make(b, x);
    struct edge flat = builder_add(b, "Reshape", "flat", INPUTS(y, I32S(-1)), NO_ATTRS);
    struct edge square = builder_add(b, "Square", "square", INPUTS(flat), NO_ATTRS);
    struct edge sums = builder_add(b, "Cumsum", "sums", INPUTS(square, number(b, 0)), NO_ATTRS);
    struct edge loss = builder_add(b, "Sum", "loss", INPUTS(sums, I32S(0)), NO_ATTRS), grad;
    CHECK_OK(builder_ok(b), &err);
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, &x, 1, &grad, &err), &err);
    CHECK(grad.from != NULL);
    struct session *session = session_new(NULL, &err);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    char name[300];
    snprintf(name, sizeof(name), "%s:%d", grad.from->name, grad.output);
    double at[6] = {0.3, -0.7, 1.1, 0.2, -0.4, 0.9}, own[6];
    run(session, at, name, own);
    for (int i = 0; i < 6; i++) {
        double kept = at[i];
        at[i] = kept + STEP;
        double high = run(session, at, "loss:0", NULL);
        at[i] = kept - STEP;
        double slope = (high - run(session, at, "loss:0", NULL)) / (2 * STEP);
        at[i] = kept;
        if (!(fabs(own[i] - slope) <= 1e-6 * (1 + fabs(slope))))
            CHECK_STOP("[%d] is %.9g, the difference quotient %.9g", i, own[i], slope);
    }
    session_free(session);
    graph_free(graph);
}

TEST(tensor_arrays)
{
    kernels_add(true);
    check(array_scatter_gather);
    check(array_split_concat);
    check(array_write_read);
}

TEST(lists_of_rows)
{
    check(list_stack);
    check(list_push_pop);
    check(list_set_get);
    check(list_resize_gather);
}

TEST(lists_scattered)
{
    check(list_scatter);
    check(list_scatter_v2);
    check(list_scatter_into);
}

TEST(optionals)
{
    check(optional_once);
    check(optional_twice);
}

TEST(lists_split)
{
    check(list_concat);
    check(list_concat_v2);
}
