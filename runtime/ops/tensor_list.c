/*
 * tensor_list.c - lists of tensors, as VARIANT values: what loops with functions as bodies
 * collect, and their gradients, which are lists too.
 */

#include "runtime/ops/internal.h"

/* --- shape inference --- */

static bool infer_item(struct infer *infer, struct error *err)
{
    (void)err;
    int input = infer->node->inputs_count - 1;
    bool any_rank = infer->constants[input] && infer->constants[input]->shape.rank == 0;
    return any_rank || op_infer_from_vector(infer, input);
}

static bool infer_pop(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE_SCALAR;
    return true;
}

static bool infer_batch(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    return true;
}

/* --- steps of gradients --- */

/* The element type of the lists that the node works on. */
static struct attr element_type(const struct gradient *g)
{
    return *node_attr(g->node, "element_dtype");
}

/* What a list says of its items' shape. */
static struct edge shape_of_items(struct gradient *g, struct edge list)
{
    return op_call(g, "TensorListElementShape", INPUTS(list),
                   ATTRS(attr_type("shape_type", I32)));
}

/* The shape of a row of `tensor`. */
static struct edge shape_of_row(struct gradient *g, struct edge tensor)
{
    int64_t from = 1, all = -1;
    return op_call3(g, "Slice", op_shape_of(g, tensor), op_ints(g, &from, 1),
                    op_ints(g, &all, 1));
}

static struct edge gather(struct gradient *g, struct edge list, struct edge indices,
                          struct edge shape)
{
    return op_call(g, "TensorListGather", INPUTS(list, indices, shape), ATTRS(element_type(g)));
}

/* A list with as many items as `like`, none of them written. */
static struct edge reserve_like(struct gradient *g, struct edge like)
{
    return op_call(g, "TensorListReserve",
                   INPUTS(shape_of_items(g, like), op_call1(g, "TensorListLength", like)),
                   ATTRS(element_type(g), attr_type("shape_type", I32)));
}

/* --- gradients --- */

static bool push_back_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge popped = op_call(g, "TensorListPopBack",
                                 INPUTS(g->of_outputs[0], op_shape_of(g, gradient_x(g, 1))),
                                 ATTRS(element_type(g)));
    g->of_inputs[0] = popped;
    g->of_inputs[1] = builder_output(popped, 1);
    return true;
}

static bool pop_back_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge list = g->of_outputs[0], item = g->of_outputs[1];
    if (!list.from)
        list = op_call1(g, "ZerosLike", gradient_y(g, 0));
    if (!item.from)
        item = op_call1(g, "ZerosLike", gradient_y(g, 1));
    g->of_inputs[0] = op_call(g, "TensorListPushBack", INPUTS(list, item), NO_ATTRS);
    return true;
}

static bool stack_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = op_call(g, "TensorListFromTensor",
                              INPUTS(g->of_outputs[0], gradient_x(g, 1)), NO_ATTRS);
    return true;
}

static bool from_tensor_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = op_call(g, "TensorListStack",
                              INPUTS(g->of_outputs[0], shape_of_row(g, gradient_x(g, 0))),
                              ATTRS(element_type(g)));
    return true;
}

static bool get_item_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = op_call3(g, "TensorListSetItem", reserve_like(g, gradient_x(g, 0)),
                               gradient_x(g, 1), g->of_outputs[0]);
    return true;
}

static bool set_item_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge list = g->of_outputs[0], index = gradient_x(g, 1), item = gradient_x(g, 2);
    g->of_inputs[2] = op_call(g, "TensorListGetItem", INPUTS(list, index, op_shape_of(g, item)),
                              ATTRS(element_type(g)));
    g->of_inputs[0] =
        op_call3(g, "TensorListSetItem", list, index, op_call1(g, "ZerosLike", item));
    /* Once the item was read nobody else needs the list, and it is changed in place. */
    if (!g->build.failed)
        graph_add_control(g->build.graph, g->of_inputs[0].from, g->of_inputs[2].from);
    if (node_attr_bool(g->node, "resize_if_index_out_of_bounds", false)) /* it may have grown */
        g->of_inputs[0] = op_call2(g, "TensorListResize", g->of_inputs[0],
                                   op_call1(g, "TensorListLength", gradient_x(g, 0)));
    return true;
}

static bool resize_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = op_call2(g, "TensorListResize", g->of_outputs[0],
                               op_call1(g, "TensorListLength", gradient_x(g, 0)));
    return true;
}

static bool gather_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] =
        op_call3(g, "TensorListScatterIntoExistingList", reserve_like(g, gradient_x(g, 0)),
                 g->of_outputs[0], gradient_x(g, 1));
    return true;
}

static bool scatter_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] =
        gather(g, g->of_outputs[0], gradient_x(g, 1), shape_of_row(g, gradient_x(g, 0)));
    return true;
}

static bool scatter_into_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge list = g->of_outputs[0], tensor = gradient_x(g, 1), indices = gradient_x(g, 2);
    g->of_inputs[0] = op_call3(g, "TensorListScatterIntoExistingList", list,
                               op_call1(g, "ZerosLike", tensor), indices);
    g->of_inputs[1] = gather(g, list, indices, shape_of_row(g, tensor));
    return true;
}

static bool concat_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    if (g->of_outputs[0].from)
        g->of_inputs[0] = op_call(
            g, "TensorListSplit",
            INPUTS(g->of_outputs[0], shape_of_items(g, gradient_x(g, 0)), gradient_y(g, 1)),
            NO_ATTRS);
    return true;
}

