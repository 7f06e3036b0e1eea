/*
 * optimizer.h - one step of an optimizer on one element of a variable and its slots.
 */
#pragma once

#include "kernels/ref/numbers.h"

#define OPTIMIZER_VARIABLES_MAX 4
#define OPTIMIZER_SCALARS_MAX 8

/* Attributes of the node. */
struct optimizer_flags {
    bool nesterov, update_slots, linear_by_lr;
};

struct optimizer_input {
    double *v;       /* values of the variables, the weight first, to be changed */
    double g;        /* gradient */
    const double *s; /* scalars, in the order of the row */
    struct optimizer_flags flags;
};

struct optimizer_complex_input {
    double complex *v;
    double complex g;
    const double complex *s;
    struct optimizer_flags flags;
};

struct optimizer {
    const char *name; /* of the op behind Resource, Sparse and Apply */
    int variables;    /* the weight and the slots: the first inputs */
    const char *scalars[OPTIMIZER_SCALARS_MAX];
    void (*step)(const struct optimizer_input *in);
    void (*complex_step)(const struct optimizer_complex_input *in); /* NULL: real only */
    bool checks_late; /* sparse: a bad index is met after the rows before it have changed */
};

/* The optimizer behind an op name; asserts that there is one. */
const struct optimizer *kernel_optimizer(const char *op);

/* For complex numbers, where TensorFlow has them (optimizer_complex.c). */
void kernel_complex_gradient_descent(const struct optimizer_complex_input *in);
void kernel_complex_momentum(const struct optimizer_complex_input *in);
void kernel_complex_keras_momentum(const struct optimizer_complex_input *in);
void kernel_complex_adam(const struct optimizer_complex_input *in);
void kernel_complex_adagrad(const struct optimizer_complex_input *in);
void kernel_complex_adagrad_v2(const struct optimizer_complex_input *in);
void kernel_complex_adadelta(const struct optimizer_complex_input *in);
void kernel_complex_rms_prop(const struct optimizer_complex_input *in);
void kernel_complex_centered_rms_prop(const struct optimizer_complex_input *in);
