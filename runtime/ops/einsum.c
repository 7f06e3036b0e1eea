/* einsum.c - Einsum, its shapes and its gradient. */

#include "runtime/einsum.h"
#include "runtime/ops/internal.h"

/* --- shapes --- */

static int max_dots(const struct infer *infer, const struct einsum *e)
{
    int most = 0;
    for (int k = 0; k < e->inputs_count; k++) {
        int dots = infer->inputs[k].rank < 0
                       ? -1
                       : einsum_dots_rank(&e->inputs[k], infer->inputs[k].rank);
        if (dots < 0)
            return -1;
        most = dots > most ? dots : most;
    }
    return most;
}

/* Notes the sizes of an input's labels; of "..." the one that is not 1. */
static bool note(const struct shape *shape, const int *labels, int64_t *sizes,
                 struct error *err)
{
    for (int i = 0; i < shape->rank; i++) {
        int64_t *size = &sizes[labels[i]];
        int64_t dim = shape->dims[i];
        if (*size < 0 || (labels[i] >= 52 && *size == 1))
            *size = dim;
        else if (dim >= 0 && *size != dim && !(labels[i] >= 52 && dim == 1))
            return fail(err, INVALID, "Einsum: a label has the size %lld and the size %lld",
                        (long long)*size, (long long)dim);
    }
    return true;
}

static bool einsum_infer(struct infer *infer, struct error *err)
{
    struct einsum e;
    int labels[LIMIT_TENSOR_RANK];
    int64_t sizes[EINSUM_LABELS];
    if (!einsum_parse(node_attr_string(infer->node, "equation", ""), infer->node->inputs_count,
                      &e, err))
        return false;
    int dots = max_dots(infer, &e);
    if (dots < 0 && e.output.dots >= 0)
        return true;
    for (int i = 0; i < EINSUM_LABELS; i++)
        sizes[i] = -1;
    for (int k = 0; k < e.inputs_count; k++)
        if (infer->inputs[k].rank >= 0 &&
            (!einsum_expand(&e.inputs[k], k, infer->inputs[k].rank, dots < 0 ? 0 : dots, labels,
                            err) ||
             !note(&infer->inputs[k], labels, sizes, err)))
            return false;
    int rank = e.output.count + (e.output.dots >= 0 ? dots : 0);
    if (rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "Einsum: the result would have %d dimensions", rank);
    if (!einsum_expand(&e.output, 0, rank, e.output.dots >= 0 ? dots : 0, labels, err))
        return false;
    op_infer_rank(infer, 0, rank);
    for (int i = 0; i < rank; i++)
        infer->outputs[0].dims[i] = sizes[labels[i]];
    return true;
}

/* --- gradient --- */

static bool holds(const struct einsum_term *term, int label)
{
    for (int i = 0; term && i < term->count; i++)
        if (term->labels[i] == label)
            return true;
    return false;
}

static void add_label(struct einsum_term *term, int label)
{
    if (!holds(term, label))
        term->labels[term->count++] = label;
}

/* "...abc": appends a term's text. */
static size_t write_term(char *out, const struct einsum_term *term)
{
    size_t size = 0;
    for (int i = 0; i <= term->count; i++) {
        if (i == term->dots) {
            memcpy(out + size, "...", 3);
            size += 3;
        }
        if (i < term->count)
            out[size++] = (char)(term->labels[i] < 26 ? 'a' + term->labels[i]
                                                      : 'A' + term->labels[i] - 26);
    }
    return size;
}

static struct edge call(struct gradient *g, const struct einsum_term *a,
                        const struct einsum_term *b, const struct einsum_term *out,
                        struct edge x, struct edge y)
{
    char text[3 * (LIMIT_TENSOR_RANK + 3) + 8];
    size_t size = write_term(text, a);
    if (b) {
        text[size++] = ',';
        size += write_term(text + size, b);
    }
    text[size++] = '-';
    text[size++] = '>';
    size += write_term(text + size, out);
    text[size] = 0;
    const struct attr equation = attr_string("equation", text);
    const struct edge edges[] = {x, y};
    return op_call(g, "Einsum", edges, b ? 2 : 1, &equation, 1);
}

/*
 * The gradient of the input of term `x`, the other being `y` (NULL: there is none).
 *
 * First the labels that the result or the other input has, "..." in front: the result's
 * gradient times the other input.  What "..." was broadcast to is summed.  Then those that were
 * summed over in x alone: spread out by ones.  Last, in x's order, diagonals spread out.
 */
static struct edge gradient_of(struct gradient *g, const struct einsum *e, int index)
{
    const struct einsum_term *x = &e->inputs[index];
    const struct einsum_term *y = e->inputs_count == 2 ? &e->inputs[1 - index] : NULL;
    struct edge x_edge = gradient_x(g, index);
    struct einsum_term known = {.dots = x->dots >= 0 ? 0 : -1}, alone = {.dots = -1};
    for (int i = 0; i < x->count; i++) {
        bool seen = holds(&e->output, x->labels[i]) || holds(y, x->labels[i]);
        add_label(seen ? &known : &alone, x->labels[i]);
    }
    struct einsum_term all = known;
    for (int i = 0; i < alone.count; i++)
        all.labels[all.count++] = alone.labels[i];
    bool summed_dots = x->dots >= 0 && e->output.dots < 0 && !(y && y->dots >= 0);
    if (summed_dots)
        known.dots = -1;

    struct edge grad = y ? call(g, &e->output, y, &known, g->of_outputs[0],
                                op_conjugate(g, gradient_x(g, 1 - index)))
                         : call(g, &e->output, NULL, &known, g->of_outputs[0], OP_NO_EDGE);
    if (x->dots >= 0 && !summed_dots) {
        struct edge shape = op_shape_of(g, call(g, x, NULL, &known, x_edge, OP_NO_EDGE));
        struct edge axes = op_call2(g, "BroadcastGradientArgs", shape, op_shape_of(g, grad));
        grad = op_unbroadcast(g, grad, axes, shape);
    }
    if (summed_dots || alone.count) {
        if (summed_dots)
            alone.dots = 0;
        struct edge ones =
            op_call1(g, "OnesLike", call(g, x, NULL, &alone, x_edge, OP_NO_EDGE));
        return call(g, &known, &alone, x, grad, ones);
    }
    return call(g, &known, NULL, x, grad, OP_NO_EDGE);
}

static bool einsum_gradient(struct gradient *g, struct error *err)
{
    struct einsum e;
    if (!einsum_parse(node_attr_string(g->node, "equation", ""), g->node->inputs_count, &e,
                      err))
        return false;
    for (int k = 0; k < e.inputs_count; k++)
        g->of_inputs[k] = gradient_of(g, &e, k);
    return true;
}

const struct op op_einsum = {
    .name = "Einsum",
    .inputs = "inputs:N*T",
    .outputs = "output:T",
    .attrs = "equation:string N:int>=1 T:type",
    .flags = OP_EXPENSIVE,
    .infer = einsum_infer,
    .gradient = einsum_gradient,
};
