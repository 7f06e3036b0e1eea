/* collective.c - ops that devices of a group do together. */

#include "runtime/ops/internal.h"

#define KEYS "group_size:int group_key:int instance_key:int "
#define HINTS "communication_hint:string='auto' timeout_seconds:float=0"
#define KEYS_IN " group_size:int32 group_key:int32 instance_key:int32"
#define TOKENS " is_stateless:bool=false Nordering_token:int>=0=0"
#define MERGE "merge_op:{'Min','Max','Mul','Add'} final_op:{'Id','Div'} "
#define NUMBERS "T:{float,half,double,int32,int64} "
#define SUMS "T:{bfloat16,float,half,double,int32,int64} "
#define VALUES "T:{bool,float,half,double,int32,int64} "

const struct op op_collective_reduce = {
    .name = "CollectiveReduce",
    .inputs = "input:T",
    .outputs = "data:T",
    .attrs = SUMS KEYS MERGE "subdiv_offsets:list(int) wait_for:list(int)=[] " HINTS,
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
};

const struct op op_collective_reduce_v2 = {
    .name = "CollectiveReduceV2",
    .inputs = "input:T" KEYS_IN " ordering_token:Nordering_token*resource",
    .outputs = "data:T",
    .attrs = SUMS MERGE HINTS TOKENS " max_subdivs_per_device:int=-1",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
};

const struct op op_collective_gather = {
    .name = "CollectiveGather",
    .inputs = "input:T",
    .outputs = "data:T",
    .attrs = NUMBERS KEYS "shape:shape " HINTS,
    .flags = OP_STATEFUL,
    .infer = op_infer_shape_attr,
};

/* The members' values, one behind the other along the first dimension. */
static bool gather_infer(struct infer *infer, struct error *err)
{
    int64_t size = -1;
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    if (infer->inputs[0].rank > 0)
        infer->outputs[0].dims[0] = op_infer_value(infer, 1, &size) && size > 0
                                        ? shape_product(op_infer_dim(infer, 0, 0), size)
                                        : -1;
    return true;
}

const struct op op_collective_gather_v2 = {
    .name = "CollectiveGatherV2",
    .inputs = "input:T" KEYS_IN " ordering_token:Nordering_token*resource",
    .outputs = "data:T",
    .attrs = NUMBERS HINTS TOKENS,
    .flags = OP_STATEFUL,
    .infer = gather_infer,
};

const struct op op_collective_bcast_send = {
    .name = "CollectiveBcastSend",
    .inputs = "input:T",
    .outputs = "data:T",
    .attrs = VALUES KEYS "shape:shape " HINTS,
    .flags = OP_STATEFUL,
    .infer = op_infer_shape_attr,
};

const struct op op_collective_bcast_send_v2 = {
    .name = "CollectiveBcastSendV2",
    .inputs = "input:T" KEYS_IN,
    .outputs = "data:T",
    .attrs = VALUES HINTS,
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
};

const struct op op_collective_bcast_recv = {
    .name = "CollectiveBcastRecv",
    .inputs = "",
    .outputs = "data:T",
    .attrs = VALUES KEYS "shape:shape " HINTS,
    .flags = OP_STATEFUL,
    .infer = op_infer_shape_attr,
};

static bool receive_infer(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 3);
}

const struct op op_collective_bcast_recv_v2 = {
    .name = "CollectiveBcastRecvV2",
    .inputs = "group_size:int32 group_key:int32 instance_key:int32 shape:Tshape",
    .outputs = "data:T",
    .attrs = VALUES "Tshape:{int32,int64}=int32 " HINTS,
    .flags = OP_STATEFUL,
    .infer = receive_infer,
};

const struct op op_collective_assign_group_v2 = {
    .name = "CollectiveAssignGroupV2",
    .inputs = "group_assignment:int32 device_index:int32 base_key:int32",
    .outputs = "group_size:int32 group_key:int32",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
};
