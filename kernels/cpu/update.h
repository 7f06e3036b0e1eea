/* update.h - what the kernels that update variables share. */
#pragma once

#include "kernels/cpu/isa.h"

struct error;
struct kernel_call;
struct tensor;
struct variable;

/*
 * The variables behind inputs [first, first + count), writable and all shaped as the gradient.
 * Fails with INVALID, and PRECONDITION or INTERNAL when one has no value.
 */
bool kernel_open_variables(struct kernel_call *call, int first, int count,
                           const struct tensor *grad, struct variable **variables, float **data,
                           struct error *err) CHECKED;

/* Input `index`, which must be a scalar. */
bool kernel_read_scalar(const struct kernel_call *call, int index, const char *name,
                        float *value, struct error *err) CHECKED;

/* Of beta1_power, beta2_power, lr, beta1, beta2, epsilon. */
struct isa_adam kernel_adam(const float *scalars, bool nesterov);
