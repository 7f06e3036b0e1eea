/* place_test.c - devices for nodes, and why: with several devices, as a larger machine has. */

#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/internal.h"
#include "tests/unit/test.h"

static struct error err;
static struct graph *graph;
static struct builder b;
static struct device devices[3];

static bool run_nothing(struct kernel_call *call, struct error *error)
{
    (void)call;
    (void)error;
    return true;
}

static const struct kernel *const kernels[] = {
    &(const struct kernel){.op = "Identity", .run = run_nothing},
    &(const struct kernel){.op = "Identity", .device = GPU, .run = run_nothing},
    &(const struct kernel){.op = "VariableV2", .run = run_nothing},
    &(const struct kernel){.op = "VariableV2", .device = GPU, .run = run_nothing},
    &(const struct kernel){.op = "Assign", .run = run_nothing},
    &(const struct kernel){.op = "Neg", .dtypes = BIT(F32), .device = GPU, .run = run_nothing},
    NULL,
};

static void begin(void)
{
    static const char *const names[] = {"/job:localhost/replica:0/task:0/device:GPU:1",
                                        "/job:localhost/replica:0/task:0/device:CPU:0",
                                        "/job:localhost/replica:0/task:0/device:GPU:0"};
    static bool added;
    if (!added)
        kernel_add_table(kernels);
    added = true;
    for (int i = 0; i < 3; i++) {
        snprintf(devices[i].name, sizeof(devices[i].name), "%s", names[i]);
        devices[i].type = i == 1 ? CPU : GPU;
        CHECK_OK(device_name_parse(names[i], &devices[i].parts, &err), &err);
    }
    graph = graph_new();
    b = (struct builder){.graph = graph, .scope = "", .err = &err};
}

static struct edge identity(const char *name, struct edge x)
{
    return builder_add(&b, "Identity", name, INPUTS(x), NO_ATTRS);
}

static struct edge variable(const char *name)
{
    return builder_add(&b, "VariableV2", name, NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(3))));
}

static const char *device_of(struct edge edge)
{
    return strstr(edge.from->device->name, "device:");
}

TEST(without_a_wish_the_first_by_type_and_name_is_taken)
{
    begin();
    struct edge c = builder_scalar(&b, "c", F32, 1);
    struct edge i = identity("i", c);
    b.device = "/cpu:0";
    struct edge on_cpu = identity("on_cpu", c);
    b.device = "/device:GPU:1";
    struct edge on_gpu = identity("on_gpu", c);
    struct placement placement;
    CHECK_OK(place_graph(graph, devices, 3, &placement, &err), &err);
    CHECK_TEXT(device_of(i), "device:GPU:0");
    CHECK_TEXT(device_of(on_cpu), "device:CPU:0");
    CHECK_TEXT(device_of(on_gpu), "device:GPU:1");
    struct str json = {0};
    place_explain(&placement, i.from, &json);
    CHECK(strstr(json.data, "first of several"));
    place_explain(&placement, on_cpu.from, &json);
    CHECK(strstr(json.data, "requested: /cpu:0"));
    CHECK(strstr(json.data, "not what was requested"));
    str_release(&json);
    place_release(&placement);
    graph_free(graph);
}

/* Assign has a CPU kernel alone, so the variable and all that hold it are there. */
TEST(what_shares_a_variable_stays_together)
{
    begin();
    struct edge v = variable("v");
    struct edge assign = builder_add(&b, "Assign", "assign",
                                     INPUTS(v, builder_scalar(&b, "c", F32, 1)), NO_ATTRS);
    struct edge read = identity("read", v);
    struct edge free_one = variable("free");
    struct placement placement;
    CHECK_OK(place_graph(graph, devices, 3, &placement, &err), &err);
    CHECK_TEXT(device_of(v), "device:CPU:0");
    CHECK_TEXT(device_of(assign), "device:CPU:0");
    CHECK_TEXT(device_of(read), "device:GPU:0"); /* takes the value alone */
    CHECK_TEXT(device_of(free_one), "device:GPU:0");
    struct str json = {0};
    place_explain(&placement, assign.from, &json);
    CHECK(strstr(json.data, "must be with 'v'"));
    str_release(&json);
    place_release(&placement);
    graph_free(graph);
}

