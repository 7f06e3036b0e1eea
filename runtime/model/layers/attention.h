/* attention.h - scaled products of queries and keys, and the values they choose. */
#pragma once

#include "runtime/model/layer.h"

struct attention {
    struct layer_call *call;
    struct edge query, key, value; /* (batch, heads, steps, numbers) */
    struct edge mask;              /* what may be looked at: broadcasts; without node: all */
    double scale;
    double dropout;
    bool causal; /* nothing that comes later */
};

/* (batch, heads, query steps, numbers of a value); `*scores` after the softmax. */
struct edge attention_build(struct attention *a, struct edge *scores);
