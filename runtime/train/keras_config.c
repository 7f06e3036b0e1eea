/* keras_config.c - a model's layers as the configuration of a Functional model of Keras 3. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/model/layer.h"
#include "runtime/spec/spec.h"
#include "runtime/train/keras.h"
#include "runtime/train/trained.h"

struct writing {
    const struct trained *trained;
    const struct spec *spec;
    struct arena *arena;
    struct str *out;
};

/* --- classes and their arguments --- */

static const char *module_of(const struct config_family *family)
{
    return family == &layer_family               ? "keras.layers"
           : family == &build_initializer_family ? "keras.initializers"
           : family == &build_regularizer_family ? "keras.regularizers"
                                                 : "keras.constraints";
}

/* The name that Keras exports a class by, where it is not its own. */
static const char *exported(const char *class)
{
    return !strcmp(class, "GroupedQueryAttention") ? "GroupQueryAttention" : class;
}

/* Arguments of the call in Keras, which stand among those of the class here. */
static bool is_of_call(const char *name)
{
    return !strcmp(name, "use_causal_mask") || !strcmp(name, "return_attention_scores");
}

static void add_text(struct str *out, const char *text)
{
    str_add_json(out, text, strlen(text));
}

/* An object without its end, to which more may be added.  Classes hold classes no deeper than
 * the spec did, which has a limit. */
static void add_class(struct str *out, const struct config *config, const char *name,
                      bool trainable);

static void add_arguments(struct str *out, const struct config *config, bool trainable)
{
    const char *between = "";
    for (int i = 0; i < config_arguments_count(config); i++) {
        const struct config_argument *argument = config_argument_at(config, i);
        if (is_of_call(argument->name))
            continue;
        str_printf(out, "%s\"%s\": ", between, argument->name);
        between = ", ";
        bool object = argument->type == CONFIG_OBJECT && !config->values[i].is_null;
        if (object) {
            const struct config *inner = config->values[i].object;
            bool layer = inner->family == &layer_family;
            add_class(out, inner, layer ? argument->name : NULL, trainable);
            str_add_char(out, '}');
        } else {
            config_write_argument(config, i, out);
        }
    }
}

static void add_class(struct str *out, const struct config *config, const char *name,
                      bool trainable)
{
    str_printf(out, "{\"module\": \"%s\", \"class_name\": \"%s\", \"config\": {",
               module_of(config->family), exported(config->class->name));
    if (name) {
        str_add(out, "\"name\": ");
        add_text(out, name);
        str_printf(out, ", \"trainable\": %s%s", trainable ? "true" : "false",
                   config_arguments_count(config) ? ", " : "");
    }
    add_arguments(out, config, trainable);
    str_add(out, "}, \"registered_name\": null");
}

/* --- tensors --- */

static void add_shape(struct str *out, const struct shape *of_one)
{
    str_add(out, "[null");
    for (int i = 0; i < of_one->rank; i++) {
        if (of_one->dims[i] < 0)
            str_add(out, ", null");
        else
            str_printf(out, ", %lld", (long long)of_one->dims[i]);
    }
    str_add_char(out, ']');
}

/* Which call of its layer an entry of the spec is. */
static int call_number(const struct spec *spec, int index)
{
    int number = 0;
    for (int i = 0; i < index; i++)
        number += spec->layers[i].shared == spec->layers[index].shared;
    return number;
}

/* Where the layers without inputs take theirs from: the feature of their name, or the only one.
 */
static const struct model_feature *feature_of(const struct writing *w,
                                              const struct spec_layer *layer)
{
    const struct model_data *data = &w->trained->dataset.feeds.data;
    for (int i = 0; i < data->features_count; i++) {
        if (!strcmp(data->features[i].name, layer->name))
            return &data->features[i];
    }
    return &data->features[0];
}

static const char *dtype_text(int dtype)
{
    return dtype == F32 ? "float32" : dtype_name(dtype);
}

/* An input that the spec does not name, for a layer that takes the data itself. */
static const char *input_name(const struct writing *w, const struct model_feature *feature)
{
    const char *name = feature->name;
    for (int i = 0; i < w->spec->layers_count; i++) {
        if (!strcmp(w->spec->layers[i].name, name)) {
            name = arena_printf(w->arena, "%s_input", name);
            i = -1;
        }
    }
    return name;
}

