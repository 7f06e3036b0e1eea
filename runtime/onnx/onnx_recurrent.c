/* onnx_recurrent.c - a cell along a sequence: BlockLSTMV2 is ONNX's LSTM. */

#include "runtime/onnx/internal.h"

enum { SEQUENCE, X, CELL, HIDDEN, WEIGHTS, BIAS = 8 }; /* inputs */
enum { CELLS = 1, HIDDENS = 6 };                       /* outputs */

/* Where ONNX's gates i, o, f, c are among those of the op: i, f, c, o. */
static const int gates[] = {0, 3, 1, 2};

/* Rows [first, first + rows) of (all, 4 units), turned to (1, 4 units, rows). */
static const char *turn_gates(struct onnx *o, const struct tensor *weights, int64_t first,
                              int64_t rows)
{
    int64_t units = weights->shape.dims[1] / 4;
    struct tensor out;
    o->failed = o->failed || !tensor_init(&out, F32, &SHAPE(1, 4 * units, rows), o->err);
    if (o->failed)
        return "";
    const float *from = tensor_f32(weights);
    float *to = tensor_f32_mut(&out);
    for (int g = 0; g < 4; g++)
        for (int64_t u = 0; u < units; u++)
            for (int64_t r = 0; r < rows; r++)
                *to++ = from[(first + r) * 4 * units + gates[g] * units + u];
    const char *name = onnx_tensor(o, &out);
    tensor_release(&out);
    return name;
}

/* (4 units) to (1, 8 units): ONNX adds a second bias, of the recurrent product. */
static const char *turn_bias(struct onnx *o, const struct tensor *bias)
{
    int64_t units = bias->count / 4;
    struct tensor out;
    o->failed = o->failed || !tensor_init(&out, F32, &SHAPE(1, 8 * units), o->err);
    if (o->failed)
        return "";
    const float *from = tensor_f32(bias);
    float *to = tensor_f32_mut(&out);
    memset(to, 0, (size_t)out.count * sizeof(*to));
    for (int g = 0; g < 4; g++)
        memcpy(to + g * units, from + gates[g] * units, (size_t)units * sizeof(*to));
    const char *name = onnx_tensor(o, &out);
    tensor_release(&out);
    return name;
}

/* Whether an input of states is zeros: those are ONNX's default. */
static bool is_zeros(struct onnx *o, int input)
{
    const struct node *fill = o->node->inputs[input].from;
    if (strcmp(fill->op->name, "Fill") != 0)
        return false;
    const struct onnx_value *value = onnx_value(o, fill->inputs[1]);
    return value->constant.dtype && tensor_number(&value->constant, 0) == 0;
}

static const char *states(struct onnx *o, int input)
{
    int64_t zero = 0;
    return is_zeros(o, input)
               ? ""
               : ONNX_ADD(o, "Unsqueeze", onnx_in(o, input), onnx_ints(o, &zero, 1));
}

static void convert_lstm(struct onnx *o)
{
    const struct tensor *weights = onnx_constant(o, WEIGHTS), *bias = onnx_constant(o, BIAS);
    const struct tensor *steps = onnx_constant(o, SEQUENCE);
    const struct shape *x = onnx_shape(o, X);
    if (!weights || !bias || !steps)
        return;
    bool plain = !node_attr_bool(o->node, "use_peephole", false) &&
                 node_attr_float(o->node, "cell_clip", 0) <= 0 && weights->dtype == F32;
    if (!plain || x->rank != 3 || tensor_integer(steps, 0) < x->dims[0]) {
        onnx_refuse(o, "it has peepholes, clips its cells or stops before the last step");
        return;
    }
    int64_t units = weights->shape.dims[1] / 4, width = weights->shape.dims[0] - units, one = 1;
    const char *w = turn_gates(o, weights, 0, width);
    const char *r = turn_gates(o, weights, width, units);
    const char **all = onnx_add_outputs(o, "LSTM",
                                        ONNX_IN(onnx_in(o, X), w, r, turn_bias(o, bias), "",
                                                states(o, HIDDEN), states(o, CELL)),
                                        3, ONNX_ATTRS(ONNX_I("hidden_size", units)));
    /* (steps, directions, batch, units) */
    onnx_give(o, HIDDENS, ONNX_ADD(o, "Squeeze", all[0], onnx_ints(o, &one, 1)));
    struct edge cells = {(struct node *)(uintptr_t)o->node, CELLS};
    onnx_value(o, cells)->last_of_rows = all[2];
}

const struct onnx_row onnx_recurrent_rows[] = {{"BlockLSTMV2", convert_lstm, NULL},
                                               {NULL, NULL, NULL}};
