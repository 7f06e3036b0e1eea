/* string_reduce.c - strings joined along dimensions or by segments. */

#include "kernels/ref/move.h"

#include "base/alloc.h"
#include "base/str.h"

static void append(struct str *out, const struct tensor *in, int64_t index, bool first,
                   const char *separator)
{
    const struct tensor_string *text = tensor_strings(in) + index;
    if (!first)
        str_add(out, separator);
    str_add_bytes(out, text->data, text->size);
}

/* --- ReduceJoin --- */

/* The dimensions to join along, in the order in which they were given. */
struct axes {
    int count;
    int list[LIMIT_TENSOR_RANK];
    bool joined[LIMIT_TENSOR_RANK];
};

static bool read_axes(const struct tensor *indices, int rank, struct axes *axes,
                      struct error *err)
{
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t axis = tensor_integer(indices, i);
        if (axis < -rank || axis >= rank)
            return fail(err, OUT_OF_RANGE,
                        "Invalid reduction dimension %lld for input with %d dimension(s)",
                        (long long)axis, rank);
        if (axes->joined[axis < 0 ? axis + rank : axis])
            return fail(err, INVALID, "Duplicate reduction dimension %lld", (long long)axis);
        axis += axis < 0 ? rank : 0;
        axes->joined[axis] = true;
        axes->list[axes->count++] = (int)axis;
    }
    return true;
}

static bool reduce_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const char *separator = node_attr_string(call->node, "separator", "");
    bool keep = node_attr_bool(call->node, "keep_dims", false);
    struct axes axes = {0};
    if (!read_axes(kernel_in(call, 1), in->shape.rank, &axes, err))
        return false;
    struct places own = kernel_places(&in->shape), outer = {0}, inner = {0};
    struct shape kept = {0}, shape = {0}, joined = {0};
    for (int d = 0; d < in->shape.rank; d++) {
        if (!axes.joined[d]) {
            outer.steps[kept.rank] = own.steps[d];
            kept.dims[kept.rank++] = in->shape.dims[d];
        }
        if (keep || !axes.joined[d])
            shape.dims[shape.rank++] = axes.joined[d] ? 1 : in->shape.dims[d];
    }
    for (int i = axes.count - 1; i >= 0; i--) { /* along the first one first */
        inner.steps[joined.rank] = own.steps[axes.list[i]];
        joined.dims[joined.rank++] = in->shape.dims[axes.list[i]];
    }
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct str text = {0};
    int64_t parts = shape_count(&joined);
    for (int64_t i = 0; i < out->count; i++) {
        str_clear(&text);
        int64_t base = kernel_place(&outer, &kept, i);
        for (int64_t k = 0; k < parts; k++)
            append(&text, in, base + kernel_place(&inner, &joined, k), k == 0, separator);
        tensor_set_string(out, i, str_text(&text), text.size);
    }
    str_release(&text);
    return true;
}

/* --- UnsortedSegmentJoin --- */

static bool check_segments(const struct kernel_call *call, int64_t *segments, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *ids = kernel_in(call, 1);
    const struct tensor *number = kernel_in(call, 2);
    if (number->count == 0)
        return fail(err, INVALID, "Number of segments cannot be empty.");
    if (number->shape.rank != 0)
        return fail(err, INVALID, "Number of segments must be a scalar");
    *segments = tensor_integer(number, 0);
    if (*segments < 0)
        return fail(err, INVALID, "Number of segments must be non-negative but got %lld",
                    (long long)*segments);
    if (ids->shape.rank == 0)
        return fail(err, INVALID, "Segment_id cannot have rank 0");
    if (ids->shape.rank > in->shape.rank)
        return fail(err, OUT_OF_RANGE,
                    "Invalid segment_id rank %d for input with %d dimension(s)",
                    ids->shape.rank, in->shape.rank);
    for (int d = 0; d < ids->shape.rank; d++)
        if (ids->shape.dims[d] != in->shape.dims[d])
            return fail(err, INVALID,
                        "Segment dimension is %lld while input dimension is %d in rank %d",
                        (long long)ids->shape.dims[d], in->shape.rank, d);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id < 0 || id >= *segments)
            return fail(err, INVALID,
                        "segment_ids are not allowed to exceed num_segments or to have "
                        "negative values.");
    }
    return true;
}

static bool segment_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *ids = kernel_in(call, 1);
    const char *separator = node_attr_string(call->node, "separator", "");
    int64_t segments = 0;
    if (!check_segments(call, &segments, err))
        return false;
    struct shape shape = {.rank = 1, .dims = {segments}};
    for (int d = ids->shape.rank; d < in->shape.rank; d++)
        shape.dims[shape.rank++] = in->shape.dims[d];
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    /* Each output grows in a string of its own. */
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    struct str *texts = alloc_array((size_t)out->count + 1, sizeof(*texts));
    bool *begun = alloc_array((size_t)out->count + 1, sizeof(*begun));
    for (int64_t i = 0; i < in->count; i++) {
        int64_t id = tensor_integer(ids, i / inner);
        int64_t at = id * inner + i % inner;
        append(&texts[at], in, i, !begun[at], separator);
        begun[at] = true;
    }
    for (int64_t i = 0; i < out->count; i++) {
        tensor_set_string(out, i, str_text(&texts[i]), texts[i].size);
        str_release(&texts[i]);
    }
    free(texts);
    free(begun);
    return true;
}

const struct kernel kernel_reduce_join = {.op = "ReduceJoin", .device = CPU, .run = reduce_run};
const struct kernel kernel_unsorted_segment_join = {
    .op = "UnsortedSegmentJoin", .device = CPU, .run = segment_run};
