/* session_test.c - running graphs: signatures, memory, variables, errors, threads. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "tests/unit/runtime/kernels.h"
#include "tests/unit/test.h"

static struct error err;

/* A session and a builder whose nodes are added to it at begin(). */
struct world {
    struct graph *graph;
    struct builder b;
    struct session *session;
};

static struct world *world_new(void)
{
    static bool added;
    if (!added)
        kernel_add_table(kernels_for_tests);
    added = true;
    struct world *world = alloc_bytes(sizeof(*world));
    world->graph = graph_new();
    world->b = (struct builder){.graph = world->graph, .scope = "", .err = &err};
    world->session = session_new(&(struct session_options){.threads = 2}, &err);
    CHECK(world->session);
    return world;
}

static void begin(struct world *world)
{
    if (!builder_ok(&world->b))
        CHECK_STOP("%s", err.text);
    CHECK_OK(session_extend_graph(world->session, world->graph, &err), &err);
}

static void world_free(struct world *world)
{
    session_free(world->session);
    graph_free(world->graph);
    free(world);
}

static struct edge placeholder(struct world *world, const char *name)
{
    return builder_add(&world->b, "Placeholder", name, NO_INPUTS,
                       ATTRS(attr_type("dtype", F32)));
}

static struct edge unary(struct world *world, const char *op, const char *name, struct edge x)
{
    return builder_add(&world->b, op, name, INPUTS(x), NO_ATTRS);
}

static struct edge add(struct world *world, const char *name, struct edge x, struct edge y)
{
    return builder_add(&world->b, "AddV2", name, INPUTS(x, y), NO_ATTRS);
}

static struct tensor vector(float first, int count)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, F32, &SHAPE(count), &err), &err);
    for (int i = 0; i < count; i++)
        tensor_f32_mut(&tensor)[i] = first + (float)i;
    return tensor;
}

#define NAMES(...)                                                                             \
    (const char *const[]){__VA_ARGS__},                                                        \
        (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Feeds x, fetches one tensor and returns its element 0. */
static float run_one(struct world *world, const char *feed, const struct tensor *value,
                     const char *fetch)
{
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = value,
                                    .feeds_count = feed ? 1 : 0,
                                    .fetches = &fetch,
                                    .fetches_count = 1};
    struct tensor fetched;
    CHECK_OK(session_run(world->session, &run, &fetched, &err), &err);
    CHECK_INT(fetched.dtype, F32);
    float result = tensor_f32(&fetched)[0];
    tensor_release(&fetched);
    return result;
}

static bool try_run(struct world *world, const char *fetch)
{
    const struct session_run run = {.fetches = &fetch, .fetches_count = 1};
    struct tensor fetched;
    bool ok = session_run(world->session, &run, &fetched, &err);
    if (ok)
        tensor_release(&fetched);
    return ok;
}

static bool run_target(struct world *world, const char *target)
{
    const struct session_run run = {.targets = &target, .targets_count = 1};
    return session_run(world->session, &run, NULL, &err);
}

TEST(a_graph_gives_its_results_again_and_again)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    struct edge y = add(world, "y", x, builder_scalar(&world->b, "c", F32, 2));
    unary(world, "Identity", "z", unary(world, "Neg", "n", y));
    begin(world);
    for (int i = 0; i < 5; i++) {
        struct tensor value;
        CHECK_OK(tensor_init_scalar(&value, F32, i, &err), &err);
        CHECK(run_one(world, "x:0", &value, "z:0") == -(float)(i + 2));
        CHECK(run_one(world, "x", &value, "y") == (float)(i + 2));
        tensor_release(&value);
    }
    world_free(world);
}

TEST(only_what_is_needed_runs)
{
    struct world *world = world_new();
    struct edge c = builder_scalar(&world->b, "c", F32, 2);
    add(world, "not_needed", c, c);
    struct edge x = placeholder(world, "x");
    unary(world, "Neg", "fails_unfed", x);
    struct edge fed = add(world, "fed", x, x);
    add(world, "y", fed, fed);
    begin(world);
    kernels_runs = 0;
    struct tensor value;
    CHECK_OK(tensor_init_scalar(&value, F32, 3, &err), &err);
    CHECK(run_one(world, "fed:0", &value, "y:0") == 6);
    CHECK_INT(kernels_runs, 1);
    tensor_release(&value);
    world_free(world);
}

