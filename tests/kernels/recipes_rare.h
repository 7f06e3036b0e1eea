/* recipes_rare.h - operations that few programs use. */
#pragma once

#include "tests/kernels/recipe.h"

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
    {"TopK", {D(-2, 2, 3, 4)}, {INT("k", 2)}, 0},
};
