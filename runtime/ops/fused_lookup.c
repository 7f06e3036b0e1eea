/*
 * fused_lookup.c - sequences whose inputs are rows looked up in a table, made by the pass
 * `lookup`: indices (steps,batch) stand where x does, and the table (rows,inputs) comes last.
 * The first output of a gradient is the table's, or with `by_rows` of each row looked up.
 */
#include "runtime/ops/internal.h"

#define LSTM_INPUTS                                                                            \
    "seq_len_max:int64 indices:Tindices cs_prev:T h_prev:T w:T wci:T wcf:T wco:T b:T"
#define LSTM_OUTPUTS "i:T cs:T f:T o:T ci:T co:T h:T"
#define LOOKUP_TYPES " T:{float} Tindices:" OP_INDEX

static bool infer_lookup_lstm(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t four = op_infer_dim(infer, 8, 0);
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = SHAPE(op_infer_dim(infer, 1, 0), op_infer_dim(infer, 1, 1),
                                  four < 0 ? -1 : four / 4);
    return true;
}

/* The first output of a gradient, whose indices are input `indices`. */
static void infer_rows_grad(struct infer *infer, int indices)
{
    const struct shape *table = &infer->inputs[infer->node->inputs_count - 1];
    bool by_rows = node_attr_bool(infer->node, "by_rows", false);
    infer->outputs[0] =
        by_rows ? SHAPE(op_infer_dim(infer, indices, 0), op_infer_dim(infer, indices, 1),
                        table->rank == 2 ? table->dims[1] : -1)
                : *table;
}

static bool infer_lookup_lstm_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer_rows_grad(infer, 1);
    for (int i = 1; i < 8; i++)
        infer->outputs[i] = infer->inputs[1 + i];
    return true;
}

#define LOOKUP_LSTM(name_, attrs_)                                                             \
    {                                                                                          \
        .name = name_, .inputs = LSTM_INPUTS " table:T", .outputs = LSTM_OUTPUTS,              \
        .attrs = attrs_ " use_peephole:bool=false" LOOKUP_TYPES, .flags = OP_EXPENSIVE,        \
        .infer = infer_lookup_lstm, .no_gradient = true,                                       \
    }
#define LOOKUP_LSTM_GRAD(name_)                                                                \
    {                                                                                          \
        .name = name_, .inputs = LSTM_INPUTS " " LSTM_OUTPUTS " cs_grad:T h_grad:T table:T",   \
        .outputs = "grad:T cs_prev_grad:T h_prev_grad:T w_grad:T wci_grad:T wcf_grad:T "       \
                   "wco_grad:T b_grad:T",                                                      \
        .attrs = "use_peephole:bool by_rows:bool=false" LOOKUP_TYPES, .flags = OP_EXPENSIVE,   \
        .infer = infer_lookup_lstm_grad, .no_gradient = true,                                  \
    }

const struct op op_lookup_block_lstm =
    LOOKUP_LSTM("_LookupBlockLSTM", "forget_bias:float=1 cell_clip:float=3");
const struct op op_lookup_block_lstm_v2 =
    LOOKUP_LSTM("_LookupBlockLSTMV2", "cell_clip:float=0");
const struct op op_lookup_block_lstm_grad = LOOKUP_LSTM_GRAD("_LookupBlockLSTMGrad");
const struct op op_lookup_block_lstm_grad_v2 = LOOKUP_LSTM_GRAD("_LookupBlockLSTMGradV2");

static bool infer_lookup_sequence(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = SHAPE(op_infer_dim(infer, 0, 0), op_infer_dim(infer, 0, 1),
                                  op_infer_dim(infer, 1, 1));
    return true;
}

static bool infer_lookup_sequence_grad(struct infer *infer, struct error *err)
{
    (void)err;
    infer_rows_grad(infer, 0);
    for (int i = 1; i < infer->node->outputs_count; i++)
        infer->outputs[i] = infer->inputs[i];
    return true;
}

#define SEQUENCE_INPUTS "indices:Tindices h_prev:T kernel:T recurrent:T bias:T"
#define GRU_STATES "h:T z:T r:T candidate:T inner:T"

#define LOOKUP_SEQUENCE(name_, outputs_)                                                       \
    {                                                                                          \
        .name = name_, .inputs = SEQUENCE_INPUTS " table:T", .outputs = outputs_,              \
        .attrs = LOOKUP_TYPES, .flags = OP_EXPENSIVE, .infer = infer_lookup_sequence,          \
        .no_gradient = true,                                                                   \
    }
#define LOOKUP_SEQUENCE_GRAD(name_, states_)                                                   \
    {                                                                                          \
        .name = name_, .inputs = SEQUENCE_INPUTS " " states_ " h_grad:T table:T",              \
        .outputs = "grad:T h_prev_grad:T kernel_grad:T recurrent_grad:T bias_grad:T",          \
        .attrs = "by_rows:bool=false" LOOKUP_TYPES, .flags = OP_EXPENSIVE,                     \
        .infer = infer_lookup_sequence_grad, .no_gradient = true,                              \
    }

const struct op op_lookup_gru_sequence = LOOKUP_SEQUENCE("_LookupGRUSequence", GRU_STATES);
const struct op op_lookup_gru_sequence_grad =
    LOOKUP_SEQUENCE_GRAD("_LookupGRUSequenceGrad", GRU_STATES);
const struct op op_lookup_rnn_sequence = LOOKUP_SEQUENCE("_LookupRNNSequence", "h:T");
const struct op op_lookup_rnn_sequence_grad =
    LOOKUP_SEQUENCE_GRAD("_LookupRNNSequenceGrad", "h:T");
