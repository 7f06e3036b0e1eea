/* nd.c - what is wrong with slices named by coordinates. */

#include "kernels/ref/nd.h"

/* Coordinates of one index that are supported; TensorFlow's text says 5. */
enum { DEPTH_MAX = 7 };

const char *kernel_place_text(const struct shape *shape, int64_t at, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int d = 0; d < shape->rank && used < size; d++) {
        int64_t inner = kernel_span(shape, d + 1, shape->rank);
        used += (size_t)snprintf(out + used, size - used, "%c%lld", d ? ',' : '[',
                                 (long long)(inner ? at / inner % shape->dims[d] : 0));
    }
    if (shape->rank > 0 && used < size)
        (void)snprintf(out + used, size - used, "]");
    return out;
}

bool kernel_nd_policy(const struct node *node, bool *ignore, struct error *err)
{
    static const char *const policies[] = {"", "DEFAULT", "ERROR", "IGNORE"};
    const char *policy = node_attr_string(node, "bad_indices_policy", "");
    *ignore = strcmp(policy, "IGNORE") == 0;
    for (int i = 0; i < ARRAY_LEN(policies); i++)
        if (strcmp(policy, policies[i]) == 0)
            return true;
    return fail(err, INVALID, "Unknown bad indices handling attribute: %s", policy);
}

bool kernel_nd_bad(const struct tensor *indices, int64_t row, int depth,
                   const struct shape *shape, struct error *err)
{
    char place[ROW_TEXT_BYTES], coordinates[ROW_TEXT_BYTES], text[SHAPE_TEXT_BYTES];
    struct shape rows = indices->shape;
    rows.rank--;
    return fail(err, INVALID, "indices%s = %s does not index into shape %s",
                kernel_place_text(&rows, row, place, sizeof(place)),
                kernel_row_text(indices, row, depth, ", ", coordinates, sizeof(coordinates)),
                shape_text(shape, text, sizeof(text)));
}

bool kernel_nd_check(const struct tensor *indices, const struct tensor *updates,
                     const struct shape *shape, struct error *err)
{
    const struct shape *rows = &indices->shape, *given = &updates->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES];
    shape_text(rows, a, sizeof(a));
    shape_text(given, b, sizeof(b));
    shape_text(shape, c, sizeof(c));
    if (shape->rank < 1)
        return fail(err, INVALID, "Output must be at least 1-D, got shape: %s", c);
    if ((indices->count > 0 || updates->count > 0) &&
        (shape_count(shape) == 0 || indices->count == 0 || updates->count == 0))
        return fail(err, INVALID,
                    "Indices and updates specified for empty output.  indices shape: %s", a);
    if (rows->rank > 0 && given->rank > 0 && rows->dims[0] != given->dims[0])
        return fail(err, INVALID,
                    "Dimensions [0,1) of indices[shape=%s] = %lld must match dimensions [0,1) "
                    "of updates[shape=%s] = %lld",
                    a, (long long)rows->dims[0], b, (long long)given->dims[0]);
    int64_t depth = rows->rank > 1 ? rows->dims[rows->rank - 1] : 1;
    int outer = rows->rank > 1 ? rows->rank - 1 : 1;
    bool leads = rows->rank > 0 && given->rank >= outer;
    bool ranks = given->rank - outer == shape->rank - depth;
    for (int d = 0; leads && ranks && d < outer; d++)
        leads = rows->dims[d] == given->dims[d];
    if (!leads)
        return fail(err, INVALID,
                    "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of "
                    "updates[shape=%s]",
                    outer, a, outer, b);
    for (int d = outer; ranks && d < given->rank; d++)
        ranks = given->dims[d] == shape->dims[depth + d - outer];
    if (!ranks)
        return fail(err, INVALID,
                    "Dimensions [%lld,%d) of input[shape=%s] must match dimensions [%d,%d) of "
                    "updates[shape=%s]",
                    (long long)depth, shape->rank, c, outer, given->rank, b);
    if (shape_count(shape) > 0 && (depth < 1 || depth > DEPTH_MAX))
        return fail(err, INVALID,
                    "Only indices.shape[-1] values between 1 and 5 are currently supported.  "
                    "Requested rank: %lld",
                    (long long)depth);
    return true;
}
