/* spec_model.c - the model of a job spec: layers with Keras's arguments and defaults. */

#include "base/arena.h"
#include "base/limits.h"
#include "runtime/spec_internal.h"

#define SPEC_LAYERS_MAX 1000
#define SPEC_UNITS_MAX 10000000
#define SPEC_WINDOW_MAX 10000

/* The order is that of enum spec_activation. */
static const char *const activation_names[] = {"linear",  "relu", "sigmoid",  "tanh",
                                               "softmax", "elu",  "softplus", NULL};

static const char *const activations_later[] = {
    "gelu", "selu",  "softsign", "exponential",  "leaky_relu",  "relu6",
    "silu", "swish", "mish",     "hard_sigmoid", "log_softmax", NULL};

/* The order is that of enum spec_layer_kind. */
static const char *const layer_classes[] = {
    "Dense",   "Conv2D",  "MaxPooling2D", "AveragePooling2D",
    "Flatten", "Dropout", "Activation",   NULL};
static const char *const layer_names[] = {
    "dense",   "conv2d",  "max_pooling2d", "average_pooling2d",
    "flatten", "dropout", "activation"};

/* Keras's short names for the same. */
static const char *const layer_aliases[] = {
    "Dense",   "Convolution2D", "MaxPool2D",  "AvgPool2D",
    "Flatten", "Dropout",       "Activation", NULL};

static const char *const layers_later[] = {"BatchNormalization",
                                           "LayerNormalization",
                                           "Embedding",
                                           "LSTM",
                                           "GRU",
                                           "SimpleRNN",
                                           "Conv1D",
                                           "Conv3D",
                                           "Conv2DTranspose",
                                           "DepthwiseConv2D",
                                           "SeparableConv2D",
                                           "ReLU",
                                           "LeakyReLU",
                                           "Softmax",
                                           "GlobalAveragePooling2D",
                                           "GlobalMaxPooling2D",
                                           "MaxPooling1D",
                                           "AveragePooling1D",
                                           "ZeroPadding2D",
                                           "Cropping2D",
                                           "UpSampling2D",
                                           "Reshape",
                                           "Permute",
                                           "Add",
                                           "Concatenate",
                                           "MultiHeadAttention",
                                           "Bidirectional",
                                           "TimeDistributed",
                                           "GaussianNoise",
                                           "SpatialDropout2D",
                                           "Rescaling",
                                           "InputLayer",
                                           NULL};

const char *spec_layer_class(enum spec_layer_kind kind)
{
    return layer_classes[kind];
}

const char *spec_activation_name(enum spec_activation activation)
{
    return activation_names[activation];
}

/* --- initialisers --- */

struct initializer_row {
    struct spec_initializer value; /* with Keras's defaults */
    const char *class_name;
    const char *a, *b; /* names of the arguments that set a and b */
};

static const struct initializer_row initializer_rows[] = {
    {{"zeros", DISTRIBUTION_CONSTANT, 0, 0, FAN_AVG}, "Zeros", NULL, NULL},
    {{"ones", DISTRIBUTION_CONSTANT, 1, 0, FAN_AVG}, "Ones", NULL, NULL},
    {{"constant", DISTRIBUTION_CONSTANT, 0, 0, FAN_AVG}, "Constant", "value", NULL},
    {{"random_uniform", DISTRIBUTION_UNIFORM, -0.05, 0.05, FAN_AVG},
     "RandomUniform",
     "minval",
     "maxval"},
    {{"random_normal", DISTRIBUTION_NORMAL, 0, 0.05, FAN_AVG},
     "RandomNormal",
     "mean",
     "stddev"},
    {{"truncated_normal", DISTRIBUTION_TRUNCATED_NORMAL, 0, 0.05, FAN_AVG},
     "TruncatedNormal",
     "mean",
     "stddev"},
    {{"glorot_uniform", DISTRIBUTION_SCALED_UNIFORM, 1, 0, FAN_AVG},
     "GlorotUniform",
     NULL,
     NULL},
    {{"glorot_normal", DISTRIBUTION_SCALED_TRUNCATED_NORMAL, 1, 0, FAN_AVG},
     "GlorotNormal",
     NULL,
     NULL},
    {{"he_uniform", DISTRIBUTION_SCALED_UNIFORM, 2, 0, FAN_IN}, "HeUniform", NULL, NULL},
    {{"he_normal", DISTRIBUTION_SCALED_TRUNCATED_NORMAL, 2, 0, FAN_IN}, "HeNormal", NULL, NULL},
    {{"lecun_uniform", DISTRIBUTION_SCALED_UNIFORM, 1, 0, FAN_IN}, "LecunUniform", NULL, NULL},
    {{"lecun_normal", DISTRIBUTION_SCALED_TRUNCATED_NORMAL, 1, 0, FAN_IN},
     "LecunNormal",
     NULL,
     NULL},
    {{"variance_scaling", DISTRIBUTION_SCALED_TRUNCATED_NORMAL, 1, 0, FAN_IN},
     "VarianceScaling",
     "scale",
     NULL},
};

