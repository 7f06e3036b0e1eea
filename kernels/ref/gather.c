/* gather.c - elements chosen by index, and put back by index. */

#include "base/str.h"
#include "kernels/ref/nd.h"
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
    int64_t least = axis < 0 ? -axis : axis + 1;
    if (rank < least)
        return fail(err, INVALID, "Shape must be at least rank %lld but is rank %d",
                    (long long)least, rank);
    axis += axis < 0 ? rank : 0;
    if (batch < -indices_rank || batch > indices_rank)
        return fail(err, INVALID, "Expected batch_dims in the range [%d, %d], but got %lld",
                    -indices_rank, indices_rank, (long long)batch);
    batch += batch < 0 ? indices_rank : 0;
    if (batch >= rank)
        return fail(err, INVALID, "batch_dims (%lld) must be less than rank(params) (%d).",
                    (long long)batch, rank);
    if (batch > axis)
        return fail(err, INVALID,
                    "batch_dims (%lld) must be less than or equal to axis (%lld).",
                    (long long)batch, (long long)axis);
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
    char place[ROW_TEXT_BYTES];
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index = tensor_integer(indices, i);
        if (index < 0 || index >= length)
            return fail(err, INVALID, "indices%s = %lld is not in [0, %lld)",
                        kernel_place_text(&indices->shape, i, place, sizeof(place)),
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
    const struct tensor *axis = kernel_in(call, 2);
    if (axis->shape.rank != 0)
        return fail(err, INVALID, "axis must be scalar");
    return gather(call, kernel_in(call, 0), kernel_in(call, 1), tensor_integer(axis, 0),
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
    plan->depth = (int)indices->shape.dims[rank - 1];
    plan->count = kernel_span(&indices->shape, 0, rank - 1);
    plan->inner = kernel_span(shape, plan->depth, shape->rank);
    return kernel_nd_policy(call->node, &plan->ignore, err);
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

static bool bad_param_index(const struct kernel_call *call, const struct nd *plan, int64_t i,
                            const struct shape *shape, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1);
    char row[ROW_TEXT_BYTES], place[ROW_TEXT_BYTES], text[SHAPE_TEXT_BYTES];
    struct shape rows = indices->shape;
    rows.rank--;
    return fail(err, INVALID,
                "indices%s = %s does not index into param shape %s, node name: %s",
                kernel_place_text(&rows, i, place, sizeof(place)),
                kernel_row_text(indices, i, plan->depth, ", ", row, sizeof(row)),
                shape_text(shape, text, sizeof(text)), call->node->name);
}

static bool check_gather_nd(const struct tensor *params, const struct tensor *indices,
                            struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    int rank = indices->shape.rank;
    if (params->shape.rank < 1)
        return fail(err, INVALID, "params must be at least a vector");
    if (rank < 1)
        return fail(err, INVALID, "indices must be at least a vector");
    int64_t depth = indices->shape.dims[rank - 1];
    if (depth > params->shape.rank)
        return fail(err, INVALID,
                    "index innermost dimension length must be <= params rank; saw: %lld vs. %d",
                    (long long)depth, params->shape.rank);
    if (kernel_span(&indices->shape, 0, rank - 1) > 0 && params->count == 0)
        return fail(err, INVALID,
                    "Requested more than 0 entries, but params is empty.  Params shape: %s",
                    shape_text(&params->shape, text, sizeof(text)));
    return true;
}

/* Of several bad indices the last is told, as in TensorFlow. */
static bool gather_nd(struct kernel_call *call, const struct tensor *params, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1);
    struct nd plan;
    int64_t bad = -1;
    if (!check_gather_nd(params, indices, err))
        return false;
    if (!nd_plan(call, indices, &params->shape, &plan, err))
        return false;
    struct shape shape = indices->shape;
    shape.rank--;
    if (!kernel_append_dims(&shape, &params->shape, plan.depth, err))
        return false;
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
            bad = i;
    }
    return bad < 0 || bad_param_index(call, &plan, bad, &params->shape, err);
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

/* Rank and emptiness.  `whole`: as many elements as TensorFlow takes what is changed to have.
 */
static bool check_ranks(const struct tensor *indices, const struct tensor *updates,
                        int64_t whole, struct error *err)
{
    if (indices->shape.rank < 1)
        return fail(err, INVALID, "Indices shape must have rank at least one. Found:[]");
    if (updates->shape.rank < 1)
        return fail(err, INVALID, "Updates shape must have rank at least one. Found:[]");
    if ((indices->count > 0 || updates->count > 0) &&
        (!whole || !indices->count || !updates->count))
        return fail(err, INVALID, "Indices and updates specified for empty output shape");
    return true;
}

/* Whether the updates begin with the dimensions of the indices but for their last. */
static bool outer_match(const struct shape *indices, const struct shape *updates)
{
    bool match = updates->rank >= indices->rank - 1;
    for (int d = 0; match && d < indices->rank - 1; d++)
        match = indices->dims[d] == updates->dims[d];
    return match;
}

