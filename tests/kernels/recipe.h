/*
 * recipe.h - how a node of an op is made, to check its gradient: its inputs (placeholders of
 * double, or constants of integers, bools), attributes, and which inputs are differentiated.
 *
 * The tables of recipes are in recipes_FAMILY.h, the check in gradient_test.c.
 */
#pragma once

#include "runtime/attr.h"
#include "runtime/shape.h"

#define INPUTS_MAX 8
#define ATTRS_MAX 4

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