#define INITIALIZERS ARRAY_LEN(initializer_rows)

/* One of the rows above; it is there. */
static struct spec_initializer initializer_named(const char *name)
{
    int i = 0;
    while (strcmp(initializer_rows[i].value.name, name))
        i++;
    return initializer_rows[i].value;
}

static const struct initializer_row *initializer_find(const struct spec_object *object,
                                                      const char *field, const char *name)
{
    const char *names[INITIALIZERS + 1] = {0};
    const char *classes[INITIALIZERS + 1] = {0};
    for (int i = 0; i < INITIALIZERS; i++) {
        names[i] = initializer_rows[i].value.name;
        classes[i] = initializer_rows[i].class_name;
    }
    int index = spec_read_find(names, name);
    if (index < 0)
        index = spec_read_find(classes, name);
    if (index >= 0)
        return &initializer_rows[index];
    const char *pointer = spec_read_pointer(object, field, -1);
    if (spec_read_find((const char *const[]){"orthogonal", "identity", NULL}, name) >= 0)
        error_at(object->err, pointer, UNIMPLEMENTED,
                 "this version has no initialiser \"%s\" yet", name);
    else
        spec_read_suggest(object->err, pointer, "unknown initialiser", name, names);
    return NULL;
}

static bool variance_scaling(const struct spec_object *object, struct spec_initializer *out)
{
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
    static const char *const distributions[] = {"uniform", "untruncated_normal",
                                                "truncated_normal", NULL};
    int mode = FAN_IN, distribution = 2;
    if (!spec_read_choice(object, "mode", modes, &mode) ||
        !spec_read_choice(object, "distribution", distributions, &distribution))
        return false;
    out->fan = (enum spec_fan)mode;
    out->distribution = (enum spec_distribution)(DISTRIBUTION_SCALED_UNIFORM + distribution);
    return true;
}

/* Reads "glorot_uniform", "GlorotUniform" or {"name": ..., arguments}. */
static bool initializer_parse(const struct spec_object *layer, const char *field,
                              struct spec_initializer *out)
{
    json_t *json = spec_read_value(layer, field);
    if (!json)
        return true;
    if (json_is_string(json)) {
        const struct initializer_row *row =
            initializer_find(layer, field, json_string_value(json));
        if (row)
            *out = row->value;
        return row != NULL;
    }
    struct spec_object object;
    if (!spec_read_object(layer, field, &object))
        return false;
    const char *name = NULL;
    if (!spec_read_text(&object, "name", LIMIT_NAME_BYTES, &name) ||
        !spec_read_required(&object, "name", "which initialiser"))
        return false;
    const struct initializer_row *row = initializer_find(&object, "name", name);
    if (!row)
        return false;
    bool scaling = !strcmp(row->class_name, "VarianceScaling");
    const char *allowed[6] = {"name"};
    int count = 1;
    if (row->a)
        allowed[count++] = row->a;
    if (row->b)
        allowed[count++] = row->b;
    if (scaling) {
        allowed[count++] = "mode";
        allowed[count++] = "distribution";
    }
    *out = row->value;
    bool deviation = row->b && !strcmp(row->b, "stddev");
    return spec_read_only(&object, allowed) &&
           (!row->a ||
            spec_read_number(&object, row->a, scaling ? 1e-30 : -1e30, 1e30, &out->a)) &&
           (!row->b ||
            spec_read_number(&object, row->b, deviation ? 0 : -1e30, 1e30, &out->b)) &&
           (!scaling || variance_scaling(&object, out));
}

/* --- one layer --- */

static bool activation_parse(const struct spec_object *layer, struct spec_layer *out)
{
    json_t *json = spec_read_value(layer, "activation");
    int activation = ACTIVATION_LINEAR;
    if (json_is_string(json) && spec_read_find(activations_later, json_string_value(json)) >= 0)
        return error_at(layer->err, spec_read_pointer(layer, "activation", -1), UNIMPLEMENTED,
                        "this version has no activation \"%s\" yet", json_string_value(json));
    if (!spec_read_choice(layer, "activation", activation_names, &activation))
        return false;
    out->activation = (enum spec_activation)activation;
    return true;
}

