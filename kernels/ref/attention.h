/* attention.h - what the kernels of _Attention and _LayerNorm read of their inputs. */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;

struct kernel_attention {
    int64_t batch, heads, queries, keys; /* steps of query, and of key and value */
    int64_t size, value_size;
    double scale;
    bool causal;
};

/* Of query, key and value from input `first` on; fails with INVALID. */
bool kernel_attention_read(struct kernel_call *call, int first, struct kernel_attention *a,
                           struct error *err) CHECKED;

/* How many keys query `i` may see. */
static inline int64_t kernel_attention_seen(const struct kernel_attention *a, int64_t i)
{
    return a->causal && i + 1 < a->keys ? i + 1 : a->keys;
}

/* Rows and columns of the x in input `x`, whose last dimension `scale` and others must have. */
bool kernel_layer_norm_read(struct kernel_call *call, int x, int64_t *rows, int64_t *columns,
                            struct error *err) CHECKED;
