/*
 * gradient_test.c - every op with a gradient, against finite differences in double.
 *
 * A recipe says how a node of the op is made: its inputs (placeholders of double, or constants
 * of integers, bools), attributes, and which inputs are differentiated.  The scalar sum(weights
 * * output) is compared, for every element of every such input, with its central difference. An
 * op that has a gradient and no recipe fails the test.
 */

#include "tests/unit/test.h"

#include <math.h>

#include "base/alloc.h"
#include "kernels/list.h"
#include "runtime/gradient.h"
#include "runtime/op.h"
#include "runtime/session.h"

#define INPUTS_MAX 8
#define ATTRS_MAX 4
#define STEP 1e-5
#define TOLERANCE 2e-6

/* "d" double, random in [low, high]; "e" double, "i" int32, "l" int64, "b" bool, with the
 * values given. */
struct input {
    char type; /* 0: no more inputs */
    struct shape shape;
    double values[12]; /* of d: low, high */
};

struct recipe {
    const char *op;
    struct input inputs[INPUTS_MAX];
    struct attr attrs[ATTRS_MAX];
    int output; /* whose gradient is taken */
};

#define DIMS(...)                                                                              \
    {                                                                                          \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }    \
    }
#define D(low, high, ...)                                                                      \
    {                                                                                          \
        'd', DIMS(__VA_ARGS__),                                                                \
        {                                                                                      \
            low, high                                                                          \
        }                                                                                      \
    }
#define D0(low, high)                                                                          \
    {                                                                                          \
        'd', {.rank = 0},                                                                      \
        {                                                                                      \
            low, high                                                                          \
        }                                                                                      \
    }
