/* layer.c - the table of layers, and what calls of all of them share. */

#include "runtime/model/layer.h"
#include "runtime/spec/spec.h"

#include "base/alloc.h"
#include "base/arena.h"

const char *const layer_data_formats[] = {"channels_last", NULL};
const char *const layer_paddings[] = {"valid", "same", NULL};

#define LAYER_ROW(name) &layer_##name,
static const struct layer_class *const table[] = {LAYERS(LAYER_ROW)};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(table) ? &table[index]->config : NULL;
}

const struct config_family layer_family = {.what = "layer", .key = "layer", .at = class_at};

const struct layer_class *layer_of(const struct config_class *class)
{
    static_assert(offsetof(struct layer_class, config) == 0, "a layer begins with its class");
    return (const struct layer_class *)class;
}

const char *layer_activation(const struct config *config)
{
    return config_has(config, "activation") ? config_choice(config, "activation") : NULL;
}

/* --- refusals --- */

void layer_refuse(struct layer_call *call, const char *wanted)
{
    struct build *m = call->m;
    char found[SHAPE_TEXT_BYTES];
    struct shape shape = *build_shape(m, call->inputs[0]);
    if (shape.rank > 0) { /* the first is the batch */
        memmove(shape.dims, shape.dims + 1, (size_t)(shape.rank - 1) * sizeof(*shape.dims));
        shape.rank--;
    }
    build_refuse(m, INVALID, "%s \"%s\" gets %s for each example, wanted: %s",
                 call->config->class->name, call->name,
                 shape_text(&shape, found, sizeof(found)), wanted);
}

const struct shape *layer_shape(struct layer_call *call, int index)
{
    const struct shape *shape = build_shape(call->m, call->inputs[index]);
    if (build_ok(call->m) && (shape->rank < 1 || shape->dims[shape->rank - 1] < 0))
        layer_refuse(call, "a size that is known");
    return shape;
}

const struct shape *layer_examples(struct layer_call *call, int rank, const char *wanted)
{
    const struct shape *shape = build_shape(call->m, call->inputs[0]);
    bool known = shape->rank == rank + 1;
    for (int i = 1; known && i <= rank; i++)
        known = shape->dims[i] >= 0;
    if (!known)
        layer_refuse(call, wanted);
    return build_ok(call->m) ? shape : NULL;
}

static bool check_inputs(struct layer_call *call)
{
    int min = call->class->inputs_min, max = call->class->inputs_max;
    if (!min && !max)
        min = max = 1;
    if (call->inputs_count >= min && (max < 0 || call->inputs_count <= max))
        return true;
    build_refuse(call->m, INVALID, "%s \"%s\" has %d inputs, allowed: %s%d",
                 call->config->class->name, call->name, call->inputs_count,
                 max != min ? "at least " : "", min);
    return false;
}

void layer_check_nodes(struct layer_call *call)
{
    if (build_ok(call->m) && graph_count(call->m->b.graph) > LAYER_NODES_MAX)
        build_refuse(
            call->m, EXHAUSTED,
            "with %s \"%s\" the model has more than %d nodes (every step of a recurrent "
            "layer takes some)",
            call->config->class->name, call->name, LAYER_NODES_MAX);
}

/* --- weights --- */

static const struct config *argument(const struct layer_call *call, const char *what,
                                     const char *suffix)
{
    char name[80];
    snprintf(name, sizeof(name), "%s_%s", what, suffix);
    return config_has(call->config, name) ? config_object(call->config, name) : NULL;
}

/* A constraint is one on the whole of a variable. */
static int parts_of(const struct layer_call *call, const char *what, const struct shape *shape,
                    bool trainable)
{
    const struct spec *spec = call->m->spec;
    if (!trainable || !call->m->servers_count || !spec->tasks[ROLE_PS].replicas ||
        !shape->rank || argument(call, what, "constraint"))
        return 1;
    return spec_parts_of(&spec->strategy, shape->dims[0],
                         shape_count(shape) * (int64_t)dtype_size(F32));
}

