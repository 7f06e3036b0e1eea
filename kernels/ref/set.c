/* set.c - the last dimension of dense and sparse tensors as sets: what both have, and so on. */

#include "kernels/ref/sparse.h"

/* An element of a set: which set, and which value. */
struct member {
    int64_t set;
    const struct tensor *values;
    int64_t index;
};

/* Sets of one operand: members in order, each value once. */
struct sets {
    struct member *members;
    int64_t count;
    struct shape groups; /* all dimensions but the last */
};

static int compare_values(const struct member *a, const struct member *b)
{
    if (a->values->dtype == STRING) {
        const struct tensor_string *x = tensor_strings(a->values) + a->index;
        const struct tensor_string *y = tensor_strings(b->values) + b->index;
        size_t least = x->size < y->size ? x->size : y->size;
        int order = least ? memcmp(x->data, y->data, least) : 0;
        return order ? order : x->size < y->size ? -1 : x->size > y->size;
    }
    int64_t x = tensor_integer(a->values, a->index), y = tensor_integer(b->values, b->index);
    return x < y ? -1 : x > y;
}

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    return compare_values(x, y);
}

static void order_members(struct sets *sets)
{
    int64_t kept = 0;
    if (sets->count > 0)
        qsort(sets->members, (size_t)sets->count, sizeof(*sets->members), compare_members);
    for (int64_t i = 0; i < sets->count; i++)
        if (kept == 0 || compare_members(&sets->members[kept - 1], &sets->members[i]) != 0)
            sets->members[kept++] = sets->members[i];
    sets->count = kept;
}

static bool members_new(struct sets *sets, struct kernel_call *call, int64_t count,
                        struct error *err)
{
    sets->count = count;
    sets->members = kernel_scratch(call, (size_t)count * sizeof(*sets->members) + 1, err);
    return sets->members != NULL;
}

static bool dense_sets(struct kernel_call *call, int input, struct sets *sets,
                       struct error *err)
{
    const struct tensor *in = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank < 2)
        return fail(err, INVALID, "Shape %s has rank %d < 2",
                    shape_text(&in->shape, text, sizeof(text)), in->shape.rank);
    if (!members_new(sets, call, in->count, err))
        return false;
    sets->groups = in->shape;
    int64_t size = in->shape.dims[--sets->groups.rank];
    for (int64_t i = 0; i < in->count; i++)
        sets->members[i] = (struct member){i / size, in, i};
    order_members(sets);
    return true;
}

/* The parts of a sparse operand fit together, in the order and words of TensorFlow. */
static bool sparse_parts_check(const struct kernel_call *call, int input, struct error *err)
{
    const struct tensor *dims = kernel_in(call, input + 2);
    if (dims->shape.rank != 1)
        return fail(err, INVALID, "Shape must be a 1D tensor.");
    for (int64_t d = 0; d < dims->count; d++)
        if (tensor_i64(dims)[d] < 0)
            return fail(err, INVALID, "Expected shape dimensions to be non-negative, got %lld",
                        (long long)tensor_i64(dims)[d]);
    if (dims->count < 2)
        return fail(err, INVALID, "Invalid rank %lld.", (long long)dims->count);
    return kernel_sparse_check_made(call, input, input + 1, input + 2, err);
}

/* Element `i` is inside, and behind the one before it where the node says that all are. */
static bool place_check(const struct kernel_call *call, int input, const struct sparse *in,
                        int64_t i, int64_t in_set, struct error *err)
{
    char row[ROW_TEXT_BYTES], dims[ROW_TEXT_BYTES];
    bool ordered = node_attr_bool(call->node, "validate_indices", true);
    const int64_t *at = kernel_sparse_at(in, i);
    for (int d = 0; d < in->rank; d++) {
        if (at[d] >= 0 && at[d] < in->dims[d])
            continue;
        if (!ordered)
            return fail(err, INTERNAL, "indices[%lld, %d] expected < %lld, got %lld.",
                        (long long)in_set, d, (long long)in->dims[d], (long long)at[d]);
        return fail(
            err, INVALID, "indices[%lld] = %s is out of bounds: need 0 <= index < %s",
            (long long)i,
            kernel_row_text(kernel_in(call, input), i, in->rank, ",", row, sizeof(row)),
            kernel_row_text(kernel_in(call, input + 2), 0, in->rank, ",", dims, sizeof(dims)));
    }
    int order = ordered && i > 0 ? kernel_sparse_compare(at - in->rank, at, in->rank) : -1;
    return order < 0 || kernel_fail_order(err, i,
                                          kernel_row_text(kernel_in(call, input), i, in->rank,
                                                          ",", row, sizeof(row)),
                                          order == 0);
}

