/*
 * ctc_loss.c - CTCLoss: how unlikely the labels of an example are, over all ways to spread them
 * over its frames, and the gradient.
 *
 * A way goes through the labels with blanks between and around them, one place a frame: it may
 * stay, go on, or pass over a blank between different labels.  `forward` and `backward` have
 * the logarithm of what all ways up to a place, and from behind it, are worth.
 */

#include <math.h>

#include "base/limits.h"
#include "kernels/ref/doubles.h"
#include "kernels/ref/sparse.h"

struct loss {
    int64_t steps, batch, classes;
    bool collapse, merge, ignore; /* the attributes */
    const double *x;              /* (steps, batch, classes) */
    const int32_t *lengths;       /* (batch) */
    struct sparse labels;
    double *losses, *grads;
    /* Of the example in work: */
    int64_t b, length;
    int64_t *places, places_count; /* labels with blanks, 2 n + 1 of them */
    double *p, *log_p;             /* (length, classes) */
    double *forward, *backward;    /* (length, places_count) */
    double *sums;                  /* (classes) */
};

static double log_add(double a, double b)
{
    if (a == -INFINITY)
        return b;
    if (b == -INFINITY)
        return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* --- what comes in --- */

static bool read_labels(struct kernel_call *call, struct loss *l, struct error *err)
{
    const struct tensor *index = kernel_in(call, 1), *values = kernel_in(call, 2);
    if (index->shape.rank != 2)
        return fail(err, INVALID, "labels_indices is not a matrix");
    if (values->shape.rank != 1)
        return fail(err, INVALID, "labels_values is not a vector");
    if (index->shape.dims[1] != 2)
        return fail(err, INVALID, "Order length must be SparseTensor rank.");
    if (index->shape.dims[0] != values->count)
        return fail(err, INVALID,
                    "labels_indices and labels_values must contain the same number of rows");
    l->labels = (struct sparse){
        .index = index->data, .values = values, .count = values->count, .rank = 2};
    int64_t longest = 0; /* what TensorFlow takes for the second dimension */
    for (int64_t i = 0; i < l->labels.count; i++)
        if (kernel_sparse_at(&l->labels, i)[1] >= longest)
            longest = kernel_sparse_at(&l->labels, i)[1] + 1;
    for (int64_t i = 0; i < l->labels.count; i++) {
        const int64_t *at = kernel_sparse_at(&l->labels, i);
        bool inside = at[0] >= 0 && at[0] < l->batch && at[1] >= 0;
        int order = i ? kernel_sparse_compare(at - 2, at, 2) : -1;
        char row[64];
        snprintf(row, sizeof(row), "[%lld,%lld]", (long long)at[0], (long long)at[1]);
        if (!inside)
            return fail(err, INVALID,
                        "label SparseTensor is not valid: indices[%lld] = %s is out of bounds: "
                        "need 0 <= index < [%lld,%lld]",
                        (long long)i, row, (long long)l->batch, (long long)longest);
        if (order >= 0) {
            (void)kernel_fail_order(err, i, row, order == 0);
            return error_prefix(err, "label SparseTensor is not valid: ");
        }
    }
    return true;
}

static bool read_all(struct kernel_call *call, struct loss *l, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *lengths = kernel_in(call, 3);
    if (x->shape.rank != 3)
        return fail(err, INVALID, "inputs is not a 3-Tensor");
    if (lengths->shape.rank != 1)
        return fail(err, INVALID, "sequence_length is not a vector");
    *l = (struct loss){
        .steps = x->shape.dims[0],
        .batch = x->shape.dims[1],
        .classes = x->shape.dims[2],
        .lengths = lengths->data,
        .collapse = node_attr_bool(call->node, "preprocess_collapse_repeated", false),
        .merge = node_attr_bool(call->node, "ctc_merge_repeated", true),
        .ignore = node_attr_bool(call->node, "ignore_longer_outputs_than_inputs", false)};
    if (x->count == 0)
        return fail(err, INVALID, "inputs is empty: steps, examples and classes must not be 0");
    if (lengths->count != l->batch)
        return fail(err, INVALID,
                    "len(sequence_length) != batch_size.  len(sequence_length):  %lld "
                    "batch_size: %lld",
                    (long long)lengths->count, (long long)l->batch);
    if (!read_labels(call, l, err))
        return false;
    for (int64_t b = 0; b < l->batch; b++)
        if (l->lengths[b] > l->steps)
            return fail(err, INVALID, "sequence_length(%lld) <= %lld", (long long)b,
                        (long long)l->steps);
        else if (l->lengths[b] < 0)
            return fail(err, INVALID, "seq_len(%lld) < 0", (long long)b);
    l->x = kernel_doubles_load(call, 0, err);
    return l->x;
}

/* --- one example --- */

/* Puts the labels [from, to) between blanks; a label that is no class ends them. */
static bool place_labels(struct loss *l, int64_t from, int64_t to, struct error *err)
{
    const int32_t *values = l->labels.values->data;
    int64_t blank = l->classes - 1, count = 0;
    bool ended = false;
    for (int64_t i = from; i < to; i++) {
        if (l->collapse && i > from && values[i] == values[i - 1])
            continue;
        if (values[i] < 0)
            return fail(err, INVALID, "All labels must be nonnegative integers, batch: %lld",
                        (long long)l->b);
        if (ended && values[i] < blank)
            return fail(err, INVALID,
                        "Saw a non-null label (index >= num_classes - 1) following a null "
                        "label, batch: %lld num_classes: %lld",
                        (long long)l->b, (long long)l->classes);
        ended |= values[i] >= blank;
        if (ended)
            continue;
        l->places[count++] = blank;
        l->places[count++] = values[i];
    }
    l->places[count++] = blank;
    l->places_count = count;
    return true;
}

static void softmax(struct loss *l)
{
    for (int64_t t = 0; t < l->length; t++) {
        const double *x = l->x + (t * l->batch + l->b) * l->classes;
        double most = x[0], total = 0;
        for (int64_t k = 1; k < l->classes; k++)
            most = x[k] > most ? x[k] : most;
        for (int64_t k = 0; k < l->classes; k++)
            total += exp(x[k] - most);
        for (int64_t k = 0; k < l->classes; k++) {
            l->log_p[t * l->classes + k] = x[k] - most - log(total);
            l->p[t * l->classes + k] = exp(l->log_p[t * l->classes + k]);
        }
    }
}

/* Whether a way may stay at the place, and whether it may come to it from two before. */
static bool may_stay(const struct loss *l, int64_t u)
{
    return l->merge || u % 2 == 0;
}

static bool may_pass(const struct loss *l, int64_t u)
{
    return u % 2 && u > 1 && !(l->merge && l->places[u] == l->places[u - 2]);
}

static void go_forward(struct loss *l)
{
    int64_t n = l->places_count;
    for (int64_t u = 0; u < n; u++)
        l->forward[u] = u < 2 ? l->log_p[l->places[u]] : -INFINITY;
    for (int64_t t = 1; t < l->length; t++) {
        const double *before = l->forward + (t - 1) * n, *log_p = l->log_p + t * l->classes;
        for (int64_t u = 0; u < n; u++) {
            double sum = may_stay(l, u) ? before[u] : -INFINITY;
            if (u > 0)
                sum = log_add(sum, before[u - 1]);
            if (may_pass(l, u))
                sum = log_add(sum, before[u - 2]);
            l->forward[t * n + u] = sum + log_p[l->places[u]];
        }
    }
}

static void go_backward(struct loss *l)
{
    int64_t n = l->places_count;
    for (int64_t u = 0; u < n; u++)
        l->backward[(l->length - 1) * n + u] = u >= n - 2 ? 0 : -INFINITY;
    for (int64_t t = l->length - 2; t >= 0; t--) {
        const double *after = l->backward + (t + 1) * n;
        const double *log_p = l->log_p + (t + 1) * l->classes;
        for (int64_t u = 0; u < n; u++) {
            double sum = may_stay(l, u) ? after[u] + log_p[l->places[u]] : -INFINITY;
            if (u + 1 < n)
                sum = log_add(sum, after[u + 1] + log_p[l->places[u + 1]]);
            if (u + 2 < n && may_pass(l, u + 2))
                sum = log_add(sum, after[u + 2] + log_p[l->places[u + 2]]);
            l->backward[t * n + u] = sum;
        }
    }
}

/* What of each class the ways have, taken from what the frame gives. */
static void set_gradient(struct loss *l, double all)
{
    int64_t n = l->places_count;
    for (int64_t t = 0; t < l->length; t++) {
        double *grad = l->grads + (t * l->batch + l->b) * l->classes;
        for (int64_t k = 0; k < l->classes; k++)
            l->sums[k] = -INFINITY;
        for (int64_t u = 0; u < n; u++)
            l->sums[l->places[u]] =
                log_add(l->sums[l->places[u]], l->forward[t * n + u] + l->backward[t * n + u]);
        for (int64_t k = 0; k < l->classes; k++) {
            grad[k] = l->p[t * l->classes + k];
            if (all != -INFINITY)
                grad[k] -= exp(l->sums[k] - all);
        }
    }
}

/* Where the labels of example `b` end that begin at `from`. */
static int64_t labels_end(const struct loss *l, int64_t b, int64_t from)
{
    while (from < l->labels.count && kernel_sparse_at(&l->labels, from)[0] == b)
        from++;
    return from;
}

/* For the example with the most labels; those with more than there are steps are passed over.
 */
static bool make_room(struct kernel_call *call, struct loss *l, struct error *err)
{
    int64_t most = 0;
    for (int64_t b = 0, from = 0, to; b < l->batch; b++, from = to) {
        to = labels_end(l, b, from);
        most = to - from > most ? to - from : most;
    }
    int64_t listed = 2 * most + 1, n = most < l->steps ? listed : 2 * l->steps + 1;
    int64_t steps = LIMIT_TENSOR_BYTES / (int64_t)sizeof(double) / n;
    if (l->steps > steps)
        return fail(err, EXHAUSTED, "%lld labels over %lld steps, allowed: %lld steps",
                    (long long)most, (long long)l->steps, (long long)steps);
    return (l->places = kernel_scratch(call, (size_t)listed * sizeof(*l->places), err)) &&
           (l->p = kernel_doubles_zeros(call, l->steps * l->classes, err)) &&
           (l->log_p = kernel_doubles_zeros(call, l->steps * l->classes, err)) &&
           (l->forward = kernel_doubles_zeros(call, l->steps * n, err)) &&
           (l->backward = kernel_doubles_zeros(call, l->steps * n, err)) &&
           (l->sums = kernel_doubles_zeros(call, l->classes, err));
}

/* The example whose labels are [from, to). */
static bool run_example(struct loss *l, int64_t from, int64_t to, struct error *err)
{
    l->length = l->lengths[l->b];
    if (from == to)
        return fail(err, INVALID, "Labels length is zero in batch %lld", (long long)l->b);
    if (to - from > l->length && !l->ignore)
        return fail(err, INVALID,
                    "Not enough time for target transition sequence (required: %lld, "
                    "available: %lld)%lldYou can turn this error into a warning by using the "
                    "flag ignore_longer_outputs_than_inputs",
                    (long long)(to - from), (long long)l->length, (long long)l->b);
    if (to - from > l->length)
        l->length = 0; /* the labels are looked at all the same */
    if (!place_labels(l, from, to, err))
        return false;
    if (!l->length)
        return true;
    softmax(l);
    go_forward(l);
    go_backward(l);
    double all = -INFINITY;
    for (int64_t u = 0; u < l->places_count; u++)
        all = log_add(all, l->forward[u] + l->backward[u]);
    l->losses[l->b] = -all;
    set_gradient(l, all);
    return true;
}

static bool loss_run(struct kernel_call *call, struct error *err)
{
    struct loss l = {0};
    if (!read_all(call, &l, err) || !(l.losses = kernel_doubles_zeros(call, l.batch, err)) ||
        !(l.grads = kernel_doubles_zeros(call, l.steps * l.batch * l.classes, err)) ||
        !make_room(call, &l, err))
        return false;
    for (int64_t from = 0, to; l.b < l.batch; l.b++, from = to) {
        to = labels_end(&l, l.b, from);
        if (!run_example(&l, from, to, err))
            return false;
    }
    return kernel_doubles_store(call, 0, &SHAPE(l.batch), l.losses, err) &&
           kernel_doubles_store(call, 1, &SHAPE(l.steps, l.batch, l.classes), l.grads, err);
}

const struct kernel kernel_ctc_loss_ref = {.op = "CTCLoss", .device = CPU, .run = loss_run};
