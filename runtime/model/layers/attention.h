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
    bool hides;  /* `mask` is of type bool and hides steps that are not there, as masks do */
    bool zeroes; /* with it: who may look at nothing has scores of zero, in place of equal ones
                  */
};

/* (batch, heads, query steps, numbers of a value); `*scores` after the softmax. */
struct edge attention_build(struct attention *a, struct edge *scores);
