/*
 * einsum.h - the equations of Einsum: "ab,bc->ac", "...ij,...jk->...ik", "ii->i".
 *
 * A label is a letter; three dots stand for any number of dimensions, which are broadcast.  A
 * label that occurs twice in a term is a diagonal; one that the result lacks is summed over.
 */
#pragma once

#include "base/base.h"
#include "runtime/shape.h"

struct error;

#define EINSUM_INPUTS 2
#define EINSUM_LABELS (52 + LIMIT_TENSOR_RANK) /* letters, then dimensions of "..." */

struct einsum_term {
    int labels[LIMIT_TENSOR_RANK];
    int count;
    int dots; /* how many labels stand before "...", -1 without */
};

struct einsum {
    struct einsum_term inputs[EINSUM_INPUTS];
    int inputs_count;
    struct einsum_term output;
};

/*
 * Parses an equation for that many inputs.  Fails with INVALID, quoting it: a bad character, a
 * wrong number of terms, a label of the result that no input has.
 */
bool einsum_parse(const char *equation, int inputs_count, struct einsum *einsum,
                  struct error *err) CHECKED;

/*
 * The labels of all dimensions of a term of that rank, "..." written out as labels from 52 on,
 * the last dimension as the highest of `dots_rank`.  Fails with INVALID when the rank does not
 * suit the term.
 */
bool einsum_expand(const struct einsum_term *term, int input, int rank, int dots_rank,
                   int *labels, struct error *err) CHECKED;

/* How many dimensions "..." stands for in a term of that rank; 0 without, -1 if it is too low.
 */
int einsum_dots_rank(const struct einsum_term *term, int rank);
