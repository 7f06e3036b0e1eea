/* sampler_hits.c - which sampled classes are true ones after all. */

#include "kernels/ref/numbers.h"

#include <float.h>

/* Where a class was sampled last. */
struct place {
    int64_t class;
    int64_t position;
};

static int by_class(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* The last position of `class`, -1 if it was not sampled. */
static int64_t find(const struct place *places, int64_t count, int64_t class)
{
    int64_t low = 0, high = count; /* the first place of a greater class */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (places[middle].class > class)
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 && places[low - 1].class == class ? places[low - 1].position : -1;
}

static bool run(struct kernel_call *call, struct error *err)
{
    const struct tensor *classes = kernel_in(call, 0), *sampled = kernel_in(call, 1);
    if (classes->shape.rank != 2 ||
        classes->shape.dims[1] != node_attr_int(call->node, "num_true", 0))
        return fail(err, INVALID, "true_candidates must be a batch_size * num_true matrix");
    if (sampled->shape.rank != 1)
        return fail(err, INVALID,
                    "sampled_candidates must be a vector, which is typically an "
                    "output from CandidateSampler");
    struct place *places =
        kernel_scratch(call, (size_t)sampled->count * sizeof(*places) + 1, err);
    if (!places)
        return false;
    for (int64_t i = 0; i < sampled->count; i++)
        places[i] = (struct place){tensor_i64(sampled)[i], i};
    qsort(places, (size_t)sampled->count, sizeof(*places), by_class);
    int64_t hits = 0;
    for (int64_t i = 0; i < classes->count; i++)
        hits += find(places, sampled->count, tensor_i64(classes)[i]) >= 0;
    struct tensor *indices = kernel_output(call, 0, &SHAPE(hits), err);
    struct tensor *ids = indices ? kernel_output(call, 1, &SHAPE(hits), err) : NULL;
    struct tensor *weights = ids ? kernel_output(call, 2, &SHAPE(hits), err) : NULL;
    if (!weights)
        return false;
    for (int64_t i = 0, to = 0; i < classes->count; i++) {
        int64_t position = find(places, sampled->count, tensor_i64(classes)[i]);
        if (position < 0)
            continue;
        ((int32_t *)indices->data)[to] = (int32_t)(i / classes->shape.dims[1]);
        ((int64_t *)ids->data)[to] = position;
        ((float *)weights->data)[to++] = -FLT_MAX;
    }
    return true;
}

const struct kernel kernel_compute_accidental_hits_ref = {
    .op = "ComputeAccidentalHits", .device = CPU, .run = run};
