/*
 * iterator_handle.h - an iterator that lives in a session: made once, given a dataset, asked by
 * any number of runs, one at a time.
 */
#pragma once

#include "kernels/data/dataset.h"

#define ITERATOR_KIND "iterator"

struct handle_iterator;

/* One that has no dataset yet; `signature` is copied, width 0: any. */
struct handle_iterator *kernel_iterator_handle_new(const struct signature *signature);

/* As the struct resource it begins with. */
struct resource *kernel_iterator_handle_resource(struct handle_iterator *handle);

/*
 * Puts it at the beginning of the dataset.  Fails with INVALID when the dataset does not suit
 * it; then it is as it was.
 */
bool kernel_iterator_handle_set(struct handle_iterator *handle, struct dataset *dataset,
                                struct cancel *cancel, struct error *err) CHECKED;

/* Forgets the dataset. */
bool kernel_iterator_handle_clear(struct handle_iterator *handle, struct cancel *cancel,
                                  struct error *err) CHECKED;

/*
 * Sets it as kernel_iterator_handle_set() to what `make` gives (counted), if it has no dataset
 * yet: once, however many runs ask.
 */
typedef struct dataset *iterator_source(void *arg, struct error *err);
bool kernel_iterator_handle_set_once(struct handle_iterator *handle, iterator_source *make,
                                     void *arg, struct cancel *cancel,
                                     struct error *err) CHECKED;

/*
 * The next element: `*row` of `*width` tensors, owned by the caller with the array (free()), or
 * `*end`.  Waits while another run is being served, until `cancel`.  PRECONDITION without a
 * dataset.
 */
bool kernel_iterator_handle_next(struct handle_iterator *handle, struct cancel *cancel,
                                 struct tensor **row, int *width, bool *end,
                                 struct error *err) CHECKED;

/* Whether elements will suit `signature`.  INVALID. */
bool kernel_iterator_handle_suits(const struct handle_iterator *handle,
                                  const struct signature *signature, struct error *err) CHECKED;
