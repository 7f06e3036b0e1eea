/*
 * cluster_random_test.c - graphs made by chance, each node on a task by chance: the answers are
 * those of a session on one device.
 */

#include "kernels/list.h"
#include "tests/unit/runtime/cluster.h"

enum { VALUES_MAX = 400, TRIALS = 60, RUNS = 3 };

/* A generator of its own, so that a seed always gives the same graph. */
static uint64_t chance_state;

static int chance(int below)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((chance_state >> 33) % (uint64_t)below);
}

/* Values of one frame that may be read there. */
struct values {
    struct edge list[VALUES_MAX];
    int count;
};

static struct edge any(const struct values *values)
{
    return values->list[chance(values->count)];
}

static void keep(struct values *values, struct edge edge)
{
    if (values->count < VALUES_MAX)
        values->list[values->count++] = edge;
}

static const char *new_name(void)
{
    static char names[8][32];
    static int at;
    at = (at + 1) % 100000000;
    snprintf(names[at % 8], sizeof(names[0]), "n%d", at);
    return names[at % 8];
}

/* x < y ? -x : x + y, by Switch and Merge. */
static struct edge branch(struct world *w, struct edge x, struct edge y)
{
    struct edge less = node2(w, "Less", new_name(), x, y);
    struct edge a = node2(w, "Switch", new_name(), x, less);
    struct edge b = node2(w, "Switch", new_name(), y, less);
    struct edge yes = node1(w, "Neg", new_name(), builder_output(a, 1));
    struct edge no = node2(w, "AddV2", new_name(), a, b);
    if (chance(2)) /* a constant that only the branch that is taken has */
        yes = node2(w, "AddV2", new_name(), yes,
                    scalar_after(w, new_name(), 3, builder_output(a, 1)));
    return node2(w, "Merge", new_name(), no, yes);
}

/* By way of vectors: what crosses is an output that is not the first, or is no scalar. */
static struct edge pack(struct world *w, struct edge x, struct edge y)
{
    struct edge both = builder_add(&w->b, "Pack", new_name(), INPUTS(x, y),
                                   ATTRS(attr_type("T", F32), attr_int("N", 2)));
    if (chance(2))
        both = node1(w, "Neg", new_name(), both);
    struct edge parts = builder_add(&w->b, "Unpack", new_name(), INPUTS(both),
                                    ATTRS(attr_type("T", F32), attr_int("num", 2)));
    return builder_output(parts, chance(2));
}

/* By way of another type and back. */
static struct edge cast(struct world *w, struct edge x)
{
    static const enum dtype types[] = {F64, BOOL, C64, BF16, I32};
    enum dtype type = types[chance(ARRAY_LEN(types))];
    if (type == I32) /* of what fits */
        x = node2(w, "Minimum", new_name(), scalar_after(w, new_name(), 1000, x),
                  node2(w, "Maximum", new_name(), scalar_after(w, new_name(), -1000, x), x));
    struct edge other =
        builder_add(&w->b, "Cast", new_name(), INPUTS(x), ATTRS(attr_type("DstT", type)));
    return builder_add(&w->b, "Cast", new_name(), INPUTS(other), ATTRS(attr_type("DstT", F32)));
}

static struct edge pair(struct world *w, struct edge x, struct edge y)
{
    static const char *const ops[] = {"Sub", "Maximum", "Minimum", "SquaredDifference"};
    struct edge made = node2(w, ops[chance(ARRAY_LEN(ops))], new_name(), x, y);
    /* Numbers stay numbers: what grows without end is no test of bits. */
    return node1(w, "Tanh", new_name(), made);
}

static void grow(struct world *w, struct values *values, int nodes, int depth);

/*
 * A constant of the frame, dead when the frame's iteration is.  (What only runs after a Switch
 * is always alive: a loop that began with it would turn where none of its values is.)
 */
static struct edge scalar_in(struct world *w, const struct values *frame, double value)
{
    return scalar_after(w, new_name(), value, node1(w, "Identity", new_name(), any(frame)));
}

