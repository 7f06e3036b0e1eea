/* partition_late_test.c - which receives wait, and for what. */

#include "tests/unit/runtime/parts.h"

enum { WIDTH = 512, LAYERS = 14, TRIALS = 40 }; /* a square of that width is 1 MiB of floats */

/* --- nodes --- */

static struct edge fed(const char *name, int64_t rows, int64_t columns)
{
    return fed_of(name, &SHAPE(rows, columns));
}

static struct edge variable(const char *name, int64_t rows)
{
    return variable_on(0, name, &SHAPE(rows, rows));
}

static struct edge resource(const char *name, int64_t rows)
{
    char handle[40];
    snprintf(handle, sizeof(handle), "%s/handle", name);
    struct edge at = on(
        0, builder_add(&world->b, "VarHandleOp", handle, NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(rows, rows)),
                             attr_string("shared_name", name))));
    return on(0, builder_add(&world->b, "ReadVariableOp", name, INPUTS(at),
                             ATTRS(attr_type("dtype", F32))));
}

static int layers_task = 2; /* worker 1; the client's master is on worker 0, task 1 */

/* relu(x * w) on that task. */
static struct edge layer(const char *name, struct edge x, struct edge w)
{
    char product[40];
    snprintf(product, sizeof(product), "%s/product", name);
    struct edge y = on(layers_task, node2(world, "MatMul", product, x, w));
    return on(layers_task, node1(world, "Relu", name, y));
}

/* From x, which is [1, WIDTH], "relu0" to "relu13" by way of "w0" to "w13". */
static struct edge chain(struct edge x, struct edge (*weights)(const char *, int64_t),
                         int64_t rows)
{
    for (int i = 0; i < LAYERS; i++)
        x = layer(numbered("relu", i), x, weights(numbered("w", i), rows));
    return x;
}

/* --- parts --- */

/* What the receive of a node's value runs after: "" for nothing, "?" if there is none. */
static const char *anchor_of(const char *source)
{
    for (int i = 0; i < parts_count; i++)
        for (int n = 0; n < graph_count(parts[i]); n++) {
            const struct node *node = graph_node(parts[i], n);
            const char *tensor = node_attr_string(node, "tensor_name", "");
            size_t size = strlen(tensor), end = strlen(source);
            if (!is_receive(node) || size <= end || strcmp(tensor + size - end, source) != 0 ||
                tensor[size - end - 1] != '_')
                continue;
            CHECK(node->controls_count < 2);
            return node->controls_count ? node->controls[0]->name : "";
        }
    return "?";
}

static int count_anchors(void)
{
    int count = 0;
    for (int i = 0; i < parts_count; i++)
        for (int n = 0; n < graph_count(parts[i]); n++)
            count += is_receive(graph_node(parts[i], n)) &&
                     graph_node(parts[i], n)->controls_count > 0;
    return count;
}

static int anchors_of(const char *fetch)
{
    extend(session, world);
    cut(&fetch, 1);
    int count = count_anchors();
    release();
    return count;
}

/* --- what waits --- */

/* Five values are on their way while one is read: the seventh is asked for when the first has
 * been. */
TEST(values_that_are_read_one_after_the_other_come_so)
{
    struct edge (*const kinds[])(const char *, int64_t) = {variable, resource};
    for (int kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        start();
        chain(fed("x", 1, WIDTH), kinds[kind], WIDTH);
        extend(session, world);
        const char *fetch = "relu13";
        cut(&fetch, 1);
        for (int i = 0; i < LAYERS; i++)
            CHECK_TEXT(anchor_of(numbered("w", i)), i < 6 ? "" : numbered("relu", i - 6));
        release();
        stop();
    }
}

TEST(small_values_begin_with_the_step)
{
    start();
    chain(fed("x", 1, WIDTH - 1), variable, WIDTH - 1);
    CHECK_INT(anchors_of("relu13"), 0);
    stop();
}

/* They come when they come, and the link is theirs then. */
TEST(values_that_another_task_works_out_leave_all_as_it_is)
{
    for (int i = 0; i < 2; i++) {
        start();
        struct edge x = chain(fed("x", 1, WIDTH), variable, WIDTH);
        struct edge other = on(0, variable("other", WIDTH));
        if (i)
            other = on(0, node2(world, "AddV2", "sum", other, other));
        layer("last", x, other);
        CHECK((anchors_of("last") > 0) == !i);
        stop();
    }
}

