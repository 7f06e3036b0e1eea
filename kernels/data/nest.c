/*
 * nest.c - datasets made from datasets that a function makes from each element: one behind the
 * other, or several by turns; and choosing by turns among datasets that are there.
 */

#include <unistd.h>

#include "base/alloc.h"
#include "kernels/data/dataset.h"

#define CYCLE_MAX 65536 /* iterators open at once */

struct nest {
    struct dataset dataset;
    struct dataset_function function;
    int64_t cycle; /* how many are open */
    int64_t block; /* elements of one before the next */
    bool parallel; /* each of them is made ahead by a thread of its own */
    bool flat;     /* one behind the other */
};

struct nested {
    struct iterator it;
    struct tensor *row;
    struct iterator **open; /* cycle of them, NULL: free */
    int64_t opened;
    int64_t cycle; /* whose turn it is */
    int64_t block; /* how many it gave */
    bool over;     /* the input has ended */
};

static struct nest *nest_of(struct iterator *it)
{
    return (struct nest *)it->dataset;
}

static bool nested_begin(struct iterator *it, struct error *err)
{
    (void)err;
    struct nested *nested = (struct nested *)it;
    nested->row = kernel_row_new(it->input->dataset->width);
    nested->open = alloc_array((size_t)nest_of(it)->cycle, sizeof(struct iterator *));
    return true;
}

static void nested_end(struct iterator *it)
{
    struct nested *nested = (struct nested *)it;
    for (int64_t i = 0; nested->open && i < nest_of(it)->cycle; i++)
        kernel_iterator_free(nested->open[i]);
    free(nested->open);
    free(nested->row);
}

/* An iterator of what the function makes of the row. */
static struct iterator *open_row(struct nested *nested, struct error *err)
{
    struct iterator *it = &nested->it;
    struct tensor made = {0};
    if (!kernel_dataset_call(&nest_of(it)->function, it->pipeline, nested->row,
                             it->input->dataset->width, &made, err))
        return NULL;
    struct dataset *dataset = kernel_dataset_of(&made, err), *ahead = NULL;
    struct iterator *inner = NULL;
    if (dataset && dataset->width != it->dataset->width)
        fail(err, INVALID, "the function's dataset has %d components, not %d", dataset->width,
             it->dataset->width);
    else if (dataset && nest_of(it)->parallel)
        dataset = ahead = kernel_prefetch_new(dataset, err);
    if (dataset && dataset->width == it->dataset->width)
        inner = kernel_iterator_new(dataset, it->pipeline, it, err);
    if (ahead)
        resource_unref(&ahead->resource);
    tensor_release(&made);
    return inner;
}

static void turn(struct nested *nested)
{
    nested->block = 0;
    nested->cycle = (nested->cycle + 1) % nest_of(&nested->it)->cycle;
}

/*
 * Puts the next of the input in the place whose turn it is.  An input that fails at its end has
 * ended, but not for a flat map: who asks that again gets the error again.
 */
static bool refill(struct nested *nested, bool *end, struct error *err)
{
    if (nested->over) {
        turn(nested);
        return true;
    }
    struct iterator *input = nested->it.input;
    if (!kernel_iterator_next(input, nested->row, &nested->over, err)) {
        *end = nest_of(&nested->it)->flat && nested->over;
        nested->over = nested->over && !nest_of(&nested->it)->flat;
        return false;
    }
    if (nested->over)
        return true;
    nested->open[nested->cycle] = open_row(nested, err);
    kernel_row_release(nested->row, input->dataset->width);
    nested->opened += nested->open[nested->cycle] != NULL;
    return nested->open[nested->cycle] != NULL;
}

static bool nested_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct nested *nested = (struct nested *)it;
    while (!nested->over || nested->opened > 0) {
        struct iterator **at = &nested->open[nested->cycle];
        if (!kernel_iterator_go_on(it, err))
            return false;
        if (!*at) {
            if (!refill(nested, end, err))
                return false;
            continue;
        }
        bool ended;
        if (!kernel_iterator_next(*at, out, &ended, err))
            return false;
        if (!ended) {
            if (++nested->block == nest_of(it)->block)
                turn(nested);
            return true;
        }
        kernel_iterator_free(*at);
        *at = NULL;
        nested->opened--;
        turn(nested);
    }
    *end = true;
    return true;
}

