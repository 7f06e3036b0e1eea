/*
 * function_library.h - the functions that a graph carries, as they were sent.
 *
 * A function is kept in the form of FunctionDef: nodes with texts for inputs.  It becomes nodes
 * of a graph when it is called (lower_body.c).  Functions are only added; what was once found
 * stays valid as long as the library, which is counted.  Callable from any thread, but one
 * thread at a time adds.
 */
#pragma once

#include "runtime/op.h"

struct arena;
struct error;
struct function_library;
struct str;

/* A node of a body.  Inputs: "arg", "arg:1", "node:out_arg:0", "^node". */
struct function_node {
    const char *name;
    const char *shown_name; /* the client's own, in errors; NULL: the name */
    const char *op;         /* of the registry, or a function's name */
    const char *device;
    const char *const *inputs;
    int inputs_count;
    const struct attr *attrs; /* values may be ATTR_PLACEHOLDER */
    int attrs_count;
};

/* What a result (or a control result) of the function is. */
struct function_ret {
    const char *name;
    const char *value;
};

struct function_def {
    struct op op; /* first: a node may call the function as its op */
    struct op_signature signature;
    const struct function_node *nodes;
    int nodes_count;
    const struct function_ret *rets;
    int rets_count;
    const struct function_ret *control_rets;
    int control_rets_count;
    const struct attr *attrs;
    int attrs_count;
    const void *bytes; /* the serialized FunctionDef */
    size_t size;
};

struct function_library *function_library_new(void);
void function_library_ref(struct function_library *library);
void function_library_unref(struct function_library *library); /* NULL is fine */

/* The function of that name; NULL if there is none. */
const struct function_def *function_library_find(struct function_library *library,
                                                 const char *name);

/* The op of that name: of the registry or a function's; NULL if there is none. */
const struct op *function_library_op(struct function_library *library, const char *name);

/* The function that `op` calls; NULL if it is no function's. */
const struct function_def *function_library_callee(const struct op *op);

/* What computes the gradient of function `name` by the graph's own word; NULL: none is named.
 */
const char *function_library_gradient(struct function_library *library, const char *name);

/* How much there is, so that function_library_truncate() can forget what came after. */
struct function_library_mark {
    int functions;
    int gradients;
};
struct function_library_mark function_library_mark(struct function_library *library);
void function_library_truncate(struct function_library *library,
                               struct function_library_mark mark);

/* All functions of another library are added here too.  Fails as function_library_add(). */
bool function_library_add_all(struct function_library *library, struct function_library *other,
                              struct error *err) CHECKED;

/* --- for function_pb.c --- */

struct arena *function_library_arena(struct function_library *library);

/*
 * Adds `def`, which lives in the library's arena.  The same function again is fine and changes
 * nothing; another one of that name, or that of an op, is INVALID.
 */
bool function_library_add(struct function_library *library, const struct function_def *def,
                          struct error *err) CHECKED;

/* Takes over a function that could not be read to its end, to release it with the others. */
void function_library_drop(struct function_library *library, const struct function_def *def);

/* Names the gradient of a function; fails with INVALID when another one is named already. */
bool function_library_set_gradient(struct function_library *library, const char *name,
                                   const char *gradient, struct error *err) CHECKED;

/* --- from and to protobuf (function_pb.c) --- */

struct Tensorflow__FunctionDefLibrary;

/* Adds what a GraphDef carries; the caller undoes a failure.  Fails with INVALID, EXHAUSTED. */
bool function_library_unpack(struct function_library *library,
                             const struct Tensorflow__FunctionDefLibrary *proto,
                             struct error *err) CHECKED;

/* Adds one serialized FunctionDef. */
bool function_library_parse(struct function_library *library, const void *bytes, size_t size,
                            struct error *err) CHECKED;

/* Appends the library as a field of GraphDef; nothing when it is empty. */
void function_library_export(struct function_library *library, struct str *out);

/* Function `i`, in the order in which they were added; gradients likewise. */
const struct function_def *function_library_at(struct function_library *library, int i);
const char *function_library_gradient_at(struct function_library *library, int i,
                                         const char **name);
