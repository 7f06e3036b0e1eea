/*
 * models.h - the benchmark's sequence models, which are job specs: what a user's job with these
 * layers becomes is what is measured.
 */
#pragma once

#include "tests/bench/cases.h"

/*
 * A case's graph, owned by the caller, with the names of cases.h.  Variables start from numbers
 * that any language can repeat: the k-th trainable one (from 0) with stream 2 + k, as those of
 * other cases; of vectors scales start with ones, all others with zeros.
 */
struct graph *bench_model_build(const struct bench_case *c, struct error *err) CHECKED;

/* The data: characters (stream 0) and those to be predicted (stream 1). */
bool bench_model_data(const struct bench_case *c, struct tensor *inputs, struct tensor *labels,
                      struct error *err) CHECKED;
