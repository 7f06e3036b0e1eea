/* segment_extreme.c - products, greatest and least of rows that share a segment number. */

#include "kernels/ref/segment.h"

#include <math.h>

enum kind { PROD, MAX, MIN };

/* `to` becomes what `kind` makes of it and `from`; rounded to the type each time. */
static void join(enum kind kind, struct tensor *to, int64_t at, const struct tensor *from,
                 int64_t i)
{
    kernel_load_bits *load = kernel_load_bits_for(to->dtype);
    if (load) {
        uint64_t a = load(to->data, at), b = load(from->data, i);
        bool less = DTYPES_UNSIGNED & BIT(to->dtype) ? b < a : (int64_t)b < (int64_t)a;
        uint64_t joined = kind == PROD ? a * b : (less == (kind == MIN) ? b : a);
        kernel_store_bits_for(to->dtype)(to->data, at, joined);
    } else if (kind == PROD) {
        kernel_set_complex(to, at, kernel_complex_at(to, at) * kernel_complex_at(from, i));
    } else {
        double a = kernel_load_for(to->dtype)(to->data, at);
        double b = kernel_load_for(to->dtype)(from->data, i);
        bool better = kind == MAX ? b > a : b < a;
        kernel_store_for(to->dtype)(to->data, at, a != a || b != b ? a + b : better ? b : a);
    }
}

/* What joined with any number gives that number, for segments without rows too. */
static void set_neutral(enum kind kind, struct tensor *out)
{
    bool integer = (DTYPES_INTEGER & BIT(out->dtype)) != 0;
    int bits = (int)dtype_size(out->dtype) * 8;
    bool is_unsigned = (DTYPES_UNSIGNED & BIT(out->dtype)) != 0;
    uint64_t top = is_unsigned ? (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1)
                               : (UINT64_C(1) << (bits - 1)) - 1;
    double limit = out->dtype == F16    ? 65504
                   : out->dtype == BF16 ? 3.3895313892515355e38
                   : out->dtype == F32  ? 3.4028234663852886e38
                                        : 1.7976931348623157e308;
    for (int64_t i = 0; i < out->count; i++) {
        if (kind == PROD)
            kernel_set_complex(out, i, 1);
        else if (integer)
            kernel_store_bits_for(out->dtype)(out->data, i,
                                              kind == MIN   ? top
                                              : is_unsigned ? 0
                                                            : ~top);
        else
            kernel_store_for(out->dtype)(out->data, i, kind == MIN ? limit : -limit);
    }
}

/* Sorted: a segment without rows gets 0, or 1 as a product. */
static bool segment(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    struct shape shape;
    if (!kernel_segment_rows(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank), before = -1;
    set_neutral(kind, out);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        if (kind != PROD && id > before + 1)
            kernel_zero(out, (before + 1) * inner, (id - before - 1) * inner);
        before = id;
        for (int64_t k = 0; k < inner; k++)
            join(kind, out, id * inner + k, data, i * inner + k);
    }
    return true;
}

static bool unsorted_segment(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *data = kernel_in(call, 0), *ids = kernel_in(call, 1);
    struct shape shape;
    if (!kernel_segment_unsorted(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t inner = kernel_span(&shape, 1, shape.rank);
    set_neutral(kind, out);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_integer(ids, i);
        for (int64_t k = 0; id >= 0 && k < inner; k++)
            join(kind, out, id * inner + k, data, i * inner + k);
    }
    return true;
}

static bool segment_prod_run(struct kernel_call *call, struct error *err)
{
    return segment(call, PROD, err);
}
static bool segment_max_run(struct kernel_call *call, struct error *err)
{
    return segment(call, MAX, err);
}
static bool segment_min_run(struct kernel_call *call, struct error *err)
{
    return segment(call, MIN, err);
}
static bool unsorted_segment_prod_run(struct kernel_call *call, struct error *err)
{
    return unsorted_segment(call, PROD, err);
}
static bool unsorted_segment_max_run(struct kernel_call *call, struct error *err)
{
    return unsorted_segment(call, MAX, err);
}
static bool unsorted_segment_min_run(struct kernel_call *call, struct error *err)
{
    return unsorted_segment(call, MIN, err);
}

#define SEGMENT(name_, dtypes_, run_)                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_segment_prod_ref =
    SEGMENT("SegmentProd", DTYPES_NUMBER, segment_prod_run);
const struct kernel kernel_segment_max_ref =
    SEGMENT("SegmentMax", DTYPES_REAL, segment_max_run);
const struct kernel kernel_segment_min_ref =
    SEGMENT("SegmentMin", DTYPES_REAL, segment_min_run);
const struct kernel kernel_unsorted_segment_prod_ref =
    SEGMENT("UnsortedSegmentProd", DTYPES_NUMBER, unsorted_segment_prod_run);
const struct kernel kernel_unsorted_segment_max_ref =
    SEGMENT("UnsortedSegmentMax", DTYPES_REAL, unsorted_segment_max_run);
const struct kernel kernel_unsorted_segment_min_ref =
    SEGMENT("UnsortedSegmentMin", DTYPES_REAL, unsorted_segment_min_run);
