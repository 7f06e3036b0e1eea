/* optimizer.c - the table of optimizers, and what is done around them. */

#include "runtime/model/optimizer.h"

#include "base/arena.h"
#include "runtime/op.h"

static const struct config_argument common[] = {
    {CONFIG_ARG("learning_rate", CONFIG_OBJECT, "null"), .family = &schedule_family},
    {CONFIG_ARG("weight_decay", CONFIG_REAL, "null"), CONFIG_RANGE(0, 1e6)},
    {CONFIG_ARG("clipnorm", CONFIG_REAL, "null"), CONFIG_RANGE(1e-30, 1e30)},
    {CONFIG_ARG("clipvalue", CONFIG_REAL, "null"), CONFIG_RANGE(1e-30, 1e30)},
    {CONFIG_ARG("global_clipnorm", CONFIG_REAL, "null"), CONFIG_RANGE(1e-30, 1e30)},
    {CONFIG_ARG("use_ema", CONFIG_BOOL, "false")},
    {CONFIG_ARG("ema_momentum", CONFIG_REAL, "0.99"), CONFIG_RANGE(0, 1)},
    {CONFIG_ARG("ema_overwrite_frequency", CONFIG_INT, "null"), CONFIG_RANGE(1, 1e15)},
    {CONFIG_ARG("loss_scale_factor", CONFIG_REAL, "null"), CONFIG_RANGE(1e-30, 1e30)},
    {CONFIG_ARG("gradient_accumulation_steps", CONFIG_INT, "null"), CONFIG_RANGE(2, 1e9)},
};

#define OPTIMIZER_ROW(name) &optimizer_##name,
static const struct optimizer_class *const table[] = {OPTIMIZERS(OPTIMIZER_ROW)};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(table) ? &table[index]->config : NULL;
}

const struct config_family optimizer_family = {.what = "optimizer",
                                               .key = "name",
                                               .common = common,
                                               .common_count = ARRAY_LEN(common),
                                               .at = class_at};

const struct optimizer_class *optimizer_of(const struct config_class *class)
{
    static_assert(offsetof(struct optimizer_class, config) == 0, "it begins with its class");
    return (const struct optimizer_class *)class;
}

double optimizer_rate(const struct config *config)
{
    const struct config *schedule = config_object(config, "learning_rate");
    if (!schedule)
        return optimizer_of(config->class)->learning_rate;
    if (config_has(schedule, "initial_learning_rate"))
        return config_real(schedule, "initial_learning_rate");
    return config_is(schedule, "Constant") ? config_real(schedule, "value")
                                           : config_reals(schedule, "values", NULL)[0];
}

/* --- for optimizers --- */

/* One of its own, or that of the replica before. */
static int variable(struct build *m, const char *name, const struct shape *shape, double value)
{
    int known = build_weight_find(m, name);
    if (known >= 0)
        return known;
    struct edge dims = builder_ints(&m->b, arena_printf(m->arena, "%s/Initializer/shape", name),
                                    I32, shape->dims, shape->rank);
    struct edge each =
        builder_scalar(&m->b, arena_printf(m->arena, "%s/Initializer/value", name), F32, value);
    struct edge start =
        builder_add(&m->b, "Fill", arena_printf(m->arena, "%s/Initializer", name),
                    INPUTS(dims, each), NO_ATTRS);
    return build_weight_add(m, name, shape, F32, false, start);
}

struct edge optimizer_slot(struct optimizer_call *call, const char *suffix, double value)
{
    struct build *m = call->m;
    const struct model_variable of = m->weights[call->weight].face;
    int slot = variable(m, arena_printf(m->arena, "%s/%s", of.name, suffix), &of.shape, value);
    if (slot >= 0 && of.whole && !m->weights[slot].face.whole) { /* a part of one, too */
        struct model_variable *face = &m->weights[slot].face;
        face->whole = arena_printf(m->arena, "%s/%s", of.whole, suffix);
        face->whole_shape = of.whole_shape;
        face->first = of.first;
    }
    return build_weight_handle(m, slot);
}

