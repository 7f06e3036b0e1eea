/*
 * map.c - datasets made by a function from each element of another: mapped, filtered, scanned,
 * taken as long as it likes.
 *
 * Parallel filters give their elements in the order of the input, so that they are the same.
 */

#include "kernels/data/map.h"
#include "base/alloc.h"
#include "kernels/data/workers.h"

#define CALLS_MAX 64 /* of a function at once, whatever a user asks for */

struct mapping {
    struct iterator it;
    struct tensor *args; /* state, then a row of the input */
    struct tensor *results;
};

static struct map *map_of(struct iterator *it)
{
    return (struct map *)it->dataset;
}

static bool mapping_begin(struct iterator *it, struct error *err)
{
    (void)err;
    struct mapping *mapping = (struct mapping *)it;
    const struct map *map = map_of(it);
    mapping->args = kernel_row_new(map->state_count + it->input->dataset->width);
    mapping->results = kernel_row_new(map->state_count + it->dataset->width);
    for (int i = 0; i < map->state_count; i++)
        tensor_share(&mapping->args[i], &map->state[i]);
    return true;
}

static void mapping_end(struct iterator *it)
{
    struct mapping *mapping = (struct mapping *)it;
    if (mapping->args)
        kernel_row_release(mapping->args, map_of(it)->state_count);
    free(mapping->args);
    free(mapping->results);
}

void kernel_map_release(struct dataset *dataset)
{
    struct map *map = (struct map *)dataset;
    kernel_dataset_function_release(&map->function);
    kernel_row_release(map->state, map->state_count);
    free(map->state);
}

int64_t kernel_map_cardinality(const struct dataset *dataset)
{
    return ((const struct map *)dataset)->keeps_count
               ? kernel_dataset_cardinality(dataset->inputs[0])
               : CARDINALITY_UNKNOWN;
}

bool kernel_map_end_or_error(const struct map *map, bool *end, struct error *err)
{
    if (err->code != OUT_OF_RANGE)
        return false;
    if (map->keeps_count) {
        err->code = INVALID;
        return error_prefix(err, "Function invocation produced OutOfRangeError: ");
    }
    *end = true;
    return true;
}

/* --- map --- */

static bool map_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct map *map = map_of(it);
    struct mapping *mapping = (struct mapping *)it;
    int width = it->input->dataset->width;
    if (!kernel_iterator_next(it->input, mapping->args, end, err))
        return false;
    if (*end)
        return true;
    bool ok = kernel_dataset_call(&map->function, it->pipeline, mapping->args, width, out, err);
    kernel_row_release(mapping->args, width);
    return ok || kernel_map_end_or_error(map, end, err);
}

static const struct dataset_type map_type = {
    .name = "Map",
    .dataset_size = sizeof(struct map),
    .iterator_size = sizeof(struct mapping),
    .begin = mapping_begin,
    .next = map_next,
    .end = mapping_end,
    .cardinality = kernel_map_cardinality,
    .release = kernel_map_release,
};

bool kernel_map_is(const struct dataset *dataset)
{
    return dataset->type == &map_type || dataset->type == &kernel_parallel_map_type;
}

/* The dataset on input 0 under function `name`; inputs from `first` on are captured. */
static struct map *map_make(struct kernel_call *call, const struct dataset_type *type,
                            const char *name, int first, int results, struct error *err)
{
    struct map *map = (struct map *)kernel_dataset_make(call, type, 0, 1, err);
    if (!map)
        return NULL;
    map->keeps_count = node_attr_bool(call->node, "preserve_cardinality", false);
    int captured = kernel_dataset_list(call->node, "Targuments");
    if (results < 0)
        results = map->dataset.width;
    if (kernel_dataset_function(&map->function, call, name, first, captured,
                                map->dataset.inputs[0]->width, results, err))
        return map;
    resource_unref(&map->dataset.resource);
    return NULL;
}

static bool map_output(struct kernel_call *call, struct map *map, struct error *err)
{
    return kernel_dataset_output(call, map ? &map->dataset : NULL, err);
}

static bool map_run(struct kernel_call *call, struct error *err)
{
    return map_output(call, map_make(call, &map_type, "f", 1, -1, err), err);
}

