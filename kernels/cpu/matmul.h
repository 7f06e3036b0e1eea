/* matmul.h - what the kernels of MatMul ask of their inputs. */
#pragma once

#include "base/base.h"

struct error;
struct tensor;

/* Whether they are matrices that can be multiplied; fails with INVALID. */
bool matmul_check_shapes(bool transpose_a, bool transpose_b, const struct tensor *a,
                         const struct tensor *b, struct error *err) CHECKED;
