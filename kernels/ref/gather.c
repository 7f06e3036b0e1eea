/* gather.c - elements chosen by index, and put back by index. */

#include "base/str.h"
#include "kernels/ref/update.h"
#include "runtime/resource.h"

/* Axis of the params, and how many of the first dimensions params and indices share. */
struct gather {
    int axis, batch;
};

static bool gather_plan(const struct tensor *params, const struct tensor *indices, int64_t axis,
                        int64_t batch, struct gather *plan, struct error *err)
{
    int rank = params->shape.rank, indices_rank = indices->shape.rank;
    if (axis < -rank || axis >= rank)
        return fail(err, INVALID, "Expected axis in the range [%d, %d), but got %lld", -rank,
                    rank, (long long)axis);
    axis += axis < 0 ? rank : 0;
    if (batch < -indices_rank || batch > indices_rank)
        return fail(err, INVALID, "Expected batch_dims in the range [%d, %d], but got %lld",
                    -indices_rank, indices_rank, (long long)batch);
    batch += batch < 0 ? indices_rank : 0;
    if (batch >= rank || batch > axis)
        return fail(err, INVALID,
                    "batch_dims (%lld) must be less than rank(params) (%d) and at "
                    "most axis (%lld)",
                    (long long)batch, rank, (long long)axis);
    for (int d = 0; d < batch; d++)
        if (params->shape.dims[d] != indices->shape.dims[d])
            return fail(err, INVALID,
                        "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", d,
                        (long long)params->shape.dims[d], d, (long long)indices->shape.dims[d]);
    plan->axis = (int)axis;
    plan->batch = (int)batch;
    return true;
}

static bool check_indices(const struct tensor *indices, int64_t length, struct error *err)
{
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index = tensor_integer(indices, i);
        if (index < 0 || index >= length)
            return fail(err, INVALID, "indices[%lld] = %lld is not in [0, %lld)", (long long)i,
                        (long long)index, (long long)length);
    }
    return true;
}

