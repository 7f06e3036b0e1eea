/* model.c - from a spec's layers to one graph: variables, forward, loss, gradients, updates,
 * evaluation. */

#include "runtime/model.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/gradient.h"
#include "runtime/model_internal.h"

/* --- variables --- */

int model_weight_add(struct building *m, const char *name, const struct shape *shape, int dtype,
                     bool trainable, struct edge initial)
{
    struct builder *b = &m->b;
    if (b->failed)
        return -1;
    const char *outside = b->scope;
    b->scope = "";
    name = arena_text(m->arena, name);
    struct edge handle =
        builder_add(b, "VarHandleOp", name, NO_INPUTS,
                    ATTRS(attr_type("dtype", dtype), attr_shape("shape", shape),
                          attr_string("shared_name", name)));
    struct edge assign =
        builder_add(b, "AssignVariableOp", arena_printf(m->arena, "%s/Assign", name),
                    INPUTS(handle, initial), ATTRS(attr_type("dtype", dtype)));
    b->scope = outside;
    if (b->failed)
        return -1;
    m->weights =
        alloc_grow(m->weights, m->weights_count, &m->weights_capacity, sizeof(*m->weights));
    m->inits = alloc_grow(m->inits, m->inits_count, &m->inits_capacity, sizeof(*m->inits));
    m->inits[m->inits_count++] = assign.from;
    m->weights[m->weights_count] =
        (struct model_weight){{name, dtype, *shape, trainable}, handle};
    return m->weights_count++;
}

/* --- one pass over the layers, with its loss --- */

struct pass {
    struct edge losses; /* of each example */
    struct edge hits;   /* 1.0 where the largest output is the label's */
};

static struct pass forward(struct building *m, int64_t batch, bool training)
{
    struct builder *b = &m->b;
    struct shape images = {.rank = m->input.rank + 1, .dims = {batch}};
    memcpy(images.dims + 1, m->input.dims, (size_t)m->input.rank * sizeof(*images.dims));
    struct edge x = builder_add(b, "Placeholder", MODEL_IMAGES, NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &images)));
    struct edge labels =
        builder_add(b, "Placeholder", MODEL_LABELS, NO_INPUTS,
                    ATTRS(attr_type("dtype", I32), attr_shape("shape", &SHAPE(batch))));
    for (int i = 0; i < m->spec->layers_count; i++)
        x = model_layer_forward(m, i, x, training, i + 1 == m->spec->layers_count);
    struct pass pass;
    pass.losses = builder_add(b, "SparseSoftmaxCrossEntropyWithLogits",
                              "sparse_categorical_crossentropy", INPUTS(x, labels), NO_ATTRS);
    struct edge axis = builder_scalar(b, "accuracy/axis", I32, 1);
    struct edge best = builder_add(b, "ArgMax", "accuracy/ArgMax", INPUTS(x, axis),
                                   ATTRS(attr_type("output_type", I32)));
    struct edge equal =
        builder_add(b, "Equal", "accuracy/Equal", INPUTS(best, labels), NO_ATTRS);
    pass.hits = builder_add(b, "Cast", "accuracy/Cast", INPUTS(equal),
                            ATTRS(attr_type("SrcT", BOOL), attr_type("DstT", F32)));
    return pass;
}

/* The mean or sum over the batch. */
static struct edge reduce(struct building *m, const char *op, const char *name,
                          struct edge values)
{
    struct edge axis = builder_ints(&m->b, arena_printf(m->arena, "%s/axis", name), I32,
                                    (const int64_t[]){0}, 1);
    return builder_add(&m->b, op, name, INPUTS(values, axis), NO_ATTRS);
}

/* --- the stages --- */

static void add_variables(struct building *m)
{
    for (int i = 0; i < m->spec->layers_count; i++)
        model_layer_weights(m, i);
    struct edge start = builder_scalar(&m->b, MODEL_STEP "/Initializer/zeros", I64, 0);
    int step = model_weight_add(m, MODEL_STEP, &SHAPE_SCALAR, I64, false, start);
    if (step >= 0)
        m->step = builder_add(&m->b, "ReadVariableOp", MODEL_STEP "/Read",
                              INPUTS(m->weights[step].handle), ATTRS(attr_type("dtype", I64)));
}