TEST(memory_is_planned_and_results_do_not_alias_it)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    struct edge at = x;
    char name[16];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        at = i % 3 == 2 ? add(world, name, at, x)
                        : unary(world, i % 3 ? "Relu" : "Neg", name, at);
    }
    begin(world);
    struct tensor value = vector(1, 2000);
    struct tensor kept[4];
    const struct session_run run = {.feeds = (const char *const[]){"x"},
                                    .feed_values = &value,
                                    .feeds_count = 1,
                                    .fetches = (const char *const[]){"n19", "n10"},
                                    .fetches_count = 2};
    for (int i = 0; i < 2; i++)
        CHECK_OK(session_run(world->session, &run, kept + 2 * i, &err), &err);
    CHECK(tensor_equal(&kept[0], &kept[2]));
    CHECK(tensor_equal(&kept[1], &kept[3]));
    for (int i = 0; i < 4; i++)
        CHECK(tensor_is_exclusive(&kept[i]));

    int64_t arena_bytes, variable_bytes;
    session_memory(world->session, &arena_bytes, &variable_bytes);
    CHECK(arena_bytes > 0);
    CHECK(arena_bytes <= 3 * 8064); /* twenty outputs, few at a time */
    for (int i = 0; i < 4; i++)
        tensor_release(&kept[i]);
    tensor_release(&value);
    world_free(world);
}

/* Larger, smaller and again larger batches: outputs that outgrow their place go to the heap. */
TEST(other_shapes_are_measured_again)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    add(world, "y", unary(world, "Relu", "r", unary(world, "Neg", "n", x)), x);
    begin(world);
    const int sizes[] = {10, 10, 5000, 5000, 3, 0, 20000, 10, 20000, 1, 20000};
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        struct tensor value = vector(1, sizes[i]), got;
        const struct session_run run = {.feeds = (const char *const[]){"x"},
                                        .feed_values = &value,
                                        .feeds_count = 1,
                                        .fetches = (const char *const[]){"y"},
                                        .fetches_count = 1};
        CHECK_OK(session_run(world->session, &run, &got, &err), &err);
        CHECK(tensor_equal(&value, &got));
        tensor_release(&value);
        tensor_release(&got);
    }
    world_free(world);
}

TEST(the_last_use_of_a_value_may_overwrite_it)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    struct edge y = add(world, "y", x, x);
    struct edge n = unary(world, "Neg", "n", y); /* not in place: y is used again */
    struct edge m = unary(world, "Neg", "m", y); /* in place */
    unary(world, "Neg", "of_feed", x);           /* never in place */
    add(world, "z", n, m);
    begin(world);
    struct tensor value = vector(1, 100);
    for (int i = 0; i < 3; i++) {
        kernels_reused = 0;
        CHECK(run_one(world, "x", &value, "z") == -4);
        CHECK_INT(kernels_reused, 1);
        kernels_reused = 0;
        CHECK(run_one(world, "x", &value, "of_feed") == -1);
        CHECK_INT(kernels_reused, 0);
    }
    CHECK(tensor_f32(&value)[0] == 1);
    tensor_release(&value);
    world_free(world);
}

