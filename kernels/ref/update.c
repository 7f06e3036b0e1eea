/* update.c - variables added to in place: AssignAdd, AssignSub, CountUpTo, in both forms. */

#include "kernels/ref/update.h"

#include "kernels/cpu/parallel.h"
#include "runtime/resource.h"

/* --- what other kernels use too --- */

#define ADD_PLAIN(type)                                                                        \
    for (int64_t i = 0; i < target->count; i++)                                                \
    ((type *)target->data)[i] += sign * ((const type *)value->data)[i]

void kernel_add_into(struct tensor *target, const struct tensor *value, bool subtract)
{
    assert(target->dtype == value->dtype);
    assert(target->count == value->count);
    kernel_load_bits *load = kernel_load_bits_for(target->dtype);
    if (target->dtype == F32) {
        float sign = subtract ? -1 : 1;
        ADD_PLAIN(float);
    } else if (target->dtype == F64) {
        double sign = subtract ? -1 : 1;
        ADD_PLAIN(double);
    } else if (load) {
        kernel_store_bits *store = kernel_store_bits_for(target->dtype);
        for (int64_t i = 0; i < target->count; i++) {
            uint64_t a = load(target->data, i), b = load(value->data, i);
            store(target->data, i, subtract ? a - b : a + b);
        }
    } else {
        for (int64_t i = 0; i < target->count; i++) {
            double complex a = kernel_complex_at(target, i), b = kernel_complex_at(value, i);
            kernel_set_complex(target, i, subtract ? a - b : a + b);
        }
    }
}

bool kernel_is_ref(const struct kernel_call *call)
{
    return call->node->inputs_count > 0 && dtype_is_ref(call->node->input_types[0]);
}

bool kernel_update_check_locked(const struct kernel_call *call, const struct variable *variable,
                                enum dtype dtype, struct error *err)
{
    enum dtype holds = variable->value.dtype;
    if (holds == DTYPE_NONE && kernel_is_ref(call))
        return fail(err, PRECONDITION, "Attempting to use uninitialized value %s",
                    variable->name);
    if (holds == DTYPE_NONE)
        return fail(err, NOT_FOUND, "Resource %s/%s/N10tensorflow3VarE does not exist.",
                    kernel_container(call, 0), variable->name);
    return holds == dtype ||
           fail(err, INVALID, "Trying to use variable %s with wrong dtype. Expected %s got %s",
                variable->name, dtype_name(dtype), dtype_name(holds));
}

bool kernel_snapshot(const struct kernel_call *call, struct variable *variable,
                     enum dtype dtype, struct tensor *value, struct error *err)
{
    pthread_mutex_lock(&variable->lock);
    bool ok = kernel_update_check_locked(call, variable, dtype, err);
    if (ok)
        tensor_share(value, &variable->value);
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

/* --- AssignAdd, AssignSub --- */

/* As kernel_add_into(), by all threads of the call. */
static void add_floats(const struct kernel_call *call, struct tensor *target,
                       const struct tensor *value, float sign)
{
    float *to = tensor_f32_mut(target);
    const float *from = tensor_f32(value);
    int threads = parallel_threads(call, target->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(target->count, TENSOR_ALIGN, threads, t);
        for (int64_t i = r.from; i < r.to; i++)
            to[i] += sign * from[i];
    }
}

static bool add_locked(const struct kernel_call *call, struct variable *variable, bool subtract,
                       struct error *err)
{
    const struct tensor *value = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!kernel_update_check_locked(call, variable, value->dtype, err))
        return false;
    if (!shape_equal(&variable->value.shape, &value->shape))
        return kernel_is_ref(call)
                   ? fail(err, INVALID, "Parameters and update must be the same size")
                   : fail(err, INVALID,
                          "Cannot update variable with shape %s using a Tensor with shape %s, "
                          "shapes must be equal.",
                          shape_text(&variable->value.shape, a, sizeof(a)),
                          shape_text(&value->shape, b, sizeof(b)));
    if (!variable_make_exclusive_locked(variable, err))
        return false;
    if (value->dtype == F32)
        add_floats(call, &variable->value, value, subtract ? -1 : 1);
    else
        kernel_add_into(&variable->value, value, subtract);
    return true;
}

static bool update(struct kernel_call *call, bool subtract, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = add_locked(call, variable, subtract, err);
    pthread_mutex_unlock(&variable->lock);
    if (ok && kernel_is_ref(call))
        kernel_output_ref(call, 0, variable);
    return ok;
}

static bool add_run(struct kernel_call *call, struct error *err)
{
    return update(call, false, err);
}

static bool sub_run(struct kernel_call *call, struct error *err)
{
    return update(call, true, err);
}

/* --- CountUpTo --- */

static bool count_locked(const struct kernel_call *call, struct variable *variable,
                         int64_t *before, struct error *err)
{
    int64_t limit = node_attr_int(call->node, "limit", 0);
    struct tensor *value = &variable->value;
    enum dtype dtype = dtype_base(call->node->output_types[0]);
    if (!kernel_update_check_locked(call, variable, dtype, err))
        return false;
    if (value->shape.rank != 0)
        return fail(err, INVALID, "input is not a scalar: variable '%s'", variable->name);
    *before = tensor_integer(value, 0);
    if (*before >= limit)
        return fail(err, OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
    if (!variable_make_exclusive_locked(variable, err))
        return false;
    kernel_store_bits_for(dtype)(value->data, 0, (uint64_t)*before + 1);
    return true;
}

static bool count_up_to_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    int64_t before = 0;
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = count_locked(call, variable, &before, err);
    pthread_mutex_unlock(&variable->lock);
    struct tensor *out = ok ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return false;
    kernel_store_bits_for(out->dtype)(out->data, 0, (uint64_t)before);
    return true;
}

#define UPDATE(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_NUMBER, .run = run_                       \
    }

const struct kernel kernel_assign_add_ref = UPDATE("AssignAdd", add_run);
const struct kernel kernel_assign_sub_ref = UPDATE("AssignSub", sub_run);
const struct kernel kernel_assign_add_variable_op_ref = UPDATE("AssignAddVariableOp", add_run);
const struct kernel kernel_assign_sub_variable_op_ref = UPDATE("AssignSubVariableOp", sub_run);
const struct kernel kernel_count_up_to_ref = UPDATE("CountUpTo", count_up_to_run);
const struct kernel kernel_resource_count_up_to_ref =
    UPDATE("ResourceCountUpTo", count_up_to_run);