/* Only a resource's indices are looked at where nothing is gathered. */
static bool gather(struct kernel_call *call, const struct tensor *params,
                   const struct tensor *indices, int64_t axis_attr, int64_t batch_attr,
                   struct error *err)
{
    struct gather plan = {0};
    if (params->shape.rank == 0)
        return fail(err, INVALID, "params must be at least 1 dimensional");
    if (!gather_plan(params, indices, axis_attr, batch_attr, &plan, err))
        return false;
    const struct shape *from = &params->shape, *chosen = &indices->shape;
    int64_t length = from->dims[plan.axis];
    struct shape shape = {.rank = 0};
    if (from->rank - 1 + chosen->rank - plan.batch > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "the result would have too many dimensions");
    for (int d = 0; d < plan.axis; d++)
        shape.dims[shape.rank++] = from->dims[d];
    for (int d = plan.batch; d < chosen->rank; d++)
        shape.dims[shape.rank++] = chosen->dims[d];
    for (int d = plan.axis + 1; d < from->rank; d++)
        shape.dims[shape.rank++] = from->dims[d];
    bool resource = !strcmp(call->node->op->name, "ResourceGather");
    if ((resource || shape_count(&shape) > 0) && !check_indices(indices, length, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t batches = kernel_span(from, 0, plan.batch);
    int64_t outer = kernel_span(from, plan.batch, plan.axis);
    int64_t inner = kernel_span(from, plan.axis + 1, from->rank);
    int64_t picked = kernel_span(chosen, plan.batch, chosen->rank), to = 0;
    for (int64_t b = 0; out->count && b < batches; b++)
        for (int64_t o = 0; o < outer; o++)
            for (int64_t k = 0; k < picked; k++, to += inner) {
                int64_t index = tensor_integer(indices, b * picked + k);
                kernel_copy(out, to, params, ((b * outer + o) * length + index) * inner, inner);
            }
    return true;
}

static bool gather_run(struct kernel_call *call, struct error *err)
{
    return gather(call, kernel_in(call, 0), kernel_in(call, 1), 0, 0, err);
}

static bool gather_v2_run(struct kernel_call *call, struct error *err)
{
    int64_t axis;
    if (!kernel_scalar(call, 2, "axis", &axis, err))
        return false;
    return gather(call, kernel_in(call, 0), kernel_in(call, 1), axis,
                  node_attr_int(call->node, "batch_dims", 0), err);
}

static bool resource_gather_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    int64_t batch = node_attr_int(call->node, "batch_dims", 0);
    struct tensor params;
    if (!variable ||
        !kernel_snapshot(call, variable, dtype_base(call->node->output_types[0]), &params, err))
        return false;
    bool ok = gather(call, &params, kernel_in(call, 1), batch, batch, err);
    tensor_release(&params);
    return ok;
}

/* --- coordinates in the last dimension of the indices --- */

struct nd {
    int depth;     /* coordinates of one index */
    int64_t count; /* indices */
    int64_t inner; /* elements of a slice */
    bool ignore;   /* bad indices */
};

static bool nd_plan(const struct kernel_call *call, const struct tensor *indices,
                    const struct shape *shape, struct nd *plan, struct error *err)
{
    int rank = indices->shape.rank;
    if (rank < 1)
        return fail(err, INVALID, "indices must be at least a vector");
    int64_t depth = indices->shape.dims[rank - 1];
    if (depth > shape->rank)
        return fail(err, INVALID,
                    "index innermost dimension length must be <= params rank; saw: %lld vs. %d",
                    (long long)depth, shape->rank);
    plan->depth = (int)depth;
    plan->count = kernel_span(&indices->shape, 0, rank - 1);
    plan->inner = kernel_span(shape, (int)depth, shape->rank);
    plan->ignore =
        strcmp(node_attr_string(call->node, "bad_indices_policy", ""), "IGNORE") == 0;
    return true;
}

/* Number of the slice that index `i` names; -1 when it is out of range. */
static int64_t nd_place(const struct nd *plan, const struct tensor *indices,
                        const struct shape *shape, int64_t i)
{
    int64_t place = 0;
    for (int d = 0; d < plan->depth; d++) {
        int64_t index = tensor_integer(indices, i * plan->depth + d);
        if (index < 0 || index >= shape->dims[d])
            return -1;
        place = place * shape->dims[d] + index;
    }
    return place;
}

static bool bad_index(const struct tensor *indices, const struct nd *plan, int64_t i,
                      const struct shape *shape, struct error *err)
{
    char row[ROW_TEXT_BYTES], text[SHAPE_TEXT_BYTES];
    return fail(err, INVALID, "indices[%lld] = %s does not index into shape %s", (long long)i,
                kernel_row_text(indices, i, plan->depth, ", ", row, sizeof(row)),
                shape_text(shape, text, sizeof(text)));
}

static bool bad_param_index(const struct kernel_call *call, const struct nd *plan, int64_t i,
                            const struct shape *shape, struct error *err)
{
    char row[ROW_TEXT_BYTES], text[SHAPE_TEXT_BYTES];
    return fail(err, INVALID,
                "indices[%lld] = %s does not index into param shape %s, node name: %s",
                (long long)i,
                kernel_row_text(kernel_in(call, 1), i, plan->depth, ", ", row, sizeof(row)),
                shape_text(shape, text, sizeof(text)), call->node->name);
}

static bool gather_nd(struct kernel_call *call, const struct tensor *params, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1);
    struct nd plan;
    if (params->shape.rank < 1)
        return fail(err, INVALID, "params must be at least a vector");
    if (!nd_plan(call, indices, &params->shape, &plan, err))
        return false;
    struct shape shape = indices->shape;
    shape.rank--;
    if (!kernel_append_dims(&shape, &params->shape, plan.depth, err))
        return false;
    if (plan.count > 0 && params->count == 0)
        return fail(err, INVALID, "Requested more than 0 entries, but params is empty.");
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < plan.count; i++) {
        int64_t place = nd_place(&plan, indices, &params->shape, i);
        if (place >= 0)
            kernel_copy(out, i * plan.inner, params, place * plan.inner, plan.inner);
        else if (plan.ignore)
            kernel_zero(out, i * plan.inner, plan.inner);
        else
            return bad_param_index(call, &plan, i, &params->shape, err);
    }
    return true;
}

