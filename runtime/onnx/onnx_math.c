/* onnx_math.c - element by element: functions of one input, of two, choices, types. */

#include "base/alloc.h"
#include "runtime/onnx/internal.h"

enum { INPUTS_MAX = 4 };

/* --- orders of dimensions --- */

/* An input with the channels first, to meet others of `rank`; NULL: it cannot be had so. */
static const char *aligned(struct onnx *o, int input, int rank)
{
    const struct shape *shape = onnx_shape(o, input);
    int64_t dims[LIMIT_TENSOR_RANK];
    if (shape->rank == rank)
        return onnx_in_first(o, input);
    if (shape->rank == 0)
        return onnx_in(o, input);
    if (shape->rank != 1)
        return NULL;
    for (int d = 0; d < rank - 1; d++)
        dims[d] = d ? 1 : shape->dims[0];
    if (shape->dims[0] < 0)
        return NULL;
    const struct tensor *value = onnx_find_constant(o, input);
    struct shape wide = {.rank = rank - 1};
    memcpy(wide.dims, dims, (size_t)wide.rank * sizeof(*dims));
    return value ? onnx_tensor_as(o, value, &wide)
                 : onnx_reshape(o, onnx_in(o, input), dims, wide.rank);
}

/* All inputs in one order; whether that is channels first. */
static bool inputs_of(struct onnx *o, const char **names)
{
    int count = o->node->inputs_count, rank = onnx_output_shape(o, 0)->rank;
    bool first = false;
    for (int i = 0; i < count; i++)
        first = first || (rank >= 3 && onnx_is_first(o, i));
    for (int i = 0; first && i < count; i++) {
        names[i] = aligned(o, i, rank);
        first = names[i] != NULL;
    }
    for (int i = 0; !first && i < count; i++)
        names[i] = onnx_in(o, i);
    return first;
}

static void give(struct onnx *o, bool first, const char *name)
{
    if (first)
        onnx_give_first(o, 0, name);
    else
        onnx_give(o, 0, name);
}

/* --- one ONNX operator, with the same inputs --- */

static void convert_same(struct onnx *o)
{
    const char **names = alloc_array((size_t)o->node->inputs_count + 1, sizeof(*names));
    bool first = inputs_of(o, names);
    const struct onnx_row *row = onnx_row_of(o);
    give(o, first, onnx_add(o, row->to, names, o->node->inputs_count, ONNX_NO_ATTRS));
    free(names);
}

static void convert_pass(struct onnx *o)
{
    bool first = onnx_is_first(o, 0);
    give(o, first, first ? onnx_in_first(o, 0) : onnx_in(o, 0));
}

/* --- one input, several operators --- */

static void convert_unary(struct onnx *o, const char *(*make)(struct onnx *o, const char *x))
{
    const char *x;
    bool first = inputs_of(o, &x);
    give(o, first, make(o, x));
}

static const char *number(struct onnx *o, double value)
{
    return onnx_number(o, onnx_dtype(o, 0), value);
}

static const char *make_square(struct onnx *o, const char *x)
{
    return ONNX_ADD(o, "Mul", x, x);
}

static const char *make_rsqrt(struct onnx *o, const char *x)
{
    return ONNX_ADD(o, "Reciprocal", ONNX_ADD(o, "Sqrt", x));
}

static const char *make_relu6(struct onnx *o, const char *x)
{
    return ONNX_ADD(o, "Clip", x, number(o, 0), number(o, 6));
}

static const char *make_expm1(struct onnx *o, const char *x)
{
    return ONNX_ADD(o, "Sub", ONNX_ADD(o, "Exp", x), number(o, 1));
}

static const char *make_log1p(struct onnx *o, const char *x)
{
    return ONNX_ADD(o, "Log", ONNX_ADD(o, "Add", x, number(o, 1)));
}

static const char *make_leaky_relu(struct onnx *o, const char *x)
{
    return onnx_add(o, "LeakyRelu", ONNX_IN(x),
                    ONNX_ATTRS(ONNX_F("alpha", node_attr_float(o->node, "alpha", 0.2F))));
}

