/*
 * spec_keras.c - models as Keras writes them, model.to_json() of versions 2 and 3: Sequential
 * and Functional ones, and such as layers of each other, which become one flat list.
 */

#include "runtime/spec/spec_keras.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "runtime/model/layer.h"
#include "runtime/spec/spec_internal.h"

#define KERAS_LAYERS_MAX 1000
#define KERAS_CALLS_MAX 64        /* of one layer */
#define KERAS_STEPS_MAX 400000000 /* calls looked at: a second of the server's time */

/* What the first layer of a Sequential model inside of another takes, if it is no input itself.
 */
#define KERAS_OUTSIDE ""

/* The whole, or a call of a model that is a layer of another: its layers are listed once for
 * each of its calls. */
struct keras_model {
    const json_t *config;
    const char *pointer; /* of the configuration */
    bool sequential;
    const char *prefix;              /* in front of the names of its layers: "", "outer." */
    const struct keras_model *outer; /* NULL: the whole */
    const char *name;                /* in the outer model */
    int number, shift;               /* which call it is: of the outer's, and of all */
    const json_t *node;              /* what it is called with; NULL: the layer before it */
    const char *before;
};

struct keras_call { /* one call of a layer: an entry of the spec, once its inputs are there */
    const struct keras_model *model;
    const json_t *layer, *node; /* `node` NULL in Sequential models */
    const char *pointer;
    const char *own, *name; /* of the layer in its model, and in the whole */
    const char *before;     /* the layer before it in a Sequential model; NULL: none */
    int number, total;      /* among the calls of the layer, in its model and in all */
    int index;              /* in the spec; -1: not yet */
};

struct keras {
    const struct spec_object *model; /* the whole: {"class_name", "config"} */
    struct keras_call *calls;
    int calls_count, calls_capacity;
    const struct keras_model **models;
    int models_count, models_capacity;
    struct spec_layer *layers;
    int layers_count;
    int *precision; /* of the spec: BF16 when a layer says mixed_bfloat16 */
};

static bool refuse(const struct keras *k, const char *pointer, const char *what)
{
    return error_at(k->model->err, pointer, INVALID, "%s", what);
}

/* --- finding --- */

static const char *layer_name(const json_t *layer)
{
    const char *name = json_string_value(json_object_get(layer, "name"));
    return name ? name
                : json_string_value(json_object_get(json_object_get(layer, "config"), "name"));
}

/* Version 1 of the format: the configuration of a Sequential model is the list itself. */
static const json_t *layers_of(const struct keras_model *model)
{
    return json_is_array(model->config) ? model->config
                                        : json_object_get(model->config, "layers");
}

static bool is_output(const struct keras_tensor *tensor)
{
    return tensor->tensor >= 0 && tensor->tensor < LAYER_OUTPUTS_MAX;
}

/* Operations that are no layers: Keras lists those that its masks are made with. */
static bool is_op(const json_t *layer)
{
    const char *module = json_string_value(json_object_get(layer, "module"));
    return module && (strstr(module, "keras.src.ops") || strstr(module, "keras.ops"));
}

static bool is_input(const struct keras_call *call)
{
    const char *class = json_string_value(json_object_get(call->layer, "class_name"));
    return class && (!strcmp(class, "InputLayer") || !strcmp(class, "Input")); /* its alias */
}

static const struct keras_call *find_call(const struct keras *k,
                                          const struct keras_model *model,
                                          const struct keras_tensor *tensor)
{
    for (int i = 0; i < k->calls_count; i++) {
        const struct keras_call *call = &k->calls[i];
        if (call->model == model && call->number == tensor->call &&
            !strcmp(call->own, tensor->name))
            return call;
    }
    return NULL;
}

static const struct keras_model *find_model(const struct keras *k,
                                            const struct keras_model *outer,
                                            const struct keras_tensor *tensor)
{
    for (int i = 0; i < k->models_count; i++) {
        const struct keras_model *model = k->models[i];
        if (model->outer == outer && model->number == tensor->call &&
            !strcmp(model->name, tensor->name))
            return model;
    }
    return NULL;
}

/* Which input of its model an InputLayer is. */
static int input_index(const struct keras_model *model, const struct keras_call *call)
{
    struct keras_tensors inputs = {.count = 0};
    spec_keras_tensors(json_object_get(model->config, "input_layers"), &inputs);
    for (int i = 0; i < inputs.count; i++) {
        if (!strcmp(inputs.tensors[i].name, call->own))
            return i;
    }
    return 0;
}

