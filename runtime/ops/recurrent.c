/*
 * recurrent.c - ops of our own: a sequence through the cells of a GRU or of a simple network,
 * for which TensorFlow has none.  Layers make their training pass of them; an evaluation pass,
 * which is what gets exported, is made of TensorFlow's ops.
 *
 * Time comes first: x is (steps, batch, inputs), h_prev (batch, cells), and what the cells give
 * at each step is (steps, batch, cells).  Gradients flow from h alone.
 */
#include "runtime/ops/internal.h"

#define SEQUENCE_INPUTS "x:T h_prev:T kernel:T recurrent:T bias:T"
#define GRU_STATES "h:T z:T r:T candidate:T inner:T"
#define SEQUENCE_GRADS "x_grad:T h_prev_grad:T kernel_grad:T recurrent_grad:T bias_grad:T"

static bool infer_sequence(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = SHAPE(op_infer_dim(infer, 0, 0), op_infer_dim(infer, 0, 1),
                                  op_infer_dim(infer, 1, 1));
    return true;
}

static bool infer_sequence_grad(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = infer->inputs[i];
    return true;
}

/* The gradient op is given all inputs, all outputs, and what flows to h. */
static bool sequence_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool gru = g->node->outputs_count > 1;
    struct edge inputs[11];
    int count = 0;
    for (int i = 0; i < 5; i++)
        inputs[count++] = gradient_x(g, i);
    for (int i = 0; i < g->node->outputs_count; i++)
        inputs[count++] = gradient_y(g, i);
    inputs[count++] = op_gradient_or_zeros(g, 0);
    struct edge grads =
        op_call(g, gru ? "_GRUSequenceGrad" : "_RNNSequenceGrad", inputs, count, NO_ATTRS);
    for (int i = 0; i < 5; i++)
        g->of_inputs[i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

/*
 * A GRU whose reset gate works on the product of the state (Keras's reset_after).  kernel is
 * (inputs, 3 cells), recurrent (cells, 3 cells), with the columns of update gate z, reset gate
 * r and candidate in this order; bias (2, 3 cells) has a row for each product.
 *
 *   inner = h_prev recurrent_c + bias[1]_c            z, r = sigmoid(both products)
 *   candidate = tanh(x kernel_c + bias[0]_c + r inner)
 *   h = z h_prev + (1 - z) candidate
 */
const struct op op_gru_sequence = {
    .name = "_GRUSequence",
    .inputs = SEQUENCE_INPUTS,
    .outputs = GRU_STATES,
    .attrs = "T:" OP_FLOAT,
    .flags = OP_EXPENSIVE,
    .infer = infer_sequence,
    .gradient = sequence_gradient,
};

const struct op op_gru_sequence_grad = {
    .name = "_GRUSequenceGrad",
    .inputs = SEQUENCE_INPUTS " " GRU_STATES " h_grad:T",
    .outputs = SEQUENCE_GRADS,
    .attrs = "T:" OP_FLOAT,
    .flags = OP_EXPENSIVE,
    .infer = infer_sequence_grad,
    .no_gradient = true,
};

/* h = tanh(x kernel + h_prev recurrent + bias); bias is (cells). */
const struct op op_rnn_sequence = {
    .name = "_RNNSequence",
    .inputs = SEQUENCE_INPUTS,
    .outputs = "h:T",
    .attrs = "T:" OP_FLOAT,
    .flags = OP_EXPENSIVE,
    .infer = infer_sequence,
    .gradient = sequence_gradient,
};

const struct op op_rnn_sequence_grad = {
    .name = "_RNNSequenceGrad",
    .inputs = SEQUENCE_INPUTS " h:T h_grad:T",
    .outputs = SEQUENCE_GRADS,
    .attrs = "T:" OP_FLOAT,
    .flags = OP_EXPENSIVE,
    .infer = infer_sequence_grad,
    .no_gradient = true,
};
