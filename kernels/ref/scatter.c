/*
 * scatter.c - slices of a variable chosen by index and changed in place, by reference and by
 * resource.  The index is one number (a row) or, in the Nd forms, as many coordinates as the
 * last dimension of the indices has.
 *
 * As in TensorFlow, a bad row number ends a plain scatter where it stands, with the rows before
 * it changed; the Nd forms look at all indices first.
 */

#include "kernels/ref/numbers.h"

#include "base/alloc.h"
#include "runtime/resource.h"

enum how { UPDATE, ADD, SUB, MUL, DIV, MIN, MAX };

static const char *const endings[] = {"Update", "Add", "Sub", "Mul", "Div", "Min", "Max"};

struct prepared {
    enum how how;
    bool nd;
    bool ignore; /* bad indices */
};

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), end = strlen(ending);
    return size >= end && strcmp(text + size - end, ending) == 0;
}

static bool scatter_prepare(const struct node *node, void **state, struct error *err)
{
    (void)err;
    struct prepared *prepared = alloc_bytes(sizeof(*prepared));
    for (int i = 0; i < ARRAY_LEN(endings); i++)
        if (ends_with(node->op->name, endings[i]))
            prepared->how = (enum how)i;
    prepared->nd = strstr(node->op->name, "ScatterNd") != NULL;
    prepared->ignore = strcmp(node_attr_string(node, "bad_indices_policy", ""), "IGNORE") == 0;
    *state = prepared;
    return true;
}

static double combine_real(enum how how, double a, double b)
{
    switch (how) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return a / b;
    case MIN:
        return b < a ? b : a;
    case MAX:
        return b > a ? b : a;
    default:
        return b;
    }
}

static uint64_t combine_integer(enum how how, bool is_unsigned, uint64_t a, uint64_t b)
{
    bool less = is_unsigned ? b < a : (int64_t)b < (int64_t)a;
    switch (how) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return is_unsigned        ? a / b
               : (int64_t)b == -1 ? 0 - a
                                  : (uint64_t)((int64_t)a / (int64_t)b);
    case MIN:
        return less ? b : a;
    case MAX:
        return less ? a : b;
    default:
        return b;
    }
}

/* One slice: elements of `to` from `at`, of `from` from `start`; a step of 0 repeats a scalar.
 */
static void change(struct tensor *to, int64_t at, const struct tensor *from, int64_t start,
                   int64_t step, int64_t count, enum how how)
{
    kernel_load_bits *load = kernel_load_bits_for(to->dtype);
    bool is_unsigned = (DTYPES_UNSIGNED & BIT(to->dtype)) != 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t source = start + i * step, target = at + i;
        if (how == UPDATE)
            kernel_copy(to, target, from, source, 1);
        else if (load)
            kernel_store_bits_for(to->dtype)(to->data, target,
                                             combine_integer(how, is_unsigned,
                                                             load(to->data, target),
                                                             load(from->data, source)));
        else
            tensor_set_number(
                to, target,
                combine_real(how, tensor_number(to, target), tensor_number(from, source)));
    }
}

/* Which slice index `i` names; -1 when it is out of range. */
static int64_t slice_of(const struct tensor *indices, const struct shape *shape, int depth,
                        int64_t i)
{
    int64_t place = 0;
    for (int d = 0; d < depth; d++) {
        int64_t index = tensor_integer(indices, i * depth + d);
        if (index < 0 || index >= shape->dims[d])
            return -1;
        place = place * shape->dims[d] + index;
    }
    return place;
}

static bool bad_index(const struct tensor *indices, int64_t i, const struct shape *shape,
                      struct error *err)
{
    return fail(err, INVALID, "indices[%lld] = %lld is not in [0, %lld)", (long long)i,
                (long long)tensor_integer(indices, i), (long long)shape->dims[0]);
}