struct edge optimizer_scalar(struct optimizer_call *call, const char *name, double value)
{
    return build_weight_handle(call->m, variable(call->m, name, &SHAPE_SCALAR, value));
}

struct edge optimizer_read(struct optimizer_call *call, struct edge handle)
{
    struct build *m = call->m;
    struct edge value = builder_add(&m->b, "ReadVariableOp", "ReadVariableOp", INPUTS(handle),
                                    ATTRS(attr_type("dtype", F32)));
    if (build_ok(m))
        graph_add_control(m->b.graph, value.from, call->after);
    return value;
}

void optimizer_update(struct optimizer_call *call, const char *op, const struct edge *inputs,
                      int inputs_count, const struct attr *attrs, int attrs_count)
{
    struct build *m = call->m;
    const char *outside = m->b.scope;
    m->b.scope = "";
    const char *name =
        arena_printf(m->arena, "%s/update_%s/%s", call->config->class->name,
                     call->weight < 0 ? "shared" : m->weights[call->weight].face.name, op);
    struct edge edge = builder_add(&m->b, op, name, inputs, inputs_count, attrs, attrs_count);
    m->b.scope = outside;
    if (!build_ok(m))
        return;
    graph_add_control(m->b.graph, edge.from, call->after);
    call->updates[call->updates_count++] = edge.from;
}

void optimizer_assign(struct optimizer_call *call, struct edge handle, struct edge value)
{
    optimizer_update(call, "AssignVariableOp", INPUTS(handle, value),
                     ATTRS(attr_type("dtype", F32)));
}

void optimizer_subtract(struct optimizer_call *call, struct edge change)
{
    optimizer_update(call, "AssignSubVariableOp", INPUTS(call->variable, change),
                     ATTRS(attr_type("dtype", F32)));
}

struct edge optimizer_blend(struct optimizer_call *call, double keep, struct edge x,
                            struct edge y)
{
    return build_binary(call->m, "AddV2", build_with_number(call->m, "Mul", x, keep),
                        build_with_number(call->m, "Mul", y, 1 - keep));
}

bool optimizer_is_looked_up(const struct optimizer_call *call)
{
    return call->gradient.from && !strcmp(call->gradient.from->op->name, "UnsortedSegmentSum");
}

struct edge optimizer_squares(struct optimizer_call *call)
{
    struct build *m = call->m;
    if (!optimizer_is_looked_up(call))
        return build_unary(m, "Square", call->gradient);
    const struct edge *of = call->gradient.from->inputs;
    struct edge squares = build_unary(m, "Square", of[0]);
    return builder_add(&m->b, "UnsortedSegmentSum", "UnsortedSegmentSum",
                       INPUTS(squares, of[1], of[2]), NO_ATTRS);
}

/* --- gradients, before they are used --- */

static struct edge square_sum(struct build *m, struct edge x)
{
    return build_reduce_all(m, "Sum", build_unary(m, "Square", x));
}

/* x times limit / max(norm, limit) */
static struct edge shorten(struct build *m, struct edge x, struct edge norm, double limit)
{
    struct edge by = build_binary(m, "RealDiv", build_number(m, F32, limit),
                                  build_with_number(m, "Maximum", norm, limit));
    return build_binary(m, "Mul", x, by);
}

/* What is done to a variable or its gradient is done beside it; with mirrors on the worker. */
static void go_beside(struct build *m, int weight, const char *here)
{
    const char *device = weight >= 0 && !m->mirrors ? m->weights[weight].device : NULL;
    m->b.device = device ? device : here;
}

/* The index of the next trainable weight, behind `weight`. */
static int next_trainable(const struct build *m, int weight)
{
    do
        weight++;
    while (weight < m->weights_count && !m->weights[weight].face.trainable);
    return weight;
}

