/* dilation.c - the largest sum of an image and a filter that slides over it. */

#include "runtime/ops/internal.h"

#define SLIDING "strides:list(int)>=4 rates:list(int)>=4 padding:{'SAME','VALID'} T:" OP_REAL

static bool infer_dilation(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *filter = &infer->inputs[1];
    op_infer_rank(infer, 0, 4);
    if (filter->rank == 3)
        op_infer_windows(infer, (const int64_t[]){1, filter->dims[0], filter->dims[1], 1}, 3,
                         op_infer_dim(infer, 0, 3));
    return true;
}

static bool dilation_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), filter = gradient_x(g, 1);
    g->of_inputs[0] =
        op_windowed(g, "Dilation2DBackpropInput", INPUTS(x, filter, g->of_outputs[0]));
    g->of_inputs[1] =
        op_windowed(g, "Dilation2DBackpropFilter", INPUTS(x, filter, g->of_outputs[0]));
    return builder_ok(&g->build);
}

const struct op op_dilation2d = {
    .name = "Dilation2D",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = SLIDING,
    .infer = infer_dilation,
    .gradient = dilation_gradient,
};

const struct op op_dilation2d_backprop_input = {
    .name = "Dilation2DBackpropInput",
    .inputs = "input:T filter:T out_backprop:T",
    .outputs = "in_backprop:T",
    .attrs = SLIDING,
    .infer = op_infer_unchanged,
};

const struct op op_dilation2d_backprop_filter = {
    .name = "Dilation2DBackpropFilter",
    .inputs = "input:T filter:T out_backprop:T",
    .outputs = "filter_backprop:T",
    .attrs = SLIDING,
    .infer = op_infer_second,
};
