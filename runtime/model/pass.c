/* pass.c - see pass.h: inputs, layers, loss and metrics of one pass. */

#include "runtime/model/pass.h"

#include "base/arena.h"
#include "runtime/gradient.h"
#include "runtime/model/loss.h"
#include "runtime/model/metric.h"
#include "runtime/model/stage.h"
#include "runtime/spec/spec.h"

/* --- inputs --- */

static struct edge placeholder(struct build *m, const struct model_feature *feature,
                               int64_t batch)
{
    struct shape shape = {.rank = feature->shape.rank + 1, .dims = {batch}};
    memcpy(shape.dims + 1, feature->shape.dims,
           (size_t)feature->shape.rank * sizeof(*shape.dims));
    return builder_add(&m->b, "Placeholder", feature->name, NO_INPUTS,
                       ATTRS(attr_type("dtype", feature->dtype), attr_shape("shape", &shape)));
}

/* The feature that an InputLayer, or with NULL a layer without inputs, takes. */
static struct edge feature_for(struct building *g, const struct pass *pass,
                               const struct spec_layer *layer)
{
    const struct model_data *data = g->data;
    for (int i = 0; i < data->features_count; i++) {
        if (!strcmp(data->features[i].name, layer->name))
            return pass->features[i];
    }
    if (data->features_count == 1)
        return pass->features[0];
    char names[200] = "";
    for (int i = 0; i < data->features_count; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\"%s\"",
                 i ? ", " : "", data->features[i].name);
    build_refuse(&g->m, INVALID,
                 "\"%s\" could take any of the %d features of the data; name an InputLayer "
                 "after each: %s",
                 layer->name, data->features_count, names);
    return (struct edge){0};
}

/* --- layers --- */

static const struct edge *gather_inputs(struct building *g, const struct pass *pass, int index)
{
    const struct spec_layer *layer = &g->spec->layers[index];
    int count = layer->inputs_count ? layer->inputs_count : 1;
    struct edge *inputs = arena_array(g->m.arena, (size_t)count, sizeof(*inputs));
    if (!layer->inputs_count)
        inputs[0] = feature_for(g, pass, layer);
    for (int i = 0; i < layer->inputs_count; i++) {
        inputs[i] = pass->outputs[layer->inputs[i].layer][layer->inputs[i].output];
        if (!inputs[i].from)
            build_refuse(&g->m, INVALID, "\"%s\" has no output %d",
                         g->spec->layers[layer->inputs[i].layer].name, layer->inputs[i].output);
    }
    for (int i = 0; g->stages && i < count; i++)
        inputs[i] =
            stage_enter(g, index, layer->inputs_count ? layer->inputs[i].layer : -1, inputs[i]);
    return inputs;
}

/* Which steps of its inputs are there; of features all are. */
static const struct edge *gather_masks(struct building *g, const struct pass *pass, int index)
{
    const struct spec_layer *layer = &g->spec->layers[index];
    struct edge *masks = NULL;
    for (int i = 0; i < layer->inputs_count; i++) {
        struct edge mask = pass->masks[layer->inputs[i].layer][layer->inputs[i].output];
        if (mask.from && !masks)
            masks = arena_array(g->m.arena, (size_t)layer->inputs_count, sizeof(*masks));
        if (mask.from)
            masks[i] = mask;
    }
    return masks;
}

/* What the layer says of the masks of its outputs, and of its inputs' from now on. */
static void take_masks(struct building *g, struct pass *pass, int index,
                       const struct layer_call *call)
{
    const struct spec_layer *layer = &g->spec->layers[index];
    for (int i = 0; i < call->outputs_count; i++)
        pass->masks[index][i] = call->output_masks[i];
    for (int i = 0; call->ends_masks && i < layer->inputs_count; i++)
        pass->masks[layer->inputs[i].layer][layer->inputs[i].output] = (struct edge){0};
}

