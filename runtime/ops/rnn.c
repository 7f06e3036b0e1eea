/* rnn.c - cells of recurrent networks in one operation. */

#include "runtime/ops/internal.h"

#define LSTM_INPUTS "x:T cs_prev:T h_prev:T w:T wci:T wcf:T wco:T b:T"
#define LSTM_OUTPUTS "i:T cs:T f:T o:T ci:T co:T h:T"
#define LSTM_ATTRS                                                                             \
    "forget_bias:float=1 cell_clip:float=3 use_peephole:bool=false T:{half,float}"
#define LSTM_STATES "i:T cs:T f:T o:T ci:T co:T "

/* All outputs are (batch, cells), with the steps of x in front if there are any. */
static bool infer_lstm(struct infer *infer, int x, int b)
{
    int64_t four = op_infer_dim(infer, b, 0);
    const struct shape *in = &infer->inputs[x];
    if (in->rank < 2 || in->rank > 3)
        return true;
    for (int i = 0; i < infer->node->outputs_count; i++) {
        infer->outputs[i] = *in;
        infer->outputs[i].dims[in->rank - 1] = four < 0 ? -1 : four / 4;
    }
    return true;
}

static bool infer_lstm_cell(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_lstm(infer, 0, 7);
}

static bool infer_block_lstm(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_lstm(infer, 1, 8);
}

const struct op op_lstm_block_cell = {
    .name = "LSTMBlockCell",
    .inputs = LSTM_INPUTS,
    .outputs = LSTM_OUTPUTS,
    .attrs = LSTM_ATTRS,
    .infer = infer_lstm_cell,
};

static bool infer_lstm_cell_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    infer->outputs[1] = SHAPE(op_infer_dim(infer, 0, 0), op_infer_dim(infer, 3, 1));
    for (int i = 2; i < 5; i++)
        infer->outputs[i] = infer->inputs[2 + i];
    return true;
}

const struct op op_lstm_block_cell_grad = {
    .name = "LSTMBlockCellGrad",
    .inputs = LSTM_INPUTS " " LSTM_STATES "cs_grad:T h_grad:T",
    .outputs = "cs_prev_grad:T dicfo:T wci_grad:T wcf_grad:T wco_grad:T",
    .attrs = "use_peephole:bool T:{half,float}",
    .infer = infer_lstm_cell_grad,
};

/*
 * The gradient op is given all inputs, all outputs, and what flows to cs and h.  Of both
 * versions it is the first's, whose gates are in another order than the second's: TensorFlow's
 * answers.  A BlockLSTMV2 that our layers made says so in an annotation, and gets its own.
 */
static bool block_lstm_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge inputs[18];
    int count = 0;
    for (int i = 0; i < 9; i++)
        inputs[count++] = gradient_x(g, i);
    for (int i = 0; i < 7; i++)
        inputs[count++] = gradient_y(g, i);
    inputs[count++] = op_gradient_or_zeros(g, 1);
    inputs[count++] = op_gradient_or_zeros(g, 6);
    struct edge grads = op_call(
        g,
        node_attr_bool(g->node, OP_OWN_GRADIENT, false) ? "BlockLSTMGradV2" : "BlockLSTMGrad",
        inputs, count,
        ATTRS(attr_bool("use_peephole", node_attr_bool(g->node, "use_peephole", false))));
    for (int i = 0; i < 8; i++)
        g->of_inputs[1 + i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

const struct op op_block_lstm = {
    .name = "BlockLSTM",
    .inputs = "seq_len_max:int64 " LSTM_INPUTS,
    .outputs = LSTM_OUTPUTS,
    .attrs = LSTM_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_block_lstm,
    .gradient = block_lstm_gradient,
};

const struct op op_block_lstm_v2 = {
    .name = "BlockLSTMV2",
    .inputs = "seq_len_max:int64 " LSTM_INPUTS,
    .outputs = LSTM_OUTPUTS,
    .attrs = "cell_clip:float=0 use_peephole:bool=false T:{half,float}",
    .flags = OP_EXPENSIVE,
    .infer = infer_block_lstm,
    .gradient = block_lstm_gradient,
};

static bool infer_block_lstm_grad(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < 8; i++)
        infer->outputs[i] = infer->inputs[1 + i];
    return true;
}

#define BLOCK_LSTM_GRAD(name_)                                                                 \
    {                                                                                          \
        .name = name_,                                                                         \
        .inputs = "seq_len_max:int64 " LSTM_INPUTS " " LSTM_STATES "h:T cs_grad:T h_grad:T",   \
        .outputs = "x_grad:T cs_prev_grad:T h_prev_grad:T w_grad:T wci_grad:T wcf_grad:T "     \
                   "wco_grad:T b_grad:T",                                                      \
        .attrs = "use_peephole:bool T:{half,float}", .flags = OP_EXPENSIVE,                    \
        .infer = infer_block_lstm_grad,                                                        \
    }

const struct op op_block_lstm_grad = BLOCK_LSTM_GRAD("BlockLSTMGrad");
const struct op op_block_lstm_grad_v2 = BLOCK_LSTM_GRAD("BlockLSTMGradV2");

#define GRU_INPUTS "x:T h_prev:T w_ru:T w_c:T b_ru:T b_c:T"

static bool infer_gru(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < 4; i++)
        infer->outputs[i] = infer->inputs[1];
    return true;
}

static bool infer_gru_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[1] = infer->outputs[2] = infer->inputs[1];
    infer->outputs[3] = SHAPE(op_infer_dim(infer, 0, 0), op_infer_dim(infer, 4, 0));
    return true;
}

const struct op op_gru_block_cell = {
    .name = "GRUBlockCell",
    .inputs = GRU_INPUTS,
    .outputs = "r:T u:T c:T h:T",
    .attrs = "T:{float}",
    .infer = infer_gru,
};

const struct op op_gru_block_cell_grad = {
    .name = "GRUBlockCellGrad",
    .inputs = GRU_INPUTS " r:T u:T c:T d_h:T",
    .outputs = "d_x:T d_h_prev:T d_c_bar:T d_r_bar_u_bar:T",
    .attrs = "T:{float}",
    .infer = infer_gru_grad,
};
