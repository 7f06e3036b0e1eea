/*
 * py_func.c - functions of a client's Python.
 *
 * They are in the client's process and have no form in a graph but a key: here nothing is
 * registered under any, and that is said as TensorFlow's server says it.
 */

#include "kernels/ref/numbers.h"

static bool py_func_run(struct kernel_call *call, struct error *err)
{
    return fail(err, INVALID,
                "ValueError: Could not find callback with key=%s in the registry.",
                node_attr_string(call->node, "token", ""));
}

#define PY_FUNC(constant, name_)                                                               \
    const struct kernel kernel_##constant##_ref = {                                            \
        .op = name_, .device = CPU, .run = py_func_run}

PY_FUNC(py_func, "PyFunc");
PY_FUNC(py_func_stateless, "PyFuncStateless");
PY_FUNC(eager_py_func, "EagerPyFunc");