static bool split_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int64_t any = -1;
    struct edge rows =
        op_call(g, "ConcatV2",
                INPUTS(op_ints(g, &any, 1), shape_of_row(g, gradient_x(g, 0)), op_int(g, 0)),
                ATTRS(attr_int("N", 2)));
    g->of_inputs[0] =
        op_call(g, "TensorListConcatV2", INPUTS(g->of_outputs[0], rows, gradient_x(g, 2)),
                ATTRS(element_type(g)));
    return true;
}

/* --- the ops --- */

const struct op op_empty_tensor_list = {
    .name = "EmptyTensorList",
    .inputs = "element_shape:shape_type max_num_elements:int32",
    .outputs = "handle:variant",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_list_reserve = {
    .name = "TensorListReserve",
    .inputs = "element_shape:shape_type num_elements:int32",
    .outputs = "handle:variant",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_list_length = {
    .name = "TensorListLength",
    .inputs = "input_handle:variant",
    .outputs = "length:int32",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_list_element_shape = {
    .name = "TensorListElementShape",
    .inputs = "input_handle:variant",
    .outputs = "element_shape:shape_type",
    .attrs = "shape_type:" OP_INDEX,
    .no_gradient = true,
};

const struct op op_tensor_list_push_back = {
    .name = "TensorListPushBack",
    .inputs = "input_handle:variant tensor:element_dtype",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type",
    .infer = op_infer_scalar,
    .gradient = push_back_gradient,
};

const struct op op_tensor_list_push_back_batch = {
    .name = "TensorListPushBackBatch",
    .inputs = "input_handles:variant tensor:element_dtype",
    .outputs = "output_handles:variant",
    .attrs = "element_dtype:type",
    .infer = infer_batch,
    .no_gradient = true,
};

const struct op op_tensor_list_pop_back = {
    .name = "TensorListPopBack",
    .inputs = "input_handle:variant element_shape:int32",
    .outputs = "output_handle:variant tensor:element_dtype",
    .attrs = "element_dtype:type",
    .infer = infer_pop,
    .gradient = pop_back_gradient,
};

const struct op op_tensor_list_get_item = {
    .name = "TensorListGetItem",
    .inputs = "input_handle:variant index:int32 element_shape:Tshape",
    .outputs = "item:element_dtype",
    .attrs = "element_dtype:type Tshape:{int32,int64}=int32",
    .infer = infer_item,
    .gradient = get_item_gradient,
};

const struct op op_tensor_list_set_item = {
    .name = "TensorListSetItem",
    .inputs = "input_handle:variant index:int32 item:element_dtype",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type resize_if_index_out_of_bounds:bool=false",
    .infer = op_infer_scalar,
    .gradient = set_item_gradient,
};

const struct op op_tensor_list_resize = {
    .name = "TensorListResize",
    .inputs = "input_handle:variant size:int32",
    .outputs = "output_handle:variant",
    .attrs = "",
    .infer = op_infer_scalar,
    .gradient = resize_gradient,
};

const struct op op_tensor_list_stack = {
    .name = "TensorListStack",
    .inputs = "input_handle:variant element_shape:int32",
    .outputs = "tensor:element_dtype",
    .attrs = "element_dtype:type num_elements:int=-1",
    .gradient = stack_gradient,
};

const struct op op_tensor_list_from_tensor = {
    .name = "TensorListFromTensor",
    .inputs = "tensor:element_dtype element_shape:shape_type",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .infer = op_infer_scalar,
    .gradient = from_tensor_gradient,
};

const struct op op_tensor_list_gather = {
    .name = "TensorListGather",
    .inputs = "input_handle:variant indices:int32 element_shape:int32",
    .outputs = "values:element_dtype",
    .attrs = "element_dtype:type",
    .gradient = gather_gradient,
};

const struct op op_tensor_list_scatter = {
    .name = "TensorListScatter",
    .inputs = "tensor:element_dtype indices:int32 element_shape:shape_type",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .infer = op_infer_scalar,
    .gradient = scatter_gradient,
};

const struct op op_tensor_list_scatter_v2 = {
    .name = "TensorListScatterV2",
    .inputs = "tensor:element_dtype indices:int32 element_shape:shape_type num_elements:int32",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .infer = op_infer_scalar,
    .gradient = scatter_gradient,
};

const struct op op_tensor_list_scatter_into_existing_list = {
    .name = "TensorListScatterIntoExistingList",
    .inputs = "input_handle:variant tensor:element_dtype indices:int32",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type",
    .infer = op_infer_scalar,
    .gradient = scatter_into_gradient,
};

const struct op op_tensor_list_concat = {
    .name = "TensorListConcat",
    .inputs = "input_handle:variant",
    .outputs = "tensor:element_dtype lengths:int64",
    .attrs = "element_dtype:type element_shape:shape=<unk>",
    .gradient = concat_gradient,
};

const struct op op_tensor_list_concat_v2 = {
    .name = "TensorListConcatV2",
    .inputs = "input_handle:variant element_shape:shape_type leading_dims:int64",
    .outputs = "tensor:element_dtype lengths:int64",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .gradient = concat_gradient,
};

const struct op op_tensor_list_split = {
    .name = "TensorListSplit",
    .inputs = "tensor:element_dtype element_shape:shape_type lengths:int64",
    .outputs = "output_handle:variant",
    .attrs = "element_dtype:type shape_type:" OP_INDEX,
    .infer = op_infer_scalar,
    .gradient = split_gradient,
};

const struct op op_tensor_list_concat_lists = {
    .name = "TensorListConcatLists",
    .inputs = "input_a:variant input_b:variant",
    .outputs = "output:variant",
    .attrs = "element_dtype:type",
    .infer = infer_batch,
    .no_gradient = true,
};