/* Who has room for all has them at once. */
TEST(values_that_are_little_to_the_task_begin_with_the_step)
{
    for (int i = 0; i < 2; i++) {
        memory_bytes = (int64_t)(LAYERS + i) << 24;
        start();
        chain(fed("x", 1, WIDTH), variable, WIDTH);
        CHECK((anchors_of("relu13") > 0) == !i);
        stop();
    }
    memory_bytes = 64 << 20;
}

/* All are there when the second half begins, as in training: to wait would save no memory. */
TEST(values_that_are_read_again_begin_with_the_step)
{
    start();
    struct edge x = chain(fed("x", 1, WIDTH), variable, WIDTH);
    for (int i = LAYERS - 1; i >= 0; i--)
        x = layer(numbered("back", i), x,
                  (struct edge){graph_find(world->graph, numbered("w", i)), 0});
    CHECK_INT(anchors_of("back0"), 0);
    stop();
}

TEST(values_that_are_read_at_once_begin_with_the_step)
{
    start();
    struct edge x = fed("x", 1, WIDTH), sum = x;
    for (int i = 0; i < LAYERS; i++) {
        struct edge y = layer(numbered("relu", i), x, variable(numbered("w", i), WIDTH));
        sum = on(2, node2(world, "AddV2", numbered("sum", i), sum, y));
    }
    CHECK_INT(anchors_of("sum13"), 0);
    stop();
}

/* While the long product runs, all could come: who knows whether the link is fast enough to
 * bring them after it. */
TEST(a_long_time_before_the_first_is_used)
{
    start();
    struct edge x = fed("x", 1, WIDTH);
    struct edge wide = on(2, variable("wide", WIDTH));
    struct edge front = on(2, node2(world, "MatMul", "front", wide, wide));
    struct edge sums = on(2, node2(world, "MatMul", "sums", x, front));
    chain(sums, variable, WIDTH);
    CHECK_INT(anchors_of("relu13"), 0);
    stop();
}

/* What the client fetches may have to be there before the rest is fed. */
TEST(values_that_are_fetched_begin_with_the_step)
{
    start();
    chain(fed("x", 1, WIDTH), variable, WIDTH);
    on(2, node1(world, "Identity", "seen", (struct edge){graph_find(world->graph, "w12"), 0}));
    extend(session, world);
    const char *const fetches[] = {"relu13", "seen"};
    cut(fetches, 1);
    CHECK_TEXT(anchor_of("w12"), "relu6");
    release();
    cut(fetches, 2);
    CHECK_TEXT(anchor_of("w12"), "");
    CHECK(*anchor_of("w13"));
    release();
    stop();
}

/* The same where the layers are with the client, so that one receive serves both. */
TEST(values_that_are_fetched_where_they_are_read_begin_with_the_step)
{
    layers_task = 1;
    start();
    chain(fed("x", 1, WIDTH), variable, WIDTH);
    extend(session, world);
    const char *const fetches[] = {"relu13", "w12"};
    cut(fetches, 1);
    CHECK_TEXT(anchor_of("w12"), "relu6");
    release();
    cut(fetches, 2);
    CHECK_TEXT(anchor_of("w12"), "");
    CHECK(*anchor_of("w13"));
    release();
    stop();
    layers_task = 2;
}

/* A generator of its own, so that a seed always gives the same graph. */
static uint64_t chance_state;

static int chance(int below)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((chance_state >> 33) % (uint64_t)below);
}

/* x by way of a branch, dead or alive. */
static struct edge branch(const char *name, struct edge x)
{
    char text[4][40];
    static const char *const parts_of_name[] = {"less", "switch", "neg", "one"};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof(text[i]), "%s/%s", name, parts_of_name[i]);
    struct edge one = scalar(world, text[3], 1);
    struct edge split =
        node2(world, "Switch", text[1], x, node2(world, "Less", text[0], one, one));
    struct edge other = node1(world, "Neg", text[2], builder_output(split, 1));
    return node2(world, "Merge", name, split, other);
}

/* What has no place yet, but for what is fed: on worker 1, one of `others` on the ps. */
static void place(int others)
{
    for (int i = 0; i < graph_count(world->graph); i++) {
        struct node *node = graph_node(world->graph, i);
        if (!*node->requested_device && strcmp(node->op->name, "Placeholder") != 0)
            node->requested_device = task_names[chance(others) ? 2 : 0];
    }
}

