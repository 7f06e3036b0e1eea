/*
 * function.h - graphs with parameters: what If, While, Case, PartitionedCall and datasets call.
 *
 * A graph carries a library of FunctionDefs.  Calls in a graph are lowered into it before it is
 * placed (lower.c): If becomes Switch and Merge, While becomes Enter ... Exit.  Who calls a
 * function from a kernel (a dataset's map) gets it as a plan of its own.
 */
#pragma once

#include "runtime/dtype.h"

struct attr_func;
struct cancel;
struct error;
struct function;
struct kernel_call;
struct tensor;

/*
 * The function that attribute `func` of the call's node names, with a plan for its body, made
 * once per session and function.  Counted: function_unref().  It keeps alive what it needs,
 * so that it may be kept in a resource and run after the session's graph was extended.  Fails
 * with NOT_FOUND, INVALID.
 */
struct function *function_get(struct kernel_call *call, const struct attr_func *func,
                              struct error *err) CHECKED;

/*
 * The gradient of that function: its arguments are those of the function and the gradients of
 * its results, its results the gradients of the arguments.  The library may name a function for
 * it; else it is built.  Fails with UNIMPLEMENTED where an op has no gradient.
 */
struct function *function_get_gradient(struct kernel_call *call, const struct attr_func *func,
                                       struct error *err) CHECKED;
void function_ref(struct function *function);
void function_unref(struct function *function); /* NULL is fine */

/* Whether anything in it lasts from one call to the next: random streams, counters. */
bool function_has_state(const struct function *function);

/* The same function with a state of its own, as if never called.  Counted. */
struct function *function_again(const struct function *function, struct error *err) CHECKED;

int function_args_count(const struct function *function);
enum dtype function_arg_type(const struct function *function, int i);
int function_results_count(const struct function *function);

/*
 * Runs the body.  `args` are borrowed (captured ones are the last), `results` get tensors owned
 * by the caller.  Callable from several threads at once.  `cancel` ends waits inside.
 */
bool function_run(struct function *function, const struct tensor *args, int args_count,
                  struct tensor *results, struct cancel *cancel, struct error *err) CHECKED;
