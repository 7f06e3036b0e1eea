/*
 * mode_checkpoint.h - trainyard-task checkpoint: what is in a checkpoint, and how two differ.
 *
 * Each verb after "checkpoint" is a file, mode_checkpoint_VERB.c.  All read whatever
 * runtime/io/tensors.h opens, in pieces.
 */
#pragma once

#include "base/base.h"
#include "runtime/io/tensors.h"

/* Runs with the arguments after "checkpoint"; the result is the exit code. */
int mode_checkpoint(int argc, char **argv);

/* The verbs.  0: done; for diff also 1: they differ; 2: the user's error, or damage. */
int mode_checkpoint_show(int argc, char **argv);
int mode_checkpoint_export(int argc, char **argv);
int mode_checkpoint_diff(int argc, char **argv);

/* --- shared by the verbs --- */

#define MODE_CHECKPOINT_NAMES 256 /* that can be given */

/*
 * Marks the items whose names are among `names` or match one of them as a pattern with * and ?;
 * all when there are none.  NOT_FOUND names the one that matches nothing, and what is near.
 */
bool mode_checkpoint_choose(const struct tensors *tensors, const char *const *names,
                            int names_count, bool *chosen, struct error *err) CHECKED;

/* What the values of a tensor are like. */
struct mode_checkpoint_values {
    int64_t count, zeros, nans, infinities;
    double min, max, sum; /* of what is a finite number; min > max: there is none */
};

/* Elements [first, first + count) as numbers; of a type that is one. */
void mode_checkpoint_numbers(enum dtype dtype, const void *elements, int64_t first,
                             int64_t count, double *out);

/* Looks at every element; fails as reading does.  Only for types that are numbers. */
bool mode_checkpoint_look(struct tensors *tensors, const struct tensors_item *item,
                          struct mode_checkpoint_values *out, struct error *err) CHECKED;

/* Whether the elements are numbers that have an order: plain, and not complex. */
bool mode_checkpoint_is_number(int dtype);

/* Prints the error for a person and returns the exit code. */
int mode_checkpoint_fail(const struct error *err);
