/*
 * dtype.h - element types of tensors, with TensorFlow's numbers and names.
 *
 * A reference type (the output of a variable) is the base type plus DTYPE_REF.
 */
#pragma once

#include "base/base.h"

/* ours, number, bytes per element, TensorFlow's name in messages */
#define DTYPES(X)                                                                              \
    X(F32, 1, 4, "float")                                                                      \
    X(F64, 2, 8, "double")                                                                     \
    X(I32, 3, 4, "int32")                                                                      \
    X(U8, 4, 1, "uint8")                                                                       \
    X(I16, 5, 2, "int16")                                                                      \
    X(I8, 6, 1, "int8")                                                                        \
    X(STRING, 7, 0, "string")                                                                  \
    X(C64, 8, 8, "complex64")                                                                  \
    X(I64, 9, 8, "int64")                                                                      \
    X(BOOL, 10, 1, "bool")                                                                     \
    X(QI8, 11, 1, "qint8")                                                                     \
    X(QU8, 12, 1, "quint8")                                                                    \
    X(QI32, 13, 4, "qint32")                                                                   \
    X(BF16, 14, 2, "bfloat16")                                                                 \
    X(QI16, 15, 2, "qint16")                                                                   \
    X(QU16, 16, 2, "quint16")                                                                  \
    X(U16, 17, 2, "uint16")                                                                    \
    X(C128, 18, 16, "complex128")                                                              \
    X(F16, 19, 2, "half")                                                                      \
    X(RESOURCE, 20, 0, "resource")                                                             \
    X(VARIANT, 21, 0, "variant")                                                               \
    X(U32, 22, 4, "uint32")                                                                    \
    X(U64, 23, 8, "uint64")                                                                    \
    X(F8E5M2, 24, 1, "float8_e5m2")                                                            \
    X(F8E4M3FN, 25, 1, "float8_e4m3fn")

enum dtype {
    DTYPE_NONE = 0,
#define DTYPE_ENUM(name, number, size, text) name = number,
    DTYPES(DTYPE_ENUM)
#undef DTYPE_ENUM
        DTYPE_COUNT
};

#define DTYPE_REF 100

/* Sets of types, as bits BIT(F32) | BIT(F64). */
#define DTYPES_FLOAT (BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64))
#define DTYPES_COMPLEX (BIT(C64) | BIT(C128))
#define DTYPES_SIGNED (BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64))
#define DTYPES_UNSIGNED (BIT(U8) | BIT(U16) | BIT(U32) | BIT(U64))
#define DTYPES_INTEGER (DTYPES_SIGNED | DTYPES_UNSIGNED)
#define DTYPES_REAL (DTYPES_FLOAT | DTYPES_INTEGER)
#define DTYPES_NUMBER (DTYPES_REAL | DTYPES_COMPLEX)
#define DTYPES_QUANTIZED (BIT(QI8) | BIT(QU8) | BIT(QI32) | BIT(QI16) | BIT(QU16))
/* Types whose elements are plain bytes of dtype_size(). */
#define DTYPES_PLAIN                                                                           \
    (DTYPES_NUMBER | DTYPES_QUANTIZED | BIT(BOOL) | BIT(F8E5M2) | BIT(F8E4M3FN))
#define DTYPES_ANY (DTYPES_PLAIN | BIT(STRING) | BIT(RESOURCE) | BIT(VARIANT))

static inline bool dtype_is_ref(int dtype)
{
    return dtype > DTYPE_REF;
}

static inline enum dtype dtype_base(int dtype)
{
    return (enum dtype)(dtype > DTYPE_REF ? dtype - DTYPE_REF : dtype);
}

/* Whether `number` (a DataType from outside, perhaps a reference) is a type of ours. */
bool dtype_known(int number);

/* Bytes per element; 0 for string, resource, variant.  References: of their base. */
size_t dtype_size(int dtype);

/* "float", "float_ref", "int32" ...; "invalid" for what is none. */
const char *dtype_name(int dtype);

/* The type of that name, DTYPE_NONE when there is none.  Accepts numpy's spellings too. */
enum dtype dtype_find(const char *name);

/* Conversions of single values, round to nearest even. */
float dtype_f16_to_f32(uint16_t half);
uint16_t dtype_f32_to_f16(float value);

static inline float dtype_bf16_to_f32(uint16_t value)
{
    union {
        uint32_t bits;
        float number;
    } u;
    u.bits = (uint32_t)value << 16;
    return u.number;
}

uint16_t dtype_f32_to_bf16(float value);
