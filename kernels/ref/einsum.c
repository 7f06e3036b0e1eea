/*
 * einsum.c - Einsum: for each element of the result, a sum over the labels that it lacks.
 *
 * Every label has a size and, for each tensor, a step: the sum of the strides of the dimensions
 * that carry it, so that diagonals need nothing special; 0 where it is broadcast or absent.
 */

#include "runtime/einsum.h"
#include "kernels/ref/numbers.h"

enum { TENSORS = EINSUM_INPUTS + 1 }; /* inputs, then the result */

struct loop {
    int64_t size;
    int64_t step[TENSORS];
};

struct sum {
    struct loop kept[EINSUM_LABELS], summed[EINSUM_LABELS];
    int kept_count, summed_count;
    const struct tensor *in[EINSUM_INPUTS];
    int in_count;
    struct tensor *out;
};

/* Adds the dimensions of a tensor to the loops of their labels. */
static bool add_tensor(struct loop *loops, int which, const struct shape *shape,
                       const int *labels, struct error *err)
{
    int64_t stride = 1;
    char text[SHAPE_TEXT_BYTES];
    for (int i = shape->rank - 1; i >= 0; i--) {
        struct loop *loop = &loops[labels[i]];
        int64_t dim = shape->dims[i];
        bool dots = labels[i] >= 52;
        if (loop->size < 0 || (dots && loop->size == 1))
            loop->size = dim;
        else if (loop->size != dim && !(dots && dim == 1))
            return fail(err, INVALID,
                        "Expected dimension %lld at axis %d of the input shaped %s but got "
                        "dimension %lld",
                        (long long)loop->size, i, shape_text(shape, text, sizeof(text)),
                        (long long)dim);
        if (!(dots && dim == 1))
            loop->step[which] += stride;
        stride *= dim;
    }
    return true;
}

/* The next place of the loops; false after the last. */
static bool advance(const struct loop *loops, int count, int64_t *at, int64_t *places)
{
    for (int i = count - 1; i >= 0; i--) {
        for (int t = 0; t < TENSORS; t++)
            places[t] += loops[i].step[t];
        if (++at[i] < loops[i].size)
            return true;
        for (int t = 0; t < TENSORS; t++)
            places[t] -= loops[i].step[t] * loops[i].size;
        at[i] = 0;
    }
    return false;
}

static void sum_real(const struct sum *s, const int64_t *from)
{
    kernel_load *load = kernel_load_for(s->out->dtype);
    int64_t at[EINSUM_LABELS] = {0}, places[TENSORS];
    memcpy(places, from, sizeof(places));
    double sum = 0;
    do {
        double value = load(s->in[0]->data, places[0]);
        sum += s->in_count == 2 ? value * load(s->in[1]->data, places[1]) : value;
    } while (advance(s->summed, s->summed_count, at, places));
    kernel_store_for(s->out->dtype)(s->out->data, from[EINSUM_INPUTS], sum);
}

static void sum_integers(const struct sum *s, const int64_t *from)
{
    kernel_load_bits *load = kernel_load_bits_for(s->out->dtype);
    int64_t at[EINSUM_LABELS] = {0}, places[TENSORS];
    memcpy(places, from, sizeof(places));
    uint64_t sum = 0;
    do {
        uint64_t value = load(s->in[0]->data, places[0]);
        sum += s->in_count == 2 ? value * load(s->in[1]->data, places[1]) : value;
    } while (advance(s->summed, s->summed_count, at, places));
    kernel_store_bits_for(s->out->dtype)(s->out->data, from[EINSUM_INPUTS], sum);
}

static void sum_complex(const struct sum *s, const int64_t *from)
{
    int64_t at[EINSUM_LABELS] = {0}, places[TENSORS];
    memcpy(places, from, sizeof(places));
    double complex sum = 0;
    do {
        double complex value = kernel_complex_at(s->in[0], places[0]);
        sum += s->in_count == 2 ? value * kernel_complex_at(s->in[1], places[1]) : value;
    } while (advance(s->summed, s->summed_count, at, places));
    kernel_set_complex(s->out, from[EINSUM_INPUTS], sum);
}

