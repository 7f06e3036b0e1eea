/* model_optimizer.c - how gradients change variables: SGD and Adam, by Keras's rules. */

#include "base/arena.h"
#include "runtime/model_internal.h"

struct optimizing {
    struct building *m;
    struct builder *b;
    struct node *after; /* every update waits for it */
    struct node **updates;
    int updates_count;
};

static struct edge add_update(struct optimizing *o, const char *op, const char *name,
                              const struct edge *inputs, int inputs_count,
                              const struct attr *attrs, int attrs_count)
{
    struct edge edge = builder_add(o->b, op, name, inputs, inputs_count, attrs, attrs_count);
    if (!builder_ok(o->b))
        return edge;
    graph_add_control(o->b->graph, edge.from, o->after);
    o->updates[o->updates_count++] = edge.from;
    return edge;
}

/* A variable of the same shape beside variable `index`, zero at first. */
static struct edge slot(struct optimizing *o, int index, const char *suffix)
{
    static const struct spec_initializer zeros = {.name = "zeros"};
    const struct model_variable *of = &o->m->weights[index].face;
    struct shape shape = of->shape;
    const char *name = arena_printf(o->m->arena, "%s/%s", of->name, suffix);
    struct edge start = model_initializer(o->m, name, &zeros, &shape);
    int weight = model_weight_add(o->m, name, &shape, F32, false, start);
    return weight < 0 ? (struct edge){0} : o->m->weights[weight].handle;
}

static const char *update_name(struct optimizing *o, int index, const char *op)
{
    return arena_printf(o->m->arena, "%s/update_%s/%s",
                        spec_optimizer_name(o->m->spec->train.optimizer.kind),
                        o->m->weights[index].face.name, op);
}

static void sgd(struct optimizing *o, const struct edge *gradients, int count)
{
    const struct spec_optimizer *spec = &o->m->spec->train.optimizer;
    struct edge rate = builder_scalar(o->b, "SGD/learning_rate", F32, spec->learning_rate);
    struct edge momentum = {0};
    if (spec->momentum > 0)
        momentum = builder_scalar(o->b, "SGD/momentum", F32, spec->momentum);
    for (int i = 0; i < count && builder_ok(o->b); i++) {
        struct edge variable = o->m->weights[i].handle;
        if (spec->momentum > 0) {
            struct edge velocity = slot(o, i, "Momentum");
            add_update(o, "ResourceApplyKerasMomentum",
                       update_name(o, i, "ResourceApplyKerasMomentum"),
                       INPUTS(variable, velocity, rate, gradients[i], momentum),
                       ATTRS(attr_bool("use_nesterov", spec->nesterov)));
        } else {
            add_update(o, "ResourceApplyGradientDescent",
                       update_name(o, i, "ResourceApplyGradientDescent"),
                       INPUTS(variable, rate, gradients[i]), NO_ATTRS);
        }
    }
}

/* beta to the power of the steps so far, kept in a variable as TensorFlow does. */
static struct edge power(struct optimizing *o, const char *name, double beta)
{
    static const struct shape scalar = {.rank = 0};
    const struct spec_initializer start = {
        .name = "constant", .distribution = DISTRIBUTION_CONSTANT, .a = beta};
    struct edge value = model_initializer(o->m, name, &start, &scalar);
    int weight = model_weight_add(o->m, name, &scalar, F32, false, value);
    return weight < 0 ? (struct edge){0} : o->m->weights[weight].handle;
}

/* Multiplies the power by beta, once all variables have been updated with the old one. */
static void advance(struct optimizing *o, const char *name, struct edge handle,
                    struct edge value, struct edge beta, int updates)
{
    struct edge next = builder_add(o->b, "Mul", arena_printf(o->m->arena, "Adam/%s/mul", name),
                                   INPUTS(value, beta), NO_ATTRS);
    struct edge assign =
        add_update(o, "AssignVariableOp", arena_printf(o->m->arena, "Adam/%s/Assign", name),
                   INPUTS(handle, next), ATTRS(attr_type("dtype", F32)));
    for (int i = 0; i < updates && builder_ok(o->b); i++)
        graph_add_control(o->b->graph, assign.from, o->updates[i]);
}

static struct edge read_power(struct optimizing *o, const char *name, struct edge handle)
{
    return builder_add(o->b, "ReadVariableOp",
                       arena_printf(o->m->arena, "Adam/%s/ReadVariableOp", name),
                       INPUTS(handle), ATTRS(attr_type("dtype", F32)));
}

static void adam(struct optimizing *o, const struct edge *gradients, int count)
{
    const struct spec_optimizer *spec = &o->m->spec->train.optimizer;
    struct builder *b = o->b;
    struct edge rate = builder_scalar(b, "Adam/learning_rate", F32, spec->learning_rate);
    struct edge beta_1 = builder_scalar(b, "Adam/beta_1", F32, spec->beta_1);
    struct edge beta_2 = builder_scalar(b, "Adam/beta_2", F32, spec->beta_2);
    struct edge epsilon = builder_scalar(b, "Adam/epsilon", F32, spec->epsilon);
    struct edge power_1 = power(o, "beta_1_power", spec->beta_1);
    struct edge power_2 = power(o, "beta_2_power", spec->beta_2);
    struct edge value_1 = read_power(o, "beta_1_power", power_1);
    struct edge value_2 = read_power(o, "beta_2_power", power_2);
    for (int i = 0; i < count && builder_ok(b); i++) {
        struct edge m = slot(o, i, "Adam");
        struct edge v = slot(o, i, "Adam_1");
        add_update(o, "ResourceApplyAdam", update_name(o, i, "ResourceApplyAdam"),
                   INPUTS(o->m->weights[i].handle, m, v, value_1, value_2, rate, beta_1, beta_2,
                          epsilon, gradients[i]),
                   NO_ATTRS);
    }
    int updates = o->updates_count;
    advance(o, "beta_1_power", power_1, value_1, beta_1, updates);
    advance(o, "beta_2_power", power_2, value_2, beta_2, updates);
}

void model_optimizer(struct building *m, const struct edge *gradients, int gradients_count,
                     struct node *after, struct node **updates, int *updates_count)
{
    struct optimizing o = {.m = m, .b = &m->b, .after = after, .updates = updates};
    if (m->spec->train.optimizer.kind == OPTIMIZER_SGD)
        sgd(&o, gradients, gradients_count);
    else
        adam(&o, gradients, gradients_count);
    *updates_count = o.updates_count;
}
