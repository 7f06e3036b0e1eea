/*
 * order.c - datasets that leave elements as they are: repeated, taken, skipped, one behind the
 * other, beside each other, every n-th.
 */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

/* A dataset with a number of its own. */
struct counted {
    struct dataset dataset;
    int64_t count;
    int64_t index; /* of a shard */
};

struct counter {
    struct iterator it;
    int64_t done;
    struct iterator *at; /* repeat, concatenate: the one being read */
    bool fresh;          /* `at` has given nothing yet */
};

static struct counted *counted(struct iterator *it)
{
    return (struct counted *)it->dataset;
}

/* Input 1 is the number. */
static bool counted_make(struct kernel_call *call, const struct dataset_type *type,
                         struct error *err)
{
    int64_t count;
    if (!kernel_scalar(call, 1, "count", &count, err))
        return false;
    struct counted *dataset = (struct counted *)kernel_dataset_make(call, type, 0, 1, err);
    if (!dataset)
        return false;
    dataset->count = count;
    return kernel_dataset_output(call, &dataset->dataset, err);
}

static int64_t input_cardinality(const struct dataset *dataset)
{
    return kernel_dataset_cardinality(dataset->inputs[0]);
}

/* --- repeat --- */

static void counter_end(struct iterator *it)
{
    kernel_iterator_free(((struct counter *)it)->at);
}

/* Without end, an input that is empty ends it all the same. */
static bool repeat_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct counter *counter = (struct counter *)it;
    int64_t count = counted(it)->count;
    for (;;) {
        if (count >= 0 && counter->done >= count) {
            *end = true;
            return true;
        }
        if (!counter->at) {
            counter->at = kernel_iterator_new(it->dataset->inputs[0], it->pipeline, it, err);
            counter->fresh = true;
            if (!counter->at)
                return false;
        }
        if (!kernel_iterator_next(counter->at, out, end, err))
            return false;
        if (!*end || (count < 0 && counter->fresh)) {
            counter->fresh = false;
            return true;
        }
        *end = false;
        counter->done++;
        kernel_iterator_free(counter->at);
        counter->at = NULL;
        if (!kernel_iterator_go_on(it, err))
            return false;
    }
}

static int64_t repeat_cardinality(const struct dataset *dataset)
{
    int64_t count = ((const struct counted *)dataset)->count, each = input_cardinality(dataset);
    int64_t all;
    if (count == 0 || each == 0)
        return 0;
    if (each < 0)
        return each;
    if (count < 0)
        return CARDINALITY_INFINITE;
    return __builtin_mul_overflow(count, each, &all) ? CARDINALITY_UNKNOWN : all;
}

static const struct dataset_type repeat_type = {
    .name = "Repeat",
    .dataset_size = sizeof(struct counted),
    .iterator_size = sizeof(struct counter),
    .lazy = true,
    .next = repeat_next,
    .end = counter_end,
    .cardinality = repeat_cardinality,
};

static bool repeat_run(struct kernel_call *call, struct error *err)
{
    return counted_make(call, &repeat_type, err);
}

/* --- take, skip --- */

static bool take_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct counter *counter = (struct counter *)it;
    int64_t count = counted(it)->count;
    *end = count >= 0 && counter->done >= count;
    if (*end)
        return true;
    if (!kernel_iterator_next(it->input, out, end, err))
        return false;
    counter->done++;
    return true;
}

static int64_t take_cardinality(const struct dataset *dataset)
{
    int64_t count = ((const struct counted *)dataset)->count, all = input_cardinality(dataset);
    if (all == CARDINALITY_UNKNOWN)
        return count == 0 ? 0 : all;
    if (count < 0)
        return all;
    return all == CARDINALITY_INFINITE || count < all ? count : all;
}

static const struct dataset_type take_type = {
    .name = "Take",
    .dataset_size = sizeof(struct counted),
    .iterator_size = sizeof(struct counter),
    .next = take_next,
    .cardinality = take_cardinality,
};

static bool take_run(struct kernel_call *call, struct error *err)
{
    return counted_make(call, &take_type, err);
}

