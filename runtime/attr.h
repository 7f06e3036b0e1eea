/*
 * attr.h - a named value on a node: "strides" = [1, 2, 2, 1].
 *
 * One struct for all kinds.  A single value is a list of one with `is_list` false.  Attributes
 * live in the arena of their graph.
 */
#pragma once

#include "runtime/dtype.h"
#include "runtime/shape.h"

struct tensor;

enum attr_kind {
    ATTR_NONE, /* an AttrValue with nothing set, or an empty list of unknown kind */
    ATTR_STRING,
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_BOOL,
    ATTR_TYPE,
    ATTR_SHAPE,
    ATTR_TENSOR,
    ATTR_FUNC,
    ATTR_PLACEHOLDER,
};

struct attr;

struct attr_bytes {
    const char *data; /* NUL follows, not counted */
    size_t size;
};

struct attr_func {
    const char *name;
    const struct attr *attrs;
    int attrs_count;
};

struct attr {
    const char *name;
    enum attr_kind kind;
    bool is_list;
    int count; /* values; 1 when not a list */
    union {
        const struct attr_bytes *strings; /* ATTR_STRING and ATTR_PLACEHOLDER */
        const int64_t *ints;
        const float *floats;
        const bool *bools;
        const int *types; /* dtype numbers, perhaps references */
        const struct shape *shapes;
        const struct tensor *tensors;
        const struct attr_func *funcs;
        const void *any;
    };
};

/* Attributes for graph_add(); the values are borrowed until it has copied them. */
#define ATTR_ONE(name_, kind_, field_, type_, value_)                                          \
    ((struct attr){.name = (name_), .kind = (kind_), .count = 1, .field_ = (type_[]){value_}})
#define attr_int(name, value) ATTR_ONE(name, ATTR_INT, ints, const int64_t, value)
#define attr_float(name, value) ATTR_ONE(name, ATTR_FLOAT, floats, const float, value)
#define attr_bool(name, value) ATTR_ONE(name, ATTR_BOOL, bools, const bool, value)
#define attr_type(name, value) ATTR_ONE(name, ATTR_TYPE, types, const int, value)
#define attr_string(name_, value_)                                                             \
    ((struct attr){.name = (name_),                                                            \
                   .kind = ATTR_STRING,                                                        \
                   .count = 1,                                                                 \
                   .strings = (const struct attr_bytes[]){{(value_), strlen(value_)}}})
#define attr_shape(name_, value_)                                                              \
    ((struct attr){.name = (name_), .kind = ATTR_SHAPE, .count = 1, .shapes = (value_)})
#define attr_tensor(name_, value_)                                                             \
    ((struct attr){.name = (name_), .kind = ATTR_TENSOR, .count = 1, .tensors = (value_)})
#define attr_int_list(name_, values_, count_)                                                  \
    ((struct attr){.name = (name_),                                                            \
                   .kind = ATTR_INT,                                                           \
                   .is_list = true,                                                            \
                   .count = (count_),                                                          \
                   .ints = (values_)})
#define attr_type_list(name_, values_, count_)                                                 \
    ((struct attr){.name = (name_),                                                            \
                   .kind = ATTR_TYPE,                                                          \
                   .is_list = true,                                                            \
                   .count = (count_),                                                          \
                   .types = (values_)})

struct arena;

/* A deep copy in `arena`; tensors are shared. */
struct attr attr_copy(const struct attr *attr, struct arena *arena);

/* Gives back the references that attr_copy() took to tensors; the rest belongs to the arena. */
void attr_release(const struct attr *attr);

/* Same name, kind and values. */
bool attr_equal(const struct attr *a, const struct attr *b);
