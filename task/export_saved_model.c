/* export_saved_model.c - a trained model as a folder that TensorFlow loads. */

#include "base/str.h"
#include "runtime/saved_model.h"
#include "runtime/train/trained.h"
#include "task/export.h"

static bool write_model(const struct trained *trained, const char *out, struct str *notes,
                        struct error *err)
{
    const struct saved_model_content content = {
        .graph = trained->model.graph,
        .scope = trained->model.eval_scope,
        .variables = trained->model.variables,
        .values = trained->values,
        .variables_count = trained->model.variables_count,
        .signature = &trained->signature,
    };
    if (!trained_predicts(trained, err) || !saved_model_write(out, &content, err))
        return false;
    str_printf(notes, "signature \"%s\", tags \"serve\"\n", trained->signature.name);
    return true;
}

const struct export_format export_saved_model = {
    .name = "saved_model",
    .summary = "a folder for TensorFlow and what it serves with",
    .write = write_model,
};
