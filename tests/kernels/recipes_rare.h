/* recipes_rare.h - operations that few programs use. */
#pragma once

#include "tests/kernels/recipe.h"

#define FULL                                                                                   \
    {                                                                                          \
        .name = "full_matrices", .kind = ATTR_BOOL, .count = 1, .bools = (const bool[])        \
        {                                                                                      \
            true                                                                               \
        }                                                                                      \
    }

static const struct recipe recipes_rare[] = {
    UNARY("BesselI0"),
    UNARY("BesselI1"),
    UNARY("BesselI0e"),
    UNARY("BesselI1e"),
    UNARY("BesselJ0"),
    UNARY("BesselJ1"),
    UNARY("Dawsn"),
    UNARY("FresnelCos"),
    UNARY("FresnelSin"),
    POSITIVE("BesselK0"),
    POSITIVE("BesselK1"),
    POSITIVE("BesselK0e"),
    POSITIVE("BesselK1e"),
    POSITIVE("BesselY0"),
    POSITIVE("BesselY1"),
    POSITIVE("Expint"),
    POSITIVE("Spence"),
    BINARY("Igamma"),
    BINARY("Igammac"),
    {"Betainc", {{'e', DIMS(2), {1.5, 2}}, {'e', DIMS(2), {2, 0.7}}, D(0.1, 0.9, 2)}, {{0}}, 0},
    {"Cross", {D(-2, 2, 2, 3), D(-2, 2, 2, 3)}, {{0}}, 0},
    {"NthElement", {D(-2, 2, 3, 4), I0(1)}, {{0}}, 0},
    {"CTCLoss", {D(-2, 2, 4, 2, 3), PLACES(0, 0, 0, 1, 1, 0), I(1, 1, 0), I(4, 3)}, {{0}}, 0},
    {"CTCLoss",
     {D(-2, 2, 3, 1, 4), PLACES(0, 0, 0, 1), I(2, 0), I(3)},
     {{.name = "ctc_merge_repeated",
       .kind = ATTR_BOOL,
       .count = 1,
       .bools = (const bool[]){false}}},
     0},
    {"TopK", {D(-2, 2, 3, 4)}, {INT("k", 2)}, 0},
    {"Qr", {D(-2, 2, 2, 4, 3)}, {{0}}, 0},
    {"Qr", {D(-2, 2, 3, 4)}, {{0}}, 1},
    {"Svd", {D(-2, 2, 3, 2)}, {{0}}, 0},
    {"Svd", {D(-2, 2, 4, 3)}, {FULL}, 0},
    {"Svd", {D(-2, 2, 2, 4, 3)}, {FULL}, 1},
    {"Svd", {D(-2, 2, 3, 4)}, {FULL}, 2},
    {"Svd", {D(-2, 2, 3, 3)}, {FULL}, 2},
    {"SelfAdjointEigV2", {D(-2, 2, 3, 3)}, {{0}}, 0},
    {"MatrixSolveLs", {D(-2, 2, 4, 3), D(-2, 2, 4, 2), {'e', {.rank = 0}, {0.5}}}, {{0}}, 0},
    {"MatrixSquareRoot", {D(1, 2, 1, 1)}, {{0}}, 0},
    {"BandedTriangularSolve", {D(1, 2, 2, 3), D(-1, 1, 3, 2)}, {{0}}, 0},
    {"TridiagonalSolve", {D(1, 2, 3, 4), D(-1, 1, 4, 2)}, {{0}}, 0},
    {"TridiagonalMatMul",
     {D(-1, 1, 1, 4), D(-1, 1, 1, 4), D(-1, 1, 1, 4), D(-1, 1, 4, 2)},
     {{0}},
     0},
    {"RaggedGather",
     {I(0, 2, 3), D(-1, 1, 3, 2), I(1, 0, 1)},
     {INT("PARAMS_RAGGED_RANK", 1), INT("OUTPUT_RAGGED_RANK", 1)},
     1},
    {"ConjugateTranspose", {D(-1, 1, 2, 3), I(1, 0)}, {{0}}, 0},
    {"Reverse", {D(-1, 1, 2, 3), {'b', DIMS(2), {1, 0}}}, {{0}}, 0},
    REDUCE("EuclideanNorm"),
    {"CumulativeLogsumexp", {SQUARE, I0(1)}, {{0}}, 0},
    {"BiasAddV1", {D(-1, 1, 2, 3), D(-1, 1, 3)}, {{0}}, 0},
    {"CheckNumericsV2", {SQUARE}, {TEXT("message", "m")}, 0},
};
