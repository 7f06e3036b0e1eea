/* dtype.c - names and sizes of the types from one table, and 16-bit floats. */

#include "runtime/dtype.h"

static const struct {
    const char *name;
    const char *ref_name;
    size_t size;
} table[DTYPE_COUNT] = {
#define DTYPE_ROW(name, number, size, text) [name] = {text, text "_ref", size},
    DTYPES(DTYPE_ROW)
#undef DTYPE_ROW
};

/* Spellings that are not the name in messages: numpy's, Python's, those of op registries. */
static const struct {
    const char *name;
    enum dtype dtype;
} aliases[] = {
    {"float32", F32}, {"float64", F64},  {"float16", F16}, {"object", STRING},
    {"str", STRING},  {"boolean", BOOL}, {"bfloat", BF16},
};

bool dtype_known(int number)
{
    int base = number > DTYPE_REF ? number - DTYPE_REF : number;
    return base > DTYPE_NONE && base < DTYPE_COUNT && table[base].name;
}

size_t dtype_size(int dtype)
{
    return dtype_known(dtype) ? table[dtype_base(dtype)].size : 0;
}

const char *dtype_name(int dtype)
{
    if (!dtype_known(dtype))
        return "invalid";
    return dtype_is_ref(dtype) ? table[dtype_base(dtype)].ref_name : table[dtype].name;
}

enum dtype dtype_find(const char *name)
{
    for (int i = 1; i < DTYPE_COUNT; i++)
        if (table[i].name && !strcmp(table[i].name, name))
            return (enum dtype)i;
    for (int i = 0; i < ARRAY_LEN(aliases); i++)
        if (!strcmp(aliases[i].name, name))
            return aliases[i].dtype;
    return DTYPE_NONE;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

float dtype_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 31;
    uint32_t fraction = half & 0x3ff;

    if (exponent == 31)
        return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    if (!fraction)
        return float_of(sign);

    /* A denormal half is a normal float: shift until the hidden bit shows. */
    exponent = 113;
    while (!(fraction & 0x400)) {
        fraction <<= 1;
        exponent--;
    }
    return float_of(sign | exponent << 23 | (fraction & 0x3ff) << 13);
}

uint16_t dtype_f32_to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;

    if (bits > 0x7f800000)
        return (uint16_t)(sign | 0x7e00); /* NaN */
    if (bits >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (bits < 0x33000000)
        return sign; /* below half of the smallest denormal */

    uint32_t half;
    uint32_t rest;
    uint32_t middle;
    if (bits < 0x38800000) { /* a denormal half */
        uint32_t shift = 126 - (bits >> 23);
        uint32_t fraction = (bits & 0x7fffff) | 0x800000;
        half = fraction >> shift;
        rest = fraction & ((1u << shift) - 1);
        middle = 1u << (shift - 1);
    } else {
        half = (bits - 0x38000000) >> 13;
        rest = bits & 0x1fff;
        middle = 0x1000;
    }
    if (rest > middle || (rest == middle && (half & 1)))
        half++;
    return (uint16_t)(sign | half);
}

uint16_t dtype_f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* keep a NaN one */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
