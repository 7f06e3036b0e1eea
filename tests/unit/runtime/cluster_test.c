/* cluster_test.c - a graph over three tasks of this process. */

#include "base/map.h"
#include "kernels/list.h"
#include "runtime/internal.h"
#include "tests/unit/runtime/one_session.h"

static void start(void)
{
    world = world_new();
    cluster = cluster_new(false, false);
    session = open_session(cluster, "s", (struct cluster_options){0});
}

static int parts_of(const char *fetch, struct graph *parts[TASKS])
{
    return cut_run(&(struct session_run){.fetches = &fetch, .fetches_count = 1}, parts);
}

/* How many nodes of the parts know that they receive this; none knows anything else. */
static int count_shapes(const struct session_run *run, const struct shape *wanted)
{
    struct graph *parts[TASKS];
    int count = cut_run(run, parts), found = 0;
    for (int k = 0; k < count; k++) {
        for (int n = 0; n < graph_count(parts[k]); n++) {
            const struct shape *shape = node_attr_shape(graph_node(parts[k], n), "_shape");
            CHECK(!shape || shape_equal(shape, wanted));
            found += shape != NULL;
        }
        graph_free(parts[k]);
    }
    return found;
}

static const char *place_of(const char *fetch, const char *node)
{
    static char text[200];
    struct graph *parts[TASKS];
    int count = parts_of(fetch, parts);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        const struct node *found = graph_find(parts[i], node);
        if (found)
            snprintf(text, sizeof(text), "%s", found->requested_device);
        graph_free(parts[i]);
    }
    return text;
}

TEST(a_chain_over_three_tasks)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    struct edge a = on(2, node2(world, "AddV2", "a", x, scalar(world, "one", 1)));
    struct edge b = on(0, node1(world, "Neg", "b", a));
    on(1, node2(world, "AddV2", "c", b, a));
    extend(session, world);
    for (int i = 0; i < 5; i++) {
        CHECK(fetch_number(session, "x:0", i, "b:0") == -(i + 1));
        CHECK(fetch_number(session, "x:0", i, "c:0") == 0);
    }
    CHECK(fetch_number(session, "a", 7, "b") == -7);
    stop();
}

/* Generators go with their readers, and what has no wish goes to the client's task. */
TEST(places_over_tasks)
{
    start();
    struct edge c = scalar(world, "c", 1);
    on(2, node1(world, "Neg", "far", c));
    struct edge free = node1(world, "Neg", "free", scalar(world, "d", 2));
    node1(world, "Neg", "any", free).from->requested_device = "/job:worker";
    node1(world, "Neg", "first", free).from->requested_device = "/job:ps";
    extend(session, world);
    CHECK_TEXT(place_of("far:0", "c"), "/job:worker/replica:0/task:1/device:CPU:0");
    CHECK_TEXT(place_of("free:0", "free"), "/job:worker/replica:0/task:0/device:CPU:0");
    CHECK_TEXT(place_of("free:0", "d"), "/job:worker/replica:0/task:0/device:CPU:0");
    CHECK_TEXT(place_of("any:0", "any"), "/job:worker/replica:0/task:0/device:CPU:0");
    CHECK_TEXT(place_of("first:0", "first"), "/job:ps/replica:0/task:0/device:CPU:0");
    stop();
}