static bool sparse_sets(struct kernel_call *call, int input, struct sets *sets,
                        struct error *err)
{
    struct sparse in;
    if (!sparse_parts_check(call, input, err) ||
        !kernel_sparse_in(call, input, input + 1, input + 2, &in, err) ||
        !members_new(sets, call, in.count, err))
        return false;
    sets->groups.rank = in.rank - 1;
    memcpy(sets->groups.dims, in.dims, (size_t)(in.rank - 1) * sizeof(*in.dims));
    for (int64_t i = 0, in_set = 0; i < in.count; i++, in_set++) {
        const int64_t *at = kernel_sparse_at(&in, i);
        if (i > 0 && kernel_sparse_compare(at - in.rank, at, in.rank - 1) != 0)
            in_set = 0;
        if (!place_check(call, input, &in, i, in_set, err))
            return false;
        int64_t set = 0;
        for (int d = 0; d < in.rank - 1; d++)
            set = set * in.dims[d] + at[d];
        sets->members[i] = (struct member){set, in.values, i};
    }
    order_members(sets);
    return true;
}

enum operation { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION };

static bool operation_of(const struct node *node, enum operation *operation, struct error *err)
{
    static const char *const names[] = {"a-b", "b-a", "intersection", "union"};
    const char *name = node_attr_string(node, "set_operation", "");
    char lower[64] = "";
    for (size_t i = 0; i < sizeof(lower) - 1 && name[i]; i++)
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    for (int i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(lower, names[i])) {
            *operation = (enum operation)i;
            return true;
        }
    return fail(err, INVALID, "Invalid set_operation %s.", lower);
}

/* Members of the result, in order, into `to`, which has room for both. */
static int64_t combine(const struct sets *a, const struct sets *b, enum operation operation,
                       struct member *to)
{
    int64_t i = 0, k = 0, count = 0;
    while (i < a->count || k < b->count) {
        int order = i >= a->count   ? 1
                    : k >= b->count ? -1
                                    : compare_members(&a->members[i], &b->members[k]);
        bool wanted = operation == UNION || (operation == INTERSECTION && order == 0) ||
                      (operation == A_MINUS_B && order < 0) ||
                      (operation == B_MINUS_A && order > 0);
        const struct member *member = order <= 0 ? &a->members[i] : &b->members[k];
        if (wanted)
            to[count++] = *member;
        i += order <= 0;
        k += order >= 0;
    }
    return count;
}

static bool give(struct kernel_call *call, const struct member *members, int64_t count,
                 const struct shape *groups, struct error *err)
{
    struct sparse_out out;
    int rank = groups->rank + 1;
    int64_t most = 0;
    if (!kernel_sparse_out(call, 0, count, rank, &out, err))
        return false;
    for (int64_t i = 0, place = 0; i < count; i++, place++) {
        place = i > 0 && members[i].set == members[i - 1].set ? place : 0;
        most = place + 1 > most ? place + 1 : most;
        int64_t set = members[i].set;
        for (int d = groups->rank - 1; d >= 0; d--) {
            out.index[i * rank + d] = set % groups->dims[d];
            set /= groups->dims[d];
        }
        out.index[i * rank + rank - 1] = place;
        kernel_copy(out.values, i, members[i].values, members[i].index, 1);
    }
    memcpy(out.dims, groups->dims, (size_t)groups->rank * sizeof(*out.dims));
    out.dims[rank - 1] = most;
    return true;
}

static bool operation_run(struct kernel_call *call, struct error *err)
{
    const char *name = call->node->op->name;
    bool a_dense = !strncmp(name, "Dense", 5), b_dense = strstr(name, "ToDense") != NULL;
    struct sets a, b;
    enum operation operation = UNION;
    int second = a_dense ? 1 : 3;
    if (!operation_of(call->node, &operation, err))
        return false;
    bool ok = a_dense && !b_dense
                  ? sparse_sets(call, second, &b, err) && dense_sets(call, 0, &a, err)
                  : (a_dense ? dense_sets : sparse_sets)(call, 0, &a, err) &&
                        (b_dense ? dense_sets : sparse_sets)(call, second, &b, err);
    if (!ok)
        return false;
    char text[2][SHAPE_TEXT_BYTES];
    if (!shape_equal(&a.groups, &b.groups))
        return fail(err, INVALID, "Mismatched shapes %s vs %s",
                    shape_text(&a.groups, text[0], sizeof(text[0])),
                    shape_text(&b.groups, text[1], sizeof(text[1])));
    struct member *both =
        kernel_scratch(call, (size_t)(a.count + b.count) * sizeof(*both) + 1, err);
    return both && give(call, both, combine(&a, &b, operation, both), &a.groups, err);
}

/* How many different values each set has. */
static bool size_run(struct kernel_call *call, struct error *err)
{
    struct sets sets;
    if (!sparse_sets(call, 0, &sets, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &sets.groups, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    for (int64_t i = 0; i < sets.count; i++)
        ((int32_t *)out->data)[sets.members[i].set]++;
    return true;
}

#define SET(name_, run_)                                                                       \
    {                                                                                          \
        .op = name_, .device = CPU,                                                            \
        .dtypes = DTYPES_SIGNED | BIT(U8) | BIT(U16) | BIT(STRING), .run = run_                \
    }

const struct kernel kernel_dense_to_dense_set_operation_ref =
    SET("DenseToDenseSetOperation", operation_run);
const struct kernel kernel_dense_to_sparse_set_operation_ref =
    SET("DenseToSparseSetOperation", operation_run);
const struct kernel kernel_sparse_to_sparse_set_operation_ref =
    SET("SparseToSparseSetOperation", operation_run);
const struct kernel kernel_set_size_ref = SET("SetSize", size_run);
