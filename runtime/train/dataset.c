/* dataset.c - finds out what a folder holds and reads it. */

#include "runtime/train/dataset.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/io/idx.h"
#include "runtime/train/dataset_internal.h"
#include "runtime/train/shuffle.h"

#define DATASET_HOLD_OUT_EPOCH (-1) /* of the shuffle: an epoch that no training has */

static bool set_part(const struct tensor *images, const struct tensor *labels,
                     const char *folder, struct dataset *dataset, struct dataset_part *part,
                     struct error *err)
{
    if (!images->count)
        return fail(err, INVALID, "%s holds no examples", folder);
    if (images->shape.dims[0] > INT32_MAX)
        return fail(err, INVALID, "%s holds %lld examples, allowed: at most %d", folder,
                    (long long)images->shape.dims[0], INT32_MAX);
    struct shape shape = SHAPE(images->shape.dims[1], images->shape.dims[2], 1);
    if (images->shape.rank == 4)
        shape.dims[2] = images->shape.dims[3];
    if (!dataset->shape.rank)
        dataset->shape = shape;
    if (!shape_equal(&shape, &dataset->shape)) {
        char train[SHAPE_TEXT_BYTES], test[SHAPE_TEXT_BYTES];
        return fail(err, INVALID, "%s: images to train on are %s, those to test on %s", folder,
                    shape_text(&dataset->shape, train, sizeof(train)),
                    shape_text(&shape, test, sizeof(test)));
    }
    *part = (struct dataset_part){images->data, labels->data, images->shape.dims[0]};
    for (int64_t i = 0; i < part->count; i++) {
        if (part->labels[i] >= dataset->classes)
            dataset->classes = part->labels[i] + 1;
    }
    return true;
}

/* Images and labels to train on, then to test on. */
static bool read_files(const char *folder, struct tensor owned[4], struct error *err)
{
    if (dataset_is_cifar(folder))
        return dataset_read_cifar(folder, owned, err);
    return idx_read_set(folder, "train", &owned[0], &owned[1], err) &&
           idx_read_set(folder, "t10k", &owned[2], &owned[3], err);
}

bool dataset_open(const char *folder, struct dataset *dataset, struct error *err)
{
    *dataset = (struct dataset){0};
    struct stat info;
    if (stat(folder, &info))
        return error_errno(err, NOT_FOUND, "there is no folder %s", folder);
    if (!S_ISDIR(info.st_mode))
        return fail(err, INVALID, "%s is no folder", folder);
    struct tensor *owned = dataset->owned;
    bool ok = read_files(folder, owned, err) &&
              set_part(&owned[0], &owned[1], folder, dataset, &dataset->train, err) &&
              set_part(&owned[2], &owned[3], folder, dataset, &dataset->test, err);
    if (!ok)
        dataset_close(dataset);
    return ok;
}

/* Marks `count` of the training part's examples, drawn by the seed. */
static bool *draw(int64_t examples, int64_t count, int64_t seed)
{
    int32_t *order = alloc_array((size_t)examples, sizeof(*order));
    bool *drawn = alloc_array((size_t)examples, sizeof(*drawn));
    shuffle_order(seed, DATASET_HOLD_OUT_EPOCH, -1, order, examples);
    for (int64_t i = 0; i < count; i++)
        drawn[order[i]] = true;
    free(order);
    return drawn;
}

bool dataset_hold_out(struct dataset *dataset, int64_t count, int64_t seed, struct error *err)
{
    int64_t examples = dataset->train.count, image = shape_count(&dataset->shape);
    assert(count >= 0 && !dataset->validation.count);
    if (count >= examples)
        return error_at(err, "/data/validation", INVALID,
                        "%lld examples held out of %lld leave none to train on",
                        (long long)count, (long long)examples);
    struct tensor *images = &dataset->owned[4], *labels = &dataset->owned[5];
    struct shape all = {.rank = 4, .dims = {count}};
    memcpy(all.dims + 1, dataset->shape.dims, 3 * sizeof(*all.dims));
    if (!count)
        return true;
    if (!tensor_init(images, U8, &all, err) || !tensor_init(labels, U8, &SHAPE(count), err))
        return false;
    bool *drawn = draw(examples, count, seed);
    uint8_t *bytes[2] = {dataset->owned[0].data, images->data};
    uint8_t *classes[2] = {dataset->owned[1].data, labels->data};
    for (int64_t i = 0; i < examples; i++) {
        bool out = drawn[i];
        memmove(bytes[out], dataset->train.images + i * image, (size_t)image);
        *classes[out] = dataset->train.labels[i];
        bytes[out] += image;
        classes[out]++;
    }
    free(drawn);
    dataset->train.count = examples - count;
    dataset->validation = (struct dataset_part){images->data, labels->data, count};
    return true;
}

void dataset_close(struct dataset *dataset)
{
    for (int i = 0; i < ARRAY_LEN(dataset->owned); i++)
        tensor_release(&dataset->owned[i]);
    *dataset = (struct dataset){0};
}
