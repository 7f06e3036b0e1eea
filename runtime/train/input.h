/*
 * input.h - batches made ahead by a thread of their own.
 *
 * DESIGN: the input thread (input_main) takes empty batches from one bounded mailbox, fills
 * them and posts them to another; the trainer takes them there and gives them back.  There are
 * a few batches in all, made once.
 *
 * Epochs follow each other without a seam: every batch is full, the last of an epoch is filled
 * up from the next.  Position: how many examples have been taken since the first of epoch 0.
 */
#pragma once

#include "runtime/tensor.h"
#include "runtime/train/dataset.h"

struct error;
struct input;

struct input_options {
    const struct dataset_part *part; /* borrowed for the input's life */
    struct shape shape;              /* of one image */
    int64_t batch_size;
    int64_t shuffle; /* as in the spec */
    int64_t seed;
    int64_t position; /* where to go on */
};

struct input_batch {
    struct tensor feeds[2]; /* images (B,H,W,C) float from 0 to 1, labels (B) int32 */
};

/* Starts the thread; owned by the caller.  Fails with EXHAUSTED. */
struct input *input_start(const struct input_options *options, struct error *err) CHECKED;

/* The next batch, waiting for it if need be; borrowed until it is given back. */
struct input_batch *input_take(struct input *input);
void input_give_back(struct input *input, struct input_batch *batch);

/* Ends the thread and frees; no batch may be out.  NULL is fine. */
void input_stop(struct input *input);

/* Copies examples `first` .. + count of a part in the order of the file: evaluation. */
bool input_read(const struct dataset_part *part, const struct shape *shape, int64_t first,
                int64_t count, struct input_batch *batch, struct error *err) CHECKED;
void input_batch_release(struct input_batch *batch);
