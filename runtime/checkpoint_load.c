/* checkpoint_load.c - reads the newest checkpoint that is whole. */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/checkpoint_internal.h"
#include "runtime/io/bundle.h"

static bool item_read(struct bundle_reader *reader, const struct bundle_item *item,
                      int64_t bytes_max, struct tensor *tensor, struct error *err)
{
    int64_t bytes = dtype_known(item->dtype) && (BIT(item->dtype) & DTYPES_PLAIN)
                        ? shape_count(&item->shape) * (int64_t)dtype_size(item->dtype)
                        : 0;
    if (bytes <= bytes_max)
        return bundle_reader_read(reader, item->name, tensor, err);
    *tensor = (struct tensor){
        .dtype = item->dtype, .shape = item->shape, .count = shape_count(&item->shape)};
    return true;
}

static bool items_read(const char *prefix, int64_t bytes_max, struct checkpoint *checkpoint,
                       struct error *err)
{
    struct bundle_reader *reader = bundle_reader_open(prefix, err);
    if (!reader)
        return false;
    const struct bundle_item *items;
    int count;
    bool ok = bundle_reader_list(reader, &items, &count, err);
    if (ok) {
        checkpoint->items = alloc_array((size_t)count, sizeof(*checkpoint->items));
        for (int i = 0; ok && i < count; i++) {
            struct checkpoint_item *item = &checkpoint->items[i];
            ok = item_read(reader, &items[i], bytes_max, &item->tensor, err);
            if (ok) {
                item->name = alloc_text(items[i].name);
                checkpoint->items_count++;
            }
        }
    }
    bundle_reader_close(reader);
    return ok;
}

/* Loads one; on failure what was read is released and the list of skipped ones stays. */
static bool prefix_load(const char *prefix, int64_t bytes_max, struct checkpoint *checkpoint,
                        struct error *err)
{
    struct checkpoint_manifest manifest;
    struct checkpoint loaded = {.prefix = alloc_text(prefix)};
    bool ok = checkpoint_manifest_read(loaded.prefix, &manifest, err);
    if (ok) {
        loaded.step = manifest.step;
        loaded.epoch = manifest.epoch;
        loaded.score = manifest.score;
        loaded.graph = alloc_text(manifest.graph);
        loaded.model = manifest.model ? alloc_text(manifest.model) : NULL;
        ok = checkpoint_manifest_check(loaded.prefix, &manifest, err) &&
             items_read(loaded.prefix, bytes_max, &loaded, err);
        checkpoint_manifest_release(&manifest);
    }
    if (!ok) {
        checkpoint_release(&loaded);
        return false;
    }
    loaded.skipped = checkpoint->skipped;
    loaded.skipped_count = checkpoint->skipped_count;
    *checkpoint = loaded;
    return true;
}

static void skip(struct checkpoint *checkpoint, int *capacity, char *prefix, const char *why)
{
    checkpoint->skipped = alloc_grow(checkpoint->skipped, checkpoint->skipped_count, capacity,
                                     sizeof(*checkpoint->skipped));
    checkpoint->skipped[checkpoint->skipped_count++] =
        (struct checkpoint_skipped){prefix, alloc_text(why)};
}

char *checkpoint_model(const char *prefix)
{
    struct checkpoint_manifest manifest;
    struct error ignored; /* a checkpoint of TensorFlow has no manifest */
    if (!checkpoint_manifest_read(prefix, &manifest, &ignored))
        return NULL;
    char *model = manifest.model;
    manifest.model = NULL;
    checkpoint_manifest_release(&manifest);
    return model;
}

bool checkpoint_load_prefix(const char *prefix, struct checkpoint *checkpoint,
                            struct error *err)
{
    struct checkpoint found = {0};
    if (!prefix_load(prefix, INT64_MAX, &found, err))
        return false;
    *checkpoint = found;
    return true;
}

static bool newest_load(const char *folder, int64_t bytes_max, struct checkpoint *checkpoint,
                        struct error *err)
{
    struct checkpoint found = {0};
    struct checkpoint_state state;
    if (!checkpoint_state_read(folder, &state, err))
        return false;
    if (!state.steps_count)
        checkpoint_state_search(folder, &state);

    int capacity = 0;
    bool ok = false;
    for (int i = state.steps_count - 1; !ok && i >= 0; i--) {
        char *prefix = checkpoint_prefix(folder, state.steps[i]);
        ok = prefix_load(prefix, bytes_max, &found, err);
        if (!ok)
            skip(&found, &capacity, alloc_text(prefix), err->text);
        free(prefix);
    }
    if (!state.steps_count) {
        fail(err, NOT_FOUND, "there is no checkpoint in %s", folder);
    } else if (!ok) {
        fail(err, DATA_LOSS, "none of the %d checkpoints in %s is whole; the newest: %s",
             state.steps_count, folder, found.skipped[0].why);
    }
    checkpoint_state_release(&state);
    if (ok)
        *checkpoint = found;
    else
        checkpoint_release(&found);
    return ok;
}

bool checkpoint_load(const char *folder, struct checkpoint *checkpoint, struct error *err)
{
    return newest_load(folder, INT64_MAX, checkpoint, err);
}

bool checkpoint_look(const char *folder, struct checkpoint *checkpoint, struct error *err)
{
    return newest_load(folder, CHECKPOINT_LOOK_BYTES, checkpoint, err);
}