/* One vector of products, the common case in float, without a call for each element. */
static void sum_floats(const struct sum *s, const int64_t *from)
{
    const struct loop *last = &s->summed[s->summed_count - 1];
    int64_t at[EINSUM_LABELS] = {0}, places[TENSORS];
    memcpy(places, from, sizeof(places));
    double sum = 0;
    do {
        const float *a = tensor_f32(s->in[0]) + places[0];
        const float *b = tensor_f32(s->in[1]) + places[1];
        for (int64_t i = 0; i < last->size; i++)
            sum += (double)a[i * last->step[0]] * (double)b[i * last->step[1]];
    } while (advance(s->summed, s->summed_count - 1, at, places));
    tensor_f32_mut(s->out)[from[EINSUM_INPUTS]] = (float)sum;
}

static void run_sums(const struct sum *s)
{
    int64_t at[EINSUM_LABELS] = {0}, places[TENSORS] = {0};
    uint64_t type = BIT(s->out->dtype);
    bool floats = s->out->dtype == F32 && s->in_count == 2 && s->summed_count;
    do {
        if (floats)
            sum_floats(s, places);
        else if (type & DTYPES_COMPLEX)
            sum_complex(s, places);
        else if (type & DTYPES_INTEGER)
            sum_integers(s, places);
        else
            sum_real(s, places);
    } while (advance(s->kept, s->kept_count, at, places));
}

/* The loops by label, and the shape of the result. */
static bool make_loops(const struct kernel_call *call, const struct einsum *e,
                       struct loop *loops, struct shape *shape, int *out_labels,
                       struct error *err)
{
    int dots = 0, labels[LIMIT_TENSOR_RANK];
    for (int i = 0; i < EINSUM_LABELS; i++)
        loops[i] = (struct loop){.size = -1};
    for (int k = 0; k < e->inputs_count; k++) {
        int rank = einsum_dots_rank(&e->inputs[k], kernel_in(call, k)->shape.rank);
        dots = rank > dots ? rank : dots;
    }
    for (int k = 0; k < e->inputs_count; k++) {
        const struct shape *in = &kernel_in(call, k)->shape;
        if (!einsum_expand(&e->inputs[k], k, in->rank, dots, labels, err) ||
            !add_tensor(loops, k, in, labels, err))
            return false;
    }
    int out_dots = e->output.dots >= 0 ? dots : 0;
    shape->rank = e->output.count + out_dots;
    if (shape->rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "Einsum: the result would have %d dimensions", shape->rank);
    if (!einsum_expand(&e->output, 0, shape->rank, out_dots, out_labels, err))
        return false;
    for (int i = 0; i < shape->rank; i++)
        shape->dims[i] = loops[out_labels[i]].size;
    return add_tensor(loops, EINSUM_INPUTS, shape, out_labels, err);
}

static bool einsum_run(struct kernel_call *call, struct error *err)
{
    struct einsum e;
    struct shape shape;
    struct loop loops[EINSUM_LABELS];
    int out_labels[LIMIT_TENSOR_RANK];
    if (!einsum_parse(node_attr_string(call->node, "equation", ""), call->in_count, &e, err) ||
        !make_loops(call, &e, loops, &shape, out_labels, err))
        return false;
    struct sum s = {.in_count = call->in_count};
    for (int k = 0; k < call->in_count; k++)
        s.in[k] = kernel_in(call, k);
    s.out = kernel_output(call, 0, &shape, err);
    if (!s.out)
        return false;
    memset(s.out->data, 0, tensor_bytes(s.out));
    bool empty = false;
    for (int i = 0; i < EINSUM_LABELS; i++) {
        bool kept = false;
        for (int k = 0; k < shape.rank; k++)
            kept = kept || out_labels[k] == i;
        empty = empty || loops[i].size == 0;
        if (loops[i].size >= 0 && kept)
            s.kept[s.kept_count++] = loops[i];
        else if (loops[i].size >= 0)
            s.summed[s.summed_count++] = loops[i];
    }
    if (!empty)
        run_sums(&s);
    return true;
}

const struct kernel kernel_einsum_ref = {
    .op = "Einsum",
    .device = CPU,
    .dtypes = DTYPES_FLOAT | DTYPES_COMPLEX | BIT(I32) | BIT(I64),
    .run = einsum_run,
};
