/*
 * feeds.h - which columns of a dataset a model is fed with, and under which names.
 *
 * Pure: needs the columns' descriptions alone, so the server decides as the task will.
 */
#pragma once

#include "runtime/dtype.h"
#include "runtime/model/model.h"
#include "runtime/shape.h"

struct arena;
struct error;
struct spec_data;

enum dataset_role {
    DATASET_FEATURE, /* what a model predicts from */
    DATASET_TARGET,  /* what it predicts */
    DATASET_UNUSED,  /* neither, unless the spec says so */
    DATASET_WEIGHT,  /* how much an example counts */
};

/* One thing that every example has. */
struct dataset_column {
    const char *name; /* as the files call it */
    enum dataset_role role;
    enum dtype stored;  /* of the numbers that examples are made of */
    enum dtype dtype;   /* as which the model gets them: `stored`, or one it converts to */
    struct shape shape; /* of one example */
    double scale;       /* what numbers are multiplied by on the way; 0: they are not */
    int64_t classes;    /* integers are 0 to classes - 1; 0: not known, or no classes */
    const char *const *vocabulary; /* (optional) what each class stands for */
};

struct feeds {
    struct model_data data; /* what the model is made for */
    const int *columns; /* of features, in their order, target, and weight if there is one */
    int count;          /* of them all */
};

/* What the model calls feed `index`, 0 .. count - 1. */
const struct model_feature *feeds_face(const struct feeds *feeds, int index);

/*
 * Chooses: the features are those that the spec names, else the columns of that role; the
 * target is the one that the spec names, else the one of that role.  A target that is the only
 * feature is both, which makes an autoencoder; beside others it is no feature, unless named as
 * one.  The weight is the column that the spec names as such, of numbers.
 *
 * All of `out` lives in `arena`.  Fails with INVALID and a pointer: a name that no column has,
 * no features, no target.
 */
bool feeds_choose(const struct dataset_column *columns, int count, const struct spec_data *spec,
                  struct arena *arena, struct feeds *out, struct error *err) CHECKED;
