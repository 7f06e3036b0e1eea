/* reduce.c - sums and other reductions along axes, cumulative sums, segments. */

#include "runtime/ops/internal.h"

static bool infer_reduce(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    bool keep = node_attr_bool(infer->node, "keep_dims", false);
    int64_t axes[LIMIT_TENSOR_RANK];
    int count;
    if (in->rank < 0)
        return true;
    if (!op_infer_values(infer, 1, axes, &count)) {
        if (keep)
            op_infer_rank(infer, 0, in->rank);
        return true;
    }
    uint64_t reduced = 0;
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + in->rank : axes[i];
        if (axis < 0 || axis >= in->rank)
            return true; /* the kernel will say so */
        reduced |= BIT(axis);
    }
    struct shape *out = &infer->outputs[0];
    out->rank = 0;
    for (int d = 0; d < in->rank; d++) {
        if (!(reduced & BIT(d)))
            out->dims[out->rank++] = in->dims[d];
        else if (keep)
            out->dims[out->rank++] = 1;
    }
    return true;
}

#define REDUCE(name_, types_, gradient_)                                                       \
    {                                                                                          \
        .name = name_, .inputs = "input:T reduction_indices:Tidx", .outputs = "output:T",      \
        .attrs = "keep_dims:bool=false T:" types_ " Tidx:{int32,int64}=int32",                 \
        .infer = infer_reduce, .gradient = gradient_,                                          \
    }
#define REDUCE_BOOL(name_)                                                                     \
    {                                                                                          \
        .name = name_, .inputs = "input:bool reduction_indices:Tidx",                          \
        .outputs = "output:bool", .attrs = "keep_dims:bool=false Tidx:{int32,int64}=int32",    \
        .infer = infer_reduce, .no_gradient = true,                                            \
    }

/* The gradient spread over all elements that were summed into one. */
static struct edge spread(struct gradient *g, struct edge grad)
{
    struct edge x = gradient_x(g, 0);
    if (!node_attr_bool(g->node, "keep_dims", false))
        grad = op_call2(g, "Reshape", grad, op_kept_shape(g, x, gradient_x(g, 1)));
    return op_call2(g, "BroadcastTo", grad, op_shape_of(g, x));
}

static bool sum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, spread(g, g->of_outputs[0]));
}

static bool mean_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge parts =
        op_call2(g, "Maximum", op_call1(g, "Size", gradient_y(g, 0)), op_int(g, 1));
    struct edge each = op_call2(g, "FloorDiv", op_call1(g, "Size", gradient_x(g, 0)), parts);
    int type = op_edge_type(dy);
    struct edge divisor = op_call(g, "Cast", INPUTS(each), ATTRS(attr_type("DstT", type)));
    return op_gradient_single(g, op_call2(g, "RealDiv", spread(g, dy), divisor));
}

/* All that are equal to the extreme share its gradient. */
static bool extreme_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), axes = gradient_x(g, 1), dy = g->of_outputs[0];
    struct edge kept = op_kept_shape(g, x, axes);
    struct edge y = op_call2(g, "Reshape", gradient_y(g, 0), kept);
    int type = op_edge_type(x);
    struct edge chosen =
        op_call(g, "Cast", INPUTS(op_call2(g, "Equal", y, x)), ATTRS(attr_type("DstT", type)));
    struct edge count = op_call2(g, "Reshape", op_call2(g, "Sum", chosen, axes), kept);
    struct edge share = op_call2(g, "RealDiv", chosen, count);
    return op_gradient_single(g, op_call2(g, "Mul", share, op_call2(g, "Reshape", dy, kept)));
}

/* With the reduced axes in front as (reduced, others): the product of all but one, by
 * cumulative products from both sides, which is right even where elements are zero. */