static int64_t parameters_from(const struct build *m, int first)
{
    int64_t count = 0;
    for (int i = first; i < m->weights_count; i++)
        count += shape_count(&m->weights[i].face.shape);
    return count;
}

/* A number too many per example. */
static void check_size(struct build *m, const char *name, struct edge output)
{
    struct shape shape = *build_shape(m, output);
    char text[SHAPE_TEXT_BYTES];
    if (shape.rank > 0)
        shape.dims[0] = 1;
    int64_t count = shape_count(&shape);
    if (build_ok(m) && shape_is_full(&shape) && (count < 0 || count > LIMIT_TENSOR_BYTES / 4))
        build_refuse(m, EXHAUSTED, "\"%s\" would give %s for each example", name,
                     shape_text(&shape, text, sizeof(text)));
}

static void run_layer(struct building *g, struct pass *pass, int index, bool training)
{
    struct build *m = &g->m;
    const struct spec_layer *layer = &g->spec->layers[index];
    int weights = m->weights_count;
    m->pointer = layer->pointer;
    if (g->stages)
        m->b.device = m->home = stage_device(g->stages, index);
    struct layer_call call = {
        .m = m,
        .class = layer_of(layer->config->class),
        .config = layer->config,
        .name = g->spec->layers[layer->shared].name,
        .inputs = gather_inputs(g, pass, index),
        .inputs_count = layer->inputs_count ? layer->inputs_count : 1,
        .masks = gather_masks(g, pass, index),
        .training = training,
        .trainable = layer->trainable,
        .logits = pass->logits && index == g->spec->output,
    };
    const char *outside = build_enter(m, layer->name);
    layer_run(&call);
    build_leave(m, outside);
    m->home = NULL;
    for (int i = 0; i < call.outputs_count; i++)
        pass->outputs[index][i] = call.outputs[i];
    take_masks(g, pass, index, &call);
    if (!build_ok(m))
        return;
    check_size(m, layer->name, call.outputs[0]);
    struct shape shape = *build_shape(m, call.outputs[0]);
    if (training && !m->replica && shape.rank > 0) {
        memmove(shape.dims, shape.dims + 1, (size_t)(shape.rank - 1) * sizeof(*shape.dims));
        shape.rank--;
        g->layers[index] = (struct model_layer){layer->name, layer->config->class->name, shape,
                                                parameters_from(m, weights)};
    }
}

/* What the model gives must be what the loss can compare with the targets. */
static void check_prediction(struct building *g, const struct pass *pass)
{
    struct build *m = &g->m;
    const struct spec_layer *layer = &g->spec->layers[g->spec->output];
    const struct shape shape = *build_shape(m, pass->prediction);
    char text[SHAPE_TEXT_BYTES];
    m->pointer = layer->pointer;
    if (!build_ok(m) || loss_of(g->spec->train.loss->class)->targets != TARGETS_CLASS)
        return;
    struct shape of = shape;
    memmove(of.dims, of.dims + 1, (size_t)(of.rank > 0 ? of.rank - 1 : 0) * sizeof(*of.dims));
    of.rank--;
    shape_text(&of, text, sizeof(text));
    if (of.rank != g->data->target.shape.rank + 1)
        build_refuse(m, INVALID,
                     "the last layer \"%s\" gives %s for each example, wanted: one number for "
                     "each class%s",
                     layer->name, text,
                     g->data->target.shape.rank ? "" : " (put Flatten before the last Dense)");
    else if (g->data->classes > of.dims[of.rank - 1])
        build_refuse(m, INVALID,
                     "the last layer \"%s\" gives %s for each example, wanted: at least the "
                     "%lld classes of the data",
                     layer->name, text, (long long)g->data->classes);
}

