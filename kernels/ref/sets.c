/* sets.c - elements once each, those of one list that are not in another, the greatest k. */

#include "kernels/ref/numbers.h"

#include <math.h>

static bool same_element(const struct tensor *a, int64_t i, const struct tensor *b, int64_t j)
{
    if (a->dtype == STRING) {
        const struct tensor_string *x = tensor_strings(a) + i, *y = tensor_strings(b) + j;
        return x->size == y->size && (!x->size || memcmp(x->data, y->data, x->size) == 0);
    }
    if (kernel_load_bits_for(a->dtype)) {
        kernel_load_bits *load = kernel_load_bits_for(a->dtype);
        return load(a->data, i) == load(b->data, j);
    }
    if (dtype_size(a->dtype) == 2) /* half and bfloat16: by their bits, so -0 is not 0 */
        return ((const uint16_t *)a->data)[i] == ((const uint16_t *)b->data)[j];
    return kernel_complex_at(a, i) == kernel_complex_at(b, j);
}

/* --- a table of elements of a tensor, so that looking one up takes no walk --- */

/* A tensor as (outer, size, inner): its element number i is the slice of all (., i, .). */
struct slices {
    int64_t outer, size, inner;
};

static const struct slices single = {1, 0, 1};

struct table {
    const struct tensor *of;
    const struct slices *slices;
    int64_t *slots; /* -1, or an element of the tensor */
    uint64_t mask;
};

/* Equal elements have equal hashes; NaN, equal to nothing, is spread by its place. */
static uint64_t hash_of(const struct tensor *tensor, int64_t i)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    if (tensor->dtype == STRING) {
        const struct tensor_string *text = tensor_strings(tensor) + i;
        for (size_t k = 0; k < text->size; k++)
            hash = (hash ^ (unsigned char)text->data[k]) * UINT64_C(0x100000001b3);
    } else if (kernel_load_bits_for(tensor->dtype)) {
        hash ^= kernel_load_bits_for(tensor->dtype)(tensor->data, i);
    } else if (dtype_size(tensor->dtype) == 2) {
        hash ^= ((const uint16_t *)tensor->data)[i];
    } else {
        double value = kernel_load_for(tensor->dtype)(tensor->data, i) + 0.0; /* no -0 */
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        hash ^= value != value ? (uint64_t)i : bits;
    }
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* For `count` elements of the tensor, which are those slices of it. */
static bool table_init(struct table *table, struct kernel_call *call, const struct tensor *of,
                       const struct slices *slices, int64_t count, struct error *err)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)count)
        size *= 2;
    table->of = of;
    table->slices = slices;
    table->mask = size - 1;
    table->slots = kernel_scratch(call, size * sizeof(*table->slots), err);
    if (table->slots)
        memset(table->slots, 0xff, size * sizeof(*table->slots));
    return table->slots != NULL;
}

/* Where part `k` of slice `i` is. */
static int64_t part_of(const struct slices *s, int64_t i, int64_t k)
{
    return (k / s->inner * s->size + i) * s->inner + k % s->inner;
}

static uint64_t slice_hash(const struct slices *s, const struct tensor *tensor, int64_t i)
{
    uint64_t hash = 0;
    for (int64_t k = 0; k < s->outer * s->inner; k++)
        hash = hash * UINT64_C(0x100000001b3) + hash_of(tensor, part_of(s, i, k));
    return hash;
}

static bool same_slice(const struct table *table, int64_t i, const struct tensor *b, int64_t j)
{
    const struct slices *s = table->slices;
    for (int64_t k = 0; k < s->outer * s->inner; k++)
        if (!same_element(table->of, part_of(s, i, k), b, part_of(s, j, k)))
            return false;
    return true;
}

/* The slot of the element of the table that equals `i` of `tensor`, or the empty one for it. */
static int64_t *table_slot(const struct table *table, const struct tensor *tensor, int64_t i)
{
    uint64_t at = slice_hash(table->slices, tensor, i) & table->mask;
    while (table->slots[at] >= 0 && !same_slice(table, table->slots[at], tensor, i))
        at = (at + 1) & table->mask;
    return table->slots + at;
}

static void set_integer(struct tensor *tensor, int64_t index, int64_t value)
{
    kernel_store_bits_for(tensor->dtype)(tensor->data, index, (uint64_t)value);
}

/* Along which axis elements are compared: that of a vector where no axis is given. */
static bool unique_axis(struct kernel_call *call, int *axis, struct error *err)
{
    const struct shape *shape = &kernel_in(call, 0)->shape;
    const struct tensor *given = call->in_count > 1 ? kernel_in(call, 1) : NULL;
    *axis = 0;
    if (given && given->shape.rank != 1)
        return fail(err, INVALID, "axis expects a 1D vector.");
    if (given && given->count > 1)
        return fail(err, INVALID, "axis does not support input tensors larger than 1 elements");
    if (!given || given->count == 0)
        return shape->rank == 1 || fail(err, INVALID, "unique expects a 1D vector.");
    int64_t value = tensor_integer(given, 0);
    value += value < 0 ? shape->rank : 0;
    *axis = (int)value;
    return (value >= 0 && value < shape->rank) ||
           fail(err, INVALID, "axis has to be between [0, %d)", shape->rank);
}