/* What Dense and Conv2D share. */
static bool weights_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const later[] = {"kernel_regularizer", "bias_regularizer",
                                        "activity_regularizer", "kernel_constraint",
                                        "bias_constraint"};
    for (int i = 0; i < ARRAY_LEN(later); i++) {
        if (!spec_read_not_yet(layer, later[i], NULL, "this version has none yet"))
            return false;
    }
    out->use_bias = true;
    if (!initializer_parse(layer, "kernel_initializer", &out->kernel_initializer) ||
        !initializer_parse(layer, "bias_initializer", &out->bias_initializer))
        return false;
    return spec_read_bool(layer, "use_bias", &out->use_bias) && activation_parse(layer, out);
}

static bool padding_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const paddings[] = {"valid", "same", NULL};
    int padding = 0;
    if (!spec_read_choice(layer, "padding", paddings, &padding))
        return false;
    out->same = padding == 1;
    return spec_read_not_yet(layer, "data_format", json_string("channels_last"),
                             "images are height, width, channels here (\"channels_last\")");
}

#define WEIGHT_FIELDS                                                                          \
    "activation", "use_bias", "kernel_initializer", "bias_initializer", "kernel_regularizer",  \
        "bias_regularizer", "activity_regularizer", "kernel_constraint", "bias_constraint"
#define LAYER_FIELDS "layer", "name", "trainable"

static bool dense_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const allowed[] = {LAYER_FIELDS, "units", WEIGHT_FIELDS, NULL};
    return spec_read_only(layer, allowed) &&
           spec_read_required(layer, "units", "how many outputs the layer has") &&
           spec_read_integer(layer, "units", 1, SPEC_UNITS_MAX, &out->units) &&
           weights_parse(layer, out);
}

static bool dilation_parse(const struct spec_object *layer)
{
    json_t *json = spec_read_value(layer, "dilation_rate");
    json_t *none = json_is_array(json) ? json_pack("[ii]", 1, 1) : json_integer(1);
    return spec_read_not_yet(layer, "dilation_rate", none, "this version can do 1 only");
}

static bool conv2d_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const allowed[] = {
        LAYER_FIELDS,  "filters",       "kernel_size", "strides",     "padding",
        "data_format", "dilation_rate", "groups",      WEIGHT_FIELDS, NULL};
    out->strides[0] = out->strides[1] = 1;
    if (!spec_read_only(layer, allowed) ||
        !spec_read_required(layer, "filters", "how many channels the layer gives") ||
        !spec_read_required(layer, "kernel_size", "height and width of the window"))
        return false;
    return spec_read_integer(layer, "filters", 1, SPEC_UNITS_MAX, &out->units) &&
           spec_read_pair(layer, "kernel_size", SPEC_WINDOW_MAX, out->size) &&
           spec_read_pair(layer, "strides", SPEC_WINDOW_MAX, out->strides) &&
           padding_parse(layer, out) && dilation_parse(layer) &&
           spec_read_not_yet(layer, "groups", json_integer(1), "this version can do 1 only") &&
           weights_parse(layer, out);
}

static bool pooling_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const allowed[] = {LAYER_FIELDS, "pool_size",   "strides",
                                          "padding",    "data_format", NULL};
    out->size[0] = out->size[1] = 2;
    if (!spec_read_only(layer, allowed) ||
        !spec_read_pair(layer, "pool_size", SPEC_WINDOW_MAX, out->size))
        return false;
    out->strides[0] = out->size[0];
    out->strides[1] = out->size[1];
    return spec_read_pair(layer, "strides", SPEC_WINDOW_MAX, out->strides) &&
           padding_parse(layer, out);
}

static bool flatten_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const allowed[] = {LAYER_FIELDS, "data_format", NULL};
    return spec_read_only(layer, allowed) && padding_parse(layer, out);
}

static bool dropout_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const allowed[] = {LAYER_FIELDS, "rate", "noise_shape", "seed", NULL};
    return spec_read_only(layer, allowed) &&
           spec_read_required(layer, "rate", "the share of inputs to drop, 0 to 0.99") &&
           spec_read_number(layer, "rate", 0, 0.99, &out->rate) &&
           spec_read_not_yet(layer, "noise_shape", NULL, "this version has none yet") &&
           spec_read_not_yet(layer, "seed", NULL,
                             "the seed of the job is used for every layer");
}

static bool activation_layer_parse(const struct spec_object *layer, struct spec_layer *out)
{
    static const char *const allowed[] = {LAYER_FIELDS, "activation", NULL};
    return spec_read_only(layer, allowed) &&
           spec_read_required(layer, "activation", "\"relu\" for one") &&
           activation_parse(layer, out);
}

