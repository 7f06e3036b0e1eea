/* cast.c - Cast between the types that are converted often; the others are the reference's. */

#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "runtime/dtype.h"
#include "runtime/op.h"

typedef void convert_fn(const void *in, void *out, int64_t from, int64_t to);

/* C's own conversion, which rounds to nearest. */
#define CONVERT(name, source, target)                                                          \
    static void name(const void *in, void *out, int64_t from, int64_t to)                      \
    {                                                                                          \
        const source *x = in;                                                                  \
        target *y = out;                                                                       \
        _Pragma("omp simd") for (int64_t i = from; i < to; i++) y[i] = (target)x[i];           \
    }

CONVERT(u8_f32, uint8_t, float)
CONVERT(i8_f32, int8_t, float)
CONVERT(u16_f32, uint16_t, float)
CONVERT(i16_f32, int16_t, float)
CONVERT(i32_f32, int32_t, float)
CONVERT(i64_f32, int64_t, float)
CONVERT(f64_f32, double, float)
CONVERT(f32_f64, float, double)
CONVERT(i32_f64, int32_t, double)
CONVERT(i64_f64, int64_t, double)
CONVERT(i32_i64, int32_t, int64_t)
CONVERT(i64_i32, int64_t, int32_t)
CONVERT(u8_i32, uint8_t, int32_t)
CONVERT(u8_i64, uint8_t, int64_t)

#define CONVERT_BY(name, source, target, convert)                                              \
    static void name(const void *in, void *out, int64_t from, int64_t to)                      \
    {                                                                                          \
        const source *x = in;                                                                  \
        target *y = out;                                                                       \
        for (int64_t i = from; i < to; i++)                                                    \
            y[i] = convert(x[i]);                                                              \
    }

CONVERT_BY(bf16_f32, uint16_t, float, dtype_bf16_to_f32)
CONVERT_BY(f16_f32, uint16_t, float, dtype_f16_to_f32)
CONVERT_BY(f32_f16, float, uint16_t, dtype_f32_to_f16)

/* To nearest, ties to even; a number that is none stays none. */
static void f32_bf16(const void *in, void *out, int64_t from, int64_t to)
{
    const uint32_t *x = in;
    uint16_t *y = out;
#pragma omp simd
    for (int64_t i = from; i < to; i++) {
        uint32_t bits = x[i], rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        y[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
    }
}

static convert_fn *convert_of(enum dtype from, enum dtype to)
{
    static const struct {
        enum dtype from, to;
        convert_fn *convert;
    } rows[] = {
        {U8, F32, u8_f32},     {BOOL, F32, u8_f32},   {I8, F32, i8_f32},   {U16, F32, u16_f32},
        {I16, F32, i16_f32},   {I32, F32, i32_f32},   {I64, F32, i64_f32}, {F64, F32, f64_f32},
        {F32, F64, f32_f64},   {I32, F64, i32_f64},   {I64, F64, i64_f64}, {I32, I64, i32_i64},
        {I64, I32, i64_i32},   {U8, I32, u8_i32},     {BOOL, I32, u8_i32}, {U8, I64, u8_i64},
        {BOOL, I64, u8_i64},   {BF16, F32, bf16_f32}, {F16, F32, f16_f32}, {F32, F16, f32_f16},
        {F32, BF16, f32_bf16},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].from == from && rows[i].to == to)
            return rows[i].convert;
    return NULL;
}

static bool cast_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    enum dtype to = dtype_base(call->node->output_types[0]);
    convert_fn *convert = node_attr_bool(call->node, "Truncate", false)
                              ? NULL
                              : convert_of((enum dtype)in->dtype, to);
    if (!convert)
        return kernel_cast_ref.run(call, err);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    int threads = parallel_threads(call, out->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(out->count, 16, threads, t);
        convert(in->data, out->data, r.from, r.to);
    }
    return true;
}

const struct kernel kernel_cast_cpu = {.op = "Cast", .device = CPU, .run = cast_run};
