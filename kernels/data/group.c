/*
 * group.c - elements sorted by a key that a function gives them: windows of equal keys become
 * datasets, or all of one key are reduced to a value.
 */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

struct group {
    int64_t key;
    int64_t size;         /* of a window */
    struct rows rows;     /* waiting for their window to be full */
    struct tensor *state; /* of a reducer */
};

/* Sorted by key. */
struct groups {
    struct group *groups;
    int count;
    int capacity;
};

static void groups_release(struct groups *groups, int state)
{
    for (int i = 0; i < groups->count; i++) {
        kernel_rows_release(&groups->groups[i].rows);
        kernel_row_release(groups->groups[i].state, state);
        free(groups->groups[i].state);
    }
    free(groups->groups);
}

/* Where the key is, or belongs. */
static int groups_find(const struct groups *groups, int64_t key)
{
    int low = 0, high = groups->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (groups->groups[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct group *groups_add(struct groups *groups, int at, int64_t key)
{
    groups->groups =
        alloc_grow(groups->groups, groups->count, &groups->capacity, sizeof(struct group));
    memmove(groups->groups + at + 1, groups->groups + at,
            (size_t)(groups->count - at) * sizeof(struct group));
    groups->count++;
    groups->groups[at] = (struct group){.key = key};
    return &groups->groups[at];
}

/* A function's one result, a scalar of int64. */
static bool call_int(const struct dataset_function *function, struct pipeline *pipeline,
                     const struct tensor *args, int count, int64_t *value, struct error *err)
{
    struct tensor result = {0};
    if (!kernel_dataset_call(function, pipeline, args, count, &result, err))
        return false;
    bool ok = result.dtype == I64 && result.count == 1;
    *value = ok ? tensor_i64(&result)[0] : 0;
    tensor_release(&result);
    return ok || fail(err, INVALID, "`key_func` must return a scalar int64.");
}

static bool int_tensor(struct tensor *out, int64_t value, struct error *err)
{
    return tensor_init_copy(out, I64, &SHAPE_SCALAR, &value, err);
}

/* --- windows --- */

enum { KEY, REDUCE, SIZE, WINDOW_FUNCTIONS };

struct grouping {
    struct dataset dataset;
    struct dataset_function functions[4];
    int state; /* tensors of a reducer's state */
};

struct windows {
    struct iterator it;
    struct groups groups;
    struct tensor *row;
    struct iterator *at; /* of the window that is being given */
    bool over;
};

static const struct grouping *grouping_of(const struct iterator *it)
{
    return (const struct grouping *)it->dataset;
}

static void grouping_release(struct dataset *dataset)
{
    for (int i = 0; i < 4; i++)
        kernel_dataset_function_release(&((struct grouping *)dataset)->functions[i]);
}

static bool windows_begin(struct iterator *it, struct error *err)
{
    (void)err;
    ((struct windows *)it)->row = kernel_row_new(it->input->dataset->width);
    return true;
}

static void windows_end(struct iterator *it)
{
    struct windows *windows = (struct windows *)it;
    kernel_iterator_free(windows->at);
    groups_release(&windows->groups, 0);
    free(windows->row);
}

/* The dataset that the function makes of the group's rows is given next. */
static bool flush(struct windows *windows, struct group *group, struct error *err)
{
    struct iterator *it = &windows->it;
    const struct dataset *input = it->input->dataset;
    const struct signature signature = {input->width, (const int *)input->types, NULL};
    struct tensor args[2] = {{0}, {0}}, made = {0};
    struct dataset *window = kernel_window_new(&signature, &group->rows, err);
    bool ok = window && int_tensor(&args[0], group->key, err) &&
              kernel_dataset_tensor(&args[1], window, err) &&
              kernel_dataset_call(&grouping_of(it)->functions[REDUCE], it->pipeline, args, 2,
                                  &made, err);
    struct dataset *dataset = ok ? kernel_dataset_of(&made, err) : NULL;
    if (dataset && dataset->width != it->dataset->width)
        fail(err, INVALID, "`reduce_func` returned a dataset of %d components, not %d",
             dataset->width, it->dataset->width);
    else if (dataset)
        windows->at = kernel_iterator_new(dataset, it->pipeline, it, err);
    if (window)
        resource_unref(&window->resource);
    kernel_row_release(args, 2);
    tensor_release(&made);
    return windows->at != NULL;
}

/* The group of the row at hand, made with its size of windows when it is new. */
static struct group *group_of_row(struct windows *windows, struct error *err)
{
    struct iterator *it = &windows->it;
    const struct grouping *grouping = grouping_of(it);
    struct tensor argument;
    int64_t key, size;
    if (!call_int(&grouping->functions[KEY], it->pipeline, windows->row,
                  it->input->dataset->width, &key, err))
        return NULL;
    int at = groups_find(&windows->groups, key);
    if (at < windows->groups.count && windows->groups.groups[at].key == key)
        return &windows->groups.groups[at];
    if (!int_tensor(&argument, key, err))
        return NULL;
    bool ok = call_int(&grouping->functions[SIZE], it->pipeline, &argument, 1, &size, err);
    tensor_release(&argument);
    if (ok && size <= 0)
        ok = fail(err, INVALID, "Window size must be greater than zero, but got %lld.",
                  (long long)size);
    if (!ok)
        return NULL;
    struct group *group = groups_add(&windows->groups, at, key);
    group->size = size;
    group->rows.width = it->input->dataset->width;
    return group;
}

/* Reads rows until a window is full, or all are read. */
static bool gather(struct windows *windows, struct error *err)
{
    struct iterator *it = &windows->it;
    int width = it->input->dataset->width;
    while (!windows->over && !windows->at) {
        if (!kernel_iterator_next(it->input, windows->row, &windows->over, err))
            return false;
        if (windows->over)
            break;
        struct group *group = group_of_row(windows, err);
        if (!group) {
            kernel_row_release(windows->row, width);
            return false;
        }
        memcpy(kernel_rows_add(&group->rows), windows->row,
               (size_t)width * sizeof(struct tensor));
        if (group->rows.count == group->size && !flush(windows, group, err))
            return false;
    }
    return true;
}

/* What is left at the end goes by key. */
static bool flush_rest(struct windows *windows, struct error *err)
{
    for (int i = 0; i < windows->groups.count; i++)
        if (windows->groups.groups[i].rows.count)
            return flush(windows, &windows->groups.groups[i], err);
    return true;
}

static bool windows_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct windows *windows = (struct windows *)it;
    for (;;) {
        if (windows->at) {
            bool ended;
            if (!kernel_iterator_next(windows->at, out, &ended, err))
                return false;
            if (!ended)
                return true;
            kernel_iterator_free(windows->at);
            windows->at = NULL;
        }
        if (!gather(windows, err) || (!windows->at && !flush_rest(windows, err)))
            return false;
        *end = !windows->at;
        if (*end)
            return true;
    }
}

static const struct dataset_type windows_type = {
    .name = "GroupByWindow",
    .dataset_size = sizeof(struct grouping),
    .iterator_size = sizeof(struct windows),
    .begin = windows_begin,
    .next = windows_next,
    .end = windows_end,
    .release = grouping_release,
};

/* --- reducers --- */

enum { INIT = 1, STEP, FINISH };

struct reducing {
    struct iterator it;
    struct groups groups;
    struct tensor *args; /* state, then a row of the input */
    bool read;           /* all of the input */
    int next;
};

static bool reducing_begin(struct iterator *it, struct error *err)
{
    (void)err;
    ((struct reducing *)it)->args =
        kernel_row_new(grouping_of(it)->state + it->input->dataset->width);
    return true;
}

static void reducing_end(struct iterator *it)
{
    struct reducing *reducing = (struct reducing *)it;
    groups_release(&reducing->groups, grouping_of(it)->state);
    free(reducing->args);
}

/* The group of the row behind the state, with its first state when it is new. */
static struct group *group_of_args(struct reducing *reducing, struct error *err)
{
    struct iterator *it = &reducing->it;
    const struct grouping *grouping = grouping_of(it);
    struct tensor argument;
    int64_t key;
    if (!call_int(&grouping->functions[KEY], it->pipeline, reducing->args + grouping->state,
                  it->input->dataset->width, &key, err))
        return NULL;
    int at = groups_find(&reducing->groups, key);
    if (at < reducing->groups.count && reducing->groups.groups[at].key == key)
        return &reducing->groups.groups[at];
    if (!int_tensor(&argument, key, err))
        return NULL;
    struct tensor *state = kernel_row_new(grouping->state);
    bool ok =
        kernel_dataset_call(&grouping->functions[INIT], it->pipeline, &argument, 1, state, err);
    tensor_release(&argument);
    if (!ok) {
        free(state);
        return NULL;
    }
    struct group *group = groups_add(&reducing->groups, at, key);
    group->state = state;
    return group;
}

static bool step(struct reducing *reducing, struct error *err)
{
    struct iterator *it = &reducing->it;
    const struct grouping *grouping = grouping_of(it);
    struct group *group = group_of_args(reducing, err);
    int count = grouping->state;
    if (!group)
        return false;
    memcpy(reducing->args, group->state, (size_t)count * sizeof(struct tensor));
    struct tensor *results = kernel_row_new(count);
    bool ok = kernel_dataset_call(&grouping->functions[STEP], it->pipeline, reducing->args,
                                  count + it->input->dataset->width, results, err);
    if (ok) {
        kernel_row_release(group->state, count);
        memcpy(group->state, results, (size_t)count * sizeof(struct tensor));
    }
    free(results);
    return ok;
}

static bool reducing_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct reducing *reducing = (struct reducing *)it;
    const struct grouping *grouping = grouping_of(it);
    struct tensor *row = reducing->args + grouping->state;
    while (!reducing->read) {
        if (!kernel_iterator_next(it->input, row, &reducing->read, err))
            return false;
        if (reducing->read)
            break;
        bool ok = step(reducing, err);
        kernel_row_release(row, it->input->dataset->width);
        if (!ok)
            return false;
    }
    *end = reducing->next >= reducing->groups.count;
    return *end || kernel_dataset_call(&grouping->functions[FINISH], it->pipeline,
                                       reducing->groups.groups[reducing->next++].state,
                                       grouping->state, out, err);
}

static const struct dataset_type reducing_type = {
    .name = "GroupByReducer",
    .dataset_size = sizeof(struct grouping),
    .iterator_size = sizeof(struct reducing),
    .begin = reducing_begin,
    .next = reducing_next,
    .end = reducing_end,
    .release = grouping_release,
};

/* --- kernels --- */

/* Functions, in the order of their captured inputs; how many arguments and results each has. */
struct wanted {
    const char *name;
    const char *captured;
    int args;
    int results;
};

static bool grouping_run(struct kernel_call *call, struct grouping *grouping,
                         const struct wanted *wanted, int count, struct error *err)
{
    int input = 1;
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        int captured = kernel_dataset_list(call->node, wanted[i].captured);
        ok = kernel_dataset_function(&grouping->functions[i], call, wanted[i].name, input,
                                     captured, wanted[i].args, wanted[i].results, err);
        input += captured;
    }
    if (ok)
        return kernel_dataset_output(call, &grouping->dataset, err);
    resource_unref(&grouping->dataset.resource);
    return false;
}

