/* predict_json.h - tensors from JSON, and as JSON. */
#pragma once

#include <jansson.h>

#include "runtime/signature.h"
#include "runtime/tensor.h"

struct str;

/* How examples stand in a document, and so how predictions are written. */
enum predict_form {
    PREDICT_ROWS,    /* {"instances": [...]}, or a list: an entry for each example */
    PREDICT_COLUMNS, /* {"inputs": ...}: an entry for each input */
};

/*
 * Reads what a document gives to the inputs of a signature, in their order; those that it does
 * not name have no tensor.  Forms: {"instances": [...]}, {"inputs": ...}, an object by names,
 * a list for the only input, or of objects.  One example alone is a batch of one.
 *
 * Fails with INVALID: the input, the place in it ("[3][0]"), what was found and what is wanted.
 */
bool predict_json_read(const json_t *root, const struct signature *signature,
                       struct tensor *inputs, enum predict_form *form,
                       struct error *err) CHECKED;

/* The same of a list with an entry for each example. */
bool predict_json_read_rows(const json_t *rows, const struct signature *signature,
                            struct tensor *inputs, struct error *err) CHECKED;

/* Appends element by element: row `row` of the first dimension, or with -1 all. */
void predict_json_add(const struct tensor *tensor, int64_t row, struct str *out);