static bool prod_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), axes = gradient_x(g, 1);
    struct edge shape = op_shape_of(g, x), rank = op_call1(g, "Rank", x);
    if (op_edge_type(axes) == I64)
        axes = op_call(g, "Cast", INPUTS(axes), ATTRS(attr_type("DstT", I32)));
    axes = op_call2(g, "Reshape", axes, op_ints(g, (const int64_t[]){-1}, 1));
    axes = op_call2(g, "FloorMod", op_call2(g, "AddV2", axes, rank), rank);
    struct edge all = op_call3(g, "Range", op_int(g, 0), rank, op_int(g, 1));
    struct edge others = op_call2(g, "ListDiff", all, axes);
    struct edge order =
        op_call(g, "ConcatV2", INPUTS(axes, others, op_int(g, 0)), ATTRS(attr_int("N", 2)));
    struct edge permuted = op_call2(g, "Transpose", x, order);
    struct edge permuted_shape = op_shape_of(g, permuted);
    struct edge zero = op_ints(g, (const int64_t[]){0}, 1);
    struct edge reduced_count =
        op_call2(g, "Prod", op_call3(g, "GatherV2", shape, axes, op_int(g, 0)), zero);
    struct edge others_count =
        op_call2(g, "Prod", op_call3(g, "GatherV2", shape, others, op_int(g, 0)), zero);
    struct edge flat_shape =
        op_call(g, "Pack", INPUTS(reduced_count, others_count), ATTRS(attr_int("N", 2)));
    struct edge flat = op_call2(g, "Reshape", permuted, flat_shape);
    struct edge left =
        op_call(g, "Cumprod", INPUTS(flat, op_int(g, 0)), ATTRS(attr_bool("exclusive", true)));
    struct edge right =
        op_call(g, "Cumprod", INPUTS(flat, op_int(g, 0)),
                ATTRS(attr_bool("exclusive", true), attr_bool("reverse", true)));
    struct edge rest = op_call2(g, "Mul", op_conjugate(g, left), op_conjugate(g, right));
    struct edge back = op_call2(g, "Transpose", op_call2(g, "Reshape", rest, permuted_shape),
                                op_call1(g, "InvertPermutation", order));
    return op_gradient_single(g, op_call2(g, "Mul", spread(g, g->of_outputs[0]), back));
}

/* All that can be compared, quantised numbers too; the brace is closed by who uses it. */
#define OP_ORDERED                                                                             \
    "{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64,qint8,"     \
    "quint8,qint32,qint16,quint16"

const struct op op_sum = REDUCE("Sum", OP_NUMBER, sum_gradient);
const struct op op_mean = REDUCE("Mean", OP_NUMBER, mean_gradient);
const struct op op_prod = REDUCE("Prod", OP_NUMBER, prod_gradient);
const struct op op_max = REDUCE("Max", OP_ORDERED "}", extreme_gradient);
const struct op op_min = REDUCE("Min", OP_ORDERED "}", extreme_gradient);
const struct op op_all = REDUCE_BOOL("All");
const struct op op_any = REDUCE_BOOL("Any");

static bool infer_arg(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t axis;
    if (in->rank < 1)
        return true;
    if (!op_infer_value(infer, 1, &axis)) {
        op_infer_rank(infer, 0, in->rank - 1);
        return true;
    }
    axis += axis < 0 ? in->rank : 0;
    infer->outputs[0].rank = 0;
    for (int d = 0; d < in->rank; d++)
        if (d != axis && infer->outputs[0].rank < in->rank - 1)
            infer->outputs[0].dims[infer->outputs[0].rank++] = in->dims[d];
    return true;
}

#define ARGUMENT(name_, axes_, places_)                                                        \
    {                                                                                          \
        .name = name_, .inputs = "input:T dimension:Tidx", .outputs = "output:output_type",    \
        .attrs = "T:" OP_ORDERED ",bool} Tidx:" axes_ "=int32 output_type:" places_ "=int64",  \
        .infer = infer_arg, .no_gradient = true,                                               \
    }

const struct op op_arg_max =
    ARGUMENT("ArgMax", "{int16,int32,int64}", "{int16,uint16,int32,int64}");
const struct op op_arg_min = ARGUMENT("ArgMin", OP_INDEX, OP_INDEX);

static bool l2_loss_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call2(g, "Mul", gradient_x(g, 0), g->of_outputs[0]));
}

const struct op op_l2_loss = {
    .name = "L2Loss",
    .inputs = "t:T",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT,
    .infer = op_infer_scalar,
    .gradient = l2_loss_gradient,
};

static struct edge cumulate_back(struct gradient *g, struct edge x)
{
    bool exclusive = node_attr_bool(g->node, "exclusive", false);
    bool reverse = node_attr_bool(g->node, "reverse", false);
    return op_call(g, "Cumsum", INPUTS(x, gradient_x(g, 1)),
                   ATTRS(attr_bool("exclusive", exclusive), attr_bool("reverse", !reverse)));
}

static bool cumsum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, cumulate_back(g, g->of_outputs[0]));
}

static bool cumprod_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge weighted = op_call2(g, "Mul", gradient_y(g, 0), g->of_outputs[0]);
    struct edge sums = cumulate_back(g, weighted);
    return op_gradient_single(g, op_call2(g, "DivNoNan", sums, gradient_x(g, 0)));
}

#define CUMULATE(name_, gradient_)                                                             \
    {                                                                                          \
        .name = name_, .inputs = "x:T axis:Tidx", .outputs = "out:T",                          \
        .attrs = "exclusive:bool=false reverse:bool=false T:" OP_NUMBER                        \
                 " Tidx:{int32,int64}=int32",                                                  \
        .infer = op_infer_unchanged, .gradient = gradient_,                                    \
    }

const struct op op_cumsum = CUMULATE("Cumsum", cumsum_gradient);
const struct op op_cumprod = CUMULATE("Cumprod", cumprod_gradient);
