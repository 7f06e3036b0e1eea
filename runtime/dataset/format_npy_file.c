/* format_npy_file.c - arrays that are larger than what is held stay in their files. */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/format_npy.h"

#define NPY_STEP 4096 /* elements that are looked at at once */

void format_npy_release(struct format_npy_array *array)
{
    tensor_release(&array->tensor);
    npy_file_close(array->file);
    *array = (struct format_npy_array){0};
}

/* --- elements --- */

static bool is_wide(enum dtype dtype)
{
    return (BIT(dtype) & (BIT(I64) | BIT(U32) | BIT(U64))) != 0;
}

static bool narrow(const struct format_npy_array *array, int64_t first, int64_t count,
                   int32_t *out, struct error *err)
{
    enum dtype dtype = npy_file_header(array->file)->dtype;
    int64_t wide[NPY_STEP];
    for (int64_t at = 0; at < count; at += NPY_STEP) {
        int64_t size = count - at < NPY_STEP ? count - at : NPY_STEP;
        if (!npy_file_read(array->file, first + at, size, wide, err))
            return false;
        for (int64_t i = 0; i < size; i++) {
            bool is_huge = dtype == U64 && wide[i] < 0;
            int64_t value = dtype == U32 ? ((const uint32_t *)wide)[i] : wide[i];
            if (is_huge || value < INT32_MIN || value > INT32_MAX)
                return fail(err, INVALID, "%s: element %lld is %lld, allowed: what int32 holds",
                            npy_file_path(array->file), (long long)(first + at + i),
                            (long long)value);
            out[at + i] = (int32_t)value;
        }
    }
    return true;
}

bool format_npy_read(const struct format_npy_array *array, int64_t first, int64_t count,
                     void *out, struct error *err)
{
    return is_wide(npy_file_header(array->file)->dtype)
               ? narrow(array, first, count, out, err)
               : npy_file_read(array->file, first, count, out, err);
}

bool format_npy_count_classes(struct dataset_column *column,
                              const struct format_npy_array *array, const char *where,
                              struct error *err)
{
    if (!array->file)
        return format_count_classes(column, &array->tensor, where, err);
    int64_t all = shape_count(&array->shape);
    bool ok = true;
    for (int64_t at = 0; ok && at < all; at += NPY_STEP) {
        struct tensor some;
        int64_t size = all - at < NPY_STEP ? all - at : NPY_STEP;
        if (!tensor_init(&some, array->dtype, &SHAPE(size), err))
            return false;
        ok = format_npy_read(array, at, size, some.data, err) &&
             format_count_classes(column, &some, where, err);
        tensor_release(&some);
    }
    return ok;
}

/* --- examples --- */

struct arrays {
    struct dataset_examples examples; /* first */
    int columns_count;
    struct arrays_column {
        struct format_npy_array array;
        int64_t elements; /* of one example */
    } columns[];
};

static const void *arrays_at(const struct dataset_examples *examples, int column, int64_t row,
                             void *scratch, struct error *err)
{
    const struct arrays_column *of = &((const struct arrays *)examples)->columns[column];
    if (!of->array.file)
        return (const char *)of->array.tensor.data +
               (size_t)(row * of->elements) * dtype_size(of->array.dtype);
    return format_npy_read(&of->array, row * of->elements, of->elements, scratch, err) ? scratch
                                                                                       : NULL;
}

static void arrays_free(struct dataset_examples *examples)
{
    struct arrays *arrays = (struct arrays *)examples;
    for (int i = 0; i < arrays->columns_count; i++)
        format_npy_release(&arrays->columns[i].array);
    free(arrays);
}

bool format_npy_finish(struct dataset *dataset, struct dataset_part *part,
                       struct format_npy_array *all, const char *where, struct error *err)
{
    int count = dataset->columns_count;
    bool ok = true;
    struct arrays *arrays =
        alloc_bytes(sizeof(*arrays) + (size_t)count * sizeof(arrays->columns[0]));
    arrays->columns_count = count;
    arrays->examples = (struct dataset_examples){
        .count = all[0].shape.dims[0], .at = arrays_at, .free = arrays_free};
    for (int i = 0; i < count; i++) {
        arrays->columns[i].array = all[i];
        arrays->columns[i].elements = shape_count(&dataset->columns[i].shape);
        all[i] = (struct format_npy_array){0};
    }
    part->examples = &arrays->examples; /* the dataset's, whatever is found now */
    part->count = arrays->examples.count;
    for (int i = 0; ok && i < count; i++)
        ok = format_check_column(&dataset->columns[i], arrays->columns[i].array.dtype,
                                 &arrays->columns[i].array.shape, part->count, where, err);
    return ok;
}
