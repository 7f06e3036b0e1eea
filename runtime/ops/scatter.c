/* scatter.c - rows of variables chosen by index and changed in place. */

#include "runtime/ops/internal.h"

#define SCATTER(name_, locking_)                                                               \
    {                                                                                          \
        .name = name_, .inputs = "ref:Ref(T) indices:Tindices updates:T",                      \
        .outputs = "output_ref:Ref(T)",                                                        \
        .attrs = "T:type Tindices:" OP_INDEX " use_locking:bool=" locking_,                    \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }
#define RESOURCE_SCATTER(name_)                                                                \
    {                                                                                          \
        .name = name_, .inputs = "resource:resource indices:Tindices updates:dtype",           \
        .outputs = "", .attrs = "dtype:type Tindices:" OP_INDEX, .flags = OP_STATEFUL,         \
        .no_gradient = true,                                                                   \
    }
#define SCATTER_ND(name_, locking_)                                                            \
    {                                                                                          \
        .name = name_, .inputs = "ref:Ref(T) indices:Tindices updates:T",                      \
        .outputs = "output_ref:Ref(T)",                                                        \
        .attrs = "T:type Tindices:" OP_INDEX " use_locking:bool=" locking_                     \
                 " bad_indices_policy:string=''",                                              \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }
#define RESOURCE_SCATTER_ND(name_)                                                             \
    {                                                                                          \
        .name = name_, .inputs = "ref:resource indices:Tindices updates:T", .outputs = "",     \
        .attrs =                                                                               \
            "T:type Tindices:" OP_INDEX " use_locking:bool=true bad_indices_policy:string=''", \
        .flags = OP_STATEFUL, .no_gradient = true,                                             \
    }

const struct op op_scatter_update = SCATTER("ScatterUpdate", "true");
const struct op op_scatter_add = SCATTER("ScatterAdd", "false");
const struct op op_scatter_sub = SCATTER("ScatterSub", "false");
const struct op op_scatter_mul = SCATTER("ScatterMul", "false");
const struct op op_scatter_div = SCATTER("ScatterDiv", "false");
const struct op op_scatter_min = SCATTER("ScatterMin", "false");
const struct op op_scatter_max = SCATTER("ScatterMax", "false");
const struct op op_resource_scatter_update = RESOURCE_SCATTER("ResourceScatterUpdate");
const struct op op_resource_scatter_add = RESOURCE_SCATTER("ResourceScatterAdd");
const struct op op_resource_scatter_sub = RESOURCE_SCATTER("ResourceScatterSub");
const struct op op_resource_scatter_mul = RESOURCE_SCATTER("ResourceScatterMul");
const struct op op_resource_scatter_div = RESOURCE_SCATTER("ResourceScatterDiv");
const struct op op_resource_scatter_min = RESOURCE_SCATTER("ResourceScatterMin");
const struct op op_resource_scatter_max = RESOURCE_SCATTER("ResourceScatterMax");
const struct op op_scatter_nd_update = SCATTER_ND("ScatterNdUpdate", "true");
const struct op op_scatter_nd_add = SCATTER_ND("ScatterNdAdd", "false");
const struct op op_scatter_nd_sub = SCATTER_ND("ScatterNdSub", "false");
const struct op op_resource_scatter_nd_update = RESOURCE_SCATTER_ND("ResourceScatterNdUpdate");
const struct op op_resource_scatter_nd_add = RESOURCE_SCATTER_ND("ResourceScatterNdAdd");
const struct op op_resource_scatter_nd_sub = RESOURCE_SCATTER_ND("ResourceScatterNdSub");
const struct op op_resource_scatter_nd_min = RESOURCE_SCATTER_ND("ResourceScatterNdMin");
const struct op op_resource_scatter_nd_max = RESOURCE_SCATTER_ND("ResourceScatterNdMax");
