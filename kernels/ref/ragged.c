/* ragged.c - ragged tensors made, gathered from, and laid out as dense and sparse ones. */

#include "kernels/ref/numbers.h"

#include <math.h>

static void set_integer(struct tensor *tensor, int64_t index, int64_t value)
{
    kernel_store_bits_for(tensor->dtype)(tensor->data, index, (uint64_t)value);
}

/* --- RaggedRange --- */

/* How many numbers from start to before limit; fails with INVALID. */
static bool range_size(const struct tensor *const part[3], const int64_t at[3], int64_t *size,
                       struct error *err)
{
    double start = tensor_number(part[0], at[0]), limit = tensor_number(part[1], at[1]);
    double delta = tensor_number(part[2], at[2]);
    if (delta == 0)
        return fail(err, INVALID, "Requires delta != 0");
    double count = 0;
    if ((delta > 0 && start < limit) || (delta < 0 && start > limit))
        count = ceil(fabs((limit - start) / delta));
    if (!(count <= 0x1p40))
        return fail(err, INVALID, "Requires ((limit - start) / delta) <= 2^40, got %g", count);
    *size = (int64_t)count;
    return true;
}

static bool range_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *part[3];
    int64_t rows = 1, total = 0;
    bool vector = false;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"starts", "limits", "deltas"};
        part[i] = kernel_in(call, i);
        if (part[i]->shape.rank > 1)
            return fail(err, INVALID, "%s must be a scalar or vector", names[i]);
    }
    for (int i = 0; i < 3; i++) {
        if (part[i]->shape.rank == 1 && vector && part[i]->count != rows)
            return fail(err, INVALID, "starts, limits, and deltas must have the same shape");
        if (part[i]->shape.rank == 1)
            rows = part[i]->count;
        vector |= part[i]->shape.rank == 1;
    }
    struct tensor *splits = kernel_output(call, 0, &SHAPE(rows + 1), err);
    if (!splits)
        return false;
    set_integer(splits, 0, 0);
    for (int64_t r = 0; r < rows; r++) {
        int64_t at[3], size = 0;
        for (int i = 0; i < 3; i++)
            at[i] = part[i]->shape.rank ? r : 0;
        if (!range_size(part, at, &size, err))
            return false;
        total += size;
        set_integer(splits, r + 1, total);
    }
    struct tensor *values = kernel_output(call, 1, &SHAPE(total), err);
    if (!values)
        return false;
    for (int64_t r = 0, next = 0; r < rows; r++) {
        int64_t end = tensor_integer(splits, r + 1);
        kernel_load_bits *bits = kernel_load_bits_for(values->dtype);
        int64_t a = part[0]->shape.rank ? r : 0, d = part[2]->shape.rank ? r : 0;
        double number = bits ? 0 : tensor_number(part[0], a);
        uint64_t whole = bits ? bits(part[0]->data, a) : 0;
        for (; next < end; next++) {
            if (bits)
                kernel_store_bits_for(values->dtype)(values->data, next, whole);
            else
                tensor_set_number(values, next, number);
            whole += bits ? bits(part[2]->data, d) : 0;
            number += bits ? 0 : tensor_number(part[2], d);
            number = values->dtype == F32 ? (double)(float)number : number;
        }
    }
    return true;
}

/* --- splits --- */

/* Splits of `count` rows: from 0, never falling, at most to `limit`. */
static bool check_splits(const struct tensor *splits, int64_t limit, struct error *err)
{
    if (splits->count < 1) /* in whatever shape */
        return fail(err, INVALID, "Splits must be non-empty");
    if (tensor_integer(splits, 0) != 0)
        return fail(err, INVALID, "First value of ragged splits must be 0");
    for (int64_t i = 1; i < splits->count; i++)
        if (tensor_integer(splits, i) < tensor_integer(splits, i - 1))
            return fail(err, INVALID, "Ragged splits must be sorted");
    return tensor_integer(splits, splits->count - 1) <= limit ||
           fail(err, INVALID, "Ragged splits must not point past values");
}

