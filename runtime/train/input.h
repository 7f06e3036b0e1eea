/*
 * input.h - batches made ahead by threads of their own.
 *
 * DESIGN: each input thread (input_main) takes an empty batch, notes under the lock which
 * examples it is to have, and fills it without the lock; the trainer takes batches in their
 * order and gives them back.  There are a few batches in all, made once.  So what a batch holds
 * does not depend on how many threads there are: one for examples in memory, as many as
 * processors for those that are read or decoded.  An example that cannot be had ends its
 * thread; the trainer is told when its batch is due.
 *
 * Epochs follow each other without a seam: every batch is full, the last of an epoch is filled
 * up from the next.  Position: how many examples have been taken since the first of epoch 0.
 */
#pragma once

#include "runtime/dataset/dataset_batch.h"

struct error;
struct input;

struct input_options {
    const struct dataset *dataset; /* borrowed for the input's life, as its part */
    const struct dataset_part *part;
    int64_t batch_size;
    int64_t shuffle; /* as in the spec */
    int64_t seed;
    int64_t position; /* where to go on */
    int takers;       /* threads that each have a batch at a time; 0: one */
};

/* Starts the threads; owned by the caller.  Fails with EXHAUSTED. */
struct input *input_start(const struct input_options *options, struct error *err) CHECKED;

/*
 * The next batch, waiting for it if need be; borrowed until it is given back.  NULL after
 * setting `err` when an example cannot be had.
 */
struct dataset_batch *input_take(struct input *input, struct error *err) CHECKED;
void input_give_back(struct input *input, struct dataset_batch *batch);

/* Ends the threads and frees; no batch may be out.  NULL is fine. */
void input_stop(struct input *input);
