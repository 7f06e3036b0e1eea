/*
 * scatter.c - slices of a variable chosen by index and changed in place, by reference and by
 * resource.  The index is one number (a row) or, in the Nd forms, as many coordinates as the
 * last dimension of the indices has.
 *
 * As in TensorFlow, a bad row number ends a plain scatter where it stands, with the rows before
 * it changed; the Nd forms change all that is named well, and then say what was not.
 */

#include "base/alloc.h"
#include "kernels/ref/nd.h"
#include "kernels/ref/update.h"
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
    bool ignore;
    if (!kernel_nd_policy(node, &ignore, err))
        return false;
    struct prepared *prepared = alloc_bytes(sizeof(*prepared));
    for (int i = 0; i < ARRAY_LEN(endings); i++)
        if (ends_with(node->op->name, endings[i]))
            prepared->how = (enum how)i;
    prepared->nd = strstr(node->op->name, "ScatterNd") != NULL;
    prepared->ignore = ignore;
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

static double complex combine_complex(enum how how, double complex a, double complex b)
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
        else if (BIT(to->dtype) & DTYPES_COMPLEX)
            kernel_set_complex(to, target,
                               combine_complex(how, kernel_complex_at(to, target),
                                               kernel_complex_at(from, source)));
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
    char place[ROW_TEXT_BYTES];
    return fail(err, INVALID, "indices%s = %lld is not in [0, %lld)",
                kernel_place_text(&indices->shape, i, place, sizeof(place)),
                (long long)tensor_integer(indices, i), (long long)shape->dims[0]);
}

/* How many slices are named, and by how many coordinates each. */
struct names {
    int64_t count;
    int depth;
};

/* Coordinates are in the last dimension of the indices; a vector holds one each. */
static bool read_nd(const struct tensor *indices, const struct tensor *updates,
                    const struct shape *shape, struct names *names, struct error *err)
{
    int rank = indices->shape.rank;
    if (!kernel_nd_check(indices, updates, shape, err))
        return false;
    names->depth = rank > 1 ? (int)indices->shape.dims[rank - 1] : 1;
    names->count =
        shape_count(shape) ? kernel_span(&indices->shape, 0, rank > 1 ? rank - 1 : 1) : 0;
    return true;
}

/* An integer cannot be divided by zero. */
static bool check_divisors(const struct prepared *prepared, const struct tensor *updates,
                           struct error *err)
{
    kernel_load_bits *load = kernel_load_bits_for(updates->dtype);
    for (int64_t i = 0; prepared->how == DIV && load && i < updates->count; i++)
        if (load(updates->data, i) == 0)
            return fail(err, INVALID, "Integer division by zero");
    return true;
}

/* Rows by one number each; a scalar goes to all of them. */
static bool check_rows(const struct kernel_call *call, const struct shape *shape,
                       struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1), *updates = kernel_in(call, 2);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES];
    struct shape expected = indices->shape;
    shape_text(shape, a, sizeof(a));
    if (shape->rank < 1)
        return fail(err, INVALID, "params must be at least 1-D, got shape %s", a);
    if (!kernel_append_dims(&expected, shape, 1, err))
        return false;
    bool nothing = !kernel_is_ref(call) && indices->count == 0;
    return updates->shape.rank == 0 || nothing || shape_equal(&expected, &updates->shape) ||
           fail(err, INVALID,
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = "
                "[], got updates.shape %s, indices.shape %s, params.shape %s",
                shape_text(&updates->shape, b, sizeof(b)),
                shape_text(&indices->shape, c, sizeof(c)), a);
}

static bool check(const struct kernel_call *call, const struct prepared *prepared,
                  const struct shape *shape, struct names *names, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 1), *updates = kernel_in(call, 2);
    *names = (struct names){.count = indices->count, .depth = 1};
    if (!(prepared->nd ? read_nd(indices, updates, shape, names, err)
                       : check_rows(call, shape, err)))
        return false;
    return check_divisors(prepared, updates, err);
}

