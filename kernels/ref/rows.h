/*
 * rows.h - elementwise kernels: one function per operation and type works on one row of
 * elements, the loops around it (broadcasting) are shared.
 *
 * half and bfloat16 are computed in float and rounded once at the end.  Integers that may
 * overflow are computed as uint64_t, which wraps and truncates to what the type would give.
 *
 * In the expressions below, x and y are the operands.
 */
#pragma once

#include "kernels/list.h"

#include "base/error.h"

#include <complex.h>

struct kernel_row {
    const void *x;
    const void *y;  /* unary: unused */
    int64_t x_step; /* in elements; 0 means the same element again */
    int64_t y_step;
    void *out;
    int64_t count;
    float number; /* an attribute of the operation: alpha */
};

typedef void kernel_row_function(const struct kernel_row *row);

/* One operation: its row functions by type of the operands. */
struct kernel_rows {
    const char *op;
    kernel_row_function *by_type[DTYPE_COUNT];
    /* (optional) Looks at the second operand before anything is computed. */
    bool (*check)(const struct tensor *y, struct error *err);
    bool same_shape;    /* operands do not broadcast */
    bool same_count;    /* nor do these: as many elements, the result has the first's shape */
    const char *number; /* attribute that row->number comes from, or NULL */
};

/* `rows` is ended by an entry without op.  What `prepare` of a kernel calls. */
bool kernel_rows_prepare(const struct kernel_rows *rows, const struct node *node, void **state,
                         struct error *err);

/* What `run` of kernels prepared so is. */
bool kernel_rows_unary(struct kernel_call *call, struct error *err);
bool kernel_rows_binary(struct kernel_call *call, struct error *err);

/*
 * Calls `rows` for each row of the broadcast of x and y to `out`.  shape is that of the output.
 */
void kernel_rows_broadcast(kernel_row_function *function, const struct tensor *x,
                           const struct tensor *y, struct tensor *out, float number);

/* --- definitions: storage type, type of computation, how to load and store --- */

#define ROW1(name, S, C, LOAD, R, STORE, expression)                                           \
    static void name(const struct kernel_row *row)                                             \
    {                                                                                          \
        const S *source = row->x;                                                              \
        R *target = row->out;                                                                  \
        for (int64_t i = 0; i < row->count; i++) {                                             \
            C x = LOAD(source[i]);                                                             \
            target[i] = STORE(expression);                                                     \
        }                                                                                      \
    }
#define ROW2(name, S, C, LOAD, R, STORE, expression)                                           \
    static void name(const struct kernel_row *row)                                             \
    {                                                                                          \
        const S *left = row->x, *right = row->y;                                               \
        R *target = row->out;                                                                  \
        for (int64_t i = 0; i < row->count; i++) {                                             \
            C x = LOAD(left[i * row->x_step]);                                                 \
            C y = LOAD(right[i * row->y_step]);                                                \
            target[i] = STORE(expression);                                                     \
        }                                                                                      \
    }

