/*
 * list.h - every kernel, one row each, by table.
 *
 * To add a kernel: a constant `const struct kernel kernel_NAME` in a file of its own (or of its
 * close family), and a row here.  main() adds the tables in this order: cpu first, then ref, so
 * that the plain C references are what is left when nothing faster takes a node.
 */
#pragma once

#include "runtime/kernel.h"

/* Fast ones: oneDNN, OpenBLAS, vector code (kernels/cpu). */
#define KERNELS_CPU(X)

/* Plain C, obvious, one thread, complete: the oracle (kernels/ref). */
#define KERNELS_REF(X)

#define KERNEL_EXTERN(name) extern const struct kernel kernel_##name;
KERNELS_CPU(KERNEL_EXTERN)
KERNELS_REF(KERNEL_EXTERN)
#undef KERNEL_EXTERN

/* NULL-terminated. */
extern const struct kernel *const kernels_cpu[];
extern const struct kernel *const kernels_ref[];