static bool skip_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct counter *counter = (struct counter *)it;
    int64_t count = counted(it)->count;
    if (count < 0) {
        *end = true;
        return true;
    }
    while (counter->done < count) {
        if (!kernel_iterator_next(it->input, out, end, err))
            return false;
        if (*end)
            return true;
        kernel_row_release(out, it->dataset->width);
        counter->done++;
    }
    return kernel_iterator_next(it->input, out, end, err);
}

static int64_t skip_cardinality(const struct dataset *dataset)
{
    int64_t count = ((const struct counted *)dataset)->count, all = input_cardinality(dataset);
    if (count < 0)
        return 0;
    return all < 0 ? all : count > all ? 0 : all - count;
}

static const struct dataset_type skip_type = {
    .name = "Skip",
    .dataset_size = sizeof(struct counted),
    .iterator_size = sizeof(struct counter),
    .next = skip_next,
    .cardinality = skip_cardinality,
};

static bool skip_run(struct kernel_call *call, struct error *err)
{
    return counted_make(call, &skip_type, err);
}

/* --- shard --- */

static bool shard_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct counter *counter = (struct counter *)it;
    const struct counted *shard = counted(it);
    for (;;) {
        if (!kernel_iterator_next(it->input, out, end, err))
            return false;
        if (*end || counter->done++ % shard->count == shard->index)
            return true;
        kernel_row_release(out, it->dataset->width);
    }
}

static int64_t shard_cardinality(const struct dataset *dataset)
{
    const struct counted *shard = (const struct counted *)dataset;
    int64_t all = input_cardinality(dataset);
    return all < 0 ? all : all / shard->count + (shard->index < all % shard->count);
}

static const struct dataset_type shard_type = {
    .name = "Shard",
    .dataset_size = sizeof(struct counted),
    .iterator_size = sizeof(struct counter),
    .next = shard_next,
    .cardinality = shard_cardinality,
};

static bool shard_run(struct kernel_call *call, struct error *err)
{
    int64_t count, index;
    if (!kernel_scalar(call, 1, "num_shards", &count, err) ||
        !kernel_scalar(call, 2, "index", &index, err))
        return false;
    if (count < 1)
        return fail(err, INVALID,
                    "Number of shards must be greater than zero (currently num_shards = %lld).",
                    (long long)count);
    if (index < 0 || index >= count)
        return fail(err, INVALID, "Index must be between 0 and %lld (currently index = %lld).",
                    (long long)count - 1, (long long)index);
    struct counted *shard = (struct counted *)kernel_dataset_make(call, &shard_type, 0, 1, err);
    if (!shard)
        return false;
    shard->count = count;
    shard->index = index;
    return kernel_dataset_output(call, &shard->dataset, err);
}

/* --- one behind the other --- */

static bool concatenate_next(struct iterator *it, struct tensor *out, bool *end,
                             struct error *err)
{
    struct counter *counter = (struct counter *)it;
    for (; counter->done < it->dataset->inputs_count; counter->done++) {
        if (!counter->at)
            counter->at =
                kernel_iterator_new(it->dataset->inputs[counter->done], it->pipeline, it, err);
        if (!counter->at || !kernel_iterator_next(counter->at, out, end, err))
            return false;
        if (!*end)
            return true;
        kernel_iterator_free(counter->at);
        counter->at = NULL;
    }
    *end = true;
    return true;
}

static int64_t concatenate_cardinality(const struct dataset *dataset)
{
    int64_t a = kernel_dataset_cardinality(dataset->inputs[0]);
    int64_t b = kernel_dataset_cardinality(dataset->inputs[1]);
    if (a == CARDINALITY_INFINITE || b == CARDINALITY_INFINITE)
        return CARDINALITY_INFINITE;
    return a < 0 || b < 0 ? CARDINALITY_UNKNOWN : a + b;
}

static const struct dataset_type concatenate_type = {
    .name = "Concatenate",
    .dataset_size = sizeof(struct dataset),
    .iterator_size = sizeof(struct counter),
    .lazy = true,
    .next = concatenate_next,
    .end = counter_end,
    .cardinality = concatenate_cardinality,
};

