/*
 * ragged.c - RaggedTensorToVariant, RaggedTensorFromVariant: a ragged tensor becomes one
 * variant, or one for each row, and back.
 */

#include "kernels/data/ragged.h"

#include "base/alloc.h"

#define RAGGED_KIND "ragged tensor"

struct ragged {
    struct resource resource;
    struct tensor values;
    int count;              /* of splits */
    struct tensor splits[]; /* from the outside in */
};

static void ragged_destroy(struct resource *resource)
{
    struct ragged *ragged = (struct ragged *)resource;
    kernel_row_release(ragged->splits, ragged->count);
    tensor_release(&ragged->values);
    free(ragged);
}

bool kernel_ragged_hold(struct tensor *out, int64_t i, const struct tensor *splits, int count,
                        const struct tensor *values, struct error *err)
{
    if (values->dtype == VARIANT || values->dtype == RESOURCE)
        return fail(err, INVALID, "a ragged tensor of type %s cannot be held",
                    dtype_name(values->dtype));
    struct ragged *ragged =
        alloc_bytes(sizeof(*ragged) + (size_t)count * sizeof(ragged->splits[0]));
    ragged->resource =
        (struct resource){.kind = RAGGED_KIND, .references = 1, .destroy = ragged_destroy};
    ragged->count = count;
    for (int s = 0; s < count; s++)
        tensor_share(&ragged->splits[s], &splits[s]);
    tensor_share(&ragged->values, values);
    ((struct resource_handle *)out->data)[i].resource = &ragged->resource;
    return true;
}

/* --- to variants --- */

/* Splits begin with 0, never fall, and end with the size of what they split. */
static bool check_splits(const struct tensor *splits, int64_t size, int level,
                         struct error *err)
{
    if (splits->shape.rank != 1 || !splits->count)
        return fail(err, INVALID, "splits of level %d: a vector of at least one is wanted",
                    level);
    int64_t last = tensor_integer(splits, 0);
    if (last != 0)
        return fail(err, INVALID, "splits of level %d begin with %lld, not 0", level,
                    (long long)last);
    for (int64_t i = 1; i < splits->count; i++) {
        int64_t next = tensor_integer(splits, i);
        if (next < last)
            return fail(err, INVALID, "splits of level %d fall from %lld to %lld", level,
                        (long long)last, (long long)next);
        last = next;
    }
    return last == size ||
           fail(err, INVALID, "splits of level %d end with %lld, where there are %lld rows",
                level, (long long)last, (long long)size);
}

static bool check_ragged(const struct tensor *splits, int count, const struct tensor *values,
                         struct error *err)
{
    if (values->shape.rank < 1 && count)
        return fail(err, INVALID, "the values of a ragged tensor are a scalar");
    for (int s = 0; s < count; s++) {
        int64_t size = s + 1 < count ? splits[s + 1].count - 1 : values->shape.dims[0];
        if (!check_splits(&splits[s], size, s, err))
            return false;
    }
    return true;
}

/* Rows [from,to) of dimension 0. */
static bool take_rows(struct tensor *out, const struct tensor *values, int64_t from, int64_t to,
                      struct error *err)
{
    struct shape shape = values->shape;
    shape.dims[0] = to - from;
    if (!tensor_init(out, values->dtype, &shape, err))
        return false;
    int64_t rows = values->shape.dims[0], each = rows ? values->count / rows : 0;
    kernel_copy(out, 0, values, from * each, (to - from) * each);
    return true;
}

/* Splits [from,to] with the first one as 0. */
static bool take_splits(struct tensor *out, const struct tensor *splits, int64_t from,
                        int64_t to, struct error *err)
{
    if (!tensor_init(out, splits->dtype, &SHAPE(to - from + 1), err))
        return false;
    int64_t first = tensor_integer(splits, from);
    for (int64_t i = from; i <= to; i++)
        kernel_store_bits_for(out->dtype)(out->data, i - from,
                                          (uint64_t)(tensor_integer(splits, i) - first));
    return true;
}

/* Row `row` of the outermost dimension: a ragged tensor of one level less. */
static bool write_row(struct tensor *out, int64_t row, const struct tensor *splits, int count,
                      const struct tensor *values, struct error *err)
{
    struct tensor *inner = kernel_row_new(count);
    struct tensor part = {0};
    int64_t from = row, to = row + 1;
    bool ok = true;
    for (int s = 0; ok && s < count; s++) {
        from = tensor_integer(&splits[s], from);
        to = tensor_integer(&splits[s], to);
        if (s + 1 < count)
            ok = take_splits(&inner[s], &splits[s + 1], from, to, err);
    }
    ok = ok && take_rows(&part, values, from, to, err);
    if (ok && !count) { /* without levels each value is a row, and has a dimension less */
        struct tensor whole = part;
        ok = kernel_row_slice(&part, &whole, 0, err);
        tensor_release(&whole);
    }
    ok = ok && kernel_ragged_hold(out, row, inner, count ? count - 1 : 0, &part, err);
    tensor_release(&part);
    kernel_row_release(inner, count);
    free(inner);
    return ok;
}

