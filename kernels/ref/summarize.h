/* summarize.h - a tensor's first elements as text, for people. */
#pragma once

#include "runtime/tensor.h"

struct str;

/* "[0 1 2...]...": at most `count_max` elements (below 0: all), rows in brackets. */
void kernel_summarize(const struct tensor *tensor, int64_t count_max, struct str *out);
