/* export_npz.c - the weights of a trained model as arrays of numpy. */

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/npy.h"
#include "runtime/io/npz.h"
#include "runtime/tensor.h"
#include "runtime/train/trained.h"
#include "task/export.h"

static bool write_weights(const struct trained *trained, const char *out, struct str *notes,
                          struct error *err)
{
    int count = 0;
    struct npz_writer *writer = npz_writer_open(out, err);
    bool ok = writer != NULL;
    for (int i = 0; ok && i < trained->model.variables_count; i++) {
        const char *name = trained->model.variables[i].name;
        const struct tensor *value = &trained->values[i];
        if (!value->dtype)
            continue;
        ok = npz_writer_begin(writer, name, value->dtype, &value->shape, err) &&
             npz_writer_add(writer, value->data,
                            (size_t)value->count * dtype_size(value->dtype), err);
        if (npy_header_note(value->dtype))
            str_printf(notes, "%s is written as %s\n", name, npy_header_note(value->dtype));
        count++;
    }
    if (!ok) {
        npz_writer_discard(writer);
        return false;
    }
    str_printf(notes, "%d weights, those of the optimizer left out\n", count);
    return npz_writer_finish(writer, err);
}

const struct export_format export_npz = {
    .name = "npz",
    .ending = ".npz",
    .summary = "the weights, as arrays of numpy",
    .write = write_weights,
};
