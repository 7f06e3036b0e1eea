/*
 * dataflow_random_test.c - graphs made by chance: most make no sense, none may crash, hang or
 * give another answer when it is optimised.
 */

#include "tests/unit/runtime/flow.h"

enum { GRAPHS = 200, NODES = 24, TIMEOUT_MS = 50 };

static uint64_t state;

static int draw(int bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)bound);
}

/* Outputs so far, by type. */
struct pool {
    struct edge numbers[4 * NODES];
    struct edge bools[4 * NODES];
    struct edge merges[NODES];
    struct edge nexts[NODES];
    int numbers_count, bools_count, merges_count, nexts_count;
};

static struct edge any_number(struct pool *p)
{
    /* Mostly new ones, so that chains grow. */
    int back = draw(draw(3) ? 4 : p->numbers_count);
    return p->numbers[back < p->numbers_count ? p->numbers_count - 1 - back : 0];
}

static void add_number(struct pool *p, struct edge edge)
{
    p->numbers[p->numbers_count++] = edge;
}

static void add_next(struct world *w, struct pool *p, const char *name)
{
    struct edge next = node1(w, "NextIteration", name, any_number(p));
    add_number(p, next);
    p->nexts[p->nexts_count++] = next;
}

static struct edge add_enter(struct world *w, struct pool *p, const char *name)
{
    static const char *const frames[] = {"f", "f", "g"};
    return enter(w, name, any_number(p),
                 (struct enter){.frame = frames[draw(3)],
                                .constant = draw(3) == 0,
                                .parallel = 1 + draw(3)});
}

static void add_switch(struct world *w, struct pool *p, const char *name)
{
    struct edge cond = p->bools[draw(p->bools_count)];
    struct edge split = node2(w, "Switch", name, any_number(p), cond);
    add_number(p, split);
    add_number(p, builder_output(split, 1));
}

static void add_any(struct world *w, struct pool *p, const char *name)
{
    struct edge x = any_number(p), y = any_number(p);
    struct edge added = {0};
    switch (draw(12)) {
    case 0:
    case 1:
        add_number(p, added = node2(w, "AddV2", name, x, y));
        break;
    case 2:
        add_number(p, added = node1(w, "Neg", name, x));
        break;
    case 3:
        add_number(p, added = node1(w, "Identity", name, x));
        break;
    case 4:
        added = node2(w, "Less", name, x, y);
        p->bools[p->bools_count++] = added;
        break;
    case 5:
        added = node1(w, "LoopCond", name, p->bools[draw(p->bools_count)]);
        p->bools[p->bools_count++] = added;
        break;
    case 6:
        add_switch(w, p, name);
        return;
    case 7:
        add_number(p, added = node2(w, "Merge", name, x, y));
        p->merges[p->merges_count++] = added;
        break;
    case 8:
    case 9:
        add_number(p, added = add_enter(w, p, name));
        break;
    case 10:
        add_number(p, added = node1(w, "Exit", name, x));
        break;
    default:
        add_next(w, p, name);
        return;
    }
    if (draw(8) == 0)
        after(w, added, x);
}

static void build(struct world *w, struct pool *p)
{
    *p = (struct pool){0};
    add_number(p, scalar(w, "a", 1));
    add_number(p, scalar(w, "b", 2));
    p->bools[p->bools_count++] = placeholder(w, "p", BOOL);
    for (int i = 0; i < NODES; i++) {
        char name[20];
        snprintf(name, sizeof(name), "n%d", i);
        add_any(w, p, name);
    }
    /* Loops are closed. */
    for (int i = 0; i < p->merges_count && p->nexts_count; i++)
        if (draw(4))
            graph_set_input(w->graph, p->merges[i].from, 1, p->nexts[draw(p->nexts_count)]);
}

/* Both sides of a condition, and the one that lives: a Merge never has two values. */
static void add_branches(struct world *w, struct pool *p, const char *name)
{
    char names[3][40];
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof(names[i]), "%s_%d", name, i);
    struct edge cond = p->bools[draw(p->bools_count)];
    struct edge split = node2(w, "Switch", name, any_number(p), cond);
    struct edge no = node1(w, "Neg", names[0], split);
    struct edge yes = builder_output(split, 1);
    yes = draw(2) ? node2(w, "AddV2", names[1], yes, yes) : yes;
    add_number(p, node2(w, "Merge", names[2], no, yes));
}

