/*
 * tensor_array.c - tensor arrays, which live for one run.
 *
 * The flow that goes through them says what comes after what.  Gradients follow it backwards,
 * into an array of gradients that all of one gradient_build() find by its source.
 */

#include "runtime/ops/internal.h"

/* --- shape inference --- */

static bool infer_value(struct infer *infer, struct error *err)
{
    (void)err;
    const struct node *maker = infer->node->inputs[0].from;
    const struct shape *shape = node_attr_shape(maker, "element_shape");
    if (shape && strcmp(maker->op->name, "TensorArrayV3") == 0)
        infer->outputs[0] = *shape;
    return true;
}

/* --- gradients --- */

struct grads {
    struct edge handle;
    struct edge flow;
};

static struct grads grads_after(struct gradient *g, struct edge flow)
{
    struct edge handle = op_call(g, "TensorArrayGradV3", INPUTS(gradient_x(g, 0), flow),
                                 ATTRS(attr_string("source", g->source)));
    return (struct grads){handle, builder_output(handle, 1)};
}

/* The gradients of what was written are complete once the flow came back, and not before it was
 * written. */
static struct grads grads_of_written(struct gradient *g)
{
    return grads_after(g, op_call2(g, "AddV2", g->of_outputs[0], gradient_y(g, 0)));
}

static bool write_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct grads grads = grads_of_written(g);
    g->of_inputs[2] =
        op_call(g, "TensorArrayReadV3", INPUTS(grads.handle, gradient_x(g, 1), grads.flow),
                ATTRS(attr_type("dtype", op_edge_type(gradient_x(g, 2)))));
    g->of_inputs[3] = grads.flow;
    return true;
}

static bool read_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct grads grads = grads_after(g, gradient_x(g, 2));
    g->of_inputs[2] =
        op_call(g, "TensorArrayWriteV3",
                INPUTS(grads.handle, gradient_x(g, 1), g->of_outputs[0], grads.flow), NO_ATTRS);
    return true;
}

static bool gather_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct grads grads = grads_after(g, gradient_x(g, 2));
    g->of_inputs[2] =
        op_call(g, "TensorArrayScatterV3",
                INPUTS(grads.handle, gradient_x(g, 1), g->of_outputs[0], grads.flow), NO_ATTRS);
    return true;
}

static bool scatter_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct grads grads = grads_of_written(g);
    g->of_inputs[2] =
        op_call(g, "TensorArrayGatherV3", INPUTS(grads.handle, gradient_x(g, 1), grads.flow),
                ATTRS(attr_type("dtype", op_edge_type(gradient_x(g, 2)))));
    g->of_inputs[3] = grads.flow;
    return true;
}

static bool concat_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    if (!g->of_outputs[0].from)
        return true;
    struct grads grads = grads_after(g, gradient_x(g, 1));
    g->of_inputs[1] =
        op_call(g, "TensorArraySplitV3",
                INPUTS(grads.handle, g->of_outputs[0], gradient_y(g, 1), grads.flow), NO_ATTRS);
    return true;
}

static bool split_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct grads grads = grads_of_written(g);
    g->of_inputs[1] = op_call(g, "TensorArrayConcatV3", INPUTS(grads.handle, grads.flow),
                              ATTRS(attr_type("dtype", op_edge_type(gradient_x(g, 1)))));
    g->of_inputs[3] = grads.flow;
    return true;
}

/* --- the ops --- */

const struct op op_tensor_array_v3 = {
    .name = "TensorArrayV3",
    .inputs = "size:int32",
    .outputs = "handle:resource flow:float",
    .attrs = "dtype:type element_shape:shape=<unk> dynamic_size:bool=false "
             "clear_after_read:bool=true identical_element_shapes:bool=false "
             "tensor_array_name:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_array_grad_v3 = {
    .name = "TensorArrayGradV3",
    .inputs = "handle:resource flow_in:float",
    .outputs = "grad_handle:resource flow_out:float",
    .attrs = "source:string",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_array_grad_with_shape = {
    .name = "TensorArrayGradWithShape",
    .inputs = "handle:resource flow_in:float shape_to_prepend:int32",
    .outputs = "grad_handle:resource flow_out:float",
    .attrs = "source:string",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_array_write_v3 = {
    .name = "TensorArrayWriteV3",
    .inputs = "handle:resource index:int32 value:T flow_in:float",
    .outputs = "flow_out:float",
    .attrs = "T:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .gradient = write_gradient,
};

const struct op op_tensor_array_read_v3 = {
    .name = "TensorArrayReadV3",
    .inputs = "handle:resource index:int32 flow_in:float",
    .outputs = "value:dtype",
    .attrs = "dtype:type",
    .flags = OP_STATEFUL,
    .infer = infer_value,
    .gradient = read_gradient,
};

const struct op op_tensor_array_gather_v3 = {
    .name = "TensorArrayGatherV3",
    .inputs = "handle:resource indices:int32 flow_in:float",
    .outputs = "value:dtype",
    .attrs = "dtype:type element_shape:shape=<unk>",
    .flags = OP_STATEFUL,
    .gradient = gather_gradient,
};

const struct op op_tensor_array_scatter_v3 = {
    .name = "TensorArrayScatterV3",
    .inputs = "handle:resource indices:int32 value:T flow_in:float",
    .outputs = "flow_out:float",
    .attrs = "T:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .gradient = scatter_gradient,
};

const struct op op_tensor_array_concat_v3 = {
    .name = "TensorArrayConcatV3",
    .inputs = "handle:resource flow_in:float",
    .outputs = "value:dtype lengths:int64",
    .attrs = "dtype:type element_shape_except0:shape=<unk>",
    .flags = OP_STATEFUL,
    .gradient = concat_gradient,
};

const struct op op_tensor_array_split_v3 = {
    .name = "TensorArraySplitV3",
    .inputs = "handle:resource value:T lengths:int64 flow_in:float",
    .outputs = "flow_out:float",
    .attrs = "T:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .gradient = split_gradient,
};

const struct op op_tensor_array_size_v3 = {
    .name = "TensorArraySizeV3",
    .inputs = "handle:resource flow_in:float",
    .outputs = "size:int32",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_array_close_v3 = {
    .name = "TensorArrayCloseV3",
    .inputs = "handle:resource",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};