static bool gather_nd_run(struct kernel_call *call, struct error *err)
{
    return gather_nd(call, kernel_in(call, 0), err);
}

static bool resource_gather_nd_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    struct tensor params;
    if (!variable ||
        !kernel_snapshot(call, variable, dtype_base(call->node->output_types[0]), &params, err))
        return false;
    bool ok = gather_nd(call, &params, err);
    tensor_release(&params);
    return ok;
}

/* Strings are added one behind the other. */
static void add_text(struct tensor *to, int64_t at, const struct tensor_string *more)
{
    struct str sum = {0};
    str_add_bytes(&sum, tensor_strings(to)[at].data, tensor_strings(to)[at].size);
    str_add_bytes(&sum, more->data, more->size);
    tensor_set_string(to, at, str_text(&sum), sum.size);
    str_release(&sum);
}

static void add_elements(struct tensor *to, int64_t at, const struct tensor *from,
                         int64_t start, int64_t count)
{
    kernel_load_bits *load = kernel_load_bits_for(to->dtype);
    for (int64_t i = 0; i < count; i++) {
        if (to->dtype == STRING)
            add_text(to, at + i, &tensor_strings(from)[start + i]);
        else if (to->dtype == BOOL)
            ((bool *)to->data)[at + i] |= ((const bool *)from->data)[start + i];
        else if (load)
            kernel_store_bits_for(to->dtype)(
                to->data, at + i, load(to->data, at + i) + load(from->data, start + i));
        else
            kernel_set_complex(
                to, at + i, kernel_complex_at(to, at + i) + kernel_complex_at(from, start + i));
    }
}

/* Updates: one slice for each index, in the shape (indices..., slice...). */
static bool check_updates(const struct tensor *indices, const struct tensor *updates,
                          const struct shape *shape, const struct nd *plan, struct error *err)
{
    struct shape expected = indices->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    expected.rank--;
    if (!kernel_append_dims(&expected, shape, plan->depth, err))
        return false;
    return shape_equal(&expected, &updates->shape) ||
           fail(err, INVALID, "updates must have shape %s, got %s",
                shape_text(&expected, a, sizeof(a)), shape_text(&updates->shape, b, sizeof(b)));
}

