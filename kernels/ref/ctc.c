/* ctc.c - frames of connectionist temporal classification, and the likeliest labels by looking
 * at each frame alone: CTCGreedyDecoder. */

#include "kernels/ref/ctc.h"

#include "kernels/ref/doubles.h"

bool kernel_ctc_read(struct kernel_call *call, int frames, int lengths,
                     enum error_code mismatch, struct kernel_ctc *out, struct error *err)
{
    const struct tensor *x = kernel_in(call, frames), *sizes = kernel_in(call, lengths);
    if (x->shape.rank != 3)
        return fail(err, INVALID, "inputs is not a 3-Tensor");
    if (sizes->shape.rank != 1)
        return fail(err, INVALID, "sequence_length is not a vector");
    if (x->count == 0)
        return fail(err, INVALID, "inputs must not be empty");
    *out = (struct kernel_ctc){.steps = x->shape.dims[0],
                               .batch = x->shape.dims[1],
                               .classes = x->shape.dims[2],
                               .lengths = sizes->data};
    if (sizes->count != out->batch)
        return fail(err, mismatch,
                    "len(sequence_length) != batch_size.  len(sequence_length):  %lld "
                    "batch_size: %lld",
                    (long long)sizes->count, (long long)out->batch);
    for (int64_t b = 0; b < out->batch; b++)
        if (out->lengths[b] > out->steps)
            return fail(err, mismatch, "sequence_length(%lld) <= %lld", (long long)b,
                        (long long)out->steps);
    out->x = kernel_doubles_load(call, frames, err);
    return out->x != NULL;
}

/* --- what is decoded --- */

bool kernel_ctc_path_new(struct kernel_call *call, const struct kernel_ctc *c,
                         struct kernel_ctc_path *path, struct error *err)
{
    path->labels =
        kernel_scratch(call, (size_t)(c->steps * c->batch) * sizeof(*path->labels), err);
    path->ends =
        path->labels ? kernel_scratch(call, (size_t)c->batch * sizeof(*path->ends), err) : NULL;
    return path->ends != NULL;
}

bool kernel_ctc_path_give(struct kernel_call *call, const struct kernel_ctc *c,
                          const struct kernel_ctc_path *path, int index, int values, int shape,
                          struct error *err)
{
    int64_t count = path->ends[c->batch - 1], longest = 0;
    struct tensor *places = kernel_output(call, index, &SHAPE(count, 2), err);
    struct tensor *labels = places ? kernel_output(call, values, &SHAPE(count), err) : NULL;
    struct tensor *dims = labels ? kernel_output(call, shape, &SHAPE(2), err) : NULL;
    if (!dims)
        return false;
    int64_t *place = places->data, *dim = dims->data;
    for (int64_t b = 0, first = 0; b < c->batch; first = path->ends[b++]) {
        for (int64_t i = first; i < path->ends[b]; i++) {
            place[2 * i] = b;
            place[2 * i + 1] = i - first;
        }
        if (path->ends[b] - first > longest)
            longest = path->ends[b] - first;
    }
    if (count)
        memcpy(labels->data, path->labels, (size_t)count * sizeof(*path->labels));
    dim[0] = c->batch;
    dim[1] = longest;
    return true;
}

/* --- the likeliest class of each frame --- */

static int64_t likeliest(const double *x, int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        if (x[k] > x[best])
            best = k;
    return best;
}

static bool greedy_run(struct kernel_call *call, struct error *err)
{
    struct kernel_ctc c;
    struct kernel_ctc_path path;
    bool merge = node_attr_bool(call->node, "merge_repeated", false);
    int64_t blank = node_attr_int(call->node, "blank_index", -1), count = 0;
    if (!kernel_ctc_read(call, 0, 1, PRECONDITION, &c, err))
        return false;
    if (blank < -c.classes || blank >= c.classes)
        return fail(err, INVALID,
                    "blank_index expected to be between -%lld and %lld but was %lld",
                    (long long)c.classes, (long long)(c.classes - 1), (long long)blank);
    blank = blank < 0 ? blank + c.classes : blank;
    double *scores = kernel_doubles_zeros(call, c.batch, err);
    if (!scores || !kernel_ctc_path_new(call, &c, &path, err))
        return false;
    for (int64_t b = 0; b < c.batch; b++) {
        int64_t before = -1;
        for (int64_t step = 0; step < c.lengths[b]; step++) {
            const double *x = kernel_ctc_at(&c, step, b);
            int64_t label = likeliest(x, c.classes);
            scores[b] -= x[label];
            if (label != blank && !(merge && label == before))
                path.labels[count++] = label;
            before = label;
        }
        path.ends[b] = count;
    }
    return kernel_ctc_path_give(call, &c, &path, 0, 1, 2, err) &&
           kernel_doubles_store(call, 3, &SHAPE(c.batch, 1), scores, err);
}

const struct kernel kernel_ctc_greedy_decoder_ref = {
    .op = "CTCGreedyDecoder", .device = CPU, .run = greedy_run};
