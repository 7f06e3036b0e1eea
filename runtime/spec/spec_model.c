/* spec_model.c - the model of a job spec: layers with Keras's arguments, and how they join. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "runtime/model/layer.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_LAYERS_MAX 1000
#define SPEC_INPUTS_MAX LAYER_CALL_INPUTS_MAX

struct parsing {
    const struct spec_object *model;
    struct spec_layer *layers;
    int count;
};

/* --- names --- */

static int layer_named(const struct parsing *p, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (p->layers[i].name && !strcmp(p->layers[i].name, name))
            return i;
    }
    return -1;
}

/* The name of one that has none, as Keras does it: dense, dense_1, ... */
static const char *name_for(const struct parsing *p, int index)
{
    const struct config_class *class = p->layers[index].config->class;
    struct arena *arena = p->model->arena;
    const char *stem = config_snake(arena, class->name), *name;
    int number = 0;
    for (int before = 0; before < index; before++)
        number += p->layers[before].config->class == class;
    do
        name = number ? arena_printf(arena, "%s_%d", stem, number) : stem;
    while (number++, layer_named(p, index, name) >= 0);
    return name;
}

/* --- one layer --- */

static bool refuse_unknown(const struct spec_object *layer, const char *pointer,
                           const struct parsing *p, int count, const char *name)
{
    const char **names = arena_array(layer->arena, (size_t)count + 1, sizeof(*names));
    int known = 0;
    for (int i = 0; i < count; i++) {
        if (p->layers[i].name)
            names[known++] = p->layers[i].name;
    }
    const char *nearest = nearest_name(name, names);
    if (nearest)
        return error_at(layer->err, pointer, INVALID,
                        "no layer before this one is named \"%s\"; did you mean \"%s\"?", name,
                        nearest);
    return error_at(layer->err, pointer, INVALID,
                    "no layer before this one is named \"%s\" (give it a \"name\")", name);
}

/* "conv2d", or "lstm:1" for its second output. */
static bool input_parse(const struct spec_object *layer, const struct parsing *p, int index,
                        const json_t *json, const char *pointer, struct spec_input *out)
{
    char found[SPEC_FOUND_BYTES], name[LIMIT_NAME_BYTES + 8];
    if (!json_is_string(json))
        return error_at(layer->err, pointer, INVALID, "an input is %s, allowed: a layer's name",
                        spec_read_found(json, found, sizeof(found)));
    snprintf(name, sizeof(name), "%s", json_string_value(json));
    char *colon = strchr(name, ':');
    out->output = 0;
    if (colon && colon[1] >= '0' && colon[1] < '0' + LAYER_OUTPUTS_MAX && !colon[2]) {
        *colon = 0;
        out->output = colon[1] - '0';
    }
    out->layer = layer_named(p, index, name);
    return out->layer >= 0 || refuse_unknown(layer, pointer, p, index, name);
}

/* What it says, else the layer before it. */
static bool inputs_parse(const struct spec_object *object, const struct parsing *p, int index)
{
    struct spec_layer *layer = &p->layers[index];
    json_t *json = spec_read_value(object, "inputs");
    bool is_input = config_is(layer->config, "InputLayer");
    size_t count = json_is_array(json) ? json_array_size(json) : json || (index && !is_input);
    if (json && is_input)
        return error_at(object->err, spec_read_pointer(object, "inputs", -1), INVALID,
                        "an InputLayer takes its input from the data");
    if (count > SPEC_INPUTS_MAX || (json && !count))
        return error_at(object->err, spec_read_pointer(object, "inputs", -1), INVALID,
                        "inputs is a list of %zu, allowed: 1 to %d", count, SPEC_INPUTS_MAX);
    struct spec_input *inputs = arena_array(object->arena, count + 1, sizeof(*inputs));
    if (!json && count)
        inputs[0].layer = index - 1;
    for (size_t i = 0; json && i < count; i++) {
        bool list = json_is_array(json);
        if (!input_parse(object, p, index, list ? json_array_get(json, i) : json,
                         spec_read_pointer(object, "inputs", list ? (int)i : -1), &inputs[i]))
            return false;
    }
    layer->inputs = inputs;
    layer->inputs_count = (int)count;
    return true;
}

