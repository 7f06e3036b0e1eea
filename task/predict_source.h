/*
 * predict_source.h - where the examples to predict come from, batch by batch.
 *
 * Files tell by their first bytes what they are: NPY, NPZ, JSON (a document, or an example a
 * line), images.  NPY files of any size, lines and images are read as they are needed.
 */
#pragma once

#include "task/predict_json.h"
#include "task/predict_model.h"

struct predict_source;

struct predict_source_options {
    const char *const *paths; /* "-": stdin; more than one: images */
    int paths_count;
    double scale; /* for predict_model_convert() */
};

/* Owned by the caller.  Fails with INVALID, NOT_FOUND, DATA_LOSS, naming the file. */
struct predict_source *predict_source_open(const struct predict_model *model,
                                           const struct predict_source_options *options,
                                           struct error *err) CHECKED;
void predict_source_close(struct predict_source *source); /* NULL is fine */

/* Whether it is a document, which is answered by a document, and of which form. */
bool predict_source_is_document(const struct predict_source *source, enum predict_form *form);

/*
 * The next examples, at most `most`: a tensor for each input, owned by the caller, without type
 * for those that are absent.  `*count` is 0 when there are no more.  A model that takes no
 * batches gets all at once, and `*count` is 1.
 */
bool predict_source_next(struct predict_source *source, int64_t most, struct tensor *inputs,
                         int64_t *count, struct error *err) CHECKED;