/* A worker of TensorFlow keeps the kernel of a send by its name for as long as the session. */
TEST(no_two_plans_have_a_send_of_the_same_name)
{
    static const char *const fetches[] = {"far:0", "farther:0"};
    struct map *seen = map_new();
    start();
    struct edge far = on(2, node1(world, "Neg", "far", on(1, scalar(world, "x", 1))));
    on(0, node1(world, "Neg", "farther", far));
    extend(session, world);
    for (int i = 0; i < ARRAY_LEN(fetches); i++) {
        struct graph *parts[TASKS];
        int count = parts_of(fetches[i], parts), pairs = 0;
        for (int k = 0; k < count; k++) {
            for (int n = 0; n < graph_count(parts[k]); n++) {
                const struct node *node = graph_node(parts[k], n);
                if (!strncmp(node->name, "_recv_", 6) || !strncmp(node->name, "_send_", 6))
                    continue; /* the client's ends */
                if (strcmp(node->op->name, "_Send") != 0 &&
                    strcmp(node->op->name, "_Recv") != 0)
                    continue;
                CHECK(!map_has(seen, node->name));
                map_set(seen, node->name, seen);
                pairs++;
            }
            graph_free(parts[k]);
        }
        CHECK_INT(pairs, i ? 6 : 4);
    }
    map_free(seen);
    stop();
}

/* Who receives a variable's value, or what was made of it, knows its shape, where the session
 * says that it stays so; a value of another one is refused then, not computed with. */
TEST(a_received_variable_has_its_shape)
{
    for (int shaped = 0; shaped < 2; shaped++) {
        start();
        struct builder *b = &world->b;
        struct edge handle =
            on(0, builder_add(b, "VarHandleOp", "v", NO_INPUTS,
                              ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(2, 3)),
                                    attr_string("shared_name", "v"))));
        struct edge read = on(0, builder_add(b, "ReadVariableOp", "read", INPUTS(handle),
                                             ATTRS(attr_type("dtype", F32))));
        on(2, node1(world, "Neg", "far", read));
        on(0, builder_add(b, "AssignVariableOp", "assign",
                          INPUTS(handle, on(0, scalar(world, "other", 1))),
                          ATTRS(attr_type("dtype", F32))));
        cluster_session_free(session);
        session = open_session(cluster, "shaped", (struct cluster_options){.shaped = shaped});
        extend(session, world);
        const char *far = "far:0";
        int found = count_shapes(&(struct session_run){.fetches = &far, .fetches_count = 1},
                                 &SHAPE(2, 3));
        CHECK_INT(found, 2 * shaped); /* far's variable, and what the client fetches */
        const char *assign = "assign";
        const struct session_run run = {.targets = &assign, .targets_count = 1};
        CHECK_OK(cluster_session_run(session, &run, NULL, &err), &err);
        double value;
        CHECK(try_fetch(session, NULL, 0, "far:0", &value) == !shaped);
        CHECK(!shaped || strstr(err.text, "was to receive [2,3], and [] has come"));
        stop();
    }
}

/* So does who receives a feed; one that contradicts its placeholder has a plan without. */
TEST(a_received_feed_has_its_shape)
{
    start();
    struct builder *b = &world->b;
    struct edge x =
        on(0, builder_add(b, "Placeholder", "x", NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(2)))));
    on(2, node1(world, "Neg", "far", on(1, node1(world, "Neg", "y", x))));
    cluster_session_free(session);
    session = open_session(cluster, "shaped", (struct cluster_options){.shaped = true});
    extend(session, world);
    for (int count = 1; count < 4; count++) {
        const char *feed = "x:0", *fetch = "far:0";
        struct tensor in, out;
        CHECK_OK(tensor_init(&in, F32, &SHAPE(count), &err), &err);
        for (int i = 0; i < count; i++)
            tensor_f32_mut(&in)[i] = (float)(i + 1);
        const struct session_run run = {.feeds = &feed,
                                        .feed_values = &in,
                                        .feeds_count = 1,
                                        .fetches = &fetch,
                                        .fetches_count = 1};
        CHECK_INT(count_shapes(&run, &SHAPE(2)), count == 2 ? 3 : 0);
        CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
        CHECK(shape_equal(&out.shape, &SHAPE(count)));
        for (int i = 0; i < count; i++)
            CHECK(tensor_f32(&out)[i] == (float)(i + 1));
        tensor_release(&in);
        tensor_release(&out);
    }
    stop();
}

