/* model_layers.c - the forward pass of each layer, and its variables. */

#include "base/arena.h"
#include "runtime/model_internal.h"

/* What layer `index` takes, of one example. */
static const struct shape *layer_input(const struct building *m, int index)
{
    return index ? &m->summary.layers[index - 1].output : &m->input;
}

void model_layer_weights(struct building *m, int index)
{
    const struct spec_layer *layer = &m->spec->layers[index];
    int *weights = m->layer_weights[index];
    weights[0] = weights[1] = -1;
    if (layer->kind != LAYER_DENSE && layer->kind != LAYER_CONV2D)
        return;
    const struct shape *input = layer_input(m, index);
    int64_t channels = input->dims[input->rank - 1];
    struct shape kernel = layer->kind == LAYER_DENSE
                              ? SHAPE(channels, layer->units)
                              : SHAPE(layer->size[0], layer->size[1], channels, layer->units);
    const char *name = arena_printf(m->arena, "%s/kernel", layer->name);
    struct edge start = model_initializer(m, name, &layer->kernel_initializer, &kernel);
    weights[0] = model_weight_add(m, name, &kernel, F32, true, start);
    if (!layer->use_bias)
        return;
    name = arena_printf(m->arena, "%s/bias", layer->name);
    struct shape bias = SHAPE(layer->units);
    start = model_initializer(m, name, &layer->bias_initializer, &bias);
    weights[1] = model_weight_add(m, name, &bias, F32, true, start);
}

static struct edge read_weight(struct building *m, int weight, const char *name)
{
    if (m->b.failed)
        return (struct edge){0};
    return builder_add(&m->b, "ReadVariableOp", name, INPUTS(m->weights[weight].handle),
                       ATTRS(attr_type("dtype", F32)));
}

static struct edge add_bias(struct building *m, int weight, struct edge x)
{
    if (weight < 0)
        return x;
    struct edge bias = read_weight(m, weight, "BiasAdd/ReadVariableOp");
    return builder_add(&m->b, "BiasAdd", "BiasAdd", INPUTS(x, bias), NO_ATTRS);
}

static struct edge activate(struct building *m, enum spec_activation activation, struct edge x)
{
    static const char *const ops[] = {
        [ACTIVATION_RELU] = "Relu", [ACTIVATION_SIGMOID] = "Sigmoid",
        [ACTIVATION_TANH] = "Tanh", [ACTIVATION_SOFTMAX] = "Softmax",
        [ACTIVATION_ELU] = "Elu",   [ACTIVATION_SOFTPLUS] = "Softplus",
    };
    if (activation == ACTIVATION_LINEAR)
        return x;
    return builder_add(&m->b, ops[activation], ops[activation], INPUTS(x), NO_ATTRS);
}

/* (B, per example...) as (-1, dims...). */
static struct edge reshape(struct building *m, const char *name, struct edge x,
                           const int64_t *dims, int rank)
{
    char label[64];
    snprintf(label, sizeof(label), "%s/shape", name);
    struct edge shape = builder_ints(&m->b, label, I32, dims, rank);
    return builder_add(&m->b, "Reshape", name, INPUTS(x, shape), NO_ATTRS);
}

/* Multiplies the last dimension; the others are looked at as one. */
static struct edge dense(struct building *m, int index, struct edge x)
{
    const struct shape *input = layer_input(m, index);
    const struct shape *output = &m->summary.layers[index].output;
    if (input->rank > 1)
        x = reshape(m, "Tensordot/Reshape", x,
                    (const int64_t[]){-1, input->dims[input->rank - 1]}, 2);
    struct edge kernel = read_weight(m, m->layer_weights[index][0], "MatMul/ReadVariableOp");
    x = builder_add(&m->b, "MatMul", "MatMul", INPUTS(x, kernel), NO_ATTRS);
    x = add_bias(m, m->layer_weights[index][1], x);
    if (input->rank > 1) {
        int64_t dims[LIMIT_TENSOR_RANK + 1] = {-1};
        memcpy(dims + 1, output->dims, (size_t)output->rank * sizeof(*dims));
        x = reshape(m, "Tensordot", x, dims, output->rank + 1);
    }
    return x;
}