TEST(runs_that_make_no_sense_are_refused)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    struct edge y = add(world, "y", x, x);
    add(world, "bad", y, builder_scalar(&world->b, "c", F32, 1));
    begin(world);
    struct tensor values[2] = {vector(1, 3), vector(1, 3)};
    struct tensor got;
    struct session_run run = {.feed_values = values};
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INVALID);
    run.fetches = (const char *const[]){"nothing:0"};
    run.fetches_count = 1;
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, NOT_FOUND);
    run.fetches = (const char *const[]){"y:1"};
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INVALID);
    run.fetches = (const char *const[]){"y:0"};
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INVALID);
    CHECK(strstr(err.text, "You must feed a value for placeholder tensor 'x'"));
    run.feeds = (const char *const[]){"x:0", "x"};
    run.feeds_count = 2;
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INVALID);
    run.feeds_count = 1;
    run.fetches = (const char *const[]){"x:0"};
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INVALID);
    run.fetches = (const char *const[]){"y:0"};
    values[0].dtype = I32;
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INTERNAL);
    values[0].dtype = F32;
    run.targets = (const char *const[]){"nowhere"};
    run.targets_count = 1;
    CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, NOT_FOUND);
    run.targets_count = 0;

    /* A kernel fails; the session goes on. */
    for (int i = 0; i < 3; i++) {
        run.fetches = (const char *const[]){"bad:0"};
        CHECK_FAILS(session_run(world->session, &run, &got, &err), &err, INVALID);
        CHECK(strstr(err.text, "node 'bad' (AddV2)"));
        CHECK(run_one(world, "x", values, "y") == 2);
    }
    tensor_release(&values[0]);
    tensor_release(&values[1]);
    world_free(world);
}

TEST(variables_by_reference_keep_their_value)
{
    struct world *world = world_new();
    struct builder *b = &world->b;
    struct edge v = builder_add(b, "VariableV2", "v", NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(3))));
    struct tensor start = vector(1, 3);
    struct edge c = builder_const(b, "c", &start);
    builder_add(b, "Assign", "init", INPUTS(v, c), NO_ATTRS);
    builder_add(b, "AssignAdd", "add", INPUTS(v, c), NO_ATTRS);
    struct edge read = unary(world, "Identity", "read", v);
    unary(world, "Neg", "neg", read);
    begin(world);
    kernels_prepared = 0;
    CHECK_FAILS(try_run(world, "read"), &err, PRECONDITION);
    CHECK(strstr(err.text, "Attempting to use uninitialized value v"));
    CHECK_FAILS(try_run(world, "v"), &err, PRECONDITION);
    CHECK_OK(run_target(world, "init"), &err);
    CHECK(run_one(world, NULL, NULL, "v") == 1);
    for (int i = 0; i < 4; i++)
        CHECK_OK(run_target(world, "add"), &err);
    CHECK(run_one(world, NULL, NULL, "read") == 5);
    CHECK(run_one(world, NULL, NULL, "neg") == -5);
    CHECK(run_one(world, NULL, NULL, "add") == 6);
    CHECK_INT(kernels_prepared, 1);    /* one kernel per session, not per plan */
    CHECK(tensor_f32(&start)[0] == 1); /* the constant stayed as it was */

    int64_t arena_bytes, variable_bytes;
    session_memory(world->session, &arena_bytes, &variable_bytes);
    CHECK_INT(variable_bytes, 12);
    tensor_release(&start);
    world_free(world);
}

/* The order read, update, use is forced by control edges. */
TEST(references_show_updates_and_snapshots_do_not)
{
    struct world *world = world_new();
    struct builder *b = &world->b;
    struct tensor start = vector(1, 3);
    struct edge c = builder_const(b, "c", &start);
    tensor_release(&start);

    struct edge v = builder_add(b, "VariableV2", "v", NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(3))));
    builder_add(b, "Assign", "v_init", INPUTS(v, c), NO_ATTRS);
    struct edge v_read = unary(world, "Identity", "v_read", v);
    struct edge v_add = builder_add(b, "AssignAdd", "v_add", INPUTS(v, c), NO_ATTRS);
    graph_add_control(world->graph, v_add.from, v_read.from);
    struct edge v_use = unary(world, "Neg", "v_use", v_read);
    graph_add_control(world->graph, v_use.from, v_add.from);

    struct edge h = builder_add(b, "VarHandleOp", "h", NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(3)),
                                      attr_string("shared_name", "h")));
    struct edge h_init = builder_add(b, "AssignVariableOp", "h_init", INPUTS(h, c), NO_ATTRS);
    CHECK(h_init.from);
    struct edge h_read =
        builder_add(b, "ReadVariableOp", "h_read", INPUTS(h), ATTRS(attr_type("dtype", F32)));
    struct edge h_add = builder_add(b, "AssignAddVariableOp", "h_add", INPUTS(h, c), NO_ATTRS);
    graph_add_control(world->graph, h_add.from, h_read.from);
    struct edge h_use = unary(world, "Neg", "h_use", h_read);
    graph_add_control(world->graph, h_use.from, h_add.from);
    begin(world);

    CHECK_FAILS(try_run(world, "h_read"), &err, NOT_FOUND);
    CHECK_OK(run_target(world, "v_init"), &err);
    CHECK_OK(run_target(world, "h_init"), &err);
    for (int i = 1; i < 5; i++) {
        CHECK(run_one(world, NULL, NULL, "v_use") == -(float)(i + 1));
        CHECK(run_one(world, NULL, NULL, "h_use") == -(float)i);
    }
    world_free(world);
}