TEST(impossible_places_are_refused_as_tensorflow_does)
{
    start();
    struct edge lost = scalar(world, "lost", 1);
    lost.from->requested_device = "/job:worker/task:99";
    CHECK(!try_extend(session, world));
    CHECK_INT(err.code, INVALID);
    CHECK_TEXT(err.text,
               "Cannot assign a device for operation lost: {{node lost}} was explicitly "
               "assigned to /job:worker/task:99 but available devices are [ "
               "/job:ps/replica:0/task:0/device:CPU:0, "
               "/job:worker/replica:0/task:0/device:CPU:0, "
               "/job:worker/replica:0/task:1/device:CPU:0 ]. Make sure the device "
               "specification refers to a valid device.\n\t [[lost]]");
    lost.from->requested_device = "/job:worker/task:1/device:GPU:7";
    CHECK(!try_extend(session, world));
    struct cluster_session *soft =
        open_session(cluster, "soft", (struct cluster_options){.soft_placement = true});
    extend(soft, world);
    CHECK(fetch_number(soft, NULL, 0, "lost") == 1);
    cluster_session_free(soft);
    stop();
}

TEST(tasks_are_filtered)
{
    start();
    static const char *const filters[] = {"/job:ps"};
    int count;
    struct cluster_session *few = open_session(
        cluster, "few", (struct cluster_options){.filters = filters, .filters_count = 1});
    const struct device *devices = cluster_session_devices(few, &count);
    CHECK_INT(count, 2);
    CHECK_TEXT(devices[0].name, "/job:worker/replica:0/task:0/device:CPU:0");
    CHECK_TEXT(devices[1].name, "/job:ps/replica:0/task:0/device:CPU:0");
    cluster_session_free(few);
    stop();
}

/* A variable lives in its task: sessions share it, and it stays when one is closed. */
TEST(variables_stay_in_their_task)
{
    start();
    struct edge v =
        on(0, builder_add(&world->b, "VariableV2", "v", NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR))));
    struct edge x = placeholder(world, "x", F32);
    node2(world, "Assign", "assign", v, x);
    on(2, node1(world, "Neg", "read", v));
    extend(session, world);
    CHECK(!try_fetch(session, NULL, 0, "read", &(double){0}));
    CHECK_INT(err.code, PRECONDITION);
    CHECK(fetch_number(session, "x", 5, "assign") == 5);
    CHECK(fetch_number(session, NULL, 0, "read") == -5);
    struct cluster_session *other = open_session(cluster, "t", (struct cluster_options){0});
    extend(other, world);
    CHECK(fetch_number(other, NULL, 0, "read") == -5);
    CHECK(fetch_number(other, "x", 6, "assign") == 6);
    cluster_session_free(other);
    CHECK(fetch_number(session, NULL, 0, "read") == -6);
    struct cluster_session *alone =
        open_session(cluster, "alone", (struct cluster_options){.isolate = true});
    extend(alone, world);
    CHECK(!try_fetch(alone, NULL, 0, "read", &(double){0}));
    cluster_session_free(alone);
    stop();
}

static struct edge variable_at(int task, const char *name)
{
    return on(task,
              builder_add(&world->b, "VariableV2", name, NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR))));
}

/* Who reads it from another task after an update reads what it was updated to. */
TEST(a_variable_is_read_after_its_update)
{
    start();
    struct edge v = variable_at(0, "v");
    struct edge x = placeholder(world, "x", F32);
    struct edge slow = on(1, node1(world, "Neg", "slow", x));
    struct edge set = node2(world, "Assign", "set", v, x);
    struct edge read = on(2, node1(world, "Neg", "read", v));
    struct edge again = on(2, node1(world, "Neg", "again", v));
    on(2, node2(world, "AddV2", "both", read, again));
    graph_add_control(world->graph, set.from, slow.from);
    graph_add_control(world->graph, read.from, set.from);
    graph_add_control(world->graph, again.from, set.from);
    extend(session, world);
    for (int i = 1; i < 6; i++) {
        CHECK(fetch_number(session, "x", i, "read") == -i);
        CHECK(fetch_number(session, "x", 2 * i, "both") == -4 * i);
    }
    stop();
}