static bool scatter_nd_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *updates = kernel_in(call, 1);
    struct shape shape;
    struct nd plan;
    if (kernel_in(call, 2)->shape.rank != 1)
        return fail(err, INVALID, "Shape must be a vector");
    if (!kernel_shape_in(call, 2, &shape, err) || !nd_plan(call, indices, &shape, &plan, err))
        return false;
    if (shape_count(&shape) == 0 && (indices->count > 0 || updates->count > 0))
        return fail(err, INVALID, "Indices and updates specified for empty output");
    if (!check_updates(indices, updates, &shape, &plan, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    for (int64_t i = 0; i < plan.count; i++) {
        int64_t place = nd_place(&plan, indices, &shape, i);
        if (place >= 0)
            add_elements(out, place * plan.inner, updates, i * plan.inner, plan.inner);
        else if (!plan.ignore)
            return bad_index(indices, &plan, i, &shape, err);
    }
    return true;
}

/* --- a tensor with slices changed --- */

enum change { UPDATE, ADD, SUB, MAX, MIN };

static void change_element(enum change change, struct tensor *to, int64_t at,
                           const struct tensor *from, int64_t i)
{
    kernel_load_bits *load = kernel_load_bits_for(to->dtype);
    if (change == ADD && to->dtype == BOOL) {
        ((bool *)to->data)[at] |= ((const bool *)from->data)[i];
    } else if (load) {
        uint64_t a = load(to->data, at), b = load(from->data, i);
        bool less = DTYPES_UNSIGNED & BIT(to->dtype) ? b < a : (int64_t)b < (int64_t)a;
        kernel_store_bits_for(to->dtype)(to->data, at,
                                         change == ADD             ? a + b
                                         : change == SUB           ? a - b
                                         : less == (change == MIN) ? b
                                                                   : a);
    } else if (change == ADD || change == SUB) {
        double complex sign = change == ADD ? 1 : -1;
        kernel_set_complex(to, at,
                           kernel_complex_at(to, at) + sign * kernel_complex_at(from, i));
    } else {
        double a = kernel_load_for(to->dtype)(to->data, at);
        double b = kernel_load_for(to->dtype)(from->data, i);
        if (change == MAX ? b > a : b < a)
            kernel_copy(to, at, from, i, 1);
    }
}

static bool tensor_scatter(struct kernel_call *call, enum change change, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *indices = kernel_in(call, 1);
    const struct tensor *updates = kernel_in(call, 2);
    struct nd plan;
    if (in->shape.rank < 1)
        return fail(err, INVALID, "Tensor must be at least 1-D");
    if (!nd_plan(call, indices, &in->shape, &plan, err) ||
        !check_updates(indices, updates, &in->shape, &plan, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    kernel_copy(out, 0, in, 0, in->count);
    for (int64_t i = 0; i < plan.count; i++) {
        int64_t place = nd_place(&plan, indices, &in->shape, i);
        if (place < 0 && !plan.ignore)
            return bad_index(indices, &plan, i, &in->shape, err);
        if (place < 0)
            continue;
        if (change == UPDATE)
            kernel_copy(out, place * plan.inner, updates, i * plan.inner, plan.inner);
        for (int64_t k = 0; change != UPDATE && k < plan.inner; k++)
            change_element(change, out, place * plan.inner + k, updates, i * plan.inner + k);
    }
    return true;
}

static bool tensor_scatter_update_run(struct kernel_call *call, struct error *err)
{
    return tensor_scatter(call, UPDATE, err);
}
static bool tensor_scatter_add_run(struct kernel_call *call, struct error *err)
{
    return tensor_scatter(call, ADD, err);
}
static bool tensor_scatter_sub_run(struct kernel_call *call, struct error *err)
{
    return tensor_scatter(call, SUB, err);
}
static bool tensor_scatter_max_run(struct kernel_call *call, struct error *err)
{
    return tensor_scatter(call, MAX, err);
}
static bool tensor_scatter_min_run(struct kernel_call *call, struct error *err)
{
    return tensor_scatter(call, MIN, err);
}

#define GATHER(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_gather_ref = GATHER("Gather", gather_run);
const struct kernel kernel_gather_v2_ref = GATHER("GatherV2", gather_v2_run);
const struct kernel kernel_resource_gather_ref = GATHER("ResourceGather", resource_gather_run);
const struct kernel kernel_gather_nd_ref = GATHER("GatherNd", gather_nd_run);
const struct kernel kernel_resource_gather_nd_ref =
    GATHER("ResourceGatherNd", resource_gather_nd_run);
const struct kernel kernel_scatter_nd_ref = GATHER("ScatterNd", scatter_nd_run);
const struct kernel kernel_tensor_scatter_update_ref =
    GATHER("TensorScatterUpdate", tensor_scatter_update_run);
const struct kernel kernel_tensor_scatter_add_ref =
    GATHER("TensorScatterAdd", tensor_scatter_add_run);
const struct kernel kernel_tensor_scatter_sub_ref =
    GATHER("TensorScatterSub", tensor_scatter_sub_run);
const struct kernel kernel_tensor_scatter_max_ref =
    GATHER("TensorScatterMax", tensor_scatter_max_run);
const struct kernel kernel_tensor_scatter_min_ref =
    GATHER("TensorScatterMin", tensor_scatter_min_run);
const struct kernel kernel_scatter_nd_non_aliasing_add_ref =
    GATHER("ScatterNdNonAliasingAdd", tensor_scatter_add_run);