static bool window_run(struct kernel_call *call, struct error *err)
{
    struct grouping *grouping =
        (struct grouping *)kernel_dataset_make(call, &windows_type, 0, 1, err);
    if (!grouping)
        return false;
    const struct wanted wanted[WINDOW_FUNCTIONS] = {
        {"key_func", "Tkey_func_other_arguments", grouping->dataset.inputs[0]->width, 1},
        {"reduce_func", "Treduce_func_other_arguments", 2, 1},
        {"window_size_func", "Twindow_size_func_other_arguments", 1, 1},
    };
    return grouping_run(call, grouping, wanted, WINDOW_FUNCTIONS, err);
}

/* How large a reducer's state is, the function that makes it says. */
static bool reducer_run(struct kernel_call *call, struct error *err)
{
    struct grouping *grouping =
        (struct grouping *)kernel_dataset_make(call, &reducing_type, 0, 1, err);
    if (!grouping)
        return false;
    int width = grouping->dataset.inputs[0]->width;
    int results = kernel_dataset_results(call, "init_func", err);
    grouping->state = results < 0 ? 0 : results;
    const struct wanted wanted[] = {
        {"key_func", "Tkey_func_other_arguments", width, 1},
        {"init_func", "Tinit_func_other_arguments", 1, results},
        {"reduce_func", "Treduce_func_other_arguments", results + width, results},
        {"finalize_func", "Tfinalize_func_other_arguments", results, grouping->dataset.width},
    };
    if (results >= 0)
        return grouping_run(call, grouping, wanted, ARRAY_LEN(wanted), err);
    resource_unref(&grouping->dataset.resource);
    return false;
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_group_by_window_dataset =
    DATASET("GroupByWindowDataset", window_run);
const struct kernel kernel_experimental_group_by_window_dataset =
    DATASET("ExperimentalGroupByWindowDataset", window_run);
const struct kernel kernel_group_by_reducer_dataset =
    DATASET("GroupByReducerDataset", reducer_run);
const struct kernel kernel_experimental_group_by_reducer_dataset =
    DATASET("ExperimentalGroupByReducerDataset", reducer_run);
