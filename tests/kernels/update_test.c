/*
 * update_test.c - optimizers on the CPU against their references: several steps, both kinds of
 * variables, one and two threads.
 *
 * The tables hold copies of the CPU kernels that take only nodes named FAST, so that one
 * process computes a step both ways.
 */
#include <math.h>

#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/op.h"
#include "runtime/session.h"
#include "tests/unit/test.h"

enum { SLOTS_MAX = 3, SCALARS_MAX = 6, STEPS = 4, KERNELS_MAX = 256 };

#define FAST "fast"
#define PLAIN "plain"

static struct error err;

struct rule {
    const char *name;           /* of the op, without Resource */
    int slots;                  /* the variable and its slots: the first inputs */
    float scalars[SCALARS_MAX]; /* in the order of the inputs */
    int before;                 /* scalars in front of the gradient */
    int after;                  /* and behind it */
    const char *flag;           /* an attribute that both values of are tried, or NULL */
    bool resource_only;
};

static const struct rule rules[] = {
    {"ApplyGradientDescent", 1, {0.1f}, 1, 0, NULL, false},
    {"ApplyMomentum", 2, {0.1f, 0.9f}, 1, 1, "use_nesterov", false},
    {"ApplyKerasMomentum", 2, {0.1f, 0.9f}, 1, 1, "use_nesterov", true},
    {"ApplyAdam", 3, {0.9f, 0.999f, 0.01f, 0.9f, 0.999f, 1e-7f}, 6, 0, "use_nesterov", false},
};

static bool takes_fast(const struct node *node)
{
    return strcmp(node->name, FAST) == 0;
}

static void add_tables(void)
{
    static struct kernel copies[KERNELS_MAX];
    static const struct kernel *table[KERNELS_MAX + 1];
    int count = 0;
    if (table[0])
        return;
    for (int i = 0; kernels_cpu[i]; i++) {
        if (!strstr(kernels_cpu[i]->op, "Apply") || kernels_cpu[i]->op[0] == '_')
            continue;
        assert(count < KERNELS_MAX);
        copies[count] = *kernels_cpu[i];
        copies[count].accepts = takes_fast;
        table[count] = &copies[count];
        count++;
    }
    kernel_add_table(table);
    kernels_add(true);
}

/* The same number for the same place, from -1 to 1; slots are not negative. */
static float number(int64_t i, int what)
{
    uint32_t bits = (uint32_t)(i * 7919 + what * 104729 + 1) * 2654435761u;
    float value = (float)(bits >> 8) / (float)(1 << 23) - 1;
    return what > 0 ? fabsf(value) : value;
}

static struct tensor numbers(const struct shape *shape, int what)
{
    struct tensor t;
    CHECK_OK(tensor_init(&t, F32, shape, &err), &err);
    for (int64_t i = 0; i < t.count; i++)
        tensor_f32_mut(&t)[i] = number(i, what);
    return t;
}

struct world {
    struct session *session;
    const struct rule *rule;
    bool by_ref;
};

/* A variable with its reading, and the assignment of what is fed. */
static struct edge add_variable(struct builder *b, bool by_ref, int slot, const struct shape *s)
{
    char name[16], init[16], feed[16], read[16];
    snprintf(name, sizeof(name), "v%d", slot);
    snprintf(init, sizeof(init), "init%d", slot);
    snprintf(feed, sizeof(feed), "feed%d", slot);
    snprintf(read, sizeof(read), "read%d", slot);
    struct edge value =
        builder_add(b, "Placeholder", feed, NO_INPUTS, ATTRS(attr_type("dtype", F32)));
    struct edge variable =
        builder_add(b, by_ref ? "VariableV2" : "VarHandleOp", name, NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", s),
                          attr_string("shared_name", name)));
    builder_add(b, by_ref ? "Assign" : "AssignVariableOp", init, INPUTS(variable, value),
                NO_ATTRS);
    if (by_ref)
        builder_add(b, "Identity", read, INPUTS(variable), NO_ATTRS);
    else
        builder_add(b, "ReadVariableOp", read, INPUTS(variable),
                    ATTRS(attr_type("dtype", F32)));
    return variable;
}

static struct world open_world(const struct rule *rule, bool by_ref, bool flag,
                               const char *node, int threads, const struct shape *shape)
{
    const struct session_options options = {.threads = threads, .no_optimise = true};
    struct world world = {session_new(&options, &err), rule, by_ref};
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .scope = "", .err = &err};
    struct edge inputs[SLOTS_MAX + SCALARS_MAX + 1];
    int count = 0;
    CHECK(world.session);
    for (int i = 0; i < rule->slots; i++)
        inputs[count++] = add_variable(&b, by_ref, i, shape);
    for (int i = 0; i < rule->before; i++)
        inputs[count++] = builder_scalar(&b, "scalar", F32, (double)rule->scalars[i]);
    inputs[count++] =
        builder_add(&b, "Placeholder", "grad", NO_INPUTS, ATTRS(attr_type("dtype", F32)));
    for (int i = 0; i < rule->after; i++)
        inputs[count++] =
            builder_scalar(&b, "scalar", F32, (double)rule->scalars[rule->before + i]);
    char op[64];
    snprintf(op, sizeof(op), "%s%s", by_ref ? "" : "Resource", rule->name);
    const struct attr attrs[] = {attr_bool(rule->flag ? rule->flag : "use_locking", flag)};
    builder_add(&b, op, node, inputs, count, attrs, 1);
    CHECK_OK(builder_ok(&b), &err);
    CHECK_OK(session_extend_graph(world.session, graph, &err), &err);
    graph_free(graph);
    return world;
}