/* Between two updates as after both. */
TEST(a_variable_is_read_between_updates)
{
    start();
    struct edge v = variable_at(0, "v");
    struct edge x = placeholder(world, "x", F32);
    struct edge set = node2(world, "Assign", "set", v, x);
    struct edge first = on(2, node1(world, "Neg", "first", v));
    struct edge more = node2(world, "AssignAdd", "more", v, x);
    struct edge second = on(2, node1(world, "Neg", "second", v));
    on(1, node2(world, "AddV2", "sum", first, second));
    graph_add_control(world->graph, first.from, set.from);
    graph_add_control(world->graph, more.from, first.from);
    graph_add_control(world->graph, second.from, more.from);
    extend(session, world);
    for (int i = 1; i < 6; i++)
        CHECK(fetch_number(session, "x", i, "sum") == -3 * i);
    stop();
}

/* What fails says where, and the step ends on all tasks; the next one is as if nothing was. */
TEST(an_error_on_another_task)
{
    start();
    struct edge v =
        on(0, builder_add(&world->b, "VariableV2", "empty", NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR))));
    struct edge x = placeholder(world, "x", F32);
    struct edge bad = on(0, node2(world, "AddV2", "bad", x, v));
    struct edge there = on(2, node1(world, "Neg", "there", bad));
    on(1, node1(world, "Neg", "here", there));
    on(2, node1(world, "Neg", "good", x));
    extend(session, world);
    for (int i = 0; i < 10; i++) {
        double out;
        CHECK(!try_fetch(session, "x", 1, "here", &out));
        CHECK_INT(err.code, PRECONDITION);
        CHECK(!strncmp(err.text, "From /job:ps/replica:0/task:0:\n", 31));
        CHECK(strstr(err.text, "uninitialized value empty\n\t [[{{node bad}}]]"));
        CHECK(fetch_number(session, "x", 3, "good") == -3);
    }
    stop();
}

/* What is cancelled because another part failed is not what is told. */
static void fail_beside_waiting(int failing, int waiting)
{
    start();
    struct edge v =
        on(failing,
           builder_add(&world->b, "VariableV2", "empty", NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR))));
    struct edge one = scalar(world, "one", 1);
    on(waiting, node1(world, "Wait", "wait", one));
    on(failing, node2(world, "AddV2", "bad", on(1, node1(world, "Neg", "far", one)), v));
    extend(session, world);
    const char *targets[] = {"wait", "bad"};
    const struct session_run run = {
        .targets = targets, .targets_count = 2, .timeout_ms = 20000};
    for (int i = 0; i < 20; i++) {
        CHECK_FAILS(cluster_session_run(session, &run, NULL, &err), &err, PRECONDITION);
        CHECK(strstr(err.text, "uninitialized value empty\n\t [[{{node bad}}]]"));
    }
    stop();
}

TEST(the_cause_is_told_not_what_it_ended)
{
    fail_beside_waiting(2, 0);
    fail_beside_waiting(0, 2);
}

TEST(a_dead_branch_crosses_tasks)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    struct edge less = node2(world, "Less", "less", x, scalar(world, "ten", 10));
    struct edge split = on(1, node2(world, "Switch", "split", x, less));
    struct edge no = on(0, node1(world, "Neg", "no", split));
    struct edge yes = on(2, node2(world, "AddV2", "yes", builder_output(split, 1), x));
    on(1, node2(world, "Merge", "merge", no, yes));
    extend(session, world);
    for (int i = 0; i < 3; i++) {
        CHECK(fetch_number(session, "x", 3, "merge") == 6);
        CHECK(fetch_number(session, "x", 11, "merge") == -11);
    }
    double out;
    CHECK(!try_fetch(session, "x", 11, "yes", &out));
    CHECK_INT(err.code, INTERNAL);
    CHECK(strstr(err.text, "The tensor returned for "));
    stop();
}

