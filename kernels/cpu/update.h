/* update.h - what the kernels that update variables share. */
#pragma once

#include "kernels/cpu/isa.h"

struct buffer;
struct error;
struct kernel_call;
struct tensor;
struct variable;

/* A variable that is being updated, and its elements: they stay, whoever assigns it meanwhile.
 */
struct opened {
    struct variable *variable;
    struct buffer *buffer;
    float *data;
    int64_t count;
    bool locked; /* its lock is held: the node says use_locking, or other tasks map one of them,
                    and no update is to be lost when it moves away from them */
};

/*
 * Opens the variables behind inputs [first, first + count), writable and all shaped as the
 * gradient (NULL: of any shape); to be given to kernel_close_variables().  Fails with INVALID,
 * and PRECONDITION or INTERNAL when one has no value; then none is open.  Without `locked`
 * two updates at once may lose one of them, as in TensorFlow.
 */
bool kernel_open_variables(struct kernel_call *call, int first, int count,
                           const struct tensor *grad, struct opened *opened,
                           struct error *err) CHECKED;
void kernel_close_variables(struct opened *opened, int count);

/* Input `index`, which must be a scalar.  The first inputs are variables: that one of them has
 * no value is said before that a scalar is none, as TensorFlow does. */
bool kernel_read_scalar(struct kernel_call *call, int index, const char *name, float *value,
                        struct error *err) CHECKED;

/* Of beta1_power, beta2_power, lr, beta1, beta2, epsilon. */
struct isa_adam kernel_adam(const float *scalars, bool nesterov);
