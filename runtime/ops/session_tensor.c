/* session_tensor.c - values kept between runs, under handles. */

#include "runtime/ops/internal.h"

#define SESSION_OP(constant, name_, inputs_, outputs_, attrs_, infer_)                         \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = inputs_,                                                                     \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

SESSION_OP(get_session_handle, "GetSessionHandle", "value:T", "handle:string", "T:type",
           op_infer_scalar);
SESSION_OP(get_session_handle_v2, "GetSessionHandleV2", "value:T", "handle:resource", "T:type",
           op_infer_scalar);
SESSION_OP(get_session_tensor, "GetSessionTensor", "handle:string", "value:dtype", "dtype:type",
           NULL);
SESSION_OP(delete_session_tensor, "DeleteSessionTensor", "handle:string", "", "", NULL);