static bool check(const struct kernel_call *call, const struct prepared *prepared,
                  const struct tensor *value, int *depth, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1), *updates = kernel_in(call, 2);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct shape expected = indices->shape;
    if (updates->dtype != value->dtype)
        return fail(err, INVALID, "the variable holds %s, the updates are %s",
                    dtype_name(value->dtype), dtype_name(updates->dtype));
    if (value->shape.rank < 1 || (prepared->nd && indices->shape.rank < 1))
        return fail(err, INVALID, "params must be at least 1-D, got shape %s",
                    shape_text(&value->shape, a, sizeof(a)));
    *depth = 1;
    if (prepared->nd) {
        *depth = (int)expected.dims[--expected.rank];
        if (*depth > value->shape.rank)
            return fail(err, INVALID, "indices have %d coordinates, the variable %d dimensions",
                        *depth, value->shape.rank);
    }
    for (int d = *depth; d < value->shape.rank && expected.rank < LIMIT_TENSOR_RANK; d++)
        expected.dims[expected.rank++] = value->shape.dims[d];
    bool scalar = !prepared->nd && updates->shape.rank == 0;
    if (!scalar && !shape_equal(&expected, &updates->shape))
        return fail(err, INVALID, "Must have updates.shape %s, got %s",
                    shape_text(&expected, a, sizeof(a)),
                    shape_text(&updates->shape, b, sizeof(b)));
    int64_t count = *depth ? indices->count / *depth : 1;
    for (int64_t i = 0; prepared->nd && i < count && !prepared->ignore; i++)
        if (slice_of(indices, &value->shape, *depth, i) < 0)
            return bad_index(indices, i * *depth, &value->shape, err);
    return true;
}

static bool scatter_run(struct kernel_call *call, struct error *err)
{
    const struct prepared *prepared = call->state;
    struct variable *variable = kernel_variable(call, 0, err);
    bool by_ref = dtype_is_ref(call->node->input_types[0]);
    int depth = 1;
    if (!variable)
        return false;
    if (variable->value.dtype == DTYPE_NONE)
        return fail(err, by_ref ? PRECONDITION : NOT_FOUND,
                    "variable '%s' has no value: it was not initialized", variable->name);
    if (!check(call, prepared, &variable->value, &depth, err))
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = variable_make_exclusive_locked(variable, err);
    const struct tensor *indices = kernel_in(call, 1), *updates = kernel_in(call, 2);
    int64_t count = depth ? indices->count / depth : 1;
    int64_t inner = kernel_span(&variable->value.shape, depth, variable->value.shape.rank);
    bool scalar = updates->shape.rank == 0 && !prepared->nd;
    for (int64_t i = 0; ok && i < count; i++) {
        int64_t slice = slice_of(indices, &variable->value.shape, depth, i);
        if (slice >= 0)
            change(&variable->value, slice * inner, updates, scalar ? 0 : i * inner,
                   scalar ? 0 : 1, inner, prepared->how);
        else if (!prepared->ignore)
            ok = bad_index(indices, i, &variable->value.shape, err);
    }
    pthread_mutex_unlock(&variable->lock);
    if (ok && by_ref)
        kernel_output_ref(call, 0, variable);
    return ok;
}

#define SCATTER(name_)                                                                         \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = scatter_prepare, .release = free,               \
        .run = scatter_run,                                                                    \
    }

const struct kernel kernel_scatter_update_ref = SCATTER("ScatterUpdate");
const struct kernel kernel_scatter_add_ref = SCATTER("ScatterAdd");
const struct kernel kernel_scatter_sub_ref = SCATTER("ScatterSub");
const struct kernel kernel_scatter_mul_ref = SCATTER("ScatterMul");
const struct kernel kernel_scatter_div_ref = SCATTER("ScatterDiv");
const struct kernel kernel_scatter_min_ref = SCATTER("ScatterMin");
const struct kernel kernel_scatter_max_ref = SCATTER("ScatterMax");
const struct kernel kernel_resource_scatter_update_ref = SCATTER("ResourceScatterUpdate");
const struct kernel kernel_resource_scatter_add_ref = SCATTER("ResourceScatterAdd");
const struct kernel kernel_resource_scatter_sub_ref = SCATTER("ResourceScatterSub");
const struct kernel kernel_resource_scatter_mul_ref = SCATTER("ResourceScatterMul");
const struct kernel kernel_resource_scatter_div_ref = SCATTER("ResourceScatterDiv");
const struct kernel kernel_resource_scatter_min_ref = SCATTER("ResourceScatterMin");
const struct kernel kernel_resource_scatter_max_ref = SCATTER("ResourceScatterMax");
const struct kernel kernel_scatter_nd_update_ref = SCATTER("ScatterNdUpdate");
const struct kernel kernel_scatter_nd_add_ref = SCATTER("ScatterNdAdd");
const struct kernel kernel_scatter_nd_sub_ref = SCATTER("ScatterNdSub");
const struct kernel kernel_resource_scatter_nd_update_ref = SCATTER("ResourceScatterNdUpdate");
const struct kernel kernel_resource_scatter_nd_add_ref = SCATTER("ResourceScatterNdAdd");
const struct kernel kernel_resource_scatter_nd_sub_ref = SCATTER("ResourceScatterNdSub");
const struct kernel kernel_resource_scatter_nd_min_ref = SCATTER("ResourceScatterNdMin");
const struct kernel kernel_resource_scatter_nd_max_ref = SCATTER("ResourceScatterNdMax");
