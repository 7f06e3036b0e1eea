/* py_func.c - functions of a client's Python, which only its own process can call. */

#include "runtime/ops/internal.h"

#define PY_FUNC(constant, name_, attrs_, flags_)                                               \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = "input:list(Tin)",                                                           \
        .outputs = "output:list(Tout)",                                                        \
        .attrs = "token:string " attrs_ "Tin:list(type)>=0 Tout:list(type)>=0",                \
        .flags = flags_,                                                                       \
    }

PY_FUNC(py_func, "PyFunc", "", OP_STATEFUL);
PY_FUNC(py_func_stateless, "PyFuncStateless", "", 0);
PY_FUNC(eager_py_func, "EagerPyFunc", "is_async:bool=false ", OP_STATEFUL);
