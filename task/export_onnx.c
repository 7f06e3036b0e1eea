/* export_onnx.c - a trained model for ONNX Runtime and all that reads ONNX. */

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/onnx/onnx.h"
#include "runtime/spec/spec.h"
#include "runtime/train/trained.h"
#include "task/export.h"

static bool write_model(const struct trained *trained, const char *out, struct str *notes,
                        struct error *err)
{
    const struct onnx_source source = {.name = trained->spec->name,
                                       .graph = trained->model.graph,
                                       .signature = &trained->signature,
                                       .session = trained->session,
                                       .variables = trained->model.variables,
                                       .values = trained->values,
                                       .variables_count = trained->model.variables_count};
    struct str bytes = {0};
    bool ok = trained_predicts(trained, err) && onnx_convert(&source, &bytes, err) &&
              file_write(out, bytes.data, bytes.size, err);
    if (ok)
        str_printf(notes, "opset %d, %zu bytes\n", ONNX_OPSET, bytes.size);
    str_release(&bytes);
    return ok;
}

const struct export_format export_onnx = {
    .name = "onnx",
    .ending = ".onnx",
    .summary = "for ONNX Runtime and others",
    .write = write_model,
};
