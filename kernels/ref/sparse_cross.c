/*
 * sparse_cross.c - features crossed: for each row, every choice of one value from each column,
 * joined as a string or hashed.
 */

#include "kernels/io/string_hash.h"
#include "kernels/ref/sparse.h"
#include "kernels/ref/sums.h"

#include <endian.h>

#include "base/str.h"

#define COLUMNS_MAX 4096

/* A column of features: sparse, with the values of row r from starts[r] on, or dense. */
struct column {
    const struct tensor *values;
    const int64_t *starts; /* NULL: dense */
    int64_t width;         /* of a dense one */
};

struct cross {
    struct column *columns;
    int count;
    int64_t rows;
    bool hashed;
    bool strong; /* strings by a keyed hash */
    uint64_t key[2];
    bool seeded; /* hashes of values are mixed into the seed, else into the first one */
    uint64_t seed;
    uint64_t buckets;
    const char *separator;
    size_t separator_size;
};

/* --- reading --- */

/* Values of a sparse column lie in the order of their rows; from the first that does not, none
 * count. */
static bool read_sparse(struct kernel_call *call, struct cross *c, int n, int i,
                        struct error *err)
{
    struct sparse in;
    if (!kernel_sparse_in(call, i, n + i, 2 * n + i, &in, err))
        return false;
    if (in.rank != 2)
        return fail(err, INVALID, "Expected D2 of index to be 2 but got %d at position %d",
                    in.rank, i);
    if (c->rows >= 0 && in.dims[0] != c->rows)
        return fail(err, INVALID, "Expected batch size %lld but got %lld at position %d",
                    (long long)c->rows, (long long)in.dims[0], i);
    c->rows = in.dims[0];
    int64_t *starts = kernel_zeros(call, c->rows + 1, sizeof(*starts), err);
    if (!starts)
        return false;
    int64_t at = 0;
    for (int64_t r = 0; r < c->rows; r++) {
        starts[r] = at;
        while (at < in.count && kernel_sparse_at(&in, at)[0] == r)
            at++;
    }
    starts[c->rows] = at;
    c->columns[c->count++] = (struct column){.values = in.values, .starts = starts};
    return true;
}

static bool read_dense(const struct kernel_call *call, struct cross *c, int input,
                       struct error *err)
{
    const struct tensor *in = kernel_in(call, input);
    if (in->shape.rank != 2)
        return fail(err, INVALID, "Dense inputs should be a matrix but received rank %d",
                    in->shape.rank);
    if (c->rows >= 0 && in->shape.dims[0] != c->rows)
        return fail(err, INVALID, "Expected batch size %lld but got %lld at dense tensor",
                    (long long)c->rows, (long long)in->shape.dims[0]);
    c->rows = in->shape.dims[0];
    c->columns[c->count++] = (struct column){.values = in, .width = in->shape.dims[1]};
    return true;
}

/* Columns are the sparse inputs, then the dense ones. */
static bool read_columns(struct kernel_call *call, struct cross *c, struct error *err)
{
    const struct attr *types = node_attr(call->node, "dense_types");
    int n = (int)node_attr_int(call->node, "N", 0);
    int dense = types && types->kind == ATTR_TYPE ? types->count : 0;
    if (n < 0 || n > COLUMNS_MAX || dense > COLUMNS_MAX)
        return fail(err, INVALID, "%d sparse and %d dense columns", n, dense);
    c->columns = kernel_scratch(call, (size_t)(n + dense) * sizeof(*c->columns) + 1, err);
    c->rows = n + dense ? -1 : 0;
    if (!c->columns)
        return false;
    for (int i = 0; i < n; i++)
        if (!read_sparse(call, c, n, i, err))
            return false;
    for (int i = 0; i < dense; i++)
        if (!read_dense(call, c, 3 * n + i, err))
            return false;
    return true;
}

/* --- crossing --- */

static int64_t features(const struct column *column, int64_t row)
{
    return column->starts ? column->starts[row + 1] - column->starts[row] : column->width;
}

/* Where feature `i` of a row is among the column's values. */
static int64_t place(const struct column *column, int64_t row, int64_t i)
{
    return column->starts ? column->starts[row] + i : row * column->width + i;
}

/* Choices in a row; -1: too many. */
static int64_t choices(const struct cross *c, int64_t row)
{
    int64_t product = 1;
    for (int k = 0; k < c->count; k++)
        if (__builtin_mul_overflow(product, features(&c->columns[k], row), &product))
            return -1;
    return product;
}

/* Of an integer SparseCross takes the value, SparseCrossHashed too if it is dense and not
 * hashed strongly, else a hash: of a sparse one the lower half's. */
static uint64_t hash_feature(const struct cross *c, const struct column *column, int64_t i)
{
    const struct tensor *values = column->values;
    uint64_t whole;
    const char *bytes = (const char *)&whole;
    size_t size = column->starts ? sizeof(whole) / 2 : sizeof(whole);
    if (values->dtype == STRING) {
        bytes = tensor_strings(values)[i].data ? tensor_strings(values)[i].data : "";
        size = tensor_strings(values)[i].size;
    } else if (c->seeded || (!column->starts && !c->strong)) {
        return (uint64_t)tensor_i64(values)[i];
    } else {
        whole = htole64((uint64_t)tensor_i64(values)[i]);
    }
    return c->strong ? kernel_siphash(c->key, bytes, size) : kernel_fingerprint64(bytes, size);
}

