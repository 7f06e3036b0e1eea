/* trained_describe.c - what a checkpoint's manifest tells of its model, as JSON and back. */

#include <jansson.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/spec/spec.h"
#include "runtime/train/trained.h"

#define FEATURES_MAX 10000

/* --- writing --- */

static void add_feature(const struct model_feature *feature, struct str *out)
{
    str_add(out, "{\"name\": ");
    str_add_json(out, feature->name, strlen(feature->name));
    str_printf(out, ", \"dtype\": \"%s\", \"shape\": [", dtype_name(feature->dtype));
    for (int i = 0; i < feature->shape.rank; i++)
        str_printf(out, "%s%lld", i ? ", " : "", (long long)feature->shape.dims[i]);
    str_add(out, "]}");
}

void trained_describe(const struct spec *spec, const struct model_data *data, struct str *out)
{
    str_add(out, "{\"data\": {\"features\": [");
    for (int i = 0; i < data->features_count; i++) {
        str_add(out, i ? ", " : "");
        add_feature(&data->features[i], out);
    }
    str_add(out, "], \"target\": ");
    add_feature(&data->target, out);
    str_printf(out, ", \"classes\": %lld}, \"spec\": ", (long long)data->classes);
    spec_to_json(spec, out);
    str_add_char(out, '}');
}

/* --- reading --- */

static bool read_feature(const json_t *json, struct arena *arena, struct model_feature *out,
                         struct error *err)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    const json_t *shape = json_object_get(json, "shape");
    size_t rank = json_array_size(shape);
    if (!name || !*name || !dtype || !dtype_find(dtype) || !json_is_array(shape) ||
        rank >= LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a feature needs a name, a dtype and a shape");
    *out = (struct model_feature){
        arena_text(arena, name), (int)dtype_find(dtype), {.rank = (int)rank}};
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        out->shape.dims[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || out->shape.dims[i] < -1)
            return fail(err, INVALID, "the shape of feature \"%s\" is none", name);
    }
    return true;
}

static bool read_data(const json_t *json, struct arena *arena, struct model_data *out,
                      struct error *err)
{
    const json_t *features = json_object_get(json, "features");
    size_t count = json_array_size(features);
    if (!count || count > FEATURES_MAX)
        return fail(err, INVALID, "it has %zu features, allowed: 1 to %d", count, FEATURES_MAX);
    struct model_feature *all = arena_array(arena, count, sizeof(*all));
    for (size_t i = 0; i < count; i++) {
        if (!read_feature(json_array_get(features, i), arena, &all[i], err))
            return false;
    }
    *out = (struct model_data){.features = all,
                               .features_count = (int)count,
                               .classes = json_integer_value(json_object_get(json, "classes"))};
    return read_feature(json_object_get(json, "target"), arena, &out->target, err);
}

bool trained_parse(const char *json, struct arena *arena, const struct spec **spec,
                   struct model_data *data, struct error *err)
{
    json_t *root = json_loads(json, 0, NULL);
    char *text = root ? json_dumps(json_object_get(root, "spec"), JSON_COMPACT) : NULL;
    bool ok = text || fail(err, INVALID, "there is no spec in it");
    ok = ok && read_data(json_object_get(root, "data"), arena, data, err);
    if (ok) {
        *spec = spec_parse(arena, text, strlen(text), err);
        ok = *spec != NULL;
    }
    free(text);
    json_decref(root);
    return ok || error_prefix(err, "what it says of its model cannot be read: ");
}
