/* py_func_test.c - a function of a client's Python is not here, and that is said as TensorFlow
 * says it. */

#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static void check_is_not_here(const char *op)
{
    struct error err;
    struct graph *graph = graph_new();
    struct builder b = {.graph = graph, .scope = "", .err = &err};
    const int type = F32;
    struct edge x = builder_scalar(&b, "x", F32, 1);
    builder_add(&b, op, "call", INPUTS(x),
                ATTRS(attr_string("token", "pyfunc_7"), attr_type_list("Tin", &type, 1),
                      attr_type_list("Tout", &type, 1)));
    CHECK_OK(builder_ok(&b), &err);
    const struct session_options options = {.threads = 1};
    struct session *session = session_new(&options, &err);
    CHECK_OK(session && session_extend_graph(session, graph, &err), &err);
    struct tensor result;
    const char *fetch = "call";
    const struct session_run what = {.fetches = &fetch, .fetches_count = 1};
    CHECK(!session_run(session, &what, &result, &err));
    CHECK_INT(err.code, INVALID);
    if (!strstr(err.text,
                "ValueError: Could not find callback with key=pyfunc_7 in the registry."))
        CHECK_STOP("%s", err.text);
    session_free(session);
    graph_free(graph);
}

TEST(functions_of_python_are_not_here)
{
    kernels_add(false);
    check_is_not_here("PyFunc");
    check_is_not_here("PyFuncStateless");
    check_is_not_here("EagerPyFunc");
}
