/*
 * weights_place.c - where Keras keeps the variables of a model.
 *
 * It lists a model's layers by depth, those farthest from the output first, and among equals in
 * the order in which a walk from the output comes upon them; in a file each is called after its
 * class and its number among those of the class.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/model/layer.h"
#include "runtime/spec/spec.h"
#include "runtime/train/weights.h"

/* --- the order of layers --- */

struct ordering {
    const struct spec *spec;
    int *found; /* by layer: when the walk came upon it; -1: never */
    int *depth; /* by call of a layer: how far from the output */
    int *after; /* calls, each after those that it takes from */
    int after_count;
};

/* A walk from the output to the inputs; the stack is ours, as models may be deep. */
static void walk(struct ordering *o, struct arena *arena)
{
    const struct spec *spec = o->spec;
    int *stack = arena_array(arena, (size_t)spec->layers_count, sizeof(*stack));
    int *next = arena_array(arena, (size_t)spec->layers_count, sizeof(*next));
    bool *seen = arena_array(arena, (size_t)spec->layers_count, sizeof(*seen));
    int size = 0, found = 0;
    stack[size++] = spec->output;
    seen[spec->output] = true;
    o->found[spec->layers[spec->output].shared] = found++;
    while (size) {
        int call = stack[size - 1];
        const struct spec_layer *layer = &spec->layers[call];
        if (next[call] == layer->inputs_count) {
            o->after[o->after_count++] = call;
            size--;
            continue;
        }
        int from = layer->inputs[next[call]++].layer;
        if (seen[from])
            continue;
        seen[from] = true;
        if (o->found[spec->layers[from].shared] < 0)
            o->found[spec->layers[from].shared] = found++;
        stack[size++] = from;
    }
}

/* The depth of a layer is that of its deepest call, which all its later calls take over. */
static void measure(struct ordering *o, int *layer_depth)
{
    for (int i = o->after_count - 1; i >= 0; i--) {
        int call = o->after[i], layer = o->spec->layers[call].shared;
        if (o->depth[call] < layer_depth[layer])
            o->depth[call] = layer_depth[layer];
        layer_depth[layer] = o->depth[call];
        for (int n = 0; n < o->spec->layers[call].inputs_count; n++) {
            int from = o->spec->layers[call].inputs[n].layer;
            if (o->depth[from] < o->depth[call] + 1)
                o->depth[from] = o->depth[call] + 1;
        }
    }
}

/* Whether layer `a` comes before `b`. */
static bool is_before(const struct ordering *o, const int *depth, int a, int b)
{
    return depth[a] != depth[b] ? depth[a] > depth[b] : o->found[a] < o->found[b];
}

/* "layers/dense_1": the class in snake case, numbered. */
static const char *name_place(const struct spec *spec, struct arena *arena, const int *order,
                              int at)
{
    const char *class = spec->layers[order[at]].config->class->name;
    int before = 0;
    for (int i = 0; i < at; i++)
        before += !strcmp(spec->layers[order[i]].config->class->name, class);
    const char *snake = config_snake(arena, class);
    return before ? arena_printf(arena, "layers/%s_%d", snake, before)
                  : arena_printf(arena, "layers/%s", snake);
}

