/*
 * trained.h - a trained model, opened to be used: from the folder of a run or a checkpoint.
 *
 * A checkpoint's manifest tells the spec and the shape of the data that it was trained with, so
 * that neither is needed to predict, to evaluate or to export.
 */
#pragma once

#include "runtime/dataset/dataset.h"
#include "runtime/model/model.h"
#include "runtime/signature.h"

struct error;
struct session;
struct session_options;
struct spec;
struct str;
struct tensor;

struct trained {
    const struct spec *spec;
    /* Without examples: the columns that the model was trained on, its features in their order,
     * then its target, and `feeds`, which has what the model was made for. */
    struct dataset dataset;
    struct model model;
    /* Of model.variables, in their order; no tensor where only training needs the variable (the
     * optimizer's slots).  The session's variables have them too. */
    struct tensor *values;
    struct session *session;    /* with the whole graph */
    struct signature signature; /* the features in, "predictions" out */
    const char *prefix;         /* of the checkpoint */
    bool is_keras;              /* of a .keras file: how it was trained is not known */
    bool is_plain;              /* to be exported: the model is of TensorFlow's ops */
    int64_t step;               /* after which it was written */
    struct arena *arena;        /* where all of this lives */
};

/*
 * Opens what `path` names: a run's folder (the newest whole one of its checkpoints/), a folder
 * of checkpoints, or a checkpoint by its prefix ("…/model.ckpt-500") or one of its files, or
 * the best one by the file that names it ("…/checkpoints/best"); or a .keras file, whose layers
 * and weights make a model without data and training.
 *
 * NULL options: defaults.  On success the caller owns it.  Fails with NOT_FOUND (nothing
 * there), DATA_LOSS (damaged), INVALID (written by another program, or by a training before
 * checkpoints told their spec).
 */
bool trained_open(const char *path, const struct session_options *options, struct trained *out,
                  struct error *err) CHECKED;

/* The same to be exported, model_build_plain(). */
bool trained_open_plain(const char *path, struct trained *out, struct error *err) CHECKED;

/* Fails with INVALID when it is a graph of another program whose spec names no output. */
bool trained_predicts(const struct trained *trained, struct error *err) CHECKED;

void trained_close(struct trained *trained); /* fine on a zeroed one */

/* Whether `path` looks like something that trained_open() opens. */
bool trained_is(const char *path);

/* Appends what a manifest tells, one JSON object: {"spec": …, "data": …}. */
void trained_describe(const struct spec *spec, const struct dataset *dataset, struct str *out);

/* Reads it back: into `arena`, the dataset without examples.  Fails with INVALID. */
bool trained_parse(const char *json, struct arena *arena, const struct spec **spec,
                   struct dataset *dataset, struct error *err) CHECKED;
