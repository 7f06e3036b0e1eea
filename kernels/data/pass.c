/*
 * pass.c - datasets whose elements are those of their input: advice about speed, and elements
 * that are counted, dropped when they fail, or given once.
 */

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "kernels/data/dataset.h"

static bool pass_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    return kernel_iterator_next(it->input, out, end, err);
}

static int64_t pass_cardinality(const struct dataset *dataset)
{
    return kernel_dataset_cardinality(dataset->inputs[0]);
}

static const struct dataset_type pass_type = {
    .name = "Pass",
    .dataset_size = sizeof(struct dataset),
    .iterator_size = sizeof(struct iterator),
    .next = pass_next,
    .cardinality = pass_cardinality,
};

static bool pass_run(struct kernel_call *call, struct error *err)
{
    return kernel_dataset_output(call, kernel_dataset_make(call, &pass_type, 0, 1, err), err);
}

/* --- a count that must hold --- */

struct asserted {
    struct dataset dataset;
    int64_t count;
};

struct counter {
    struct iterator it;
    int64_t done;
};

static bool asserted_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct counter *counter = (struct counter *)it;
    int64_t count = ((const struct asserted *)it->dataset)->count;
    if (!kernel_iterator_next(it->input, out, end, err))
        return false;
    counter->done += !*end;
    if (*end && count == CARDINALITY_INFINITE)
        return fail(err, PRECONDITION,
                    "Input dataset was expected to contain an infinite number of elements but "
                    "contained only %lld elements.",
                    (long long)counter->done);
    if (*end && counter->done != count)
        return fail(err, PRECONDITION,
                    "Input dataset was expected to contain %lld elements but contained only "
                    "%lld elements.",
                    (long long)count, (long long)counter->done);
    return (count == CARDINALITY_INFINITE || counter->done <= count) ||
           fail(err, PRECONDITION,
                "Input dataset was expected to contain %lld elements but contained at least "
                "%lld elements.",
                (long long)count, (long long)counter->done);
}

static int64_t asserted_cardinality(const struct dataset *dataset)
{
    return ((const struct asserted *)dataset)->count;
}

static const struct dataset_type asserted_type = {
    .name = "AssertCardinality",
    .dataset_size = sizeof(struct asserted),
    .iterator_size = sizeof(struct counter),
    .next = asserted_next,
    .cardinality = asserted_cardinality,
};

static bool asserted_run(struct kernel_call *call, struct error *err)
{
    int64_t count;
    if (!kernel_scalar(call, 1, "cardinality", &count, err))
        return false;
    struct asserted *asserted =
        (struct asserted *)kernel_dataset_make(call, &asserted_type, 0, 1, err);
    if (!asserted)
        return false;
    asserted->count = count;
    return kernel_dataset_output(call, &asserted->dataset, err);
}

/* --- elements that fail are left out --- */

static bool ignore_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    while (!kernel_iterator_next(it->input, out, end, err))
        if (!kernel_iterator_go_on(it, err))
            return false;
    return true;
}

static const struct dataset_type ignore_type = {
    .name = "IgnoreErrors",
    .dataset_size = sizeof(struct dataset),
    .iterator_size = sizeof(struct iterator),
    .next = ignore_next,
};

static bool ignore_run(struct kernel_call *call, struct error *err)
{
    return kernel_dataset_output(call, kernel_dataset_make(call, &ignore_type, 0, 1, err), err);
}

/* --- each value once --- */

struct unique {
    struct iterator it;
    struct map *seen; /* by the bytes of the value, as hexadecimal digits */
};

static bool unique_begin(struct iterator *it, struct error *err)
{
    (void)err;
    ((struct unique *)it)->seen = map_new();
    return true;
}

static void unique_end(struct iterator *it)
{
    struct unique *unique = (struct unique *)it;
    if (unique->seen)
        map_free(unique->seen);
}

