/*
 * tensor_array.h - arrays of tensors that live for one run: what loops read from and write to.
 *
 * Each element is written once and, unless asked otherwise, read once.  The array of an array's
 * gradients is found by the name of who computes them (`source`); it adds up what is written to
 * one element more than once.  Callable from any thread.
 */
#pragma once

#include "kernels/list.h"
#include "runtime/resource.h"

struct tensor_array;

struct tensor_array_options {
    const char *name; /* for messages; copied */
    enum dtype dtype;
    struct shape element_shape; /* may be partly unknown */
    bool dynamic_size;
    bool clear_after_read;
    bool identical_element_shapes;
};

/* The array behind the handle in input 0, counted: kernel_tensor_array_unref() it. */
struct tensor_array *kernel_tensor_array(struct kernel_call *call, struct error *err) CHECKED;

/* As kernel_tensor_array(), also when the array does not hold `dtype` (INVALID). */
struct tensor_array *kernel_tensor_array_of(struct kernel_call *call, enum dtype dtype,
                                            struct error *err) CHECKED;
void kernel_tensor_array_unref(struct tensor_array *array);

/* Owned by the caller, with one reference.  Fails with INVALID, EXHAUSTED. */
struct tensor_array *kernel_tensor_array_new(const struct tensor_array_options *options,
                                             int64_t size, struct error *err) CHECKED;

/* Output 0 of the call becomes a handle to it. */
bool kernel_tensor_array_output(struct kernel_call *call, struct tensor_array *array,
                                struct error *err) CHECKED;

/*
 * The array of gradients for `source`, made at first use with as many elements; the array does
 * not grow any more.  With `prefix` its elements have these dimensions in front.  Counted.
 */
struct tensor_array *kernel_tensor_array_grad(struct tensor_array *array, const char *source,
                                              const struct shape *prefix,
                                              struct error *err) CHECKED;

/* Writes one element, or adds to it.  Takes the tensor over, also when it fails. */
bool kernel_tensor_array_write(struct tensor_array *array, int64_t index, struct tensor *value,
                               struct error *err) CHECKED;

/* `*value` becomes another reference to an element, zeros where only its shape is known. */
bool kernel_tensor_array_read(struct tensor_array *array, int64_t index, struct tensor *value,
                              struct error *err) CHECKED;

/*
 * What whole reads and writes (Gather, Scatter, Concat, Split) ask for: the number of elements,
 * and whether it may grow.  Fails when the array was closed.
 */
struct tensor_array_state {
    int64_t size;
    int64_t concat_size; /* of gradients: what was scattered or split, not what is there */
    bool dynamic_size;
    struct shape element_shape;
};
bool kernel_tensor_array_look(struct tensor_array *array, struct tensor_array_state *state,
                              struct error *err) CHECKED;

/* Notes how many elements were scattered or split, for the gradient. */
void kernel_tensor_array_mark(struct tensor_array *array, int64_t size);

/* What is known of the elements' shape is now what both say; fails when they contradict. */
bool kernel_tensor_array_set_shape(struct tensor_array *array, const struct shape *shape,
                                   struct error *err) CHECKED;

/* Gives all elements back; whoever comes later is told that it is closed. */
void kernel_tensor_array_close(struct tensor_array *array);

const char *kernel_tensor_array_name(const struct tensor_array *array);
