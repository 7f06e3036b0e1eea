/* partition_together_test.c - which values go to another task together, and that they may. */

#include "tests/unit/runtime/parts.h"

static struct edge end; /* on worker 1, after all readers */

static void start_readers(void)
{
    start();
    end = on(2, node1(world, "Identity", "end", fed_of("x", &SHAPE_SCALAR)));
}

/* Worker 1 reads the value. */
static struct edge read_there(struct edge value)
{
    char name[80];
    snprintf(name, sizeof(name), "read/%s_%d", value.from->name, value.output);
    struct edge reader = on(2, node1(world, "Identity", name, value));
    graph_add_control(world->graph, end.from, reader.from);
    return reader;
}

static struct edge small(const char *name)
{
    return variable_on(0, name, &SHAPE(3));
}

static int count(const char *op)
{
    int found = 0;
    for (int i = 0; i < parts_count; i++)
        for (int n = 0; n < graph_count(parts[i]); n++)
            found += !strcmp(graph_node(parts[i], n)->op->name, op);
    return found;
}

/* How many values come with others. */
static int members(void)
{
    int found = 0;
    for (int i = 0; i < parts_count; i++)
        for (int n = 0; n < graph_count(parts[i]); n++) {
            const struct node *node = graph_node(parts[i], n);
            if (!strcmp(node->op->name, "OptionalGetValue"))
                found += node->outputs_count;
        }
    return found;
}

static int receives(void)
{
    int found = 0;
    for (int i = 0; i < parts_count; i++)
        for (int n = 0; n < graph_count(parts[i]); n++)
            found += is_receive(graph_node(parts[i], n));
    return found;
}

/* Cuts what was built, and ends it. `alone`: receives of one value. */
static void check(int groups, int together, int alone)
{
    const char *fetch = "end";
    extend(session, world);
    cut(&fetch, 1);
    CHECK_INT(count("OptionalFromValue"), groups);
    CHECK_INT(count("OptionalGetValue"), groups);
    CHECK_INT(members(), together);
    /* x goes to worker 1, and the end comes back. */
    CHECK_INT(receives(), groups + alone + 2);
    release();
    stop();
}

/* --- what goes together --- */

TEST(small_values_of_a_device_go_together)
{
    start_readers();
    for (int i = 0; i < 5; i++)
        read_there(small(numbered("v", i)));
    check(1, 5, 0);
}

TEST(a_value_without_company_goes_alone)
{
    start_readers();
    read_there(small("v"));
    check(0, 0, 1);
}

TEST(what_two_nodes_read_comes_once)
{
    start_readers();
    struct edge a = small("a"), b = small("b");
    read_there(a);
    graph_add_control(world->graph, end.from, on(2, node2(world, "AddV2", "sum", a, b)).from);
    check(1, 2, 0);
}

TEST(large_values_go_alone)
{
    start_readers();
    read_there(small("a"));
    read_there(variable_on(0, "large", &SHAPE(64, 65)));
    read_there(variable_on(0, "just", &SHAPE(64, 64)));
    check(1, 2, 1);
}

TEST(a_message_has_a_largest_size)
{
    start_readers();
    for (int i = 0; i < 9; i++)
        read_there(variable_on(0, numbered("v", i), &SHAPE(64, 64)));
    check(2, 8, 1);
}

TEST(values_of_unknown_sizes_go_alone)
{
    start_readers();
    read_there(small("a"));
    read_there(small("b"));
    struct edge of_any =
        builder_add(&world->b, "VariableV2", "any", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(-1))));
    read_there(on(0, of_any));
    struct edge text =
        builder_add(&world->b, "VariableV2", "text", NO_INPUTS,
                    ATTRS(attr_type("dtype", STRING), attr_shape("shape", &SHAPE(2))));
    read_there(on(0, text));
    check(1, 2, 2);
}

TEST(values_of_two_devices_go_apart)
{
    start_readers();
    for (int i = 0; i < 4; i++)
        read_there(variable_on(i % 2, numbered("v", i), &SHAPE(3)));
    check(2, 4, 0);
}

/* --- what would wait --- */

TEST(nothing_waits_for_what_takes_long_to_work_out)
{
    start_readers();
    read_there(small("a"));
    read_there(small("b"));
    struct edge matrix = variable_on(0, "matrix", &SHAPE(512, 512));
    struct edge product = on(0, node2(world, "MatMul", "product", matrix, matrix));
    struct edge axes = on(0, builder_ints(&world->b, "axes", I32, (const int64_t[]){0, 1}, 2));
    read_there(on(0, node2(world, "Sum", "sum", product, axes)));
    check(1, 2, 1);
}

/* b is made of a by way of worker 1: they cannot go together, and need not. */
TEST(what_comes_of_a_value_does_not_go_with_it)
{
    start_readers();
    struct edge a = small("a");
    read_there(on(0, node1(world, "Neg", "c", a)));
    struct edge back = on(0, node1(world, "Neg", "b", read_there(a)));
    read_there(back);
    check(1, 2, 2); /* a and c; read/a goes back, and b comes alone */
}

