/* segment_shape.c - segment numbers checked, and the shape of what they give. */

#include "kernels/ref/segment.h"

bool kernel_segment_sorted(const struct tensor *ids, int64_t *segments, struct error *err)
{
    int64_t last = 0;
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id < 0 || id >= INT32_MAX)
            return fail(err, INVALID, "segment ids must be >= 0");
        if (id < last)
            return fail(err, INVALID, "segment ids are not increasing");
        last = id;
    }
    *segments = ids->count ? last + 1 : 0;
    return true;
}

bool kernel_segment_rows(const struct kernel_call *call, struct shape *shape, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    if (ids->shape.rank != 1)
        return fail(err, INVALID, "segment_ids should be a vector.");
    if (data->shape.rank < 1 || data->shape.dims[0] != ids->count)
        return fail(err, INVALID,
                    "segment_ids should be the same size as dimension 0 of input.");
    *shape = data->shape;
    return kernel_segment_sorted(ids, &shape->dims[0], err);
}

bool kernel_segment_unsorted(const struct kernel_call *call, struct shape *shape,
                             struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    int64_t segments = 0;
    if (!kernel_scalar(call, 2, "num_segments", &segments, err))
        return false;
    if (segments < 0)
        return fail(err, INVALID, "segment count must be non-negative: %lld",
                    (long long)segments);
    int depth = ids->shape.rank;
    struct shape lead = data->shape;
    lead.rank = depth;
    if (depth > data->shape.rank || !shape_equal(&lead, &ids->shape))
        return fail(err, INVALID, "data.shape does not start with segment_ids.shape");
    *shape = (struct shape){.rank = 1, .dims = {segments}};
    if (!kernel_append_dims(shape, &data->shape, depth, err))
        return false;
    for (int64_t i = 0; i < ids->count; i++)
        if (tensor_integer(ids, i) >= segments)
            return fail(err, INVALID, "segment_ids[%lld] = %lld is out of range [0, %lld)",
                        (long long)i, (long long)tensor_integer(ids, i), (long long)segments);
    return true;
}
