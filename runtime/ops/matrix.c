/* matrix.c - products of matrices, single and in batches. */

#include "runtime/ops/internal.h"

static bool infer_mat_mul(struct infer *infer, struct error *err)
{
    (void)err;
    bool transpose_a = node_attr_bool(infer->node, "transpose_a", false);
    bool transpose_b = node_attr_bool(infer->node, "transpose_b", false);
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, transpose_a ? 1 : 0),
                              op_infer_dim(infer, 1, transpose_b ? 0 : 1));
    return true;
}

static struct edge product(struct gradient *g, struct edge a, bool transpose_a, struct edge b,
                           bool transpose_b)
{
    return op_call(
        g, "MatMul", INPUTS(a, b),
        ATTRS(attr_bool("transpose_a", transpose_a), attr_bool("transpose_b", transpose_b)));
}

static bool mat_mul_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool ta = node_attr_bool(g->node, "transpose_a", false);
    bool tb = node_attr_bool(g->node, "transpose_b", false);
    struct edge d = g->of_outputs[0];
    struct edge a = op_conjugate(g, gradient_x(g, 0)), b = op_conjugate(g, gradient_x(g, 1));
    g->of_inputs[0] = ta ? product(g, b, tb, d, true) : product(g, d, false, b, !tb);
    g->of_inputs[1] = tb ? product(g, d, true, a, ta) : product(g, a, !ta, d, false);
    return builder_ok(&g->build);
}

const struct op op_mat_mul = {
    .name = "MatMul",
    .inputs = "a:T b:T",
    .outputs = "product:T",
    .attrs = "transpose_a:bool=false transpose_b:bool=false "
             "T:{bfloat16,half,float,double,int32,int64,uint8,uint16,uint32,uint64,complex64,"
             "complex128} grad_a:bool=false grad_b:bool=false",
    .flags = OP_EXPENSIVE,
    .infer = infer_mat_mul,
    .gradient = mat_mul_gradient,
};

/* Float results whatever the types of the factors (float or bfloat16). */
static bool sparse_mat_mul_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool ta = node_attr_bool(g->node, "transpose_a", false);
    bool tb = node_attr_bool(g->node, "transpose_b", false);
    struct edge d = g->of_outputs[0], factor[2], result[2];
    for (int i = 0; i < 2; i++) {
        factor[i] = gradient_x(g, i);
        if (op_edge_type(factor[i]) != F32)
            factor[i] = op_call(g, "Cast", INPUTS(factor[i]), ATTRS(attr_type("DstT", F32)));
    }
    result[0] = ta ? product(g, factor[1], tb, d, true) : product(g, d, false, factor[1], !tb);
    result[1] = tb ? product(g, d, true, factor[0], ta) : product(g, factor[0], !ta, d, false);
    for (int i = 0; i < 2; i++) {
        int type = op_edge_type(gradient_x(g, i));
        if (type != F32)
            result[i] = op_call(g, "Cast", INPUTS(result[i]), ATTRS(attr_type("DstT", type)));
        g->of_inputs[i] = result[i];
    }
    return builder_ok(&g->build);
}

const struct op op_sparse_mat_mul = {
    .name = "SparseMatMul",
    .inputs = "a:Ta b:Tb",
    .outputs = "product:float",
    .attrs = "transpose_a:bool=false transpose_b:bool=false a_is_sparse:bool=false "
             "b_is_sparse:bool=false Ta:{float,bfloat16}=float Tb:{float,bfloat16}=float",
    .flags = OP_EXPENSIVE,
    .infer = infer_mat_mul,
    .gradient = sparse_mat_mul_gradient,
};

static bool infer_batch(struct infer *infer, struct error *err)
{
    const struct shape *x = &infer->inputs[0], *y = &infer->inputs[1];
    if (x->rank < 2 || y->rank < 2)
        return true;
    bool adj_x = node_attr_bool(infer->node, "adj_x", false);
    bool adj_y = node_attr_bool(infer->node, "adj_y", false);
    struct shape batch_x = *x, batch_y = *y, out;
    batch_x.rank -= 2;
    batch_y.rank -= 2;
    if (!shape_broadcast(&batch_x, &batch_y, &out, err))
        return false;
    out.dims[out.rank++] = x->dims[x->rank - (adj_x ? 1 : 2)];
    out.dims[out.rank++] = y->dims[y->rank - (adj_y ? 2 : 1)];
    infer->outputs[0] = out;
    return true;
}