static int add_started(struct layer_call *call, const char *what, const char *name,
                       const struct shape *shape, struct edge start, bool trainable)
{
    struct build *m = call->m;
    trainable = trainable && call->trainable;
    int parts = parts_of(call, what, shape, trainable);
    int index = parts > 1 ? build_parts_add(m, name, shape, parts, trainable, start)
                          : build_weight_add(m, name, shape, F32, trainable, start);
    if (index >= 0 && trainable) {
        m->weights[index].regularizer = argument(call, what, "regularizer");
        m->weights[index].constraint = argument(call, what, "constraint");
    }
    return index;
}

static int add_weight(struct layer_call *call, const char *what, const struct shape *shape,
                      const struct config *initializer, bool trainable)
{
    struct build *m = call->m;
    const char *name = arena_printf(m->arena, "%s/%s", call->name, what);
    int index = build_weight_find(m, name);
    if (index >= 0 || !build_ok(m))
        return index;
    struct shape copy = *shape;
    return add_started(call, what, name, &copy, build_initializer(m, name, initializer, &copy),
                       trainable);
}

int layer_state(struct layer_call *call, const char *what, const struct shape *shape,
                const char *initializer, bool trainable)
{
    const struct config *given = argument(call, what, "initializer");
    if (!given)
        given = config_default(config_find(&build_initializer_family, initializer),
                               &build_initializer_family, call->m->arena);
    return add_weight(call, what, shape, given, trainable);
}

struct edge layer_weight(struct layer_call *call, const char *what, const struct shape *shape)
{
    return build_weight_read(call->m, layer_state(call, what, shape, "zeros", true));
}

struct edge layer_weight_parts(struct layer_call *call, const char *what,
                               const struct shape *shape, const struct layer_part *parts,
                               int parts_count)
{
    struct build *m = call->m;
    const char *name = arena_printf(m->arena, "%s/%s", call->name, what);
    int index = build_weight_find(m, name);
    if (index >= 0 || !build_ok(m))
        return build_weight_read(m, index);
    struct edge *values = arena_array(m->arena, (size_t)parts_count, sizeof(*values));
    for (int i = 0; i < parts_count; i++) {
        const struct config *initializer =
            config_default(config_find(&build_initializer_family, parts[i].initializer),
                           &build_initializer_family, m->arena);
        values[i] = build_initializer(m, arena_printf(m->arena, "%s/%d", name, i), initializer,
                                      &parts[i].shape);
    }
    const char *outside = m->b.scope;
    m->b.scope = arena_printf(m->arena, "%s/Initializer/", name);
    struct edge whole = build_concat(m, values, parts_count, 0);
    m->b.scope = outside;
    return build_weight_read(m, add_started(call, what, name, shape, whole, true));
}

/* --- outputs --- */

void layer_give(struct layer_call *call, struct edge output)
{
    assert(call->outputs_count < LAYER_OUTPUTS_MAX);
    call->outputs[call->outputs_count++] = output;
}

void layer_give_activated(struct layer_call *call, struct edge output)
{
    const char *activation = layer_activation(call->config);
    if (call->logits && activation &&
        (!strcmp(activation, "softmax") || !strcmp(activation, "sigmoid")))
        activation = NULL;
    layer_give(call, build_activation(call->m, activation, output));
}

/* Keras divides the penalty on outputs by the number of examples. */
static void penalise_outputs(struct layer_call *call)
{
    struct build *m = call->m;
    const struct config *regularizer = argument(call, "activity", "regularizer");
    if (!regularizer || !call->training)
        return;
    struct edge penalty = build_regularizer(m, regularizer, call->outputs[0]);
    int64_t batch = build_shape(m, call->outputs[0])->dims[0];
    if (batch > 0)
        penalty = build_with_number(m, "Mul", penalty, 1.0 / (double)batch);
    m->penalties = alloc_grow(m->penalties, m->penalties_count, &m->penalties_capacity,
                              sizeof(*m->penalties));
    m->penalties[m->penalties_count++] = penalty;
}

void layer_run(struct layer_call *call)
{
    struct build *m = call->m;
    call->outputs_count = 0;
    if (build_ok(m) && check_inputs(call))
        call->class->call(call);
    for (int i = 0; call->class->passes_mask && i < call->outputs_count; i++)
        layer_give_mask(call, i, layer_mask(call, 0));
    layer_check_nodes(call);
    for (int i = 0; i < call->outputs_count; i++)
        (void)build_shape(m,
                          call->outputs[i]); /* an op that refuses its inputs, refuses here */
    if (build_ok(m))
        penalise_outputs(call);
}
