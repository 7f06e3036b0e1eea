/*
 * cases.h - the benchmark's models as graphs: the same models, batches and optimizers that the
 * scripts for other frameworks train.
 *
 * Initial values and data come from bench_number(), which any language can repeat, so that
 * losses can be compared step by step.
 */
#pragma once

#include "runtime/builder.h"
#include "runtime/tensor.h"

struct bench_case;
struct making;

enum bench_optimizer { BENCH_SGD, BENCH_MOMENTUM, BENCH_ADAM };

struct bench_case {
    const char *name;
    int64_t examples; /* per step */
    double flop; /* per step: products and convolutions, padded taps counted as in README */
    int64_t image[3]; /* sizes of one example; 0 for what it lacks */
    struct edge (*logits)(struct making *m, const struct bench_case *c, struct edge images);
    /* NULL: a job spec of models.c, to which what is above and below does not apply */
    int64_t hidden;
    enum bench_optimizer optimizer;
};

extern const struct bench_case bench_cases[];
const struct bench_case *bench_case_find(const char *name); /* NULL if there is none */

/* From 0 to 1 (24 bits): murmur3's finalizer of stream * 2^32 + index. */
float bench_number(uint64_t stream, uint64_t index);
uint64_t bench_bits(uint64_t stream, uint64_t index); /* all 64 */

#define BENCH_IMAGES "images"
#define BENCH_LABELS "labels"
#define BENCH_LOSS "loss"
#define BENCH_TRAIN "train"
#define BENCH_INIT "bench/init"

/* The case's graph, owned by the caller, with the names above. */
struct graph *bench_case_build(const struct bench_case *c, struct error *err) CHECKED;

/* The data: images or characters (stream 0), and int32 labels (stream 1). */
bool bench_case_data(const struct bench_case *c, struct tensor *images, struct tensor *labels,
                     struct error *err) CHECKED;