const char **weights_layer_places(const struct spec *spec, struct arena *arena)
{
    size_t count = (size_t)spec->layers_count;
    struct ordering o = {.spec = spec,
                         .found = arena_array(arena, count, sizeof(int)),
                         .depth = arena_array(arena, count, sizeof(int)),
                         .after = arena_array(arena, count, sizeof(int))};
    int *depth = arena_array(arena, count, sizeof(*depth));
    int *order = arena_array(arena, count, sizeof(*order)), size = 0;
    const char **places = arena_array(arena, count, sizeof(*places));
    for (size_t i = 0; i < count; i++)
        o.found[i] = -1;
    walk(&o, arena);
    measure(&o, depth);
    for (int i = 0; i < (int)count; i++) {
        /* What is of a model inside of the model has its place there. */
        if (o.found[i] < 0 || strchr(spec->layers[i].name, '.'))
            continue;
        int at = size++;
        for (; at > 0 && is_before(&o, depth, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < size; i++)
        places[order[i]] = name_place(spec, arena, order, i);
    return places;
}

/* --- inside of a layer --- */

/* The layer inside of a wrapper that our name `part` stands for, and Keras's name of it. */
static const char *inner_name(struct arena *arena, const char *part,
                              const struct config **config)
{
    const struct config *outer = *config;
    if (config_is(outer, "Bidirectional")) {
        bool backward = !strcmp(part, "backward");
        bool own = backward && config_object(outer, "backward_layer");
        *config = config_object(outer, own ? "backward_layer" : "layer");
        return backward ? "backward_layer" : "forward_layer";
    }
    if (config_is(outer, "TimeDistributed")) {
        *config = config_object(outer, "layer");
        return "layer";
    }
    const char *under = config_is(outer, "GroupedQueryAttention") ? "_" : "";
    const char *what = !strcmp(part, "attention_output") ? "output" : part;
    return arena_printf(arena, "%s%s_dense", under, what);
}

/* From what follows the layer's name, "forward/kernel", to "forward_layer/cell". */
static const char *inner_path(struct arena *arena, const char *rest,
                              const struct config *config)
{
    const char *path = "", *slash;
    while ((slash = strchr(rest, '/'))) {
        const char *part = arena_text_n(arena, rest, (size_t)(slash - rest));
        const char *name = inner_name(arena, part, &config);
        path = arena_printf(arena, "%s%s%s", path, *path ? "/" : "", name);
        rest = slash + 1;
    }
    bool recurrent =
        config_is(config, "LSTM") || config_is(config, "GRU") || config_is(config, "SimpleRNN");
    return recurrent ? arena_printf(arena, "%s%scell", path, *path ? "/" : "") : path;
}

/* --- variables --- */

/* The layer that a variable is of; -1 for the step, and for what is kept for another one. */
static int layer_index_of(const struct spec *spec, const struct model_variable *variables,
                          int index)
{
    const char *name = variables[index].name;
    size_t size = strcspn(name, "/");
    for (int i = 0; i < index; i++) {
        size_t other = strlen(variables[i].name);
        if (!strncmp(name, variables[i].name, other) && name[other] == '/')
            return -1;
    }
    for (int i = 0; name[size] && i < spec->layers_count; i++) {
        if (!strncmp(spec->layers[i].name, name, size) && !spec->layers[i].name[size])
            return i;
    }
    return -1;
}

/* "outer" of "outer.inner": the layer of the whole model. */
static bool same_outer(const char *a, const char *b)
{
    size_t size = strcspn(a, ".");
    return size == strcspn(b, ".") && !strncmp(a, b, size);
}

/* The numbers that follow from the other places. */
static void number_places(struct weights_place *places, int count)
{
    int number = -1;
    for (int i = 0; i < count; i++) {
        struct weights_place *place = &places[i];
        bool first = true;
        for (int n = 0; n < count; n++) {
            const struct weights_place *other = &places[n];
            if (!same_outer(place->layer, other->layer))
                continue;
            first &= n >= i;
            bool sooner = other->variable->trainable != place->variable->trainable
                              ? other->variable->trainable
                              : n < i;
            place->layer_index += sooner;
            place->index += n < i && !strcmp(place->layer, other->layer) &&
                            !strcmp(place->inner, other->inner);
        }
        number += first;
        place->number = number;
    }
}

/* Whether the variable is kept for another one: "dense/kernel/Adam", also in a scope of its own
 * ("training/dense/kernel/Adam"). */
static bool is_slot(const struct model_variable *variables, int count, int index)
{
    const char *name = variables[index].name;
    for (int i = 0; i < count; i++) {
        const char *other = variables[i].name, *at = i == index ? NULL : strstr(name, other);
        for (; at; at = strstr(at + 1, other)) {
            if (at[strlen(other)] == '/' && (at == name || at[-1] == '/'))
                return true;
        }
    }
    return false;
}

/* What a graph of another program learns, and averages like those of batch normalization; its
 * step, and what its optimizer keeps, start as its own op sets them. */
static struct weights_place *places_of_graph(const struct model_variable *variables, int count,
                                             struct arena *arena, int *places_count)
{
    struct weights_place *places = arena_array(arena, (size_t)count + 1, sizeof(*places));
    *places_count = 0;
    for (int i = 0; i < count; i++) {
        bool averages = BIT(variables[i].dtype) & DTYPES_FLOAT && variables[i].shape.rank > 0;
        if (variables[i].trainable || (averages && !is_slot(variables, count, i)))
            places[(*places_count)++] = (struct weights_place){.variable = &variables[i]};
    }
    return places;
}

struct weights_place *weights_places(const struct spec *spec,
                                     const struct model_variable *variables, int count,
                                     struct arena *arena, int *places_count)
{
    if (spec->graph.meta_graph)
        return places_of_graph(variables, count, arena, places_count);
    struct weights_place *places = arena_array(arena, (size_t)count + 1, sizeof(*places));
    const char **layers = weights_layer_places(spec, arena);
    *places_count = 0;
    for (int i = 0; i < count; i++) {
        int index = layer_index_of(spec, variables, i);
        if (index < 0)
            continue;
        const struct spec_layer *layer = &spec->layers[index];
        places[(*places_count)++] = (struct weights_place){
            .variable = &variables[i],
            .layer = layer->name,
            .place = layers[index],
            .inner = inner_path(arena, strchr(variables[i].name, '/') + 1, layer->config)};
    }
    number_places(places, *places_count);
    return places;
}
