/* scatter.c - rows of variables chosen by index and changed in place. */

#include "runtime/ops/internal.h"

#define SCATTER(name_, types_, locking_)                                                       \
    {                                                                                          \
        .name = name_, .inputs = "ref:Ref(T) indices:Tindices updates:T",                      \
        .outputs = "output_ref:Ref(T)",                                                        \
        .attrs = "T:" types_ " Tindices:" OP_INDEX " use_locking:bool=" locking_,              \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }
#define RESOURCE_SCATTER(name_, types_)                                                        \
    {                                                                                          \
        .name = name_, .inputs = "resource:resource indices:Tindices updates:dtype",           \
        .outputs = "", .attrs = "dtype:" types_ " Tindices:" OP_INDEX, .flags = OP_STATEFUL,   \
        .no_gradient = true,                                                                   \
    }
#define SCATTER_ND(name_, types_, locking_)                                                    \
    {                                                                                          \
        .name = name_, .inputs = "ref:Ref(T) indices:Tindices updates:T",                      \
        .outputs = "output_ref:Ref(T)",                                                        \
        .attrs = "T:" types_ " Tindices:" OP_INDEX " use_locking:bool=" locking_               \
                 " bad_indices_policy:string=''",                                              \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }
#define RESOURCE_SCATTER_ND(name_)                                                             \
    {                                                                                          \
        .name = name_, .inputs = "ref:resource indices:Tindices updates:T", .outputs = "",     \
        .attrs =                                                                               \
            "T:type Tindices:" OP_INDEX " use_locking:bool=true bad_indices_policy:string=''", \
        .flags = OP_STATEFUL, .no_gradient = true,                                             \
    }

const struct op op_scatter_update = SCATTER("ScatterUpdate", "type", "true");
const struct op op_scatter_add = SCATTER("ScatterAdd", OP_NUMBER, "false");
const struct op op_scatter_sub = SCATTER("ScatterSub", OP_NUMBER, "false");
const struct op op_scatter_mul = SCATTER("ScatterMul", OP_NUMBER, "false");
const struct op op_scatter_div = SCATTER("ScatterDiv", OP_NUMBER, "false");
const struct op op_scatter_min =
    SCATTER("ScatterMin", "{half,bfloat16,float,double,int32,int64}", "false");
const struct op op_scatter_max =
    SCATTER("ScatterMax", "{half,bfloat16,float,double,int32,int64}", "false");
const struct op op_resource_scatter_update = RESOURCE_SCATTER("ResourceScatterUpdate", "type");
const struct op op_resource_scatter_add = RESOURCE_SCATTER("ResourceScatterAdd", OP_NUMBER);
const struct op op_resource_scatter_sub = RESOURCE_SCATTER("ResourceScatterSub", OP_NUMBER);
const struct op op_resource_scatter_mul = RESOURCE_SCATTER("ResourceScatterMul", OP_NUMBER);
const struct op op_resource_scatter_div = RESOURCE_SCATTER("ResourceScatterDiv", OP_NUMBER);
const struct op op_resource_scatter_min = RESOURCE_SCATTER("ResourceScatterMin", OP_NUMBER);
const struct op op_resource_scatter_max = RESOURCE_SCATTER("ResourceScatterMax", OP_NUMBER);
const struct op op_scatter_nd_update = SCATTER_ND("ScatterNdUpdate", "type", "true");
const struct op op_scatter_nd_add = SCATTER_ND("ScatterNdAdd", OP_NUMBER, "false");
const struct op op_scatter_nd_sub = SCATTER_ND("ScatterNdSub", OP_NUMBER, "false");
const struct op op_scatter_nd_min = SCATTER_ND("ScatterNdMin", OP_NUMBER, "false");
const struct op op_scatter_nd_max = SCATTER_ND("ScatterNdMax", OP_NUMBER, "false");
const struct op op_resource_scatter_nd_update = RESOURCE_SCATTER_ND("ResourceScatterNdUpdate");
const struct op op_resource_scatter_nd_add = RESOURCE_SCATTER_ND("ResourceScatterNdAdd");
const struct op op_resource_scatter_nd_sub = RESOURCE_SCATTER_ND("ResourceScatterNdSub");
const struct op op_resource_scatter_nd_min = RESOURCE_SCATTER_ND("ResourceScatterNdMin");
const struct op op_resource_scatter_nd_max = RESOURCE_SCATTER_ND("ResourceScatterNdMax");

/* --- a part of a variable, by begin, end and strides --- */

#define STRIDED                                                                                \
    "T:type Index:" OP_INDEX " begin_mask:int=0 end_mask:int=0 ellipsis_mask:int=0 "           \
    "new_axis_mask:int=0 shrink_axis_mask:int=0"

const struct op op_strided_slice_assign = {
    .name = "StridedSliceAssign",
    .inputs = "ref:Ref(T) begin:Index end:Index strides:Index value:T",
    .outputs = "output_ref:Ref(T)",
    .attrs = STRIDED,
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

const struct op op_resource_strided_slice_assign = {
    .name = "ResourceStridedSliceAssign",
    .inputs = "ref:resource begin:Index end:Index strides:Index value:T",
    .outputs = "",
    .attrs = STRIDED,
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

/* The part comes from the value, the rest from the tensor. */
static bool strided_update_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    static const char *const masks[] = {"begin_mask", "end_mask", "ellipsis_mask",
                                        "new_axis_mask", "shrink_axis_mask"};
    struct attr attrs[ARRAY_LEN(masks)];
    for (int i = 0; i < ARRAY_LEN(masks); i++)
        attrs[i] = *node_attr(g->node, masks[i]);
    struct edge grad = g->of_outputs[0], value = gradient_x(g, 4);
    struct edge begin = gradient_x(g, 1), end = gradient_x(g, 2), step = gradient_x(g, 3);
    struct edge part =
        op_call(g, "StridedSlice", INPUTS(grad, begin, end, step), attrs, ARRAY_LEN(masks));
    struct edge zeros = op_call1(g, "ZerosLike", value);
    g->of_inputs[0] = op_call(g, "TensorStridedSliceUpdate",
                              INPUTS(grad, begin, end, step, zeros), attrs, ARRAY_LEN(masks));
    /* A value that was broadcast gets the sum over all that it became. */
    struct edge axes =
        op_call2(g, "BroadcastGradientArgs", op_shape_of(g, value), op_shape_of(g, part));
    g->of_inputs[4] = op_unbroadcast(g, part, axes, op_shape_of(g, value));
    return true;
}

const struct op op_tensor_strided_slice_update = {
    .name = "TensorStridedSliceUpdate",
    .inputs = "input:T begin:Index end:Index strides:Index value:T",
    .outputs = "output:T",
    .attrs = STRIDED,
    .infer = op_infer_unchanged,
    .gradient = strided_update_gradient,
};
