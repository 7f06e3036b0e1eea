/* transform.c - augmentation as the transform of a dataset's images. */

#include "runtime/dataset/transform.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/augment.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/dataset/format.h"
#include "runtime/spec/spec.h"

struct transform {
    struct dataset_transform transform; /* first */
    struct augment *augment;
};

static void run(const struct dataset_transform *transform, const struct dataset_column *column,
                const void *from, void *to, int64_t position)
{
    float *image = alloc_array((size_t)shape_count(&column->shape), sizeof(*image));
    dataset_batch_convert(column, from, image);
    augment_run(((const struct transform *)transform)->augment, position, image, to);
    free(image);
}

static void transform_free(struct dataset_transform *transform)
{
    augment_free(((struct transform *)transform)->augment);
    free(transform);
}

bool transform_augment(struct dataset_opening *opening, struct error *err)
{
    const struct spec_data *data = opening->data;
    struct dataset *dataset = opening->dataset;
    bool found = false;
    for (int i = 0; i < dataset->feeds.data.features_count && data->augment_count; i++) {
        int c = dataset->feeds.columns[i];
        const struct dataset_column *column = &dataset->columns[c];
        if (column->shape.rank != 3 || column->dtype != F32)
            continue;
        struct augment *augment =
            augment_new(data->augment, data->augment_count, &column->shape, opening->seed, err);
        if (!augment)
            return false;
        struct transform *transform = alloc_bytes(sizeof(*transform));
        *transform = (struct transform){
            .transform = {*augment_shape(augment), run, transform_free}, .augment = augment};
        dataset->transforms[c] = &transform->transform;
        found = true;
    }
    return found || !data->augment_count ||
           error_at(err, "/data/augment", INVALID,
                    "the data has no images (height, width, channels) to augment");
}
