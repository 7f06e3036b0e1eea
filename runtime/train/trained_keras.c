/* trained_keras.c - a .keras file as a trained model: its configuration as a spec, its weights
 * as the variables. */

#include <jansson.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"
#include "runtime/train/trained_internal.h"
#include "runtime/train/weights.h"

#define INPUTS_MAX 1000
#define TOLD_MAX 5 /* weights that an error names */

bool trained_is_keras(const char *path)
{
    static const char ending[] = ".keras";
    size_t size = strlen(path), end = sizeof(ending) - 1;
    return size > end && !strcmp(path + size - end, ending);
}

/* --- the configuration --- */

static json_t *read_config(const char *path, struct error *err)
{
    struct archive *archive = archive_open(path, err);
    if (!archive)
        return NULL;
    struct str text = {0};
    int index = archive_find(archive, "config.json");
    json_t *json = NULL;
    bool ok = index >= 0 ? archive_read(archive, index, LIMIT_HTTP_BODY_BYTES, &text, err)
                         : fail(err, INVALID, "there is no config.json in it");
    if (ok) {
        json_error_t why;
        json = json_loadb(str_text(&text), text.size, 0, &why);
        if (!json)
            fail(err, INVALID, "its config.json: line %d: %s", why.line, why.text);
    }
    str_release(&text);
    archive_close(archive);
    return json;
}

/*
 * How the model was trained is of no use here, but a spec says it: with a loss that any output
 * can have.
 */
static const struct spec *make_spec(struct arena *arena, const json_t *config,
                                    struct error *err)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(config, "config"), "name"));
    json_t *json = json_pack("{s:s, s:{s:O}, s:{s:s, s:i}, s:{s:s, s:i}}", "name",
                             name && spec_is_name(name) ? name : "keras", "model", "keras",
                             config, "data", "dataset", "none", "batch_size", 1, "train",
                             "loss", "MeanSquaredError", "steps", 1);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    const struct spec *spec = text ? spec_parse_training(arena, text, strlen(text), err)
                                   : fail_null(err, INVALID, "its configuration is no text");
    free(text);
    json_decref(json);
    return spec;
}

/* --- what it takes --- */

static bool read_input(const json_t *layer, struct arena *arena, struct model_feature *out,
                       struct error *err)
{
    const json_t *config = json_object_get(layer, "config");
    const char *name = json_string_value(json_object_get(config, "name"));
    const char *dtype = json_string_value(json_object_get(config, "dtype"));
    const json_t *shape = json_object_get(config, "batch_shape");
    size_t rank = json_array_size(shape);
    if (!name || !rank || rank > LIMIT_TENSOR_RANK || (dtype && !dtype_find(dtype)))
        return fail(err, INVALID, "input layer \"%s\" needs a batch_shape and a dtype",
                    name ? name : "?");
    *out = (struct model_feature){arena_text(arena, name),
                                  dtype ? (int)dtype_find(dtype) : (int)F32,
                                  {.rank = (int)rank - 1}};
    for (size_t i = 1; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        out->shape.dims[i - 1] = json_is_null(dim) ? -1 : json_integer_value(dim);
    }
    return true;
}

/* The place of an input among the model's; layers may stand in another order. */
static int input_place(const json_t *config, const char *name, int otherwise)
{
    const json_t *inputs = json_object_get(json_object_get(config, "config"), "input_layers");
    const json_t *input;
    size_t i;
    json_array_foreach(inputs, i, input)
    {
        const char *own = json_string_value(json_array_get(input, 0));
        if (own && !strcmp(own, name) && i < INPUTS_MAX)
            return (int)i;
    }
    return otherwise;
}

static void sort_inputs(const json_t *config, struct model_feature *features, int count)
{
    for (int i = 1; i < count; i++) {
        const struct model_feature feature = features[i];
        int place = input_place(config, feature.name, i), at = i;
        for (; at > 0 && input_place(config, features[at - 1].name, at - 1) > place; at--)
            features[at] = features[at - 1];
        features[at] = feature;
    }
}

static bool read_inputs(const json_t *config, struct trained *trained, struct error *err)
{
    const json_t *layers = json_object_get(json_object_get(config, "config"), "layers"), *layer;
    struct model_feature *features =
        arena_array(trained->arena, INPUTS_MAX + 1, sizeof(*features));
    int count = 0;
    size_t i;
    json_array_foreach(layers, i, layer)
    {
        const char *class = json_string_value(json_object_get(layer, "class_name"));
        if (!class || strcmp(class, "InputLayer") != 0)
            continue;
        if (count == INPUTS_MAX)
            return fail(err, EXHAUSTED, "it has more than %d inputs", INPUTS_MAX);
        if (!read_input(layer, trained->arena, &features[count++], err))
            return false;
    }
    if (!count)
        return fail(err, INVALID, "it does not tell the shape of its inputs");
    sort_inputs(config, features, count);
    struct dataset *dataset = &trained->dataset;
    int *columns = arena_array(trained->arena, (size_t)count + 1, sizeof(*columns));
    dataset->columns = alloc_array((size_t)count + 1, sizeof(*dataset->columns));
    dataset->columns_count = count + 1;
    features[count] = (struct model_feature){"target", F32, SHAPE(1)};
    for (int k = 0; k <= count; k++) {
        columns[k] = k;
        dataset->columns[k] = (struct dataset_column){.name = features[k].name,
                                                      .stored = (enum dtype)features[k].dtype,
                                                      .dtype = (enum dtype)features[k].dtype,
                                                      .shape = features[k].shape};
    }
    dataset->feeds = (struct feeds){
        .data = {.features = features, .features_count = count, .target = features[count]},
        .columns = columns,
        .count = count + 1};
    return true;
}

/* --- its weights --- */

static bool set_all(struct trained *trained, const struct weights_match *matches, int count,
                    const bool *needed, struct error *err)
{
    struct str bad = {0};
    int missing = 0;
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        int index = (int)(matches[i].place->variable - trained->model.variables);
        if (!needed[index])
            continue;
        struct tensor value;
        if (matches[i].fits) {
            ok = weights_value(&matches[i], &value, err);
            if (ok) {
                ok = trained_set(trained, index, &value, err);
                tensor_release(&value);
            }
        } else if (missing++ < TOLD_MAX) {
            str_add(&bad, bad.size ? "; " : "");
            weights_tell(&matches[i], &bad);
        }
    }
    if (ok && missing)
        ok = fail(err, DATA_LOSS, "%d of its weights do not fit its layers: %s", missing,
                  str_text(&bad));
    str_release(&bad);
    return ok;
}

static bool set_weights(struct trained *trained, const char *path, struct error *err)
{
    int count;
    struct weights *weights = weights_open(path, err);
    if (!weights)
        return false;
    const struct weights_place *places =
        weights_places(trained->spec, trained->model.variables, trained->model.variables_count,
                       trained->arena, &count);
    bool *needed = trained_needed(&trained->model);
    bool ok = set_all(trained, weights_match(weights, places, count, trained->arena), count,
                      needed, err);
    free(needed);
    weights_close(weights);
    return ok;
}

bool trained_open_keras(struct trained *trained, const char *path,
                        const struct session_options *options, struct error *err)
{
    json_t *config = read_config(path, err);
    trained->prefix = arena_text(trained->arena, path);
    trained->is_keras = true;
    trained->dataset.arena = trained->arena;
    trained->spec = config ? make_spec(trained->arena, config, err) : NULL;
    bool ok = trained->spec && read_inputs(config, trained, err) &&
              trained_build(trained, options, err) && set_weights(trained, path, err);
    json_decref(config);
    return ok;
}
