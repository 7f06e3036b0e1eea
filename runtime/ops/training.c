/* training.c - optimizers: one step of a whole variable, by reference and by resource. */

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

const struct op op_apply_ada_max =
    REF("ApplyAdaMax",
        "var:Ref(T) m:Ref(T) v:Ref(T) beta1_power:T lr:T beta1:T beta2:T "
        "epsilon:T grad:T",
        "");
const struct op op_resource_apply_ada_max =
    RESOURCE("ResourceApplyAdaMax",
             "var:resource m:resource v:resource beta1_power:T lr:T beta1:T beta2:T "
             "epsilon:T grad:T",
             "");
const struct op op_apply_adadelta =
    REF("ApplyAdadelta",
        "var:Ref(T) accum:Ref(T) accum_update:Ref(T) lr:T rho:T epsilon:T grad:T", "");
const struct op op_resource_apply_adadelta =
    RESOURCE("ResourceApplyAdadelta",
             "var:resource accum:resource accum_update:resource lr:T rho:T epsilon:T "
             "grad:T",
             "");
const struct op op_apply_adagrad =
    REF("ApplyAdagrad", "var:Ref(T) accum:Ref(T) lr:T grad:T", " update_slots:bool=true");
const struct op op_resource_apply_adagrad =
    RESOURCE("ResourceApplyAdagrad", "var:resource accum:resource lr:T grad:T",
             " update_slots:bool=true");
const struct op op_apply_adagrad_da =
    REF("ApplyAdagradDA",
        "var:Ref(T) gradient_accumulator:Ref(T) "
        "gradient_squared_accumulator:Ref(T) grad:T lr:T l1:T l2:T "
        "global_step:int64",
        "");
const struct op op_resource_apply_adagrad_da =
    RESOURCE("ResourceApplyAdagradDA",
             "var:resource gradient_accumulator:resource "
             "gradient_squared_accumulator:resource grad:T lr:T l1:T l2:T "
             "global_step:int64",
             "");
const struct op op_apply_adagrad_v2 =
    REF("ApplyAdagradV2", "var:Ref(T) accum:Ref(T) lr:T epsilon:T grad:T",
        " update_slots:bool=true");
const struct op op_resource_apply_adagrad_v2 =
    RESOURCE("ResourceApplyAdagradV2", "var:resource accum:resource lr:T epsilon:T grad:T",
             " update_slots:bool=true");
const struct op op_apply_adam =
    REF("ApplyAdam",
        "var:Ref(T) m:Ref(T) v:Ref(T) beta1_power:T beta2_power:T lr:T beta1:T "
        "beta2:T epsilon:T grad:T",
        " use_nesterov:bool=false");
const struct op op_resource_apply_adam =
    RESOURCE("ResourceApplyAdam",
             "var:resource m:resource v:resource beta1_power:T beta2_power:T lr:T "
             "beta1:T beta2:T epsilon:T grad:T",
             " use_nesterov:bool=false");
const struct op op_resource_apply_adam_with_amsgrad =
    RESOURCE("ResourceApplyAdamWithAmsgrad",
             "var:resource m:resource v:resource vhat:resource beta1_power:T "
             "beta2_power:T lr:T beta1:T beta2:T epsilon:T grad:T",
             "");
const struct op op_apply_add_sign =
    REF("ApplyAddSign", "var:Ref(T) m:Ref(T) lr:T alpha:T sign_decay:T beta:T grad:T", "");
const struct op op_resource_apply_add_sign =
    RESOURCE("ResourceApplyAddSign",
             "var:resource m:resource lr:T alpha:T sign_decay:T beta:T grad:T", "");
const struct op op_apply_centered_rms_prop =
    REF("ApplyCenteredRMSProp",
        "var:Ref(T) mg:Ref(T) ms:Ref(T) mom:Ref(T) lr:T rho:T momentum:T "
        "epsilon:T grad:T",
        "");
const struct op op_resource_apply_centered_rms_prop =
    RESOURCE("ResourceApplyCenteredRMSProp",
             "var:resource mg:resource ms:resource mom:resource lr:T rho:T momentum:T "
             "epsilon:T grad:T",
             "");
const struct op op_apply_ftrl =
    REF("ApplyFtrl", "var:Ref(T) accum:Ref(T) linear:Ref(T) grad:T lr:T l1:T l2:T lr_power:T",
        " multiply_linear_by_lr:bool=false");
const struct op op_resource_apply_ftrl =
    RESOURCE("ResourceApplyFtrl",
             "var:resource accum:resource linear:resource grad:T lr:T l1:T l2:T "
             "lr_power:T",
             " multiply_linear_by_lr:bool=false");
const struct op op_apply_ftrl_v2 =
    REF("ApplyFtrlV2",
        "var:Ref(T) accum:Ref(T) linear:Ref(T) grad:T lr:T l1:T l2:T "
        "l2_shrinkage:T lr_power:T",
        " multiply_linear_by_lr:bool=false");
const struct op op_resource_apply_ftrl_v2 =
    RESOURCE("ResourceApplyFtrlV2",
             "var:resource accum:resource linear:resource grad:T lr:T l1:T l2:T "
             "l2_shrinkage:T lr_power:T",
             " multiply_linear_by_lr:bool=false");
const struct op op_apply_gradient_descent =
    REF("ApplyGradientDescent", "var:Ref(T) alpha:T delta:T", "");
const struct op op_resource_apply_gradient_descent =
    RESOURCE("ResourceApplyGradientDescent", "var:resource alpha:T delta:T", "");
const struct op op_resource_apply_keras_momentum =
    RESOURCE("ResourceApplyKerasMomentum", "var:resource accum:resource lr:T grad:T momentum:T",
             " use_nesterov:bool=false");
const struct op op_apply_momentum =
    REF("ApplyMomentum", "var:Ref(T) accum:Ref(T) lr:T grad:T momentum:T",
        " use_nesterov:bool=false");
const struct op op_resource_apply_momentum =
    RESOURCE("ResourceApplyMomentum", "var:resource accum:resource lr:T grad:T momentum:T",
             " use_nesterov:bool=false");
const struct op op_apply_power_sign =
    REF("ApplyPowerSign", "var:Ref(T) m:Ref(T) lr:T logbase:T sign_decay:T beta:T grad:T", "");
const struct op op_resource_apply_power_sign =
    RESOURCE("ResourceApplyPowerSign",
             "var:resource m:resource lr:T logbase:T sign_decay:T beta:T grad:T", "");
const struct op op_apply_proximal_adagrad =
    REF("ApplyProximalAdagrad", "var:Ref(T) accum:Ref(T) lr:T l1:T l2:T grad:T", "");
const struct op op_resource_apply_proximal_adagrad = RESOURCE(
    "ResourceApplyProximalAdagrad", "var:resource accum:resource lr:T l1:T l2:T grad:T", "");
const struct op op_apply_proximal_gradient_descent =
    REF("ApplyProximalGradientDescent", "var:Ref(T) alpha:T l1:T l2:T delta:T", "");
const struct op op_resource_apply_proximal_gradient_descent = RESOURCE(
    "ResourceApplyProximalGradientDescent", "var:resource alpha:T l1:T l2:T delta:T", "");
const struct op op_apply_rms_prop =
    REF("ApplyRMSProp",
        "var:Ref(T) ms:Ref(T) mom:Ref(T) lr:T rho:T momentum:T epsilon:T grad:T", "");
const struct op op_resource_apply_rms_prop =
    RESOURCE("ResourceApplyRMSProp",
             "var:resource ms:resource mom:resource lr:T rho:T momentum:T epsilon:T "
             "grad:T",
             "");
