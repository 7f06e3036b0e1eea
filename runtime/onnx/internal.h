/*
 * internal.h - an ONNX model while it is made, and what converters of ops use.
 *
 * A converter is a function and a row in the table of its family's file:
 *
 *   static void convert_erf(struct onnx *o) { onnx_give(o, 0, ONNX_ADD(o, "Erf", onnx_in(o,
 * 0))); }
 *
 * The first failure sticks: later calls do nothing, and names they give are "".
 */
#pragma once

#include "runtime/graph.h"
#include "runtime/onnx/onnx.h"
#include "runtime/op.h"
#include "runtime/shapes.h"
#include "runtime/tensor.h"

struct arena;
struct map;

struct onnx_attr {
    const char *name;
    enum { ONNX_INT, ONNX_FLOAT, ONNX_TEXT, ONNX_INTS } kind;
    int64_t i;
    float f;
    const char *s;
    const int64_t *ints;
    int count;
};

#define ONNX_I(name_, value_)                                                                  \
    ((struct onnx_attr){.name = (name_), .kind = ONNX_INT, .i = (value_)})
#define ONNX_F(name_, value_)                                                                  \
    ((struct onnx_attr){.name = (name_), .kind = ONNX_FLOAT, .f = (value_)})
#define ONNX_S(name_, value_)                                                                  \
    ((struct onnx_attr){.name = (name_), .kind = ONNX_TEXT, .s = (value_)})
#define ONNX_L(name_, values_, count_)                                                         \
    ((struct onnx_attr){                                                                       \
        .name = (name_), .kind = ONNX_INTS, .ints = (values_), .count = (count_)})

struct onnx_node {
    const char *op, *name;
    const char **inputs, **outputs;
    struct onnx_attr *attrs;
    int inputs_count, outputs_count, attrs_count;
};

struct onnx_initializer {
    const char *name;
    struct tensor value;
};

/* An output of a node of ours: its name in the model; NULL while there is none. */
struct onnx_value {
    const char *plain;      /* as the graph has it: channels last */
    const char *first;      /* the same with the last dimension second */
    struct tensor constant; /* DTYPE_NONE: it is none */
    bool is_constant;       /* no input of the model has a part in it */
    const char
        *last_of_rows; /* of a sequence's states: its last step alone, (1, batch, units) */
};

struct onnx {
    const struct onnx_source *source;
    struct arena *arena;
    struct shapes shapes;
    struct onnx_value *values; /* by shapes.first_output */
    int values_count;
    const struct node *node; /* that is being converted */
    struct onnx_node *nodes;
    int nodes_count, nodes_capacity;
    struct onnx_initializer *initializers;
    int initializers_count, initializers_capacity;
    struct map *initializers_by_content;
    int names; /* given so far */
    struct error *err;
    bool failed;
};

typedef void onnx_converter(struct onnx *o);

struct onnx_row {
    const char *op; /* NULL ends a table */
    onnx_converter *convert;
    const char *to; /* for converters of many ops: the ONNX operator */
};

extern const struct onnx_row onnx_math_rows[], onnx_layout_rows[], onnx_slice_rows[],
    onnx_reduce_rows[], onnx_product_rows[], onnx_conv_rows[], onnx_pool_rows[],
    onnx_recurrent_rows[];

/* The row of the op of `o->node`; NULL: there is none. */
const struct onnx_row *onnx_row_of(const struct onnx *o);

/* --- inputs of the node (onnx_values.c) --- */

struct onnx_value *onnx_value(struct onnx *o, struct edge edge);
const struct shape *onnx_shape(struct onnx *o, int input); /* may be unknown */
const struct shape *onnx_output_shape(struct onnx *o, int output);
enum dtype onnx_dtype(struct onnx *o, int input);

const char *onnx_in(struct onnx *o, int input);       /* as the graph has it */
const char *onnx_in_first(struct onnx *o, int input); /* channels first; the rank is known */
bool onnx_is_first(struct onnx *o, int input); /* is there with its channels first alone */

/* The value of an input that must be constant; NULL after refusing. */
const struct tensor *onnx_constant(struct onnx *o, int input);
const struct tensor *onnx_find_constant(struct onnx *o, int input); /* NULL: it is not */

/* The integers of a constant; false after refusing. */
bool onnx_constant_ints(struct onnx *o, int input, int64_t *out, int max, int *count);

/* An axis counted from the front. */
int onnx_axis(struct onnx *o, int64_t axis, int rank);

/* --- outputs --- */

void onnx_give(struct onnx *o, int output, const char *name);
void onnx_give_first(struct onnx *o, int output, const char *name);

/* --- nodes and constants of the model (onnx_build.c) --- */

/* Adds a node; returns its outputs' names. */
const char **onnx_add_outputs(struct onnx *o, const char *op, const char *const *inputs,
                              int inputs_count, int outputs_count,
                              const struct onnx_attr *attrs, int attrs_count);
const char *onnx_add(struct onnx *o, const char *op, const char *const *inputs,
                     int inputs_count, const struct onnx_attr *attrs, int attrs_count);

#define ONNX_IN(...)                                                                           \
    (const char *const[]){__VA_ARGS__},                                                        \
        (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
#define ONNX_ATTRS(...)                                                                        \
    (const struct onnx_attr[]){__VA_ARGS__},                                                   \
        (int)(sizeof((const struct onnx_attr[]){__VA_ARGS__}) / sizeof(struct onnx_attr))
#define ONNX_NO_ATTRS NULL, 0
#define ONNX_ADD(o, op, ...) onnx_add(o, op, ONNX_IN(__VA_ARGS__), ONNX_NO_ATTRS)

/* Constants; equal ones are stored once. */
const char *onnx_tensor(struct onnx *o, const struct tensor *value);
const char *onnx_tensor_as(struct onnx *o, const struct tensor *value,
                           const struct shape *shape); /* of as many elements */
const char *onnx_ints(struct onnx *o, const int64_t *values, int count);
const char *onnx_number(struct onnx *o, enum dtype dtype, double value); /* a scalar */

/* A constant with its dimensions in another order. */
const char *onnx_turned(struct onnx *o, const struct tensor *value, const int64_t *order);

const char *onnx_transpose(struct onnx *o, const char *x, const int64_t *order, int rank);
const char *onnx_reshape(struct onnx *o, const char *x, const int64_t *dims, int rank);
const char *onnx_cast(struct onnx *o, const char *x, enum dtype dtype);

/* ONNX's number of a type, 0 when it has none.  What we compute in bfloat16 is float there: few
 * programs that run ONNX can multiply bfloat16. */
int onnx_type(int dtype);

/* Fails with UNIMPLEMENTED, naming layer and op. */
void onnx_refuse(struct onnx *o, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends the model (onnx_pb.c). */
bool onnx_pack(const struct onnx *o, struct str *out, struct error *err) CHECKED;
