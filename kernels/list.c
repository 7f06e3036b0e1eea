/* list.c - the tables of kernels, made from the rows of the lists. */

#include "kernels/list.h"
#include "runtime/variant.h"

extern const struct variant_kind tensor_list_send_kind, optional_send_kind;

#define KERNEL_ADDRESS(name) &kernel_##name,
const struct kernel *const kernels_cpu[] = {KERNELS_CPU(KERNEL_ADDRESS) NULL};
static const struct kernel *const ref[] = {KERNELS_REF(KERNEL_ADDRESS) NULL};
static const struct kernel *const state[] = {KERNELS_OF_STATE(KERNEL_ADDRESS) NULL};
static const struct kernel *const io[] = {KERNELS_OF_IO(KERNEL_ADDRESS) NULL};
static const struct kernel *const data[] = {KERNELS_OF_DATA(KERNEL_ADDRESS) NULL};

void kernels_add(bool reference_only)
{
    if (!reference_only)
        kernel_add_table(kernels_cpu);
    kernel_add_table(ref);
    kernel_add_table(state);
    kernel_add_table(io);
    kernel_add_table(data);
    variant_add_kind(&tensor_list_send_kind);
    variant_add_kind(&optional_send_kind);
}
