/* sparse_edit.c - how many changes make one sequence of the other (Levenshtein). */

#include "kernels/ref/sparse.h"

#include <math.h>

/* The values of a sequence: those from `begin` to `end`. */
struct sequence {
    const struct sparse *in;
    int64_t begin, end;
};

static bool same_value(const struct tensor *a, int64_t i, const struct tensor *b, int64_t j)
{
    if (a->dtype == STRING) {
        const struct tensor_string *x = tensor_strings(a) + i, *y = tensor_strings(b) + j;
        return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
    if (kernel_load_bits_for(a->dtype)) {
        kernel_load_bits *load = kernel_load_bits_for(a->dtype);
        return load(a->data, i) == load(b->data, j);
    }
    return kernel_complex_at(a, i) == kernel_complex_at(b, j);
}

/* `row` has room for one more than the second sequence has values. */
static int64_t distance(const struct sequence *a, const struct sequence *b, int64_t *row)
{
    int64_t columns = b->end - b->begin;
    for (int64_t j = 0; j <= columns; j++)
        row[j] = j;
    for (int64_t i = a->begin; i < a->end; i++) {
        int64_t corner = row[0]++;
        for (int64_t j = 0; j < columns; j++) {
            int64_t changed =
                corner + !same_value(a->in->values, i, b->in->values, b->begin + j);
            int64_t shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            corner = row[j + 1];
            row[j + 1] = changed < shorter ? changed : shorter;
        }
    }
    return row[columns];
}

/* The next sequence: all values that agree in all places but the last. */
static struct sequence next(const struct sparse *in, int64_t begin)
{
    struct sequence s = {in, begin, begin};
    while (s.end < in->count &&
           kernel_sparse_compare(kernel_sparse_at(in, begin), kernel_sparse_at(in, s.end),
                                 in->rank - 1) == 0)
        s.end++;
    return s;
}

static bool check(const struct sparse *hypothesis, const struct sparse *truth,
                  struct shape *shape, struct error *err)
{
    if (hypothesis->rank != truth->rank)
        return fail(err, INVALID,
                    "Expected truth_shape and hypothesis_shape of equal length: "
                    "%d and %d",
                    truth->rank, hypothesis->rank);
    if (truth->rank < 2)
        return fail(err, INVALID,
                    "Input SparseTensors must have rank at least 2, but truth_shape "
                    "rank is: %d",
                    truth->rank);
    char text[SHAPE_TEXT_BYTES];
    *shape = (struct shape){.rank = truth->rank - 1};
    for (int d = 0; d < shape->rank; d++)
        shape->dims[d] =
            hypothesis->dims[d] > truth->dims[d] ? hypothesis->dims[d] : truth->dims[d];
    if (shape_count(shape) < 0)
        return fail(err, INVALID, "the output would have too many elements");
    if (shape_count(shape) == 0)
        return fail(err, INVALID, "Got output shape %s which has 0 elements",
                    shape_text(shape, text, sizeof(text)));
    return kernel_sparse_check(hypothesis, err) && kernel_sparse_check(truth, err);
}

static int64_t place_in(const struct shape *shape, const int64_t *place)
{
    int64_t at = 0;
    for (int d = 0; d < shape->rank; d++)
        at = at * shape->dims[d] + place[d];
    return at;
}

static float result(double changes, int64_t truth_length, bool normalize)
{
    if (!normalize)
        return (float)changes;
    if (truth_length == 0)
        return changes > 0 ? INFINITY : 0;
    return (float)changes / (float)truth_length;
}

static bool run(struct kernel_call *call, struct error *err)
{
    bool normalize = node_attr_bool(call->node, "normalize", true);
    struct sparse hypothesis, truth;
    struct shape shape;
    if (!kernel_sparse_in(call, 0, 1, 2, &hypothesis, err) ||
        !kernel_sparse_in(call, 3, 4, 5, &truth, err) ||
        !check(&hypothesis, &truth, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    int64_t *row =
        out ? kernel_scratch(call, (size_t)(hypothesis.count + 1) * sizeof(*row), err) : NULL;
    if (!row)
        return false;
    kernel_zero(out, 0, out->count);
    struct sequence h = next(&hypothesis, 0), t = next(&truth, 0);
    while (h.begin < hypothesis.count || t.begin < truth.count) {
        int order = h.begin >= hypothesis.count ? 1
                    : t.begin >= truth.count
                        ? -1
                        : kernel_sparse_compare(kernel_sparse_at(&hypothesis, h.begin),
                                                kernel_sparse_at(&truth, t.begin), shape.rank);
        const int64_t *place = order <= 0 ? kernel_sparse_at(&hypothesis, h.begin)
                                          : kernel_sparse_at(&truth, t.begin);
        int64_t h_length = order <= 0 ? h.end - h.begin : 0;
        int64_t t_length = order >= 0 ? t.end - t.begin : 0;
        int64_t changes = order == 0 ? distance(&t, &h, row) : h_length + t_length;
        ((float *)out->data)[place_in(&shape, place)] =
            result((double)changes, t_length, normalize);
        if (order <= 0)
            h = next(&hypothesis, h.end);
        if (order >= 0)
            t = next(&truth, t.end);
    }
    return true;
}

const struct kernel kernel_edit_distance_ref = {
    .op = "EditDistance", .device = CPU, .run = run};
