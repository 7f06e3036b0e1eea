/*
 * strided_assign.c - a value put into a part of a variable, or of a tensor, that begin, end and
 * strides stand for.  The value is broadcast to the shape of the part.
 */

#include "kernels/ref/move.h"
#include "kernels/ref/update.h"
#include "runtime/resource.h"

/* The value in the shape of the part: shared, or repeated in a tensor of its own. */
static bool broadcast(const struct tensor *value, const struct shape *shape, struct tensor *out,
                      struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct shape given = value->shape;
    while (given.rank > shape->rank && given.dims[0] == 1) {
        given.rank--;
        memmove(given.dims, given.dims + 1, (size_t)given.rank * sizeof(*given.dims));
    }
    struct shape both = SHAPE_UNKNOWN;
    struct error ignored;
    if (!shape_broadcast(&given, shape, &both, &ignored) || !shape_equal(&both, shape))
        return fail(err, INVALID, "Cannot broadcast input shape %s into final shape %s",
                    shape_text(&value->shape, a, sizeof(a)), shape_text(shape, b, sizeof(b)));
    if (shape_equal(&given, shape)) {
        tensor_share_as(out, value, shape);
        return true;
    }
    if (!tensor_init(out, value->dtype, shape, err))
        return false;
    struct places to = kernel_places(shape), from = kernel_broadcast_places(&given, shape);
    kernel_move(out, &to, value, &from, shape->dims, shape->rank);
    return true;
}

/* Inputs 1 to 3 say where, input 4 what. */
static bool assign_part(const struct kernel_call *call, struct tensor *target,
                        const struct strided *part, struct error *err)
{
    struct tensor value = {0};
    if (shape_count(&part->box) == 0)
        return true;
    if (!broadcast(kernel_in(call, 4), &part->shape, &value, err))
        return false;
    struct places from = kernel_places(&part->box);
    kernel_move(target, &part->from, &value, &from, part->box.dims, part->box.rank);
    tensor_release(&value);
    return true;
}

static bool assign_locked(struct kernel_call *call, struct variable *variable,
                          struct error *err)
{
    struct strided part;
    return kernel_update_check_locked(call, variable, kernel_in(call, 4)->dtype, err) &&
           kernel_strided(call, 1, &variable->value.shape, &part, err) &&
           variable_make_exclusive_locked(variable, err) &&
           assign_part(call, &variable->value, &part, err);
}

static bool variable_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = assign_locked(call, variable, err);
    pthread_mutex_unlock(&variable->lock);
    if (ok && call->node->outputs_count > 0)
        kernel_output_ref(call, 0, variable);
    return ok;
}

static bool tensor_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const void *before = in->data;
    struct strided part;
    if (!kernel_strided(call, 1, &in->shape, &part, err))
        return false;
    struct tensor *out = kernel_output_reuse(call, 0, 0, &in->shape, err);
    if (!out)
        return false;
    if (out->data != before)
        kernel_copy(out, 0, in, 0, in->count);
    return assign_part(call, out, &part, err);
}

const struct kernel kernel_strided_slice_assign_ref = {
    .op = "StridedSliceAssign", .device = CPU, .run = variable_run};
const struct kernel kernel_resource_strided_slice_assign_ref = {
    .op = "ResourceStridedSliceAssign", .device = CPU, .run = variable_run};
const struct kernel kernel_tensor_strided_slice_update_ref = {
    .op = "TensorStridedSliceUpdate", .device = CPU, .run = tensor_run};
