/* keras_write.c - the files of keras.h: weights where Keras looks for them. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/io/file.h"
#include "runtime/io/hdf5.h"
#include "runtime/spec/config.h"
#include "runtime/spec/spec.h"
#include "runtime/train/keras.h"
#include "runtime/train/trained.h"
#include "runtime/train/weights.h"

/* A day that is always the same, so that the same model gives the same bytes. */
#define KERAS_METADATA "{\"keras_version\": \"3.0.0\", \"date_saved\": \"1980-01-01@00:00:00\"}"

struct items {
    struct hdf5_item *list;
    int count, capacity;
    struct arena *arena;
    struct error *err;
};

static struct hdf5_item *add(struct items *items, const char *path)
{
    items->list = alloc_grow(items->list, items->count, &items->capacity, sizeof(*items->list));
    struct hdf5_item *item = &items->list[items->count++];
    *item = (struct hdf5_item){.path = arena_text(items->arena, path)};
    return item;
}

/* The group that Keras has for every layer, with its name. */
static bool add_group(struct items *items, const char *place, const char *name)
{
    const char *path = arena_printf(items->arena, "%s%svars", place, *place ? "/" : "");
    add(items, path)->group = true;
    struct hdf5_item *item = add(items, path);
    item->attribute = arena_text(items->arena, "name");
    return tensor_init_string(&item->value, name, strlen(name), items->err);
}

/* Beside mean and variance Keras wants how many examples they are of, and does not use it. */
static bool add_count(struct items *items, const struct spec *spec, const char **places)
{
    const int32_t none = 0;
    for (int i = 0; i < spec->layers_count; i++) {
        const struct spec_layer *layer = &spec->layers[i];
        if (layer->shared != i || !places[i] || !config_is(layer->config, "Normalization") ||
            !config_is_null(layer->config, "mean"))
            continue;
        const char *path = arena_printf(items->arena, "%s/vars/2", places[i]);
        if (!tensor_init_copy(&add(items, path)->value, I32, &SHAPE_SCALAR, &none, items->err))
            return false;
    }
    return true;
}

/* Names with dots are of models inside of the model, which are flat here. */
static bool add_weights(struct items *items, const struct trained *trained, const char **places)
{
    int count;
    const struct weights_place *all =
        weights_places(trained->spec, trained->model.variables, trained->model.variables_count,
                       items->arena, &count);
    for (int i = 0; i < count; i++) {
        const struct weights_place *of = &all[i];
        ptrdiff_t index = of->variable - trained->model.variables;
        const char *place = NULL;
        for (int n = 0; n < trained->spec->layers_count && !place; n++) {
            if (!strcmp(trained->spec->layers[n].name, of->layer))
                place = places[n];
        }
        if (!place)
            continue; /* the output does not depend on the layer */
        if (!trained->values[index].dtype)
            return fail(items->err, INVALID, "variable \"%s\" has no value",
                        of->variable->name);
        const char *path = arena_printf(items->arena, "%s/%s%svars/%d", place, of->inner,
                                        *of->inner ? "/" : "", of->index);
        tensor_share(&add(items, path)->value, &trained->values[index]);
    }
    return true;
}

/* Models are flat in what is written: a layer "outer.inner" has a place as any other. */
static const char **flat_places(const struct spec *spec, struct arena *arena)
{
    struct spec flat = *spec;
    struct spec_layer *layers = arena_array(arena, (size_t)spec->layers_count, sizeof(*layers));
    for (int i = 0; i < spec->layers_count; i++) {
        layers[i] = spec->layers[i];
        layers[i].name = "";
    }
    flat.layers = layers;
    return weights_layer_places(&flat, arena);
}

static bool add_weights_file(const struct trained *trained, struct arena *arena,
                             struct str *out, struct error *err)
{
    struct items items = {.arena = arena, .err = err};
    const struct spec *spec = trained->spec;
    const char **places = flat_places(spec, arena);
    bool ok = add_group(&items, "", spec->name);
    for (int i = 0; ok && i < spec->layers_count; i++) {
        if (spec->layers[i].shared == i && places[i])
            ok = add_group(&items, places[i], spec->layers[i].name);
    }
    ok = ok && add_weights(&items, trained, places) && add_count(&items, spec, places) &&
         hdf5_write(items.list, items.count, out, err);
    for (int i = 0; i < items.count; i++)
        tensor_release(&items.list[i].value);
    free(items.list);
    return ok;
}

bool keras_write_weights(const struct trained *trained, const char *path, struct error *err)
{
    struct arena *arena = arena_new();
    struct str bytes = {0};
    bool ok = add_weights_file(trained, arena, &bytes, err) &&
              file_write(path, bytes.data, bytes.size, err);
    str_release(&bytes);
    arena_free(arena);
    return ok;
}

bool keras_write_model(const struct trained *trained, const char *path, struct error *err)
{
    struct arena *arena = arena_new();
    struct str weights = {0}, config = {0};
    keras_add_config(trained, arena, &config);
    bool ok = add_weights_file(trained, arena, &weights, err);
    const struct archive_entry entries[] = {
        {"metadata.json", KERAS_METADATA, strlen(KERAS_METADATA), false},
        {"config.json", config.data, config.size, false},
        {"model.weights.h5", weights.data, weights.size, false}};
    ok = ok && archive_write(path, entries, ARRAY_LEN(entries), err);
    str_release(&weights);
    str_release(&config);
    arena_free(arena);
    return ok;
}
