/* along.c - along one axis: the place of the extreme, cumulative sums; and the sum of squares.
 */

#include "kernels/ref/numbers.h"

#include <math.h>

/* Seen as (outer, size, inner) around the axis. */
struct around {
    int64_t outer, size, inner;
};

static struct around around_axis(const struct shape *shape, int axis)
{
    return (struct around){kernel_span(shape, 0, axis), shape->dims[axis],
                           kernel_span(shape, axis + 1, shape->rank)};
}

/* Whether `b` beats `a`; the first of equals stays, and NaN is no number to beat. */
static bool beats(const struct tensor *in, int64_t a, int64_t b, bool greatest)
{
    kernel_load_bits *load = kernel_load_bits_for(in->dtype);
    if (!load) {
        double x = kernel_load_for(in->dtype)(in->data, a);
        double y = kernel_load_for(in->dtype)(in->data, b);
        if (x != x)
            x = greatest ? -INFINITY : INFINITY;
        return greatest ? y > x : y < x;
    }
    uint64_t x = load(in->data, a), y = load(in->data, b);
    if (DTYPES_UNSIGNED & BIT(in->dtype))
        return greatest ? y > x : y < x;
    return greatest ? (int64_t)y > (int64_t)x : (int64_t)y < (int64_t)x;
}

static bool argument(struct kernel_call *call, bool greatest, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    int rank = in->shape.rank;
    if (kernel_in(call, 1)->shape.rank)
        return fail(err, INVALID, "dim must be a scalar, but received tensor of shape: %s",
                    shape_text(&kernel_in(call, 1)->shape, text, sizeof(text)));
    int64_t dim = tensor_integer(kernel_in(call, 1), 0);
    if (dim < -rank || dim >= rank)
        return fail(err, INVALID, "Expected dimension in the range [%d, %d), but got %lld",
                    -rank, rank, (long long)dim);
    int axis = (int)(dim < 0 ? dim + rank : dim);
    if (in->shape.dims[axis] == 0)
        return fail(err, INVALID, "Reduction axis %lld is empty in shape %s", (long long)dim,
                    shape_text(&in->shape, text, sizeof(text)));
    struct around a = around_axis(&in->shape, axis);
    struct shape shape = {.rank = in->shape.rank - 1};
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = in->shape.dims[d < axis ? d : d + 1];
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            int64_t start = o * a.size * a.inner + i, best = 0;
            for (int64_t k = 1; k < a.size; k++)
                if (beats(in, start + best * a.inner, start + k * a.inner, greatest))
                    best = k;
            kernel_store_bits_for(out->dtype)(out->data, o * a.inner + i, (uint64_t)best);
        }
    return true;
}

static bool arg_max_run(struct kernel_call *call, struct error *err)
{
    return argument(call, true, err);
}

static bool arg_min_run(struct kernel_call *call, struct error *err)
{
    return argument(call, false, err);
}

static bool cumulate(struct kernel_call *call, bool product, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool exclusive = node_attr_bool(call->node, "exclusive", false);
    bool reverse = node_attr_bool(call->node, "reverse", false);
    int axis;
    if (!kernel_scan_axis(call, 1, in->shape.rank, &axis, err))
        return false;
    struct around a = around_axis(&in->shape, axis);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    kernel_load_bits *load = kernel_load_bits_for(in->dtype);
    kernel_store_bits *store = kernel_store_bits_for(in->dtype);
    for (int64_t o = 0; out->count && o < a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            uint64_t whole = product;
            double complex sum = product;
            for (int64_t n = 0; n < a.size; n++) {
                int64_t at = (o * a.size + (reverse ? a.size - 1 - n : n)) * a.inner + i;
                uint64_t bits = load ? load(in->data, at) : 0;
                double complex value = load ? 0 : kernel_complex_at(in, at);
                uint64_t next = product ? whole * bits : whole + bits;
                double complex next_sum = product ? sum * value : sum + value;
                if (load)
                    store(out->data, at, exclusive ? whole : next);
                else
                    kernel_set_complex(out, at, exclusive ? sum : next_sum);
                whole = next;
                sum = next_sum;
            }
        }
    return true;
}

static bool cumsum_run(struct kernel_call *call, struct error *err)
{
    return cumulate(call, false, err);
}

static bool cumprod_run(struct kernel_call *call, struct error *err)
{
    return cumulate(call, true, err);
}

static bool l2_loss_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    double sum = 0, block = 0;
    for (int64_t i = 0; i < in->count; i++) { /* by blocks: roundings do not pile up */
        block += load(in->data, i) * load(in->data, i);
        if (i % 256 == 255 || i == in->count - 1) {
            sum += block;
            block = 0;
        }
    }
    kernel_store_for(out->dtype)(out->data, 0, sum / 2);
    return true;
}

#define ALONG(name_, dtypes_, run_)                                                            \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_arg_max_ref = ALONG("ArgMax", DTYPES_REAL | BIT(BOOL), arg_max_run);
const struct kernel kernel_arg_min_ref = ALONG("ArgMin", DTYPES_REAL | BIT(BOOL), arg_min_run);
const struct kernel kernel_cumsum_ref = ALONG("Cumsum", DTYPES_NUMBER, cumsum_run);
const struct kernel kernel_cumprod_ref = ALONG("Cumprod", DTYPES_NUMBER, cumprod_run);
const struct kernel kernel_l2_loss_ref = ALONG("L2Loss", DTYPES_FLOAT, l2_loss_run);
