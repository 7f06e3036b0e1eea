/* recipes_nn.h - layers: activations, losses, convolutions, pooling. */
#pragma once

#include "tests/kernels/recipe.h"

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

static const struct recipe recipes_nn[] = {
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
    OF_TWO("ReluGrad"),
    OF_TWO("Relu6Grad"),
    OF_TWO("EluGrad"),
    OF_TWO("SeluGrad"),
    OF_TWO("LeakyReluGrad"),
    OF_TWO("SoftplusGrad"),
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
    {"Dilation2D",
     {D(-1, 1, 1, 4, 3, 2), D(-1, 1, 2, 2, 2)},
     {STRIDES, PADDING, LIST("rates", 1, 1, 2, 1)},
     0},
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
    {"ExtractImagePatches",
     {D(-1, 1, 1, 4, 3, 2)},
     {LIST("ksizes", 1, 2, 2, 1), STRIDES, LIST("rates", 1, 1, 1, 1), PADDING},
     0},
    UNARY("_Gelu"),
    {"_LayerNorm", {SQUARE, D(-1, 1, 4), D(-1, 1, 4)}, {{0}}, 0},
    {"_Attention",
     {D(-1, 1, 2, 3, 2, 2), D(-1, 1, 2, 3, 2, 2), D(-1, 1, 2, 3, 2, 3)},
     {{.name = "causal", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[]){true}}},
     0},
    {"_RNNSequence",
     {D(-1, 1, 3, 2, 2), D(-1, 1, 2, 3), D(-1, 1, 2, 3), D(-1, 1, 3, 3), D(-1, 1, 3)},
     {{0}},
     0},
    {"_GRUSequence",
     {D(-1, 1, 3, 2, 2), D(-1, 1, 2, 2), D(-1, 1, 2, 6), D(-1, 1, 2, 6), D(-1, 1, 2, 6)},
     {{0}},
     0},
};
