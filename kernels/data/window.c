/* window.c - WindowDataset: each element is a dataset of some that follow each other. */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

/* --- the datasets that come out: rows of one component --- */

struct held {
    struct dataset dataset;
    struct rows rows;
};

struct position {
    struct iterator it;
    int64_t next;
};

static bool held_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    (void)err;
    const struct held *held = (const struct held *)it->dataset;
    struct position *position = (struct position *)it;
    *end = position->next >= held->rows.count;
    if (!*end)
        for (int i = 0; i < held->rows.width; i++)
            tensor_share(&out[i], &kernel_rows_at(&held->rows, position->next)[i]);
    position->next++;
    return true;
}

static int64_t held_cardinality(const struct dataset *dataset)
{
    return ((const struct held *)dataset)->rows.count;
}

static void held_release(struct dataset *dataset)
{
    kernel_rows_release(&((struct held *)dataset)->rows);
}

static const struct dataset_type held_type = {
    .name = "WindowOp",
    .dataset_size = sizeof(struct held),
    .iterator_size = sizeof(struct position),
    .next = held_next,
    .cardinality = held_cardinality,
    .release = held_release,
};

struct dataset *kernel_window_new(const struct signature *signature, struct rows *rows,
                                  struct error *err)
{
    struct held *held = (struct held *)kernel_dataset_new(&held_type, signature, NULL, 0, err);
    if (!held)
        return NULL;
    held->rows = *rows;
    *rows = (struct rows){.width = rows->width};
    if (kernel_dataset_deepen(&held->dataset, held->rows.tensors,
                              (int)(held->rows.count * held->rows.width), err))
        return &held->dataset;
    resource_unref(&held->dataset.resource);
    return NULL;
}

/* --- windows --- */

struct window {
    struct dataset dataset;
    int64_t size, shift, stride;
    bool drop_remainder;
};

struct windows {
    struct iterator it;
    struct rows buffer;
    struct error **failures; /* by row: why there is no such element; NULL: there is one */
    int64_t failures_capacity;
    bool over; /* the input has ended */
};

static bool windows_begin(struct iterator *it, struct error *err)
{
    (void)err;
    ((struct windows *)it)->buffer.width = it->input->dataset->width;
    return true;
}

/* Forgets the first `count` rows. */
static void drop(struct windows *windows, int64_t count)
{
    int64_t left = windows->buffer.count - count;
    for (int64_t i = 0; i < count; i++)
        free(windows->failures[i]);
    if (left && count)
        memmove(windows->failures, windows->failures + count,
                (size_t)left * sizeof(*windows->failures));
    if (left)
        kernel_rows_drop(&windows->buffer, count);
    else
        kernel_rows_cut(&windows->buffer, 0);
}

static void windows_end(struct iterator *it)
{
    struct windows *windows = (struct windows *)it;
    drop(windows, windows->buffer.count);
    free(windows->failures);
    kernel_rows_release(&windows->buffer);
}

/* Component `c` of every stride-th row in the buffer, as a dataset in a scalar. */
static bool window_component(const struct windows *windows, int c, int64_t count,
                             struct tensor *out, struct error *err)
{
    const struct window *window = (const struct window *)windows->it.dataset;
    const struct dataset *input = window->dataset.inputs[0];
    const int type = (int)input->types[c];
    const struct signature signature = {1, &type, &input->shapes[c]};
    struct rows rows = {.width = 1};
    for (int64_t i = 0; i < count; i++)
        tensor_share(kernel_rows_add(&rows),
                     &kernel_rows_at(&windows->buffer, i * window->stride)[c]);
    struct dataset *dataset = kernel_window_new(&signature, &rows, err);
    bool ok = dataset && kernel_dataset_tensor(out, dataset, err);
    if (dataset)
        resource_unref(&dataset->resource);
    kernel_rows_release(&rows);
    return ok;
}

/*
 * As TensorFlow: an error that comes at the input's end is that end, and an element that fails
 * has its place among the others.  Fails when the run is over.
 */
