/* list.c - the tables of kernels, made from the rows of list.h. */

#include "kernels/list.h"

#define KERNEL_ADDRESS(name) &kernel_##name,
const struct kernel *const kernels_cpu[] = {KERNELS_CPU(KERNEL_ADDRESS) NULL};
const struct kernel *const kernels_ref[] = {KERNELS_REF(KERNEL_ADDRESS) NULL};