/* The constants are those of the kernels: ONNX's defaults have fewer digits. */
static const char *make_selu(struct onnx *o, const char *x)
{
    return onnx_add(
        o, "Selu", ONNX_IN(x),
        ONNX_ATTRS(ONNX_F("alpha", 1.6732632423543772F), ONNX_F("gamma", 1.0507009873554805F)));
}

static const char *make_cast(struct onnx *o, const char *x)
{
    return onnx_cast(o, x, (enum dtype)node_attr_type(o->node, "DstT"));
}

#define UNARY(name)                                                                            \
    static void convert_##name(struct onnx *o)                                                 \
    {                                                                                          \
        convert_unary(o, make_##name);                                                         \
    }
UNARY(square)
UNARY(rsqrt)
UNARY(relu6)
UNARY(expm1)
UNARY(log1p)
UNARY(leaky_relu)
UNARY(selu)
UNARY(cast)

/* --- two inputs --- */

static void convert_squared_difference(struct onnx *o)
{
    const char *names[INPUTS_MAX];
    bool first = inputs_of(o, names);
    const char *x = ONNX_ADD(o, "Sub", names[0], names[1]);
    give(o, first, ONNX_ADD(o, "Mul", x, x));
}

static void convert_not_equal(struct onnx *o)
{
    const char *names[INPUTS_MAX];
    bool first = inputs_of(o, names);
    give(o, first, ONNX_ADD(o, "Not", ONNX_ADD(o, "Equal", names[0], names[1])));
}

/* x / y where y is not 0, else 0. */
static void convert_div_no_nan(struct onnx *o)
{
    const char *names[INPUTS_MAX];
    bool first = inputs_of(o, names);
    const char *zero = number(o, 0), *none = ONNX_ADD(o, "Equal", names[1], zero);
    const char *by = ONNX_ADD(o, "Where", none, number(o, 1), names[1]);
    give(o, first, ONNX_ADD(o, "Where", none, zero, ONNX_ADD(o, "Div", names[0], by)));
}

static void convert_floor_div(struct onnx *o)
{
    const char *names[INPUTS_MAX];
    bool first = inputs_of(o, names);
    if (!(BIT(onnx_dtype(o, 0)) & DTYPES_FLOAT))
        onnx_refuse(o, "ONNX divides integers towards zero");
    give(o, first, ONNX_ADD(o, "Floor", ONNX_ADD(o, "Div", names[0], names[1])));
}

/* The bias goes along the channels: last, or second when the node says so. */
static void convert_bias(struct onnx *o)
{
    int rank = onnx_shape(o, 0)->rank;
    int64_t dims[LIMIT_TENSOR_RANK] = {0};
    if (strcmp(node_attr_string(o->node, "data_format", "NHWC"), "NHWC") != 0) {
        if (rank < 2) {
            onnx_refuse(o, "the dimensions of its input are not known");
            return;
        }
        dims[0] = onnx_shape(o, 1)->dims[0];
        for (int d = 1; d < rank - 1; d++)
            dims[d] = 1;
        const char *bias = onnx_reshape(o, onnx_in(o, 1), dims, rank - 1);
        onnx_give(o, 0, ONNX_ADD(o, "Add", onnx_in(o, 0), bias));
        return;
    }
    const char *names[INPUTS_MAX];
    bool first = inputs_of(o, names);
    give(o, first, ONNX_ADD(o, "Add", names[0], names[1]));
}

/* --- constants of a shape that is not known yet --- */

/* A tensor of that shape, all elements `value` (a scalar's name). */
static const char *filled(struct onnx *o, const char *shape, const char *value)
{
    return ONNX_ADD(o, "Expand", value, shape);
}

static void convert_zeros_like(struct onnx *o)
{
    const char *x = onnx_in(o, 0);
    onnx_give(o, 0, filled(o, ONNX_ADD(o, "Shape", x), number(o, 0)));
}

static void convert_ones_like(struct onnx *o)
{
    const char *x = onnx_in(o, 0);
    onnx_give(o, 0, filled(o, ONNX_ADD(o, "Shape", x), number(o, 1)));
}

static void convert_fill(struct onnx *o)
{
    const char *shape = onnx_cast(o, onnx_in(o, 0), I64);
    onnx_give(o, 0, filled(o, shape, onnx_in(o, 1)));
}

static void convert_broadcast(struct onnx *o)
{
    const char *shape = onnx_cast(o, onnx_in(o, 1), I64);
    onnx_give(o, 0, ONNX_ADD(o, "Expand", onnx_in(o, 0), shape));
}

static void convert_range(struct onnx *o)
{
    onnx_give(o, 0, ONNX_ADD(o, "Range", onnx_in(o, 0), onnx_in(o, 1), onnx_in(o, 2)));
}

const struct onnx_row onnx_math_rows[] = {
    {"Abs", convert_same, "Abs"},
    {"Add", convert_same, "Add"},
    {"AddV2", convert_same, "Add"},
    {"AddN", convert_same, "Sum"},
    {"BiasAdd", convert_bias, NULL},
    {"BroadcastTo", convert_broadcast, NULL},
    {"Cast", convert_cast, NULL},
    {"Ceil", convert_same, "Ceil"},
    {"Cos", convert_same, "Cos"},
    {"Div", convert_same, "Div"},
    {"DivNoNan", convert_div_no_nan, NULL},
    {"Elu", convert_same, "Elu"},
    {"Equal", convert_same, "Equal"},
    {"Erf", convert_same, "Erf"},
    {"Exp", convert_same, "Exp"},
    {"Expm1", convert_expm1, NULL},
    {"Fill", convert_fill, NULL},
    {"Floor", convert_same, "Floor"},
    {"FloorDiv", convert_floor_div, NULL},
    {"Greater", convert_same, "Greater"},
    {"GreaterEqual", convert_same, "GreaterOrEqual"},
    {"Identity", convert_pass, NULL},
    {"Inv", convert_same, "Reciprocal"},
    {"LeakyRelu", convert_leaky_relu, NULL},
    {"Less", convert_same, "Less"},
    {"LessEqual", convert_same, "LessOrEqual"},
    {"Log", convert_same, "Log"},
    {"Log1p", convert_log1p, NULL},
    {"LogicalAnd", convert_same, "And"},
    {"LogicalNot", convert_same, "Not"},
    {"LogicalOr", convert_same, "Or"},
    {"Maximum", convert_same, "Max"},
    {"Minimum", convert_same, "Min"},
    {"Mul", convert_same, "Mul"},
    {"Neg", convert_same, "Neg"},
    {"NotEqual", convert_not_equal, NULL},
    {"OnesLike", convert_ones_like, NULL},
    {"Pow", convert_same, "Pow"},
    {"PreventGradient", convert_pass, NULL},
    {"Range", convert_range, NULL},
    {"RealDiv", convert_same, "Div"},
    {"Reciprocal", convert_same, "Reciprocal"},
    {"Relu", convert_same, "Relu"},
    {"Relu6", convert_relu6, NULL},
    {"Rint", convert_same, "Round"},
    {"Round", convert_same, "Round"},
    {"Rsqrt", convert_rsqrt, NULL},
    {"Select", convert_same, "Where"},
    {"SelectV2", convert_same, "Where"},
    {"Selu", convert_selu, NULL},
    {"Sigmoid", convert_same, "Sigmoid"},
    {"Sign", convert_same, "Sign"},
    {"Sin", convert_same, "Sin"},
    {"Softplus", convert_same, "Softplus"},
    {"Softsign", convert_same, "Softsign"},
    {"Sqrt", convert_same, "Sqrt"},
    {"Square", convert_square, NULL},
    {"SquaredDifference", convert_squared_difference, NULL},
    {"StopGradient", convert_pass, NULL},
    {"Sub", convert_same, "Sub"},
    {"Tanh", convert_same, "Tanh"},
    {"ZerosLike", convert_zeros_like, NULL},
    {NULL, NULL, NULL}};
