/* segment_shape.c - segment numbers checked, and the shape of what they give. */

#include "kernels/ref/nd.h"
#include "kernels/ref/segment.h"

/*
 * Segment after segment, as TensorFlow goes: that the next is not after it is told first, then
 * that it is out of range, then that a row of it is.
 */
bool kernel_segment_sorted(const struct tensor *ids, int64_t segments,
                           const struct tensor *picks, int64_t rows, struct error *err)
{
    int64_t start = 0;
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i), last = i + 1 == ids->count;
        int64_t next = last ? id : tensor_integer(ids, i + 1);
        if (next < id)
            return fail(err, INVALID, "segment ids are not increasing");
        if (next == id && !last)
            continue;
        if (id < 0 || id >= segments)
            return fail(err, INVALID,
                        "Segment id %lld out of range [0, %lld), possibly because "
                        "'segment_ids' input is not sorted.",
                        (long long)id, (long long)segments);
        for (; picks && start <= i; start++) {
            int64_t pick = tensor_integer(picks, start);
            if (pick < 0 || pick >= rows)
                return fail(err, INVALID, "Bad: indices[%lld] == %lld out of range [0, %lld)",
                            (long long)start, (long long)pick, (long long)rows);
        }
    }
    return true;
}

bool kernel_segment_count(const struct tensor *ids, int64_t *segments, struct error *err)
{
    int64_t last = ids->count ? tensor_integer(ids, ids->count - 1) : -1;
    if (last >= INT32_MAX || (ids->count && last < 0))
        return fail(err, INVALID, "segment ids must be >= 0");
    *segments = last + 1;
    return true;
}

bool kernel_segment_rows(const struct kernel_call *call, struct shape *shape, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    if (data->shape.rank < 1)
        return fail(err, INVALID, "input must be at least rank 1");
    if (ids->shape.rank != 1)
        return fail(err, INVALID, "segment_ids should be a vector.");
    if (data->shape.dims[0] != ids->count)
        return fail(err, INVALID,
                    "segment_ids should be the same size as dimension 0 of input.");
    *shape = data->shape;
    return kernel_segment_count(ids, &shape->dims[0], err) &&
           kernel_segment_sorted(ids, shape->dims[0], NULL, 0, err);
}

bool kernel_segment_unsorted(const struct kernel_call *call, struct shape *shape,
                             struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    const struct tensor *count = kernel_in(call, 2);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], place[ROW_TEXT_BYTES];
    if (count->shape.rank != 0)
        return fail(err, INVALID, "num_segments should be a scalar, not shape %s",
                    shape_text(&count->shape, a, sizeof(a)));
    int depth = ids->shape.rank;
    struct shape lead = data->shape;
    lead.rank = depth;
    if (depth > data->shape.rank || !shape_equal(&lead, &ids->shape))
        return fail(err, INVALID, "data.shape = %s does not start with segment_ids.shape = %s",
                    shape_text(&data->shape, a, sizeof(a)),
                    shape_text(&ids->shape, b, sizeof(b)));
    int64_t segments = tensor_integer(count, 0);
    if (segments < 0)
        return fail(err, INVALID, "Input num_segments == %lld must not be negative.",
                    (long long)segments);
    *shape = (struct shape){.rank = 1, .dims = {segments}};
    if (!kernel_append_dims(shape, &data->shape, depth, err))
        return false;
    for (int64_t i = 0; data->count > 0 && i < ids->count; i++)
        if (tensor_integer(ids, i) >= segments)
            return fail(err, INVALID, "segment_ids%s = %lld is out of range [0, %lld)",
                        kernel_place_text(&ids->shape, i, place, sizeof(place)),
                        (long long)tensor_integer(ids, i), (long long)segments);
    return true;
}

bool kernel_segment_picks(const struct tensor *picks, const struct tensor *ids,
                          struct error *err)
{
    if (picks->shape.rank != 1)
        return fail(err, INVALID, "indices should be a vector.");
    if (ids->shape.rank != 1)
        return fail(err, INVALID, "segment_ids should be a vector.");
    return picks->count == ids->count ||
           fail(err, INVALID, "segment_ids and indices should have same size.");
}

bool kernel_segment_grad(const struct tensor *ids, int64_t segments, const struct tensor *picks,
                         int64_t rows, struct error *err)
{
    if (ids->count && tensor_integer(ids, ids->count - 1) >= segments)
        return fail(err, INVALID, "Invalid number of segments");
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (id < 0 || id >= segments)
            return fail(err, INVALID, "Segment id %lld out of range [0, %lld).", (long long)id,
                        (long long)segments);
    }
    for (int64_t i = 0; picks && i < picks->count; i++) {
        int64_t pick = tensor_integer(picks, i);
        if (pick < 0 || pick >= rows)
            return fail(err, INVALID, "Index %lld out of range [0, %lld).", (long long)pick,
                        (long long)rows);
    }
    return true;
}

bool kernel_segment_size(const struct kernel_call *call, const char *name, int64_t *size,
                         struct error *err)
{
    if (kernel_in(call, 3)->shape.rank != 0)
        return fail(err, INVALID, "%s should be a scalar.", name);
    *size = tensor_integer(kernel_in(call, 3), 0);
    return *size >= 0 ||
           fail(err, INVALID, "Expected a non-negative size, got %lld", (long long)*size);
}
