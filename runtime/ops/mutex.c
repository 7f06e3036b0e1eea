/* mutex.c - what critical sections are made of. */

#include "runtime/ops/internal.h"

#define MUTEX_OP(constant, name_, inputs_, outputs_, attrs_, infer_)                           \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = inputs_,                                                                     \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

MUTEX_OP(mutex_v2, "MutexV2", "", "resource:resource",
         "container:string='' shared_name:string=''", op_infer_scalar);
MUTEX_OP(mutex_lock, "MutexLock", "mutex:resource", "mutex_lock:variant", "", op_infer_scalar);
MUTEX_OP(consume_mutex_lock, "ConsumeMutexLock", "mutex_lock:variant", "", "", NULL);