static void set_variables(struct world *world, const struct shape *shape)
{
    for (int i = 0; i < world->rule->slots; i++) {
        char feed[16], init[16];
        const char *feeds[] = {feed}, *targets[] = {init};
        snprintf(feed, sizeof(feed), "feed%d", i);
        snprintf(init, sizeof(init), "init%d", i);
        struct tensor value = numbers(shape, i);
        const struct session_run run = {.feeds = feeds,
                                        .feed_values = &value,
                                        .feeds_count = 1,
                                        .targets = targets,
                                        .targets_count = 1};
        CHECK_OK(session_run(world->session, &run, NULL, &err), &err);
        tensor_release(&value);
    }
}

static bool step(struct world *world, const char *node, const struct shape *shape, int what)
{
    struct tensor grad = numbers(shape, -1 - what);
    const char *feeds[] = {"grad"}, *targets[] = {node};
    const struct session_run run = {.feeds = feeds,
                                    .feed_values = &grad,
                                    .feeds_count = 1,
                                    .targets = targets,
                                    .targets_count = 1};
    bool ok = session_run(world->session, &run, NULL, &err);
    tensor_release(&grad);
    return ok;
}

static void read_variables(struct world *world, struct tensor *out)
{
    static const char *const names[] = {"read0", "read1", "read2"};
    const struct session_run run = {.fetches = names, .fetches_count = world->rule->slots};
    CHECK_OK(session_run(world->session, &run, out, &err), &err);
}

/* Runs the steps by the kernel that `node` chooses; the values are the caller's. */
static void run_steps(const struct rule *rule, bool by_ref, bool flag, const char *node,
                      int threads, const struct shape *shape, struct tensor *out)
{
    struct world world = open_world(rule, by_ref, flag, node, threads, shape);
    set_variables(&world, shape);
    for (int i = 0; i < STEPS; i++)
        CHECK_OK(step(&world, node, shape, i), &err);
    read_variables(&world, out);
    session_free(world.session);
}

static void check_close(const char *what, const struct tensor *is, const struct tensor *wanted)
{
    CHECK(shape_equal(&is->shape, &wanted->shape));
    for (int64_t i = 0; i < is->count; i++) {
        double x = tensor_number(is, i), y = tensor_number(wanted, i);
        if (!(fabs(x - y) <= 1e-6 + 1e-5 * fabs(y)))
            CHECK_STOP("%s: element %lld of %lld is %.9g, the reference has %.9g", what,
                       (long long)i, (long long)is->count, x, y);
    }
}

static void check_rule(const struct rule *rule, bool by_ref, bool flag,
                       const struct shape *shape)
{
    struct tensor wanted[SLOTS_MAX], is[SLOTS_MAX];
    run_steps(rule, by_ref, flag, PLAIN, 1, shape, wanted);
    for (int threads = 1; threads <= 2; threads++) {
        run_steps(rule, by_ref, flag, FAST, threads, shape, is);
        for (int i = 0; i < rule->slots; i++) {
            check_close(rule->name, &is[i], &wanted[i]);
            tensor_release(&is[i]);
        }
    }
    for (int i = 0; i < rule->slots; i++)
        tensor_release(&wanted[i]);
}

TEST(steps_are_those_of_the_references)
{
    const struct shape shapes[] = {SHAPE_SCALAR,    SHAPE(0),       SHAPE(1),
                                   SHAPE(7),        SHAPE(16),      SHAPE(3, 11),
                                   SHAPE(5, 1, 41), SHAPE(300, 257)};
    add_tables();
    for (int r = 0; r < ARRAY_LEN(rules); r++)
        for (int s = 0; s < ARRAY_LEN(shapes); s++)
            for (int how = 0; how < 4; how++) {
                bool by_ref = how & 1, flag = how & 2;
                if (!(by_ref && rules[r].resource_only) && (rules[r].flag || !flag))
                    check_rule(&rules[r], by_ref, flag, &shapes[s]);
            }
}

/* The copies above really are other kernels: without them this file would test nothing. */
TEST(fast_nodes_have_other_kernels)
{
    add_tables();
    for (int r = 0; r < ARRAY_LEN(rules); r++) {
        const struct kernel *kernels[2];
        static const char *const names[] = {FAST, PLAIN};
        char op[64];
        snprintf(op, sizeof(op), "Resource%s", rules[r].name);
        for (int i = 0; i < 2; i++) {
            const struct node node = {.name = names[i], .op = op_find(op)};
            kernels[i] = kernel_find(&node, CPU, &err);
            CHECK_OK(kernels[i], &err);
        }
        CHECK(kernels[0]->run != kernels[1]->run);
    }
}

/* A gradient of another shape changes nothing, whichever kernel meets it. */
TEST(steps_that_fail_change_nothing)
{
    const struct shape shape = SHAPE(4, 3), other = SHAPE(4, 2);
    static const char *const nodes[] = {FAST, PLAIN};
    add_tables();
    for (int r = 0; r < ARRAY_LEN(rules); r++)
        for (int n = 0; n < 2; n++) {
            struct tensor is[SLOTS_MAX];
            struct world world = open_world(&rules[r], false, false, nodes[n], 1, &shape);
            CHECK_FAILS(step(&world, nodes[n], &shape, 0), &err, INTERNAL);
            set_variables(&world, &shape);
            CHECK_FAILS(step(&world, nodes[n], &other, 0), &err, INVALID);
            read_variables(&world, is);
            for (int i = 0; i < rules[r].slots; i++) {
                struct tensor before = numbers(&shape, i);
                CHECK(tensor_equal(&is[i], &before));
                tensor_release(&before);
                tensor_release(&is[i]);
            }
            session_free(world.session);
        }
}