/* The tensor that a model inside gives as its output; of a Sequential one the last layer's. */
static bool output_of(const struct keras_model *model, struct keras_tensor *tensor)
{
    struct keras_tensors outputs = {.count = 0};
    if (!model->sequential) {
        spec_keras_tensors(json_object_get(model->config, "output_layers"), &outputs);
        if (tensor->tensor < 0 || tensor->tensor >= outputs.count)
            return false;
        *tensor = outputs.tensors[tensor->tensor];
        return true;
    }
    const json_t *layers = layers_of(model);
    *tensor = (struct keras_tensor){
        layer_name(json_array_get(layers, json_array_size(layers) - 1)), 0, 0};
    return tensor->name;
}

#define KERAS_HOPS_MAX 200 /* in and out of models, for one tensor */

/*
 * The call whose output `tensor` of `model` is: through the outputs of models inside of it, and
 * from the inputs of one to what it is called with.
 */
static const struct keras_call *find(const struct keras *k, const struct keras_model *model,
                                     struct keras_tensor *tensor)
{
    for (int hop = 0; hop < KERAS_HOPS_MAX; hop++) {
        const struct keras_call *call = find_call(k, model, tensor);
        const struct keras_model *inner = call ? NULL : find_model(k, model, tensor);
        bool outside = model->outer && !strcmp(tensor->name, KERAS_OUTSIDE);
        if (call && (!model->outer || !is_input(call)))
            return call;
        if (call || outside) {
            struct keras_tensors given;
            int index = call ? input_index(model, call) : 0;
            spec_keras_inputs(model->node, model->before, &given);
            if (index >= given.count)
                return NULL;
            *tensor = given.tensors[index];
            model = model->outer;
        } else if (inner && output_of(inner, tensor)) {
            model = inner;
        } else {
            return NULL;
        }
    }
    return NULL;
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
              (is_input(call) || spec_read_keras_policy(&object, k->precision)) &&
              spec_read_bool(&object, "trainable", &layer->trainable);
    json_decref(json);
    return ok;
}

/* The first of all calls of the same layer. */
static const struct keras_call *find_first(const struct keras *k, const struct keras_call *call)
{
    for (int i = 0; i < k->calls_count; i++) {
        if (!k->calls[i].total && !strcmp(k->calls[i].name, call->name))
            return &k->calls[i];
    }
    return NULL;
}

/* The spec's layer for a call whose inputs are all there. */
static bool add(struct keras *k, struct keras_call *call, const struct keras_tensors *inputs)
{
    struct arena *arena = k->model->arena;
    struct spec_layer *layer = &k->layers[k->layers_count];
    struct spec_input *into = arena_array(arena, (size_t)inputs->count + 1, sizeof(*into));
    *layer = (struct spec_layer){.name = call->name,
                                 .shared = k->layers_count,
                                 .trainable = true,
                                 .inputs = into,
                                 .inputs_count = inputs->count,
                                 .pointer = call->pointer};
    for (int i = 0; i < inputs->count; i++) {
        struct keras_tensor tensor = inputs->tensors[i];
        const struct keras_call *from = find(k, call->model, &tensor);
        if (!is_output(&tensor))
            return refuse(k, call->pointer, "an input of the layer is an output that none has");
        into[i] = (struct spec_input){from->index, tensor.tensor};
    }
    if (call->total) {
        layer->shared = find_first(k, call)->index;
        layer->name = arena_printf(arena, "%s_call_%d", call->name, call->total);
        layer->config = k->layers[layer->shared].config;
        layer->trainable = k->layers[layer->shared].trainable;
    } else if (!read_class(k, call, layer)) {
        return false;
    }
    if (is_input(call) && inputs->count)
        return refuse(k, call->pointer, "an InputLayer takes its input from the data");
    if (!is_input(call) && !inputs->count && k->layers_count)
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
                     const struct keras_tensors *inputs)
{
    const struct keras_call *first = find_first(k, call);
    if (call->total && (!first || first->index < 0))
        return false;
    for (int i = 0; i < inputs->count; i++) {
        struct keras_tensor tensor = inputs->tensors[i];
        const struct keras_call *from = find(k, call->model, &tensor);
        if (!from || from->index < 0)
            return false;
    }
    return true;
}

