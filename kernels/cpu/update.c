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

static bool make_exclusive_locked(const struct kernel_call *call, struct variable *variable,
                                  struct error *err)
{
    if (variable_make_exclusive_locked(variable, err))
        return true;
    if (err->code == PRECONDITION && !dtype_is_ref(call->node->input_types[0]))
        (void)fail(err, INTERNAL, "Invalid variable reference."); /* as TensorFlow says it */
    return false;
}

static bool open_locked(struct kernel_call *call, const struct tensor *grad,
                        struct variable *variable, struct opened *opened, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct tensor *value = &variable->value;
    if (value->dtype != DTYPE_NONE && value->dtype != F32)
        return fail(err, INVALID, "variable '%s' is %s, not float", variable->name,
                    dtype_name(value->dtype));
    if (value->dtype != DTYPE_NONE && grad && !shape_equal(&value->shape, &grad->shape))
        return fail(err, INVALID, "var and grad do not have the same shape: %s %s",
                    shape_text(&value->shape, a, sizeof(a)),
                    shape_text(&grad->shape, b, sizeof(b)));
    if (!make_exclusive_locked(call, variable, err))
        return false;
    buffer_ref(value->buffer);
    *opened = (struct opened){.variable = variable,
                              .buffer = value->buffer,
                              .data = tensor_f32_mut(value),
                              .count = value->count};
    return true;
}

bool kernel_open_variables(struct kernel_call *call, int first, int count,
                           const struct tensor *grad, struct opened *opened, struct error *err)
{
    struct variable *variables[VARIABLE_LOCKS_MAX];
    assert(count <= VARIABLE_LOCKS_MAX);
    for (int i = 0; i < count; i++) {
        variables[i] = kernel_variable(call, first + i, err);
        if (!variables[i])
            return false;
    }
    bool keep = node_attr_bool(call->node, "use_locking", false);
    variable_lock_all(variables, count);
    int made = 0;
    while (made < count && open_locked(call, grad, variables[made], &opened[made], err))
        keep = opened[made++].buffer->file > 0 || keep;
    bool ok = made == count;
    for (int i = 0; i < made; i++)
        opened[i].locked = keep;
    if (!ok || !keep)
        variable_unlock_all(variables, count);
    for (int i = 0; !ok && i < made; i++)
        buffer_unref(opened[i].buffer);
    return ok;
}

void kernel_close_variables(struct opened *opened, int count)
{
    struct variable *variables[VARIABLE_LOCKS_MAX] = {NULL};
    for (int i = 0; i < count; i++)
        variables[i] = opened[i].variable;
    if (count && opened[0].locked)
        variable_unlock_all(variables, count);
    for (int i = 0; i < count; i++)
        buffer_unref(opened[i].buffer);
}

/* Whether all variables, which are the first inputs, have a value. */
static bool have_values(struct kernel_call *call, struct error *err)
{
    const int *types = call->node->input_types;
    for (int i = 0; dtype_is_ref(types[i]) || types[i] == RESOURCE; i++) {
        struct variable *variable = kernel_variable(call, i, err);
        if (!variable)
            return false;
        variable_lock_all(&variable, 1);
        bool has = make_exclusive_locked(call, variable, err);
        variable_unlock_all(&variable, 1);
        if (!has)
            return false;
    }
    return true;
}

bool kernel_read_scalar(struct kernel_call *call, int index, const char *name, float *value,
                        struct error *err)
{
    const struct tensor *t = kernel_in(call, index);
    char text[SHAPE_TEXT_BYTES];
    if (t->shape.rank != 0)
        return have_values(call, err) && fail(err, INVALID, "%s is not a scalar: %s", name,
                                              shape_text(&t->shape, text, sizeof(text)));
    *value = *tensor_f32(t);
    return true;
}

/* The Apply... forms give the reference on. */
static void finish(struct kernel_call *call, struct opened *opened, int count)
{
    if (call->node->outputs_count > 0)
        kernel_output_ref(call, 0, opened[0].variable);
    kernel_close_variables(opened, count);
}

static bool descent_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 2);
    struct opened var;
    float alpha;
    if (!kernel_read_scalar(call, 1, "alpha", &alpha, err) ||
        !kernel_open_variables(call, 0, 1, delta, &var, err))
        return false;
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->scale_add(r.to - r.from, -alpha, grad + r.from, var.data + r.from);
    }
    finish(call, &var, 1);
    return true;
}

static bool momentum_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 3);
    struct opened opened[2];
    float lr, rate;
    if (!kernel_read_scalar(call, 2, "lr", &lr, err) ||
        !kernel_read_scalar(call, 4, "momentum", &rate, err) ||
        !kernel_open_variables(call, 0, 2, delta, opened, err))
        return false;
    bool nesterov = node_attr_bool(call->node, "use_nesterov", false);
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->momentum(r.to - r.from, lr, rate, nesterov, grad + r.from,
                        opened[1].data + r.from, opened[0].data + r.from);
    }
    finish(call, opened, 2);
    return true;
}

/* Keras's: the velocity holds the step itself, learning rate and sign included. */
static bool keras_momentum_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *delta = kernel_in(call, 3);
    struct opened opened[2];
    float lr, rate;
    if (!kernel_read_scalar(call, 2, "lr", &lr, err) ||
        !kernel_read_scalar(call, 4, "momentum", &rate, err) ||
        !kernel_open_variables(call, 0, 2, delta, opened, err))
        return false;
    bool nesterov = node_attr_bool(call->node, "use_nesterov", false);
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->keras_momentum(r.to - r.from, lr, rate, nesterov, grad + r.from,
                              opened[1].data + r.from, opened[0].data + r.from);
    }
    finish(call, opened, 2);
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
    struct opened opened[3];
    static const char *const names[] = {"beta1_power", "beta2_power", "lr",
                                        "beta1",       "beta2",       "epsilon"};
    float scalars[ARRAY_LEN(names)] = {0};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!kernel_read_scalar(call, 3 + i, names[i], &scalars[i], err))
            return false;
    }
    if (!kernel_open_variables(call, 0, 3, delta, opened, err))
        return false;
    const struct isa_adam adam =
        kernel_adam(scalars, node_attr_bool(call->node, "use_nesterov", false));
    const float *grad = tensor_f32(delta);
    int threads = parallel_threads(call, delta->count * 4);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(delta->count, 16, threads, t);
        isa()->adam(r.to - r.from, &adam, grad + r.from, opened[1].data + r.from,
                    opened[2].data + r.from, opened[0].data + r.from);
    }
    finish(call, opened, 3);
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
