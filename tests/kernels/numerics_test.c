/* numerics_test.c - a checked run fails where the first NaN or infinity is made, and says why.
 */

#include <math.h>

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

/* Runs `fetch` with x = values; whether it succeeded. */
static bool run(const char *fetch, bool check, bool optimise, const float *values,
                int64_t count)
{
    const struct session_options options = {
        .threads = 1, .check_numerics = check, .no_optimise = !optimise};
    struct session *session = session_new(&options, &err);
    if (!builder_ok(&b))
        CHECK_STOP("%s", err.text);
    CHECK_OK(session_extend_graph(session, graph, &err), &err);
    struct tensor x, result;
    CHECK_OK(tensor_init_copy(&x, F32, &SHAPE(count), values, &err), &err);
    const struct session_run what = {.feeds = (const char *const[]){"x"},
                                     .feed_values = &x,
                                     .feeds_count = 1,
                                     .fetches = &fetch,
                                     .fetches_count = 1};
    bool ok = true;
    for (int i = 0; ok && i < 3; i++) { /* measured, then planned memory, then in place */
        ok = session_run(session, &what, &result, &err);
        if (ok)
            tensor_release(&result);
    }
    tensor_release(&x);
    session_free(session);
    return ok;
}

static struct edge placeholder(void)
{
    return builder_add(&b, "Placeholder", "x", NO_INPUTS, ATTRS(attr_type("dtype", F32)));
}

static void check_says(const char *text)
{
    if (!strstr(err.text, text))
        CHECK_STOP("'%s' is not in '%s'", text, err.text);
}

TEST(the_first_infinity_is_named_with_its_inputs)
{
    begin();
    struct edge x = placeholder();
    struct edge y = builder_add(&b, "Exp", "layer/exp", INPUTS(x), NO_ATTRS);
    struct edge z = builder_add(&b, "Mul", "layer/mul", INPUTS(y, y), NO_ATTRS);
    builder_add(&b, "Sum", "total", INPUTS(z, builder_ints(&b, "axis", I32, (int64_t[]){0}, 1)),
                NO_ATTRS);
    const float good[] = {1, 2, 3}, bad[] = {-1, 2, 60};
    CHECK_OK(run("total", true, false, good, 3), &err);
    CHECK_OK(run("total", false, false, bad, 3), &err);
    CHECK(!run("total", true, false, bad, 3));
    CHECK_INT(err.code, INVALID);
    CHECK_TEXT(err.pointer, "/train/check_numerics");
    check_says("node 'layer/mul' (Mul): output 0, float[3], has 0 NaN and 1 infinite of 3");
    check_says("'layer/exp' float[3] from 0.367879 to 1.142");
    /* Fused, the chain is named by its last node, and the range is that of what came in. */
    CHECK(!run("total", true, true, bad, 3));
    check_says("node 'layer/mul' (_Elementwise): output 0, float[3], has 0 NaN and 1 infinite");
    check_says("'x' float[3] from -1 to 60");
    graph_free(graph);
}

TEST(ranges_are_those_before_an_op_worked_in_place)
{
    begin();
    struct edge x = placeholder();
    struct edge y = builder_add(&b, "Square", "square", INPUTS(x), NO_ATTRS);
    struct edge z = builder_add(&b, "Log", "log", INPUTS(y), NO_ATTRS);
    builder_add(&b, "Sum", "total", INPUTS(z, builder_ints(&b, "axis", I32, (int64_t[]){0}, 1)),
                NO_ATTRS);
    float values[40] = {0, 2};
    for (int i = 2; i < 40; i++)
        values[i] = 2;
    CHECK(!run("total", true, false, values, 40));
    check_says("node 'log' (Log)");
    check_says("has 0 NaN and 1 infinite of 40");
    check_says("'square' float[40] from 0 to 4");
    graph_free(graph);
}

TEST(what_came_in_with_nan_is_said_to_have_it)
{
    begin();
    builder_add(&b, "Mul", "y", INPUTS(placeholder(), builder_scalar(&b, "two", F32, 2)),
                NO_ATTRS);
    const float values[] = {1, NAN, 3};
    CHECK(!run("y", true, true, values, 3));
    check_says("has 1 NaN and 0 infinite of 3");
    check_says("'x' float[3] has NaN; 'two' float[] is 2");
    graph_free(graph);
}
