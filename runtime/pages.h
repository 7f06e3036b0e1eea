/*
 * pages.h - memory for numbers: aligned, and where there is much of it in large pages.
 */
#pragma once

#include "base/base.h"

/*
 * `size` bytes at least, aligned to TENSOR_ALIGN, not zeroed; NULL when there are none.  Owned
 * by the caller, freed with free().
 */
void *pages_new(size_t size);
