/* case_missing.c - ops that have no kernel here. */

#include "tests/interop/cases/cases.h"

#include "base/map.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/function_library.h"
#include "runtime/graph.h"
#include "runtime/op.h"

static struct map *with_kernel;

void case_missing_begin(void)
{
    with_kernel = map_new();
    for (int t = 0;; t++) {
        if (!kernel_at(t, 0))
            break;
        for (int i = 0; kernel_at(t, i); i++)
            map_set(with_kernel, kernel_at(t, i)->op, (void *)kernel_at(t, i));
    }
}

/* Whether it is the name of a function that the graph carries. */
static bool is_function(const Case *c, const char *name)
{
    struct error ignored;
    struct graph *graph = graph_new();
    bool found = graph_import(graph, c->graph.data, c->graph.len, &ignored) &&
                 function_library_find(graph_library(graph), name);
    graph_free(graph);
    return found;
}

/* A case about unknown ops names ops that nobody has. */
static bool is_about_unknown_ops(const Case *c)
{
    bool about = c->graph_error_code == NOT_FOUND;
    for (size_t i = 0; i < c->n_run; i++)
        about |= c->run[i]->error_code == NOT_FOUND;
    return about;
}

void case_missing(const Case *c, struct str *out)
{
    if (strstr(c->graph_error_text, "No OpKernel was registered"))
        return; /* that is what it is about */
    for (size_t i = 0; i < c->n_op && !is_about_unknown_ops(c); i++)
        if ((!op_find(c->op[i]) ||
             !(op_find(c->op[i])->flow || map_has(with_kernel, c->op[i]))) &&
            !is_function(c, c->op[i]))
            str_printf(out, "%s%s", out->size ? " " : "", c->op[i]);
}

void case_missing_print(void)
{
    for (int i = 0; i < op_count(); i++)
        if (op_at(i)->flow || map_has(with_kernel, op_at(i)->name))
            printf("%s\n", op_at(i)->name);
}

void case_missing_end(void)
{
    map_free(with_kernel);
}
