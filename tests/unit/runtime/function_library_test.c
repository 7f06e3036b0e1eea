/* function_library_test.c - functions come with a graph, stay, and go on with it. */

#include "runtime/function_library.h"
#include "runtime/graph.h"
#include "tests/unit/runtime/functions.h"

static struct error err;

#define TWICE                                                                                  \
    "def twice(a:T) (r:T) T:type\n"                                                            \
    "  m = AddV2(a,a) T=$T\n"                                                                  \
    "  ret r m:z:0\n"                                                                          \
    "end\n"
#define THRICE                                                                                 \
    "def thrice(a:float) (r:float)\n"                                                          \
    "  t = twice(a) T=float\n"                                                                 \
    "  m = AddV2(a,t:r:0) T=float\n"                                                           \
    "  ret r m:z:0\n"                                                                          \
    "end\n"

static bool import(struct graph *graph, const char *lines)
{
    struct str text = functions_graph(lines);
    bool ok = graph_import(graph, text.data, text.size, &err);
    str_release(&text);
    return ok;
}

TEST(functions_go_with_the_graph)
{
    struct graph *graph = graph_new(), *copy = graph_new(), *other = graph_new();
    struct str first = {0}, second = {0};
    CHECK_OK(import(graph, TWICE THRICE "gradient twice thrice\n"
                                        "x = Placeholder() dtype=float\n"
                                        "y = thrice(x)\n"),
             &err);
    CHECK(function_library_callee(graph_find(graph, "y")->op));
    CHECK_INT(graph_find(graph, "y")->outputs_count, 1);
    CHECK_INT(graph_find(graph, "y")->output_types[0], F32);
    graph_export(graph, false, 0, &first);
    CHECK_OK(graph_import(copy, first.data, first.size, &err), &err);
    graph_export(copy, false, 0, &second);
    CHECK_INT(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);

    /* And into a graph that lives longer. */
    CHECK_OK(graph_add_all(other, graph, &err), &err);
    graph_free(graph);
    graph_free(copy);
    struct function_library *library = graph_library(other);
    CHECK(function_library_find(library, "twice"));
    CHECK(graph_find(other, "y")->op == &function_library_find(library, "thrice")->op);
    CHECK_TEXT(function_library_gradient(library, "twice"), "thrice");
    graph_free(other);
    str_release(&first);
    str_release(&second);
}

TEST(a_function_may_come_twice_but_not_differ)
{
    struct graph *graph = graph_new();
    CHECK_OK(import(graph, TWICE), &err);
    CHECK_OK(import(graph, TWICE THRICE), &err);
    CHECK_INT(function_library_mark(graph_library(graph)).functions, 2);
    CHECK_FAILS(import(graph, "def fresh(a:float) (r:float)\n ret r a\nend\n"
                              "def twice(a:T) (r:T) T:type\n"
                              "  m = Mul(a,a) T=$T\n"
                              "  ret r m:z:0\n"
                              "end\n"),
                &err, INVALID);
    CHECK(!function_library_find(graph_library(graph), "fresh"));
    CHECK_FAILS(import(graph, "def AddV2(a:float) (r:float)\n ret r a\nend\n"), &err, INVALID);
    CHECK_OK(import(graph, "gradient twice thrice\n"), &err);
    CHECK_FAILS(import(graph, "gradient twice twice\n"), &err, INVALID);
    CHECK_INT(function_library_mark(graph_library(graph)).functions, 2);
    CHECK_INT(function_library_mark(graph_library(graph)).gradients, 1);
    graph_free(graph);
}

/* A bad node takes the functions that came with it away again. */
TEST(functions_of_a_bad_graph_do_not_stay)
{
    struct graph *graph = graph_new();
    CHECK_FAILS(import(graph, TWICE "y = twice(nobody) T=float\n"), &err, INVALID);
    CHECK_INT(function_library_mark(graph_library(graph)).functions, 0);
    CHECK_FAILS(import(graph, "x = PartitionedCall() Tin=[] Tout=[] f=@twice\n"), &err,
                INVALID);
    CHECK_FAILS(import(graph, "x = twice() T=float\n"), &err, NOT_FOUND);
    CHECK_FAILS(import(graph, TWICE "x = Placeholder() dtype=float\ny = twice(x)\n"), &err,
                NOT_FOUND);
    CHECK_FAILS(import(graph, "def f(a:float) (r:float) T:nonsense\n ret r a\nend\n"), &err,
                INVALID);
    CHECK_OK(import(graph, TWICE), &err);
    graph_free(graph);
}

/* No cut and no changed byte of a message with functions does more harm than an error. */
TEST(a_damaged_library_is_an_error_or_another_library)
{
    struct str text = functions_graph(TWICE THRICE "gradient twice thrice\n"
                                                   "x = Placeholder() dtype=float\n"
                                                   "y = PartitionedCall(x) Tin=[float] "
                                                   "Tout=[float] f=@thrice\n");
    for (size_t at = 0; at < text.size; at++) {
        struct graph *cut = graph_new(), *changed = graph_new();
        if (!graph_import(cut, text.data, at, &err))
            CHECK_INT(function_library_mark(graph_library(cut)).functions, 0);
        text.data[at] ^= 0x55;
        if (!graph_import(changed, text.data, text.size, &err))
            CHECK_INT(function_library_mark(graph_library(changed)).functions, 0);
        text.data[at] ^= 0x55;
        graph_free(cut);
        graph_free(changed);
    }
    str_release(&text);
}
