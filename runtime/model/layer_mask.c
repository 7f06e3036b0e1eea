/* layer_mask.c - which steps of a sequence are there: masks on their way through the layers. */

#include "runtime/model/layer.h"

struct edge layer_mask(const struct layer_call *call, int index)
{
    return call->masks && index < call->inputs_count ? call->masks[index] : (struct edge){0};
}

void layer_give_mask(struct layer_call *call, int output, struct edge mask)
{
    if (output < call->outputs_count)
        call->output_masks[output] = mask;
}

/* The two together; one without node says nothing. */
static struct edge join(struct build *m, const char *op, struct edge a, struct edge b)
{
    return !a.from ? b : !b.from ? a : build_binary(m, op, a, b);
}

struct edge layer_mask_and(struct build *m, struct edge a, struct edge b)
{
    return join(m, "LogicalAnd", a, b);
}

void layer_merge_masks(struct layer_call *call)
{
    struct edge all = layer_mask(call, 0);
    for (int i = 0; i < call->inputs_count; i++) {
        if (!layer_mask(call, i).from)
            return; /* as Keras: one without a mask has all its steps */
        all = i ? join(call->m, "LogicalOr", all, layer_mask(call, i)) : all;
    }
    layer_give_mask(call, 0, all);
}