#define I(...)                                                                                 \
    {                                                                                          \
        'i', DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                           \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
/* A vector of int64, and places: a matrix of two columns. */
#define L(...)                                                                                 \
    {                                                                                          \
        'l', DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                           \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
#define PLACES(...)                                                                            \
    {                                                                                          \
        'l', DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double) / 2, 2),                    \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
#define I0(value)                                                                              \
    {                                                                                          \
        'i', {.rank = 0},                                                                      \
        {                                                                                      \
            value                                                                              \
        }                                                                                      \
    }
#define SQUARE                                                                                 \
    {                                                                                          \
        'd', {2, {3, 4}},                                                                      \
        {                                                                                      \
            -2, 2                                                                              \
        }                                                                                      \
    }
#define ABOVE                                                                                  \
    {                                                                                          \
        'd', {2, {3, 4}},                                                                      \
        {                                                                                      \
            0.3, 2                                                                             \
        }                                                                                      \
    }
#define UNARY(name)                                                                            \
    {                                                                                          \
        name, {SQUARE}, {{0}}, 0                                                               \
    }
#define POSITIVE(name)                                                                         \
    {                                                                                          \
        name, {ABOVE}, {{0}}, 0                                                                \
    }
#define BINARY(name)                                                                           \
    {                                                                                          \
        name, {D(0.4, 2, 3, 1), D(0.4, 2, 2, 1, 4)}, {{0}}, 0                                  \
    }
#define OF_TWO(name)                                                                           \
    {                                                                                          \
        name, {ABOVE, ABOVE}, {{0}}, 0                                                         \
    }
#define REDUCE(name)                                                                           \
    {                                                                                          \
        name, {D(0.3, 2, 2, 3, 2), I(1)}, {{0}}, 0                                             \
    }
#define SAME                                                                                   \
    .kind = ATTR_STRING, .count = 1, .strings = (const struct attr_bytes[])                    \
    {                                                                                          \
        {                                                                                      \
            "SAME", 4                                                                          \
        }                                                                                      \
    }
#define LIST(name_, ...)                                                                       \
    {                                                                                          \
        .name = name_, .kind = ATTR_INT, .is_list = true,                                      \
        .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .ints = (const int64_t[]) \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
#define INT(name_, value_)                                                                     \
    {                                                                                          \
        .name = name_, .kind = ATTR_INT, .count = 1, .ints = (const int64_t[])                 \
        {                                                                                      \
            value_                                                                             \
        }                                                                                      \
    }
#define TEXT(name_, value_)                                                                    \
    {                                                                                          \
        .name = name_, .kind = ATTR_STRING, .count = 1, .strings = (const struct attr_bytes[]) \
        {                                                                                      \
            {                                                                                  \
                value_, sizeof(value_) - 1                                                     \
            }                                                                                  \
        }                                                                                      \
    }
#define STRIDES LIST("strides", 1, 2, 1, 1)
#define KSIZE LIST("ksize", 1, 2, 2, 1)
#define PADDING                                                                                \
    {                                                                                          \
        .name = "padding", SAME                                                                \
    }
#define CONV                                                                                   \
    {                                                                                          \
        STRIDES, PADDING                                                                       \
    }
#define POOL                                                                                   \
    {                                                                                          \
        STRIDES, PADDING, KSIZE                                                                \
    }

#define CONV3D                                                                                 \
    {                                                                                          \
        LIST("strides", 1, 1, 2, 1, 1), PADDING                                                \
    }
#define POOL3D                                                                                 \
    {                                                                                          \
        LIST("strides", 1, 1, 2, 1, 1), PADDING, LIST("ksize", 1, 2, 2, 1, 1)                  \
    }

static const struct recipe recipes[] = {
    UNARY("Identity"),
    UNARY("Neg"),
    POSITIVE("Abs"),
    UNARY("Square"),
    POSITIVE("Sqrt"),
    POSITIVE("Rsqrt"),
    POSITIVE("Reciprocal"),
    UNARY("Exp"),
    UNARY("Expm1"),
    POSITIVE("Log"),
    POSITIVE("Log1p"),
    UNARY("Sigmoid"),
    UNARY("Tanh"),
    UNARY("Sin"),
    UNARY("Cos"),
    UNARY("Erf"),
    POSITIVE("Sign"),
    POSITIVE("Relu"),
    POSITIVE("Relu6"),
    UNARY("Elu"),
    UNARY("Selu"),
    POSITIVE("LeakyRelu"),
    UNARY("Softplus"),
    UNARY("Softsign"),
    UNARY("Softmax"),
    UNARY("LogSoftmax"),
    UNARY("L2Loss"),
    {"PlaceholderWithDefault",
     {SQUARE},
     {{.name = "shape",
       .kind = ATTR_SHAPE,
       .count = 1,
       .shapes = (const struct shape[]){{2, {3, 4}}}}},
     0},
    {"IdentityN", {SQUARE, ABOVE}, {{0}}, 1},
    {"CheckNumerics", {SQUARE}, {TEXT("message", "no")}, 0},
    {"Cast",
     {SQUARE},
     {{.name = "DstT", .kind = ATTR_TYPE, .count = 1, .types = (const int[]){F64}}},
     0},
    BINARY("Add"),
    BINARY("AddV2"),
    BINARY("Sub"),
    BINARY("Mul"),
    BINARY("MulNoNan"),
    BINARY("RealDiv"),
    BINARY("Div"),
    BINARY("DivNoNan"),
    BINARY("Maximum"),
    BINARY("Minimum"),
    BINARY("SquaredDifference"),
    BINARY("Pow"),
    BINARY("Xdivy"),
    {"FloorMod", {D(2.1, 2.9, 3), D(1.1, 1.9, 3)}, {{0}}, 0},
    OF_TWO("SigmoidGrad"),
    OF_TWO("TanhGrad"),
    OF_TWO("SqrtGrad"),
    OF_TWO("RsqrtGrad"),
    OF_TWO("ReciprocalGrad"),
    OF_TWO("ReluGrad"),
    OF_TWO("Relu6Grad"),
    OF_TWO("EluGrad"),
    OF_TWO("SeluGrad"),
    OF_TWO("LeakyReluGrad"),
    OF_TWO("SoftplusGrad"),
    {"AddN", {SQUARE, ABOVE, SQUARE}, {INT("N", 3)}, 0},
    {"AccumulateNV2",
     {SQUARE, ABOVE},
     {INT("N", 2),
      {.name = "shape",
       .kind = ATTR_SHAPE,
       .count = 1,
       .shapes = (const struct shape[]){{2, {3, 4}}}}},
     0},
    {"ClipByValue", {D(-2, 2, 5), D0(-1, -0.9), D0(0.9, 1)}, {{0}}, 0},
    {"Select", {{'b', DIMS(3), {1, 0, 1}}, SQUARE, ABOVE}, {{0}}, 0},
    {"SelectV2", {{'b', DIMS(3, 1), {1, 0, 1}}, SQUARE, D(1, 2, 4)}, {{0}}, 0},
    REDUCE("Sum"),
    REDUCE("Mean"),
    REDUCE("Prod"),
    REDUCE("Max"),
    REDUCE("Min"),
    {"Cumsum", {SQUARE, I0(1)}, {INT("N", 0)}, 0},
    {"Cumprod",
     {ABOVE, I0(0)},
     {{.name = "reverse", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}}},
     0},
    {"SegmentSum", {D(-1, 1, 4, 2), I(0, 0, 1, 3)}, {{0}}, 0},
    {"SegmentMean", {D(-1, 1, 4, 2), I(0, 0, 1, 3)}, {{0}}, 0},
    {"UnsortedSegmentSum", {D(-1, 1, 4, 2), I(1, -1, 1, 0), I0(3)}, {{0}}, 0},
    {"SparseSegmentSum", {D(-1, 1, 4, 2), I(1, 3, 1), I(0, 0, 2)}, {{0}}, 0},
    {"SparseSegmentMean", {D(-1, 1, 4, 2), I(1, 3, 1), I(0, 0, 2)}, {{0}}, 0},
    {"SparseSegmentSqrtN", {D(-1, 1, 4, 2), I(1, 3, 1), I(0, 0, 2)}, {{0}}, 0},
    {"MatMul",
     {D(-1, 1, 3, 2), D(-1, 1, 4, 3)},
     {{.name = "transpose_a", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}},
      {.name = "transpose_b", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}}},
     0},
    {"BatchMatMul", {D(-1, 1, 2, 2, 3), D(-1, 1, 2, 3, 2)}, {{0}}, 0},
    {"Einsum",
     {D(-1, 1, 2, 3), D(-1, 1, 3, 4)},
     {{.name = "equation",
       .kind = ATTR_STRING,
       .count = 1,
       .strings = (const struct attr_bytes[]){{"ab,bc->ca", 9}}}},
     0},
    {"Einsum",
     {D(-1, 1, 2, 3, 3)},
     {{.name = "equation",
       .kind = ATTR_STRING,
       .count = 1,
       .strings = (const struct attr_bytes[]){{"abb->ba", 7}}}},
     0},
    {"Einsum",
     {D(-1, 1, 2, 3), D(-1, 1, 3, 4)},
     {{.name = "equation",
       .kind = ATTR_STRING,
       .count = 1,
       .strings = (const struct attr_bytes[]){{"ab,cd->bd", 9}}}},
     0},
    {"Einsum",
     {D(-1, 1, 3, 1, 2), D(-1, 1, 2, 2, 4)},
     {{.name = "equation",
       .kind = ATTR_STRING,
       .count = 1,
       .strings = (const struct attr_bytes[]){{"a...b,...bc->...ac", 18}}}},
     0},
    {"Einsum",
     {D(-1, 1, 2, 3, 4)},
     {{.name = "equation",
       .kind = ATTR_STRING,
       .count = 1,
       .strings = (const struct attr_bytes[]){{"a...->a", 7}}}},
     0},
    {"BatchMatMulV2",
     {D(-1, 1, 2, 2, 3), D(-1, 1, 2, 3)},
     {{.name = "adj_y", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}}},
     0},
    {"BatchMatMulV3",
     {D(-1, 1, 1, 3, 2), D(-1, 1, 2, 3, 2)},
     {{.name = "adj_x", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}},
      {.name = "Tout", .kind = ATTR_TYPE, .count = 1, .types = (const int[]){F64}}},
     0},
    {"Reshape", {SQUARE, I(2, 6)}, {{0}}, 0},
    {"Squeeze", {D(-1, 1, 2, 1, 3)}, {{0}}, 0},
    {"ExpandDims", {SQUARE, I0(-2)}, {{0}}, 0},
    {"Fill", {I(2, 3), D0(-1, 1)}, {{0}}, 0},
    {"BroadcastTo", {D(-1, 1, 3, 1), I(2, 3, 2)}, {{0}}, 0},
    {"MatrixBandPart", {SQUARE, I0(1), I0(0)}, {{0}}, 0},
    {"Pack", {SQUARE, ABOVE}, {INT("N", 2), INT("axis", 1)}, 0},
    {"Unpack", {SQUARE}, {INT("num", 3), INT("axis", 0)}, 1},
    {"ConcatV2", {SQUARE, D(-1, 1, 3, 2), I0(-1)}, {INT("N", 2)}, 0},
    {"Concat", {I0(0), SQUARE, D(-1, 1, 2, 4)}, {INT("N", 2)}, 0},
    {"Split", {I0(1), SQUARE}, {INT("num_split", 2)}, 1},
    {"SplitV", {SQUARE, I(1, 3), I0(1)}, {INT("num_split", 2)}, 1},
    {"Slice", {SQUARE, I(1, 0), I(2, 3)}, {{0}}, 0},
    {"StridedSlice", {SQUARE, I(2, 0), I(0, 4), I(-1, 2)}, {{0}}, 0},
    {"TensorStridedSliceUpdate", {SQUARE, I(0, 1), I(2, 3), I(1, 1), D(-1, 1, 2, 2)}, {{0}}, 0},
    {"StridedSliceGrad", {I(3, 4), I(0, 0), I(3, 4), I(1, 2), D(-1, 1, 3, 2)}, {{0}}, 0},
    {"Transpose", {D(-1, 1, 2, 3, 2), I(2, 0, 1)}, {{0}}, 0},
    {"Tile", {D(-1, 1, 2, 3), I(2, 2)}, {{0}}, 0},
    {"Pad", {D(-1, 1, 3), {'i', DIMS(1, 2), {1, 2}}}, {{0}}, 0},
    {"PadV2", {D(-1, 1, 3), {'i', DIMS(1, 2), {1, 2}}, {'e', {.rank = 0}, {1}}}, {{0}}, 0},
    {"MirrorPad", {D(-1, 1, 3), {'i', DIMS(1, 2), {1, 2}}}, {TEXT("mode", "REFLECT")}, 0},
    {"MirrorPadGrad", {D(-1, 1, 6), {'i', DIMS(1, 2), {1, 2}}}, {TEXT("mode", "SYMMETRIC")}, 0},
    {"ReverseV2", {SQUARE, I(1)}, {{0}}, 0},
    {"ReverseSequence", {SQUARE, I(2, 4, 3)}, {INT("seq_dim", 1), INT("batch_dim", 0)}, 0},
    {"SpaceToDepth", {D(-1, 1, 1, 2, 4, 1)}, {INT("block_size", 2)}, 0},
    {"DepthToSpace", {D(-1, 1, 1, 1, 2, 4)}, {INT("block_size", 2)}, 0},
    {"Gather", {SQUARE, I(2, 0, 2)}, {{0}}, 0},
    {"GatherV2",
     {D(-1, 1, 2, 3, 2), {'i', DIMS(2, 2), {2, 0, 1, 1}}, I0(1)},
     {INT("batch_dims", 1)},
     0},
    {"GatherNd", {SQUARE, {'i', DIMS(2, 2), {2, 0, 1, 1}}}, {{0}}, 0},
    {"ScatterNd", {{'i', DIMS(3, 1), {2, 0, 2}}, D(-1, 1, 3, 2), I(4, 2)}, {{0}}, 0},
    {"DynamicPartition", {D(-1, 1, 4, 2), I(1, 0, 1, 1)}, {INT("num_partitions", 2)}, 1},
    {"DynamicStitch", {I(0, 2), I(1, 3), D(-1, 1, 2, 2), D(-1, 1, 2, 2)}, {INT("N", 2)}, 0},
    {"ParallelDynamicStitch",
     {I(0, 2), I(1, 3), D(-1, 1, 2, 2), D(-1, 1, 2, 2)},
     {INT("N", 2)},
     0},
    {"TopKV2", {SQUARE, I0(2)}, {{0}}, 0},
    {"SparseToDense",
     {{'i', DIMS(2, 2), {0, 1, 2, 0}}, I(3, 2), D(-1, 1, 2), D0(-1, 1)},
     {{0}},
     0},
    {"SparseFillEmptyRows", {PLACES(0, 1, 2, 0), D(-1, 1, 2), L(4, 2), D0(-1, 1)}, {{0}}, 1},
    {"SparseReorder", {PLACES(2, 0, 0, 1, 1, 1), D(-1, 1, 3), L(3, 2)}, {{0}}, 1},
    {"SparseSlice",
     {PLACES(0, 1, 1, 1, 2, 0), D(-1, 1, 3), L(3, 2), L(1, 0), L(2, 2)},
     {{0}},
     1},
    {"SparseReduceSum", {PLACES(0, 1, 1, 1, 2, 0), D(-1, 1, 3), L(3, 2), I(0)}, {{0}}, 0},
    {"SparseSoftmax", {PLACES(0, 0, 0, 1, 1, 1), D(-1, 1, 3), L(2, 2)}, {{0}}, 0},
    {"SparseTensorDenseMatMul",
     {PLACES(0, 1, 1, 1, 2, 0), D(-1, 1, 3), L(3, 2), D(-1, 1, 4, 3)},
     {{.name = "adjoint_a", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}},
      {.name = "adjoint_b", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}}},
     0},
    {"SparseTensorDenseAdd",
     {PLACES(0, 1, 2, 0), D(-1, 1, 2), L(3, 2), D(-1, 1, 3, 2)},
     {{0}},
     0},
    {"SparseDenseCwiseMul",
     {PLACES(0, 1, 1, 1, 2, 0), D(-1, 1, 3), L(3, 2), D(1, 2, 2)},
     {{0}},
     0},
    {"SparseDenseCwiseDiv",
     {PLACES(0, 1, 1, 1, 2, 0), D(-1, 1, 3), L(3, 2), D(1, 2, 3, 1)},
     {{0}},
     0},
    {"SparseAdd",
     {PLACES(0, 1, 2, 0),
      D(1, 2, 2),
      L(3, 2),
      PLACES(0, 0, 2, 0),
      D(1, 2, 2),
      L(3, 2),
      {'e', {.rank = 0}, {0.5}}},
     {{0}},
     1},
    {"BiasAdd", {SQUARE, D(-1, 1, 4)}, {{0}}, 0},
    {"BiasAddGrad", {SQUARE}, {{0}}, 0},
    /* The op's own gradient holds for labels that add up to 1. */
    {"SoftmaxCrossEntropyWithLogits",
     {SQUARE, {'e', {.rank = 2, .dims = {3, 4}}, {.1, .2, .3, .4, 1, 0, 0, 0, .5, 0, .5, 0}}},
     {{0}},
     0},
    {"SparseSoftmaxCrossEntropyWithLogits", {SQUARE, I(3, 0, 1)}, {{0}}, 0},
    {"Conv2D", {D(-1, 1, 1, 4, 3, 2), D(-1, 1, 2, 2, 2, 2)}, CONV, 0},
    {"Conv2DBackpropInput",
     {I(1, 4, 3, 2), D(-1, 1, 2, 2, 2, 2), D(-1, 1, 1, 2, 3, 2)},
     CONV,
     0},
    {"Conv2DBackpropFilter",
     {D(-1, 1, 1, 4, 3, 2), I(2, 2, 2, 2), D(-1, 1, 1, 2, 3, 2)},
     CONV,
     0},
    {"DepthwiseConv2dNative", {D(-1, 1, 1, 4, 3, 2), D(-1, 1, 2, 2, 2, 2)}, CONV, 0},
    {"DepthwiseConv2dNativeBackpropInput",
     {I(1, 4, 3, 2), D(-1, 1, 2, 2, 2, 2), D(-1, 1, 1, 2, 3, 4)},
     CONV,
     0},
    {"DepthwiseConv2dNativeBackpropFilter",
     {D(-1, 1, 1, 4, 3, 2), I(2, 2, 2, 2), D(-1, 1, 1, 2, 3, 4)},
     CONV,
     0},
    {"MaxPool", {D(-1, 1, 1, 4, 3, 2)}, POOL, 0},
    {"AvgPool", {D(-1, 1, 1, 4, 3, 2)}, POOL, 0},
    {"AvgPoolGrad", {I(1, 4, 3, 2), D(-1, 1, 1, 2, 3, 2)}, POOL, 0},
    {"Conv3D", {D(-1, 1, 1, 3, 4, 2, 2), D(-1, 1, 2, 2, 1, 2, 2)}, CONV3D, 0},
    {"Conv3DBackpropInputV2",
     {I(1, 3, 4, 2, 2), D(-1, 1, 2, 2, 1, 2, 2), D(-1, 1, 1, 3, 2, 2, 2)},
     CONV3D,
     0},
    {"Conv3DBackpropFilterV2",
     {D(-1, 1, 1, 3, 4, 2, 2), I(2, 2, 1, 2, 2), D(-1, 1, 1, 3, 2, 2, 2)},
     CONV3D,
     0},
    {"MaxPool3D", {D(-1, 1, 1, 3, 4, 2, 2)}, POOL3D, 0},
    {"AvgPool3D", {D(-1, 1, 1, 3, 4, 2, 2)}, POOL3D, 0},
    {"AvgPool3DGrad", {I(1, 3, 4, 2, 2), D(-1, 1, 1, 3, 2, 2, 2)}, POOL3D, 0},
    {"ResizeNearestNeighbor", {D(-1, 1, 1, 2, 3, 2), I(3, 2)}, {{0}}, 0},
    {"MaxPoolGrad", {D(-1, 1, 1, 4, 3, 2), D(1, 2, 1, 2, 3, 2), D(-1, 1, 1, 2, 3, 2)}, POOL, 0},
    {"MaxPoolGradGrad",
     {D(-1, 1, 1, 4, 3, 2), D(1, 2, 1, 2, 3, 2), D(-1, 1, 1, 4, 3, 2)},
     POOL,
     0},
    {"MaxPoolV2", {D(-1, 1, 1, 4, 3, 2), I(1, 2, 2, 1), I(1, 2, 1, 1)}, {PADDING}, 0},
    {"MaxPoolGradV2",
     {D(-1, 1, 1, 4, 3, 2), D(1, 2, 1, 2, 3, 2), D(-1, 1, 1, 2, 3, 2), I(1, 2, 2, 1),
      I(1, 2, 1, 1)},
     {PADDING},
     0},
    {"MaxPoolWithArgmax", {D(-1, 1, 2, 4, 3, 2)}, POOL, 0},
    {"RGBToHSV", {D(0.1, 1, 5, 3)}, {{0}}, 0},
    {"SegmentMax", {D(-1, 1, 4, 2), I(0, 0, 1, 3)}, {{0}}, 0},
    {"SegmentMin", {D(-1, 1, 4, 2), I(0, 0, 1, 3)}, {{0}}, 0},
    {"SegmentProd", {D(0.5, 1, 4, 2), I(0, 0, 1, 3)}, {{0}}, 0},
    {"UnsortedSegmentMax", {D(-1, 1, 4, 2), I(1, -1, 1, 0), I0(2)}, {{0}}, 0},
    {"UnsortedSegmentMin", {D(-1, 1, 4, 2), I(1, -1, 1, 0), I0(2)}, {{0}}, 0},
    {"UnsortedSegmentProd", {D(0.5, 1, 4, 2), I(1, -1, 1, 0), I0(3)}, {{0}}, 0},
    {"SparseSegmentSumWithNumSegments",
     {D(-1, 1, 4, 2), I(1, 3, 1), I(0, 0, 2), I0(4)},
     {{0}},
     0},
    {"SparseSegmentMeanWithNumSegments",
     {D(-1, 1, 4, 2), I(1, 3, 1), I(0, 0, 2), I0(4)},
     {{0}},
     0},
    {"SparseSegmentSqrtNWithNumSegments",
     {D(-1, 1, 4, 2), I(1, 3, 1), I(0, 0, 2), I0(4)},
     {{0}},
     0},
    {"TensorScatterUpdate", {SQUARE, {'i', DIMS(2, 1), {2, 0}}, D(-1, 1, 2, 4)}, {{0}}, 0},
    {"TensorScatterAdd", {SQUARE, {'i', DIMS(2, 1), {2, 2}}, D(-1, 1, 2, 4)}, {{0}}, 0},
    {"TensorScatterSub", {SQUARE, {'i', DIMS(2, 1), {2, 2}}, D(-1, 1, 2, 4)}, {{0}}, 0},
    {"TensorScatterMax", {SQUARE, {'i', DIMS(2, 1), {2, 0}}, D(-1, 1, 2, 4)}, {{0}}, 0},
    {"TensorScatterMin", {SQUARE, {'i', DIMS(2, 1), {2, 0}}, D(-1, 1, 2, 4)}, {{0}}, 0},
    {"ScatterNdNonAliasingAdd", {SQUARE, {'i', DIMS(2, 1), {2, 2}}, D(-1, 1, 2, 4)}, {{0}}, 0},
    {"SpaceToBatch",
     {D(-1, 1, 1, 2, 3, 1), {'i', DIMS(2, 2), {1, 1, 0, 1}}},
     {INT("block_size", 2)},
     0},
    {"SpaceToBatchND",
     {D(-1, 1, 1, 2, 3, 1), I(2, 2), {'i', DIMS(2, 2), {1, 1, 0, 1}}},
     {{0}},
     0},
    {"BatchToSpace",
     {D(-1, 1, 4, 2, 2, 1), {'i', DIMS(2, 2), {1, 1, 0, 1}}},
     {INT("block_size", 2)},
     0},
    {"BatchToSpaceND",
     {D(-1, 1, 4, 2, 2, 1), I(2, 2), {'i', DIMS(2, 2), {1, 1, 0, 1}}},
     {{0}},
     0},
    {"Roll", {SQUARE, I(1, -2), I(0, 1)}, {{0}}, 0},
    {"ExtractImagePatches",
     {D(-1, 1, 1, 4, 3, 2)},
     {LIST("ksizes", 1, 2, 2, 1), STRIDES, LIST("rates", 1, 1, 1, 1), PADDING},
     0},
    {"EnsureShape",
     {SQUARE},
     {{.name = "shape",
       .kind = ATTR_SHAPE,
       .count = 1,
       .shapes = (const struct shape[]){{2, {3, 4}}}}},
     0},
    {"MatrixInverse", {D(1, 2, 2, 2)}, {{0}}, 0},
    {"MatrixDeterminant", {D(1, 2, 2, 2, 2)}, {{0}}, 0},
    {"LogMatrixDeterminant", {D(1, 2, 2, 2, 2)}, {{0}}, 1},
    {"MatrixSolve", {D(1, 2, 2, 2), D(-1, 1, 2, 3)}, {{0}}, 0},
    {"MatrixTriangularSolve", {D(1, 2, 2, 2), D(-1, 1, 2, 3)}, {{0}}, 0},
    OF_TWO("InvGrad"),
    POSITIVE("Inv"),
    {"Acos", {D(-0.9, 0.9, 5)}, {{0}}, 0},
    {"Asin", {D(-0.9, 0.9, 5)}, {{0}}, 0},
    {"Atanh", {D(-0.9, 0.9, 5)}, {{0}}, 0},
    {"Erfinv", {D(-0.9, 0.9, 5)}, {{0}}, 0},
    {"Ndtri", {D(0.1, 0.9, 5)}, {{0}}, 0},
    {"Acosh", {D(1.2, 3, 5)}, {{0}}, 0},
    {"Tan", {D(-1, 1, 5)}, {{0}}, 0},
    UNARY("Atan"),
    UNARY("Asinh"),
    UNARY("Cosh"),
    UNARY("Sinh"),
    UNARY("Erfc"),
    POSITIVE("Lgamma"),
    POSITIVE("Digamma"),
    {"Zeta", {{'e', DIMS(3), {2, 3, 2.5}}, D(0.5, 3, 3)}, {{0}}, 0},
    {"Polygamma", {{'e', DIMS(3), {0, 1, 2}}, D(0.5, 3, 3)}, {{0}}, 0},
    BINARY("Atan2"),
    BINARY("Xlogy"),
    BINARY("Xlog1py"),
    BINARY("NextAfter"),
    {"MatrixDiag", {SQUARE}, {{0}}, 0},
    {"MatrixDiagV2", {SQUARE, I(-1, 1), I0(4), I0(4), {'e', {.rank = 0}, {1}}}, {{0}}, 0},
    {"MatrixDiagV3",
     {SQUARE, I(-1, 1), I0(4), I0(-1), {'e', {.rank = 0}, {1}}},
     {TEXT("align", "RIGHT_RIGHT")},
     0},
    {"MatrixDiagPart", {D(-1, 1, 2, 3, 4)}, {{0}}, 0},
    {"MatrixDiagPartV2", {SQUARE, I(-1, 1), {'e', {.rank = 0}, {1}}}, {{0}}, 0},
    {"MatrixDiagPartV3", {SQUARE, I(-1, 1), {'e', {.rank = 0}, {1}}}, {{0}}, 0},
    {"MatrixSetDiag", {SQUARE, D(-1, 1, 3)}, {{0}}, 0},
    {"MatrixSetDiagV2", {SQUARE, D(-1, 1, 3), I0(1)}, {{0}}, 0},
    {"MatrixSetDiagV3", {SQUARE, D(-1, 1, 2, 3), I(-1, 0)}, {{0}}, 0},
    {"Diag", {D(-1, 1, 2, 3)}, {{0}}, 0},
    {"DiagPart", {D(-1, 1, 2, 3, 2, 3)}, {{0}}, 0},
};