static bool to_variant_run(struct kernel_call *call, struct error *err)
{
    int count = (int)node_attr_int(call->node, "RAGGED_RANK", 0);
    bool batched = node_attr_bool(call->node, "batched_input", false);
    struct tensor *splits = kernel_row_new(count);
    const struct tensor *values = kernel_in(call, count);
    for (int s = 0; s < count; s++)
        tensor_share(&splits[s], kernel_in(call, s));
    bool ok = check_ragged(splits, count, values, err);
    if (ok && batched && !count && values->shape.rank < 1)
        ok = fail(err, INVALID, "the rows of a scalar cannot be told apart");
    int64_t rows = !ok || !batched ? 1 : count ? splits[0].count - 1 : values->shape.dims[0];
    struct tensor *out =
        ok ? kernel_output(call, 0, batched ? &SHAPE(rows) : &SHAPE_SCALAR, err) : NULL;
    ok = out != NULL;
    if (ok && !batched)
        ok = kernel_ragged_hold(out, 0, splits, count, values, err);
    for (int64_t row = 0; ok && batched && row < rows; row++)
        ok = write_row(out, row, splits, count, values, err);
    kernel_row_release(splits, count);
    free(splits);
    return ok;
}

/* --- and back --- */

struct joined {
    struct ragged **parts;
    int64_t count;
    int outer, inner; /* levels: of the variants' dimensions, and of each part */
    enum dtype splits, values;
};

static bool read_parts(struct joined *j, const struct tensor *encoded, struct error *err)
{
    for (int64_t i = 0; i < encoded->count; i++) {
        struct ragged *part = (struct ragged *)kernel_variant(encoded, i, RAGGED_KIND, err);
        if (!part)
            return false;
        if (part->count != j->inner)
            return fail(err, INVALID,
                        "Encoded input RaggedTensorVariant has ragged_rank=%d.  Expected "
                        "ragged_rank=%d.",
                        part->count, j->inner);
        if (part->values.dtype != j->values)
            return fail(err, INVALID, "Expected values Tensor dtype: %s, found: %s",
                        dtype_name(j->values), dtype_name(part->values.dtype));
        if (part->count && part->splits[0].dtype != j->splits)
            return fail(err, INVALID, "Expected row_splits Tensor dtype: %s, found: %s",
                        dtype_name(j->splits), dtype_name(part->splits[0].dtype));
        j->parts[i] = part;
    }
    return true;
}

/* The dimensions of the variants but the last: all rows are as long. */
static bool even_splits(struct kernel_call *call, const struct tensor *encoded, int level,
                        struct error *err)
{
    int64_t rows = 1, each = encoded->shape.dims[level + 1];
    for (int d = 0; d <= level; d++)
        rows *= encoded->shape.dims[d];
    struct tensor *out = kernel_output(call, level, &SHAPE(rows + 1), err);
    for (int64_t i = 0; out && i <= rows; i++)
        kernel_store_bits_for(out->dtype)(out->data, i, (uint64_t)(i * each));
    return out != NULL;
}

static int64_t outer_size(const struct ragged *part)
{
    return part->count ? part->splits[0].count - 1 : part->values.shape.dims[0];
}

/* How many rows each part has, added up. */
static bool part_splits(struct kernel_call *call, const struct joined *j, struct error *err)
{
    struct tensor *out = kernel_output(call, j->outer - 1, &SHAPE(j->count + 1), err);
    int64_t end = 0;
    for (int64_t i = 0; out && i <= j->count; i++) {
        kernel_store_bits_for(out->dtype)(out->data, i, (uint64_t)end);
        end += i < j->count ? outer_size(j->parts[i]) : 0;
    }
    return out != NULL;
}

