/*
 * tensor_list.h - lists of tensors, the values of VARIANT tensors.
 *
 * A list does not change while anybody else can see it: who changes one takes it over from its
 * input where that was the only reference, else a copy of it.  So a loop that writes n items
 * copies none.  An item without a type was not written yet and reads as zeros.
 */
#pragma once

#include "kernels/ref/numbers.h"
#include "runtime/resource.h"

#define TENSOR_LIST "tensor list" /* the kind of resource */

struct tensor_list {
    struct resource resource;
    enum dtype dtype;
    struct shape shape; /* of the items; may be partly unknown */
    int64_t max;        /* items, -1: no bound of its own */
    int depth;          /* 1, and more where items hold lists */
    int64_t count;

    /* Only the items from the first to the last that was written have a place. */
    struct tensor *items; /* number `first` and those behind it */
    int64_t first;
    int64_t used;
    int64_t before; /* room in front of the items, and behind them */
    int64_t after;
};

/* The list in a scalar input, borrowed.  Fails with INVALID, as when it holds another type. */
struct tensor_list *kernel_list_in(const struct kernel_call *call, int input,
                                   struct error *err) CHECKED;
struct tensor_list *kernel_list_of(const struct kernel_call *call, int input, enum dtype dtype,
                                   struct error *err) CHECKED;

/* A new list of `count` items that were not written, as output 0 of the call; borrowed. */
struct tensor_list *kernel_list_output(struct kernel_call *call, enum dtype dtype,
                                       const struct shape *shape, int64_t max, int64_t count,
                                       struct error *err) CHECKED;

/*
 * The list of input 0 as output 0, to be changed: the same where nobody else sees it, else a
 * copy.  The input must not be used any more.
 */
struct tensor_list *kernel_list_change(struct kernel_call *call, struct error *err) CHECKED;

/* An empty list; owned by the caller. */
struct tensor_list *kernel_list_new(enum dtype dtype, const struct shape *shape, int64_t max);

/* An empty list with the type, shape and bound of another; owned by the caller. */
struct tensor_list *kernel_list_like(const struct tensor_list *list);

/* A list with the same items; owned by the caller.  Fails with EXHAUSTED. */
struct tensor_list *kernel_list_copy(const struct tensor_list *list, struct error *err) CHECKED;

/* Makes element `index` of a VARIANT tensor a list; takes the reference over. */
void kernel_list_set_element(struct tensor *tensor, int64_t index, struct tensor_list *list);

/* Item `i`, of no type if it was not written. */
const struct tensor *kernel_list_item(const struct tensor_list *list, int64_t i);

/* Drops items, or adds some that were not written.  Fails with EXHAUSTED. */
bool kernel_list_resize(struct tensor_list *list, int64_t count, struct error *err) CHECKED;

/* Item `index` becomes a reference to `value`, which has the list's type.  Fails with INVALID
 * when that makes lists too deep. */
bool kernel_list_set(struct tensor_list *list, int64_t index, const struct tensor *value,
                     struct error *err) CHECKED;

/* As kernel_list_set(), with one part of the elements of `value`. */
bool kernel_list_set_part(struct tensor_list *list, int64_t index, const struct tensor *value,
                          int64_t start, const struct shape *shape, struct error *err) CHECKED;

/* The shape that an input holds: a vector, or the scalar -1 for one that is not known. */
bool kernel_list_shape_in(const struct kernel_call *call, int input, struct shape *shape,
                          struct error *err) CHECKED;

/* The same together with what the list says of its items. */
bool kernel_list_items_shape(const struct kernel_call *call, int input,
                             const struct tensor_list *list, struct shape *shape,
                             struct error *err) CHECKED;

/* What is known when the items that were written are looked at too, or item `i`. */
bool kernel_list_merge_shape(const struct tensor_list *list, int64_t i, struct shape *shape,
                             struct error *err) CHECKED;
bool kernel_list_merge_shapes(const struct tensor_list *list, struct shape *shape,
                              struct error *err) CHECKED;

/*
 * Copies an item to `out` from element `at` on; `count` zeros if it was not written.  INVALID
 * when it has not so many elements: a list may say another shape of its items than they have.
 */
bool kernel_list_copy_item(const struct tensor *item, struct tensor *out, int64_t at,
                           int64_t count, struct error *err) CHECKED;

/* A shape without its first dimension, and one with another in front. */
struct shape kernel_list_row(const struct shape *shape);
bool kernel_list_rows(int64_t count, const struct shape *shape, struct shape *out,
                      struct error *err) CHECKED;