/* A stock task only takes what reads a receive for dead, not what merely runs after it. */
TEST(what_runs_after_a_dead_branch_of_another_task)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    struct edge less = node2(world, "Less", "less", x, scalar(world, "ten", 10));
    struct edge split = on(1, node2(world, "Switch", "split", x, less));
    struct edge yes = on(2, node1(world, "Neg", "yes", builder_output(split, 1)));
    struct edge after = on(0, node1(world, "Neg", "after", scalar(world, "c", 4)));
    graph_add_control(world->graph, after.from, yes.from);
    struct edge no = on(0, node1(world, "Neg", "no", split));
    on(1, node2(world, "Merge", "merge", no, after));
    extend(session, world);
    struct graph *parts[TASKS];
    int count = parts_of("after", parts), seen = 0;
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_find(parts[i], "after");
        const struct node *before = node ? node->controls[node->controls_count - 1] : NULL;
        if (before && !strcmp(before->op->name, "Identity"))
            seen += !strcmp(before->inputs[0].from->op->name, "_Recv");
        graph_free(parts[i]);
    }
    CHECK_INT(seen, 1);
    CHECK(fetch_number(session, "x", 3, "merge") == -4);
    CHECK(fetch_number(session, "x", 11, "merge") == -11);
    stop();
}

TEST(a_loop_over_tasks)
{
    start();
    struct edge limit = placeholder(world, "n", F32);
    struct loop loop = loop_begin(world, "loop", scalar(world, "zero", 0), limit, 4);
    struct variable_of_loop v = loop_variable(world, &loop, "v", scalar(world, "first", 1));
    struct edge sum = on(2, node2(world, "AddV2", "sum", v.now, loop.i));
    loop_close(world, &loop, "v", v, on(0, node1(world, "Identity", "moved", sum)));
    on(2, node1(world, "Neg", "out", v.exit));
    extend(session, world);
    for (int n = 0; n < 20; n++)
        CHECK(fetch_number(session, "n", n, "out") == -(1 + n * (n - 1) / 2));
    stop();
}

/* Floats that travel lose half of their bits when that is asked for; what stays does not. */
TEST(compressed_floats)
{
    start();
    kernels_add(true); /* behind those of the tests: Cast */
    struct edge x = placeholder(world, "x", F32);
    on(1, node1(world, "Identity", "near", x));
    on(2, node1(world, "Identity", "far", x));
    struct cluster_session *small =
        open_session(cluster, "small", (struct cluster_options){.compress = true});
    extend(small, world);
    extend(session, world);
    const float value = 1.00390625f + 1.0f / 4096;
    CHECK(fetch_number(small, "x", value, "near") == value);
    CHECK(fetch_number(small, "x", value, "far") == 1);
    CHECK(fetch_number(session, "x", value, "far") == value);
    cluster_session_free(small);
    stop();
}

/* A kernel that waits for ever ends when the time is up, or the session is closed. */
TEST(what_waits_is_ended)
{
    start();
    struct edge x = placeholder(world, "x", F32);
    struct edge wait = on(0, node1(world, "Wait", "wait", x));
    on(2, node1(world, "Neg", "out", wait));
    extend(session, world);
    struct tensor in = number(F32, 1), out;
    const char *feed = "x", *fetch = "out";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 50};
    CHECK_FAILS(cluster_session_run(session, &run, &out, &err), &err, DEADLINE);
    CHECK_TEXT(err.text, "Deadline Exceeded");
    cluster_session_close(session);
    CHECK_FAILS(cluster_session_run(session, &run, &out, &err), &err, CANCELLED);
    tensor_release(&in);
    stop();
}

/* --- runs in several calls --- */