/*
 * Ops with gradients that finite differences cannot check here, and where they are checked:
 * variables by the recorded cases, float-only types likewise, arrays and lists in
 * list_gradient_test.c; the last one only says that there is none.
 */
static const char *const elsewhere[] = {"ReadVariableOp",
                                        "ResourceGatherNd",
                                        "TensorArrayWriteV3",
                                        "TensorArrayReadV3",
                                        "TensorArrayGatherV3",
                                        "TensorArrayScatterV3",
                                        "TensorArrayConcatV3",
                                        "TensorArraySplitV3",
                                        "TensorListPushBack",
                                        "TensorListPopBack",
                                        "TensorListGetItem",
                                        "TensorListSetItem",
                                        "TensorListResize",
                                        "TensorListStack",
                                        "TensorListFromTensor",
                                        "TensorListGather",
                                        "TensorListScatter",
                                        "TensorListScatterV2",
                                        "TensorListScatterIntoExistingList",
                                        "TensorListConcat",
                                        "TensorListConcatV2",
                                        "TensorListSplit",
                                        "ResourceGather",
                                        "SparseMatMul",
                                        "Conj",
                                        "PreventGradient",
                                        "Print",
                                        "FusedBatchNorm",
                                        "FusedBatchNormV2",
                                        "FusedBatchNormV3",
                                        "RandomGamma",
                                        "LRN",
                                        "ResizeBilinear",
                                        "ResizeBicubic",
                                        "CropAndResize",
                                        "BlockLSTM",
                                        "BlockLSTMV2",
                                        "MaxPool3DGrad",
                                        "MaxPool3DGradGrad",
                                        "Real",
                                        "Imag",
                                        "Angle",
                                        "ComplexAbs",
                                        "Complex",
                                        "Cholesky"};