static void clip(struct build *m, const struct config *config, struct edge *gradients,
                 int count)
{
    const char *here = m->b.device;
    if (!config_is_null(config, "clipvalue")) {
        double limit = config_real(config, "clipvalue");
        for (int i = 0, w = -1; i < count; i++) {
            go_beside(m, w = next_trainable(m, w), here);
            gradients[i] = build_with_number(
                m, "Minimum", build_with_number(m, "Maximum", gradients[i], -limit), limit);
        }
    }
    if (!config_is_null(config, "clipnorm")) {
        for (int i = 0, w = -1; i < count; i++) {
            go_beside(m, w = next_trainable(m, w), here);
            gradients[i] =
                shorten(m, gradients[i], build_unary(m, "Sqrt", square_sum(m, gradients[i])),
                        config_real(config, "clipnorm"));
        }
    }
    if (!config_is_null(config, "global_clipnorm") && count) {
        struct edge *sums = arena_array(m->arena, (size_t)count, sizeof(*sums));
        for (int i = 0, w = -1; i < count; i++) {
            go_beside(m, w = next_trainable(m, w), here);
            sums[i] = square_sum(m, gradients[i]);
        }
        m->b.device = here;
        struct edge norm = build_unary(m, "Sqrt",
                                       builder_add(&m->b, "AddN", "global_norm", sums, count,
                                                   ATTRS(attr_int("N", count))));
        for (int i = 0, w = -1; i < count; i++) {
            go_beside(m, w = next_trainable(m, w), here);
            gradients[i] =
                shorten(m, gradients[i], norm, config_real(config, "global_clipnorm"));
        }
    }
    m->b.device = here;
}

/* Whether the step that is done now is the last of `period`. */
static struct edge is_due(struct build *m, int64_t period)
{
    struct edge next = build_with_number(m, "AddV2", m->step, 1);
    return build_with_number(m, "Equal", build_with_number(m, "FloorMod", next, (double)period),
                             0);
}

/*
 * Gathers gradients over several steps.  In all but the last of them the mean that is given to
 * the update is dead, so that nothing is updated.
 */
static void accumulate(struct optimizer_call *call, struct edge *gradients, int64_t steps)
{
    struct build *m = call->m;
    struct edge due = is_due(m, steps);
    const char *here = m->b.device;
    int next = 0;
    for (int i = 0, weights = m->weights_count; i < weights && build_ok(m); i++) {
        if (!m->weights[i].face.trainable)
            continue;
        call->weight = i;
        go_beside(m, i, here);
        struct edge slot = optimizer_slot(call, "accumulated_gradient", 0);
        struct edge sum = build_binary(m, "AddV2", optimizer_read(call, slot), gradients[next]);
        optimizer_assign(call, slot,
                         build_select(m, due, build_unary(m, "ZerosLike", sum), sum));
        struct edge mean = build_with_number(m, "Mul", sum, 1.0 / (double)steps);
        gradients[next++] = builder_output(
            builder_add(&m->b, "Switch", "when_due", INPUTS(mean, due), NO_ATTRS), 1);
    }
    m->b.device = here;
    call->weight = -1;
}

/* --- weights, before and after their update --- */

static double weight_decay(const struct config *config)
{
    return config_is_null(config, "weight_decay") ? optimizer_of(config->class)->weight_decay
                                                  : config_real(config, "weight_decay");
}

/* variable -= rate * decay * variable; the update waits for it. */
static void decay(struct optimizer_call *call)
{
    struct build *m = call->m;
    double by = weight_decay(call->config);
    if (by == 0)
        return;
    struct edge change = build_binary(m, "Mul", optimizer_read(call, call->variable),
                                      build_with_number(m, "Mul", call->rate, by));
    optimizer_subtract(call, change);
    if (build_ok(m))
        call->after = call->updates[call->updates_count - 1];
}

/* The value after what was added to the updates since `first`. */
static struct edge read_after(struct optimizer_call *call, int first)
{
    struct edge value = optimizer_read(call, call->variable);
    for (int i = first; i < call->updates_count && build_ok(call->m); i++)
        graph_add_control(call->m->b.graph, value.from, call->updates[i]);
    return value;
}