static bool scatter_locked(struct kernel_call *call, struct variable *variable,
                           struct error *err)
{
    const struct prepared *prepared = call->state;
    const struct tensor *indices = kernel_in(call, 1), *updates = kernel_in(call, 2);
    const struct shape *shape = &variable->value.shape;
    struct names names;
    int64_t bad = -1;
    if (!kernel_update_check_locked(call, variable, updates->dtype, err) ||
        !check(call, prepared, shape, &names, err) ||
        !variable_make_exclusive_locked(variable, err))
        return false;
    int64_t inner = kernel_span(shape, names.depth, shape->rank);
    bool scalar = updates->shape.rank == 0 && !prepared->nd;
    for (int64_t i = 0; i < names.count; i++) {
        int64_t slice = slice_of(indices, shape, names.depth, i);
        if (slice >= 0)
            change(&variable->value, slice * inner, updates, scalar ? 0 : i * inner,
                   scalar ? 0 : 1, inner, prepared->how);
        else if (!prepared->nd)
            return bad_index(indices, i, shape, err);
        else
            bad = i;
    }
    return bad < 0 || prepared->ignore || kernel_nd_bad(indices, bad, names.depth, shape, err);
}

static bool scatter_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = scatter_locked(call, variable, err);
    pthread_mutex_unlock(&variable->lock);
    if (ok && kernel_is_ref(call))
        kernel_output_ref(call, 0, variable);
    return ok;
}

#define SCATTER(name_, dtypes_)                                                                \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = scatter_prepare,             \
        .release = free, .run = scatter_run,                                                   \
    }

const struct kernel kernel_scatter_update_ref = SCATTER("ScatterUpdate", DTYPES_ANY);
const struct kernel kernel_scatter_add_ref = SCATTER("ScatterAdd", DTYPES_NUMBER);
const struct kernel kernel_scatter_sub_ref = SCATTER("ScatterSub", DTYPES_NUMBER);
const struct kernel kernel_scatter_mul_ref = SCATTER("ScatterMul", DTYPES_NUMBER);
const struct kernel kernel_scatter_div_ref = SCATTER("ScatterDiv", DTYPES_NUMBER);
const struct kernel kernel_scatter_min_ref = SCATTER("ScatterMin", DTYPES_REAL);
const struct kernel kernel_scatter_max_ref = SCATTER("ScatterMax", DTYPES_REAL);
const struct kernel kernel_resource_scatter_update_ref =
    SCATTER("ResourceScatterUpdate", DTYPES_ANY);
const struct kernel kernel_resource_scatter_add_ref =
    SCATTER("ResourceScatterAdd", DTYPES_NUMBER);
const struct kernel kernel_resource_scatter_sub_ref =
    SCATTER("ResourceScatterSub", DTYPES_NUMBER);
const struct kernel kernel_resource_scatter_mul_ref =
    SCATTER("ResourceScatterMul", DTYPES_NUMBER);
const struct kernel kernel_resource_scatter_div_ref =
    SCATTER("ResourceScatterDiv", DTYPES_NUMBER);
const struct kernel kernel_resource_scatter_min_ref =
    SCATTER("ResourceScatterMin", DTYPES_REAL);
const struct kernel kernel_resource_scatter_max_ref =
    SCATTER("ResourceScatterMax", DTYPES_REAL);
const struct kernel kernel_scatter_nd_update_ref = SCATTER("ScatterNdUpdate", DTYPES_ANY);
const struct kernel kernel_scatter_nd_add_ref =
    SCATTER("ScatterNdAdd", DTYPES_NUMBER | BIT(BOOL));
const struct kernel kernel_scatter_nd_sub_ref =
    SCATTER("ScatterNdSub", DTYPES_NUMBER | BIT(BOOL));
const struct kernel kernel_scatter_nd_min_ref = SCATTER("ScatterNdMin", DTYPES_REAL);
const struct kernel kernel_scatter_nd_max_ref = SCATTER("ScatterNdMax", DTYPES_REAL);
const struct kernel kernel_resource_scatter_nd_update_ref =
    SCATTER("ResourceScatterNdUpdate", DTYPES_ANY);
const struct kernel kernel_resource_scatter_nd_add_ref =
    SCATTER("ResourceScatterNdAdd", DTYPES_NUMBER | BIT(BOOL));
const struct kernel kernel_resource_scatter_nd_sub_ref =
    SCATTER("ResourceScatterNdSub", DTYPES_NUMBER | BIT(BOOL));
const struct kernel kernel_resource_scatter_nd_min_ref =
    SCATTER("ResourceScatterNdMin", DTYPES_REAL);
const struct kernel kernel_resource_scatter_nd_max_ref =
    SCATTER("ResourceScatterNdMax", DTYPES_REAL);