static bool unique_counts(struct kernel_call *call, const struct tensor *index, int64_t count,
                          struct error *err)
{
    struct tensor *counts = kernel_output(call, 2, &SHAPE(count), err);
    if (!counts)
        return false;
    kernel_zero(counts, 0, count);
    for (int64_t i = 0; i < index->count; i++) {
        int64_t k = tensor_integer(index, i);
        set_integer(counts, k, tensor_integer(counts, k) + 1);
    }
    return true;
}

/* Values in order of first occurrence, and for each element which of them it is. */
static bool unique_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int axis;
    if (!unique_axis(call, &axis, err))
        return false;
    struct slices s = {kernel_span(&in->shape, 0, axis), in->shape.dims[axis],
                       kernel_span(&in->shape, axis + 1, in->shape.rank)};
    int64_t *firsts = kernel_scratch(call, (size_t)s.size * sizeof(*firsts) + 1, err);
    struct tensor *index = firsts ? kernel_output(call, 1, &SHAPE(s.size), err) : NULL;
    struct table table;
    if (!index || !table_init(&table, call, in, &s, s.size, err))
        return false;
    struct shape shape = in->shape;
    int64_t count = 0;
    for (int64_t i = 0; i < s.size; i++) {
        int64_t *slot = table_slot(&table, in, i);
        if (*slot < 0) {
            *slot = i;
            firsts[count] = i;
            set_integer(index, i, count++);
        } else {
            set_integer(index, i, tensor_integer(index, *slot));
        }
    }
    shape.dims[axis] = count;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t k = 0; k < count; k++)
            kernel_copy(out, (o * count + k) * s.inner, in, (o * s.size + firsts[k]) * s.inner,
                        s.inner);
    return call->node->outputs_count < 3 || unique_counts(call, index, count, err);
}

static bool list_diff_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    if (x->shape.rank != 1 || y->shape.rank != 1)
        return fail(err, INVALID, "%s should be a 1D vector.", x->shape.rank != 1 ? "x" : "y");
    int64_t *kept = kernel_scratch(call, (size_t)x->count * sizeof(*kept) + 1, err);
    struct table table;
    if (!kept || !table_init(&table, call, y, &single, y->count, err))
        return false;
    int64_t count = 0;
    for (int64_t i = 0; i < y->count; i++)
        *table_slot(&table, y, i) = i;
    for (int64_t i = 0; i < x->count; i++)
        if (*table_slot(&table, x, i) < 0)
            kept[count++] = i;
    struct tensor *out = kernel_output(call, 0, &SHAPE(count), err);
    struct tensor *index = out ? kernel_output(call, 1, &SHAPE(count), err) : NULL;
    if (!index)
        return false;
    for (int64_t k = 0; k < count; k++) {
        kernel_copy(out, k, x, kept[k], 1);
        set_integer(index, k, kept[k]);
    }
    return true;
}

/* --- the greatest --- */

/* Whether element j ranks before element i: greater, or equal and earlier. */
static bool ranks_before(const struct tensor *in, int64_t j, int64_t i)
{
    kernel_greater *greater = kernel_greater_for(in->dtype);
    return greater(in->data, j, in->data, i) || (j < i && !greater(in->data, i, in->data, j));
}

/*
 * `heap` holds columns of the row that begins at `start`, the one that ranks last on top: the
 * one at `at` sinks to its place.
 */
static void sink(const struct tensor *in, int64_t start, int64_t *heap, int64_t count,
                 int64_t at)
{
    for (;;) {
        int64_t last = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (ranks_before(in, start + heap[last], start + heap[child]))
                last = child;
        if (last == at)
            return;
        int64_t column = heap[at];
        heap[at] = heap[last];
        heap[last] = column;
        at = last;
    }
}

/* The `k` columns of the row that rank first, in order. */
static void pick_first(const struct tensor *in, int64_t start, int64_t columns, int64_t k,
                       int64_t *heap)
{
    for (int64_t c = 0; c < k; c++)
        heap[c] = c;
    for (int64_t at = k / 2 - 1; at >= 0; at--)
        sink(in, start, heap, k, at);
    for (int64_t c = k; k > 0 && c < columns; c++)
        if (ranks_before(in, start + c, start + heap[0])) {
            heap[0] = c;
            sink(in, start, heap, k, 0);
        }
    for (int64_t last = k - 1; last > 0; last--) {
        int64_t column = heap[0];
        heap[0] = heap[last];
        heap[last] = column;
        sink(in, start, heap, last, 0);
    }
}

