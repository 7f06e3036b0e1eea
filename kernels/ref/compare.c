/* compare.c - comparison and logic. */

#include "kernels/ref/rows.h"

TESTS_FLOAT(ROW2, equal, x == y)
TESTS_INTEGER(ROW2, equal, x == y)
TESTS_COMPLEX(ROW2, equal, x == y)
TESTS_FLOAT(ROW2, less, x < y)
TESTS_INTEGER(ROW2, less, x < y)
TESTS_FLOAT(ROW2, less_equal, x <= y)
TESTS_INTEGER(ROW2, less_equal, x <= y)
TESTS_FLOAT(ROW2, greater, x > y)
TESTS_INTEGER(ROW2, greater, x > y)
TESTS_FLOAT(ROW2, greater_equal, x >= y)
TESTS_INTEGER(ROW2, greater_equal, x >= y)
TESTS_FLOAT(ROW2, not_equal, x != y)
TESTS_INTEGER(ROW2, not_equal, x != y)
TESTS_COMPLEX(ROW2, not_equal, x != y)

static bool same_text(struct tensor_string x, struct tensor_string y)
{
    return x.size == y.size && (!x.size || memcmp(x.data, y.data, x.size) == 0);
}

ROW2(equal_bool, bool, bool, , bool, , x == y)
ROW2(not_equal_bool, bool, bool, , bool, , x != y)
ROW2(equal_string, struct tensor_string, struct tensor_string, , bool, , same_text(x, y))
ROW2(not_equal_string, struct tensor_string, struct tensor_string, , bool, , !same_text(x, y))
ROW2(logical_and, bool, bool, , bool, , x &&y)
ROW2(logical_or, bool, bool, , bool, , x || y)

/* Of quantized numbers the integers that stand for them are compared. */
#define QUANTIZED_ROWS(name)                                                                   \
    [QI8] = name##_i8, [QU8] = name##_u8, [QI16] = name##_i16, [QU16] = name##_u16,            \
    [QI32] = name##_i32

static const struct kernel_rows rows[] = {
    {.op = "Equal",
     .by_type = {NUMBER_ROWS(equal),
                 QUANTIZED_ROWS(equal), [BOOL] = equal_bool, [STRING] = equal_string}},
    {.op = "NotEqual",
     .by_type =
         {NUMBER_ROWS(not_equal),
          QUANTIZED_ROWS(not_equal), [BOOL] = not_equal_bool, [STRING] = not_equal_string}},
    {.op = "Less", .by_type = {REAL_ROWS(less)}},
    {.op = "LessEqual", .by_type = {REAL_ROWS(less_equal)}},
    {.op = "Greater", .by_type = {REAL_ROWS(greater)}},
    {.op = "GreaterEqual", .by_type = {REAL_ROWS(greater_equal)}},
    {.op = "LogicalAnd", .by_type = {[BOOL] = logical_and}},
    {.op = "LogicalOr", .by_type = {[BOOL] = logical_or}},
    {0},
};

static bool prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_rows_prepare(rows, node, state, err);
}

/* Shapes that do not broadcast may be allowed: then nothing is equal. */
static bool equality(struct kernel_call *call, bool when_incompatible, struct error *err)
{
    struct shape shape;
    struct error ignored;
    const struct shape *x = &kernel_in(call, 0)->shape, *y = &kernel_in(call, 1)->shape;
    if (node_attr_bool(call->node, "incompatible_shape_error", true) ||
        shape_broadcast(x, y, &shape, &ignored))
        return kernel_rows_binary(call, err);
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    *(bool *)out->data = when_incompatible;
    return true;
}

static bool equal_run(struct kernel_call *call, struct error *err)
{
    return equality(call, false, err);
}

static bool not_equal_run(struct kernel_call *call, struct error *err)
{
    return equality(call, true, err);
}

#define COMPARE(name_, dtypes_, run_)                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = prepare, .release = free,    \
        .run = run_,                                                                           \
    }
#define EQUALITY_TYPES (DTYPES_NUMBER | DTYPES_QUANTIZED | BIT(BOOL) | BIT(STRING))

const struct kernel kernel_equal_ref = COMPARE("Equal", EQUALITY_TYPES, equal_run);
const struct kernel kernel_not_equal_ref = COMPARE("NotEqual", EQUALITY_TYPES, not_equal_run);
const struct kernel kernel_less_ref = COMPARE("Less", DTYPES_REAL, kernel_rows_binary);
const struct kernel kernel_less_equal_ref =
    COMPARE("LessEqual", DTYPES_REAL, kernel_rows_binary);
const struct kernel kernel_greater_ref = COMPARE("Greater", DTYPES_REAL, kernel_rows_binary);
const struct kernel kernel_greater_equal_ref =
    COMPARE("GreaterEqual", DTYPES_REAL, kernel_rows_binary);
const struct kernel kernel_logical_and_ref = COMPARE("LogicalAnd", 0, kernel_rows_binary);
const struct kernel kernel_logical_or_ref = COMPARE("LogicalOr", 0, kernel_rows_binary);
