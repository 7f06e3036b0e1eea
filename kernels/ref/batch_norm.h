/* batch_norm.h - what batch normalisation asks of its inputs. */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;

/*
 * Whether inputs 1 to 4 are vectors, and those that are looked at have a number for each
 * channel; fails with INVALID.
 */
bool kernel_batch_norm_check(const struct kernel_call *call, int64_t channels, bool training,
                             double factor, struct error *err) CHECKED;

/* The same of the gradient, whose inputs are dy, x, scale and what was kept. */
bool kernel_batch_norm_grad_check(const struct kernel_call *call, int64_t channels,
                                  struct error *err) CHECKED;
