/*
 * signature.h - what a model takes and gives, by names for people: what to feed, what to fetch.
 *
 * A model of ours and each signature of a SavedModel are described alike, so that whoever uses
 * a trained model need not know where it came from.
 */
#pragma once

#include "runtime/dtype.h"
#include "runtime/shape.h"

struct error;
struct session;
struct str;
struct tensor;

struct signature_tensor {
    const char *name;   /* "images" */
    const char *tensor; /* "eval/images:0": what to feed or to fetch */
    int dtype;
    struct shape shape;               /* the first dimension, of the examples, is mostly open */
    const struct tensor *when_absent; /* of an input that may be left out; else NULL */
    const char *const *words;         /* (optional) what the integers stand for */
    int64_t words_count;
};

struct signature {
    const char *name; /* "serving_default" */
    const struct signature_tensor *inputs, *outputs;
    int inputs_count, outputs_count;
};

/* The input of that name; -1: there is none. */
int signature_find_input(const struct signature *signature, const char *name);

/* Appends "images float [?,28,28,1], mask bool [?]". */
void signature_print(const struct signature_tensor *tensors, int count, struct str *out);

/*
 * Calls it: `inputs` in the order of the signature's (no tensor: absent), `outputs` are given
 * in that of its outputs, owned by the caller; on failure none.  Fails with INVALID when an
 * input is missing or its type or shape does not suit, naming the input, what it takes and what
 * was found; else as a run does.
 */
bool signature_run(const struct signature *signature, struct session *session,
                   const struct tensor *inputs, struct tensor *outputs,
                   struct error *err) CHECKED;