TEST(a_fetched_tensor_stays_as_it_was)
{
    struct world *world = world_new();
    struct builder *b = &world->b;
    struct edge v = builder_add(b, "VariableV2", "v", NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(3))));
    struct edge x = placeholder(world, "x");
    struct edge sum = add(world, "sum", x, x);
    builder_add(b, "Assign", "init", INPUTS(v, sum), NO_ATTRS);
    builder_add(b, "AssignAdd", "add", INPUTS(v, sum), NO_ATTRS);
    unary(world, "Identity", "read", v);
    begin(world);
    struct tensor value = vector(1, 3), got[3];
    struct session_run run = {.feeds = (const char *const[]){"x"},
                              .feed_values = &value,
                              .feeds_count = 1,
                              .fetches = (const char *const[]){"sum", "read", "sum"},
                              .fetches_count = 3,
                              .targets = (const char *const[]){"init"},
                              .targets_count = 1};
    for (int i = 0; i < 3; i++) {
        if (i)
            for (int k = 0; k < 3; k++)
                tensor_release(&got[k]);
        run.fetches_count = i ? 3 : 1; /* read would come before init is known to be done */
        run.targets_count = i ? 0 : 1;
        CHECK_OK(session_run(world->session, &run, got, &err), &err);
        if (!i)
            for (int k = 1; k < 3; k++)
                got[k] = (struct tensor){0};
    }
    run.targets = (const char *const[]){"add"};
    run.targets_count = 1;
    run.fetches_count = 0;
    CHECK_OK(session_run(world->session, &run, NULL, &err), &err);
    for (int k = 0; k < 3; k++) {
        CHECK(tensor_f32(&got[k])[0] == 2);
        tensor_release(&got[k]);
    }
    CHECK(run_one(world, NULL, NULL, "v") == 4);
    tensor_release(&value);
    world_free(world);
}

TEST(a_graph_that_cannot_run_here_is_refused_when_it_comes)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    begin(world);
    struct graph *more = graph_new();
    struct builder b = {.graph = more, .scope = "", .err = &err};
    struct edge y =
        builder_add(&b, "Placeholder", "y", NO_INPUTS, ATTRS(attr_type("dtype", I32)));
    builder_add(&b, "Neg", "n", INPUTS(y), NO_ATTRS);
    CHECK_FAILS(session_extend_graph(world->session, more, &err), &err, INVALID);
    CHECK(strstr(err.text, "'Neg'"));
    CHECK_INT(graph_count(session_graph(world->session)), 1);
    graph_free(more);

    const char *devices[] = {"/device:GPU:0", "/job:elsewhere", "nonsense"};
    for (int i = 0; i < ARRAY_LEN(devices); i++) {
        more = graph_new();
        b = (struct builder){.graph = more, .scope = "", .device = devices[i], .err = &err};
        builder_scalar(&b, "c", F32, 1);
        CHECK_FAILS(session_extend_graph(world->session, more, &err), &err, INVALID);
        graph_free(more);
    }
    CHECK(x.from);
    CHECK_INT(graph_count(session_graph(world->session)), 1);
    world_free(world);
}