/* --- numbers that are the same at every run --- */

static uint64_t random_state;

static double random_between(double low, double high)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(random_state >> 11) / 9007199254740992.0;
}

/* --- one recipe --- */

struct trial {
    const struct recipe *recipe;
    struct session *session;
    int count;
    bool smooth[INPUTS_MAX]; /* doubles, fed */
    struct tensor values[INPUTS_MAX];
    char names[INPUTS_MAX][16];
    char grads[INPUTS_MAX][128]; /* "" where there is none */
};

static void make_value(const struct input *input, struct tensor *out)
{
    struct error err;
    bool smooth = input->type == 'd' || input->type == 'e';
    enum dtype dtype = smooth               ? F64
                       : input->type == 'b' ? BOOL
                       : input->type == 'l' ? I64
                                            : I32;
    CHECK_OK(tensor_init(out, dtype, &input->shape, &err), &err);
    for (int64_t i = 0; i < out->count; i++)
        tensor_set_number(out, i,
                          input->type == 'd'
                              ? random_between(input->values[0], input->values[1])
                              : input->values[i]);
}

static int attrs_count(const struct recipe *recipe)
{
    int count = 0;
    while (count < ATTRS_MAX && recipe->attrs[count].name &&
           op_signature_attr(op_signature(op_find(recipe->op)), recipe->attrs[count].name))
        count++;
    return count;
}

