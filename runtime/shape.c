/* shape.c - comparing, merging, broadcasting and printing dimensions. */

#include "runtime/shape.h"
#include "base/error.h"
#include "base/str.h"

bool shape_is_full(const struct shape *shape)
{
    if (shape->rank < 0)
        return false;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            return false;
    return true;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

bool shape_compatible(const struct shape *a, const struct shape *b)
{
    if (a->rank < 0 || b->rank < 0)
        return true;
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i])
            return false;
    return true;
}

bool shape_merge(const struct shape *a, const struct shape *b, struct shape *out,
                 struct error *err)
{
    if (!shape_compatible(a, b)) {
        char first[SHAPE_TEXT_BYTES], second[SHAPE_TEXT_BYTES];
        return fail(err, INVALID, "Shapes %s and %s contradict each other",
                    shape_text(a, first, sizeof(first)), shape_text(b, second, sizeof(second)));
    }
    const struct shape *known = a->rank < 0 ? b : a;
    const struct shape *other = a->rank < 0 ? a : b;
    struct shape merged = {.rank = known->rank};
    for (int i = 0; i < known->rank; i++) {
        merged.dims[i] = known->dims[i];
        if (merged.dims[i] < 0 && other->rank >= 0)
            merged.dims[i] = other->dims[i];
    }
    *out = merged;
    return true;
}

int64_t shape_count(const struct shape *shape)
{
    if (shape->rank < 0)
        return -1;
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        empty = empty || dim == 0;
        if (dim < 0 || __builtin_mul_overflow(count, dim ? dim : 1, &count))
            return -1;
    }
    return empty ? 0 : count;
}

int64_t shape_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

int64_t shape_product(int64_t a, int64_t b)
{
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out,
                     struct error *err)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = SHAPE_UNKNOWN;
        return true;
    }
    struct shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < result.rank; i++) {
        int ai = i - (result.rank - a->rank);
        int bi = i - (result.rank - b->rank);
        int64_t x = ai < 0 ? 1 : a->dims[ai];
        int64_t y = bi < 0 ? 1 : b->dims[bi];
        if (x == y || y == 1)
            result.dims[i] = x;
        else if (x == 1)
            result.dims[i] = y;
        else if (x < 0 || y < 0)
            result.dims[i] = x < 0 ? y : x; /* the unknown one must be 1 or equal */
        else {
            char first[SHAPE_TEXT_BYTES], second[SHAPE_TEXT_BYTES];
            return fail(err, INVALID, "Incompatible shapes: %s vs. %s",
                        shape_text(a, first, sizeof(first)),
                        shape_text(b, second, sizeof(second)));
        }
    }
    *out = result;
    return true;
}

const char *shape_text(const struct shape *shape, char *out, size_t out_size)
{
    if (shape->rank < 0) {
        snprintf(out, out_size, "<unknown>");
        return out;
    }
    size_t used = 0;
    for (int i = 0; i < shape->rank && used + 24 < out_size; i++) {
        const char *before = i ? "," : "[";
        int wrote = shape->dims[i] < 0 ? snprintf(out + used, out_size - used, "%s?", before)
                                       : snprintf(out + used, out_size - used, "%s%lld", before,
                                                  (long long)shape->dims[i]);
        used += (size_t)wrote;
    }
    snprintf(out + used, out_size - used, shape->rank ? "]" : "[]");
    return out;
}

void shape_print(const struct shape *shape, struct str *out)
{
    char text[LIMIT_TENSOR_RANK * 24 + 32];
    str_add(out, shape_text(shape, text, sizeof(text)));
}