static bool concatenate_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_make(call, &concatenate_type, 0, 2, err);
    if (!dataset)
        return false;
    const struct dataset *a = dataset->inputs[0], *b = dataset->inputs[1];
    bool same = a->width == b->width;
    for (int i = 0; same && i < a->width; i++)
        same = a->types[i] == b->types[i];
    if (same)
        return kernel_dataset_output(call, dataset, err);
    resource_unref(&dataset->resource);
    return fail(err, INVALID,
                "input dataset and dataset to concatenate have different output_types");
}

/* --- beside each other --- */

struct zip {
    struct iterator it;
    struct iterator **inputs;
    bool over; /* one of them has ended */
};

static bool zip_begin(struct iterator *it, struct error *err)
{
    struct zip *zip = (struct zip *)it;
    int count = it->dataset->inputs_count;
    zip->inputs = alloc_array((size_t)count, sizeof(struct iterator *));
    for (int i = 0; i < count; i++) {
        zip->inputs[i] = kernel_iterator_new(it->dataset->inputs[i], it->pipeline, it, err);
        if (!zip->inputs[i])
            return false;
    }
    return true;
}

/*
 * When one fails, those behind it go on all the same, so that they stay side by side; when one
 * has ended before any failed, those behind it are not asked.
 */
static bool zip_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct zip *zip = (struct zip *)it;
    struct error other;
    bool ok = true;
    int place = 0;
    for (int i = 0; i < it->dataset->inputs_count && !(ok && zip->over); i++) {
        bool ended;
        ok = kernel_iterator_next(zip->inputs[i], out + place, &ended, ok ? err : &other) && ok;
        zip->over = zip->over || ended;
        place += it->dataset->inputs[i]->width;
    }
    *end = zip->over;
    if (*end || !ok)
        kernel_row_release(out, it->dataset->width);
    return ok;
}

static void zip_end(struct iterator *it)
{
    struct zip *zip = (struct zip *)it;
    for (int i = 0; zip->inputs && i < it->dataset->inputs_count; i++)
        kernel_iterator_free(zip->inputs[i]);
    free(zip->inputs);
}

static int64_t zip_cardinality(const struct dataset *dataset)
{
    int64_t least = CARDINALITY_INFINITE;
    for (int i = 0; i < dataset->inputs_count; i++) {
        int64_t count = kernel_dataset_cardinality(dataset->inputs[i]);
        if (count == CARDINALITY_UNKNOWN)
            return count;
        if (count != CARDINALITY_INFINITE && (least == CARDINALITY_INFINITE || count < least))
            least = count;
    }
    return least;
}

static const struct dataset_type zip_type = {
    .name = "Zip",
    .dataset_size = sizeof(struct dataset),
    .iterator_size = sizeof(struct zip),
    .lazy = true,
    .begin = zip_begin,
    .next = zip_next,
    .end = zip_end,
    .cardinality = zip_cardinality,
};

static bool zip_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_make(call, &zip_type, 0, call->in_count, err);
    int width = 0;
    for (int i = 0; dataset && i < dataset->inputs_count; i++)
        width += dataset->inputs[i]->width;
    if (!dataset || width == dataset->width)
        return kernel_dataset_output(call, dataset, err);
    fail(err, INVALID, "the inputs have %d components, output_types says %d", width,
         dataset->width);
    resource_unref(&dataset->resource);
    return false;
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_repeat_dataset = DATASET("RepeatDataset", repeat_run);
const struct kernel kernel_take_dataset = DATASET("TakeDataset", take_run);
const struct kernel kernel_skip_dataset = DATASET("SkipDataset", skip_run);
const struct kernel kernel_shard_dataset = DATASET("ShardDataset", shard_run);
const struct kernel kernel_concatenate_dataset = DATASET("ConcatenateDataset", concatenate_run);
const struct kernel kernel_zip_dataset = DATASET("ZipDataset", zip_run);
