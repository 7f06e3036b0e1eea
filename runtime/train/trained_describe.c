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

static void add_shape(const struct shape *shape, struct str *out)
{
    str_add(out, "\"shape\": [");
    for (int i = 0; i < shape->rank; i++)
        str_printf(out, "%s%lld", i ? ", " : "", (long long)shape->dims[i]);
    str_add_char(out, ']');
}

/* What the model is fed with, and the column that it is made from. */
static void add_feature(const struct model_feature *feature,
                        const struct dataset_column *column, struct str *out)
{
    str_add(out, "{\"name\": ");
    str_add_json(out, feature->name, strlen(feature->name));
    str_printf(out, ", \"dtype\": \"%s\", ", dtype_name(feature->dtype));
    add_shape(&feature->shape, out);
    str_add(out, ", \"column\": {\"name\": ");
    str_add_json(out, column->name, strlen(column->name));
    str_printf(out, ", \"dtype\": \"%s\", ", dtype_name((int)column->stored));
    add_shape(&column->shape, out);
    str_printf(out, ", \"scale\": %.17g, \"classes\": %lld", column->scale,
               (long long)column->classes);
    str_add(out, column->vocabulary ? ", \"vocabulary\": [" : "}}");
    for (int64_t i = 0; column->vocabulary && i < column->classes; i++) {
        str_add(out, i ? ", " : "");
        str_add_json(out, column->vocabulary[i], strlen(column->vocabulary[i]));
    }
    str_add(out, column->vocabulary ? "]}}" : "");
}

void trained_describe(const struct spec *spec, const struct dataset *dataset, struct str *out)
{
    const struct feeds *feeds = &dataset->feeds;
    int features = feeds->data.features_count;
    str_add(out, "{\"data\": {\"features\": [");
    for (int i = 0; i < features; i++) {
        str_add(out, i ? ", " : "");
        add_feature(&feeds->data.features[i], &dataset->columns[feeds->columns[i]], out);
    }
    str_add(out, "], \"target\": ");
    add_feature(&feeds->data.target, &dataset->columns[feeds->columns[features]], out);
    if (feeds->data.weight.name) {
        str_add(out, ", \"weight\": ");
        add_feature(&feeds->data.weight, &dataset->columns[feeds->columns[features + 1]], out);
    }
    str_printf(out, ", \"classes\": %lld", (long long)feeds->data.classes);
    if (dataset->vocabulary)
        str_printf(out, ", \"vocabulary\": %s", dataset->vocabulary);
    str_add(out, "}, \"spec\": ");
    spec_to_json(spec, out);
    str_add_char(out, '}');
}

/* --- reading --- */

static bool read_shape(const json_t *json, const char *name, struct shape *out,
                       struct error *err)
{
    const json_t *shape = json_object_get(json, "shape");
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank >= LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "feature \"%s\" needs a shape", name);
    *out = (struct shape){.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        out->dims[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || out->dims[i] < -1)
            return fail(err, INVALID, "the shape of feature \"%s\" is none", name);
    }
    return true;
}

static enum dtype read_dtype(const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "dtype"));
    return name ? dtype_find(name) : DTYPE_NONE;
}

static void read_vocabulary(const json_t *json, struct arena *arena,
                            struct dataset_column *column)
{
    const json_t *list = json_object_get(json, "vocabulary"), *item;
    size_t count = json_array_size(list), i;
    if (!count || (int64_t)count != column->classes)
        return;
    const char **words = arena_array(arena, count, sizeof(*words));
    json_array_foreach(list, i, item)
    {
        words[i] = json_is_string(item) ? arena_text(arena, json_string_value(item)) : "";
    }
    column->vocabulary = words;
}

static bool read_feature(const json_t *json, struct arena *arena, struct model_feature *out,
                         struct dataset_column *column, struct error *err)
{
    const json_t *of = json_object_get(json, "column");
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *file_name = json_string_value(json_object_get(of, "name"));
    if (!name || !*name || !file_name || !read_dtype(json) || !read_dtype(of))
        return fail(err, INVALID, "a feature needs a name, a dtype and a column");
    *out =
        (struct model_feature){arena_text(arena, name), (int)read_dtype(json), SHAPE_UNKNOWN};
    *column = (struct dataset_column){
        .name = arena_text(arena, file_name),
        .stored = read_dtype(of),
        .dtype = (enum dtype)out->dtype,
        .scale = json_number_value(json_object_get(of, "scale")),
        .classes = json_integer_value(json_object_get(of, "classes")),
    };
    read_vocabulary(of, arena, column);
    return read_shape(json, name, &out->shape, err) &&
           read_shape(of, name, &column->shape, err);
}

static bool read_data(const json_t *json, struct arena *arena, struct dataset *out,
                      struct error *err)
{
    const json_t *features = json_object_get(json, "features");
    const json_t *others[] = {json_object_get(json, "target"), json_object_get(json, "weight")};
    size_t count = json_array_size(features), all = count + 1 + (others[1] != NULL);
    if (!count || count > FEATURES_MAX)
        return fail(err, INVALID, "it has %zu features, allowed: 1 to %d", count, FEATURES_MAX);
    struct model_feature *faces = arena_array(arena, all, sizeof(*faces));
    int *columns = arena_array(arena, all, sizeof(*columns));
    *out = (struct dataset){.arena = arena, .columns_count = (int)all};
    out->columns = alloc_array(all, sizeof(*out->columns)); /* as dataset_close() has it */
    for (size_t i = 0; i < all; i++) {
        const json_t *from = i < count ? json_array_get(features, i) : others[i - count];
        columns[i] = (int)i;
        if (!read_feature(from, arena, &faces[i], &out->columns[i], err))
            return false;
    }
    out->columns[count].role = DATASET_TARGET;
    if (others[1])
        out->columns[count + 1].role = DATASET_WEIGHT;
    out->feeds = (struct feeds){
        .data = {.features = faces,
                 .features_count = (int)count,
                 .target = faces[count],
                 .weight = others[1] ? faces[count + 1] : (struct model_feature){0},
                 .classes = json_integer_value(json_object_get(json, "classes"))},
        .columns = columns,
        .count = (int)all};
    char *vocabulary = json_dumps(json_object_get(json, "vocabulary"), JSON_COMPACT);
    if (vocabulary)
        out->vocabulary = arena_text(arena, vocabulary);
    free(vocabulary);
    return true;
}

bool trained_parse(const char *json, struct arena *arena, const struct spec **spec,
                   struct dataset *dataset, struct error *err)
{
    json_t *root = json_loads(json, 0, NULL);
    char *text = root ? json_dumps(json_object_get(root, "spec"), JSON_COMPACT) : NULL;
    bool ok = text || fail(err, INVALID, "there is no spec in it");
    ok = ok && read_data(json_object_get(root, "data"), arena, dataset, err);
    if (ok) {
        *spec = spec_parse_training(arena, text, strlen(text), err);
        ok = *spec != NULL;
    }
    free(text);
    json_decref(root);
    return ok || error_prefix(err, "what it says of its model cannot be read: ");
}
