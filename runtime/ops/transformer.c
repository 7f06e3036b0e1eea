/*
 * transformer.c - ops of our own, of which layers make their training pass: one pass forward
 * and one back over what takes TensorFlow a dozen ops.  An evaluation pass, which is what gets
 * exported, is made of TensorFlow's.
 */
#include "runtime/ops/internal.h"

/* --- layer normalisation --- */

static bool infer_layer_norm(struct infer *infer, struct error *err)
{
    (void)err;
    struct shape rows = infer->inputs[0];
    infer->outputs[0] = rows;
    if (rows.rank < 1)
        return true;
    rows.rank--;
    infer->outputs[1] = infer->outputs[2] = rows;
    return true;
}

static bool layer_norm_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge grads = op_call(g, "_LayerNormGrad",
                                INPUTS(g->of_outputs[0], gradient_x(g, 0), gradient_x(g, 1),
                                       gradient_y(g, 1), gradient_y(g, 2)),
                                NO_ATTRS);
    for (int i = 0; i < 3; i++)
        g->of_inputs[i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

/*
 * y = (x - mean) * inverse * scale + offset, where mean and inverse = 1 / sqrt(variance +
 * epsilon) are those of the last dimension of x; scale and offset are vectors of its size.
 * Gradients flow from y alone.
 */
const struct op op_layer_norm = {
    .name = "_LayerNorm",
    .inputs = "x:T scale:T offset:T",
    .outputs = "y:T mean:T inverse:T",
    .attrs = "epsilon:float=0.001 T:" OP_FLOAT,
    .infer = infer_layer_norm,
    .gradient = layer_norm_gradient,
};

static bool infer_layer_norm_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    infer->outputs[1] = infer->outputs[2] = infer->inputs[2];
    return true;
}

const struct op op_layer_norm_grad = {
    .name = "_LayerNormGrad",
    .inputs = "y_grad:T x:T scale:T mean:T inverse:T",
    .outputs = "x_grad:T scale_grad:T offset_grad:T",
    .attrs = "T:" OP_FLOAT,
    .infer = infer_layer_norm_grad,
    .no_gradient = true,
};

/* --- GELU --- */

static bool infer_gelu(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->outputs[1] = infer->inputs[0];
    return true;
}

static bool gelu_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], gradient_y(g, 1)));
}

/* y = x (1 + erf(x / sqrt 2)) / 2, and slope = dy / dx.  Gradients flow from y alone. */
const struct op op_gelu = {
    .name = "_Gelu",
    .inputs = "x:T",
    .outputs = "y:T slope:T",
    .attrs = "T:" OP_FLOAT,
    .infer = infer_gelu,
    .gradient = gelu_gradient,
};

/* --- attention --- */

static bool infer_attention(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, 0), op_infer_dim(infer, 0, 1),
                              op_infer_dim(infer, 0, 2), op_infer_dim(infer, 2, 3));
    infer->outputs[1] = SHAPE(op_infer_dim(infer, 0, 0), op_infer_dim(infer, 0, 2),
                              op_infer_dim(infer, 0, 1), op_infer_dim(infer, 1, 1));
    return true;
}

static bool attention_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge grads =
        op_call(g, "_AttentionGrad",
                INPUTS(g->of_outputs[0], gradient_x(g, 0), gradient_x(g, 1), gradient_x(g, 2),
                       gradient_y(g, 1)),
                ATTRS(attr_float("scale", node_attr_float(g->node, "scale", 1)),
                      attr_bool("causal", node_attr_bool(g->node, "causal", false))));
    for (int i = 0; i < 3; i++)
        g->of_inputs[i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

#define ATTENTION_ATTRS "scale:float=1 causal:bool=false T:" OP_FLOAT

/*
 * Looks from `query` (batch, steps, heads, size) at `key` (batch, other steps, heads, size) and
 * `value` (batch, other steps, heads, value size): weights = softmax(scale * query key^T), and
 * out = weights value, head by head.  With `causal` step i sees the others up to i alone.
 * weights is (batch, heads, steps, other steps).  Gradients flow from `out` alone.
 */
const struct op op_attention = {
    .name = "_Attention",
    .inputs = "query:T key:T value:T",
    .outputs = "out:T weights:T",
    .attrs = ATTENTION_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_attention,
    .gradient = attention_gradient,
};

static bool infer_attention_grad(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < 3; i++)
        infer->outputs[i] = infer->inputs[1 + i];
    return true;
}

const struct op op_attention_grad = {
    .name = "_AttentionGrad",
    .inputs = "out_grad:T query:T key:T value:T weights:T",
    .outputs = "query_grad:T key_grad:T value_grad:T",
    .attrs = ATTENTION_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_attention_grad,
    .no_gradient = true,
};
