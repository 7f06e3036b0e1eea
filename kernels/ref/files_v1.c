/* files_v1.c - checkpoints in the V1 format: Save, SaveSlices, Restore, RestoreSlice. */

#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/ref/files_v1.h"
#include "kernels/ref/numbers.h"

/* A string element as text, NUL-terminated; the caller frees. */
static char *text_of(const struct tensor *tensor, int64_t index)
{
    const struct tensor_string *text = tensor_strings(tensor) + index;
    return alloc_text_n(text->data ? text->data : "", text->size);
}

/* An input that is one string. */
static bool check_one(const struct kernel_call *call, int input, const char *what,
                      struct error *err)
{
    int64_t count = kernel_in(call, input)->count;
    return count == 1 || fail(err, INVALID,
                              "Input %d (%s) must be a string scalar; got a tensor of %lld "
                              "elements",
                              input, what, (long long)count);
}

/* --- saving --- */

static bool save_one(struct slice_file_writer *writer, const char *name, const char *slice_text,
                     const struct tensor *tensor, struct error *err)
{
    struct shape full, shape;
    struct bundle_slice slice;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!slice_text[0])
        return slice_file_writer_add(writer, name, &tensor->shape, NULL, tensor, err);
    if (!bundle_slice_parse(slice_text, &full, &slice, err))
        return false;
    shape = full;
    for (int d = 0; d < full.rank; d++)
        if (slice.length[d] >= 0)
            shape.dims[d] = slice.length[d];
    if (!shape_equal(&shape, &tensor->shape))
        return fail(err, INVALID,
                    "Slice in shape_and_slice specification does not match the shape of the "
                    "tensor to  save: %s, tensor: %s",
                    shape_text(&shape, a, sizeof(a)), shape_text(&tensor->shape, b, sizeof(b)));
    return slice_file_writer_add(writer, name, &full, &slice, tensor, err);
}

/* Inputs: the file, names, (with slices) slices, and the tensors from `first` on. */
static bool save(struct kernel_call *call, int first, struct error *err)
{
    const struct tensor *names = kernel_in(call, 1);
    int count = call->in_count - first;
    if (!check_one(call, 0, "filename", err))
        return false;
    if (names->count != count)
        return fail(
            err, INVALID,
            "Expected totally %lld inputs as input #1 (which is a string tensor of saved "
            "names) contains %lld names, but received %d inputs",
            (long long)names->count + first, (long long)names->count, call->in_count);
    if (first == 3 && kernel_in(call, 2)->count != count)
        return fail(err, INVALID,
                    "Expected %d elements for the tensor shapes and slices but got %lld", count,
                    (long long)kernel_in(call, 2)->count);
    struct slice_file_writer *writer = slice_file_writer_new();
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        char *name = text_of(names, i);
        char *slice = first == 3 ? text_of(kernel_in(call, 2), i) : alloc_text("");
        ok = save_one(writer, name, slice, kernel_in(call, first + i), err);
        free(name);
        free(slice);
    }
    char *path = text_of(kernel_in(call, 0), 0);
    ok = ok && slice_file_writer_finish(writer, path, err);
    free(path);
    slice_file_writer_free(writer);
    return ok;
}

static bool save_run(struct kernel_call *call, struct error *err)
{
    return save(call, 2, err);
}

static bool save_slices_run(struct kernel_call *call, struct error *err)
{
    return save(call, 3, err);
}

/* --- restoring --- */

static bool read_part(struct slice_file_reader *reader, const char *name,
                      const char *slice_text, const struct shape *saved, struct tensor *value,
                      struct error *err)
{
    struct shape full;
    struct bundle_slice slice;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!slice_text[0])
        return slice_file_reader_read(reader, name, NULL, value, err);
    if (!bundle_slice_parse(slice_text, &full, &slice, err))
        return false;
    if (!shape_equal(&full, saved))
        return fail(err, INVALID,
                    "Shape in shape_and_slice spec does not match the shape in the save file: "
                    "%s, save file shape: %s",
                    shape_text(&full, a, sizeof(a)), shape_text(saved, b, sizeof(b)));
    return slice_file_reader_read(reader, name, &slice, value, err);
}

bool files_v1_read(struct slice_file_reader *reader, const char *name, const char *slice,
                   enum dtype wanted, struct tensor *value, struct error *err)
{
    struct shape saved;
    int dtype = DTYPE_NONE;
    if (!slice_file_reader_find(reader, name, &dtype, &saved, err))
        return false;
    if (dtype != (int)wanted)
        return fail(err, INVALID,
                    "Expected to restore a tensor of type %s, got a tensor of type %s instead: "
                    "tensor_name = %s",
                    dtype_name(wanted), dtype_name(dtype), name);
    return read_part(reader, name, slice, &saved, value, err);
}

static bool restore(struct kernel_call *call, const char *slice, struct error *err)
{
    char *pattern = text_of(kernel_in(call, 0), 0), *name = text_of(kernel_in(call, 1), 0);
    struct slice_file_reader *reader = slice_file_reader_open(pattern, err);
    enum dtype wanted = dtype_base(call->node->output_types[0]);
    struct tensor value = {0};
    bool ok = reader && files_v1_read(reader, name, slice, wanted, &value, err);
    if (ok)
        kernel_output_take(call, 0, &value);
    slice_file_reader_close(reader);
    free(pattern);
    free(name);
    return ok;
}

static bool restore_run(struct kernel_call *call, struct error *err)
{
    return check_one(call, 0, "file_pattern", err) && check_one(call, 1, "tensor_name", err) &&
           restore(call, "", err);
}

static bool restore_slice_run(struct kernel_call *call, struct error *err)
{
    if (!check_one(call, 0, "file_pattern", err) || !check_one(call, 1, "tensor_name", err) ||
        !check_one(call, 2, "shape_and_slice", err))
        return false;
    char *slice = text_of(kernel_in(call, 2), 0);
    bool ok = restore(call, slice, err);
    free(slice);
    return ok;
}

const struct kernel kernel_save_ref = {.op = "Save", .device = CPU, .run = save_run};
const struct kernel kernel_save_slices_ref = {
    .op = "SaveSlices", .device = CPU, .run = save_slices_run};
const struct kernel kernel_restore_ref = {.op = "Restore", .device = CPU, .run = restore_run};
const struct kernel kernel_restore_slice_ref = {
    .op = "RestoreSlice", .device = CPU, .run = restore_slice_run};
