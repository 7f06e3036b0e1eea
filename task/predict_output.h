/*
 * predict_output.h - predictions on their way out: JSON lines, a JSON document, NPY or NPZ.
 */
#pragma once

#include "task/predict_json.h"

struct predict_output;

struct predict_output_options {
    const struct signature *signature;
    const char *path; /* its ending tells the form: .json, .jsonl, .npy, .npz; NULL: stdout */
    bool is_document; /* stdout: a document in place of lines */
    enum predict_form form;
    int64_t top;  /* not 0: so many classes of each example, the likeliest first */
    bool batches; /* examples come one after the other; else there is one answer */
};

/* Owned by the caller.  Fails with INVALID (an ending that says nothing, more outputs than the
 * form holds, `top` of what are no scores of classes) and as files do. */
struct predict_output *predict_output_open(const struct predict_output_options *options,
                                           struct error *err) CHECKED;

/* What `count` examples gave: a tensor for each output, borrowed. */
bool predict_output_add(struct predict_output *output, const struct tensor *outputs,
                        int64_t count, struct error *err) CHECKED;

/* Writes what is left and frees; files appear whole or not at all. */
bool predict_output_finish(struct predict_output *output, struct error *err) CHECKED;
void predict_output_discard(struct predict_output *output); /* NULL is fine */