/* --- all calls --- */

/* Whether the call's turn has been, or never comes: an input of a model inside, an operation.
 */
static bool is_done(const struct keras_call *call)
{
    return call->index >= 0 || (call->model->outer && is_input(call)) || is_op(call->layer);
}

/* A mask that a layer is called with must be one that Keras made itself. */
static bool check_masks(const struct keras *k, const struct keras_call *call)
{
    json_t *named = json_object_get(call->node, "kwargs"), *value;
    const char *field;
    json_object_foreach(named, field, value)
    {
        struct keras_tensors masks = {.count = 0};
        if (spec_keras_is_mask(field))
            spec_keras_tensors(value, &masks);
        for (int i = 0; i < masks.count; i++) {
            const struct keras_call *from = find(k, call->model, &masks.tensors[i]);
            if (from && !is_op(from->layer))
                return error_at(k->model->err, call->pointer, UNIMPLEMENTED,
                                "the layer is called with a mask of \"%s\": masks come from "
                                "Embedding and Masking here",
                                from->own);
        }
    }
    return true;
}

/* Why a call was never ready. */
static bool refuse_call(const struct keras *k, const struct keras_call *call)
{
    struct keras_tensors inputs;
    spec_keras_inputs(call->node, call->before, &inputs);
    for (int i = 0; i < inputs.count; i++) {
        const struct keras_call *from = find(k, call->model, &inputs.tensors[i]);
        if (from && is_op(from->layer))
            return error_at(k->model->err, call->pointer, UNIMPLEMENTED,
                            "the layer takes what the operation \"%s\" gives: this version has "
                            "layers alone",
                            from->own);
    }
    return refuse(k, call->pointer,
                  "an input of the layer is nowhere in the model, or goes in a circle");
}

/* Adds calls as their inputs come to be there, until all are. */
static bool add_all(struct keras *k)
{
    int64_t steps = 0;
    for (int added = 1; added;) {
        added = 0;
        for (int i = 0; i < k->calls_count; i++) {
            struct keras_call *call = &k->calls[i];
            struct keras_tensors inputs;
            if (is_done(call))
                continue;
            steps += k->calls_count; /* among which its inputs are looked for */
            if (steps > KERAS_STEPS_MAX)
                return refuse(k, call->pointer,
                              "the model has too many layers whose inputs come after them");
            spec_keras_inputs(call->node, call->before, &inputs);
            if (inputs.too_many)
                return refuse(k, call->pointer, "the layer has too many inputs");
            if (!is_ready(k, call, &inputs))
                continue;
            if (!check_masks(k, call) || !add(k, call, &inputs))
                return false;
            added++;
        }
    }
    for (int i = 0; i < k->calls_count; i++) {
        if (!is_done(&k->calls[i]))
            return refuse_call(k, &k->calls[i]);
    }
    return true;
}

/* Whether the class is one of models: Sequential or not. */
static bool is_model(const json_t *json, bool *sequential)
{
    const char *class = json_string_value(json_object_get(json, "class_name"));
    *sequential = class && !strcmp(class, "Sequential");
    return *sequential || (class && (!strcmp(class, "Functional") || !strcmp(class, "Model")));
}

/* A call of a layer, or of a model whose layers are listed later. */
static bool add_call(struct keras *k, const struct keras_model *model,
                     const struct keras_call *call)
{
    struct arena *arena = k->model->arena;
    bool sequential;
    if (!is_model(call->layer, &sequential)) {
        k->calls = alloc_grow(k->calls, k->calls_count, &k->calls_capacity, sizeof(*k->calls));
        k->calls[k->calls_count++] = *call;
        return k->calls_count < KERAS_LAYERS_MAX * KERAS_CALLS_MAX ||
               refuse(k, call->pointer, "the model has more than 64000 calls of layers");
    }
    struct keras_model *inner = arena_array(arena, 1, sizeof(*inner));
    *inner = (struct keras_model){.config = json_object_get(call->layer, "config"),
                                  .pointer = arena_printf(arena, "%s/config", call->pointer),
                                  .sequential = sequential,
                                  .prefix = arena_printf(arena, "%s.", call->name),
                                  .outer = model,
                                  .name = call->own,
                                  .number = call->number,
                                  .shift = call->total * KERAS_CALLS_MAX,
                                  .node = call->node,
                                  .before = call->before};
    k->models = alloc_grow(k->models, k->models_count, &k->models_capacity, sizeof(*k->models));
    k->models[k->models_count++] = inner;
    return k->models_count < KERAS_LAYERS_MAX ||
           refuse(k, call->pointer, "the model has more than 1000 models inside");
}