/* --- RaggedGather --- */

/* Rows to copy at one level. */
struct copies {
    int64_t *spans; /* from and behind, two by two */
    int64_t count;
};

static bool gather_run(struct kernel_call *call, struct error *err)
{
    int levels = (int)node_attr_int(call->node, "PARAMS_RAGGED_RANK", 1);
    const struct tensor *values = kernel_in(call, levels), *picks = kernel_in(call, levels + 1);
    if (values->shape.rank < 1)
        return fail(err, INVALID, "params.rank must be nonzero");
    for (int l = 0; l < levels; l++) {
        int64_t limit =
            l + 1 < levels ? kernel_in(call, l + 1)->count - 1 : values->shape.dims[0];
        if (!check_splits(kernel_in(call, l), limit, err))
            return false;
    }
    int first = picks->shape.rank - 1;
    if (first < 0)
        return fail(err, INVALID, "indices must have at least one dimension");
    /* Outer splits of indices of more dimensions are even. */
    for (int d = 0; d < first; d++) {
        int64_t rows = kernel_span(&picks->shape, 0, d + 1), size = picks->shape.dims[d + 1];
        struct tensor *out = kernel_output(call, d, &SHAPE(rows + 1), err);
        for (int64_t i = 0; out && i <= rows; i++)
            set_integer(out, i, i * size);
        if (!out)
            return false;
    }
    int64_t count = picks->count;
    struct copies now = {kernel_scratch(call, (size_t)count * 2 * sizeof(int64_t) + 1, err),
                         count};
    if (!now.spans)
        return false;
    int64_t rows = kernel_in(call, 0)->count - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t pick = tensor_integer(picks, i);
        if (pick < 0 || pick >= rows)
            return fail(err, INVALID, "indices[%lld] = %lld is not in [0, %lld)", (long long)i,
                        (long long)pick, (long long)rows);
        now.spans[2 * i] = pick;
        now.spans[2 * i + 1] = pick + 1;
    }
    for (int l = 0; l < levels; l++) {
        const struct tensor *splits = kernel_in(call, l);
        int64_t total = 0, at = 0, length = 0;
        for (int64_t i = 0; i < now.count; i++)
            total += now.spans[2 * i + 1] - now.spans[2 * i];
        struct tensor *out = kernel_output(call, first + l, &SHAPE(total + 1), err);
        if (!out)
            return false;
        set_integer(out, 0, 0);
        for (int64_t i = 0; i < now.count; i++) {
            int64_t from = now.spans[2 * i], to = now.spans[2 * i + 1];
            for (int64_t r = from; r < to; r++) {
                length += tensor_integer(splits, r + 1) - tensor_integer(splits, r);
                set_integer(out, ++at, length);
            }
            now.spans[2 * i] = tensor_integer(splits, from);
            now.spans[2 * i + 1] = tensor_integer(splits, to);
        }
    }
    struct shape shape = values->shape;
    shape.dims[0] = 0;
    for (int64_t i = 0; i < now.count; i++)
        shape.dims[0] += now.spans[2 * i + 1] - now.spans[2 * i];
    struct tensor *out = kernel_output(call, first + levels, &shape, err);
    int64_t width = kernel_span(&shape, 1, shape.rank), next = 0;
    for (int64_t i = 0; out && i < now.count; i++) {
        int64_t size = (now.spans[2 * i + 1] - now.spans[2 * i]) * width;
        kernel_copy(out, next, values, now.spans[2 * i] * width, size);
        next += size;
    }
    return out != NULL;
}

/* --- RaggedTensorToSparse --- */

