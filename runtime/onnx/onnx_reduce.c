/* onnx_reduce.c - along axes: sums, means, softmax, the greatest and its place. */

#include "runtime/onnx/internal.h"

/* The axes as the ordered dimensions are numbered when channels come first. */
static bool axes_first(int rank, const int64_t *axes, int count, bool keep, int64_t *out)
{
    bool channels = false;
    for (int i = 0; i < count; i++) {
        channels = channels || axes[i] == rank - 1;
        out[i] = !axes[i] ? 0 : axes[i] == rank - 1 ? 1 : axes[i] + 1;
    }
    int space = count - channels;
    for (int i = 0; i < count; i++)
        space -= axes[i] == 0;
    /* What is left has the same order either way: no channels, or nothing else. */
    return keep || channels || space == rank - 2;
}

static void reduce(struct onnx *o, bool *first, const char **x, int64_t *axes, int *count)
{
    int rank = onnx_shape(o, 0)->rank;
    bool keep = node_attr_bool(o->node, "keep_dims", false);
    int64_t turned[LIMIT_TENSOR_RANK];
    *first = false;
    *x = "";
    if (!onnx_constant_ints(o, 1, axes, LIMIT_TENSOR_RANK, count))
        return;
    for (int i = 0; i < *count && rank >= 0; i++)
        axes[i] = onnx_axis(o, axes[i], rank);
    *first = onnx_is_first(o, 0) && rank >= 3 && axes_first(rank, axes, *count, keep, turned);
    if (*first)
        memcpy(axes, turned, (size_t)*count * sizeof(*axes));
    *x = *first ? onnx_in_first(o, 0) : onnx_in(o, 0);
}

static void convert_reduce(struct onnx *o)
{
    const struct onnx_row *row = onnx_row_of(o);
    bool first, keep = node_attr_bool(o->node, "keep_dims", false);
    int64_t axes[LIMIT_TENSOR_RANK];
    const char *x;
    int count;
    reduce(o, &first, &x, axes, &count);
    if (o->failed)
        return;
    if (!count) { /* no axes: nothing is reduced */
        if (first)
            onnx_give_first(o, 0, x);
        else
            onnx_give(o, 0, x);
        return;
    }
    /* The sum takes its axes as an input, the others as an attribute in this version. */
    if (!strcmp(row->to, "ReduceSum"))
        x = onnx_add(o, row->to, ONNX_IN(x, onnx_ints(o, axes, count)),
                     ONNX_ATTRS(ONNX_I("keepdims", keep)));
    else
        x = onnx_add(o, row->to, ONNX_IN(x),
                     ONNX_ATTRS(ONNX_L("axes", axes, count), ONNX_I("keepdims", keep)));
    if (first && keep)
        onnx_give_first(o, 0, x);
    else
        onnx_give(o, 0, x);
}

/* ONNX finds the greatest of numbers only. */
static void convert_any(struct onnx *o)
{
    int64_t axes[LIMIT_TENSOR_RANK];
    int count;
    bool keep = node_attr_bool(o->node, "keep_dims", false);
    if (!onnx_constant_ints(o, 1, axes, LIMIT_TENSOR_RANK, &count))
        return;
    const char *x = onnx_in(o, 0);
    if (count)
        x = onnx_cast(
            o,
            onnx_add(o, onnx_row_of(o)->to, ONNX_IN(onnx_cast(o, x, I32)),
                     ONNX_ATTRS(ONNX_L("axes", axes, count), ONNX_I("keepdims", keep))),
            BOOL);
    onnx_give(o, 0, x);
}

static void convert_softmax(struct onnx *o)
{
    onnx_give(o, 0,
              onnx_add(o, onnx_row_of(o)->to, ONNX_IN(onnx_in(o, 0)),
                       ONNX_ATTRS(ONNX_I("axis", -1))));
}

static void convert_arg(struct onnx *o)
{
    int64_t axis;
    int count;
    if (!onnx_constant_ints(o, 1, &axis, 1, &count) || count != 1)
        return;
    const char *x = onnx_add(o, onnx_row_of(o)->to, ONNX_IN(onnx_in(o, 0)),
                             ONNX_ATTRS(ONNX_I("axis", axis), ONNX_I("keepdims", 0)));
    enum dtype dtype = dtype_base(o->node->output_types[0]);
    onnx_give(o, 0, dtype == I64 ? x : onnx_cast(o, x, dtype));
}

static void convert_top(struct onnx *o)
{
    int64_t k;
    int count;
    if (!onnx_constant_ints(o, 1, &k, 1, &count) || count != 1)
        return;
    const char **both = onnx_add_outputs(o, "TopK", ONNX_IN(onnx_in(o, 0), onnx_ints(o, &k, 1)),
                                         2, ONNX_ATTRS(ONNX_I("axis", -1)));
    onnx_give(o, 0, both[0]);
    onnx_give(o, 1, onnx_cast(o, both[1], dtype_base(o->node->output_types[1])));
}

static void convert_cumsum(struct onnx *o)
{
    int64_t axis;
    int count;
    if (!onnx_constant_ints(o, 1, &axis, 1, &count) || count != 1)
        return;
    const char *x =
        onnx_add(o, "CumSum", ONNX_IN(onnx_in(o, 0), onnx_number(o, I64, (double)axis)),
                 ONNX_ATTRS(ONNX_I("exclusive", node_attr_bool(o->node, "exclusive", false)),
                            ONNX_I("reverse", node_attr_bool(o->node, "reverse", false))));
    onnx_give(o, 0, x);
}

const struct onnx_row onnx_reduce_rows[] = {
    {"All", convert_any, "ReduceMin"},       {"Any", convert_any, "ReduceMax"},
    {"ArgMax", convert_arg, "ArgMax"},       {"ArgMin", convert_arg, "ArgMin"},
    {"Cumsum", convert_cumsum, NULL},        {"LogSoftmax", convert_softmax, "LogSoftmax"},
    {"Max", convert_reduce, "ReduceMax"},    {"Mean", convert_reduce, "ReduceMean"},
    {"Min", convert_reduce, "ReduceMin"},    {"Prod", convert_reduce, "ReduceProd"},
    {"Softmax", convert_softmax, "Softmax"}, {"Sum", convert_reduce, "ReduceSum"},
    {"TopKV2", convert_top, NULL},           {NULL, NULL, NULL}};
