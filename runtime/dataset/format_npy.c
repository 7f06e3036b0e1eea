/*
 * format_npy.c - numpy's arrays, one for each column and part.
 *
 *   x_train.npy y_train.npy x_test.npy y_test.npy     COLUMN_PART
 *   mnist.npz with members x_train, y_train ...       the same, as Keras has it
 *   train.npz test.npz with members x, y              PART with COLUMN
 *   x.npy y.npy, data.npz with members x, y           all of it to train on
 */

#include "runtime/dataset/format_npy.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/io/npy.h"
#include "runtime/spec/spec.h"

#define NPY_ARRAYS_MAX 4096

struct array {
    char *column;
    enum format_part part;
    char *where; /* "FOLDER/data.npz: x_train" */
    struct format_npy_array values;
};

struct arrays {
    struct array *items;
    int count, capacity;
    int64_t memory; /* bytes that may still be held */
};

/* --- names --- */

/* Cuts ".npy" or ".npz" off. */
static char *stem_of(const char *name)
{
    size_t size = strlen(name);
    bool has =
        size > 4 && (!strcmp(name + size - 4, ".npy") || !strcmp(name + size - 4, ".npz"));
    return alloc_text_n(name, has ? size - 4 : size);
}

/* Takes "_train" off the end of `name`; FORMAT_NONE when it has no such end. */
static enum format_part split_name(char *name)
{
    char *last = strrchr(name, '_');
    enum format_part part =
        last && last > name ? format_part_of(last + 1, strlen(last + 1)) : FORMAT_NONE;
    if (part != FORMAT_NONE)
        *last = 0;
    return part;
}

/* --- reading --- */

/* Adds an array called `name` of a file for `part` (NONE: as the name says); takes all. */
static bool add_array(struct arrays *arrays, char *name, enum format_part part, char *where,
                      const struct format_npy_array *values, struct error *err)
{
    enum format_part named = part == FORMAT_NONE ? split_name(name) : part;
    struct array array = {name, named == FORMAT_NONE ? FORMAT_TRAIN : named, where, *values};
    bool ok = true;
    for (int i = 0; ok && i < arrays->count; i++) {
        const struct array *other = &arrays->items[i];
        ok = strcmp(other->column, name) != 0 || other->part != array.part ||
             fail(err, INVALID, "%s and %s hold the same column and part", other->where, where);
    }
    if (ok && arrays->count == NPY_ARRAYS_MAX)
        ok = fail(err, EXHAUSTED, "more than %d arrays", NPY_ARRAYS_MAX);
    if (ok && values->shape.rank < 1)
        ok = fail(err, INVALID, "%s is one number, wanted: an array of examples", where);
    arrays->items =
        alloc_grow(arrays->items, arrays->count, &arrays->capacity, sizeof(*arrays->items));
    arrays->items[arrays->count++] = array;
    return ok;
}

static struct format_npy_array held(const struct tensor *tensor)
{
    return (struct format_npy_array){
        .tensor = *tensor, .dtype = tensor->dtype, .shape = tensor->shape};
}

static bool read_members(struct archive *archive, const char *path, enum format_part part,
                         struct arrays *arrays, struct error *err)
{
    struct str bytes = {0};
    bool ok = true;
    for (int i = 0; ok && i < archive_count(archive); i++) {
        struct tensor tensor;
        const char *name = archive_name(archive, i);
        char *where = alloc_printf("%s: %s", path, name);
        ok = archive_read(archive, i, format_bytes_max(), &bytes, err) &&
             (npy_parse(bytes.data, bytes.size, &tensor, err) ||
              error_prefix(err, "%s: ", where));
        const struct format_npy_array values =
            ok ? held(&tensor) : (struct format_npy_array){0};
        if (ok)
            ok = add_array(arrays, stem_of(name), part, where, &values, err);
        else
            free(where);
    }
    str_release(&bytes);
    return ok;
}

/* An array that is more than may be held stays in its file, if its examples lie there one after
 * the other. */
static bool read_array(const char *path, struct arrays *arrays, struct format_npy_array *out,
                       struct error *err)
{
    struct npy_file *file = npy_file_open(path, err);
    if (!file)
        return false;
    const struct npy_header *header = npy_file_header(file);
    bool in_order = !header->is_fortran || header->shape.rank < 2;
    if (header->data_bytes > arrays->memory && in_order) {
        *out = (struct format_npy_array){
            .file = file, .dtype = header->dtype, .shape = header->shape};
        return true;
    }
    struct tensor tensor;
    arrays->memory -= header->data_bytes;
    npy_file_close(file);
    if (!npy_read(path, &tensor, err))
        return false;
    *out = held(&tensor);
    return true;
}

