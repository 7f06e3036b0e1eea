/* accumulator_dense.c - gradients of one shape, added up. */

#include "kernels/cpu/parallel.h"
#include "kernels/state/accumulator.h"
#include "runtime/turn.h"

void kernel_accumulator_add(struct tensor *to, int64_t to_at, const struct tensor *from,
                            int64_t from_at, int64_t count)
{
    assert(to->dtype == from->dtype);
    if (to->dtype == F32) {
        float *a = tensor_f32_mut(to) + to_at;
        const float *b = tensor_f32(from) + from_at;
        for (int64_t i = 0; i < count; i++)
            a[i] += b[i];
        return;
    }
    kernel_load *load = kernel_load_for(to->dtype);
    kernel_store *store = kernel_store_for(to->dtype);
    for (int64_t i = 0; i < count; i++)
        store(to->data, to_at + i, load(to->data, to_at + i) + load(from->data, from_at + i));
}

void kernel_accumulator_divide(struct tensor *to, int64_t at, int64_t count, int64_t divisor)
{
    if (to->dtype == F32) {
        float *a = tensor_f32_mut(to) + at;
        for (int64_t i = 0; i < count; i++)
            a[i] /= (float)divisor;
        return;
    }
    kernel_load *load = kernel_load_for(to->dtype);
    kernel_store *store = kernel_store_for(to->dtype);
    for (int64_t i = 0; i < count; i++)
        store(to->data, at + i, load(to->data, at + i) / (double)divisor);
}

/* As adding, then dividing, element by element: the same bits, with one way through memory. */
static void add_and_divide(float *to, const float *from, int64_t count, float divisor)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (to[i] + from[i]) / divisor;
}

static void add(struct accumulator *accumulator, const struct kernel_call *call,
                const struct tensor *gradient, bool last)
{
    struct tensor *sum = &accumulator->sum;
    bool divides = last && accumulator->spec.mean && sum->dtype == F32;
    float divisor = (float)(accumulator->count + 1);
    int threads = parallel_threads(call, sum->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(sum->count, TENSOR_ALIGN, threads, t);
        if (divides)
            add_and_divide(tensor_f32_mut(sum) + r.from, tensor_f32(gradient) + r.from,
                           r.to - r.from, divisor);
        else
            kernel_accumulator_add(sum, r.from, gradient, r.from, r.to - r.from);
    }
    accumulator->is_divided = divides;
}

bool kernel_accumulator_add_dense(struct accumulator *accumulator, struct kernel_call *call,
                                  bool last, struct error *err)
{
    const struct tensor *gradient = kernel_in(call, 2);
    const struct shape *wanted =
        accumulator->count ? &accumulator->sum.shape : &accumulator->spec.shape;
    if (!shape_compatible(wanted, &gradient->shape)) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
        return fail(err, INVALID, "Shape mismatch: expected %s, got %s",
                    shape_text(wanted, a, sizeof(a)),
                    shape_text(&gradient->shape, b, sizeof(b)));
    }
    if (!accumulator->count) {
        bool taken = kernel_input_take(call, 2, &accumulator->sum);
        if (taken)
            turn_keep(&accumulator->sum);
        return taken || tensor_clone(&accumulator->sum, gradient, err);
    }
    add(accumulator, call, gradient, last);
    return true;
}

bool kernel_accumulator_take_dense(struct accumulator *accumulator, struct tensor *out,
                                   struct error *err)
{
    (void)err;
    if (accumulator->spec.mean && accumulator->count > 1 && !accumulator->is_divided)
        kernel_accumulator_divide(&accumulator->sum, 0, accumulator->sum.count,
                                  accumulator->count);
    out[0] = accumulator->sum;
    accumulator->is_divided = false;
    accumulator->sum = (struct tensor){0};
    turn_take(out);
    return true;
}