static struct edge batch_product(struct gradient *g, struct edge a, bool adj_a, struct edge b,
                                 bool adj_b)
{
    const char *op =
        strcmp(g->node->op->name, "BatchMatMul") == 0 ? "BatchMatMul" : "BatchMatMulV2";
    return op_call(g, op, INPUTS(a, b),
                   ATTRS(attr_bool("adj_x", adj_a), attr_bool("adj_y", adj_b)));
}

/* All but the last two dimensions of a shape. */
static struct edge batch_part(struct gradient *g, struct edge shape)
{
    return op_call(g, "StridedSlice",
                   INPUTS(shape, op_ints(g, (const int64_t[]){0}, 1),
                          op_ints(g, (const int64_t[]){-2}, 1),
                          op_ints(g, (const int64_t[]){1}, 1)),
                   NO_ATTRS);
}

static bool batch_mat_mul_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool ax = node_attr_bool(g->node, "adj_x", false);
    bool ay = node_attr_bool(g->node, "adj_y", false);
    struct edge d = g->of_outputs[0], x = gradient_x(g, 0), y = gradient_x(g, 1);
    struct edge for_x =
        ax ? batch_product(g, y, ay, d, true) : batch_product(g, d, false, y, !ay);
    struct edge for_y =
        ay ? batch_product(g, d, true, x, ax) : batch_product(g, x, !ax, d, false);
    if (strcmp(g->node->op->name, "BatchMatMul") == 0) {
        g->of_inputs[0] = for_x;
        g->of_inputs[1] = for_y;
        return builder_ok(&g->build);
    }
    struct edge shape_x = op_shape_of(g, x), shape_y = op_shape_of(g, y);
    struct edge axes =
        op_call2(g, "BroadcastGradientArgs", batch_part(g, shape_x), batch_part(g, shape_y));
    g->of_inputs[0] = op_unbroadcast(g, for_x, axes, shape_x);
    g->of_inputs[1] = op_unbroadcast(g, for_y, builder_output(axes, 1), shape_y);
    return builder_ok(&g->build);
}

#define BATCH_TYPES                                                                            \
    "{bfloat16,half,float,double,int16,int32,int64,uint8,uint16,uint32,uint64,complex64,"      \
    "complex128}"

const struct op op_batch_mat_mul = {
    .name = "BatchMatMul",
    .inputs = "x:T y:T",
    .outputs = "output:T",
    .attrs = "T:{bfloat16,half,float,double,int32,int64,complex64,complex128} "
             "adj_x:bool=false adj_y:bool=false grad_x:bool=false grad_y:bool=false",
    .flags = OP_EXPENSIVE,
    .infer = infer_batch,
    .gradient = batch_mat_mul_gradient,
};

const struct op op_batch_mat_mul_v2 = {
    .name = "BatchMatMulV2",
    .inputs = "x:T y:T",
    .outputs = "output:T",
    .attrs = "T:" BATCH_TYPES
             " adj_x:bool=false adj_y:bool=false grad_x:bool=false grad_y:bool=false",
    .flags = OP_EXPENSIVE,
    .infer = infer_batch,
    .gradient = batch_mat_mul_gradient,
};

const struct op op_batch_mat_mul_v3 = {
    .name = "BatchMatMulV3",
    .inputs = "x:Ta y:Tb",
    .outputs = "output:Tout",
    .attrs =
        "Ta:{bfloat16,half,float,double,uint8,int8,int16,int32,int64,complex64,complex128} "
        "Tb:{bfloat16,half,float,double,uint8,int8,int16,int32,int64,complex64,complex128} "
        "Tout:{bfloat16,half,float,double,int16,int32,int64,complex64,complex128} "
        "adj_x:bool=false adj_y:bool=false grad_x:bool=false grad_y:bool=false",
    .flags = OP_EXPENSIVE,
    .infer = infer_batch,
    .gradient = batch_mat_mul_gradient,
};
