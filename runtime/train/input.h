/*
 * input.h - batches made ahead by a thread of their own.
 *
 * DESIGN: the input thread (input_main) takes empty batches from one bounded mailbox, fills
 * them and posts them to another; the trainer takes them there and gives them back.  There are
 * a few batches in all, made once.  An example that cannot be had ends the thread, after what
 * came before it has been posted.
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
};

/* Starts the thread; owned by the caller.  Fails with EXHAUSTED. */
struct input *input_start(const struct input_options *options, struct error *err) CHECKED;

/*
 * The next batch, waiting for it if need be; borrowed until it is given back.  NULL after
 * setting `err` when an example cannot be had.
 */
struct dataset_batch *input_take(struct input *input, struct error *err) CHECKED;
void input_give_back(struct input *input, struct dataset_batch *batch);

/* Ends the thread and frees; no batch may be out.  NULL is fine. */
void input_stop(struct input *input);