static struct edge conv2d(struct building *m, int index, struct edge x)
{
    const struct spec_layer *layer = &m->spec->layers[index];
    const int64_t strides[4] = {1, layer->strides[0], layer->strides[1], 1};
    struct edge kernel = read_weight(m, m->layer_weights[index][0], "Conv2D/ReadVariableOp");
    x = builder_add(&m->b, "Conv2D", "Conv2D", INPUTS(x, kernel),
                    ATTRS(attr_int_list("strides", strides, 4),
                          attr_string("padding", layer->same ? "SAME" : "VALID")));
    return add_bias(m, m->layer_weights[index][1], x);
}

static struct edge pooling(struct building *m, const struct spec_layer *layer, struct edge x)
{
    const char *op = layer->kind == LAYER_MAX_POOLING2D ? "MaxPool" : "AvgPool";
    const int64_t size[4] = {1, layer->size[0], layer->size[1], 1};
    const int64_t strides[4] = {1, layer->strides[0], layer->strides[1], 1};
    return builder_add(&m->b, op, op, INPUTS(x),
                       ATTRS(attr_int_list("ksize", size, 4),
                             attr_int_list("strides", strides, 4),
                             attr_string("padding", layer->same ? "SAME" : "VALID")));
}

/*
 * Each kept value is scaled up, so that the sum stays what it was.  The random numbers follow
 * from (job seed, layer, step) alone: a resumed run drops the same values.
 */
static struct edge dropout(struct building *m, int index, struct edge x)
{
    const struct spec_layer *layer = &m->spec->layers[index];
    const struct shape *output = &m->summary.layers[index].output;
    struct builder *b = &m->b;
    int64_t dims[LIMIT_TENSOR_RANK + 1] = {m->spec->data.batch_size};
    memcpy(dims + 1, output->dims, (size_t)output->rank * sizeof(*dims));
    struct edge shape = builder_ints(b, "dropout/shape", I32, dims, output->rank + 1);
    struct edge first =
        builder_scalar(b, "dropout/seed", I64, (double)model_seed(m, layer->name));
    struct edge pair =
        builder_add(b, "Pack", "dropout/seeds", INPUTS(first, m->step), NO_ATTRS);
    struct edge uniform = builder_add(
        b, "StatelessRandomUniform", "dropout/random_uniform", INPUTS(shape, pair),
        ATTRS(attr_type("dtype", F32), attr_type("T", I32), attr_type("Tseed", I64)));
    struct edge rate = builder_scalar(b, "dropout/rate", F32, layer->rate);
    struct edge keep =
        builder_add(b, "GreaterEqual", "dropout/GreaterEqual", INPUTS(uniform, rate), NO_ATTRS);
    struct edge mask = builder_add(b, "Cast", "dropout/Cast", INPUTS(keep),
                                   ATTRS(attr_type("SrcT", BOOL), attr_type("DstT", F32)));
    struct edge scale = builder_scalar(b, "dropout/scale", F32, 1 / (1 - layer->rate));
    struct edge scaled = builder_add(b, "Mul", "dropout/Mul", INPUTS(x, scale), NO_ATTRS);
    return builder_add(b, "Mul", "dropout/Mul_1", INPUTS(scaled, mask), NO_ATTRS);
}

struct edge model_layer_forward(struct building *m, int index, struct edge x, bool training,
                                bool last)
{
    const struct spec_layer *layer = &m->spec->layers[index];
    enum spec_activation activation = layer->activation;
    if (last && activation == ACTIVATION_SOFTMAX)
        activation = ACTIVATION_LINEAR;
    const char *outside = m->b.scope;
    m->b.scope = arena_printf(m->arena, "%s%s/", outside, layer->name);
    switch (layer->kind) {
    case LAYER_DENSE:
        x = activate(m, activation, dense(m, index, x));
        break;
    case LAYER_CONV2D:
        x = activate(m, activation, conv2d(m, index, x));
        break;
    case LAYER_MAX_POOLING2D:
    case LAYER_AVERAGE_POOLING2D:
        x = pooling(m, layer, x);
        break;
    case LAYER_FLATTEN:
        if (layer_input(m, index)->rank != 1)
            x = reshape(m, "Reshape", x,
                        (const int64_t[]){-1, m->summary.layers[index].output.dims[0]}, 2);
        break;
    case LAYER_DROPOUT:
        if (training && layer->rate > 0)
            x = dropout(m, index, x);
        break;
    case LAYER_ACTIVATION:
        x = activate(m, activation, x);
        break;
    }
    m->b.scope = outside;
    return x;
}