/* Follows the weight by a moving average, which takes its place now and then. */
static void follow(struct optimizer_call *call, int first)
{
    struct build *m = call->m;
    const struct config *config = call->config;
    double momentum = config_real(config, "ema_momentum");
    struct edge slot = optimizer_slot(call, "average", 0), value = read_after(call, first);
    struct edge started = build_cast(m, build_with_number(m, "NotEqual", call->step, 0), F32);
    struct edge keep = build_with_number(m, "Mul", started, momentum);
    struct edge take = build_binary(m, "Sub", build_number(m, F32, 1), keep);
    struct edge average =
        build_binary(m, "AddV2", build_binary(m, "Mul", optimizer_read(call, slot), keep),
                     build_binary(m, "Mul", value, take));
    optimizer_assign(call, slot, average);
    if (!config_is_null(config, "ema_overwrite_frequency")) {
        struct edge due = is_due(m, config_int(config, "ema_overwrite_frequency"));
        optimizer_assign(call, call->variable, build_select(m, due, average, value));
    }
}

static void update(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct config *constraint = m->weights[call->weight].constraint;
    struct node *after = call->after;
    int first = call->updates_count;
    decay(call);
    optimizer_of(call->config->class)->update(call);
    call->after = after;
    if (config_bool(call->config, "use_ema"))
        follow(call, first);
    if (constraint)
        optimizer_assign(call, call->variable,
                         build_constraint(m, constraint, read_after(call, first)));
}

/* --- all variables --- */

int optimizer_updates_max(const struct build *m)
{
    return 16 * m->weights_count + 16;
}

static struct edge learning_rate(struct optimizer_call *call)
{
    struct build *m = call->m;
    const struct config *schedule = config_object(call->config, "learning_rate");
    const char *name = arena_printf(m->arena, "%s/learning_rate", call->config->class->name);
    if (!schedule || config_is(schedule, "Constant"))
        return builder_scalar(&m->b, name, F32, optimizer_rate(call->config));
    const char *outside = build_enter(m, name);
    struct edge rate = schedule_build(m, schedule, call->step);
    build_leave(m, outside);
    return rate;
}

void optimizer_build(struct build *m, const struct config *config, const struct edge *gradients,
                     struct node *after, struct node **updates, int *updates_count)
{
    const struct optimizer_class *class = optimizer_of(config->class);
    struct optimizer_call call = {.m = m,
                                  .config = config,
                                  .step = m->step,
                                  .after = after,
                                  .updates = updates,
                                  .weight = -1};
    int weights = m->weights_count, count = 0, next = 0;
    struct edge *used = arena_array(m->arena, (size_t)weights + 1, sizeof(*used));
    const char *outside = build_enter(m, class->config.name), *here = m->b.device;
    for (int i = 0; i < weights; i++)
        count += m->weights[i].face.trainable;
    memcpy(used, gradients, (size_t)count * sizeof(*used));
    if (!config_is_null(config, "gradient_accumulation_steps")) {
        int64_t steps = config_int(config, "gradient_accumulation_steps");
        accumulate(&call, used, steps);
        call.step = build_with_number(m, "FloorDiv", m->step, (double)steps);
    }
    clip(m, config, used, count);
    m->b.scope = outside;
    call.rate = learning_rate(&call);
    outside = build_enter(m, class->config.name);
    call.count = build_with_number(m, "AddV2", build_cast(m, call.step, F32), 1);
    if (class->begin)
        class->begin(&call);
    for (int i = 0; i < weights && build_ok(m); i++) {
        if (!m->weights[i].face.trainable)
            continue;
        call.weight = i;
        go_beside(m, i, here);
        call.variable = build_weight_handle(m, i);
        call.gradient = used[next++];
        update(&call);
    }
    call.weight = -1;
    m->b.device = here;
    if (class->end)
        class->end(&call);
    build_leave(m, outside);
    *updates_count = call.updates_count;
}