/* A loop that makes sense, with nodes by chance in its body and behind it. */
static void build_loop(struct world *w, struct pool *p)
{
    *p = (struct pool){0};
    struct edge zero = scalar(w, "a", draw(3));
    struct loop loop = loop_begin(w, "loop", zero, scalar(w, "limit", draw(6)), 1 + draw(4));
    struct variable_of_loop x = loop_variable(w, &loop, "x", zero);
    add_number(p, loop.i);
    add_number(p, x.now);
    struct edge pred = enter(w, "p/enter", placeholder(w, "p", BOOL),
                             (struct enter){.frame = "loop", .constant = true});
    p->bools[p->bools_count++] = node2(w, "Switch", "p/switch", pred, loop.cond);
    p->bools[0].output = 1;
    for (int i = 0; i < NODES / 2; i++) {
        char name[20];
        snprintf(name, sizeof(name), "n%d", i);
        int kind = draw(5);
        struct edge a = any_number(p), b = any_number(p);
        if (kind == 0)
            add_switch(w, p, name);
        else if (kind == 1)
            add_branches(w, p, name);
        else if (kind == 2)
            add_number(p, node1(w, "Identity", name, a));
        else if (kind == 3)
            p->bools[p->bools_count++] = node2(w, "Less", name, a, b);
        else
            add_number(p, node2(w, "AddV2", name, a, b));
    }
    loop_close(w, &loop, "x", x, any_number(p));
    p->numbers_count = 0;
    add_number(p, x.exit);
    add_number(p, loop.exit);
    add_number(p, node2(w, "AddV2", "sum", x.exit, loop.exit));
    add_number(p, node2(w, "Merge", "merge", x.exit, zero));
}

struct answer {
    bool ok;
    double value;
    struct error err;
};

static struct answer ask(struct world *w, struct edge edge, bool p)
{
    struct answer answer = {0};
    struct tensor in = number(BOOL, p), out;
    const char *feed = "p";
    char fetch[80];
    snprintf(fetch, sizeof(fetch), "%s:%d", edge.from->name, edge.output);
    const char *name = fetch;
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &name,
                                    .fetches_count = 1,
                                    .timeout_ms = TIMEOUT_MS};
    answer.ok = session_run(w->session, &run, &out, &answer.err);
    if (answer.ok) {
        answer.value = tensor_number(&out, 0);
        tensor_release(&out);
    }
    tensor_release(&in);
    return answer;
}

/* Answers of the same graph in two sessions agree (if so asked), if neither ran out of time. */
static int check_graph(uint64_t seed, bool agree, void (*make)(struct world *w, struct pool *p))
{
    int answered = 0;
    struct world *worlds[2];
    struct pool pool;
    for (int i = 0; i < 2; i++) {
        worlds[i] = world_new_with(i);
        state = seed;
        make(worlds[i], &pool);
        begin(worlds[i]);
    }
    for (int k = pool.numbers_count - 1; k >= 0 && k > pool.numbers_count - 5; k--) {
        for (int p = 0; p < 2; p++) {
            struct answer a = ask(worlds[0], pool.numbers[k], p);
            struct answer b = ask(worlds[1], pool.numbers[k], p);
            bool late = (!a.ok && a.err.code == DEADLINE) || (!b.ok && b.err.code == DEADLINE);
            if (agree && !late && (a.ok != b.ok || (a.ok && a.value != b.value)))
                CHECK_STOP("graph %llu, %s:%d, p %d: %s %g, not optimised %s %g",
                           (unsigned long long)seed, pool.numbers[k].from->name,
                           pool.numbers[k].output, p, a.ok ? "" : a.err.text, a.value,
                           b.ok ? "" : b.err.text, b.value);
            answered += a.ok;
        }
    }
    world_free(worlds[0]);
    world_free(worlds[1]);
    return answered;
}

/* Values may race to a Merge here, so answers may differ; but each comes. */
TEST(graphs_by_chance_end)
{
    int answered = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++)
        answered += check_graph(seed * 7919, false, build);
    CHECK(answered > GRAPHS / 4);
}

TEST(loops_by_chance_end_and_are_optimised_to_the_same)
{
    int answered = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++)
        answered += check_graph(seed * 104729, true, build_loop);
    CHECK(answered > GRAPHS);
}
