/*
 * filter.h - what a task of another user may not ask the kernel for.
 */
#pragma once

#include <stdbool.h>

/*
 * For the caller and all that it starts, for good: namespaces, mounts, kernel modules, BPF,
 * keys, tracing of the kernel, io_uring and the like are refused (EPERM; ENOSYS where programs
 * then take another way), as are programs of another architecture.  These are doors that no
 * training needs and through which tasks have got at the kernel.  Needs PR_SET_NO_NEW_PRIVS.
 * False when the kernel cannot do it, with errno.
 */
bool filter_enter(void);