/* A loop over two values, with whatever grows in it; a few rounds. */
static struct edge loop_over(struct world *w, struct values *outer, int depth)
{
    char prefix[40];
    snprintf(prefix, sizeof(prefix), "%s", new_name());
    struct edge zero = scalar_in(w, outer, 0);
    struct edge times = scalar_in(w, outer, chance(5));
    struct loop loop = loop_begin(w, prefix, zero, times, 1 + chance(5));
    struct variable_of_loop v = loop_variable(w, &loop, "v", any(outer));
    struct variable_of_loop u = loop_variable(w, &loop, "u", any(outer));
    struct enter constant = loop.how;
    constant.constant = true;
    struct edge fixed = enter(w, named(&loop, "fixed"), any(outer), constant);
    struct values inner = {{loop.i, v.now, u.now}, 3};
    keep(&inner, node2(w, "AddV2", new_name(), fixed, any(&inner)));
    grow(w, &inner, 1 + chance(5), depth + 1);
    loop_close(w, &loop, "v", v, node1(w, "Identity", new_name(), any(&inner)));
    loop_close(w, &loop, "u", u, node1(w, "Neg", new_name(), any(&inner)));
    keep(outer, u.exit);
    return v.exit;
}

static void grow(struct world *w, struct values *values, int nodes, int depth)
{
    for (int i = 0; i < nodes; i++) {
        struct edge x = any(values), y = any(values), made;
        int kind = chance(depth < 2 ? 13 : 11);
        if (kind < 3)
            made = node2(w, "AddV2", new_name(), x, node1(w, "Neg", new_name(), y));
        else if (kind < 5)
            made = node1(w, "Neg", new_name(), x);
        else if (kind < 6)
            made = after(w, node1(w, "Identity", new_name(), x), y);
        else if (kind < 8)
            made = branch(w, x, y);
        else if (kind < 9)
            made = pack(w, x, y);
        else if (kind < 10)
            made = cast(w, x);
        else if (kind < 11)
            made = pair(w, x, y);
        else
            made = loop_over(w, values, depth);
        keep(values, made);
    }
}

static void place_by_chance(struct world *w)
{
    for (int i = 0; i < graph_count(w->graph); i++)
        if (chance(5))
            graph_node(w->graph, i)->requested_device = task_names[chance(TASKS)];
}

static void compare(struct world *w, struct cluster_session *session, double x,
                    const char *const *fetches, int count)
{
    struct tensor in = number(F32, x), *want = alloc_array((size_t)count, sizeof(*want)),
                  *got = alloc_array((size_t)count, sizeof(*got));
    const char *feed = "x";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = fetches,
                                    .fetches_count = count,
                                    .timeout_ms = 20000};
    CHECK_OK(session_run(w->session, &run, want, &err), &err);
    CHECK_OK(cluster_session_run(session, &run, got, &err), &err);
    for (int i = 0; i < count; i++) {
        if (!tensor_equal(&want[i], &got[i]))
            CHECK_STOP("%s is %g in place of %g for x = %g", fetches[i],
                       tensor_number(&got[i], 0), tensor_number(&want[i], 0), x);
        tensor_release(&want[i]);
        tensor_release(&got[i]);
    }
    tensor_release(&in);
    free(want);
    free(got);
}

static void try_one(struct cluster *cluster, int seed)
{
    char handle[16], last[64], other[64];
    chance_state = (uint64_t)seed;
    struct world *w = world_new_with(true);
    struct values values = {{placeholder(w, "x", F32)}, 1};
    keep(&values, scalar(w, "two", 2));
    grow(w, &values, 4 + chance(16), 0);
    struct edge a = values.list[values.count - 1], b = any(&values);
    snprintf(last, sizeof(last), "%s:%d", a.from->name, a.output);
    snprintf(other, sizeof(other), "%s:%d", b.from->name, b.output);
    CHECK_OK(builder_ok(&w->b), &err);
    begin(w);
    place_by_chance(w);
    snprintf(handle, sizeof(handle), "s%d", seed);
    struct cluster_session *session =
        open_session(cluster, handle, (struct cluster_options){0});
    extend(session, w);
    const char *const fetches[] = {last, other, last};
    int count = !strncmp(other, "x:", 2) ? 1 : 3; /* what is fed is not fetched */
    for (int i = 0; i < RUNS; i++)
        compare(w, session, i * 2 - 1, fetches, count);
    cluster_session_free(session);
    world_free(w);
}

static void try_all(bool over_rpc, int count)
{
    static bool added;
    if (!added)
        kernels_add(true);
    added = true;
    struct cluster *cluster = cluster_new(true, over_rpc);
    for (int seed = getenv("SEED") ? (int)strtol(getenv("SEED"), NULL, 10) : 1; seed <= count;
         seed++)
        try_one(cluster, seed);
    cluster_free(cluster);
}

static int trials(void)
{
    const char *wanted = getenv("TRIALS");
    return wanted ? (int)strtol(wanted, NULL, 10) : TRIALS;
}

TEST(cut_graphs_answer_as_whole_ones)
{
    try_all(false, trials());
}

TEST(cut_graphs_over_rpc_answer_as_whole_ones)
{
    try_all(true, trials() / 4);
}
