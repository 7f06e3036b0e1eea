/* spread.h - operands that are broadcast, written out. */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;
struct shape;

/*
 * The elements of `from`, of shape `own`, as they stand in `shape`, to which that broadcasts:
 * `from` itself where nothing repeats, else a copy in the call's scratch.  NULL (EXHAUSTED).
 */
const float *spread(struct kernel_call *call, const float *from, const struct shape *own,
                    const struct shape *shape, struct error *err) CHECKED;
