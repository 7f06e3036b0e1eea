/* ctc.c - connectionist temporal classification: sequences of labels for longer ones of frames,
 * the last class being the blank between labels. */

#include "runtime/ops/internal.h"

static int64_t batch_of(const struct infer *infer, int frames, int lengths)
{
    int64_t batch = op_infer_dim(infer, frames, 1);
    return batch >= 0 ? batch : op_infer_dim(infer, lengths, 0);
}

static bool infer_loss(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(batch_of(infer, 0, 3));
    infer->outputs[1] = infer->inputs[0];
    return true;
}

/* The kernel's second output is the gradient; there is none of that. */
static bool loss_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge grads = op_call1(g, "PreventGradient", gradient_y(g, 1));
    struct edge of_examples = op_call2(g, "ExpandDims", g->of_outputs[0], op_int(g, -1));
    return op_gradient_single(g, op_call2(g, "Mul", of_examples, grads));
}

/* Labels of all examples as a sparse matrix, and how likely they are. */
static bool infer_decoder(struct infer *infer, struct error *err)
{
    (void)err;
    int paths = (int)node_attr_int(infer->node, "top_paths", 1);
    for (int i = 0; i < paths; i++) {
        infer->outputs[i] = SHAPE(-1, 2);
        infer->outputs[paths + i] = SHAPE(-1);
        infer->outputs[2 * paths + i] = SHAPE(2);
    }
    infer->outputs[3 * paths] = SHAPE(batch_of(infer, 0, 1), paths);
    return true;
}

const struct op op_ctc_loss = {
    .name = "CTCLoss",
    .inputs = "inputs:T labels_indices:int64 labels_values:int32 sequence_length:int32",
    .outputs = "loss:T gradient:T",
    .attrs = "preprocess_collapse_repeated:bool=false ctc_merge_repeated:bool=true "
             "ignore_longer_outputs_than_inputs:bool=false T:{float,double}=float",
    .infer = infer_loss,
    .gradient = loss_gradient,
};

const struct op op_ctc_greedy_decoder = {
    .name = "CTCGreedyDecoder",
    .inputs = "inputs:T sequence_length:int32",
    .outputs = "decoded_indices:int64 decoded_values:int64 decoded_shape:int64 "
               "log_probability:T",
    .attrs = "merge_repeated:bool=false blank_index:int=-1 T:{float,double}=float",
    .infer = infer_decoder,
    .no_gradient = true,
};

const struct op op_ctc_beam_search_decoder = {
    .name = "CTCBeamSearchDecoder",
    .inputs = "inputs:T sequence_length:int32",
    .outputs = "decoded_indices:top_paths*int64 decoded_values:top_paths*int64 "
               "decoded_shape:top_paths*int64 log_probability:T",
    .attrs = "beam_width:int>=1 top_paths:int>=1 merge_repeated:bool=true "
             "T:{float,double}=float",
    .infer = infer_decoder,
    .no_gradient = true,
};
