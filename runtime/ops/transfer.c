/*
 * transfer.c - what carries a tensor from one part of a step to another.
 *
 * The executor does these ops itself (dataflow_transfer.c), through the step's rendezvous. They
 * run when they are dead, too: the other part has to know.
 */

#include "runtime/ops/internal.h"

#define TRANSFER_ATTRS                                                                         \
    "tensor_name:string send_device:string send_device_incarnation:int recv_device:string "    \
    "client_terminated:bool=false"

/* What the master knew of it; the executor holds what comes to it. */
static bool infer_received(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *shape = node_attr_shape(infer->node, "_shape");
    if (shape)
        infer->outputs[0] = *shape;
    return true;
}

const struct op op_send = {
    .name = "_Send",
    .inputs = "tensor:T",
    .attrs = "T:type " TRANSFER_ATTRS,
    .outputs = "",
    .flags = OP_STATEFUL,
    .flow = FLOW_SEND,
};

const struct op op_recv = {
    .name = "_Recv",
    .inputs = "",
    .outputs = "tensor:tensor_type",
    .attrs = "tensor_type:type " TRANSFER_ATTRS,
    .infer = infer_received,
    .flags = OP_STATEFUL,
    .flow = FLOW_RECV,
};

/* Of values that are in host memory; here all are. */
const struct op op_host_send = {
    .name = "_HostSend",
    .inputs = "tensor:T",
    .outputs = "",
    .attrs = "T:type " TRANSFER_ATTRS,
    .flags = OP_STATEFUL,
    .flow = FLOW_SEND,
};

const struct op op_host_recv = {
    .name = "_HostRecv",
    .inputs = "",
    .outputs = "tensor:tensor_type",
    .attrs = "tensor_type:type " TRANSFER_ATTRS,
    .infer = infer_received,
    .flags = OP_STATEFUL,
    .flow = FLOW_RECV,
};
