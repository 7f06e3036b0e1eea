/*
 * update.c - one step of gradient descent, Momentum and Adam for a variable in float, in one
 * pass.
 *
 * Variables come as references (Apply...) or as resources (ResourceApply...).
 */
#include <math.h>

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/update.h"
#include "kernels/list.h"
#include "runtime/resource.h"

bool kernel_open_variables(struct kernel_call *call, int first, int count,
                           const struct tensor *grad, struct variable **variables, float **data,
                           struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int i = 0; i < count; i++) {
        variables[i] = kernel_variable(call, first + i, err);
        if (!variables[i])
            return false;
        if (!variable_make_exclusive(variables[i], err)) {
            if (err->code == PRECONDITION && !dtype_is_ref(call->node->input_types[first + i]))
                err->code = INTERNAL; /* what TensorFlow says of a resource without a value */
            return false;
        }
        struct tensor *value = &variables[i]->value;
        if (value->dtype != F32)
            return fail(err, INVALID, "variable '%s' is %s, not float", variables[i]->name,
                        dtype_name(value->dtype));
        if (!shape_equal(&value->shape, &grad->shape))
            return fail(err, INVALID, "var and grad do not have the same shape: %s %s",
                        shape_text(&value->shape, a, sizeof(a)),
                        shape_text(&grad->shape, b, sizeof(b)));
        data[i] = tensor_f32_mut(value);
    }
    return true;
}

bool kernel_read_scalar(const struct kernel_call *call, int index, const char *name,
                        float *value, struct error *err)
{
    const struct tensor *t = kernel_in(call, index);
    char text[SHAPE_TEXT_BYTES];
    if (t->shape.rank != 0)
        return fail(err, INVALID, "%s is not a scalar: %s", name,
                    shape_text(&t->shape, text, sizeof(text)));
    *value = *tensor_f32(t);
    return true;
}

/* The Apply... forms give the reference on. */
static void finish(struct kernel_call *call, struct variable *variable)
{
    if (call->node->outputs_count > 0)
        kernel_output_ref(call, 0, variable);
}

static bool descent_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 2);
    struct variable *variable;
    float *var, alpha;
    if (!kernel_read_scalar(call, 1, "alpha", &alpha, err) ||
        !kernel_open_variables(call, 0, 1, delta, &variable, &var, err))
        return false;
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->scale_add(r.to - r.from, -alpha, grad + r.from, var + r.from);
    }
    finish(call, variable);
    return true;
}

static bool momentum_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 3);
    struct variable *variables[2];
    float *data[2], lr, rate;
    if (!kernel_read_scalar(call, 2, "lr", &lr, err) ||
        !kernel_read_scalar(call, 4, "momentum", &rate, err) ||
        !kernel_open_variables(call, 0, 2, delta, variables, data, err))
        return false;
    bool nesterov = node_attr_bool(call->node, "use_nesterov", false);
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->momentum(r.to - r.from, lr, rate, nesterov, grad + r.from, data[1] + r.from,
                        data[0] + r.from);
    }
    finish(call, variables[0]);
    return true;
}

/* Keras's: the velocity holds the step itself, learning rate and sign included. */
static bool keras_momentum_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 3);
    struct variable *variables[2];
    float *data[2], lr, rate;
    if (!kernel_read_scalar(call, 2, "lr", &lr, err) ||
        !kernel_read_scalar(call, 4, "momentum", &rate, err) ||
        !kernel_open_variables(call, 0, 2, delta, variables, data, err))
        return false;
    bool nesterov = node_attr_bool(call->node, "use_nesterov", false);
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->keras_momentum(r.to - r.from, lr, rate, nesterov, grad + r.from,
                              data[1] + r.from, data[0] + r.from);
    }
    finish(call, variables[0]);
    return true;
}

struct isa_adam kernel_adam(const float *scalars, bool nesterov)
{
    enum { POWER1, POWER2, LR, BETA1, BETA2, EPSILON };
    return (struct isa_adam){
        .alpha = scalars[LR] * sqrtf(1 - scalars[POWER2]) / (1 - scalars[POWER1]),
        .beta1 = scalars[BETA1],
        .beta2 = scalars[BETA2],
        .epsilon = scalars[EPSILON],
        .nesterov = nesterov,
    };
}

static bool adam_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 9);
    struct variable *variables[3];
    float *data[3];
    static const char *const names[] = {"beta1_power", "beta2_power", "lr",
                                        "beta1",       "beta2",       "epsilon"};
    float scalars[ARRAY_LEN(names)] = {0};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!kernel_read_scalar(call, 3 + i, names[i], &scalars[i], err))
            return false;
    }
    if (!kernel_open_variables(call, 0, 3, delta, variables, data, err))
        return false;
    const struct isa_adam adam =
        kernel_adam(scalars, node_attr_bool(call->node, "use_nesterov", false));
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count * 4);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->adam(r.to - r.from, &adam, grad + r.from, data[1] + r.from, data[2] + r.from,
                    data[0] + r.from);
    }
    finish(call, variables[0]);
    return true;
}

#define UPDATE(name, op_name, run_)                                                            \
    const struct kernel kernel_##name##_cpu = {                                                \
        .op = op_name, .device = CPU, .dtypes = BIT(F32), .run = run_};

UPDATE(apply_gradient_descent, "ApplyGradientDescent", descent_run)
UPDATE(resource_apply_gradient_descent, "ResourceApplyGradientDescent", descent_run)
UPDATE(apply_momentum, "ApplyMomentum", momentum_run)
UPDATE(resource_apply_momentum, "ResourceApplyMomentum", momentum_run)
UPDATE(resource_apply_keras_momentum, "ResourceApplyKerasMomentum", keras_momentum_run)
UPDATE(apply_adam, "ApplyAdam", adam_run)
UPDATE(resource_apply_adam, "ResourceApplyAdam", adam_run)