static void add_tensor(const struct writing *w, const char *name, int call, int output,
                       const struct shape *shape, int dtype)
{
    str_add(w->out, "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": ");
    add_shape(w->out, shape);
    str_printf(w->out, ", \"dtype\": \"%s\", \"keras_history\": [", dtype_text(dtype));
    add_text(w->out, name);
    str_printf(w->out, ", %d, %d]}}", call, output);
}

/* What entry `index` takes as its input number `input`. */
static void add_input(const struct writing *w, int index, int input)
{
    const struct spec_layer *layer = &w->spec->layers[index];
    if (!layer->inputs_count) {
        const struct model_feature *feature = feature_of(w, layer);
        add_tensor(w, input_name(w, feature), 0, 0, &feature->shape, feature->dtype);
        return;
    }
    const struct spec_input *from = &layer->inputs[input];
    const struct spec_layer *of = &w->spec->layers[from->layer];
    bool is_input = config_is(of->config, "InputLayer");
    add_tensor(w, w->spec->layers[of->shared].name, call_number(w->spec, from->layer),
               from->output, &w->trained->model.summary.layers[from->layer].output,
               is_input ? feature_of(w, of)->dtype : F32);
}

/* --- calls --- */

/* Classes whose inputs are one argument, a list. */
static bool takes_list(const struct config *config)
{
    static const char *const classes[] = {"Add",         "Subtract", "Multiply",
                                          "Average",     "Maximum",  "Minimum",
                                          "Concatenate", "Dot",      "Attention"};
    for (int i = 0; i < ARRAY_LEN(classes); i++) {
        if (config_is(config, classes[i]))
            return true;
    }
    return false;
}

static bool is_attention(const struct config *config)
{
    return config_is(config, "MultiHeadAttention") ||
           config_is(config, "GroupedQueryAttention") || config_is(config, "Attention");
}

/* A table that is used backwards is so from its second call on. */
static bool is_reverse(const struct writing *w, int index)
{
    return config_is(w->spec->layers[index].config, "ReversibleEmbedding") &&
           call_number(w->spec, index) > 0;
}

static void add_flag(const struct writing *w, const struct config *config, const char *name,
                     const char **between)
{
    if (!config_has(config, name) || !config_bool(config, name))
        return;
    str_printf(w->out, "%s\"%s\": true", *between, name);
    *between = ", ";
}

static void add_call(const struct writing *w, int index)
{
    const struct spec_layer *layer = &w->spec->layers[index];
    int count = layer->inputs_count ? layer->inputs_count : 1, shown = count;
    bool list = takes_list(layer->config), masked = is_attention(layer->config) && count > 3;
    if (is_attention(layer->config) && count == 1)
        shown = 2; /* the query looks at itself */
    if (masked)
        shown = 3;
    str_add(w->out, list ? "{\"args\": [[" : "{\"args\": [");
    for (int i = 0; i < shown; i++) {
        str_add(w->out, i ? ", " : "");
        add_input(w, index, i < count ? i : 0);
    }
    str_add(w->out, list ? "]], \"kwargs\": {" : "], \"kwargs\": {");
    const char *between = "";
    if (masked) {
        str_add(w->out, "\"attention_mask\": ");
        add_input(w, index, 3);
        between = ", ";
    }
    add_flag(w, layer->config, "use_causal_mask", &between);
    add_flag(w, layer->config, "return_attention_scores", &between);
    str_printf(w->out, "%s}}", is_reverse(w, index) ? "\"reverse\": true" : "");
}

/* --- layers --- */

static void add_input_layer(const struct writing *w, const char *name,
                            const struct model_feature *feature)
{
    str_add(w->out, "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", "
                    "\"config\": {\"batch_shape\": ");
    add_shape(w->out, &feature->shape);
    str_printf(w->out, ", \"dtype\": \"%s\", \"name\": ", dtype_text(feature->dtype));
    add_text(w->out, name);
    str_add(w->out, "}, \"registered_name\": null, \"name\": ");
    add_text(w->out, name);
    str_add(w->out, ", \"inbound_nodes\": []}");
}

static void add_layer(const struct writing *w, int index)
{
    const struct spec_layer *layer = &w->spec->layers[index];
    if (config_is(layer->config, "InputLayer")) {
        add_input_layer(w, layer->name, feature_of(w, layer));
        return;
    }
    add_class(w->out, layer->config, layer->name, layer->trainable);
    str_add(w->out, ", \"name\": ");
    add_text(w->out, layer->name);
    str_add(w->out, ", \"inbound_nodes\": [");
    const char *between = "";
    for (int i = index; i < w->spec->layers_count; i++) {
        if (w->spec->layers[i].shared != index)
            continue;
        str_add(w->out, between);
        add_call(w, i);
        between = ", ";
    }
    str_add(w->out, "]}");
}

/* Whether entry `index` takes the data without an InputLayer. */
static bool is_bare(const struct spec_layer *layer)
{
    return !layer->inputs_count && !config_is(layer->config, "InputLayer");
}

/* In the order of the features, which is how one feeds them. */
static void add_inputs(const struct writing *w)
{
    const struct model_data *data = &w->trained->dataset.feeds.data;
    const char *between = "";
    bool bare = false;
    for (int f = 0; f < data->features_count; f++) {
        for (int i = 0; i < w->spec->layers_count; i++) {
            const struct spec_layer *layer = &w->spec->layers[i];
            if (layer->inputs_count || feature_of(w, layer) != &data->features[f] ||
                (is_bare(layer) && bare))
                continue;
            bare |= is_bare(layer);
            str_printf(w->out, "%s[", between);
            add_text(w->out,
                     is_bare(layer) ? input_name(w, feature_of(w, layer)) : layer->name);
            str_add(w->out, ", 0, 0]");
            between = ", ";
        }
    }
}

void keras_add_config(const struct trained *trained, struct arena *arena, struct str *out)
{
    const struct spec *spec = trained->spec;
    const struct writing w = {trained, spec, arena, out};
    str_add(out, "{\"module\": \"keras.src.models.functional\", \"class_name\": "
                 "\"Functional\", \"config\": {\"name\": ");
    add_text(out, spec->name);
    str_add(out, ", \"trainable\": true, \"layers\": [");
    const char *between = "";
    bool bare = false;
    for (int i = 0; i < spec->layers_count; i++) {
        if (is_bare(&spec->layers[i]) && !bare) {
            const struct model_feature *feature = feature_of(&w, &spec->layers[i]);
            str_add(out, between);
            add_input_layer(&w, input_name(&w, feature), feature);
            between = ", ";
            bare = true;
        }
        if (spec->layers[i].shared != i)
            continue;
        str_add(out, between);
        add_layer(&w, i);
        between = ", ";
    }
    str_add(out, "], \"input_layers\": [");
    add_inputs(&w);
    str_add(out, "], \"output_layers\": [[");
    add_text(out, spec->layers[spec->layers[spec->output].shared].name);
    str_printf(out,
               ", %d, 0]]}, \"registered_name\": \"Functional\", \"build_config\": "
               "{\"input_shape\": null}, \"compile_config\": {}}\n",
               call_number(spec, spec->output));
}