/* Splits of a level that end at `limit`; -1: there is nothing that they split. */
static bool whole_splits(const struct tensor *splits, int64_t limit, struct error *err)
{
    if (splits->count < 1)
        return fail(err, INVALID, "ragged splits may not be empty.");
    if (tensor_integer(splits, 0) != 0)
        return fail(err, INVALID, "First value of ragged splits must be 0.");
    for (int64_t i = 1; i < splits->count; i++) {
        int64_t before = tensor_integer(splits, i - 1), after = tensor_integer(splits, i);
        if (after < before)
            return fail(err, INVALID,
                        "Ragged splits should be non decreasing, but we got %lld followed by "
                        "%lld",
                        (long long)before, (long long)after);
    }
    return tensor_integer(splits, splits->count - 1) == limit ||
           fail(err, INVALID,
                "Final value of ragged splits must match the length the corresponding ragged "
                "values.");
}

/* The row of each of the `size` parts below `splits`, in order. */
static bool to_sparse_run(struct kernel_call *call, struct error *err)
{
    int levels = (int)node_attr_int(call->node, "RAGGED_RANK", 1);
    const struct tensor *values = kernel_in(call, levels);
    for (int l = 0; l < levels; l++) {
        int64_t limit = l + 1 < levels       ? kernel_in(call, l + 1)->count - 1
                        : values->shape.rank ? values->shape.dims[0]
                                             : -1;
        if (!whole_splits(kernel_in(call, l), limit, err))
            return false;
    }
    if (values->shape.rank < 1)
        return fail(err, INVALID, "values must have at least one dimension");
    int rank = levels + values->shape.rank;
    if (rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a sparse tensor of %d dimensions, at most %d", rank,
                    LIMIT_TENSOR_RANK);
    struct tensor *index = kernel_output(call, 0, &SHAPE(values->count, rank), err);
    struct tensor *dims = index ? kernel_output(call, 2, &SHAPE(rank), err) : NULL;
    if (!dims)
        return false;
    kernel_output_share(call, 1, values, &SHAPE(values->count));
    int64_t *size = dims->data, *at = index->data;
    size[0] = kernel_in(call, 0)->count - 1;
    for (int l = 0; l < levels; l++) {
        const struct tensor *splits = kernel_in(call, l);
        size[l + 1] = 0;
        for (int64_t r = 0; r + 1 < splits->count; r++) {
            int64_t length = tensor_integer(splits, r + 1) - tensor_integer(splits, r);
            size[l + 1] = length > size[l + 1] ? length : size[l + 1];
        }
    }
    for (int d = 1; d < values->shape.rank; d++)
        size[levels + d] = values->shape.dims[d];
    int64_t width = kernel_span(&values->shape, 1, values->shape.rank);
    int64_t row[LIMIT_TENSOR_RANK] = {0};
    for (int64_t i = 0; i < values->count; i++) {
        int64_t inner = i % width, part = i / width;
        for (int d = values->shape.rank - 1; d >= 1; d--) {
            at[i * rank + levels + d] = inner % values->shape.dims[d];
            inner /= values->shape.dims[d];
        }
        for (int l = levels - 1; l >= 0; l--) {
            const struct tensor *splits = kernel_in(call, l);
            while (tensor_integer(splits, row[l] + 1) <= part)
                row[l]++;
            at[i * rank + l + 1] = part - tensor_integer(splits, row[l]);
            part = row[l];
        }
        at[i * rank] = part;
    }
    return true;
}

/* --- RaggedTensorToTensor --- */

enum partition { ROW_SPLITS, VALUE_ROWIDS };

/* Of one level: how parts below belong to rows. */
struct level {
    enum partition kind;
    const struct tensor *tensor;
};

struct layout {
    struct level level[LIMIT_TENSOR_RANK];
    int count;
    int64_t rows; /* of the outermost */
};

