/*
 * export.h - the formats that `trainyard export` writes a trained model in.
 *
 * A format is one file, task/export_NAME.c, with its constant export_NAME, and one row in
 * EXPORT_FORMATS below.  Help, errors and the choice by OUT's ending follow from the table.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;
struct trained;

struct export_format {
    const char *name;    /* as --format takes it: "saved_model" */
    const char *ending;  /* (optional) of files that are of this format: ".onnx" */
    const char *summary; /* who reads it, for --help: "a folder for TensorFlow and its tools" */
    /*
     * Writes the model (runtime/train/trained.h: graph, variables, signature) to `out`, whole
     * or not at all: files by file_write(), folders made new.  `out` does not exist yet, or is
     * to be replaced.  What a person should know is appended to `notes`, a sentence a line.
     */
    bool (*write)(const struct trained *trained, const char *out, struct str *notes,
                  struct error *err);
};

/* Every format; the name of its constant after "export_". */
#define EXPORT_FORMATS(X)                                                                      \
    X(saved_model)                                                                             \
    X(meta_graph)                                                                              \
    X(graph_def)                                                                               \
    X(graph_def_text)                                                                          \
    X(keras)                                                                                   \
    X(keras_weights)                                                                           \
    X(onnx)                                                                                    \
    X(safetensors)                                                                             \
    X(npz)

#define EXPORT_DECLARE(name) extern const struct export_format export_##name;
EXPORT_FORMATS(EXPORT_DECLARE)
