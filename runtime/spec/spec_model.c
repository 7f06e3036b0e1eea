/* spec_model.c - the model of a job spec: layers with Keras's arguments, and how they join. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "runtime/model/layer.h"
#include "runtime/spec/spec_block.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_INPUTS_MAX LAYER_CALL_INPUTS_MAX
#define SPEC_BLOCK_INPUT "input" /* inside of a block: what it takes */

struct parsing {
    const struct spec_object *model;
    struct spec_layer *layers;
    struct spec_entries entries; /* what `layers` are parsed from */
    int next_use;
};

static const struct spec_use *use_of(const struct parsing *p, int index)
{
    return index < p->entries.count ? p->entries.list[index].use : NULL;
}

/* --- names --- */

static int layer_named(const struct parsing *p, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (p->layers[i].name && !strcmp(p->layers[i].name, name))
            return i;
    }
    return -1;
}

/* As it is called inside of a block, in the whole; outside: as it is. */
static const char *name_in(const struct parsing *p, const struct spec_use *use,
                           const char *name)
{
    return use ? arena_printf(p->model->arena, "%s.%s", use->name, name) : name;
}

/* The name of one that has none, as Keras does it: dense, dense_1, ... */
static const char *name_for(const struct parsing *p, int index)
{
    const struct config_class *class = p->layers[index].config->class;
    struct arena *arena = p->model->arena;
    const char *stem = name_in(p, use_of(p, index), config_snake(arena, class->name)), *name;
    int number = 0;
    for (int before = 0; before < index; before++)
        number +=
            p->layers[before].config->class == class && use_of(p, before) == use_of(p, index);
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

/*
 * The layer before `index` that `name` means where `use` stands: a layer or a block (which
 * gives what its last layer gives) of the same block, else of those around it; -1: none.
 */
static int layer_meant(const struct parsing *p, int index, const struct spec_use *use,
                       const char *name)
{
    for (;; use = use->outer) {
        const char *whole = name_in(p, use, name);
        int layer = layer_named(p, index, whole);
        if (layer >= 0)
            return layer;
        const struct spec_use *block = spec_block_find(&p->entries, index, whole);
        if (block)
            return block->last;
        if (!use)
            return -1;
    }
}

/* "conv2d", or "lstm:1" for its second output, said where `use` stands. */
static bool input_parse(const struct spec_object *layer, const struct parsing *p, int index,
                        const struct spec_use *use, const json_t *json, const char *pointer,
                        struct spec_input *out)
{
    char found[SPEC_FOUND_BYTES], name[LIMIT_NAME_BYTES + 8];
    if (!json_is_string(json))
        return error_at(layer->err, pointer, INVALID, "an input is %s, allowed: a layer's name",
                        spec_read_found(json, found, sizeof(found)));
    snprintf(name, sizeof(name), "%s", json_string_value(json));
    if (use && !strcmp(name, SPEC_BLOCK_INPUT)) {
        *out = use->input;
        return use->has_input ||
               error_at(layer->err, pointer, INVALID,
                        "the block \"%s\" takes the data, which has no name there: put an "
                        "InputLayer before it",
                        use->name);
    }
    char *colon = strchr(name, ':');
    out->output = 0;
    if (colon && colon[1] >= '0' && colon[1] < '0' + LAYER_OUTPUTS_MAX && !colon[2]) {
        *colon = 0;
        out->output = colon[1] - '0';
    }
    out->layer = layer_meant(p, index, use, name);
    return out->layer >= 0 || refuse_unknown(layer, pointer, p, index, name);
}

/* What a layer or a block takes that does not say: false when that is the data. */
static bool input_default(const struct spec_use *use, int index, struct spec_input *out)
{
    if (use && use->first == index) {
        *out = use->input;
        return use->has_input;
    }
    *out = (struct spec_input){index - 1, 0};
    return index > 0;
}

/* Finds out what the blocks take that begin with layer `index`. */
static bool uses_begin(struct parsing *p, int index)
{
    for (; p->next_use < p->entries.uses_count; p->next_use++) {
        struct spec_use *use = p->entries.uses[p->next_use];
        struct spec_object object = {(json_t *)use->json, use->pointer, p->model->arena,
                                     p->model->err};
        json_t *json = use->number ? NULL : spec_read_value(&object, "inputs");
        if (use->first != index)
            return true;
        if (json_is_array(json) && json_array_size(json) == 1)
            json = json_array_get(json, 0);
        use->has_input =
            json || input_default(use->number ? NULL : use->outer, index, &use->input);
        if (json && !input_parse(&object, p, index, use->outer, json,
                                 spec_read_pointer(&object, "inputs", -1), &use->input))
            return false;
    }
    return true;
}

/* What it says, else the layer before it. */
static bool inputs_parse(const struct spec_object *object, const struct parsing *p, int index)
{
    struct spec_layer *layer = &p->layers[index];
    const struct spec_use *use = use_of(p, index);
    struct spec_input before;
    json_t *json = spec_read_value(object, "inputs");
    bool is_input = config_is(layer->config, "InputLayer");
    bool has_input = !is_input && input_default(use, index, &before);
    size_t count = json_is_array(json) ? json_array_size(json) : json || has_input;
    if (json && is_input)
        return error_at(object->err, spec_read_pointer(object, "inputs", -1), INVALID,
                        "an InputLayer takes its input from the data");
    if (count > SPEC_INPUTS_MAX || (json && !count))
        return error_at(object->err, spec_read_pointer(object, "inputs", -1), INVALID,
                        "inputs is a list of %zu, allowed: 1 to %d", count, SPEC_INPUTS_MAX);
    struct spec_input *inputs = arena_array(object->arena, count + 1, sizeof(*inputs));
    if (!json && count)
        inputs[0] = before;
    for (size_t i = 0; json && i < count; i++) {
        bool list = json_is_array(json);
        if (!input_parse(object, p, index, use, list ? json_array_get(json, i) : json,
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
    int of = layer_meant(p, index, use_of(p, index), name);
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

static bool layer_parse(struct parsing *p, int index)
{
    const struct spec_object *model = p->model;
    const struct spec_entry *entry = &p->entries.list[index];
    struct spec_object object = {entry->json, entry->pointer, model->arena, model->err};
    char found[SPEC_FOUND_BYTES];
    if (!uses_begin(p, index))
        return false;
    if (!json_is_object(entry->json))
        return error_at(model->err, object.pointer, INVALID,
                        "layer %d is %s, allowed: an object", index,
                        spec_read_found(entry->json, found, sizeof(found)));
    struct spec_layer *layer = &p->layers[index];
    *layer = (struct spec_layer){.shared = index, .trainable = true, .pointer = object.pointer};
    bool reuse = spec_read_value(&object, "reuse");
    const char *name = NULL;
    if (!(reuse ? reuse_parse(&object, p, index) : class_parse(&object, layer)) ||
        !spec_read_name(&object, "name", &name))
        return false;
    if (name)
        name = name_in(p, entry->use, name);
    if (name && !spec_is_name(name))
        return error_at(model->err, spec_read_pointer(&object, "name", -1), INVALID,
                        "in the whole it would be named \"%.200s\", allowed: at most %d bytes",
                        name, LIMIT_NAME_BYTES);
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
    int count = p->entries.count;
    spec->output = name ? layer_meant(p, count, NULL, name) : count - 1;
    return spec->output >= 0 ||
           refuse_unknown(p->model, spec_read_pointer(p->model, "output", -1), p, count, name);
}

static bool layers_parse(struct parsing *p, struct spec *spec)
{
    if (!spec_block_expand(p->model, &p->entries))
        return false;
    p->layers = arena_array(p->model->arena, (size_t)p->entries.count, sizeof(*p->layers));
    for (int i = 0; i < p->entries.count; i++) {
        if (!layer_parse(p, i))
            return false;
    }
    spec->layers = p->layers;
    spec->layers_count = p->entries.count;
    return output_parse(p, spec);
}

bool spec_parse_model(const struct spec_object *model, struct spec *spec)
{
    static const char *const allowed[] = {"layers", "blocks", "output", "keras", "graph", NULL};
    static const char *const kinds[] = {"layers", "keras", "graph"};
    const char *kind = NULL;
    if (!spec_read_only(model, allowed))
        return false;
    for (int i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!spec_read_value(model, kinds[i]))
            continue;
        if (kind)
            return error_at(model->err, spec_read_pointer(model, kinds[i], -1), INVALID,
                            "the model has \"%s\" and \"%s\", allowed: one of the two", kind,
                            kinds[i]);
        kind = kinds[i];
    }
    if (kind && !strcmp(kind, "graph"))
        return spec_parse_graph(model, spec);
    if (kind && !strcmp(kind, "keras"))
        return spec_parse_keras(model, spec);
    if (!spec_read_required(model, "layers", "a list of layers"))
        return false;
    struct parsing p = {.model = model};
    bool ok = layers_parse(&p, spec);
    spec_block_release(&p.entries);
    return ok;
}
