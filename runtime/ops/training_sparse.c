/* training_sparse.c - optimizers: one step of some rows of a variable. */

#include "runtime/ops/internal.h"

#define REF(name_, inputs_, attrs_)                                                            \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "out:Ref(T)",                             \
        .attrs = "T:" OP_NUMBER " use_locking:bool=false" attrs_, .infer = op_infer_unchanged, \
        .no_gradient = true,                                                                   \
    }
#define RESOURCE(name_, inputs_, attrs_)                                                       \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "",                                       \
        .attrs = "T:" OP_NUMBER " use_locking:bool=false" attrs_, .flags = OP_STATEFUL,        \
        .no_gradient = true,                                                                   \
    }

const struct op op_resource_sparse_apply_adadelta =
    RESOURCE("ResourceSparseApplyAdadelta",
             "var:resource accum:resource accum_update:resource lr:T rho:T epsilon:T "
             "grad:T indices:Tindices",
             " Tindices:" OP_INDEX);
const struct op op_sparse_apply_adadelta =
    REF("SparseApplyAdadelta",
        "var:Ref(T) accum:Ref(T) accum_update:Ref(T) lr:T rho:T epsilon:T grad:T "
        "indices:Tindices",
        " Tindices:" OP_INDEX);
const struct op op_resource_sparse_apply_adagrad = RESOURCE(
    "ResourceSparseApplyAdagrad", "var:resource accum:resource lr:T grad:T indices:Tindices",
    " Tindices:" OP_INDEX " update_slots:bool=true");
const struct op op_sparse_apply_adagrad =
    REF("SparseApplyAdagrad", "var:Ref(T) accum:Ref(T) lr:T grad:T indices:Tindices",
        " Tindices:" OP_INDEX " update_slots:bool=true");
const struct op op_resource_sparse_apply_adagrad_da =
    RESOURCE("ResourceSparseApplyAdagradDA",
             "var:resource gradient_accumulator:resource "
             "gradient_squared_accumulator:resource grad:T indices:Tindices lr:T l1:T "
             "l2:T global_step:int64",
             " Tindices:" OP_INDEX);
const struct op op_sparse_apply_adagrad_da =
    REF("SparseApplyAdagradDA",
        "var:Ref(T) gradient_accumulator:Ref(T) "
        "gradient_squared_accumulator:Ref(T) grad:T indices:Tindices lr:T l1:T "
        "l2:T global_step:int64",
        " Tindices:" OP_INDEX);
const struct op op_resource_sparse_apply_adagrad_v2 =
    RESOURCE("ResourceSparseApplyAdagradV2",
             "var:resource accum:resource lr:T epsilon:T grad:T indices:Tindices",
             " Tindices:" OP_INDEX " update_slots:bool=true");
const struct op op_sparse_apply_adagrad_v2 = REF(
    "SparseApplyAdagradV2", "var:Ref(T) accum:Ref(T) lr:T epsilon:T grad:T indices:Tindices",
    " Tindices:" OP_INDEX " update_slots:bool=true");
const struct op op_resource_sparse_apply_centered_rms_prop =
    RESOURCE("ResourceSparseApplyCenteredRMSProp",
             "var:resource mg:resource ms:resource mom:resource lr:T rho:T momentum:T "
             "epsilon:T grad:T indices:Tindices",
             " Tindices:" OP_INDEX);
const struct op op_sparse_apply_centered_rms_prop =
    REF("SparseApplyCenteredRMSProp",
        "var:Ref(T) mg:Ref(T) ms:Ref(T) mom:Ref(T) lr:T rho:T momentum:T "
        "epsilon:T grad:T indices:Tindices",
        " Tindices:" OP_INDEX);
const struct op op_resource_sparse_apply_ftrl =
    RESOURCE("ResourceSparseApplyFtrl",
             "var:resource accum:resource linear:resource grad:T indices:Tindices lr:T "
             "l1:T l2:T lr_power:T",
             " Tindices:" OP_INDEX " multiply_linear_by_lr:bool=false");
const struct op op_sparse_apply_ftrl =
    REF("SparseApplyFtrl",
        "var:Ref(T) accum:Ref(T) linear:Ref(T) grad:T indices:Tindices lr:T l1:T "
        "l2:T lr_power:T",
        " Tindices:" OP_INDEX " multiply_linear_by_lr:bool=false");
const struct op op_resource_sparse_apply_ftrl_v2 =
    RESOURCE("ResourceSparseApplyFtrlV2",
             "var:resource accum:resource linear:resource grad:T indices:Tindices lr:T "
             "l1:T l2:T l2_shrinkage:T lr_power:T",
             " Tindices:" OP_INDEX " multiply_linear_by_lr:bool=false");
const struct op op_sparse_apply_ftrl_v2 =
    REF("SparseApplyFtrlV2",
        "var:Ref(T) accum:Ref(T) linear:Ref(T) grad:T indices:Tindices lr:T l1:T "
        "l2:T l2_shrinkage:T lr_power:T",
        " Tindices:" OP_INDEX " multiply_linear_by_lr:bool=false");
const struct op op_resource_sparse_apply_keras_momentum =
    RESOURCE("ResourceSparseApplyKerasMomentum",
             "var:resource accum:resource lr:T grad:T indices:Tindices momentum:T",
             " Tindices:" OP_INDEX " use_nesterov:bool=false");
const struct op op_resource_sparse_apply_momentum =
    RESOURCE("ResourceSparseApplyMomentum",
             "var:resource accum:resource lr:T grad:T indices:Tindices momentum:T",
             " Tindices:" OP_INDEX " use_nesterov:bool=false");
const struct op op_sparse_apply_momentum = REF(
    "SparseApplyMomentum", "var:Ref(T) accum:Ref(T) lr:T grad:T indices:Tindices momentum:T",
    " Tindices:" OP_INDEX " use_nesterov:bool=false");
const struct op op_resource_sparse_apply_proximal_adagrad =
    RESOURCE("ResourceSparseApplyProximalAdagrad",
             "var:resource accum:resource lr:T l1:T l2:T grad:T indices:Tindices",
             " Tindices:" OP_INDEX);
const struct op op_sparse_apply_proximal_adagrad = REF(
    "SparseApplyProximalAdagrad",
    "var:Ref(T) accum:Ref(T) lr:T l1:T l2:T grad:T indices:Tindices", " Tindices:" OP_INDEX);
const struct op op_resource_sparse_apply_proximal_gradient_descent =
    RESOURCE("ResourceSparseApplyProximalGradientDescent",
             "var:resource alpha:T l1:T l2:T grad:T indices:Tindices", " Tindices:" OP_INDEX);
const struct op op_sparse_apply_proximal_gradient_descent =
    REF("SparseApplyProximalGradientDescent",
        "var:Ref(T) alpha:T l1:T l2:T grad:T indices:Tindices", " Tindices:" OP_INDEX);
const struct op op_resource_sparse_apply_rms_prop =
    RESOURCE("ResourceSparseApplyRMSProp",
             "var:resource ms:resource mom:resource lr:T rho:T momentum:T epsilon:T "
             "grad:T indices:Tindices",
             " Tindices:" OP_INDEX);
const struct op op_sparse_apply_rms_prop =
    REF("SparseApplyRMSProp",
        "var:Ref(T) ms:Ref(T) mom:Ref(T) lr:T rho:T momentum:T epsilon:T grad:T "
        "indices:Tindices",
        " Tindices:" OP_INDEX);
