/* walk.c - ops that walk a dataset to its end within one run: reduce, the only element, how
 * many. */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

/* --- reduce --- */

/* state = f(state, element), for each element. */
static bool reduce_all(struct iterator *it, const struct dataset_function *function,
                       struct tensor *args, int state, struct error *err)
{
    int width = it->dataset->width;
    struct tensor *results = kernel_row_new(state);
    bool ok = true, end = false;
    while (ok) {
        ok = kernel_iterator_next(it, args + state, &end, err);
        if (!ok || end)
            break;
        ok = kernel_dataset_call(function, it->pipeline, args, state + width, results, err);
        kernel_row_release(args + state, width);
        for (int i = 0; ok && i < state; i++)
            if (results[i].dtype != args[i].dtype)
                ok = fail(err, INVALID,
                          "the function of ReduceDataset returned %s for state %d, not %s",
                          dtype_name(results[i].dtype), i, dtype_name(args[i].dtype));
        if (ok) {
            kernel_row_release(args, state);
            memcpy(args, results, (size_t)state * sizeof(*args));
            memset(results, 0, (size_t)state * sizeof(*args));
        }
    }
    kernel_row_release(results, state);
    free(results);
    return ok;
}

static bool reduce_run(struct kernel_call *call, struct error *err)
{
    int state = kernel_dataset_list(call->node, "Tstate");
    int captured = kernel_dataset_list(call->node, "Targuments");
    struct dataset *dataset = kernel_dataset_in(call, 0, err);
    if (!dataset)
        return false;
    if (state != call->node->outputs_count)
        return fail(err, INVALID, "Tstate and output_types differ");
    struct dataset_function function = {0};
    struct pipeline pipeline;
    kernel_pipeline_init(&pipeline, kernel_cancel(call));
    struct tensor *args = kernel_row_new(state + dataset->width);
    struct iterator *it = NULL;
    for (int i = 0; i < state; i++)
        tensor_share(&args[i], kernel_in(call, 1 + i));
    bool ok = kernel_dataset_function(&function, call, "f", 1 + state, captured,
                                      state + dataset->width, state, err) &&
              (it = kernel_iterator_new(dataset, &pipeline, NULL, err)) &&
              reduce_all(it, &function, args, state, err);
    for (int i = 0; ok && i < state; i++)
        ok = (int)args[i].dtype == call->node->output_types[i] ||
             fail(err, INVALID, "Tstate and output_types differ");
    for (int i = 0; ok && i < state; i++)
        kernel_output_take(call, i, &args[i]);
    kernel_iterator_free(it);
    kernel_pipeline_release(&pipeline);
    kernel_row_release(args, state + dataset->width);
    free(args);
    kernel_dataset_function_release(&function);
    return ok;
}

/* --- the only element --- */

static bool single_run(struct kernel_call *call, struct error *err)
{
    struct signature signature;
    struct dataset *dataset = kernel_dataset_in(call, 0, err);
    if (!dataset || !kernel_dataset_attrs(call->node, &signature, err) ||
        !kernel_dataset_suits(dataset, &signature, err))
        return false;
    struct pipeline pipeline;
    kernel_pipeline_init(&pipeline, kernel_cancel(call));
    struct iterator *it = kernel_iterator_new(dataset, &pipeline, NULL, err);
    struct tensor *row = kernel_row_new(dataset->width);
    struct tensor *more = kernel_row_new(dataset->width);
    bool end = false;
    bool ok = it && kernel_iterator_next(it, row, &end, err);
    if (ok && end)
        ok = fail(err, INVALID, "Dataset was empty.");
    ok = ok && kernel_iterator_next(it, more, &end, err);
    if (ok && !end)
        ok = fail(err, INVALID, "Dataset had more than one element.");
    for (int i = 0; ok && i < dataset->width; i++)
        kernel_output_take(call, i, &row[i]);
    kernel_row_release(row, dataset->width);
    kernel_row_release(more, dataset->width);
    free(row);
    free(more);
    kernel_iterator_free(it);
    kernel_pipeline_release(&pipeline);
    return ok;
}

static bool cardinality_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_in(call, 0, err);
    struct tensor *out = dataset ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return false;
    *(int64_t *)out->data = kernel_dataset_cardinality(dataset);
    return true;
}

/* A dataset in a variant, and that again: here they are the same. */
static bool wrap_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_in(call, 0, err);
    return dataset && kernel_output_resource(call, 0, &dataset->resource, NULL, NULL, err);
}

const struct kernel kernel_reduce_dataset = {
    .op = "ReduceDataset", .device = CPU, .run = reduce_run};
const struct kernel kernel_dataset_to_single_element = {
    .op = "DatasetToSingleElement", .device = CPU, .run = single_run};
const struct kernel kernel_dataset_cardinality_op = {
    .op = "DatasetCardinality", .device = CPU, .run = cardinality_run};
const struct kernel kernel_experimental_dataset_cardinality_op = {
    .op = "ExperimentalDatasetCardinality", .device = CPU, .run = cardinality_run};
const struct kernel kernel_wrap_dataset_variant = {
    .op = "WrapDatasetVariant", .device = CPU, .run = wrap_run};
const struct kernel kernel_unwrap_dataset_variant = {
    .op = "UnwrapDatasetVariant", .device = CPU, .run = wrap_run};