/* The order is that of enum spec_layer_kind. */
static bool (*const layer_parsers[])(const struct spec_object *, struct spec_layer *) = {
    dense_parse,   conv2d_parse,  pooling_parse,          pooling_parse,
    flatten_parse, dropout_parse, activation_layer_parse,
};

static bool kind_parse(const struct spec_object *layer, struct spec_layer *out)
{
    if (!spec_read_required(layer, "layer", "its class, \"Dense\" for one"))
        return false;
    json_t *json = spec_read_value(layer, "layer");
    const char *pointer = spec_read_pointer(layer, "layer", -1);
    char found[SPEC_FOUND_BYTES];
    if (!json_is_string(json))
        return error_at(layer->err, pointer, INVALID, "layer is %s, allowed: text",
                        spec_read_found(json, found, sizeof(found)));
    const char *name = json_string_value(json);
    int kind = spec_read_find(layer_classes, name);
    if (kind < 0)
        kind = spec_read_find(layer_aliases, name);
    if (kind < 0 && spec_read_find(layers_later, name) >= 0)
        return error_at(layer->err, pointer, UNIMPLEMENTED,
                        "this version has no layer \"%s\" yet", name);
    if (kind < 0)
        return spec_read_suggest(layer->err, pointer, "unknown layer", name, layer_classes);
    out->kind = (enum spec_layer_kind)kind;
    return true;
}

/* --- all layers --- */

static bool name_is_taken(const struct spec_layer *layers, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (layers[i].name && !strcmp(layers[i].name, name))
            return true;
    }
    return false;
}

/* Names those that have none as Keras does: dense, dense_1, ... */
static void name_layers(struct spec_layer *layers, int count, struct arena *arena)
{
    int used[ARRAY_LEN(layer_names)] = {0};
    for (int i = 0; i < count; i++) {
        const char *stem = layer_names[layers[i].kind];
        while (!layers[i].name) {
            int number = used[layers[i].kind]++;
            const char *name = number ? arena_printf(arena, "%s_%d", stem, number) : stem;
            if (!name_is_taken(layers, count, name))
                layers[i].name = name;
        }
    }
}

static bool layer_parse(const struct spec_object *model, json_t *json, int index,
                        struct spec_layer *layers)
{
    struct spec_object object = {json, spec_read_pointer(model, "layers", index), model->arena,
                                 model->err};
    char found[SPEC_FOUND_BYTES];
    if (!json_is_object(json))
        return error_at(model->err, object.pointer, INVALID,
                        "layer %d is %s, allowed: an object", index,
                        spec_read_found(json, found, sizeof(found)));
    struct spec_layer *layer = &layers[index];
    layer->kernel_initializer = initializer_named("glorot_uniform");
    layer->bias_initializer = initializer_named("zeros");
    const char *name = NULL;
    if (!kind_parse(&object, layer) || !layer_parsers[layer->kind](&object, layer) ||
        !spec_read_name(&object, "name", &name) ||
        !spec_read_not_yet(&object, "trainable", json_true(), "all layers are trained here"))
        return false;
    if (name && name_is_taken(layers, index, name))
        return error_at(model->err, spec_read_pointer(&object, "name", -1), INVALID,
                        "another layer is named \"%s\" already", name);
    layer->name = name;
    return true;
}

bool spec_parse_model(const struct spec_object *model, struct spec *spec)
{
    static const char *const allowed[] = {"layers", "keras", "graph", NULL};
    if (!spec_read_only(model, allowed) ||
        !spec_read_not_yet(model, "keras", NULL, "this version takes \"layers\" only") ||
        !spec_read_not_yet(model, "graph", NULL, "this version takes \"layers\" only") ||
        !spec_read_required(model, "layers", "a list of layers"))
        return false;
    json_t *list = spec_read_value(model, "layers");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || !count || count > SPEC_LAYERS_MAX) {
        char found[SPEC_FOUND_BYTES];
        return error_at(model->err, spec_read_pointer(model, "layers", -1), INVALID,
                        "layers is %s, allowed: a list of 1 to %d layers",
                        spec_read_found(list, found, sizeof(found)), SPEC_LAYERS_MAX);
    }
    struct spec_layer *layers = arena_array(model->arena, count, sizeof(*layers));
    for (size_t i = 0; i < count; i++) {
        if (!layer_parse(model, json_array_get(list, i), (int)i, layers))
            return false;
    }
    name_layers(layers, (int)count, model->arena);
    spec->layers = layers;
    spec->layers_count = (int)count;
    return true;
}
