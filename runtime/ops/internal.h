/*
 * internal.h - what the op definitions share: sets of types, steps of shape inference, and
 * steps of gradients.
 */
#pragma once

#include "runtime/gradient.h"
#include "runtime/op.h"

#include "base/arena.h"
#include "base/error.h"
#include "runtime/tensor.h"

/* Sets of types for signatures, TensorFlow's names. */
#define OP_FLOAT "{bfloat16,half,float,double}"
#define OP_FLOAT_COMPLEX "{bfloat16,half,float,double,complex64,complex128}"
#define OP_REAL "{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}"
#define OP_NUMBER                                                                              \
    "{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,"       \
    "qint16,quint16,uint16,complex128,half,uint32,uint64}"
/* As numbers, without the quantised ones: of sums, products, quotients. */
#define OP_ARITHMETIC                                                                          \
    "{bfloat16,half,float,double,uint8,int8,uint16,int16,int32,uint32,int64,uint64,"           \
    "complex64,complex128}"
#define OP_SIGNED "{bfloat16,half,float,double,int8,int16,int32,int64,complex64,complex128}"
#define OP_INDEX "{int32,int64}"

/* No gradient flows to this input. */
#define OP_NO_EDGE ((struct edge){NULL, 0})

/* --- shape inference --- */

/* Output `index` is a shape of `rank` unknown dimensions. */
void op_infer_rank(struct infer *infer, int index, int rank);

/* Dimension `axis` of input `index`, -1 when it is not known. */
int64_t op_infer_dim(const struct infer *infer, int index, int axis);

/* The elements of a constant input of integers; false when it is not known (or too long). */
bool op_infer_values(const struct infer *infer, int index,
                     int64_t values[static LIMIT_TENSOR_RANK], int *count);

/* The element of one that has a single one; else false, and `*value` is as it was. */
bool op_infer_value(const struct infer *infer, int index, int64_t *value);

/* Output 0 has the shape that input `index` holds as a vector, as far as that is known. */
bool op_infer_from_vector(struct infer *infer, int index);
bool op_infer_from_first(struct infer *infer, struct error *err);
bool op_infer_from_second(struct infer *infer, struct error *err);

/* Output 0 as input 1. */
bool op_infer_second(struct infer *infer, struct error *err);

/* Output 0 has the shape of the "shape" attribute. */
bool op_infer_shape_attr(struct infer *infer, struct error *err);

/* --- gradients: nodes named after their op --- */

struct edge op_call(struct gradient *g, const char *op, const struct edge *inputs,
                    int inputs_count, const struct attr *attrs, int attrs_count);
struct edge op_call1(struct gradient *g, const char *op, struct edge a);
struct edge op_call2(struct gradient *g, const char *op, struct edge a, struct edge b);
struct edge op_call3(struct gradient *g, const char *op, struct edge a, struct edge b,
                     struct edge c);

/* The type of an edge, without reference. */
enum dtype op_edge_type(struct edge edge);

/* A constant scalar of the type of `like`. */
struct edge op_number(struct gradient *g, struct edge like, double value);

/* Constants of int32: a scalar, a vector. */
struct edge op_int(struct gradient *g, int64_t value);
struct edge op_ints(struct gradient *g, const int64_t *values, int count);

struct edge op_shape_of(struct gradient *g, struct edge x); /* int32 */

/* Complex numbers: the conjugate; all others: the edge itself. */
struct edge op_conjugate(struct gradient *g, struct edge x);

/* The gradient of output `index`, or zeros of its shape where none flows. */
struct edge op_gradient_or_zeros(struct gradient *g, int index);

/* Sums `grad`, of the broadcast shape, to the shape `shape`; `axes` from BroadcastGradientArgs.
 */
struct edge op_unbroadcast(struct gradient *g, struct edge grad, struct edge axes,
                           struct edge shape);

/* Gradients of inputs 0 and 1, which were broadcast against each other. */
bool op_gradient_pair(struct gradient *g, struct edge for_x, struct edge for_y);

/* The shape of a reduction's output if it kept its dimensions: those of `axes` are 1. */
struct edge op_kept_shape(struct gradient *g, struct edge x, struct edge axes);

/* The one gradient of a function of one input. */
bool op_gradient_single(struct gradient *g, struct edge for_x);

/* The gradient passes through unchanged to input 0. */
bool op_gradient_pass(struct gradient *g, struct error *err);

/* --- windows that slide over images and volumes (window.c) --- */

/* 2 for images, 3 for volumes: their ops have "3D" in the name. */
int op_window_dims(const struct node *node);

/* The data format has the channels before the places: "NCHW", "NCDHW". */
bool op_window_channels_first(const struct node *node);

/*
 * The shape of output 0: how often the window goes into input 0 along each dimension, and
 * `channels` along `channels_axis` (-1: none).  `window` is in the order of the input's
 * dimensions.
 */
void op_infer_windows(struct infer *infer, const int64_t *window, int channels_axis,
                      int64_t channels);

/* A node `op` with the window attributes of the node being differentiated. */
struct edge op_windowed(struct gradient *g, const char *op, const struct edge *inputs,
                        int inputs_count);
