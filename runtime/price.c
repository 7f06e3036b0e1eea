/* price.c - ops that are cheap: one pass over memory, whatever they do to an element. */

#include "runtime/price.h"

#include <string.h>

#include "base/base.h"

struct price {
    const char *op;
    int weight; /* operations for an element */
};

static const struct price prices[] = {
    {"Add", 1},
    {"AddV2", 1},
    {"Sub", 1},
    {"Mul", 1},
    {"Div", 1},
    {"RealDiv", 1},
    {"Maximum", 1},
    {"Minimum", 1},
    {"SquaredDifference", 1},
    {"Neg", 1},
    {"Abs", 1},
    {"Sign", 1},
    {"Square", 1},
    {"Sqrt", 1},
    {"Rsqrt", 1},
    {"Reciprocal", 1},
    {"Relu", 1},
    {"Relu6", 1},
    {"LeakyRelu", 1},
    {"BiasAdd", 1},
    {"Cast", 1},
    {"Fill", 1},
    {"BroadcastTo", 1},
    {"Tile", 1},
    {"OnesLike", 1},
    {"ZerosLike", 1},
    {"Reshape", 0},
    {"Squeeze", 0},
    {"ExpandDims", 0},
    {"Identity", 0},
    {"Pack", 1},
    {"Transpose", 2},
    {"Greater", 1},
    {"GreaterEqual", 1},
    {"Less", 1},
    {"LessEqual", 1},
    {"Equal", 1},
    {"NotEqual", 1},
    {"LogicalAnd", 1},
    {"LogicalOr", 1},
    {"LogicalNot", 1},
    {"Select", 1},
    {"SelectV2", 1},
    {"Exp", 8},
    {"Log", 8},
    {"Log1p", 8},
    {"Tanh", 8},
    {"Sigmoid", 8},
    {"Softplus", 8},
    {"Softsign", 2},
    {"Elu", 8},
    {"Selu", 8},
    {"Erf", 8},
    {"Softmax", 10},
    {"LogSoftmax", 10},
    {"StatelessRandomUniform", 8},
    {"StatelessRandomUniformV2", 8},
    {"StatelessRandomNormal", 16},
    {"StatelessRandomNormalV2", 16},
    {"FusedBatchNorm", 6},
    {"FusedBatchNormV2", 6},
    {"FusedBatchNormV3", 6},
    {"_FusedBatchNormEx", 6},
    {"_Elementwise", 4},
};

int price_of(const char *op)
{
    for (int i = 0; i < ARRAY_LEN(prices); i++)
        if (!strcmp(prices[i].op, op))
            return prices[i].weight;
    return -1;
}