TEST(what_comes_after_a_queue_goes_alone)
{
    start_readers();
    const int type = F32;
    struct edge queue = on(0, builder_add(&world->b, "FIFOQueueV2", "queue", NO_INPUTS,
                                          ATTRS(attr_type_list("component_types", &type, 1))));
    struct edge taken = on(0, builder_add(&world->b, "QueueDequeueV2", "taken", INPUTS(queue),
                                          ATTRS(attr_type_list("component_types", &type, 1))));
    struct edge a = on(0, node1(world, "Neg", "a", scalar(world, "one", 1)));
    struct edge b = on(0, node1(world, "Neg", "b", scalar(world, "two", 2)));
    read_there(a);
    read_there(b);
    /* Of one shape for all that the cutter knows, and there at once. */
    struct edge shaped = on(0, builder_add(&world->b, "EnsureShape", "shaped", INPUTS(taken),
                                           ATTRS(attr_shape("shape", &SHAPE_SCALAR))));
    read_there(shaped);
    /* The queue has something only when a has come: with a it would never come. */
    struct edge put =
        on(0, builder_add(&world->b, "QueueEnqueueV2", "put",
                          INPUTS(queue, read_there(on(0, node1(world, "Neg", "c", a)))),
                          ATTRS(attr_type_list("Tcomponents", &type, 1))));
    graph_add_control(world->graph, end.from, put.from);
    extend(session, world);
    CHECK(fetch_number(session, "x", 7, "end") == 7);
    const char *fetch = "end";
    cut(&fetch, 1);
    CHECK_INT(members(), 3);
    release();
    stop();
}

TEST(what_may_be_dead_goes_alone)
{
    start_readers();
    read_there(small("a"));
    read_there(small("b"));
    struct edge no = on(0, builder_scalar(&world->b, "no", BOOL, 0));
    struct edge one = on(0, scalar(world, "one", 1));
    struct edge split = on(0, node2(world, "Switch", "switch", one, no));
    struct edge dead = on(2, node1(world, "Identity", "dead", builder_output(split, 1)));
    struct edge alive = on(2, node1(world, "Identity", "alive", split));
    graph_add_control(world->graph, end.from,
                      on(2, node2(world, "Merge", "merge", dead, alive)).from);
    check(1, 2, 2);
}

TEST(where_a_loop_is_all_go_alone)
{
    start_readers();
    read_there(small("a"));
    read_there(small("b"));
    struct loop loop =
        loop_begin(world, "loop", scalar(world, "zero", 0), scalar(world, "limit", 3), 1);
    graph_add_control(world->graph, end.from, loop.exit.from);
    const char *fetch = "end";
    extend(session, world);
    cut(&fetch, 1);
    CHECK_INT(members(), 0);
    release();
    stop();
}

/* --- what they are there --- */

static void check_values(bool over_rpc)
{
    start();
    if (over_rpc) {
        cluster_session_free(session);
        cluster_free(cluster);
        cluster = cluster_new(true, true);
        session = open_session(cluster, "s", (struct cluster_options){0});
    }
    static const int types[] = {F32, F64, I32, I64, U8, BF16, F16, C64};
    struct edge sum = on(2, node1(world, "Identity", "start", fed_of("x", &SHAPE_SCALAR)));
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        struct edge value =
            on(0, builder_scalar(&world->b, numbered("value", i), (enum dtype)types[i], i + 1));
        value = on(0, node1(world, "Square", numbered("square", i), value));
        value = on(2, builder_add(&world->b, "Cast", numbered("cast", i), INPUTS(value),
                                  ATTRS(attr_type("DstT", F32))));
        sum = on(2, node2(world, "AddV2", numbered("sum", i), sum, value));
    }
    struct edge none = variable_on(0, "none", &SHAPE(0, 3));
    struct edge size = on(2, node1(world, "Size", "size", none));
    size = on(2, builder_add(&world->b, "Cast", "size/float", INPUTS(size),
                             ATTRS(attr_type("DstT", F32))));
    struct tensor empty;
    CHECK_OK(tensor_init(&empty, F32, &SHAPE(0, 3), &err), &err);
    struct edge nothing = on(0, builder_const(&world->b, "nothing", &empty));
    tensor_release(&empty);
    on(0, node2(world, "Assign", "init", none, nothing));
    sum = on(2, node2(world, "AddV2", "last", sum, size));
    extend(session, world);
    const char *target = "init";
    const struct session_run init = {.targets = &target, .targets_count = 1};
    CHECK_OK(cluster_session_run(session, &init, NULL, &err), &err);
    for (int i = 0; i < 3; i++)
        CHECK(fetch_number(session, "x", 0.5, "last") == 0.5 + 204);
    const char *fetch = "last";
    cut(&fetch, 1);
    CHECK_INT(members(), ARRAY_LEN(types) + 1);
    release();
    stop();
}

TEST(values_of_all_types_are_the_same_there)
{
    check_values(false);
    check_values(true);
}

/* What is fetched first does not wait for what is fed later. */
TEST(in_a_partial_run_all_go_alone)
{
    start();
    struct edge x = on(0, node1(world, "Neg", "first", fed_of("x", &SHAPE_SCALAR)));
    struct edge y = on(0, node1(world, "Neg", "second", fed_of("y", &SHAPE_SCALAR)));
    extend(session, world);
    static const char *const feeds[] = {"x", "y"}, *const fetches[] = {"first", "second"};
    const struct session_run names = {
        .feeds = feeds, .feeds_count = 2, .fetches = fetches, .fetches_count = 2};
    struct cluster_partial *partial = cluster_partial_new(session, &names, &err);
    CHECK_OK(partial, &err);
    for (int i = 0; i < 2; i++) {
        struct tensor in = number(F32, i + 2), got;
        const struct session_run run = {.feeds = &feeds[i],
                                        .feed_values = &in,
                                        .feeds_count = 1,
                                        .fetches = &fetches[i],
                                        .fetches_count = 1,
                                        .timeout_ms = 20000};
        CHECK_OK(cluster_partial_run(partial, &run, &got, &err), &err);
        CHECK(tensor_number(&got, 0) == -(i + 2));
        tensor_release(&got);
        tensor_release(&in);
    }
    cluster_partial_free(partial);
    (void)x, (void)y;
    stop();
}