static struct cluster_partial *begin_partial(const char *const *feeds, int feeds_count,
                                             const char *const *fetches, int fetches_count)
{
    const struct session_run names = {.feeds = feeds,
                                      .feeds_count = feeds_count,
                                      .fetches = fetches,
                                      .fetches_count = fetches_count};
    struct cluster_partial *partial = cluster_partial_new(session, &names, &err);
    CHECK_OK(partial, &err);
    return partial;
}

/* Feeds one and takes one (NULL: none). */
static bool go_on(struct cluster_partial *partial, const char *feed, double value,
                  const char *fetch, double *out)
{
    struct tensor in = number(F32, value), got = {0};
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = feed ? 1 : 0,
                                    .fetches = &fetch,
                                    .fetches_count = fetch ? 1 : 0,
                                    .timeout_ms = 1000};
    bool ok = cluster_partial_run(partial, &run, &got, &err);
    if (ok && fetch)
        *out = tensor_number(&got, 0);
    tensor_release(&in);
    tensor_release(&got);
    return ok;
}

TEST(a_partial_run_over_tasks)
{
    static const char *const feeds[] = {"a", "b", "c"}, *const fetches[] = {"ab:0", "abc"};
    double out;
    start();
    struct edge a = placeholder(world, "a", F32), b = placeholder(world, "b", F32);
    struct edge ab = on(2, node2(world, "AddV2", "ab", a, b));
    on(0, node2(world, "AddV2", "abc", ab, placeholder(world, "c", F32)));
    extend(session, world);
    for (int i = 0; i < 3; i++) {
        struct cluster_partial *partial = begin_partial(feeds, 3, fetches, 2);
        CHECK_OK(go_on(partial, "a", 1, NULL, NULL), &err);
        CHECK(!go_on(partial, "c", 7, "ab", &out));
        CHECK_TEXT(err.text,
                   "Fetch b can't be computed from the feeds that have been fed so far.");
        CHECK_OK(go_on(partial, "b:0", 2, "ab", &out), &err);
        CHECK(out == 3);
        CHECK(!go_on(partial, "b", 2, NULL, NULL));
        CHECK_TEXT(err.text, "The feed b has already been fed.");
        CHECK(!cluster_partial_is_done(partial));
        if (i == 0) { /* is left as it is */
            cluster_partial_free(partial);
            continue;
        }
        CHECK_OK(go_on(partial, "c", 4, "abc:0", &out), &err);
        CHECK(out == 7);
        CHECK(cluster_partial_is_done(partial));
        cluster_partial_free(partial);
    }
    stop();
}

TEST(a_partial_run_that_fails)
{
    static const char *const feeds[] = {"a", "b"}, *const fetches[] = {"waits", "bad"};
    double out;
    start();
    struct edge v =
        on(0, builder_add(&world->b, "VariableV2", "empty", NO_INPUTS,
                          ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR))));
    on(2, node1(world, "Wait", "waits", placeholder(world, "a", F32)));
    on(0, node2(world, "AddV2", "bad", v, placeholder(world, "b", F32)));
    extend(session, world);
    struct cluster_partial *partial = begin_partial(feeds, 2, fetches, 2);
    CHECK_FAILS(go_on(partial, "b", 1, "bad", &out), &err, PRECONDITION);
    CHECK(cluster_partial_is_done(partial));
    CHECK_FAILS(go_on(partial, "a", 1, "waits", &out), &err, PRECONDITION);
    cluster_partial_free(partial);
    partial = begin_partial(feeds, 1, fetches, 1);
    CHECK_FAILS(go_on(partial, "a", 1, "waits", &out), &err, DEADLINE);
    cluster_partial_free(partial);
    partial = begin_partial(feeds, 1, fetches, 1);
    cluster_session_close(session);
    CHECK_FAILS(go_on(partial, "a", 1, "waits", &out), &err, CANCELLED);
    cluster_partial_free(partial);
    stop();
}