static void nest_release(struct dataset *dataset)
{
    kernel_dataset_function_release(&((struct nest *)dataset)->function);
}

static const struct dataset_type nest_type = {
    .name = "Interleave",
    .dataset_size = sizeof(struct nest),
    .iterator_size = sizeof(struct nested),
    .begin = nested_begin,
    .next = nested_next,
    .end = nested_end,
    .release = nest_release,
};

static bool nest_make(struct kernel_call *call, int64_t cycle, int64_t block, bool parallel,
                      struct error *err)
{
    if (cycle == -1)
        cycle = sysconf(_SC_NPROCESSORS_ONLN);
    if (cycle <= 0)
        return fail(err, INVALID, "cycle_length must be greater than zero.");
    if (cycle > CYCLE_MAX)
        return fail(err, EXHAUSTED, "cycle_length is %lld, at most %d", (long long)cycle,
                    CYCLE_MAX);
    if (block <= 0)
        return fail(err, INVALID, "block_length must be greater than zero.");
    struct nest *nest = (struct nest *)kernel_dataset_make(call, &nest_type, 0, 1, err);
    if (!nest)
        return false;
    nest->cycle = cycle;
    nest->block = block;
    nest->parallel = parallel && cycle > 1;
    nest->flat = cycle == 1 && block == INT64_MAX;
    if (kernel_dataset_function(&nest->function, call, "f", 1,
                                kernel_dataset_list(call->node, "Targuments"),
                                nest->dataset.inputs[0]->width, 1, err))
        return kernel_dataset_output(call, &nest->dataset, err);
    resource_unref(&nest->dataset.resource);
    return false;
}

/* One is open, and gives all it has. */
static bool flat_map_run(struct kernel_call *call, struct error *err)
{
    return nest_make(call, 1, INT64_MAX, false, err);
}

/* cycle_length and block_length lie behind the captured inputs; the rest is about speed. */
static bool interleave(struct kernel_call *call, bool parallel, struct error *err)
{
    int first = 1 + kernel_dataset_list(call->node, "Targuments");
    int64_t cycle, block;
    return kernel_scalar(call, first, "cycle_length", &cycle, err) &&
           kernel_scalar(call, first + 1, "block_length", &block, err) &&
           nest_make(call, cycle, block, parallel, err);
}

static bool interleave_run(struct kernel_call *call, struct error *err)
{
    return interleave(call, false, err);
}

/* Always one thread for each that is open, as far as there are threads. */
static bool threaded_interleave_run(struct kernel_call *call, struct error *err)
{
    return interleave(call, true, err);
}

static bool parallel_interleave_run(struct kernel_call *call, struct error *err)
{
    int first = 1 + kernel_dataset_list(call->node, "Targuments"), last = call->in_count - 1;
    int64_t cycle, calls;
    if (!kernel_dataset_parallel(call, last, err) ||
        !kernel_scalar(call, first, "cycle_length", &cycle, err) ||
        !kernel_scalar(call, last, "num_parallel_calls", &calls, err))
        return false;
    if (cycle > 0 && calls > cycle)
        return fail(err, INVALID,
                    "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be "
                    "-1 or at most `cycle_length`; it is %lld, with a `cycle_length` of %lld.",
                    (long long)calls, (long long)cycle);
    return interleave(call, calls != 1, err);
}

/* --- by turns that a dataset of numbers says --- */

struct choices {
    struct iterator it;
    struct iterator **inputs; /* NULL: ended */
};

struct choice {
    struct dataset dataset;
    bool stop; /* when one of them is empty */
};

static bool choices_begin(struct iterator *it, struct error *err)
{
    struct choices *choices = (struct choices *)it;
    int count = it->dataset->inputs_count;
    choices->inputs = alloc_array((size_t)count, sizeof(struct iterator *));
    for (int i = 0; i < count; i++) {
        choices->inputs[i] = kernel_iterator_new(it->dataset->inputs[i], it->pipeline, it, err);
        if (!choices->inputs[i])
            return false;
    }
    return true;
}

