/* fake_quant.c - numbers rounded as if they were quantised and read back. */

#include "runtime/ops/internal.h"

/* A copy of the node's attribute, for the node of its gradient. */
static struct attr attr_of(const struct gradient *g, const char *name)
{
    return *node_attr(g->node, name);
}

static bool args_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, op_call(g, "FakeQuantWithMinMaxArgsGradient",
                   INPUTS(g->of_outputs[0], gradient_x(g, 0)),
                   ATTRS(attr_of(g, "min"), attr_of(g, "max"), attr_of(g, "num_bits"),
                         attr_of(g, "narrow_range"))));
}

static bool three(struct gradient *g, const char *op)
{
    struct edge grads = op_call(
        g, op, INPUTS(g->of_outputs[0], gradient_x(g, 0), gradient_x(g, 1), gradient_x(g, 2)),
        ATTRS(attr_of(g, "num_bits"), attr_of(g, "narrow_range")));
    for (int i = 0; i < 3; i++)
        g->of_inputs[i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

static bool vars_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return three(g, "FakeQuantWithMinMaxVarsGradient");
}

static bool channel_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return three(g, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

static bool v4_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge grads =
        op_call(g, "QuantizeAndDequantizeV4Grad",
                INPUTS(g->of_outputs[0], gradient_x(g, 0), gradient_x(g, 1), gradient_x(g, 2)),
                ATTRS(attr_of(g, "axis")));
    for (int i = 0; i < 3; i++)
        g->of_inputs[i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

/* As gradient, input, limits: the limits' gradients are shaped as these. */
static bool infer_grads(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < 3; i++)
        infer->outputs[i] = infer->inputs[i + 1];
    return true;
}

const struct op op_fake_quant_with_min_max_args = {
    .name = "FakeQuantWithMinMaxArgs",
    .inputs = "inputs:float",
    .outputs = "outputs:float",
    .attrs = "min:float=-6.0 max:float=6.0 num_bits:int=8 narrow_range:bool=false",
    .infer = op_infer_unchanged,
    .gradient = args_gradient,
};

const struct op op_fake_quant_with_min_max_args_gradient = {
    .name = "FakeQuantWithMinMaxArgsGradient",
    .inputs = "gradients:float inputs:float",
    .outputs = "backprops:float",
    .attrs = "min:float=-6.0 max:float=6.0 num_bits:int=8 narrow_range:bool=false",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

const struct op op_fake_quant_with_min_max_vars = {
    .name = "FakeQuantWithMinMaxVars",
    .inputs = "inputs:float min:float max:float",
    .outputs = "outputs:float",
    .attrs = "num_bits:int=8 narrow_range:bool=false",
    .infer = op_infer_unchanged,
    .gradient = vars_gradient,
};

const struct op op_fake_quant_with_min_max_vars_gradient = {
    .name = "FakeQuantWithMinMaxVarsGradient",
    .inputs = "gradients:float inputs:float min:float max:float",
    .outputs = "backprops_wrt_input:float backprop_wrt_min:float backprop_wrt_max:float",
    .attrs = "num_bits:int=8 narrow_range:bool=false",
    .infer = infer_grads,
    .no_gradient = true,
};

const struct op op_fake_quant_with_min_max_vars_per_channel = {
    .name = "FakeQuantWithMinMaxVarsPerChannel",
    .inputs = "inputs:float min:float max:float",
    .outputs = "outputs:float",
    .attrs = "num_bits:int=8 narrow_range:bool=false",
    .infer = op_infer_unchanged,
    .gradient = channel_gradient,
};

const struct op op_fake_quant_with_min_max_vars_per_channel_gradient = {
    .name = "FakeQuantWithMinMaxVarsPerChannelGradient",
    .inputs = "gradients:float inputs:float min:float max:float",
    .outputs = "backprops_wrt_input:float backprop_wrt_min:float backprop_wrt_max:float",
    .attrs = "num_bits:int=8 narrow_range:bool=false",
    .infer = infer_grads,
    .no_gradient = true,
};

const struct op op_quantize_and_dequantize = {
    .name = "QuantizeAndDequantize",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "signed_input:bool=true num_bits:int=8 range_given:bool=false input_min:float=0.0 "
             "input_max:float=0.0 T:{bfloat16,half,float,double}",
    .infer = op_infer_unchanged,
    .gradient = op_gradient_pass,
};

const struct op op_quantize_and_dequantize_v2 = {
    .name = "QuantizeAndDequantizeV2",
    .inputs = "input:T input_min:T input_max:T",
    .outputs = "output:T",
    .attrs =
        "signed_input:bool=true num_bits:int=8 range_given:bool=false "
        "T:{bfloat16,half,float,double} round_mode:{'HALF_TO_EVEN','HALF_UP'}='HALF_TO_EVEN' "
        "narrow_range:bool=false axis:int=-1",
    .infer = op_infer_unchanged,
    .gradient = op_gradient_pass,
};

const struct op op_quantize_and_dequantize_v3 = {
    .name = "QuantizeAndDequantizeV3",
    .inputs = "input:T input_min:T input_max:T num_bits:int32",
    .outputs = "output:T",
    .attrs = "signed_input:bool=true range_given:bool=true T:{bfloat16,half,float,double} "
             "narrow_range:bool=false axis:int=-1",
    .infer = op_infer_unchanged,
    .gradient = op_gradient_pass,
};

const struct op op_quantize_and_dequantize_v4 = {
    .name = "QuantizeAndDequantizeV4",
    .inputs = "input:T input_min:T input_max:T",
    .outputs = "output:T",
    .attrs =
        "signed_input:bool=true num_bits:int=8 range_given:bool=false "
        "T:{bfloat16,half,float,double} round_mode:{'HALF_TO_EVEN','HALF_UP'}='HALF_TO_EVEN' "
        "narrow_range:bool=false axis:int=-1",
    .infer = op_infer_unchanged,
    .gradient = v4_gradient,
};

const struct op op_quantize_and_dequantize_v4_grad = {
    .name = "QuantizeAndDequantizeV4Grad",
    .inputs = "gradients:T input:T input_min:T input_max:T",
    .outputs = "input_backprop:T input_min_backprop:T input_max_backprop:T",
    .attrs = "T:{bfloat16,half,float,double} axis:int=-1",
    .infer = infer_grads,
};
