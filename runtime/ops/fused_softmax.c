/*
 * fused_softmax.c - ops that stand for what programs write around a softmax; made by
 * optimise_softmax.c.  Their results have the bits of what they stand for.
 */
#include "runtime/ops/internal.h"

/* dy and y broadcast together, as in the products that this stands for. */
static bool infer_grad(struct infer *infer, struct error *err)
{
    return op_infer_broadcast(infer, err);
}

/* (dy - Sum(dy * y, -1)) * y */
const struct op op_fused_softmax_grad = {
    .name = "_SoftmaxGrad",
    .inputs = "gradients:T softmax:T",
    .outputs = "backprops:T",
    .attrs = "T:" OP_FLOAT,
    .infer = infer_grad,
    .no_gradient = true,
};

/* dy - Sum(dy, -1) * Exp(y) */
const struct op op_fused_log_softmax_grad = {
    .name = "_LogSoftmaxGrad",
    .inputs = "gradients:T logsoftmax:T",
    .outputs = "backprops:T",
    .attrs = "T:" OP_FLOAT,
    .infer = infer_grad,
    .no_gradient = true,
};

static bool infer_cross_entropy(struct infer *infer, struct error *err)
{
    struct shape shape;
    if (!shape_broadcast(&infer->inputs[0], &infer->inputs[1], &shape, err))
        return false;
    if (shape.rank > 0) {
        infer->outputs[0] = shape;
        if (node_attr_bool(infer->node, "keep_dims", false))
            infer->outputs[0].dims[shape.rank - 1] = 1;
        else
            infer->outputs[0].rank--;
    }
    infer->outputs[1] =
        node_attr_bool(infer->node, "keeps", true) ? infer->inputs[0] : SHAPE(0);
    return true;
}

/*
 * Sum(labels * Log(Softmax(logits)), -1), and the softmax; with `logarithm` of LogSoftmax, and
 * that.  Without `keeps` output 1 is empty: nobody reads it.
 */
const struct op op_fused_cross_entropy = {
    .name = "_CrossEntropySum",
    .inputs = "logits:T labels:T",
    .outputs = "sums:T softmax:T",
    .attrs = "T:" OP_FLOAT " logarithm:bool=false keep_dims:bool=false keeps:bool=true",
    .infer = infer_cross_entropy,
    .no_gradient = true,
};

static bool infer_losses(struct infer *infer, struct error *err)
{
    struct shape shape = infer->inputs[0];
    bool sparse = node_attr_bool(infer->node, "sparse", true);
    if (!sparse && !shape_broadcast(&shape, &infer->inputs[1], &shape, err))
        return false;
    infer->outputs[0] = SHAPE(shape.rank > 0 ? shape.dims[0] : -1);
    infer->outputs[1] = shape;
    if (!node_attr_bool(infer->node, "keeps", true))
        infer->outputs[1] = SHAPE(0);
    else if (infer->node->inputs_count > 2)
        return shape_broadcast(&shape, &infer->inputs[2], &infer->outputs[1], err);
    return true;
}

/*
 * SparseSoftmaxCrossEntropyWithLogits, or without `sparse` SoftmaxCrossEntropyWithLogits; its
 * second output times `scale` (rows,1) if that is there.  Without `keeps` output 1 is empty.
 */
const struct op op_fused_softmax_losses = {
    .name = "_SoftmaxLosses",
    .inputs = "features:T labels:L scale:N*T",
    .outputs = "loss:T backprop:T",
    .attrs = "T:" OP_FLOAT " L:{half,bfloat16,float,double,int32,int64} N:int>=0=0 "
             "sparse:bool=true keeps:bool=true",
    .infer = infer_losses,
    .no_gradient = true,
};