static void build(struct trial *trial, struct graph *graph, struct error *err)
{
    const struct recipe *recipe = trial->recipe;
    struct builder b = {.graph = graph, .scope = "", .err = err};
    struct edge inputs[INPUTS_MAX], grads[INPUTS_MAX] = {{0}}, xs[INPUTS_MAX];
    int xs_count = 0;
    for (trial->count = 0; trial->count < INPUTS_MAX && recipe->inputs[trial->count].type;
         trial->count++) {
        int i = trial->count;
        make_value(&recipe->inputs[i], &trial->values[i]);
        trial->smooth[i] = recipe->inputs[i].type == 'd';
        snprintf(trial->names[i], sizeof(trial->names[i]), "x%d", i);
        inputs[i] = trial->smooth[i] ? builder_add(&b, "Placeholder", trial->names[i],
                                                   NO_INPUTS, ATTRS(attr_type("dtype", F64)))
                                     : builder_const(&b, trial->names[i], &trial->values[i]);
        if (trial->smooth[i])
            xs[xs_count++] = inputs[i];
    }
    struct edge y = builder_add(&b, recipe->op, "y", inputs, trial->count, recipe->attrs,
                                attrs_count(recipe));
    CHECK_OK(builder_ok(&b), err);
    y = builder_output(y, recipe->output);
    /* Weights that differ: cos of the place. */
    struct edge size = builder_add(&b, "Size", "size", INPUTS(y), NO_ATTRS);
    struct edge places = builder_add(
        &b, "Range", "places",
        INPUTS(builder_scalar(&b, "zero", I32, 0), size, builder_scalar(&b, "one", I32, 1)),
        NO_ATTRS);
    struct edge angles =
        builder_add(&b, "Cast", "angles", INPUTS(places), ATTRS(attr_type("DstT", F64)));
    struct edge weights = builder_add(&b, "Cos", "weights", INPUTS(angles), NO_ATTRS);
    struct edge flat = builder_add(
        &b, "Reshape", "flat",
        INPUTS(y, builder_ints(&b, "any", I32, (const int64_t[]){-1}, 1)), NO_ATTRS);
    struct edge products = builder_add(&b, "Mul", "products", INPUTS(flat, weights), NO_ATTRS);
    struct edge loss = builder_add(
        &b, "Sum", "loss",
        INPUTS(products, builder_ints(&b, "axis", I32, (const int64_t[]){0}, 1)), NO_ATTRS);
    CHECK_OK(builder_ok(&b), err);
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, xs, xs_count, grads, err), err);
    for (int i = 0, x = 0; i < trial->count; i++) {
        if (trial->smooth[i] && grads[x].from)
            snprintf(trial->grads[i], sizeof(trial->grads[i]), "%s:%d", grads[x].from->name,
                     grads[x].output);
        x += trial->smooth[i];
    }
}

