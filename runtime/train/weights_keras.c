/*
 * weights_keras.c - what Keras's HDF5 files say about where weights belong.
 *
 * Version 3: "layers/bidirectional/forward_layer/cell/vars/0", where the group "vars" of a
 * layer has its name as an attribute.  Models inside of the model:
 * "layers/functional/layers/dense". Version 2: the root, or "model_weights", has an attribute
 * "layer_names"; a group for each layer has "weight_names", which are paths below it.
 */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/train/weights_internal.h"

/* --- version 3 --- */

/* The text of a scalar attribute; NULL when there is none. */
static const char *attribute_text(struct weights *weights, const char *path, const char *name)
{
    const struct hdf5_item *item = hdf5_attribute(&weights->h5, path, name);
    if (!item || item->value.dtype != STRING || item->value.count != 1)
        return NULL;
    const struct tensor_string *text = tensor_strings(&item->value);
    return arena_text_n(weights->arena, text->data, text->size);
}

/* The length of "layers/NAME" at the start of `path`, and of a slash behind it; else 0. */
static size_t level(const char *path)
{
    static const char *const lists[] = {"layers/", "_layer_checkpoint_dependencies/"};
    for (int i = 0; i < ARRAY_LEN(lists); i++) {
        size_t size = strlen(lists[i]);
        if (!strncmp(path, lists[i], size)) {
            size += strcspn(path + size, "/");
            return size + (path[size] == '/');
        }
    }
    return 0;
}

static void add_variable(struct weights *weights, const struct hdf5_item *item,
                         const char *path, int index)
{
    struct arena *arena = weights->arena;
    const char *layer = "";
    size_t at = 0, size;
    while ((size = level(path + at))) {
        at += size;
        size_t end = at - (path[at - 1] == '/');
        const char *vars = arena_printf(arena, "%.*s/vars", (int)end, path);
        const char *name = attribute_text(weights, vars, "name");
        layer = name && layer ? arena_printf(arena, "%s%s%s", layer, *layer ? "." : "", name)
                              : NULL;
    }
    if (!at)
        return; /* the optimizer's, or the model's own */
    struct weights_entry *entry = weights_add(weights, item->path, &item->value);
    entry->layer = layer;
    entry->place = arena_text_n(arena, path, at - (path[at - 1] == '/'));
    entry->inner = path + at;
    entry->index = index;
}

/* Keras 2.13 has "_layer_checkpoint_dependencies" where 3 has "layers". */
static const char *as_version_3(struct arena *arena, const char *path)
{
    static const char old[] = "_layer_checkpoint_dependencies/";
    return strncmp(path, old, strlen(old))
               ? path
               : arena_printf(arena, "layers/%s", path + strlen(old));
}

static void list_version_3(struct weights *weights)
{
    for (int i = 0; i < weights->h5.items_count; i++) {
        const struct hdf5_item *item = &weights->h5.items[i];
        const char *last = strrchr(item->path, '/');
        if (item->attribute || item->group || !item->value.dtype || !last ||
            last - item->path < 5 || strncmp(last - 5, "/vars", 5))
            continue;
        char *end;
        long index = strtol(last + 1, &end, 10);
        if (*end || end == last + 1 || index < 0 || index > 1000000)
            continue;
        const char *path =
            arena_text_n(weights->arena, item->path, (size_t)(last - 5 - item->path));
        add_variable(weights, item, path, (int)index);
    }
    for (int i = 0; i < weights->count; i++)
        weights->entries[i].place = as_version_3(weights->arena, weights->entries[i].place);
}

/* --- version 2 --- */

/* List `name`, or in parts NAME0, NAME1, ...; calls `each` for every text of it. */
static bool each_text(struct weights *weights, const char *path, const char *name,
                      bool (*each)(struct weights *weights, const char *path, const char *text,
                                   int index, struct error *err),
                      struct error *err)
{
    int index = 0;
    for (int part = -1;; part++) {
        const char *full = part < 0 ? name : arena_printf(weights->arena, "%s%d", name, part);
        const struct hdf5_item *item = hdf5_attribute(&weights->h5, path, full);
        if (!item && part >= 0)
            return true;
        if (item && item->value.dtype != STRING && item->value.count)
            return fail(err, INVALID, "%s: \"%s\" of \"%s\" is no list of names",
                        weights->h5.name, full, path);
        for (int64_t i = 0; item && i < item->value.count && item->value.dtype == STRING; i++) {
            const struct tensor_string *text = &tensor_strings(&item->value)[i];
            if (!each(weights, path, arena_text_n(weights->arena, text->data, text->size),
                      index++, err))
                return false;
        }
    }
}

static bool add_weight(struct weights *weights, const char *path, const char *text, int index,
                       struct error *err)
{
    const char *shown = arena_printf(weights->arena, "%s/%s", path, text);
    const struct hdf5_item *item = hdf5_find(&weights->h5, shown);
    if (!item || !item->value.dtype)
        return fail(err, INVALID, "%s: \"%s\" is named and not there, or no array",
                    weights->h5.name, shown);
    const char *slash = strrchr(path, '/');
    struct weights_entry *entry = weights_add(weights, shown, &item->value);
    entry->layer = slash ? slash + 1 : path;
    entry->index = index;
    return true;
}

static bool add_layer(struct weights *weights, const char *path, const char *text, int index,
                      struct error *err)
{
    int before = weights->count;
    int number = before ? weights->entries[before - 1].number + 1 : 0;
    (void)index;
    const char *group = *path ? arena_printf(weights->arena, "%s/%s", path, text) : text;
    if (!each_text(weights, group, "weight_names", add_weight, err))
        return false;
    for (int i = before; i < weights->count; i++) {
        weights->entries[i].layer = text;
        weights->entries[i].number = number;
    }
    return true;
}

bool weights_list_keras(struct weights *weights, struct error *err)
{
    static const char *const roots[] = {"", "model_weights"};
    for (int i = 0; i < ARRAY_LEN(roots); i++) {
        if (hdf5_attribute(&weights->h5, roots[i], "layer_names") ||
            hdf5_attribute(&weights->h5, roots[i], "layer_names0"))
            return each_text(weights, roots[i], "layer_names", add_layer, err);
    }
    list_version_3(weights);
    return weights->count ||
           fail(err, INVALID,
                "%s has no weights as Keras writes them (\"layers/.../vars/0\", or "
                "\"layer_names\")",
                weights->h5.name);
}
