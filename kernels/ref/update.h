/*
 * update.h - what kernels that read and change variables share.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct variable;

/* Adds `value` to `target`, or takes it away; same type (a number) and shape. */
void kernel_add_into(struct tensor *target, const struct tensor *value, bool subtract);

/* Whether input 0 of the node is a reference to a variable, not a handle. */
bool kernel_is_ref(const struct kernel_call *call);

/*
 * Whether the variable of input 0, whose lock is held, has a value of type `dtype`.  If not, as
 * TensorFlow says: PRECONDITION or (by handle) NOT_FOUND; INVALID for another type.
 */
bool kernel_update_check_locked(const struct kernel_call *call, const struct variable *variable,
                                enum dtype dtype, struct error *err) CHECKED;

/* A reference to the variable's value as it is now; fails as kernel_update_check_locked(). */
bool kernel_snapshot(const struct kernel_call *call, struct variable *variable,
                     enum dtype dtype, struct tensor *value, struct error *err) CHECKED;