/* Groups of types; ROW is ROW1 or ROW2, `e` the expression. */
#define ROWS_HALF(ROW, name, e)                                                                \
    ROW(name##_f16, uint16_t, float, dtype_f16_to_f32, uint16_t, dtype_f32_to_f16, e)
#define ROWS_BFLOAT(ROW, name, e)                                                              \
    ROW(name##_bf16, uint16_t, float, dtype_bf16_to_f32, uint16_t, dtype_f32_to_bf16, e)
#define ROWS_FLOAT(ROW, name, e)                                                               \
    ROWS_HALF(ROW, name, e)                                                                    \
    ROWS_BFLOAT(ROW, name, e)                                                                  \
    ROW(name##_f32, float, float, (float), float, (float), e)                                  \
    ROW(name##_f64, double, double, (double), double, (double), e)
#define ROWS_SIGNED(ROW, name, e)                                                              \
    ROW(name##_i8, int8_t, int64_t, (int64_t), int8_t, (int8_t), e)                            \
    ROW(name##_i16, int16_t, int64_t, (int64_t), int16_t, (int16_t), e)                        \
    ROW(name##_i32, int32_t, int64_t, (int64_t), int32_t, (int32_t), e)                        \
    ROW(name##_i64, int64_t, int64_t, (int64_t), int64_t, (int64_t), e)
#define ROWS_UNSIGNED(ROW, name, e)                                                            \
    ROW(name##_u8, uint8_t, uint64_t, (uint64_t), uint8_t, (uint8_t), e)                       \
    ROW(name##_u16, uint16_t, uint64_t, (uint64_t), uint16_t, (uint16_t), e)                   \
    ROW(name##_u32, uint32_t, uint64_t, (uint64_t), uint32_t, (uint32_t), e)                   \
    ROW(name##_u64, uint64_t, uint64_t, (uint64_t), uint64_t, (uint64_t), e)
#define ROWS_WRAPPED(ROW, name, e)                                                             \
    ROW(name##_i8, int8_t, uint64_t, (uint64_t), int8_t, (int8_t), e)                          \
    ROW(name##_i16, int16_t, uint64_t, (uint64_t), int16_t, (int16_t), e)                      \
    ROW(name##_i32, int32_t, uint64_t, (uint64_t), int32_t, (int32_t), e)                      \
    ROW(name##_i64, int64_t, uint64_t, (uint64_t), int64_t, (int64_t), e)                      \
    ROWS_UNSIGNED(ROW, name, e)
#define ROWS_COMPLEX(ROW, name, e)                                                             \
    ROW(name##_c64, float complex, float complex, (float complex), float complex,              \
        (float complex), e)                                                                    \
    ROW(name##_c128, double complex, double complex, (double complex), double complex,         \
        (double complex), e)

/* The same for results that are bool. */
#define TESTS_FLOAT(ROW, name, e)                                                              \
    ROW(name##_f16, uint16_t, float, dtype_f16_to_f32, bool, , e)                              \
    ROW(name##_bf16, uint16_t, float, dtype_bf16_to_f32, bool, , e)                            \
    ROW(name##_f32, float, float, , bool, , e)                                                 \
    ROW(name##_f64, double, double, , bool, , e)
#define TESTS_INTEGER(ROW, name, e)                                                            \
    ROW(name##_i8, int8_t, int8_t, , bool, , e)                                                \
    ROW(name##_i16, int16_t, int16_t, , bool, , e)                                             \
    ROW(name##_i32, int32_t, int32_t, , bool, , e)                                             \
    ROW(name##_i64, int64_t, int64_t, , bool, , e)                                             \
    ROW(name##_u8, uint8_t, uint8_t, , bool, , e)                                              \
    ROW(name##_u16, uint16_t, uint16_t, , bool, , e)                                           \
    ROW(name##_u32, uint32_t, uint32_t, , bool, , e)                                           \
    ROW(name##_u64, uint64_t, uint64_t, , bool, , e)
#define TESTS_COMPLEX(ROW, name, e)                                                            \
    ROW(name##_c64, float complex, float complex, , bool, , e)                                 \
    ROW(name##_c128, double complex, double complex, , bool, , e)

/* Entries of by_type. */
#define FLOAT_ROWS(name)                                                                       \
    [F16] = name##_f16, [BF16] = name##_bf16, [F32] = name##_f32, [F64] = name##_f64
#define SIGNED_ROWS(name)                                                                      \
    [I8] = name##_i8, [I16] = name##_i16, [I32] = name##_i32, [I64] = name##_i64
#define UNSIGNED_ROWS(name)                                                                    \
    [U8] = name##_u8, [U16] = name##_u16, [U32] = name##_u32, [U64] = name##_u64
#define COMPLEX_ROWS(name) [C64] = name##_c64, [C128] = name##_c128
#define INTEGER_ROWS(name) SIGNED_ROWS(name), UNSIGNED_ROWS(name)
#define REAL_ROWS(name) FLOAT_ROWS(name), INTEGER_ROWS(name)
#define NUMBER_ROWS(name) REAL_ROWS(name), COMPLEX_ROWS(name)