/* Another call of a layer before this one, with the same weights. */
static bool reuse_parse(const struct spec_object *object, const struct parsing *p, int index)
{
    static const char *const allowed[] = {"reuse", "name", "inputs", NULL};
    const char *name = NULL;
    if (!spec_read_only(object, allowed) ||
        !spec_read_text(object, "reuse", LIMIT_NAME_BYTES, &name))
        return false;
    int of = layer_named(p, index, name);
    if (of < 0)
        return refuse_unknown(object, spec_read_pointer(object, "reuse", -1), p, index, name);
    p->layers[index].shared = p->layers[of].shared;
    p->layers[index].config = p->layers[of].config;
    p->layers[index].trainable = p->layers[of].trainable;
    return true;
}

static bool class_parse(const struct spec_object *object, struct spec_layer *layer)
{
    static const char *const others[] = {"layer", "name", "trainable", "inputs", NULL};
    char found[SPEC_FOUND_BYTES];
    if (!spec_read_required(object, "layer", "its class, \"Dense\" for one"))
        return false;
    json_t *json = spec_read_value(object, "layer");
    const char *pointer = spec_read_pointer(object, "layer", -1);
    if (!json_is_string(json))
        return error_at(object->err, pointer, INVALID, "layer is %s, allowed: text",
                        spec_read_found(json, found, sizeof(found)));
    const struct config_class *class =
        config_find_at(&layer_family, json_string_value(json), pointer, object->err);
    return class && config_read_object(object, class, &layer_family, others, &layer->config) &&
           spec_read_bool(object, "trainable", &layer->trainable);
}

static bool layer_parse(const struct parsing *p, json_t *json, int index)
{
    const struct spec_object *model = p->model;
    struct spec_object object = {json, spec_read_pointer(model, "layers", index), model->arena,
                                 model->err};
    char found[SPEC_FOUND_BYTES];
    if (!json_is_object(json))
        return error_at(model->err, object.pointer, INVALID,
                        "layer %d is %s, allowed: an object", index,
                        spec_read_found(json, found, sizeof(found)));
    struct spec_layer *layer = &p->layers[index];
    *layer = (struct spec_layer){.shared = index, .trainable = true, .pointer = object.pointer};
    bool reuse = spec_read_value(&object, "reuse");
    const char *name = NULL;
    if (!(reuse ? reuse_parse(&object, p, index) : class_parse(&object, layer)) ||
        !spec_read_name(&object, "name", &name))
        return false;
    if (name && layer_named(p, index, name) >= 0)
        return error_at(model->err, spec_read_pointer(&object, "name", -1), INVALID,
                        "another layer is named \"%s\" already", name);
    layer->name = name ? name : name_for(p, index);
    return inputs_parse(&object, p, index);
}

/* --- all layers --- */

/* The layer that "output" names, else the last one. */
static bool output_parse(const struct parsing *p, struct spec *spec)
{
    const char *name = NULL;
    if (!spec_read_text(p->model, "output", LIMIT_NAME_BYTES, &name))
        return false;
    spec->output = name ? layer_named(p, p->count, name) : p->count - 1;
    return spec->output >= 0 ||
           refuse_unknown(p->model, spec_read_pointer(p->model, "output", -1), p, p->count,
                          name);
}

bool spec_parse_model(const struct spec_object *model, struct spec *spec)
{
    static const char *const allowed[] = {"layers", "output", "keras", "graph", NULL};
    if (!spec_read_only(model, allowed) ||
        !spec_read_not_yet(model, "graph", NULL, "this version takes \"layers\" or \"keras\""))
        return false;
    if (spec_read_value(model, "keras") && spec_read_value(model, "layers"))
        return error_at(model->err, spec_read_pointer(model, "keras", -1), INVALID,
                        "the model has \"layers\" and \"keras\", allowed: one of the two");
    if (spec_read_value(model, "keras"))
        return spec_parse_keras(model, spec);
    if (!spec_read_required(model, "layers", "a list of layers"))
        return false;
    json_t *list = spec_read_value(model, "layers");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || !count || count > SPEC_LAYERS_MAX) {
        char found[SPEC_FOUND_BYTES];
        return error_at(model->err, spec_read_pointer(model, "layers", -1), INVALID,
                        "layers is %s, allowed: a list of 1 to %d layers",
                        spec_read_found(list, found, sizeof(found)), SPEC_LAYERS_MAX);
    }
    struct parsing p = {model, arena_array(model->arena, count, sizeof(*p.layers)), (int)count};
    for (size_t i = 0; i < count; i++) {
        if (!layer_parse(&p, json_array_get(list, i), (int)i))
            return false;
    }
    spec->layers = p.layers;
    spec->layers_count = (int)count;
    return output_parse(&p, spec);
}
