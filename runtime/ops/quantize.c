/* quantize.c - floats as elements of a quantised type between two limits, and back. */

#include "runtime/ops/internal.h"

#define QUANTISED "T:{qint8,quint8,qint32,qint16,quint16} "
#define MODE "mode:{'MIN_COMBINED','MIN_FIRST','SCALED'}='MIN_COMBINED' "

/* Limits are a scalar, or one for each slice along the axis. */
static bool quantize_infer(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t axis = node_attr_int(infer->node, "axis", -1);
    infer->outputs[0] = infer->inputs[0];
    for (int i = 1; axis < 0 && i < 3; i++)
        infer->outputs[i] = SHAPE_SCALAR;
    return true;
}

const struct op op_quantize_v2 = {
    .name = "QuantizeV2",
    .inputs = "input:float min_range:float max_range:float",
    .outputs = "output:T output_min:float output_max:float",
    .attrs = QUANTISED MODE
    "round_mode:{'HALF_AWAY_FROM_ZERO','HALF_TO_EVEN'}='HALF_AWAY_FROM_ZERO' "
    "narrow_range:bool=false axis:int=-1 ensure_minimum_range:float=0.01",
    .infer = quantize_infer,
};

const struct op op_dequantize = {
    .name = "Dequantize",
    .inputs = "input:T min_range:float max_range:float",
    .outputs = "output:dtype",
    .attrs = QUANTISED MODE "narrow_range:bool=false axis:int=-1 dtype:{bfloat16,float}=float",
    .infer = op_infer_unchanged,
};