static bool unique_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct unique *unique = (struct unique *)it;
    for (bool fresh = false; !fresh;) {
        if (!kernel_iterator_next(it->input, out, end, err))
            return false;
        if (*end)
            return true;
        const unsigned char *bytes = out->data;
        size_t size = tensor_bytes(out);
        if (out->dtype == STRING) {
            bytes = (const unsigned char *)tensor_strings(out)->data;
            size = out->count ? tensor_strings(out)->size : 0;
        }
        struct str key = {0};
        for (size_t i = 0; i < size; i++)
            str_printf(&key, "%02x", bytes[i]);
        fresh = !map_has(unique->seen, str_text(&key));
        if (fresh)
            map_set(unique->seen, str_text(&key), unique);
        else
            tensor_release(out);
        str_release(&key);
    }
    return true;
}

static const struct dataset_type unique_type = {
    .name = "Unique",
    .dataset_size = sizeof(struct dataset),
    .iterator_size = sizeof(struct unique),
    .begin = unique_begin,
    .next = unique_next,
    .end = unique_end,
};

static bool unique_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_make(call, &unique_type, 0, 1, err);
    if (!dataset)
        return false;
    const uint64_t fine = BIT(I32) | BIT(I64) | BIT(STRING);
    if (dataset->width == 1 && (BIT(dataset->types[0]) & fine) &&
        (dataset->shapes[0].rank <= 0 || dataset->types[0] != STRING))
        return kernel_dataset_output(call, dataset, err);
    resource_unref(&dataset->resource);
    return fail(err, INVALID,
                "UniqueDataset only supports inputs with a single component of "
                "type int32, int64 or string.");
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_options_dataset = DATASET("OptionsDataset", pass_run);
const struct kernel kernel_model_dataset = DATASET("ModelDataset", pass_run);
const struct kernel kernel_finalize_dataset = DATASET("FinalizeDataset", pass_run);
const struct kernel kernel_rewrite_dataset = DATASET("RewriteDataset", pass_run);
const struct kernel kernel_optimize_dataset = DATASET("OptimizeDataset", pass_run);
const struct kernel kernel_optimize_dataset_v2 = DATASET("OptimizeDatasetV2", pass_run);
const struct kernel kernel_auto_shard_dataset = DATASET("AutoShardDataset", pass_run);
const struct kernel kernel_max_intra_op_parallelism_dataset =
    DATASET("MaxIntraOpParallelismDataset", pass_run);
const struct kernel kernel_private_thread_pool_dataset =
    DATASET("PrivateThreadPoolDataset", pass_run);
const struct kernel kernel_non_serializable_dataset =
    DATASET("NonSerializableDataset", pass_run);
const struct kernel kernel_latency_stats_dataset = DATASET("LatencyStatsDataset", pass_run);
const struct kernel kernel_bytes_produced_stats_dataset =
    DATASET("BytesProducedStatsDataset", pass_run);
const struct kernel kernel_set_stats_aggregator_dataset =
    DATASET("SetStatsAggregatorDataset", pass_run);
const struct kernel kernel_assert_cardinality_dataset =
    DATASET("AssertCardinalityDataset", asserted_run);
const struct kernel kernel_ignore_errors_dataset = DATASET("IgnoreErrorsDataset", ignore_run);
const struct kernel kernel_unique_dataset = DATASET("UniqueDataset", unique_run);
const struct kernel kernel_experimental_auto_shard_dataset =
    DATASET("ExperimentalAutoShardDataset", pass_run);
const struct kernel kernel_experimental_bytes_produced_stats_dataset =
    DATASET("ExperimentalBytesProducedStatsDataset", pass_run);
const struct kernel kernel_experimental_ignore_errors_dataset =
    DATASET("ExperimentalIgnoreErrorsDataset", ignore_run);
const struct kernel kernel_experimental_latency_stats_dataset =
    DATASET("ExperimentalLatencyStatsDataset", pass_run);
const struct kernel kernel_experimental_max_intra_op_parallelism_dataset =
    DATASET("ExperimentalMaxIntraOpParallelismDataset", pass_run);
const struct kernel kernel_experimental_non_serializable_dataset =
    DATASET("ExperimentalNonSerializableDataset", pass_run);
const struct kernel kernel_experimental_private_thread_pool_dataset =
    DATASET("ExperimentalPrivateThreadPoolDataset", pass_run);
const struct kernel kernel_experimental_set_stats_aggregator_dataset =
    DATASET("ExperimentalSetStatsAggregatorDataset", pass_run);
const struct kernel kernel_experimental_unique_dataset =
    DATASET("ExperimentalUniqueDataset", unique_run);
