/* tensor_scatter.c - a tensor with slices changed. */

#include "runtime/ops/internal.h"

/* The slices of the gradient that the indices name. */
static struct edge taken(struct gradient *g)
{
    return op_call2(g, "GatherNd", g->of_outputs[0], gradient_x(g, 1));
}

static bool update_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge slices = taken(g);
    g->of_inputs[0] = op_call3(g, "TensorScatterUpdate", g->of_outputs[0], gradient_x(g, 1),
                               op_call1(g, "ZerosLike", slices));
    g->of_inputs[2] = slices;
    return builder_ok(&g->build);
}

static bool add_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = g->of_outputs[0];
    g->of_inputs[2] = taken(g);
    return builder_ok(&g->build);
}

static bool sub_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = g->of_outputs[0];
    g->of_inputs[2] = op_call1(g, "Neg", taken(g));
    return builder_ok(&g->build);
}

static struct edge as_number(struct gradient *g, struct edge flags, enum dtype type)
{
    return op_call(g, "Cast", INPUTS(flags), ATTRS(attr_type("DstT", (int)type)));
}

/* Equal shares among the element and the updates that are the extreme. */
static bool extreme_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), indices = gradient_x(g, 1), updates = gradient_x(g, 2);
    struct edge y = gradient_y(g, 0), dy = g->of_outputs[0];
    enum dtype type = op_edge_type(dy);
    struct edge from_x = as_number(g, op_call2(g, "Equal", y, x), type);
    struct edge won = op_call2(g, "GatherNd", y, indices);
    struct edge from_updates = as_number(g, op_call2(g, "Equal", won, updates), type);
    struct edge winners = op_call3(g, "TensorScatterAdd", from_x, indices, from_updates);
    struct edge share = op_call2(g, "RealDiv", dy, winners);
    g->of_inputs[0] = op_call2(g, "Mul", from_x, share);
    g->of_inputs[2] = op_call2(g, "Mul", from_updates, op_call2(g, "GatherNd", share, indices));
    return builder_ok(&g->build);
}

#define SCATTER(name_, indices_, gradient_)                                                    \
    {                                                                                          \
        .name = name_, .inputs = "tensor:T indices:Tindices updates:T", .outputs = "output:T", \
        .attrs = "T:type Tindices:" indices_ " bad_indices_policy:string=''",                  \
        .infer = op_infer_unchanged, .gradient = gradient_,                                    \
    }

const struct op op_tensor_scatter_update =
    SCATTER("TensorScatterUpdate", "{int16,int32,int64,uint16}", update_gradient);
const struct op op_tensor_scatter_add = SCATTER("TensorScatterAdd", OP_INDEX, add_gradient);
const struct op op_tensor_scatter_sub = SCATTER("TensorScatterSub", OP_INDEX, sub_gradient);
const struct op op_tensor_scatter_max = SCATTER("TensorScatterMax", OP_INDEX, extreme_gradient);
const struct op op_tensor_scatter_min = SCATTER("TensorScatterMin", OP_INDEX, extreme_gradient);

const struct op op_scatter_nd_non_aliasing_add = {
    .name = "ScatterNdNonAliasingAdd",
    .inputs = "input:T indices:Tindices updates:T",
    .outputs = "output:T",
    .attrs = "T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,"
             "bfloat16,qint16,quint16,uint16,complex128,half,uint32,uint64,bool} "
             "Tindices:" OP_INDEX " bad_indices_policy:string=''",
    .infer = op_infer_unchanged,
    .gradient = add_gradient,
};