/* The splits of one level of all parts, one behind the other. */
static bool inner_splits(struct kernel_call *call, const struct joined *j, int level,
                         struct error *err)
{
    int64_t size = 1, at = 0, end = 0;
    for (int64_t i = 0; i < j->count; i++)
        size += j->parts[i]->splits[level].count - 1;
    struct tensor *out = kernel_output(call, j->outer + level, &SHAPE(size), err);
    if (!out)
        return false;
    kernel_store_bits_for(out->dtype)(out->data, at++, 0);
    for (int64_t i = 0; i < j->count; i++) {
        const struct tensor *splits = &j->parts[i]->splits[level];
        for (int64_t k = 1; k < splits->count; k++)
            kernel_store_bits_for(out->dtype)(out->data, at++,
                                              (uint64_t)(end + tensor_integer(splits, k)));
        end += tensor_integer(splits, splits->count - 1);
    }
    return true;
}

static bool join_values(struct kernel_call *call, const struct joined *j, struct error *err)
{
    struct shape shape = SHAPE(0);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int64_t i = 0; i < j->count; i++) {
        struct shape one = j->parts[i]->values.shape, rest = i ? shape : one;
        if (one.rank < 1)
            return fail(err, INVALID,
                        "Expected flat_values to have rank>=1; got a scalar in part %lld",
                        (long long)i);
        int64_t rows = one.dims[0] + (i ? shape.dims[0] : 0);
        rest.dims[0] = one.dims[0] = rows;
        if (!shape_equal(&one, &rest))
            return fail(err, INVALID,
                        "All flat_values must have compatible shapes.  Shape of part 0: %s.  "
                        "Shape of part %lld: %s.",
                        shape_text(&j->parts[0]->values.shape, a, sizeof(a)), (long long)i,
                        shape_text(&j->parts[i]->values.shape, b, sizeof(b)));
        shape = one;
    }
    struct tensor *out = kernel_output(call, j->outer + j->inner, &shape, err);
    int64_t at = 0;
    for (int64_t i = 0; out && i < j->count; i++) {
        kernel_copy(out, at, &j->parts[i]->values, 0, j->parts[i]->values.count);
        at += j->parts[i]->values.count;
    }
    return out != NULL;
}

static bool join(struct kernel_call *call, struct joined *j, const struct tensor *encoded,
                 struct error *err)
{
    for (int64_t i = 0; i < j->count; i++)
        if (j->outer && !j->inner && j->parts[i]->values.shape.rank < 1)
            return fail(err, INVALID,
                        "Expected flat_values to have rank>=1; got a scalar in part %lld",
                        (long long)i);
    bool ok = true;
    for (int d = 0; ok && d + 1 < j->outer; d++)
        ok = even_splits(call, encoded, d, err);
    ok = ok && part_splits(call, j, err);
    for (int s = 0; ok && s < j->inner; s++)
        ok = inner_splits(call, j, s, err);
    return ok && join_values(call, j, err);
}

static void share_one(struct kernel_call *call, const struct ragged *part)
{
    for (int s = 0; s < part->count; s++)
        kernel_output_share(call, s, &part->splits[s], &part->splits[s].shape);
    kernel_output_share(call, part->count, &part->values, &part->values.shape);
}

static bool from_variant_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *encoded = kernel_in(call, 0);
    const struct node *node = call->node;
    int out = (int)node_attr_int(node, "output_ragged_rank", 0), outer = encoded->shape.rank;
    int64_t in = node_attr_int(node, "input_ragged_rank", -1);
    if (in == -1 && out < outer)
        return fail(err, INVALID,
                    "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) "
                    "must be >= 0, found output_ragged_rank: %d, encoded_variant.dims(): %d, "
                    "inferred input_ragged_rank: %d",
                    out, outer, out - outer);
    if (in != -1 && out != outer + in)
        return fail(err, INVALID,
                    "output_ragged_rank must be equal to input_ragged_rank + "
                    "encoded_ragged.dims(); output_ragged_rank: %d, input_ragged_rank: %lld, "
                    "encoded_ragged.dims(): %d.",
                    out, (long long)in, outer);
    struct joined j = {.parts = alloc_array((size_t)encoded->count, sizeof(struct ragged *)),
                       .count = encoded->count,
                       .outer = outer,
                       .inner = out - outer,
                       .splits = (enum dtype)node_attr_type(node, "Tsplits"),
                       .values = (enum dtype)node_attr_type(node, "Tvalues")};
    bool ok = read_parts(&j, encoded, err);
    if (ok && !outer)
        share_one(call, j.parts[0]);
    else if (ok)
        ok = join(call, &j, encoded, err);
    free(j.parts);
    return ok;
}

const struct kernel kernel_ragged_tensor_to_variant = {
    .op = "RaggedTensorToVariant", .device = CPU, .run = to_variant_run};
const struct kernel kernel_ragged_tensor_from_variant = {
    .op = "RaggedTensorFromVariant", .device = CPU, .run = from_variant_run};
