/*
 * spec_keras.c - models as Keras writes them, model.to_json() of versions 2 and 3: Sequential
 * and Functional ones.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "runtime/model/layer.h"
#include "runtime/spec/spec_internal.h"

#define KERAS_LAYERS_MAX 1000
#define KERAS_CALLS_MAX 64 /* of one layer */

/* Output `tensor` of call `call` of the layer `name`. */
struct keras_tensor {
    const char *name;
    int call;
    int tensor;
};

struct keras_call { /* one call of a layer: an entry of the spec, once its inputs are there */
    const json_t *layer, *node; /* `node` NULL in Sequential models */
    const char *pointer;
    const char *name; /* of the layer */
    int number;       /* among the calls of the layer */
    int index;        /* in the spec; -1: not yet */
};

struct keras {
    const struct spec_object *model; /* the whole: {"class_name", "config"} */
    struct keras_call *calls;
    int calls_count;
    struct spec_layer *layers;
    int layers_count;
};

static bool refuse(const struct keras *k, const char *pointer, const char *what)
{
    return error_at(k->model->err, pointer, INVALID, "%s", what);
}

/* --- finding --- */

static const struct keras_call *find(const struct keras *k, const struct keras_tensor *tensor)
{
    for (int i = 0; i < k->calls_count; i++) {
        const struct keras_call *call = &k->calls[i];
        if (call->number == tensor->call && !strcmp(call->name, tensor->name))
            return call;
    }
    return NULL;
}

/* ["dense", 0, 0], perhaps with more behind. */
static bool read_history(const json_t *json, struct keras_tensor *out)
{
    if (json_array_size(json) < 3 || !json_is_string(json_array_get(json, 0)) ||
        !json_is_integer(json_array_get(json, 1)) || !json_is_integer(json_array_get(json, 2)))
        return false;
    *out = (struct keras_tensor){json_string_value(json_array_get(json, 0)),
                                 (int)json_integer_value(json_array_get(json, 1)),
                                 (int)json_integer_value(json_array_get(json, 2))};
    return true;
}

static bool is_output(const struct keras_tensor *tensor)
{
    return tensor->tensor >= 0 && tensor->tensor < LAYER_OUTPUTS_MAX;
}

struct gathering {
    struct keras_tensor tensors[LAYER_CALL_INPUTS_MAX];
    int count;
    bool too_many;
};

/*
 * Every tensor in what a layer is called with, in order: version 3 marks them by a class,
 * version 2 writes their history alone.  Depth is bounded by that of the document.
 */
static void gather(const json_t *json, struct gathering *g)
{
    struct keras_tensor tensor;
    const char *class = json_string_value(json_object_get(json, "class_name"));
    const json_t *history = json_object_get(json_object_get(json, "config"), "keras_history");
    bool found = class && !strcmp(class, "__keras_tensor__") && read_history(history, &tensor);
    if (found || (json_is_array(json) && read_history(json, &tensor))) {
        g->too_many |= g->count == LAYER_CALL_INPUTS_MAX;
        if (!g->too_many)
            g->tensors[g->count++] = tensor;
        return;
    }
    for (size_t i = 0; json_is_array(json) && i < json_array_size(json); i++)
        gather(json_array_get(json, i), g);
    const char *field;
    json_t *value;
    json_object_foreach((json_t *)json, field, value) gather(value, g);
}

/* --- one call --- */

/* Arguments of the call stand among those of the class here: use_causal_mask for one. */
static json_t *arguments(const struct keras_call *call)
{
    json_t *config = json_copy(json_object_get(call->layer, "config"));
    const json_t *more = json_object_get(call->node, "kwargs");
    if (!more && json_is_array(call->node)) /* version 2: the fourth of the first input */
        more = json_array_get(json_array_get(call->node, 0), 3);
    const char *field;
    json_t *value;
    json_object_foreach((json_t *)more, field, value)
    {
        if (json_is_boolean(value) || json_is_number(value) || json_is_string(value))
            json_object_set(config, field, value);
    }
    return config;
}

