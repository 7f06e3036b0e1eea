/* spec_keras_inputs.c - which tensors a layer of Keras is called with. */

#include "runtime/spec/spec_keras.h"

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

/* Depth is bounded by that of the document. */
void spec_keras_tensors(const json_t *json, struct keras_tensors *g)
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
        spec_keras_tensors(json_array_get(json, i), g);
    const char *field;
    json_t *value;
    json_object_foreach((json_t *)json, field, value) spec_keras_tensors(value, g);
}

bool spec_keras_is_mask(const char *field)
{
    static const char *const names[] = {"mask", "query_mask", "value_mask", "key_mask"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!strcmp(field, names[i]))
            return true;
    }
    return false;
}

static void repeat_input(struct keras_tensors *g, int index)
{
    struct keras_tensor tensor = g->tensors[index < g->count ? index : 0];
    if (g->count < LAYER_CALL_INPUTS_MAX)
        g->tensors[g->count++] = tensor;
}

/* Version 3: positional arguments, then those by name; what an attention may look at is the
 * fourth, after the keys, which are the values where they are not said. */
static void gather_arguments(const json_t *node, struct keras_tensors *g)
{
    json_t *named = json_object_get(node, "kwargs"), *value;
    const json_t *allowed = json_object_get(named, "attention_mask");
    const char *field;
    spec_keras_tensors(json_object_get(node, "args"), g);
    json_object_foreach(named, field, value)
    {
        if (!spec_keras_is_mask(field) && strcmp(field, "attention_mask"))
            spec_keras_tensors(value, g);
    }
    while (json_is_object(allowed) && g->count && g->count < 3)
        repeat_input(g, 1);
    spec_keras_tensors(allowed, g);
}

void spec_keras_inputs(const json_t *node, const char *before, struct keras_tensors *g)
{
    *g = (struct keras_tensors){.count = 0};
    if (json_object_get(node, "args"))
        gather_arguments(node, g);
    else if (node)
        spec_keras_tensors(node, g);
    else if (before)
        g->tensors[g->count++] = (struct keras_tensor){before, 0, 0};
}