static bool layout_init(struct layout *layout, const struct kernel_call *call,
                        struct error *err)
{
    const struct attr *types = node_attr(call->node, "row_partition_types");
    *layout = (struct layout){.rows = -1};
    int count = types ? types->count : 0;
    if (count != call->in_count - 3)
        return fail(err, INVALID,
                    "row_partition_types must have as many entries (%d) as there "
                    "are row_partition_tensors (%d)",
                    count, call->in_count - 3);
    for (int i = 0; i < count; i++) {
        const struct tensor *tensor = kernel_in(call, 3 + i);
        const char *type = types->strings[i].data;
        if (i == 0 && !strcmp(type, "FIRST_DIM_SIZE")) {
            if (tensor->count != 1)
                return fail(err, INVALID, "FIRST_DIM_SIZE must be one number");
            layout->rows = tensor_integer(tensor, 0);
            continue;
        }
        bool splits = !strcmp(type, "ROW_SPLITS");
        if ((!splits && strcmp(type, "VALUE_ROWIDS")) || (i == 0 && !splits))
            return fail(err, INVALID, "Cannot handle partition type %s", type);
        if (tensor->shape.rank != 1)
            return fail(err, INVALID, "a row partition must be a vector");
        if (splits && !check_splits(tensor, INT64_MAX, err))
            return false;
        if (i == 0)
            layout->rows = tensor->count - 1;
        if (layout->count == LIMIT_TENSOR_RANK)
            return fail(err, INVALID, "too many row partitions");
        layout->level[layout->count++] =
            (struct level){splits ? ROW_SPLITS : VALUE_ROWIDS, tensor};
    }
    return layout->rows >= 0 || fail(err, INVALID, "No row_partition_types given.");
}

/* How many parts are in the longest row; and how many parts there are at all. */
static int64_t longest(const struct level *level, int64_t *parts)
{
    const struct tensor *t = level->tensor;
    int64_t most = 0;
    if (level->kind == ROW_SPLITS) {
        for (int64_t r = 0; r + 1 < t->count; r++) {
            int64_t length = tensor_integer(t, r + 1) - tensor_integer(t, r);
            most = length > most ? length : most;
        }
        *parts = tensor_integer(t, t->count - 1);
        return most;
    }
    for (int64_t i = 0, run = 0; i < t->count; i++) {
        run = i > 0 && tensor_integer(t, i) == tensor_integer(t, i - 1) ? run + 1 : 1;
        most = run > most ? run : most;
    }
    *parts = t->count;
    return most;
}

/* The shape of the output: as asked for, and as long as needed where nothing is. */
static bool layout_shape(const struct layout *layout, const struct kernel_call *call,
                         struct shape *shape, struct error *err)
{
    const struct tensor *asked = kernel_in(call, 0), *values = kernel_in(call, 1);
    int inner = values->shape.rank - 1, rank = layout->count + 1 + inner;
    if (values->shape.rank < 1)
        return fail(err, INVALID, "values must have at least one dimension");
    if (rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a tensor of %d dimensions, at most %d", rank,
                    LIMIT_TENSOR_RANK);
    bool any = asked->shape.rank == 0;
    if (any && tensor_integer(asked, 0) != -1)
        return fail(err, INVALID,
                    "The only valid scalar shape tensor is the fully unknown "
                    "shape specified as -1.");
    if (!any && asked->count != rank)
        return fail(err, INVALID,
                    "shape.rank (%lld) and the rank of the ragged tensor (%d) "
                    "must be equal",
                    (long long)asked->count, rank);
    *shape = (struct shape){.rank = rank};
    for (int d = 0; d < rank; d++) {
        int64_t wish = any ? -1 : tensor_integer(asked, d), parts;
        if (wish < -1)
            return fail(err, INVALID, "Dimension %lld must be >= -1", (long long)wish);
        if (d > layout->count && wish >= 0 && wish != values->shape.dims[d - layout->count])
            return fail(err, INVALID, "Inner dimension %d is %lld, not %lld", d,
                        (long long)values->shape.dims[d - layout->count], (long long)wish);
        shape->dims[d] = wish >= 0            ? wish
                         : d == 0             ? layout->rows
                         : d <= layout->count ? longest(&layout->level[d - 1], &parts)
                                              : values->shape.dims[d - layout->count];
    }
    return true;
}

