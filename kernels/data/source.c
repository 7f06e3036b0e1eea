/*
 * source.c - datasets of tensors that are there: one element, slices of dimension 0, rows of a
 * sparse tensor, ranges, random numbers.
 */

#include <sys/random.h>

#include "base/alloc.h"
#include "kernels/data/dataset.h"
#include "kernels/ref/random.h"

/* --- tensors --- */

struct tensors {
    struct dataset dataset;
    struct tensor *components; /* width of them */
    int64_t count;             /* slices */
};

struct position {
    struct iterator it;
    int64_t next;
};

static void tensors_release(struct dataset *dataset)
{
    struct tensors *tensors = (struct tensors *)dataset;
    kernel_row_release(tensors->components, dataset->width);
    free(tensors->components);
}

static int64_t tensors_cardinality(const struct dataset *dataset)
{
    return ((const struct tensors *)dataset)->count;
}

static bool one_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    (void)err;
    const struct tensors *tensors = (const struct tensors *)it->dataset;
    struct position *position = (struct position *)it;
    *end = position->next++ > 0;
    for (int i = 0; i < it->dataset->width && !*end; i++)
        tensor_share(&out[i], &tensors->components[i]);
    return true;
}

static bool slice_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct tensors *tensors = (const struct tensors *)it->dataset;
    struct position *position = (struct position *)it;
    *end = position->next >= tensors->count;
    for (int i = 0; i < it->dataset->width && !*end; i++)
        if (!kernel_row_slice(&out[i], &tensors->components[i], position->next, err))
            return false;
    position->next++;
    return true;
}

static const struct dataset_type one_type = {
    .name = "Tensor",
    .dataset_size = sizeof(struct tensors),
    .iterator_size = sizeof(struct position),
    .next = one_next,
    .cardinality = tensors_cardinality,
    .release = tensors_release,
};

static const struct dataset_type slice_type = {
    .name = "TensorSlice",
    .dataset_size = sizeof(struct tensors),
    .iterator_size = sizeof(struct position),
    .next = slice_next,
    .cardinality = tensors_cardinality,
    .release = tensors_release,
};

static bool tensors_make(struct kernel_call *call, const struct dataset_type *type,
                         struct error *err)
{
    struct tensors *tensors = (struct tensors *)kernel_dataset_make(call, type, 0, 0, err);
    if (!tensors)
        return false;
    struct dataset *dataset = &tensors->dataset;
    tensors->components = kernel_row_new(dataset->width);
    for (int i = 0; i < dataset->width; i++)
        tensor_share(&tensors->components[i], kernel_in(call, i));
    tensors->count = 1;
    bool ok = kernel_dataset_deepen(dataset, tensors->components, dataset->width, err);
    for (int i = 0; ok && type == &slice_type && i < dataset->width; i++) {
        const struct tensor *component = &tensors->components[i];
        if (component->shape.rank == 0)
            ok = fail(err, INVALID, "All components must be at least 1-dimensional");
        else if (i > 0 && component->shape.dims[0] != tensors->count)
            ok = fail(err, INVALID,
                      "All components must have the same size in the 0th dimension");
        else
            tensors->count = component->shape.dims[0];
    }
    if (ok)
        return kernel_dataset_output(call, dataset, err);
    resource_unref(&dataset->resource);
    return false;
}

static bool tensor_run(struct kernel_call *call, struct error *err)
{
    return tensors_make(call, &one_type, err);
}

static bool tensor_slice_run(struct kernel_call *call, struct error *err)
{
    return tensors_make(call, &slice_type, err);
}

/* --- rows of a sparse tensor --- */

struct sparse {
    struct dataset dataset;
    struct tensor indices, values, shape;
};

struct sparse_position {
    struct iterator it;
    int64_t row; /* the next to give */
    int64_t at;  /* first value that belongs to it, or to a later one */
};

static void sparse_release(struct dataset *dataset)
{
    struct sparse *sparse = (struct sparse *)dataset;
    tensor_release(&sparse->indices);
    tensor_release(&sparse->values);
    tensor_release(&sparse->shape);
}