static bool read_class(const struct keras *k, const struct keras_call *call,
                       struct spec_layer *layer)
{
    const struct spec_object *model = k->model;
    const char *name = json_string_value(json_object_get(call->layer, "class_name"));
    const char *pointer = arena_printf(model->arena, "%s/class_name", call->pointer);
    if (!name)
        return refuse(k, pointer, "class_name is missing: the class of the layer");
    const struct config_class *class = config_find_at(&layer_family, name, pointer, model->err);
    if (!class)
        return false;
    json_t *json = arguments(call);
    struct spec_object object = {json, arena_printf(model->arena, "%s/config", call->pointer),
                                 model->arena, model->err};
    bool ok = config_read_keras_object(&object, class, &layer_family, &layer->config) &&
              spec_read_bool(&object, "trainable", &layer->trainable);
    json_decref(json);
    return ok;
}

/* The spec's layer for a call whose inputs are all there. */
static bool add(struct keras *k, struct keras_call *call, const struct gathering *inputs)
{
    struct arena *arena = k->model->arena;
    struct keras_tensor first = {call->name, 0, 0};
    struct spec_layer *layer = &k->layers[k->layers_count];
    struct spec_input *into = arena_array(arena, (size_t)inputs->count + 1, sizeof(*into));
    *layer = (struct spec_layer){.name = call->name,
                                 .shared = k->layers_count,
                                 .trainable = true,
                                 .inputs = into,
                                 .inputs_count = inputs->count,
                                 .pointer = call->pointer};
    for (int i = 0; i < inputs->count; i++) {
        const struct keras_tensor *tensor = &inputs->tensors[i];
        if (!is_output(tensor))
            return refuse(k, call->pointer, "an input of the layer is an output that none has");
        into[i] = (struct spec_input){find(k, tensor)->index, tensor->tensor};
    }
    if (call->number) {
        layer->shared = find(k, &first)->index;
        layer->name = arena_printf(arena, "%s_call_%d", call->name, call->number);
        layer->config = k->layers[layer->shared].config;
        layer->trainable = k->layers[layer->shared].trainable;
    } else if (!read_class(k, call, layer)) {
        return false;
    }
    bool is_input = config_is(layer->config, "InputLayer");
    if (is_input && inputs->count)
        return refuse(k, call->pointer, "an InputLayer takes its input from the data");
    if (!is_input && !inputs->count && k->layers_count)
        return refuse(k, call->pointer, "the layer is called with nothing");
    for (int i = 0; i < k->layers_count; i++) {
        if (!strcmp(k->layers[i].name, layer->name))
            return refuse(k, call->pointer, "another layer has the same name");
    }
    call->index = k->layers_count++;
    return true;
}

/* Whether everything that the call takes has an index. */
static bool is_ready(const struct keras *k, const struct keras_call *call,
                     const struct gathering *inputs)
{
    struct keras_tensor first = {call->name, 0, 0};
    if (call->number && find(k, &first)->index < 0)
        return false;
    for (int i = 0; i < inputs->count; i++) {
        const struct keras_call *from = find(k, &inputs->tensors[i]);
        if (!from || from->index < 0)
            return false;
    }
    return true;
}

/* --- Functional --- */

/* Adds calls as their inputs come to be there, until all are. */
static bool add_all(struct keras *k)
{
    for (int added = 1; added && k->layers_count < k->calls_count;) {
        added = 0;
        for (int i = 0; i < k->calls_count; i++) {
            struct keras_call *call = &k->calls[i];
            struct gathering inputs = {.count = 0};
            if (call->index >= 0)
                continue;
            gather(call->node, &inputs);
            if (inputs.too_many)
                return refuse(k, call->pointer, "the layer has too many inputs");
            if (!is_ready(k, call, &inputs))
                continue;
            if (!add(k, call, &inputs))
                return false;
            added++;
        }
    }
    for (int i = 0; i < k->calls_count; i++) {
        if (k->calls[i].index < 0)
            return refuse(k, k->calls[i].pointer,
                          "an input of the layer is nowhere in the model, or goes in a circle");
    }
    return true;
}

static const char *layer_name(const json_t *layer)
{
    const char *name = json_string_value(json_object_get(layer, "name"));
    return name ? name
                : json_string_value(json_object_get(json_object_get(layer, "config"), "name"));
}