struct building pass_begin(const struct spec *spec, const struct model_data *data,
                           struct graph *graph, struct error *err)
{
    struct arena *arena = graph_arena(graph);
    return (struct building){
        .m = {.b = {.graph = graph, .scope = "", .err = err},
              .arena = arena,
              .spec = spec,
              .seed = spec->seed,
              .pointer = ""},
        .spec = spec,
        .data = data,
        .layers = arena_array(arena, (size_t)spec->layers_count, sizeof(struct model_layer)),
        .metrics = arena_array(arena, (size_t)spec->train.metrics_count + 1,
                               sizeof(struct model_metric)),
    };
}

struct pass pass_new(struct building *g)
{
    struct build *m = &g->m;
    const struct spec *spec = g->spec;
    return (struct pass){
        .features = arena_array(m->arena, (size_t)g->data->features_count, sizeof(struct edge)),
        .outputs = arena_array(m->arena, (size_t)spec->layers_count,
                               LAYER_OUTPUTS_MAX * sizeof(struct edge)),
        .masks = arena_array(m->arena, (size_t)spec->layers_count,
                             LAYER_OUTPUTS_MAX * sizeof(struct edge)),
        .logits = loss_takes_logits(spec->train.loss),
    };
}

struct pass pass_fed(struct building *g, int64_t batch)
{
    struct build *m = &g->m;
    struct pass pass = pass_new(g);
    for (int i = 0; i < g->data->features_count; i++)
        pass.features[i] = placeholder(m, &g->data->features[i], batch);
    pass.target = placeholder(m, &g->data->target, batch);
    if (g->data->weight.name)
        pass.weight = placeholder(m, &g->data->weight, batch);
    return pass;
}

void pass_run(struct building *g, struct pass *pass, bool training)
{
    struct build *m = &g->m;
    const struct spec *spec = g->spec;
    m->training = training;
    m->penalties_count = m->updates_count = 0;
    for (int i = 0; i < spec->layers_count && build_ok(m); i++)
        run_layer(g, pass, i, training);
    if (build_ok(m))
        pass->prediction = pass->outputs[spec->output][0],
        pass->mask = pass->masks[spec->output][0];
    check_prediction(g, pass);
}

/* --- loss and metrics --- */

struct edge pass_losses(struct building *g, const struct pass *pass)
{
    g->m.pointer = "/train/loss";
    return loss_values(&g->m, g->spec->train.loss, pass->target, pass->prediction,
                       pass->logits);
}

/* The weights of the examples, where `others` are weights already; either may be without node.
 */
static struct edge weigh(struct building *g, const struct pass *pass, struct edge others)
{
    struct build *m = &g->m;
    struct edge weight = pass->weight;
    if (!weight.from || !others.from || !build_ok(m))
        return weight.from ? weight : others;
    for (int i = build_shape(m, weight)->rank; i < build_shape(m, others)->rank; i++)
        weight = build_expand(m, weight, -1);
    return build_binary(m, "Mul", weight, others);
}

struct edge pass_loss(struct building *g, const struct pass *pass, struct edge values)
{
    struct build *m = &g->m;
    struct edge weights =
        weigh(g, pass, loss_mask_weights(m, g->spec->train.loss, pass->mask, values));
    struct edge loss = loss_reduce(m, g->spec->train.loss, values, weights);
    for (int i = 0; i < m->weights_count && build_ok(m); i++) {
        const struct build_weight *weight = &m->weights[i];
        if (!weight->face.trainable || !weight->regularizer)
            continue;
        const char *here = m->b.device;
        m->b.device = g->stages ? weight->device : here;
        struct edge penalty =
            build_regularizer(m, weight->regularizer, build_weight_read(m, i));
        m->b.device = here;
        loss = build_binary(m, "AddV2", loss, penalty);
    }
    for (int i = 0; i < m->penalties_count; i++)
        loss = build_binary(m, "AddV2", loss, m->penalties[i]);
    if (build_ok(m) && build_shape(m, loss)->rank != 0)
        build_refuse(m, INVALID,
                     "the loss is not one number: its reduction may not be \"none\"");
    return builder_add(&m->b, "Identity", MODEL_LOSS, INPUTS(loss), NO_ATTRS);
}