/* From where rows go to (-1: nowhere) to where their parts do. */
static bool descend(const struct level *level, int64_t **places, int64_t *count, int64_t size,
                    struct kernel_call *call, struct error *err)
{
    const struct tensor *t = level->tensor;
    int64_t parts;
    longest(level, &parts);
    int64_t *below = kernel_scratch(call, (size_t)parts * sizeof(*below) + 1, err);
    if (!below)
        return false;
    if (level->kind == ROW_SPLITS && t->count - 1 > *count)
        return fail(err, INVALID, "Invalid row split size.");
    for (int64_t i = 0, row = 0, column = 0; i < parts; i++, column++) {
        int64_t before = row;
        if (level->kind == ROW_SPLITS)
            while (tensor_integer(t, row + 1) <= i)
                row++;
        else
            row = tensor_integer(t, i);
        if (row < 0 || row >= *count || row < before)
            return fail(err, INVALID, "Invalid row id %lld of %lld rows", (long long)row,
                        (long long)*count);
        column = i > 0 && row == before ? column : 0;
        int64_t up = (*places)[row];
        below[i] = up < 0 || column >= size ? -1 : up * size + column;
    }
    *places = below;
    *count = parts;
    return true;
}

static bool to_tensor_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *values = kernel_in(call, 1), *fill = kernel_in(call, 2);
    struct layout layout;
    struct shape shape;
    if (!layout_init(&layout, call, err) || !layout_shape(&layout, call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    int64_t count = layout.rows;
    int64_t *places =
        out ? kernel_scratch(call, (size_t)count * sizeof(*places) + 1, err) : NULL;
    if (!places)
        return false;
    for (int64_t i = 0; i < count; i++)
        places[i] = i < shape.dims[0] ? i : -1;
    for (int l = 0; l < layout.count; l++)
        if (!descend(&layout.level[l], &places, &count, shape.dims[l + 1], call, err))
            return false;
    if (count > values->shape.dims[0])
        return fail(err, INVALID, "the row partitions are about %lld values, there are %lld",
                    (long long)count, (long long)values->shape.dims[0]);
    struct shape inner = {.rank = values->shape.rank - 1}, both;
    for (int d = 0; d < inner.rank; d++)
        inner.dims[d] = values->shape.dims[d + 1];
    if (!shape_broadcast(&fill->shape, &inner, &both, err) || !shape_equal(&both, &inner))
        return fail(err, INVALID, "default_value must broadcast to the inner dimensions");
    int64_t width = kernel_span(&inner, 0, inner.rank);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t left = i % (width ? width : 1), at = 0, step = 1;
        for (int d = inner.rank - 1, f = fill->shape.rank - 1; f >= 0; d--, f--) {
            at += fill->shape.dims[f] == 1 ? 0 : left % inner.dims[d] * step;
            left /= inner.dims[d];
            step *= fill->shape.dims[f];
        }
        kernel_copy(out, i, fill, at, 1);
    }
    for (int64_t i = 0; i < count; i++)
        if (places[i] >= 0)
            kernel_copy(out, places[i] * width, values, i * width, width);
    return true;
}

#define RAGGED(name_, attr_, dtypes_, run_)                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .type_attr = attr_, .run = run_         \
    }
#define VALUES (DTYPES_NUMBER | DTYPES_QUANTIZED | BIT(BOOL) | BIT(STRING))

const struct kernel kernel_ragged_range_ref =
    RAGGED("RaggedRange", "T", BIT(F32) | BIT(F64) | BIT(I32) | BIT(I64), range_run);
const struct kernel kernel_ragged_gather_ref =
    RAGGED("RaggedGather", "Tvalues", VALUES, gather_run);
const struct kernel kernel_ragged_tensor_to_sparse_ref =
    RAGGED("RaggedTensorToSparse", "T", 0, to_sparse_run);
const struct kernel kernel_ragged_tensor_to_tensor_ref =
    RAGGED("RaggedTensorToTensor", "T", VALUES, to_tensor_run);