static bool read_file(const char *folder, const char *name, struct arrays *arrays,
                      struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, name), *stem = stem_of(name);
    struct format_npy_array values;
    bool ok;
    if (strcmp(name + strlen(stem), ".npz") != 0) {
        ok = read_array(path, arrays, &values, err) &&
             add_array(arrays, alloc_text(stem), FORMAT_NONE, alloc_text(path), &values, err);
    } else {
        struct archive *archive = archive_open(path, err);
        ok = archive &&
             read_members(archive, path, format_part_of(stem, strlen(stem)), arrays, err);
        archive_close(archive);
    }
    free(stem);
    free(path);
    return ok;
}

static void release(struct arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        free(arrays->items[i].column);
        free(arrays->items[i].where);
        format_npy_release(&arrays->items[i].values);
    }
    free(arrays->items);
}

static struct array *find(const struct arrays *arrays, const char *column,
                          enum format_part part)
{
    for (int i = 0; i < arrays->count; i++) {
        if (arrays->items[i].part == part && !strcmp(arrays->items[i].column, column))
            return &arrays->items[i];
    }
    return NULL;
}

/* --- columns --- */

/* Wide integers that are held become int32; those of a file do when they are read. */
static bool narrow(struct array *array, struct error *err)
{
    struct tensor narrowed, *tensor = &array->values.tensor;
    if (array->values.file)
        return true;
    if (!tensor_init(&narrowed, I32, &tensor->shape, err))
        return false;
    for (int64_t i = 0; i < tensor->count; i++) {
        int64_t value = tensor_integer(tensor, i);
        if (value < INT32_MIN || value > INT32_MAX) {
            tensor_release(&narrowed);
            return fail(err, INVALID, "%s: element %lld is %lld, allowed: what int32 holds",
                        array->where, (long long)i, (long long)value);
        }
        ((int32_t *)narrowed.data)[i] = (int32_t)value;
    }
    tensor_release(tensor);
    *tensor = narrowed;
    return true;
}

/* Wide integers become int32, booleans bytes; what no model takes is refused. */
static bool settle_type(struct array *array, struct error *err)
{
    struct format_npy_array *values = &array->values;
    if (values->dtype == BOOL)
        values->dtype = values->tensor.dtype = U8;
    if (BIT(values->dtype) &
        (BIT(U8) | BIT(I8) | BIT(U16) | BIT(I16) | BIT(I32) | BIT(F16) | BIT(F32) | BIT(F64)))
        return true;
    if (!(BIT(values->dtype) & (BIT(I64) | BIT(U32) | BIT(U64))))
        return fail(err, UNIMPLEMENTED, "%s holds %s, wanted: real numbers", array->where,
                    dtype_name(values->dtype));
    values->dtype = I32;
    return narrow(array, err);
}

/*
 * The shape of one example: as the spec says; else pictures of bytes (H,W) get a channel, and
 * classes and weights (1) lose their dimension.
 */