static int64_t sparse_cardinality(const struct dataset *dataset)
{
    return tensor_i64(&((const struct sparse *)dataset)->shape)[0];
}

static bool sparse_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct sparse *sparse = (const struct sparse *)it->dataset;
    struct sparse_position *position = (struct sparse_position *)it;
    int64_t rank = sparse->shape.count, first = position->at, last = first;
    const int64_t *indices = tensor_i64(&sparse->indices);
    *end = position->row >= tensor_i64(&sparse->shape)[0];
    if (*end)
        return true;
    while (last < sparse->values.count && indices[last * rank] == position->row)
        last++;
    if (!tensor_init(&out[0], I64, &SHAPE(last - first, rank - 1), err) ||
        !tensor_init(&out[1], sparse->values.dtype, &SHAPE(last - first), err) ||
        !tensor_init_copy(&out[2], I64, &SHAPE(rank - 1), tensor_i64(&sparse->shape) + 1, err))
        return false;
    for (int64_t i = first; i < last && rank > 1; i++)
        memcpy((int64_t *)out[0].data + (i - first) * (rank - 1), indices + i * rank + 1,
               (size_t)(rank - 1) * sizeof(int64_t));
    kernel_copy(&out[1], 0, &sparse->values, first, last - first);
    position->at = last;
    position->row++;
    return true;
}

static const struct dataset_type sparse_type = {
    .name = "SparseTensorSlice",
    .dataset_size = sizeof(struct sparse),
    .iterator_size = sizeof(struct sparse_position),
    .next = sparse_next,
    .cardinality = sparse_cardinality,
    .release = sparse_release,
};

static bool sparse_check(const struct tensor *indices, const struct tensor *values,
                         const struct tensor *shape, struct error *err)
{
    if (indices->shape.rank != 2 || values->shape.rank != 1 || shape->shape.rank != 1)
        return fail(err, INVALID,
                    "Input indices, values and shape should be a matrix and two vectors");
    if (shape->count == 0 || shape->count > LIMIT_TENSOR_RANK ||
        indices->shape.dims[1] != shape->count || indices->shape.dims[0] != values->count)
        return fail(err, INVALID,
                    "Number of values must match first dimension of indices, and "
                    "its second the size of the shape");
    const int64_t *index = tensor_i64(indices);
    int64_t before = 0;
    for (int64_t i = 0; i < values->count; i++, index += shape->count) {
        if (index[0] < before)
            return fail(err, UNIMPLEMENTED,
                        "The SparseTensor must be ordered in the batch "
                        "dimension; handling arbitrarily ordered input is "
                        "not currently supported.");
        before = index[0];
    }
    return true;
}

static bool sparse_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *indices = kernel_in(call, 0), *values = kernel_in(call, 1),
                        *shape = kernel_in(call, 2);
    if (!sparse_check(indices, values, shape, err))
        return false;
    const int types[] = {I64, (int)values->dtype, I64};
    const struct shape shapes[] = {SHAPE(-1, shape->count - 1), SHAPE(-1),
                                   SHAPE(shape->count - 1)};
    const struct signature signature = {3, types, shapes};
    struct sparse *sparse =
        (struct sparse *)kernel_dataset_new(&sparse_type, &signature, NULL, 0, err);
    if (!sparse)
        return false;
    tensor_share(&sparse->indices, indices);
    tensor_share(&sparse->values, values);
    tensor_share(&sparse->shape, shape);
    return kernel_dataset_output(call, &sparse->dataset, err);
}

/* --- ranges --- */

struct range {
    struct dataset dataset;
    int64_t start, stop, step;
};

