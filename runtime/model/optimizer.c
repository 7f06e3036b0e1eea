/* optimizer.c - the table of optimizers, and what they share. */

#include "runtime/model/optimizer.h"

#include "base/arena.h"

static const struct config_argument common[] = {
    {CONFIG_ARG("learning_rate", CONFIG_OBJECT, "null"), .family = &schedule_family}};

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
    return config_is(schedule, "Constant") ? config_real(schedule, "value") : 0;
}

/* --- for optimizers --- */

static struct edge variable(struct build *m, const char *name, const struct shape *shape,
                            double value)
{
    struct edge dims = builder_ints(&m->b, arena_printf(m->arena, "%s/Initializer/shape", name),
                                    I32, shape->dims, shape->rank);
    struct edge each =
        builder_scalar(&m->b, arena_printf(m->arena, "%s/Initializer/value", name), F32, value);
    struct edge start =
        builder_add(&m->b, "Fill", arena_printf(m->arena, "%s/Initializer", name),
                    INPUTS(dims, each), NO_ATTRS);
    int weight = build_weight_add(m, name, shape, F32, false, start);
    return weight < 0 ? (struct edge){0} : m->weights[weight].handle;
}

struct edge optimizer_slot(struct optimizer_call *call, const char *suffix, double value)
{
    struct build *m = call->m;
    struct shape shape = m->weights[call->weight].face.shape;
    return variable(m,
                    arena_printf(m->arena, "%s/%s", m->weights[call->weight].face.name, suffix),
                    &shape, value);
}

struct edge optimizer_scalar(struct optimizer_call *call, const char *name, double value)
{
    return variable(call->m, name, &SHAPE_SCALAR, value);
}

void optimizer_update(struct optimizer_call *call, const char *op, const struct edge *inputs,
                      int inputs_count, const struct attr *attrs, int attrs_count)
{
    struct build *m = call->m;
    const char *name =
        arena_printf(m->arena, "%s/update_%s/%s", call->config->class->name,
                     call->weight < 0 ? "shared" : m->weights[call->weight].face.name, op);
    struct edge edge = builder_add(&m->b, op, name, inputs, inputs_count, attrs, attrs_count);
    if (!build_ok(m))
        return;
    graph_add_control(m->b.graph, edge.from, call->after);
    call->updates[call->updates_count++] = edge.from;
}

/* --- all variables --- */

/* Holds the weight to its constraint, once it is updated. */
static void constrain(struct optimizer_call *call, const struct config *constraint, int first)
{
    struct build *m = call->m;
    struct edge value = build_weight_read(m, call->weight);
    for (int i = first; i < call->updates_count && build_ok(m); i++)
        graph_add_control(m->b.graph, value.from, call->updates[i]);
    struct edge held = build_constraint(m, constraint, value);
    optimizer_update(call, "AssignVariableOp", INPUTS(call->variable, held),
                     ATTRS(attr_type("dtype", F32)));
}

int optimizer_updates_max(const struct build *m)
{
    return 4 * m->weights_count + 16;
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
    call.rate = learning_rate(&call);
    if (class->begin)
        class->begin(&call);
    int weights = m->weights_count, next = 0;
    for (int i = 0; i < weights && build_ok(m); i++) {
        if (!m->weights[i].face.trainable)
            continue;
        call.weight = i;
        call.variable = m->weights[i].handle;
        call.gradient = gradients[next++];
        int first = call.updates_count;
        class->update(&call);
        if (m->weights[i].constraint)
            constrain(&call, m->weights[i].constraint, first);
    }
    call.weight = -1;
    if (class->end)
        class->end(&call);
    *updates_count = call.updates_count;
}