static bool top_k_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank;
    char text[SHAPE_TEXT_BYTES];
    int64_t k = node_attr_int(call->node, "k", 0);
    if (call->in_count > 1) {
        if (kernel_in(call, 1)->shape.rank != 0)
            return fail(err, INVALID, "k must be scalar, got shape %s",
                        shape_text(&kernel_in(call, 1)->shape, text, sizeof(text)));
        k = tensor_integer(kernel_in(call, 1), 0);
    }
    if (k < 0)
        return fail(err, INVALID, "Need k >= 0, got %lld", (long long)k);
    if (rank < 1)
        return fail(err, INVALID, "input must be >= 1-D, got shape []");
    if (in->shape.dims[rank - 1] < k)
        return fail(err, INVALID, "input must have at least k columns. Had %lld, needed %lld",
                    (long long)in->shape.dims[rank - 1], (long long)k);
    int64_t columns = in->shape.dims[rank - 1];
    struct shape shape = in->shape;
    shape.dims[rank - 1] = k;
    struct tensor *values = kernel_output(call, 0, &shape, err);
    struct tensor *indices = values ? kernel_output(call, 1, &shape, err) : NULL;
    int64_t *best = indices ? kernel_scratch(call, (size_t)k * sizeof(*best) + 1, err) : NULL;
    if (!best)
        return false;
    int64_t rows = kernel_span(&in->shape, 0, rank - 1);
    for (int64_t r = 0; r < rows; r++) {
        int64_t start = r * columns;
        pick_first(in, start, columns, k, best);
        for (int64_t i = 0; i < k; i++) {
            kernel_copy(values, r * k + i, in, start + best[i], 1);
            set_integer(indices, r * k + i, best[i]);
        }
    }
    return true;
}

/* Ties at the border count as in; a target or a score that is not finite is not. */
static bool in_top_k(const float *row, int64_t classes, int64_t target, int64_t k)
{
    int64_t before = 0;
    if (target < 0 || target >= classes || !isfinite(row[target]))
        return false;
    for (int64_t c = 0; c < classes; c++) {
        if (!isfinite(row[c]))
            return false;
        before += row[c] > row[target];
        if (before > k)
            break;
    }
    return before < k;
}

static bool in_top_k_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *scores = kernel_in(call, 0), *targets = kernel_in(call, 1);
    int64_t k = node_attr_int(call->node, "k", 0);
    char text[SHAPE_TEXT_BYTES];
    if (scores->shape.rank != 2)
        return fail(err, INVALID, "predictions must be 2-dimensional");
    if (targets->shape.rank != 1)
        return fail(err, INVALID, "targets must be 1-dimensional");
    if (targets->count != scores->shape.dims[0])
        return fail(err, INVALID,
                    "First dimension of predictions %lld must match length of "
                    "targets %lld",
                    (long long)scores->shape.dims[0], (long long)targets->count);
    if (call->in_count > 2) {
        if (kernel_in(call, 2)->shape.rank != 0)
            return fail(err, INVALID, "k must be 0-D, got shape %s",
                        shape_text(&kernel_in(call, 2)->shape, text, sizeof(text)));
        k = tensor_integer(kernel_in(call, 2), 0);
    }
    struct tensor *out = kernel_output(call, 0, &targets->shape, err);
    if (!out)
        return false;
    int64_t classes = scores->shape.dims[1];
    for (int64_t r = 0; r < targets->count; r++)
        ((bool *)out->data)[r] =
            in_top_k(tensor_f32(scores) + r * classes, classes, tensor_integer(targets, r), k);
    return true;
}

#define SETS(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_unique_ref =
    SETS("Unique", DTYPES_REAL | BIT(BOOL) | BIT(STRING), unique_run);
const struct kernel kernel_unique_with_counts_ref =
    SETS("UniqueWithCounts", DTYPES_REAL | BIT(BOOL) | BIT(STRING), unique_run);
const struct kernel kernel_unique_v2_ref =
    SETS("UniqueV2", DTYPES_REAL | BIT(BOOL) | BIT(STRING), unique_run);
const struct kernel kernel_unique_with_counts_v2_ref =
    SETS("UniqueWithCountsV2", DTYPES_REAL | BIT(BOOL) | BIT(STRING), unique_run);
const struct kernel kernel_list_diff_ref =
    SETS("ListDiff", DTYPES_REAL | BIT(STRING), list_diff_run);
const struct kernel kernel_top_k_v2_ref = SETS("TopKV2", DTYPES_REAL, top_k_run);
const struct kernel kernel_top_k_ref = SETS("TopK", DTYPES_REAL, top_k_run);
const struct kernel kernel_in_top_k_ref = SETS("InTopK", 0, in_top_k_run);
const struct kernel kernel_in_top_k_v2_ref = SETS("InTopKV2", 0, in_top_k_run);