/* Whether they go on with the dimensions of `shape` beyond those that an index names. */
static bool inner_match(const struct shape *indices, const struct shape *updates,
                        const struct shape *shape)
{
    int outer = indices->rank - 1;
    int64_t depth = indices->dims[outer];
    bool match = updates->rank - outer == shape->rank - depth;
    for (int d = outer; match && d < updates->rank; d++)
        match = updates->dims[d] == shape->dims[depth + d - outer];
    return match;
}

static bool check_scatter_nd(const struct tensor *indices, const struct tensor *updates,
                             const struct shape *shape, struct error *err)
{
    const struct shape *rows = &indices->shape, *given = &updates->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int outer = rows->rank - 1;
    shape_text(given, b, sizeof(b));
    if (!outer_match(rows, given))
        return fail(err, INVALID,
                    "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of "
                    "updates[shape=%s]",
                    outer, shape_text(rows, a, sizeof(a)), outer, b);
    return inner_match(rows, given, shape) ||
           fail(err, INVALID,
                "Dimensions [%lld,%d) of input[shape=%s] must match dimensions [%d,%d) of "
                "updates[shape=%s]",
                (long long)rows->dims[outer], shape->rank, shape_text(shape, a, sizeof(a)),
                outer, given->rank, b);
}

static bool check_tensor_scatter(const struct tensor *indices, const struct tensor *updates,
                                 const struct shape *shape, struct error *err)
{
    const struct shape *rows = &indices->shape, *given = &updates->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    shape_text(given, b, sizeof(b));
    if (!outer_match(rows, given))
        return fail(err, INVALID,
                    "Outer dimensions of indices and update must match. Indices shape: %s, "
                    "updates shape:%s",
                    shape_text(rows, a, sizeof(a)), b);
    int64_t inner = shape->rank - rows->dims[rows->rank - 1];
    shape_text(shape, a, sizeof(a));
    if (given->rank - (rows->rank - 1) != inner)
        return fail(err, INVALID,
                    "Inner dimensions of output shape must match inner dimensions of updates "
                    "shape. Output: %s updates: %s",
                    a, b);
    return inner_match(rows, given, shape) ||
           fail(err, INVALID,
                "The inner %lld dimensions of output.shape=%s must match the inner %lld "
                "dimensions of updates.shape=%s",
                (long long)inner, a, (long long)inner, b);
}

/* The elements of a shape are read whatever its own shape, and that is looked at last. */
static bool scatter_nd_shape(const struct kernel_call *call, struct shape *shape,
                             struct error *err)
{
    const struct tensor *in = kernel_in(call, 2);
    const struct tensor *indices = kernel_in(call, 0), *updates = kernel_in(call, 1);
    return kernel_shape_of(in, shape, err) && check_ranks(indices, updates, in->count, err) &&
           check_scatter_nd(indices, updates, shape, err) &&
           (in->shape.rank == 1 || fail(err, INVALID, "Shape must be a vector")) &&
           kernel_nd_check(indices, updates, shape, err);
}

static bool scatter_nd_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *updates = kernel_in(call, 1);
    struct shape shape;
    struct nd plan;
    int64_t bad = -1;
    if (!scatter_nd_shape(call, &shape, err))
        return false;
    if (!nd_plan(call, indices, &shape, &plan, err))
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
            bad = i;
    }
    return bad < 0 || kernel_nd_bad(indices, bad, plan.depth, &shape, err);
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
    int64_t bad = -1;
    bool aliasing = strcmp(call->node->op->name, "ScatterNdNonAliasingAdd") != 0;
    if (aliasing && (!check_ranks(indices, updates, in->count, err) ||
                     !check_tensor_scatter(indices, updates, &in->shape, err)))
        return false;
    if (!kernel_nd_check(indices, updates, &in->shape, err))
        return false;
    if (!nd_plan(call, indices, &in->shape, &plan, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    kernel_copy(out, 0, in, 0, in->count);
    for (int64_t i = 0; i < plan.count; i++) {
        int64_t place = nd_place(&plan, indices, &in->shape, i);
        if (place < 0) {
            bad = plan.ignore ? bad : i;
            continue;
        }
        if (change == UPDATE)
            kernel_copy(out, place * plan.inner, updates, i * plan.inner, plan.inner);
        for (int64_t k = 0; change != UPDATE && k < plan.inner; k++)
            change_element(change, out, place * plan.inner + k, updates, i * plan.inner + k);
    }
    return bad < 0 || kernel_nd_bad(indices, bad, plan.depth, &in->shape, err);
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

/* The others look at it when they run, as TensorFlow's do. */
static bool knows_policy(const struct node *node)
{
    bool ignore;
    struct error unknown;
    return kernel_nd_policy(node, &ignore, &unknown);
}

#define GATHER(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_gather_ref = GATHER("Gather", gather_run);
const struct kernel kernel_gather_v2_ref = GATHER("GatherV2", gather_v2_run);
const struct kernel kernel_resource_gather_ref = GATHER("ResourceGather", resource_gather_run);
const struct kernel kernel_gather_nd_ref = {
    .op = "GatherNd", .device = CPU, .accepts = knows_policy, .run = gather_nd_run};
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