/*
 * What the metric "loss" is the mean of: as the loss is reduced, the losses times the weights,
 * or the losses by weight.
 */
static void weigh_losses(struct building *g, const struct pass *pass, struct metric_call *call)
{
    bool by_weight =
        !strcmp(config_choice(g->spec->train.loss, "reduction"), "mean_with_sample_weight");
    if (by_weight)
        call->weights = weigh(g, pass, call->weights);
    else if (pass->weight.from)
        call->y_pred = loss_weigh(&g->m, call->y_pred, pass->weight);
}

void pass_add_metrics(struct building *g, const struct pass *pass, struct edge losses,
                      struct edge *sums)
{
    struct build *m = &g->m;
    const struct spec_train *train = &g->spec->train;
    const char *outside = build_enter(m, "metrics");
    for (int i = 0; i <= train->metrics_count && build_ok(m); i++) {
        struct model_metric *metric = &g->metrics[i];
        if (!i)
            *metric = (struct model_metric){
                "loss",
                config_default(config_find(&metric_family, "Mean"), &metric_family, m->arena),
                metric->sums, metric->eval_sums};
        else
            metric->name = train->metrics[i - 1].name,
            metric->config = train->metrics[i - 1].config;
        m->pointer = i ? train->metrics[i - 1].config->pointer : "/train/loss";
        struct metric_call call = {.m = m,
                                   .config = metric->config,
                                   .y_true = pass->target,
                                   .y_pred = i ? pass->prediction : losses,
                                   .weights =
                                       metric_mask_weights(m, metric->config, pass->mask),
                                   .logits = pass->logits,
                                   .targets = loss_of(train->loss->class)->targets};
        if (!i)
            weigh_losses(g, pass, &call);
        else if (train->metrics[i - 1].weighted)
            call.weights = weigh(g, pass, call.weights);
        sums[i] = metric_sums(&call);
    }
    build_leave(m, outside);
}

struct edge pass_prediction(struct building *g, const struct pass *pass)
{
    struct build *m = &g->m;
    const char *activation =
        pass->logits ? layer_activation(g->spec->layers[g->spec->output].config) : NULL;
    struct edge x = pass->prediction;
    if (activation && (!strcmp(activation, "softmax") || !strcmp(activation, "sigmoid")))
        x = build_activation(m, activation, x);
    return builder_add(&m->b, "Identity", "predictions", INPUTS(x), NO_ATTRS);
}

/* --- gradients --- */

static int count_trainable(const struct build *m)
{
    int count = 0;
    for (int i = 0; i < m->weights_count; i++)
        count += m->weights[i].face.trainable;
    return count;
}

struct edge *pass_gradients(struct building *g, struct edge loss, int *count)
{
    struct build *m = &g->m;
    int trainable = *count = count_trainable(m);
    m->pointer = "/model/layers";
    if (build_ok(m) && !trainable)
        build_refuse(m, INVALID, "no layer has anything to learn: a Dense layer is wanted");
    if (!build_ok(m))
        return NULL;
    struct edge *handles = arena_array(m->arena, (size_t)trainable, sizeof(*handles));
    struct edge *grads = arena_array(m->arena, (size_t)trainable, sizeof(*grads));
    const char **names = arena_array(m->arena, (size_t)trainable, sizeof(*names));
    for (int i = 0, n = 0; i < m->weights_count; i++) {
        if (!m->weights[i].face.trainable)
            continue;
        names[n] = m->weights[i].face.name;
        handles[n++] = build_weight_handle(m, i);
    }
    m->b.failed =
        !gradient_build(m->b.graph, &loss, 1, NULL, handles, trainable, grads, m->b.err);
    for (int i = 0; i < trainable && build_ok(m); i++) {
        if (!grads[i].from)
            build_refuse(m, INVALID, "the loss does not depend on \"%s\"", names[i]);
    }
    return build_ok(m) ? grads : NULL;
}