static void choices_end(struct iterator *it)
{
    struct choices *choices = (struct choices *)it;
    for (int i = 0; choices->inputs && i < it->dataset->inputs_count; i++)
        kernel_iterator_free(choices->inputs[i]);
    free(choices->inputs);
}

/* Input 0 says which of the others is next; those that have ended are left out. */
static bool choices_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct choices *choices = (struct choices *)it;
    int count = it->dataset->inputs_count;
    int open = 0;
    for (int i = 1; i < count; i++)
        open += choices->inputs[i] != NULL;
    while (open > 0) {
        struct tensor number;
        if (!kernel_iterator_next(choices->inputs[0], &number, end, err))
            return false;
        if (*end)
            return true;
        int64_t which = number.count == 1 ? tensor_integer(&number, 0) : -1;
        tensor_release(&number);
        if (which < 0 || which >= count - 1)
            return fail(err, INVALID, "Selector index out of range: %lld >= %d",
                        (long long)which, count - 1);
        struct iterator **at = &choices->inputs[which + 1];
        if (!*at)
            continue;
        bool ended; /* of an input that fails at its end the others know nothing */
        if (!kernel_iterator_next(*at, out, &ended, err))
            return false;
        *end = ended && ((const struct choice *)it->dataset)->stop;
        if (!ended || *end)
            return true;
        kernel_iterator_free(*at);
        *at = NULL;
        open--;
    }
    *end = true;
    return true;
}

static const struct dataset_type choice_type = {
    .name = "DirectedInterleave",
    .dataset_size = sizeof(struct choice),
    .iterator_size = sizeof(struct choices),
    .lazy = true,
    .begin = choices_begin,
    .next = choices_next,
    .end = choices_end,
};

static bool choice_run(struct kernel_call *call, struct error *err)
{
    struct choice *choice =
        (struct choice *)kernel_dataset_make(call, &choice_type, 0, call->in_count, err);
    if (!choice)
        return false;
    struct dataset *dataset = &choice->dataset;
    bool ok = (dataset->inputs[0]->width == 1 && dataset->inputs[0]->types[0] == I64) ||
              fail(err, INVALID, "The selector dataset must be of one component of int64");
    for (int i = 1; ok && i < dataset->inputs_count; i++)
        ok = dataset->inputs[i]->width == dataset->width ||
             fail(err, INVALID, "All inputs must have the same components");
    choice->stop = node_attr_bool(call->node, "stop_on_empty_dataset", false);
    if (ok)
        return kernel_dataset_output(call, dataset, err);
    resource_unref(&dataset->resource);
    return false;
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_flat_map_dataset = DATASET("FlatMapDataset", flat_map_run);
const struct kernel kernel_interleave_dataset = DATASET("InterleaveDataset", interleave_run);
const struct kernel kernel_parallel_interleave_dataset =
    DATASET("ParallelInterleaveDataset", threaded_interleave_run);
const struct kernel kernel_legacy_parallel_interleave_dataset_v2 =
    DATASET("LegacyParallelInterleaveDatasetV2", threaded_interleave_run);
const struct kernel kernel_parallel_interleave_dataset_v2 =
    DATASET("ParallelInterleaveDatasetV2", parallel_interleave_run);
const struct kernel kernel_parallel_interleave_dataset_v3 =
    DATASET("ParallelInterleaveDatasetV3", parallel_interleave_run);
const struct kernel kernel_parallel_interleave_dataset_v4 =
    DATASET("ParallelInterleaveDatasetV4", parallel_interleave_run);
const struct kernel kernel_directed_interleave_dataset =
    DATASET("DirectedInterleaveDataset", choice_run);
const struct kernel kernel_experimental_directed_interleave_dataset =
    DATASET("ExperimentalDirectedInterleaveDataset", choice_run);
const struct kernel kernel_experimental_parallel_interleave_dataset =
    DATASET("ExperimentalParallelInterleaveDataset", threaded_interleave_run);