/* The feature that the choice takes from each column: the last column changes fastest. */
static void cross_one(const struct cross *c, int64_t row, int64_t choice, struct tensor *out,
                      int64_t to)
{
    int64_t left = choices(c, row);
    uint64_t hash = c->seed;
    struct str text = {0};
    for (int k = 0; k < c->count; k++) {
        const struct column *column = &c->columns[k];
        left /= features(column, row);
        int64_t at = place(column, row, choice / left);
        choice %= left;
        if (c->hashed) {
            uint64_t own = hash_feature(c, column, at);
            hash = k > 0 || c->seeded ? kernel_fingerprint_cat(hash, own) : own;
            continue;
        }
        if (k > 0)
            str_add_bytes(&text, c->separator, c->separator_size);
        if (column->values->dtype == STRING)
            str_add_bytes(&text, tensor_strings(column->values)[at].data,
                          tensor_strings(column->values)[at].size);
        else
            str_printf(&text, "%lld", (long long)tensor_i64(column->values)[at]);
    }
    if (c->hashed)
        ((int64_t *)out->data)[to] =
            (int64_t)(hash % (c->buckets ? c->buckets : (uint64_t)INT64_MAX));
    else
        tensor_set_string(out, to, str_text(&text), text.size);
    str_release(&text);
}

static bool cross_all(struct kernel_call *call, const struct cross *c, struct error *err)
{
    struct sparse_out out;
    int64_t total = 0, most = 0;
    for (int64_t r = 0; r < c->rows; r++) {
        int64_t count = choices(c, r);
        if (count < 0 || count > LIMIT_TENSOR_BYTES / 16 - total)
            return fail(err, EXHAUSTED, "row %lld has too many crosses", (long long)r);
        total += count;
        most = count > most ? count : most;
    }
    if (!kernel_sparse_out(call, 0, total, 2, &out, err))
        return false;
    out.dims[0] = c->rows;
    out.dims[1] = most;
    for (int64_t r = 0, to = 0; r < c->rows; r++) {
        int64_t count = choices(c, r);
        for (int64_t i = 0; i < count; i++, to++) {
            out.index[2 * to] = r;
            out.index[2 * to + 1] = i;
            cross_one(c, r, i, out.values, to);
        }
    }
    return true;
}

/* --- the ops --- */

static bool cross_run(struct kernel_call *call, struct error *err)
{
    /* What is asked for is told by the type; hashed_output says nothing more. */
    struct cross c = {.hashed = node_attr_type(call->node, "out_type") == I64,
                      .seeded = true,
                      .seed = (uint64_t)node_attr_int(call->node, "hash_key", 0),
                      .buckets = (uint64_t)node_attr_int(call->node, "num_buckets", 0),
                      .separator = "_X_",
                      .separator_size = 3};
    if (!read_columns(call, &c, err))
        return false;
    int type = node_attr_type(call->node, "internal_type");
    for (int k = 0; k < c.count; k++)
        if (type == STRING && c.columns[k].values->dtype != STRING)
            return fail(err, INVALID,
                        "Input values should be of internal type %d but received "
                        "%d",
                        type, (int)c.columns[k].values->dtype);
    return cross_all(call, &c, err);
}

static bool cross_v2_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *separator = kernel_in(call, call->in_count - 1);
    if (separator->shape.rank != 0)
        return fail(err, INVALID, "Input separator should be a scalar.");
    struct cross c = {.separator = tensor_strings(separator)->data,
                      .separator_size = tensor_strings(separator)->size};
    return read_columns(call, &c, err) && cross_all(call, &c, err);
}

static bool cross_hashed_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *buckets = kernel_in(call, call->in_count - 3);
    const struct tensor *strong = kernel_in(call, call->in_count - 2);
    const struct tensor *salt = kernel_in(call, call->in_count - 1);
    if (buckets->shape.rank != 0 || strong->shape.rank != 0)
        return fail(err, INVALID, "num_buckets and strong_hash should be scalars");
    if (salt->count != 2)
        return fail(err, INVALID, "Input salt should have 2 elements, not %lld",
                    (long long)salt->count);
    if (tensor_i64(buckets)[0] < 0)
        return fail(err, INVALID, "num_buckets is negative: %lld",
                    (long long)tensor_i64(buckets)[0]);
    struct cross c = {.hashed = true,
                      .strong = *(const bool *)strong->data,
                      .key = {(uint64_t)tensor_i64(salt)[0], (uint64_t)tensor_i64(salt)[1]},
                      .buckets = (uint64_t)tensor_i64(buckets)[0]};
    return read_columns(call, &c, err) && cross_all(call, &c, err);
}

const struct kernel kernel_sparse_cross_ref = {
    .op = "SparseCross", .device = CPU, .run = cross_run};
const struct kernel kernel_sparse_cross_v2_ref = {
    .op = "SparseCrossV2", .device = CPU, .run = cross_v2_run};
const struct kernel kernel_sparse_cross_hashed_ref = {
    .op = "SparseCrossHashed", .device = CPU, .run = cross_hashed_run};