static bool pull(struct windows *windows, struct error *err)
{
    struct error *failure = NULL;
    if (!kernel_rows_pull(&windows->buffer, windows->it.input, &windows->over, err) &&
        !windows->over) {
        if (err->code == CANCELLED || err->code == DEADLINE)
            return false;
        failure = alloc_bytes(sizeof(*failure));
        *failure = *err;
        kernel_rows_add(&windows->buffer);
    }
    if (windows->over)
        return true;
    int64_t count = windows->buffer.count;
    if (count > windows->failures_capacity) {
        windows->failures_capacity = 2 * count;
        windows->failures = alloc_resize(windows->failures, (size_t)windows->failures_capacity *
                                                                sizeof(*windows->failures));
    }
    windows->failures[count - 1] = failure;
    return true;
}

/* Drops what the next window begins behind. */
static bool advance(struct windows *windows, struct error *err)
{
    const struct window *window = (const struct window *)windows->it.dataset;
    int64_t buffered = windows->buffer.count;
    if (window->shift < buffered) {
        drop(windows, window->shift);
        return true;
    }
    drop(windows, buffered);
    for (int64_t i = buffered; i < window->shift && !windows->over; i++) {
        if (!pull(windows, err))
            return false;
        drop(windows, windows->buffer.count);
    }
    return true;
}

static bool windows_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct windows *windows = (struct windows *)it;
    const struct window *window = (const struct window *)it->dataset;
    int64_t target;
    if (__builtin_mul_overflow(window->size - 1, window->stride, &target))
        target = INT64_MAX - 1;
    target++;
    while (windows->buffer.count < target && !windows->over)
        if (!pull(windows, err))
            return false;
    int64_t buffered = windows->buffer.count;
    *end = buffered == 0 || (window->drop_remainder && buffered < target);
    if (*end)
        return true;
    int64_t count = 1 + (buffered - 1) / window->stride;
    for (int64_t i = 0; i < count; i++) {
        const struct error *failure = windows->failures[i * window->stride];
        if (!failure)
            continue;
        const struct error first = *failure;
        if (advance(windows, err))
            *err = first;
        return false;
    }
    for (int c = 0; c < it->dataset->width; c++)
        if (!window_component(windows, c, count, &out[c], err))
            return false;
    return advance(windows, err);
}

static int64_t window_cardinality(const struct dataset *dataset)
{
    const struct window *window = (const struct window *)dataset;
    int64_t count = kernel_dataset_cardinality(dataset->inputs[0]), target;
    if (count < 0)
        return count;
    if (!window->drop_remainder)
        return count / window->shift + (count % window->shift != 0);
    if (__builtin_mul_overflow(window->size - 1, window->stride, &target) || target >= count)
        return 0;
    return (count - target - 1) / window->shift + 1;
}

static const struct dataset_type window_type = {
    .name = "Window",
    .dataset_size = sizeof(struct window),
    .iterator_size = sizeof(struct windows),
    .begin = windows_begin,
    .next = windows_next,
    .end = windows_end,
    .cardinality = window_cardinality,
};

static bool window_run(struct kernel_call *call, struct error *err)
{
    int64_t size, shift, stride;
    if (!kernel_scalar(call, 1, "size", &size, err) ||
        !kernel_scalar(call, 2, "shift", &shift, err) ||
        !kernel_scalar(call, 3, "stride", &stride, err))
        return false;
    if (size <= 0)
        return fail(err, INVALID, "Window size must be greater than zero.");
    if (shift <= 0)
        return fail(err, INVALID, "Window shift must be greater than zero.");
    if (stride <= 0)
        return fail(err, INVALID, "Window stride must be greater than zero.");
    if (kernel_in(call, 4)->count != 1)
        return fail(err, INVALID, "drop_remainder must be a scalar");
    struct window *window = (struct window *)kernel_dataset_make(call, &window_type, 0, 1, err);
    if (!window)
        return false;
    window->size = size;
    window->shift = shift;
    window->stride = stride;
    window->drop_remainder = *(const bool *)kernel_in(call, 4)->data;
    if (window->dataset.width == window->dataset.inputs[0]->width)
        return kernel_dataset_output(call, &window->dataset, err);
    resource_unref(&window->dataset.resource);
    return fail(err, INVALID, "output_types has another length than the input's");
}

const struct kernel kernel_window_dataset = {
    .op = "WindowDataset", .device = CPU, .run = window_run};