/* A call for each node of each layer; layers without nodes are inputs, or never called. */
static bool list_calls(struct keras *k, const json_t *layers, const char *pointer, bool nodes)
{
    struct arena *arena = k->model->arena;
    size_t count = json_array_size(layers), room = 0;
    for (size_t i = 0; i < count; i++)
        room +=
            1 + json_array_size(json_object_get(json_array_get(layers, i), "inbound_nodes"));
    if (!json_is_array(layers) || !count || count > KERAS_LAYERS_MAX ||
        room > KERAS_LAYERS_MAX * KERAS_CALLS_MAX)
        return refuse(k, pointer, "layers is no list of 1 to 1000 layers");
    k->calls = arena_array(arena, room, sizeof(*k->calls));
    k->layers = arena_array(arena, room, sizeof(*k->layers));
    for (size_t i = 0; i < count; i++) {
        const json_t *layer = json_array_get(layers, i);
        const json_t *inbound = nodes ? json_object_get(layer, "inbound_nodes") : NULL;
        const char *at = arena_printf(arena, "%s/%zu", pointer, i), *name = layer_name(layer);
        size_t calls = json_array_size(inbound);
        if (!name || !spec_is_name(name))
            return refuse(k, at, "the layer has no name of letters, digits, . _ -");
        for (size_t n = 0; n < (calls ? calls : 1); n++) {
            struct keras_call *call = &k->calls[k->calls_count++];
            *call = (struct keras_call){.layer = layer,
                                        .node = calls ? json_array_get(inbound, n) : NULL,
                                        .pointer = at,
                                        .name = arena_text(arena, name),
                                        .number = (int)n,
                                        .index = -1};
        }
    }
    return true;
}

/* ["dense", 0, 0], or the first of a list of such. */
static bool find_output(struct keras *k, const json_t *outputs, const char *pointer, int *out)
{
    struct gathering all = {.count = 0};
    gather(outputs, &all);
    const struct keras_tensor tensor = all.tensors[0];
    const struct keras_call *call = all.count ? find(k, &tensor) : NULL;
    if (!call || tensor.tensor != 0)
        return refuse(k, pointer, "output_layers names no layer of the model");
    *out = call->index;
    return true;
}

static bool functional(struct keras *k, const struct spec_object *config, struct spec *spec)
{
    return list_calls(k, json_object_get(config->json, "layers"),
                      spec_read_pointer(config, "layers", -1), true) &&
           add_all(k) &&
           find_output(k, json_object_get(config->json, "output_layers"),
                       spec_read_pointer(config, "output_layers", -1), &spec->output);
}

/* --- Sequential --- */

/* Version 1 of the format: the configuration is the list itself. */
static bool sequential(struct keras *k, const struct spec_object *whole, struct spec *spec)
{
    json_t *config = json_object_get(whole->json, "config");
    const json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers");
    const char *pointer = spec_read_pointer(whole, "config", -1);
    if (!json_is_array(config))
        pointer = arena_printf(whole->arena, "%s/layers", pointer);
    if (!list_calls(k, layers, pointer, false))
        return false;
    for (int i = 0; i < k->calls_count; i++) {
        struct gathering inputs = {.count = i ? 1 : 0};
        if (i)
            inputs.tensors[0] = (struct keras_tensor){k->calls[i - 1].name, 0, 0};
        if (!add(k, &k->calls[i], &inputs))
            return false;
    }
    spec->output = k->layers_count - 1;
    return true;
}

bool spec_parse_keras(const struct spec_object *model, struct spec *spec)
{
    struct spec_object whole, config;
    if (!spec_read_object(model, "keras", &whole))
        return false;
    struct keras k = {.model = &whole};
    const char *class = json_string_value(json_object_get(whole.json, "class_name"));
    bool ok;
    if (class && !strcmp(class, "Sequential"))
        ok = sequential(&k, &whole, spec);
    else if (class && (!strcmp(class, "Functional") || !strcmp(class, "Model")))
        ok = spec_read_object(&whole, "config", &config) && functional(&k, &config, spec);
    else
        return refuse(&k, spec_read_pointer(&whole, "class_name", -1),
                      "the model is of no class that can be read: allowed are Sequential and "
                      "Functional, as model.to_json() writes them");
    spec->layers = k.layers;
    spec->layers_count = k.layers_count;
    return ok;
}