TEST(who_asks_to_be_with_another_is)
{
    begin();
    struct edge c = builder_scalar(&b, "c", F32, 1);
    struct edge i = identity("i", c);
    b.device = "/cpu:0";
    const struct attr_bytes class = {"loc:@i", 6};
    const struct attr list = {
        .name = "_class", .kind = ATTR_STRING, .is_list = true, .count = 1, .strings = &class};
    struct edge with = builder_add(&b, "Identity", "with", INPUTS(c), ATTRS(list));
    struct placement placement;
    CHECK_OK(place_graph(graph, devices, 3, &placement, &err), &err);
    CHECK_TEXT(device_of(i), "device:CPU:0");
    CHECK_TEXT(device_of(with), "device:CPU:0");
    place_release(&placement);
    graph_free(graph);
}

TEST(wishes_that_cannot_be_met_are_refused)
{
    struct placement placement;
    begin();
    b.device = "/device:CPU:0";
    builder_add(&b, "Neg", "neg", INPUTS(builder_scalar(&b, "c", F32, 1)), NO_ATTRS);
    CHECK_FAILS(place_graph(graph, devices, 3, &placement, &err), &err, INVALID);
    CHECK(strstr(err.text, "neg"));
    graph_free(graph);

    begin();
    b.device = "/device:GPU:0";
    struct edge v = variable("v");
    b.device = "/device:GPU:1";
    const struct attr_bytes class = {"loc:@v", 6};
    const struct attr list = {
        .name = "_class", .kind = ATTR_STRING, .is_list = true, .count = 1, .strings = &class};
    builder_add(&b, "Identity", "read", INPUTS(v), ATTRS(list));
    CHECK_FAILS(place_graph(graph, devices, 3, &placement, &err), &err, INVALID);
    CHECK(strstr(err.text, "Cannot colocate"));
    graph_free(graph);

    begin();
    b.device = "/device:TPU:0";
    builder_scalar(&b, "lost", F32, 1);
    CHECK_FAILS(place_graph(graph, devices, 3, &placement, &err), &err, INVALID);
    CHECK(strstr(err.text,
                 "{{node lost}} was explicitly assigned to /device:TPU:0 but "
                 "available devices are [ /job:localhost/replica:0/task:0/device:CPU:0, "
                 "/job:localhost"));
    graph_free(graph);
}

/* What takes a reference goes where its variable is, whatever it asked for itself. */
TEST(readers_of_a_reference_follow_it)
{
    begin();
    b.device = "/device:CPU:0";
    struct edge v = variable("v");
    b.device = "/device:GPU:0";
    struct edge assign = builder_add(&b, "Assign", "assign",
                                     INPUTS(v, builder_scalar(&b, "c", F32, 1)), NO_ATTRS);
    struct placement placement;
    CHECK_OK(place_graph(graph, devices, 3, &placement, &err), &err);
    CHECK_TEXT(device_of(assign), "device:CPU:0");
    place_release(&placement);
    graph_free(graph);
}

TEST(soft_wishes_keep_only_their_task)
{
    begin();
    b.device = "/task:0/device:GPU:7";
    struct edge far = identity("far", builder_scalar(&b, "c", F32, 1));
    struct placement placement;
    CHECK_OK(place_graph_over(graph, devices, 3, &(struct place_options){.soft = true},
                              &placement, &err),
             &err);
    CHECK_TEXT(device_of(far), "device:GPU:0");
    place_release(&placement);
    graph_free(graph);
}

/* A node that has its place keeps it when the graph grows, and others join it. */
TEST(what_is_placed_stays)
{
    const struct place_options keep = {.keep = true};
    struct placement placement;
    begin();
    struct edge v = variable("v");
    CHECK_OK(place_graph_over(graph, devices, 3, &keep, &placement, &err), &err);
    CHECK_TEXT(device_of(v), "device:GPU:0");
    place_release(&placement);
    builder_add(&b, "Assign", "assign", INPUTS(v, builder_scalar(&b, "c", F32, 1)), NO_ATTRS);
    CHECK_FAILS(place_graph_over(graph, devices, 3, &keep, &placement, &err), &err, INVALID);
    graph_truncate(graph, 1);
    b.device = "/device:GPU:1";
    struct edge read = identity("read", v);
    CHECK_OK(place_graph_over(graph, devices, 3, &keep, &placement, &err), &err);
    CHECK_TEXT(device_of(v), "device:GPU:0");
    CHECK_TEXT(device_of(read), "device:GPU:1");
    place_release(&placement);
    graph_free(graph);
}