static bool shape_of(const struct array *array, const struct spec_column *spec, bool target,
                     bool weight, struct shape *out, struct error *err)
{
    const struct format_npy_array *values = &array->values;
    struct shape shape = {.rank = values->shape.rank - 1};
    char is[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    memcpy(shape.dims, values->shape.dims + 1, (size_t)shape.rank * sizeof(*shape.dims));
    *out = shape;
    if (spec && spec->rank >= 0) {
        out->rank = spec->rank;
        memcpy(out->dims, spec->dims, (size_t)spec->rank * sizeof(*out->dims));
        return shape_count(out) == shape_count(&shape) ||
               error_at(err, spec->pointer, INVALID, "%s has examples of %s, not of %s",
                        array->where, shape_text(&shape, is, sizeof(is)),
                        shape_text(out, wanted, sizeof(wanted)));
    }
    bool integers = !(BIT(values->dtype) & DTYPES_FLOAT);
    if (((target && integers) || weight) && shape.rank == 1 && shape.dims[0] == 1)
        out->rank = 0;
    else if (!target && values->dtype == U8 && shape.rank == 2)
        out->dims[out->rank++] = 1;
    return true;
}

static bool add_column(struct dataset_opening *opening, const struct array *array,
                       struct error *err)
{
    const struct spec_column *spec = format_column_spec(opening, array->column);
    enum spec_column_type type = spec ? spec->type : COLUMN_FOUND;
    enum dtype stored = array->values.dtype;
    bool target = format_is_target(opening->data, array->column);
    bool floats = (BIT(stored) & DTYPES_FLOAT) || type == COLUMN_NUMERIC;
    struct dataset_column column = {.name = array->column,
                                    .role = target ? DATASET_TARGET : DATASET_FEATURE,
                                    .stored = stored};
    bool weight = format_is_weight(opening->data, array->column);
    if (!shape_of(array, spec, target, weight, &column.shape, err))
        return false;
    bool pictures = stored == U8 && !target && array->values.shape.rank >= 3;
    if (pictures && type != COLUMN_INTEGER) {
        floats = true;
        column.scale = 1.0 / 255;
    }
    if (spec && spec->has_scale) {
        floats = true;
        column.scale = spec->scale;
    }
    if (type == COLUMN_IMAGE || type == COLUMN_CATEGORICAL ||
        (type == COLUMN_INTEGER && floats))
        return error_at(err, spec->pointer, INVALID,
                        "%s holds %s, which this type does not go with", array->where,
                        dtype_name(stored));
    if (type == COLUMN_IGNORED)
        column.role = DATASET_UNUSED;
    column.dtype = floats ? F32 : I32;
    format_add_column(opening->dataset, &column);
    return true;
}

/* --- parts --- */

/* An array's examples in the shape that its column has. */
static void take_values(struct array *array, const struct dataset_column *column,
                        struct format_npy_array *out)
{
    struct shape shape = {.rank = column->shape.rank + 1,
                          .dims = {array->values.shape.dims[0]}};
    memcpy(shape.dims + 1, column->shape.dims,
           (size_t)column->shape.rank * sizeof(*shape.dims));
    *out = array->values;
    array->values = (struct format_npy_array){0};
    if (shape_count(&shape) == shape_count(&out->shape))
        out->shape = shape;
}

static bool set_part(struct dataset_opening *opening, struct arrays *arrays,
                     enum format_part part, struct error *err)
{
    struct dataset *dataset = opening->dataset;
    struct format_npy_array *values =
        alloc_array((size_t)dataset->columns_count, sizeof(*values));
    bool ok = true;
    for (int c = 0; ok && c < dataset->columns_count; c++) {
        struct dataset_column *column = &dataset->columns[c];
        struct array *array = find(arrays, column->name, part);
        if (!array) {
            ok = fail(err, NOT_FOUND,
                      "%s: part \"%s\" has no array \"%s\", which the part to "
                      "train on has",
                      opening->folder, format_part_name(part), column->name);
            break;
        }
        take_values(array, column, &values[c]);
        if (column->role == DATASET_TARGET && column->dtype == I32)
            ok = format_npy_count_classes(column, &values[c], array->where, err);
    }
    ok = ok &&
         format_npy_finish(dataset, format_part(dataset, part), values, opening->folder, err);
    for (int c = 0; c < dataset->columns_count; c++)
        format_npy_release(&values[c]);
    free(values);
    return ok;
}

static bool set_parts(struct dataset_opening *opening, struct arrays *arrays, struct error *err)
{
    bool ok = true, has[FORMAT_PARTS] = {false};
    for (int i = 0; ok && i < arrays->count; i++) {
        has[arrays->items[i].part] = true;
        ok = settle_type(&arrays->items[i], err);
    }
    for (int i = 0; ok && i < arrays->count; i++) {
        const struct array *array = &arrays->items[i];
        if (array->part == FORMAT_TRAIN)
            ok = add_column(opening, array, err);
        else if (has[FORMAT_TRAIN] && !find(arrays, array->column, FORMAT_TRAIN))
            ok = fail(err, NOT_FOUND, "%s: there is no such array to train on", array->where);
    }
    if (ok && !has[FORMAT_TRAIN])
        ok = fail(err, NOT_FOUND, "%s holds no arrays to train on, x_train for one",
                  opening->folder);
    for (int part = 0; ok && part < FORMAT_PARTS; part++)
        ok = !has[part] || set_part(opening, arrays, (enum format_part)part, err);
    return ok;
}

/* --- the format --- */

static const char *const endings[] = {".npy", ".npz", NULL};

static bool npy_is(const char *folder)
{
    char **names = format_files(folder, endings);
    bool is = names[0];
    format_files_free(names);
    return is;
}

static bool npy_open(struct dataset_opening *opening, struct error *err)
{
    struct arrays arrays = {.memory = opening->memory};
    char **names = format_files(opening->folder, endings);
    bool ok = true;
    for (int i = 0; names[i] && ok; i++)
        ok = read_file(opening->folder, names[i], &arrays, err);
    ok = ok && set_parts(opening, &arrays, err);
    format_files_free(names);
    release(&arrays);
    return ok;
}

const struct dataset_format format_npy = {
    .name = "npy",
    .wanted = "x_train.npy, y_train.npy and the like, or a .npz with x_train, y_train (numpy)",
    .is = npy_is,
    .open = npy_open,
};