static void init_target(struct building *m)
{
    builder_group(&m->b, MODEL_INIT, m->inits, m->inits_count);
}

static bool no_gradient(struct building *m, int weight)
{
    m->b.failed = true;
    return fail(m->b.err, INVALID, "the loss does not depend on \"%s\"",
                m->weights[weight].face.name);
}

/*
 * Updates wait for all gradients: no variable changes while a pass still reads it, and all
 * updates can be done in one sweep.
 */
static void add_updates(struct building *m, struct edge loss, int trainable)
{
    struct builder *b = &m->b;
    if (b->failed)
        return;
    struct edge *handles = arena_array(m->arena, (size_t)trainable, sizeof(*handles));
    struct edge *gradients = arena_array(m->arena, (size_t)trainable, sizeof(*gradients));
    struct node **nodes =
        arena_array(m->arena, (size_t)MODEL_UPDATES_MAX(trainable) + 1, sizeof(*nodes));
    for (int i = 0; i < trainable; i++)
        handles[i] = m->weights[i].handle;
    b->failed =
        !gradient_build(b->graph, &loss, 1, NULL, handles, trainable, gradients, b->err);
    for (int i = 0; i < trainable && !b->failed; i++) {
        nodes[i] = gradients[i].from;
        if (!nodes[i] && !no_gradient(m, i))
            return;
    }
    struct node *after = builder_group(b, "gradients/done", nodes, trainable);
    int updates = 0;
    model_optimizer(m, gradients, trainable, after, nodes, &updates);
    struct edge one = builder_scalar(b, "train/one", I64, 1);
    int step = trainable; /* global_step follows the trainable ones */
    struct edge count = {0};
    if (!b->failed)
        count =
            builder_add(b, "AssignAddVariableOp", "train/AssignAddVariableOp",
                        INPUTS(m->weights[step].handle, one), ATTRS(attr_type("dtype", I64)));
    for (int i = 0; i < updates && !b->failed; i++)
        graph_add_control(b->graph, count.from, nodes[i]);
    nodes[updates] = count.from;
    builder_group(b, MODEL_TRAIN, nodes, updates + 1);
}

static void build(struct building *m)
{
    add_variables(m);
    int trainable = 0;
    while (trainable < m->weights_count && m->weights[trainable].face.trainable)
        trainable++;
    if (!trainable && !m->b.failed)
        m->b.failed = !error_at(m->b.err, "/model/layers", INVALID,
                                "no layer has anything to learn: a Dense layer is wanted");
    struct pass train = forward(m, m->spec->data.batch_size, true);
    struct edge loss = reduce(m, "Mean", MODEL_LOSS, train.losses);
    reduce(m, "Mean", MODEL_ACCURACY, train.hits);
    add_updates(m, loss, trainable);
    m->b.scope = "eval/";
    struct pass eval = forward(m, -1, false);
    reduce(m, "Sum", "loss", eval.losses);
    reduce(m, "Sum", "correct", eval.hits);
    m->b.scope = "";
    init_target(m);
}

bool model_build(const struct spec *spec, const struct shape *input, int64_t classes,
                 struct model *out, struct error *err)
{
    struct graph *graph = graph_new();
    struct building m = {.b = {.graph = graph, .scope = "", .err = err},
                         .arena = graph_arena(graph),
                         .spec = spec,
                         .input = *input};
    bool ok = model_summary(spec, input, classes, m.arena, &m.summary, err);
    if (ok) {
        m.layer_weights =
            arena_array(m.arena, (size_t)spec->layers_count, sizeof(*m.layer_weights));
        build(&m);
        ok = builder_ok(&m.b);
    }
    if (ok) {
        struct model_variable *variables =
            arena_array(m.arena, (size_t)m.weights_count, sizeof(*variables));
        for (int i = 0; i < m.weights_count; i++)
            variables[i] = m.weights[i].face;
        *out = (struct model){graph, variables, m.weights_count, m.summary};
    } else {
        graph_free(graph);
    }
    free(m.weights);
    free(m.inits);
    return ok;
}

void model_release(struct model *model)
{
    graph_free(model->graph);
    *model = (struct model){0};
}
