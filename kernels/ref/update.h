/*
 * update.h - what kernels that change a tensor in place share.
 */
#pragma once

#include "kernels/ref/numbers.h"

/* Adds `value` to `target`, or takes it away; same type (a number) and shape. */
void kernel_add_into(struct tensor *target, const struct tensor *value, bool subtract);