/* What reads `to` reads `from`; fetches, feeds and cycles are watched as TensorFlow does. */
TEST(connections)
{
    static const struct {
        const char *from, *to, *fetch;
        enum error_code code; /* OK: the answer */
        double answer;
        const char *text;
    } cases[] = {
        {"w:0", "mid:0", "z", OK, 40, NULL},
        {"w", "mid", "z:0", OK, 40, NULL},
        {"x:0", "mid:0", "z", OK, 18, NULL},
        {"w:0", "mid:0", "w", OK, 20, NULL},
        {"w:0", "w:0", "z", INVALID, 0,
         "Requested Tensor connection between nodes \"w\" and \"w\" would create a cycle."},
        {"nope:0", "mid:0", "z", INVALID, 0,
         "Requested tensor connection from unknown node: \"mid:0\"."},
        {"nope:0", "none:0", "z", INVALID, 0,
         "Requested tensor connection from unknown node: \"none:0\"."},
        {"w:7", "mid:0", "z", INVALID, 0,
         "Requested tensor connection from unknown edge: \"mid:0\" (actual number of outputs = "
         "1)."},
        {"w:0", "nope:0", "z", NOT_FOUND, 0, "FeedInputs: unable to find feed output nope:0"},
        {"w:0", "x:0", "z", INVALID, 0, "Endpoint \"x:0\" fed more than once."},
        {"w:0", "mid:0", "mid:0", INVALID, 0, "mid:0 is both fed and fetched."},
        {"i:0", "mid:0", "z", INVALID, 0, "which is int32, to \"mid:0\", which is float"},
        {"z:0", "mid:0", "z", INVALID, 0,
         "Requested Tensor connection between nodes \"mid\" and \"z\" would create a cycle."},
    };
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    struct edge mid = unary(world, "Neg", "mid", unary(world, "Neg", "first", x));
    add(world, "z", mid, mid);
    add(world, "w", x, builder_scalar(&world->b, "eleven", F32, 11));
    builder_scalar(&world->b, "i", I32, 1);
    begin(world);
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        const struct session_connection connection = {cases[i].from, cases[i].to};
        struct tensor in, got;
        CHECK_OK(tensor_init_scalar(&in, F32, 9, &err), &err);
        const struct session_run run = {.feeds = (const char *const[]){"x"},
                                        .feed_values = &in,
                                        .feeds_count = 1,
                                        .fetches = &cases[i].fetch,
                                        .fetches_count = 1,
                                        .connections = &connection,
                                        .connections_count = 1};
        bool ok = session_run(world->session, &run, &got, &err);
        tensor_release(&in);
        CHECK_INT(ok ? OK : err.code, cases[i].code);
        CHECK(ok || strstr(err.text, cases[i].text));
        CHECK(!ok || tensor_f32(&got)[0] == (float)cases[i].answer);
        if (ok)
            tensor_release(&got);
    }
    world_free(world);
}

TEST(plans_stay_good_when_the_graph_grows)
{
    struct world *world = world_new();
    struct edge c = builder_scalar(&world->b, "c", F32, 1);
    add(world, "y", c, c);
    begin(world);
    const struct session_run run = {.fetches = (const char *const[]){"y"}, .fetches_count = 1};
    struct callable *callable = session_prepare(world->session, &run, &err);
    CHECK(callable);
    struct graph *more = graph_new();
    struct builder b = {.graph = more, .scope = "", .err = &err};
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        builder_scalar(&b, name, F32, i);
    }
    CHECK_OK(session_extend_graph(world->session, more, &err), &err);
    CHECK_FAILS(session_extend_graph(world->session, more, &err), &err, EXISTS);
    graph_free(more);
    struct tensor got;
    CHECK_OK(session_call(world->session, callable, NULL, &got, NULL, &err), &err);
    CHECK(tensor_f32(&got)[0] == 2);
    tensor_release(&got);
    CHECK(run_one(world, NULL, NULL, "m999") == 999);
    world_free(world);
}

