/* export_saved_model.c - a trained model in the forms that TensorFlow loads. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/saved_model.h"
#include "runtime/train/trained.h"
#include "task/export.h"

static struct saved_model_content content_of(const struct trained *trained)
{
    return (struct saved_model_content){
        .graph = trained->model.graph,
        .scope = trained->model.eval_scope,
        .variables = trained->model.variables,
        .values = trained->values,
        .variables_count = trained->model.variables_count,
        .signature = &trained->signature,
    };
}

/* The name of a tensor in what is written. */
static const char *written_name(const struct trained *trained, const char *tensor)
{
    size_t size = strlen(trained->model.eval_scope);
    return strncmp(tensor, trained->model.eval_scope, size) ? tensor : tensor + size;
}

/* A line with what to feed and to fetch. */
static void note_tensors(const struct trained *trained, struct str *notes)
{
    const struct signature *signature = &trained->signature;
    for (int i = 0; i < signature->inputs_count; i++)
        str_printf(notes, "%s\"%s\"", i ? ", " : "feed ",
                   written_name(trained, signature->inputs[i].tensor));
    for (int i = 0; i < signature->outputs_count; i++)
        str_printf(notes, "%s\"%s\"", i ? ", " : "; fetch ",
                   written_name(trained, signature->outputs[i].tensor));
    str_add(notes, "\n");
}

static bool write_model(const struct trained *trained, const char *out, struct str *notes,
                        struct error *err)
{
    const struct saved_model_content content = content_of(trained);
    if (!trained_predicts(trained, err) || !saved_model_write(out, &content, err))
        return false;
    str_printf(notes, "signature \"%s\", tags \"serve\"\n", trained->signature.name);
    return true;
}

static bool write_meta(const struct trained *trained, const char *out, struct str *notes,
                       struct error *err)
{
    const struct saved_model_content content = content_of(trained);
    size_t size = strlen(out), ending = strlen(".meta");
    if (size <= ending || strcmp(out + size - ending, ".meta") != 0)
        return fail(err, INVALID,
                    "%s: the name of a MetaGraphDef ends in .meta; its checkpoint is written "
                    "beside it",
                    out);
    char *prefix = alloc_printf("%.*s", (int)(size - ending), out);
    bool ok = trained_predicts(trained, err) && saved_model_write_meta(prefix, &content, err);
    if (ok) {
        str_printf(notes, "its variables are in the checkpoint %s; ", prefix);
        note_tensors(trained, notes);
    }
    free(prefix);
    return ok;
}

static bool write_graph(const struct trained *trained, const char *out, bool as_text,
                        struct str *notes, struct error *err)
{
    const struct saved_model_content content = content_of(trained);
    if (!trained_predicts(trained, err) ||
        !saved_model_write_graph(out, as_text, &content, err))
        return false;
    note_tensors(trained, notes);
    return true;
}

static bool write_binary(const struct trained *trained, const char *out, struct str *notes,
                         struct error *err)
{
    return write_graph(trained, out, false, notes, err);
}

static bool write_text(const struct trained *trained, const char *out, struct str *notes,
                       struct error *err)
{
    return write_graph(trained, out, true, notes, err);
}

const struct export_format export_saved_model = {
    .name = "saved_model",
    .summary = "a folder for TensorFlow and what it serves with",
    .write = write_model,
};
const struct export_format export_meta_graph = {
    .name = "meta_graph",
    .ending = ".meta",
    .summary = "a MetaGraphDef with a checkpoint beside it, for import_meta_graph()",
    .write = write_meta,
};
const struct export_format export_graph_def = {
    .name = "graph_def",
    .ending = ".pb",
    .summary = "a GraphDef with the weights in it, for import_graph_def()",
    .write = write_binary,
};
const struct export_format export_graph_def_text = {
    .name = "graph_def_text",
    .ending = ".pbtxt",
    .summary = "the same as text",
    .write = write_text,
};