static void run(struct trial *trial, const char *fetch, struct tensor *out)
{
    const char *feeds[INPUTS_MAX];
    struct tensor values[INPUTS_MAX];
    struct error err;
    int count = 0;
    for (int i = 0; i < trial->count; i++) {
        if (trial->smooth[i]) {
            feeds[count] = trial->names[i];
            values[count++] = trial->values[i];
        }
    }
    const struct session_run what = {.feeds = feeds,
                                     .feed_values = values,
                                     .feeds_count = count,
                                     .fetches = &fetch,
                                     .fetches_count = 1};
    CHECK_OK(session_run(trial->session, &what, out, &err), &err);
}

static double loss_at(struct trial *trial, int input, int64_t element, double value)
{
    double *data = trial->values[input].data, kept = data[element];
    struct tensor loss = {0};
    data[element] = value;
    run(trial, "loss:0", &loss);
    data[element] = kept;
    double result = tensor_number(&loss, 0);
    tensor_release(&loss);
    return result;
}

/* Where there is no gradient, the slope must be zero. */
static void compare(struct trial *trial, int input)
{
    struct tensor gradient = {0};
    bool flows = trial->grads[input][0] != 0;
    if (flows) {
        run(trial, trial->grads[input], &gradient);
        CHECK(shape_equal(&gradient.shape, &trial->values[input].shape));
    }
    for (int64_t i = 0; i < trial->values[input].count; i++) {
        double x = tensor_number(&trial->values[input], i);
        double rise = loss_at(trial, input, i, x + STEP) - loss_at(trial, input, i, x - STEP);
        double slope = rise / (2 * STEP), own = flows ? tensor_number(&gradient, i) : 0;
        if (!(fabs(own - slope) <= TOLERANCE * (1 + fabs(slope))))
            CHECK_STOP("%s: d/d input %d [%lld] is %.9g, the difference quotient %.9g",
                       trial->recipe->op, input, (long long)i, own, slope);
    }
    tensor_release(&gradient);
}

