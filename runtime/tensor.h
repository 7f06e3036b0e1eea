/*
 * tensor.h - typed n-dimensional arrays over counted buffers.
 *
 * A struct tensor is a small value that holds one reference to its buffer: tensor_share() takes
 * another, tensor_release() gives it back.  A buffer is written only while exactly one
 * reference to it exists, or by the kernel that has just made it; so sharing across threads
 * needs no lock.  Data starts on a 64-byte boundary, row-major, little-endian.
 *
 * A tensor may have no buffer of its own while a plan lends it memory (see execute.h); such
 * `data` is valid for the step only, and tensor_share() copies it.
 */
#pragma once

#include "runtime/dtype.h"
#include "runtime/shape.h"

struct error;

#define TENSOR_ALIGN 64

/* Memory shared by tensors.  Counted with __atomic builtins, so that C++ can read this. */
struct buffer {
    int references;
    void *data;
    size_t size;                            /* bytes */
    void (*destroy)(struct buffer *buffer); /* frees data and the struct */
    void *owner;                            /* for destroy */
    size_t capacity;                        /* of a buffer_new(): bytes that are there */
    int holders;                            /* for held.h */
    int file;      /* that has the elements, from its first byte on; 0: none, -1: one of another
                      process.  And __atomic: */
    int borrowers; /* ... of other processes that may use them now: see buffer_shared.h */
    int copied;    /* ... how often they were copied by other processes */
};

/* An element of a STRING tensor: bytes owned by the tensor's buffer, not NUL-terminated. */
struct tensor_string {
    char *data;
    size_t size;
};

struct tensor {
    enum dtype dtype; /* DTYPE_NONE: no tensor */
    int64_t count;    /* elements */
    void *data;
    struct buffer *buffer;
    struct shape shape; /* last: that of a small tensor shares the cache line of the rest */
};

/* Bytes that one element takes in a buffer, which for strings is their header. */
size_t tensor_element_bytes(enum dtype dtype);

/*
 * Makes `*out` a new tensor with undefined contents (strings: all empty; resources: all NULL).
 * `*out` is overwritten, not released.  Fails with EXHAUSTED when there is no memory or the
 * size is over LIMIT_TENSOR_BYTES, with INVALID when the shape is not full.
 */
bool tensor_init(struct tensor *out, enum dtype dtype, const struct shape *shape,
                 struct error *err) CHECKED;

/* The same for one that goes to other tasks: in memory that they can map, if it is large. */
bool tensor_init_sent(struct tensor *out, enum dtype dtype, const struct shape *shape,
                      struct error *err) CHECKED;

/* A tensor over memory of the caller, given back by `destroy` when the last reference goes. */
void tensor_init_foreign(struct tensor *out, enum dtype dtype, const struct shape *shape,
                         struct buffer *buffer);

/* A scalar or a vector holding copies of the values given. */
bool tensor_init_scalar(struct tensor *out, enum dtype dtype, double value,
                        struct error *err) CHECKED;
bool tensor_init_string(struct tensor *out, const char *text, size_t size,
                        struct error *err) CHECKED;
bool tensor_init_copy(struct tensor *out, enum dtype dtype, const struct shape *shape,
                      const void *data, struct error *err) CHECKED;

/* A copy of the elements, strings too, in a buffer of its own.  Fails with EXHAUSTED. */
bool tensor_clone(struct tensor *out, const struct tensor *tensor, struct error *err) CHECKED;

/* The same for one that goes to other tasks: see tensor_init_sent(). */
bool tensor_clone_sent(struct tensor *out, const struct tensor *tensor,
                       struct error *err) CHECKED;

/* `*out` becomes another reference to the same elements. */
void tensor_share(struct tensor *out, const struct tensor *tensor);

/* As tensor_share(), with another shape of the same number of elements (asserted). */
void tensor_share_as(struct tensor *out, const struct tensor *tensor,
                     const struct shape *shape);

/* Gives the reference back and makes it no tensor.  Fine on no tensor. */
void tensor_release(struct tensor *tensor);

/* Sole owner of its elements, which no other process uses: they may be written. */
bool tensor_is_exclusive(const struct tensor *tensor);

/* Bytes of the elements; for strings their lengths and headers. */
size_t tensor_bytes(const struct tensor *tensor);

/* Sets element `index` of a string tensor to a copy. */
void tensor_set_string(struct tensor *tensor, int64_t index, const char *data, size_t size);

/* Reads element `index` of a number tensor as a double or an integer (any plain real type). */
double tensor_number(const struct tensor *tensor, int64_t index);
int64_t tensor_integer(const struct tensor *tensor, int64_t index);
void tensor_set_number(struct tensor *tensor, int64_t index, double value);

/* Same type, shape and bits. */
bool tensor_equal(const struct tensor *a, const struct tensor *b);

/* Typed access; the type is asserted. */
static inline const float *tensor_f32(const struct tensor *t)
{
    assert(t->dtype == F32);
    return (const float *)t->data;
}
static inline float *tensor_f32_mut(struct tensor *t)
{
    assert(t->dtype == F32);
    return (float *)t->data;
}
static inline const double *tensor_f64(const struct tensor *t)
{
    assert(t->dtype == F64);
    return (const double *)t->data;
}
static inline const int32_t *tensor_i32(const struct tensor *t)
{
    assert(t->dtype == I32);
    return (const int32_t *)t->data;
}
static inline const int64_t *tensor_i64(const struct tensor *t)
{
    assert(t->dtype == I64);
    return (const int64_t *)t->data;
}
static inline const struct tensor_string *tensor_strings(const struct tensor *t)
{
    assert(t->dtype == STRING);
    return (const struct tensor_string *)t->data;
}

struct buffer *buffer_new(size_t size); /* NULL when memory is out; uninitialised bytes */
void buffer_ref(struct buffer *buffer);
void buffer_unref(struct buffer *buffer); /* NULL is fine */

/* From now on memory of large buffers that come free waits for the next of their size. */
void buffer_keep_spare(void);

/* Gives memory back that waits for large buffers yet to come. */
void buffer_free_spare(void);

/* The same without memory that other tasks can map (buffer_shared.h). */
void buffer_free_spare_plain(void);

/* A tensor of that size is mapped: what waits for it does so no more.  Only some times: it may
 * wait for others of that size. */
void buffer_drop_spare(size_t size);
