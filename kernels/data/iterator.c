/* iterator.c - iterators as objects: made, asked, freed. */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

struct iterator *kernel_iterator_new(struct dataset *dataset, struct pipeline *pipeline,
                                     const struct iterator *inside, struct error *err)
{
    int depth = inside ? inside->depth + 1 : 1;
    if (depth > DATASET_DEPTH_MAX)
        return fail_null(err, EXHAUSTED, "more than %d iterators within each other",
                         DATASET_DEPTH_MAX);
    struct iterator *it = alloc_bytes(dataset->type->iterator_size);
    resource_ref(&dataset->resource);
    it->dataset = dataset;
    it->pipeline = pipeline;
    it->depth = depth;
    bool ok = true;
    if (dataset->inputs_count == 1 && !dataset->type->lazy) {
        it->input = kernel_iterator_new(dataset->inputs[0], pipeline, it, err);
        ok = it->input != NULL;
    }
    if (ok && dataset->type->begin)
        ok = dataset->type->begin(it, err);
    if (ok)
        return it;
    kernel_iterator_free(it);
    return NULL;
}

void kernel_iterator_free(struct iterator *it)
{
    if (!it)
        return;
    if (it->dataset->type->end)
        it->dataset->type->end(it);
    kernel_iterator_free(it->input);
    resource_unref(&it->dataset->resource);
    free(it);
}

bool kernel_iterator_go_on(const struct iterator *it, struct error *err)
{
    return !it->pipeline->cancel || !cancel_requested(it->pipeline->cancel) ||
           fail(err, CANCELLED, "the run was cancelled");
}

/* What came is what the dataset promised: those above rely on it. */
static bool check_types(const struct iterator *it, const struct tensor *out, struct error *err)
{
    const struct dataset *dataset = it->dataset;
    for (int i = 0; i < dataset->width; i++)
        if (out[i].dtype != dataset->types[i])
            return fail(err, INVALID,
                        "Data type mismatch at component %d of %s: expected %s but got %s.", i,
                        dataset->type->name, dtype_name(dataset->types[i]),
                        dtype_name(out[i].dtype));
    return true;
}

bool kernel_iterator_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct dataset *dataset = it->dataset;
    *end = it->ended;
    memset(out, 0, (size_t)dataset->width * sizeof(*out));
    if (*end)
        return true;
    if (!kernel_iterator_go_on(it, err))
        return false;
    bool ok = dataset->type->next(it, out, end, err);
    if (ok && *end)
        it->ended = true;
    if (ok && (*end || check_types(it, out, err)))
        return true;
    kernel_row_release(out, dataset->width);
    return false;
}