/* The calls of one layer: one for each node; layers without nodes are inputs, or never called.
 */
static bool list_layer(struct keras *k, const struct keras_model *model, const json_t *layer,
                       const char *pointer, const char *before)
{
    struct arena *arena = k->model->arena;
    const json_t *inbound = json_object_get(layer, "inbound_nodes");
    const char *name = layer_name(layer);
    size_t calls = model->sequential ? 0 : json_array_size(inbound);
    if (!name || !spec_is_name(name))
        return refuse(k, pointer, "the layer has no name of letters, digits, . _ -");
    if (calls > KERAS_CALLS_MAX)
        return refuse(k, pointer, "the layer is called more than 64 times");
    struct keras_call call = {.model = model,
                              .layer = layer,
                              .pointer = pointer,
                              .own = arena_text(arena, name),
                              .name = arena_printf(arena, "%s%s", model->prefix, name),
                              .before = before,
                              .index = -1};
    if (!spec_is_name(call.name))
        return refuse(k, pointer,
                      "with the names of the models that it is in, the name of the "
                      "layer has more than 128 letters");
    for (size_t n = 0; n < (calls ? calls : 1); n++) {
        call.node = calls ? json_array_get(inbound, n) : NULL;
        call.number = (int)n;
        call.total = model->shift + (int)n;
        if (!add_call(k, model, &call))
            return false;
    }
    return true;
}

static bool list_model(struct keras *k, const struct keras_model *model)
{
    const json_t *layers = layers_of(model);
    const char *pointer = model->pointer, *before = NULL;
    size_t count = json_array_size(layers);
    if (!json_is_array(model->config))
        pointer = arena_printf(k->model->arena, "%s/layers", pointer);
    if (!json_is_array(layers) || !count || count > KERAS_LAYERS_MAX)
        return refuse(k, pointer, "layers is no list of 1 to 1000 layers");
    if (model->sequential && model->outer)
        before = KERAS_OUTSIDE;
    for (size_t i = 0; i < count; i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *at = arena_printf(k->model->arena, "%s/%zu", pointer, i);
        if (!list_layer(k, model, layer, at, before))
            return false;
        before = model->sequential ? layer_name(layer) : NULL;
    }
    return true;
}

/* The call that gives what the whole model does. */
static bool find_output(struct keras *k, const struct keras_model *whole, int *out)
{
    struct keras_tensor tensor = {.call = 0};
    const struct keras_call *call = output_of(whole, &tensor) ? find(k, whole, &tensor) : NULL;
    if (!call || tensor.tensor != 0)
        return refuse(k, arena_printf(k->model->arena, "%s/output_layers", whole->pointer),
                      "output_layers names no layer of the model");
    *out = call->index;
    return true;
}

static bool read_all(struct keras *k, struct keras_model *whole, struct spec *spec)
{
    struct arena *arena = k->model->arena;
    if (!list_model(k, whole))
        return false;
    for (int i = 0; i < k->models_count; i++) {
        if (!list_model(k, k->models[i]))
            return false;
    }
    k->layers = arena_array(arena, (size_t)k->calls_count + 1, sizeof(*k->layers));
    if (!add_all(k) || !find_output(k, whole, &spec->output))
        return false;
    spec->layers = k->layers;
    spec->layers_count = k->layers_count;
    return true;
}

bool spec_parse_keras(const struct spec_object *model, struct spec *spec)
{
    struct spec_object object;
    if (!spec_read_object(model, "keras", &object))
        return false;
    struct keras k = {.model = &object, .precision = &spec->train.precision};
    struct keras_model whole = {.config = json_object_get(object.json, "config"),
                                .pointer = spec_read_pointer(&object, "config", -1),
                                .prefix = ""};
    bool ok = is_model(object.json, &whole.sequential)
                  ? read_all(&k, &whole, spec)
                  : refuse(&k, spec_read_pointer(&object, "class_name", -1),
                           "the model is of no class that can be read: allowed are Sequential "
                           "and Functional, as model.to_json() writes them");
    free(k.calls);
    free(k.models);
    return ok;
}