static struct edge sum(const char *name, struct edge x, struct edge y)
{
    return on(2, node2(world, "AddV2", name, x, y));
}

/*
 * A node that may be dead would take the receive with it: those wait for what goes on without
 * the branch, though all that read need the branch, too, which is done as soon.
 */
TEST(none_waits_for_what_may_be_dead)
{
    start();
    struct edge own = on(2, variable("own", WIDTH)),
                x = layer("alive", fed("x", 1, WIDTH), own);
    struct edge side = branch("side", x), all = layer("read", side, own);
    for (int i = 0; i < LAYERS; i++) {
        struct edge both = sum(numbered("both", i), x, side);
        all = sum(numbered("all", i), all,
                  layer(numbered("out", i), both, variable(numbered("w", i), WIDTH)));
        x = layer(numbered("relu", i), x, own);
    }
    place(1000000000);
    extend(session, world);
    const char *fetch = "all13";
    cut(&fetch, 1);
    int anchors = 0;
    for (int i = 0; i < LAYERS; i++) {
        const char *anchor = anchor_of(numbered("w", i));
        CHECK(!*anchor || !strcmp(anchor, "alive") || !strncmp(anchor, "relu", 4));
        anchors += *anchor != '\0';
    }
    CHECK(anchors > 2);
    release();
    stop();
}

/* Rows that are made of rows, by weights, mostly new ones and mostly on one task. */
static struct edge grow(struct edge x, struct edge weights[LAYERS])
{
    struct edge rows[2 * LAYERS] = {x};
    int count = 1;
    for (int i = 0; i < 2 * LAYERS - 1; i++) {
        struct edge from = rows[chance(10) ? count - 1 : chance(count)], made;
        const char *name = numbered("n", i);
        int kind = chance(20);
        if (kind < 13)
            made = node2(world, "MatMul", name, from,
                         weights[chance(20) ? i / 2 : chance(LAYERS)]);
        else if (kind < 16)
            made = node2(world, "AddV2", name, from, rows[chance(count)]);
        else if (kind < 19)
            made = node1(world, "Relu", name, from);
        else
            made = branch(name, from);
        rows[count++] = made;
    }
    return rows[count - 1];
}

static void fill_squares(struct tensor *values)
{
    for (int i = 0; i < LAYERS; i++) {
        CHECK_OK(tensor_init(&values[i], F32, &SHAPE(WIDTH, WIDTH), &err), &err);
        for (int64_t k = 0; k < values[i].count; k++)
            tensor_f32_mut(&values[i])[k] = (float)(chance(2001) - 1000) / (1000 * WIDTH);
    }
    CHECK_OK(tensor_init(&values[LAYERS], F32, &SHAPE(1, WIDTH), &err), &err);
    for (int64_t k = 0; k < WIDTH; k++)
        tensor_f32_mut(&values[LAYERS])[k] = (float)(k + 1);
}

/* The answer is that of a session on one device; returns how many receives waited. */
static int try_one(int seed)
{
    const char *names[LAYERS + 1];
    struct tensor values[LAYERS + 1], want, got;
    struct edge weights[LAYERS];
    start();
    chance_state = (uint64_t)seed;
    for (int i = 0; i < LAYERS; i++)
        weights[i] = fed(names[i] = alloc_printf("w%d", i), WIDTH, WIDTH);
    names[LAYERS] = "x";
    const char *fetch = grow(fed("x", 1, WIDTH), weights).from->name;
    fill_squares(values);
    begin(world);
    place(12);
    extend(session, world);
    const struct session_run run = {.feeds = names,
                                    .feed_values = values,
                                    .feeds_count = LAYERS + 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    CHECK_OK(session_run(world->session, &run, &want, &err), &err);
    CHECK_OK(cluster_session_run(session, &run, &got, &err), &err);
    if (!tensor_equal(&want, &got))
        CHECK_STOP("seed %d: another answer", seed);
    tensor_release(&want);
    tensor_release(&got);
    parts_count = cut_run(&run, parts);
    int anchors = count_anchors();
    release();
    for (int i = 0; i <= LAYERS; i++) {
        tensor_release(&values[i]);
        if (i < LAYERS)
            free((char *)names[i]);
    }
    stop();
    return anchors;
}

TEST(what_waits_answers_as_what_does_not)
{
    int anchors = 0;
    for (int seed = 1; seed <= TRIALS; seed++)
        anchors += try_one(seed);
    CHECK(anchors > TRIALS / 2);
}