static void check_recipe(const struct recipe *recipe)
{
    struct trial trial = {.recipe = recipe};
    struct error err = {0};
    struct graph *graph = graph_new();
    random_state = 1;
    build(&trial, graph, &err);
    trial.session = session_new(NULL, &err);
    CHECK(trial.session != NULL);
    CHECK_OK(session_extend_graph(trial.session, graph, &err), &err);
    for (int i = 0; i < trial.count; i++)
        if (trial.smooth[i])
            compare(&trial, i);
    for (int i = 0; i < trial.count; i++)
        tensor_release(&trial.values[i]);
    session_free(trial.session);
    graph_free(graph);
}

TEST(every_gradient_agrees_with_finite_differences)
{
    kernels_add(true);
    for (int i = 0; i < ARRAY_LEN(recipes); i++)
        check_recipe(&recipes[i]);
}

/* A gradient that nobody checks is not to be had. */
TEST(every_op_with_a_gradient_has_a_recipe)
{
    int missing = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        bool found = !op->gradient;
        for (int r = 0; !found && r < ARRAY_LEN(recipes); r++)
            found = strcmp(recipes[r].op, op->name) == 0;
        for (int e = 0; !found && e < ARRAY_LEN(elsewhere); e++)
            found = strcmp(elsewhere[e], op->name) == 0;
        if (!found)
            print_error("no recipe: %s\n", op->name);
        missing += !found;
    }
    CHECK_INT(missing, 0);
}