bool kernel_dataset_parallel(struct kernel_call *call, int input, struct error *err)
{
    const struct tensor *value = kernel_in(call, input);
    if (value->count != 1)
        return fail(err, INVALID, "num_parallel_calls must be a scalar");
    int64_t calls = tensor_integer(value, 0);
    return calls > 0 || calls == -1 ||
           fail(err, INVALID, "num_parallel_calls must be greater than zero.");
}

/*
 * Whether what is done in parallel may come in another order than asked for; "default" is left
 * to us, and we keep the order.
 */
static bool is_sloppy(const struct node *node)
{
    return node_attr_bool(node, "sloppy", false) ||
           strcmp(node_attr_string(node, "deterministic", "default"), "false") == 0;
}

/*
 * A map of which input `input` says how many calls may run at once.  A function with a state
 * of its own (random numbers) is called in the order of the elements, so one at a time.
 */
static struct map *parallel_map_make(struct kernel_call *call, int input, struct error *err)
{
    int64_t calls;
    if (!kernel_dataset_parallel(call, input, err) ||
        !kernel_scalar(call, input, "num_parallel_calls", &calls, err))
        return NULL;
    struct map *map = map_make(call, &map_type, "f", 1, -1, err);
    if (!map || calls == 1 || map->function.has_state)
        return map;
    map->dataset.type = &kernel_parallel_map_type;
    map->calls = calls < 0 ? kernel_workers_max() + 1 : calls < CALLS_MAX ? calls : CALLS_MAX;
    map->sloppy = is_sloppy(call->node);
    return map;
}

static bool parallel_map_run(struct kernel_call *call, struct error *err)
{
    return map_output(call, parallel_map_make(call, call->in_count - 1, err), err);
}

/* Inputs behind the captured: batch_size, num_parallel_calls, drop_remainder. */
static bool map_and_batch_run(struct kernel_call *call, struct error *err)
{
    int last = call->in_count - 1;
    int64_t size;
    if (!kernel_scalar(call, last - 2, "batch_size", &size, err) ||
        !kernel_dataset_parallel(call, last - 1, err))
        return false;
    if (size <= 0)
        return fail(err, INVALID, "batch_size must be greater than zero.");
    if (kernel_in(call, last)->count != 1)
        return fail(err, INVALID, "drop_remainder must be a scalar");
    struct signature signature;
    struct map *map = kernel_dataset_attrs(call->node, &signature, err)
                          ? parallel_map_make(call, last - 1, err)
                          : NULL;
    if (!map)
        return false;
    for (int i = 0; i < map->dataset.width; i++)
        map->dataset.shapes[i] = SHAPE_UNKNOWN;
    struct dataset *batch = kernel_batch_new(&map->dataset, &signature, size,
                                             *(const bool *)kernel_in(call, last)->data, err);
    resource_unref(&map->dataset.resource);
    return kernel_dataset_output(call, batch, err);
}

/* --- filter, take while: the elements themselves, if a predicate likes them --- */

static bool filter_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct map *map = map_of(it);
    int width = it->dataset->width;
    for (bool yes;;) {
        if (!kernel_iterator_next(it->input, out, end, err) ||
            (!*end &&
             !kernel_dataset_test(&map->function, it->pipeline, out, width, &yes, err)))
            return false;
        if (*end || yes)
            return true;
        kernel_row_release(out, width);
    }
}

static const struct dataset_type filter_type = {
    .name = "Filter",
    .dataset_size = sizeof(struct map),
    .iterator_size = sizeof(struct iterator),
    .next = filter_next,
    .release = kernel_map_release,
};

static bool filter_run(struct kernel_call *call, struct error *err)
{
    return map_output(call, map_make(call, &filter_type, "predicate", 1, 1, err), err);
}

static bool take_while_next(struct iterator *it, struct tensor *out, bool *end,
                            struct error *err)
{
    const struct map *map = map_of(it);
    int width = it->dataset->width;
    bool yes = true;
    if (!kernel_iterator_next(it->input, out, end, err) ||
        (!*end && !kernel_dataset_test(&map->function, it->pipeline, out, width, &yes, err)))
        return false;
    if (!yes)
        kernel_row_release(out, width);
    *end = *end || !yes;
    return true;
}

