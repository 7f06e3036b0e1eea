/* place_cost_test.c - nodes without a wish, placed by what a step costs. */

#include <math.h>

#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/cost.h"
#include "runtime/internal.h"
#include "runtime/place_cost.h"
#include "runtime/shapes.h"
#include "tests/unit/test.h"

enum { DEVICES = 3, NODES = 60 };

static struct error err;
static struct builder b;
static struct device devices[DEVICES];

static bool run_nothing(struct kernel_call *call, struct error *error)
{
    (void)call;
    (void)error;
    return true;
}

static const struct kernel *const kernels[] = {
    &(const struct kernel){.op = "MatMul", .run = run_nothing},
    &(const struct kernel){.op = "AddV2", .run = run_nothing},
    NULL,
};

static struct graph *begin(void)
{
    static bool added;
    if (!added)
        kernel_add_table(kernels);
    added = true;
    for (int i = 0; i < DEVICES; i++) {
        snprintf(devices[i].name, sizeof(devices[i].name),
                 "/job:worker/replica:0/task:%d/device:CPU:0", i);
        CHECK_OK(device_name_parse(devices[i].name, &devices[i].parts, &err), &err);
    }
    b = (struct builder){.graph = graph_new(), .scope = "", .err = &err};
    return b.graph;
}

/* A square that is fed on the first task. */
static struct edge square(int64_t size)
{
    b.device = devices[0].name;
    struct edge x =
        builder_add(&b, "Placeholder", "x", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(size, size))));
    b.device = NULL;
    return x;
}

static struct edge binary(const char *op, struct edge x, struct edge y)
{
    return builder_add(&b, op, op, INPUTS(x, y), NO_ATTRS);
}

static struct placement place(struct graph *graph, const struct cost_model *costs)
{
    struct placement placement;
    CHECK_OK(place_graph_over(graph, devices, DEVICES, &(struct place_options){.costs = costs},
                              &placement, &err),
             &err);
    return placement;
}

/* Two long products go to two tasks; what is soon done would travel for longer than it takes.
 */
TEST(only_what_is_worth_the_way_goes_elsewhere)
{
    for (int large = 0; large < 2; large++) {
        struct cost_model *costs = cost_model_new();
        struct graph *graph = begin();
        struct edge x = square(large ? 1000 : 10);
        struct edge left = binary("MatMul", x, x), right = binary("MatMul", x, x);
        struct edge sum = binary("AddV2", left, right);
        struct placement placement = place(graph, costs);
        CHECK((left.from->device != right.from->device) == large);
        CHECK(left.from->device == &devices[0]);
        CHECK(sum.from->device == left.from->device || sum.from->device == right.from->device);
        struct str json = {0};
        place_explain(&placement, right.from, &json);
        CHECK(strstr(json.data, "done soonest"));
        CHECK(strstr(json.data, "it would be done later"));
        CHECK(strstr(json.data, "\"done_us\":"));
        str_release(&json);
        place_release(&placement);
        graph_free(graph);
        cost_model_free(costs);
    }
}

/* What was measured counts for more than what was expected. */
TEST(measured_times_correct_the_costs)
{
    struct cost_model *costs = cost_model_new();
    struct graph *graph = begin();
    struct edge x = square(1000);
    struct edge left = binary("MatMul", x, x), right = binary("MatMul", x, x);
    struct placement placement = place(graph, costs);
    CHECK(left.from->device != right.from->device);
    place_release(&placement);
    struct shapes shapes = {0};
    CHECK_OK(shapes_extend(&shapes, graph, &err), &err);
    CHECK(cost_of(left.from, &shapes) > 1000);
    cost_model_measured(costs, left.from, &shapes, 10);
    cost_model_measured(costs, right.from, &shapes, 30);
    CHECK(fabs(cost_model_of(costs, left.from, &shapes) - 20) < 0.01);
    placement = place(graph, costs);
    CHECK(left.from->device == right.from->device);
    place_release(&placement);
    shapes_release(&shapes);
    graph_free(graph);
    cost_model_free(costs);
}

/* A graph by chance: products of two sizes and sums, a few of them pinned. */
static void fill(unsigned seed)
{
    struct edge made[NODES] = {square(300), square(300)};
    for (int i = 2; i < NODES; i++) {
        struct edge x = made[rand_r(&seed) % i], y = made[rand_r(&seed) % i];
        unsigned chance = (unsigned)rand_r(&seed) % 10;
        b.device = chance < 2 ? devices[rand_r(&seed) % DEVICES].name : NULL;
        made[i] = binary(chance % 2 ? "MatMul" : "AddV2", x, y);
    }
}

static double makespan_of(struct graph *graph, const struct cost_model *costs)
{
    int *order = graph_sorted(graph, &err);
    CHECK_OK(order, &err);
    struct place_simulation *simulation = place_cost_new(graph, order, devices, DEVICES, costs);
    for (int i = 0; i < graph_count(graph); i++)
        place_cost_put(simulation, graph_node(graph, order[i]),
                       graph_node(graph, order[i])->device);
    double us = place_cost_end(simulation);
    place_cost_free(simulation);
    free(order);
    return us;
}

/* The same graph and costs, the same devices; and no step longer than on the first devices. */
TEST(placement_by_cost_is_the_same_each_time_and_never_worse)
{
    double plain_us = 0, by_cost_us = 0;
    for (unsigned seed = 0; seed < 200; seed++) {
        struct cost_model *costs = cost_model_new();
        struct graph *graph = begin();
        const struct device *first[NODES];
        fill(seed);
        struct placement placement = place(graph, NULL);
        double plain = makespan_of(graph, costs);
        place_release(&placement);
        for (int round = 0; round < 2; round++) {
            placement = place(graph, costs);
            CHECK(placement.makespan_us <= plain);
            CHECK(fabs(placement.makespan_us - makespan_of(graph, costs)) < 1e-6 * plain);
            for (int i = 0; i < NODES; i++) {
                const struct device *device = graph_node(graph, i)->device;
                CHECK(!round || first[i] == device);
                first[i] = device;
            }
            by_cost_us += round ? 0 : placement.makespan_us;
            place_release(&placement);
        }
        plain_us += plain;
        graph_free(graph);
        cost_model_free(costs);
    }
    if (by_cost_us > 0.95 * plain_us)
        CHECK_STOP("%.0f us by cost, %.0f on the first devices", by_cost_us, plain_us);
}