TEST(placement_is_explained_as_data)
{
    struct world *world = world_new();
    struct edge c = builder_scalar(&world->b, "c", F32, 1);
    add(world, "y", c, c);
    begin(world);
    const struct session_run run = {.fetches = (const char *const[]){"y"}, .fetches_count = 1};
    struct callable *callable = session_prepare(world->session, &run, &err);
    CHECK(callable);
    struct str json = {0};
    session_explain_placement(world->session, callable, &json);
    CHECK(strstr(json.data, "\"device\":\"/job:localhost/replica:0/task:0/device:CPU:0\""));
    CHECK(strstr(json.data, "\"reason\":"));
    CHECK(json.data[0] == '[' && json.data[json.size - 1] == ']');
    str_release(&json);
    world_free(world);
}

TEST(a_traced_step_tells_of_each_call)
{
    struct world *world = world_new();
    struct edge x = placeholder(world, "x");
    add(world, "y", unary(world, "Neg", "n", x), x);
    begin(world);
    struct tensor value = vector(1, 3), got;
    struct str statistics = {0};
    const struct session_run run = {.feeds = (const char *const[]){"x"},
                                    .feed_values = &value,
                                    .feeds_count = 1,
                                    .fetches = (const char *const[]){"y"},
                                    .fetches_count = 1,
                                    .trace = true,
                                    .statistics = &statistics};
    CHECK_OK(session_run(world->session, &run, &got, &err), &err);
    CHECK(memmem(statistics.data, statistics.size, "y = AddV2(n, _arg_x_0)", 22));
    CHECK(memmem(statistics.data, statistics.size, "_SOURCE", 7));
    str_release(&statistics);
    tensor_release(&value);
    tensor_release(&got);
    world_free(world);
}

/* --- threads --- */

struct worker {
    struct world *world;
    float first;
    bool ok;
};

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct error mine;
    worker->ok = true;
    for (int i = 0; i < 200 && worker->ok; i++) {
        struct tensor value, got;
        int count = 100 + i % 7 * 100;
        worker->ok = tensor_init(&value, F32, &SHAPE(count), &mine);
        for (int k = 0; k < count; k++)
            tensor_f32_mut(&value)[k] = worker->first + (float)i;
        const struct session_run run = {.feeds = (const char *const[]){"x"},
                                        .feed_values = &value,
                                        .feeds_count = 1,
                                        .fetches = (const char *const[]){"z"},
                                        .fetches_count = 1,
                                        .targets = (const char *const[]){"add"},
                                        .targets_count = 1};
        worker->ok = worker->ok && session_run(worker->world->session, &run, &got, &mine);
        for (int k = 0; k < count && worker->ok; k++)
            worker->ok = tensor_f32(&got)[k] == worker->first + (float)i;
        tensor_release(&value);
        tensor_release(&got);
    }
    return NULL;
}

TEST(runs_of_several_threads_do_not_meet)
{
    struct world *world = world_new();
    struct builder *b = &world->b;
    struct edge x = placeholder(world, "x");
    struct edge n = unary(world, "Relu", "r", unary(world, "Neg", "n", x));
    add(world, "z", n, x);
    struct edge v =
        builder_add(b, "VariableV2", "v", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR)));
    struct edge one = builder_scalar(b, "one", F32, 1);
    builder_add(b, "Assign", "init", INPUTS(v, builder_scalar(b, "zero", F32, 0)), NO_ATTRS);
    builder_add(b, "AssignAdd", "add", INPUTS(v, one), NO_ATTRS);
    begin(world);
    CHECK_OK(run_target(world, "init"), &err);
    pthread_t threads[4];
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){world, (float)(1 + 1000 * i), false};
        CHECK(!pthread_create(&threads[i], NULL, worker_main, &workers[i]));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK(workers[i].ok);
    }
    CHECK(run_one(world, NULL, NULL, "v") == 800);
    world_free(world);
}