static const struct dataset_type take_while_type = {
    .name = "TakeWhile",
    .dataset_size = sizeof(struct map),
    .iterator_size = sizeof(struct iterator),
    .next = take_while_next,
    .release = kernel_map_release,
};

static bool take_while_run(struct kernel_call *call, struct error *err)
{
    return map_output(call, map_make(call, &take_while_type, "predicate", 1, 1, err), err);
}

/* --- scan: the function also gets, and gives, a state --- */

static bool scan_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct map *map = map_of(it);
    struct mapping *mapping = (struct mapping *)it;
    int state = map->state_count, width = it->input->dataset->width;
    if (!kernel_iterator_next(it->input, mapping->args + state, end, err))
        return false;
    if (*end)
        return true;
    bool ok = kernel_dataset_call(&map->function, it->pipeline, mapping->args, state + width,
                                  mapping->results, err);
    kernel_row_release(mapping->args + state, width);
    if (!ok)
        return kernel_map_end_or_error(map, end, err);
    kernel_row_release(mapping->args, state);
    memcpy(mapping->args, mapping->results, (size_t)state * sizeof(*out));
    memcpy(out, mapping->results + state, (size_t)it->dataset->width * sizeof(*out));
    for (int i = 0; i < state; i++)
        if (mapping->args[i].dtype != map->state[i].dtype)
            return fail(err, INVALID,
                        "Got wrong type for scan_func return value %d (expected %s, got %s).",
                        i, dtype_name(map->state[i].dtype), dtype_name(mapping->args[i].dtype));
    return true;
}

static const struct dataset_type scan_type = {
    .name = "Scan",
    .dataset_size = sizeof(struct map),
    .iterator_size = sizeof(struct mapping),
    .begin = mapping_begin,
    .next = scan_next,
    .end = mapping_end,
    .cardinality = kernel_map_cardinality,
    .release = kernel_map_release,
};

static bool scan_run(struct kernel_call *call, struct error *err)
{
    struct map *map = (struct map *)kernel_dataset_make(call, &scan_type, 0, 1, err);
    if (!map)
        return false;
    int state = kernel_dataset_list(call->node, "Tstate");
    int captured = kernel_dataset_list(call->node, "Targuments");
    map->keeps_count = node_attr_bool(call->node, "preserve_cardinality", false);
    map->state = kernel_row_new(state);
    map->state_count = state;
    for (int i = 0; i < state; i++)
        tensor_share(&map->state[i], kernel_in(call, 1 + i));
    if (kernel_dataset_deepen(&map->dataset, map->state, state, err) &&
        kernel_dataset_function(&map->function, call, "f", 1 + state, captured,
                                state + map->dataset.inputs[0]->width,
                                state + map->dataset.width, err))
        return map_output(call, map, err);
    resource_unref(&map->dataset.resource);
    return false;
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_map_dataset = DATASET("MapDataset", map_run);
const struct kernel kernel_parallel_map_dataset =
    DATASET("ParallelMapDataset", parallel_map_run);
const struct kernel kernel_parallel_map_dataset_v2 =
    DATASET("ParallelMapDatasetV2", parallel_map_run);
const struct kernel kernel_map_and_batch_dataset =
    DATASET("MapAndBatchDataset", map_and_batch_run);
const struct kernel kernel_filter_dataset = DATASET("FilterDataset", filter_run);
const struct kernel kernel_parallel_filter_dataset =
    DATASET("ParallelFilterDataset", filter_run);
const struct kernel kernel_take_while_dataset = DATASET("TakeWhileDataset", take_while_run);
const struct kernel kernel_scan_dataset = DATASET("ScanDataset", scan_run);
const struct kernel kernel_experimental_map_and_batch_dataset =
    DATASET("ExperimentalMapAndBatchDataset", map_and_batch_run);
const struct kernel kernel_experimental_map_dataset =
    DATASET("ExperimentalMapDataset", map_run);
const struct kernel kernel_experimental_scan_dataset =
    DATASET("ExperimentalScanDataset", scan_run);
const struct kernel kernel_experimental_take_while_dataset =
    DATASET("ExperimentalTakeWhileDataset", take_while_run);
