/* predict_model.h - whatever can be asked for predictions, opened alike. */
#pragma once

#include "runtime/saved_model.h"
#include "runtime/train/trained.h"

struct predict_model {
    struct session *session;
    const struct signature *signature;
    bool batches; /* every input and output has examples as its first, open dimension */
    bool is_trained;
    bool is_graph;          /* a file alone: saved_model_open_file() */
    struct trained trained; /* one of the two */
    struct saved_model saved;
};

struct predict_wish {
    const char *path;
    const char *signature, *tags; /* of a model of TensorFlow; NULL: the usual ones */
    int threads;
};

/* Opens a run's folder, a checkpoint, a SavedModel or a graph.  Fails as their own openings do.
 */
bool predict_model_open(const struct predict_wish *wish, struct predict_model *out,
                        struct error *err) CHECKED;
void predict_model_close(struct predict_model *model);

/*
 * Makes `value`, read from a file, what input `index` takes: numbers as files store the feature
 * become what training made of them (pixels are scaled), other numbers of another type are
 * converted if nothing is lost but digits.  `scale` not 0: whole numbers are multiplied by it.
 * Takes `value`, also on failure: INVALID, naming the input.
 */
bool predict_model_convert(const struct predict_model *model, int index, double scale,
                           struct tensor *value, struct error *err) CHECKED;
