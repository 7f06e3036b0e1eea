/* stage.c - staging areas. */

#include "runtime/ops/internal.h"

#define STAGE_OP(constant, name_, inputs_, outputs_, least_, infer_)                           \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = inputs_,                                                                     \
        .outputs = outputs_,                                                                   \
        .attrs = "capacity:int>=0=0 memory_limit:int>=0=0 dtypes:list(type)" least_            \
                 " container:string='' shared_name:string=''",                                 \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

STAGE_OP(stage, "Stage", "values:list(dtypes)", "", ">=1", NULL);
STAGE_OP(unstage, "Unstage", "", "values:list(dtypes)", ">=1", NULL);
STAGE_OP(stage_peek, "StagePeek", "index:int32", "values:list(dtypes)", ">=1", NULL);
STAGE_OP(stage_size, "StageSize", "", "size:int32", "", op_infer_scalar);
STAGE_OP(stage_clear, "StageClear", "", "", "", NULL);
