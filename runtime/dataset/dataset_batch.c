/* dataset_batch.c - gathers examples: found, converted, scaled, put in their rows. */

#include "runtime/dataset/dataset_batch.h"

#include "base/alloc.h"
#include "base/error.h"

static size_t scratch_bytes(const struct dataset *dataset)
{
    size_t most = 1;
    for (int i = 0; i < dataset->columns_count; i++) {
        const struct dataset_column *column = &dataset->columns[i];
        size_t bytes = (size_t)shape_count(&column->shape) * dtype_size(column->stored);
        if (bytes > most)
            most = bytes;
    }
    return most;
}

bool dataset_batch_init(struct dataset_batch *batch, const struct dataset *dataset,
                        int64_t count, struct error *err)
{
    int feeds = dataset->feeds.count;
    *batch = (struct dataset_batch){.feeds = alloc_array((size_t)feeds, sizeof(struct tensor)),
                                    .feeds_count = feeds};
    for (int i = 0; i < feeds; i++) {
        const struct model_feature *face = feeds_face(&dataset->feeds, i);
        struct shape shape = {.rank = face->shape.rank + 1, .dims = {count}};
        memcpy(shape.dims + 1, face->shape.dims,
               (size_t)face->shape.rank * sizeof(*shape.dims));
        if (!tensor_init(&batch->feeds[i], face->dtype, &shape, err))
            return false;
    }
    return true;
}

static void release_scratch(struct dataset_batch *batch)
{
    if (batch->scratch)
        batch->scratch_free(batch->scratch);
    batch->scratch = NULL;
}

/* Examples of another part want a scratch of their own. */
static void set_examples(struct dataset_batch *batch, const struct dataset *dataset,
                         const struct dataset_examples *examples)
{
    release_scratch(batch);
    batch->examples = examples;
    batch->scratch_free = examples->scratch_new ? examples->scratch_free : free;
    batch->scratch = examples->scratch_new ? examples->scratch_new(examples)
                                           : alloc_bytes(scratch_bytes(dataset));
}

void dataset_batch_release(struct dataset_batch *batch)
{
    for (int i = 0; i < batch->feeds_count; i++)
        tensor_release(&batch->feeds[i]);
    free(batch->feeds);
    release_scratch(batch);
    *batch = (struct dataset_batch){0};
}

/* --- from numbers as stored to numbers as fed --- */

#define CONVERT_LOOP(type, value)                                                              \
    {                                                                                          \
        const type *x = from;                                                                  \
        for (int64_t i = 0; i < count; i++)                                                    \
            to[i] = (value);                                                                   \
    }                                                                                          \
    return

static void to_floats(enum dtype stored, const void *from, float *to, int64_t count,
                      float scale)
{
    switch (stored) {
    case U8:
        CONVERT_LOOP(uint8_t, (float)x[i] * scale);
    case I8:
        CONVERT_LOOP(int8_t, (float)x[i] * scale);
    case U16:
        CONVERT_LOOP(uint16_t, (float)x[i] * scale);
    case I16:
        CONVERT_LOOP(int16_t, (float)x[i] * scale);
    case I32:
        CONVERT_LOOP(int32_t, (float)x[i] * scale);
    case I64:
        CONVERT_LOOP(int64_t, (float)x[i] * scale);
    case F16:
        CONVERT_LOOP(uint16_t, dtype_f16_to_f32(x[i]) * scale);
    case F32:
        CONVERT_LOOP(float, x[i] * scale);
    case F64:
        CONVERT_LOOP(double, (float)x[i] * scale);
    default:
        assert(!"a type that examples are stored in");
    }
}

static void to_integers(enum dtype stored, const void *from, int32_t *to, int64_t count)
{
    switch (stored) {
    case U8:
        CONVERT_LOOP(uint8_t, x[i]);
    case I8:
        CONVERT_LOOP(int8_t, x[i]);
    case U16:
        CONVERT_LOOP(uint16_t, x[i]);
    case I16:
        CONVERT_LOOP(int16_t, x[i]);
    default:
        assert(!"a type that examples are stored in");
    }
}

void dataset_batch_convert(const struct dataset_column *column, const void *from, void *to)
{
    int64_t count = shape_count(&column->shape);
    if (column->dtype == column->stored && !column->scale)
        memcpy(to, from, (size_t)count * dtype_size(column->stored));
    else if (column->dtype == F32)
        to_floats(column->stored, from, to, count, column->scale ? (float)column->scale : 1);
    else
        to_integers(column->stored, from, to, count);
}

bool dataset_batch_put(struct dataset_batch *batch, int64_t row, const struct dataset *dataset,
                       const struct dataset_part *part, int64_t example, int64_t position,
                       struct error *err)
{
    assert(example >= 0 && example < part->count);
    int64_t at = part->rows ? part->rows[example] : example;
    if (batch->examples != part->examples)
        set_examples(batch, dataset, part->examples);
    for (int i = 0; i < batch->feeds_count; i++) {
        int c = dataset->feeds.columns[i];
        const struct dataset_transform *transform = dataset->transforms[c];
        struct tensor *feed = &batch->feeds[i];
        const void *from = part->examples->at(part->examples, c, at, batch->scratch, err);
        if (!from)
            return false;
        size_t bytes = (size_t)shape_count(&feeds_face(&dataset->feeds, i)->shape) *
                       dtype_size(dataset->columns[c].dtype);
        void *to = (char *)feed->data + (size_t)row * bytes;
        if (transform)
            transform->run(transform, &dataset->columns[c], from, to, position);
        else
            dataset_batch_convert(&dataset->columns[c], from, to);
    }
    return true;
}

bool dataset_batch_read(struct dataset_batch *batch, const struct dataset *dataset,
                        const struct dataset_part *part, int64_t first, int64_t count,
                        struct error *err)
{
    assert(first >= 0 && first + count <= part->count);
    bool ok = dataset_batch_init(batch, dataset, count, err);
    for (int64_t i = 0; ok && i < count; i++)
        ok = dataset_batch_put(batch, i, dataset, part, first + i, -1, err);
    if (!ok)
        dataset_batch_release(batch);
    return ok;
}