static int64_t range_cardinality(const struct dataset *dataset)
{
    const struct range *range = (const struct range *)dataset;
    __extension__ typedef __int128 wide;
    wide span = (wide)range->stop - range->start, step = range->step;
    if (step < 0) {
        span = -span;
        step = -step;
    }
    wide count = span <= 0 ? 0 : (span + step - 1) / step;
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

/* A scalar of any number type. */
static bool number(struct tensor *out, enum dtype dtype, int64_t value, struct error *err)
{
    if (!tensor_init(out, dtype, &SHAPE_SCALAR, err))
        return false;
    kernel_store_bits *store = kernel_store_bits_for(dtype);
    if (store)
        store(out->data, 0, (uint64_t)value);
    else
        kernel_store_for(dtype)(out->data, 0, (double)value);
    return true;
}

static bool range_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    const struct range *range = (const struct range *)it->dataset;
    struct position *position = (struct position *)it;
    *end = position->next >= range_cardinality(it->dataset);
    return *end || number(out, it->dataset->types[0],
                          (int64_t)((uint64_t)range->start +
                                    (uint64_t)position->next++ * (uint64_t)range->step),
                          err);
}

static const struct dataset_type range_type = {
    .name = "Range",
    .dataset_size = sizeof(struct range),
    .iterator_size = sizeof(struct position),
    .next = range_next,
    .cardinality = range_cardinality,
};

static bool range_run(struct kernel_call *call, struct error *err)
{
    int64_t start, stop, step;
    if (!kernel_scalar(call, 0, "start", &start, err) ||
        !kernel_scalar(call, 1, "stop", &stop, err) ||
        !kernel_scalar(call, 2, "step", &step, err))
        return false;
    if (step == 0)
        return fail(err, INVALID, "step must be a non-zero integer.");
    struct range *range = (struct range *)kernel_dataset_make(call, &range_type, 0, 0, err);
    if (!range)
        return false;
    range->start = start;
    range->stop = stop;
    range->step = step;
    if (range->dataset.width == 1 && (BIT(range->dataset.types[0]) & DTYPES_REAL))
        return kernel_dataset_output(call, &range->dataset, err);
    resource_unref(&range->dataset.resource);
    return fail(err, INVALID, "a range has one component of numbers");
}

/* --- random numbers --- */

struct random {
    struct dataset dataset;
    struct philox philox;
};

static int64_t random_cardinality(const struct dataset *dataset)
{
    (void)dataset;
    return CARDINALITY_INFINITE;
}

/* Numbers of 32 bits, in the order of the stream. */
static bool random_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    (void)end;
    const struct random *random = (const struct random *)it->dataset;
    struct position *position = (struct position *)it;
    uint32_t words[4];
    philox_block(&random->philox, (uint64_t)position->next / 4, words);
    return number(out, it->dataset->types[0], words[position->next++ % 4], err);
}

static const struct dataset_type random_type = {
    .name = "Random",
    .dataset_size = sizeof(struct random),
    .iterator_size = sizeof(struct position),
    .next = random_next,
    .cardinality = random_cardinality,
};

static bool random_run(struct kernel_call *call, struct error *err)
{
    int64_t seeds[2];
    if (!kernel_scalar(call, 0, "seed", &seeds[0], err) ||
        !kernel_scalar(call, 1, "seed2", &seeds[1], err))
        return false;
    if (seeds[0] == 0 && seeds[1] == 0 && getrandom(seeds, sizeof(seeds), 0) != sizeof(seeds))
        return error_errno(err, INTERNAL, "getrandom");
    struct random *random = (struct random *)kernel_dataset_make(call, &random_type, 0, 0, err);
    if (!random)
        return false;
    random->philox = (struct philox){.key = (uint64_t)seeds[0], .high = (uint64_t)seeds[1]};
    if (random->dataset.width == 1 && (BIT(random->dataset.types[0]) & DTYPES_REAL))
        return kernel_dataset_output(call, &random->dataset, err);
    resource_unref(&random->dataset.resource);
    return fail(err, INVALID, "random numbers are one component of numbers");
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tensor_dataset = DATASET("TensorDataset", tensor_run);
const struct kernel kernel_tensor_slice_dataset =
    DATASET("TensorSliceDataset", tensor_slice_run);
const struct kernel kernel_sparse_tensor_slice_dataset =
    DATASET("SparseTensorSliceDataset", sparse_run);
const struct kernel kernel_range_dataset = DATASET("RangeDataset", range_run);
const struct kernel kernel_random_dataset = DATASET("RandomDataset", random_run);
const struct kernel kernel_experimental_random_dataset =
    DATASET("ExperimentalRandomDataset", random_run);
