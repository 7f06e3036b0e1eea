/*
 * binary.c - arithmetic on two tensors in float, broadcast as numpy does.
 *
 * Dimensions that both operands walk alike are joined, so that what is left is usually one
 * vector loop, or one per row.
 */
#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

/* The operands over joined dimensions, innermost last; step 0 where an operand is repeated. */
struct walk {
    int rank;
    int64_t dims[LIMIT_TENSOR_RANK + 1];
    int64_t a_steps[LIMIT_TENSOR_RANK + 1];
    int64_t b_steps[LIMIT_TENSOR_RANK + 1];
};

static int64_t dim_from_end(const struct shape *shape, int i)
{
    return i < shape->rank ? shape->dims[shape->rank - 1 - i] : 1;
}

static void walk_init(struct walk *walk, const struct shape *a, const struct shape *b,
                      const struct shape *out)
{
    int64_t dims[LIMIT_TENSOR_RANK], a_steps[LIMIT_TENSOR_RANK], b_steps[LIMIT_TENSOR_RANK];
    int count = 0;
    int64_t a_step = 1, b_step = 1;
    for (int i = 0; i < out->rank; i++) { /* innermost first */
        int64_t dim = dim_from_end(out, i);
        int64_t a_dim = dim_from_end(a, i), b_dim = dim_from_end(b, i);
        if (dim == 1)
            continue;
        int64_t a_now = a_dim == 1 ? 0 : a_step, b_now = b_dim == 1 ? 0 : b_step;
        a_step *= a_dim;
        b_step *= b_dim;
        if (count > 0 && a_now == a_steps[count - 1] * dims[count - 1] &&
            b_now == b_steps[count - 1] * dims[count - 1]) {
            dims[count - 1] *= dim;
            continue;
        }
        dims[count] = dim;
        a_steps[count] = a_now;
        b_steps[count] = b_now;
        count++;
    }
    walk->rank = count > 0 ? count : 1;
    walk->dims[0] = walk->a_steps[0] = walk->b_steps[0] = 1;
    for (int i = 0; i < count; i++) {
        walk->dims[i] = dims[count - 1 - i];
        walk->a_steps[i] = a_steps[count - 1 - i];
        walk->b_steps[i] = b_steps[count - 1 - i];
    }
}

/* Rows [from,to) of the walk: all dimensions but the last, counted through. */
static void run_rows(enum isa_binary operation, const struct walk *walk, int64_t from,
                     int64_t to, const float *a, const float *b, float *out)
{
    const struct isa *ops = isa();
    int last = walk->rank - 1;
    int64_t length = walk->dims[last];
    for (int64_t row = from; row < to; row++) {
        int64_t rest = row, a_at = 0, b_at = 0;
        for (int i = last - 1; i >= 0; i--) {
            int64_t index = rest % walk->dims[i];
            rest /= walk->dims[i];
            a_at += index * walk->a_steps[i];
            b_at += index * walk->b_steps[i];
        }
        ops->binary(operation, length, a + a_at, walk->a_steps[last] == 0, b + b_at,
                    walk->b_steps[last] == 0, out + row * length);
    }
}

/* Out of walks of one row: pieces of that row. */
static void run_pieces(enum isa_binary operation, const struct walk *walk, int threads,
                       const float *a, const float *b, float *out)
{
    bool a_scalar = walk->a_steps[0] == 0, b_scalar = walk->b_steps[0] == 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(walk->dims[0], 16, threads, t);
        isa()->binary(operation, r.to - r.from, a_scalar ? a : a + r.from, a_scalar,
                      b_scalar ? b : b + r.from, b_scalar, out + r.from);
    }
}

/* Small and alike, as in scalar arithmetic: even a team of one thread would cost more than
 * this. */
static bool run_small(struct kernel_call *call, enum isa_binary operation, struct error *err)
{
    const struct tensor *a = call->in[0];
    const float *x = tensor_f32(a), *y = tensor_f32(call->in[1]);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &a->shape, err);
    if (!out)
        return false;
    isa()->binary(operation, out->count, x, false, y, false, tensor_f32_mut(out));
    return true;
}

static bool run(struct kernel_call *call, enum isa_binary operation, struct error *err)
{
    const struct tensor *a = kernel_in(call, 0);
    const struct tensor *b = kernel_in(call, 1);
    if (a->count < PARALLEL_ELEMENTS && shape_equal(&a->shape, &b->shape))
        return run_small(call, operation, err);
    struct shape shape;
    if (!shape_broadcast(&a->shape, &b->shape, &shape, err))
        return false;
    struct tensor *out =
        kernel_output_reuse(call, 0, a->count >= b->count ? 0 : 1, &shape, err);
    if (!out)
        return false;
    if (out->count == 0)
        return true;
    struct walk walk;
    walk_init(&walk, &a->shape, &b->shape, &shape);
    int threads = parallel_threads(call, out->count);
    const float *x = tensor_f32(a), *y = tensor_f32(b);
    float *z = tensor_f32_mut(out);
    if (walk.rank == 1) {
        run_pieces(operation, &walk, threads, x, y, z);
        return true;
    }
    int64_t rows = out->count / walk.dims[walk.rank - 1];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        run_rows(operation, &walk, r.from, r.to, x, y, z);
    }
    return true;
}

#define BINARY(name, op_name, operation)                                                       \
    static bool name##_run(struct kernel_call *call, struct error *err)                        \
    {                                                                                          \
        return run(call, operation, err);                                                      \
    }                                                                                          \
    const struct kernel kernel_##name##_cpu = {                                                \
        .op = op_name, .device = CPU, .dtypes = BIT(F32), .run = name##_run};

BINARY(add, "Add", ISA_ADD)
BINARY(add_v2, "AddV2", ISA_ADD)
BINARY(sub, "Sub", ISA_SUB)
BINARY(mul, "Mul", ISA_MUL)
BINARY(div, "Div", ISA_DIV)
BINARY(real_div, "RealDiv", ISA_DIV)
BINARY(maximum, "Maximum", ISA_MAXIMUM)
BINARY(minimum, "Minimum", ISA_MINIMUM)
BINARY(squared_difference, "SquaredDifference", ISA_SQUARED_DIFFERENCE)
