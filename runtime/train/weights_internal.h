/* weights_internal.h - the inside of a weights file that was read. */
#pragma once

#include "runtime/checkpoint.h"
#include "runtime/io/hdf5.h"
#include "runtime/train/weights.h"

struct weights {
    struct arena *arena;
    const char *path;
    struct weights_entry *entries;
    int count, capacity;
    const char *vocabulary; /* NULL: of no text, or not known */
    /* What holds the values: */
    struct hdf5 h5;
    struct tensor *tensors;
    int tensors_count;
};

/* An entry more, zeroed but for its value. */
struct weights_entry *weights_add(struct weights *weights, const char *shown,
                                  const struct tensor *value);

/* weights_keras.c: the entries of weights->h5.  Fails with INVALID. */
bool weights_list_keras(struct weights *weights, struct error *err) CHECKED;
