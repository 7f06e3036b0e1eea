/*
 * flow_gradient_test.c - gradients through branches, loops and functions, against finite
 * differences in double.
 */

#include <math.h>

#include "base/alloc.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/gradient.h"
#include "runtime/session.h"
#include "tests/unit/runtime/functions.h"

#define STEP 1e-5
#define TOLERANCE 1e-6

static struct error err;

/* A graph of x and z (double scalars) with a result y, its gradients, and a session for both.
 */
struct world {
    struct graph *graph;
    struct session *session;
    struct edge grads[2];
};

static struct world open_world(const char *lines)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    struct world world = {.graph = graph_new(),
                          .session =
                              session_new(&(struct session_options){.threads = 1}, &err)};
    struct str all = {0};
    str_printf(&all,
               "x = Placeholder() dtype=double\nz = Placeholder() dtype=double\n"
               "n = Placeholder() dtype=int32\n%s",
               lines);
    struct str text = functions_graph(str_text(&all));
    CHECK_OK(graph_import(world.graph, text.data, text.size, &err), &err);
    struct edge y, xs[2];
    CHECK_OK(graph_edge(world.graph, "y", &y, &err), &err);
    CHECK_OK(graph_edge(world.graph, "x", &xs[0], &err), &err);
    CHECK_OK(graph_edge(world.graph, "z", &xs[1], &err), &err);
    CHECK_OK(gradient_build(world.graph, &y, 1, NULL, xs, 2, world.grads, &err), &err);
    CHECK_OK(session_extend_graph(world.session, world.graph, &err), &err);
    str_release(&text);
    str_release(&all);
    return world;
}

static void close_world(struct world *world)
{
    session_free(world->session);
    graph_free(world->graph);
}

static double evaluate(struct world *world, double x, double z, int n, const char *fetch)
{
    struct tensor feeds[3], fetched;
    CHECK_OK(tensor_init_scalar(&feeds[0], F64, x, &err), &err);
    CHECK_OK(tensor_init_scalar(&feeds[1], F64, z, &err), &err);
    CHECK_OK(tensor_init_scalar(&feeds[2], I32, n, &err), &err);
    const struct session_run run = {.feeds = (const char *const[]){"x", "z", "n"},
                                    .feed_values = feeds,
                                    .feeds_count = 3,
                                    .fetches = &fetch,
                                    .fetches_count = 1};
    CHECK_OK(session_run(world->session, &run, &fetched, &err), &err);
    double value = tensor_number(&fetched, 0);
    tensor_release(&fetched);
    for (int i = 0; i < 3; i++)
        tensor_release(&feeds[i]);
    return value;
}

static void check_grad(struct world *world, int i, double x, double z, int n, double difference)
{
    char name[300];
    CHECK(world->grads[i].from);
    snprintf(name, sizeof(name), "%s:%d", world->grads[i].from->name, world->grads[i].output);
    double grad = evaluate(world, x, z, n, name);
    if (!(fabs(grad - difference) <= TOLERANCE * (1 + fabs(difference))))
        CHECK_STOP("d/d%s at %g, %g, %d is %.9g, not %.9g", i ? "z" : "x", x, z, n, grad,
                   difference);
}

/* The gradients of `y` at a few points, for 0 to 3 rounds of the loops. */
static void check_points(struct world *world, const char *y)
{
    static const double points[][2] = {{0.7, -0.4}, {-1.3, 0.9}, {1.8, 1.1}};
    for (int p = 0; p < ARRAY_LEN(points); p++)
        for (int n = 0; n < 4; n++) {
            double x = points[p][0], z = points[p][1];
            double dx = evaluate(world, x + STEP, z, n, y) - evaluate(world, x - STEP, z, n, y);
            double dz = evaluate(world, x, z + STEP, n, y) - evaluate(world, x, z - STEP, n, y);
            check_grad(world, 0, x, z, n, dx / (2 * STEP));
            check_grad(world, 1, x, z, n, dz / (2 * STEP));
        }
}

/* Puts the gradients of one of the gradients in the place of both. */
static void differentiate_again(struct world *world, int which)
{
    struct edge xs[2], grad = world->grads[which];
    CHECK_OK(graph_edge(world->graph, "x", &xs[0], &err), &err);
    CHECK_OK(graph_edge(world->graph, "z", &xs[1], &err), &err);
    CHECK_OK(gradient_build(world->graph, &grad, 1, NULL, xs, 2, world->grads, &err), &err);
    session_free(world->session);
    world->session = session_new(&(struct session_options){.threads = 2}, &err);
    CHECK_OK(session_extend_graph(world->session, world->graph, &err), &err);
}

/* The first derivatives, then those of dy/dx, and of one of these. */
static void check(const char *lines)
{
    struct world world = open_world(lines);
    check_points(&world, "y");
    for (int order = 2; order <= 3; order++) {
        char name[300];
        int which = order == 2 ? 0 : 1;
        snprintf(name, sizeof(name), "%s:%d", world.grads[which].from->name,
                 world.grads[which].output);
        differentiate_again(&world, which);
        check_points(&world, name);
    }
    close_world(&world);
}

#define ZERO "zero = Const() dtype=double value=(double:0)\n"
#define IF(name, then, otherwise)                                                              \
    name " = StatelessIf(p:z:0,a,z) Tcond=bool Tin=[double,double] Tout=[double] "             \
         "then_branch=@" then " else_branch=@" otherwise "\n"

#define SINES                                                                                  \
    "def times(a:double,z:double) (r:double)\n"                                                \
    "  m = Mul(a,z) T=double\n  s = Sin(m:z:0) T=double\n"                                     \
    "  ret r s:y:0\nend\n"                                                                     \
    "def square(a:double,z:double) (r:double)\n"                                               \
    "  m = Mul(a,a) T=double\n  ret r m:z:0\nend\n"                                            \
    "def same(a:double,z:double) (r:double)\n  ret r a\nend\n"

/* A function with a branch: in one the second argument is not used at all. */
#define BRANCHING                                                                              \
    SINES "def branch(a:double,z:double) (r:double)\n"                                         \
          "  c = Const() dtype=double value=(double:0)\n"                                      \
          "  p = Greater(a,c:output:0) T=double\n" IF("  i", "times",                          \
                                                      "square") ""                             \
                                                                "  ret r i:output:0\nend\n"

TEST(gradients_go_through_branches)
{
    check(SINES ZERO "p = Greater(x,zero) T=double\n"
                     "i = StatelessIf(p,x,z) Tcond=bool Tin=[double,double] Tout=[double] "
                     "then_branch=@times else_branch=@square\n"
                     "y = Mul(i,z) T=double\n");
}

TEST(gradients_go_through_branches_in_branches)
{
    check(BRANCHING "def outer(a:double,z:double) (r:double)\n"
                    "  b = branch(a,z)\n  c = branch(z,b:r:0)\n"
                    "  ret r c:r:0\nend\n" ZERO "p = Less(z,zero) T=double\n"
                    "i = StatelessIf(p,x,z) Tcond=bool Tin=[double,double] Tout=[double] "
                    "then_branch=@outer else_branch=@branch\n"
                    "y = AddV2(i,z) T=double\n");
}

TEST(gradients_go_through_the_case_taken)
{
    check(SINES "c = StatelessCase(n,x,z) Tin=[double,double] Tout=[double] "
                "branches=[@times,@square,@same]\n"
                "y = Mul(c,z) T=double\n");
}

/* while k < n: a, z = body(a, z), a nested function or not. */
#define LOOP(name, body)                                                                       \
    "def " name "_body(k:int32,n:int32,a:double,z:double) (k2:int32,n2:int32,r:double,"        \
    "z2:double)\n"                                                                             \
    "  one = Const() dtype=int32 value=(int32:1)\n"                                            \
    "  next = AddV2(k,one:output:0) T=int32\n"                                                 \
    "  b = " body "(a,z)\n"                                                                    \
    "  ret k2 next:z:0\n  ret n2 n\n  ret r b:r:0\n  ret z2 z\nend\n"                          \
    "def " name "_cond(k:int32,n:int32,a:double,z:double) (r:bool)\n"                          \
    "  l = Less(k,n) T=int32\n  ret r l:z:0\nend\n"
#define RUN(name, x, z)                                                                        \
    "start = Const() dtype=int32 value=(int32:0)\n"                                            \
    "w = StatelessWhile(start,n," x "," z ") T=[int32,int32,double,double] "                   \
    "cond=@" name "_cond body=@" name "_body\n"

TEST(gradients_go_through_loops)
{
    check(SINES LOOP("l", "times") RUN("l", "x", "z") "y = Mul(w:2,z) T=double\n");
}

TEST(gradients_go_through_branches_in_loops)
{
    check(BRANCHING LOOP("l", "branch") RUN("l", "x", "z") "y = Mul(w:2,x) T=double\n");
}

/* What only one branch keeps is not asked for where the other was taken, whichever derivative.
 */
TEST(gradients_of_gradients_know_the_branch_taken)
{
    check(SINES "def still(a:double,z:double) (r:double)\n"
                "  t = Tanh(a) T=double\n  ret r t:y:0\nend\n"
                "def branch(a:double,z:double) (r:double)\n"
                "  c = Const() dtype=double value=(double:0)\n"
                "  p = Greater(a,c:output:0) T=double\n" IF(
                    "  i", "times", "still") "  ret r i:output:0\nend\n" LOOP("l", "branch")
                    RUN("l", "x", "z") "y = Mul(w:2,x) T=double\n");
}

/* The inner loop runs as often as the outer, in each of its rounds. */
TEST(gradients_go_through_loops_in_loops)
{
    check(BRANCHING LOOP("l", "branch") "def inner(a:double,z:double) (r:double)\n"
                                        "  s = Const() dtype=int32 value=(int32:0)\n"
                                        "  n = Const() dtype=int32 value=(int32:2)\n"
                                        "  w = StatelessWhile(s:output:0,n:output:0,a,z) "
                                        "T=[int32,int32,double,double] cond=@l_cond "
                                        "body=@l_body\n"
                                        "  t = Tanh(w:output:2) T=double\n"
                                        "  ret r t:y:0\nend\n" LOOP("o", "inner")
                                            RUN("o", "x", "z") "y = Mul(w:2,x) T=double\n");
}

TEST(gradients_go_through_loops_in_branches_in_loops)
{
    check(BRANCHING LOOP(
        "l", "branch") "def inner(a:double,z:double) (r:double)\n"
                       "  s = Const() dtype=int32 value=(int32:0)\n"
                       "  n = Const() dtype=int32 value=(int32:2)\n"
                       "  w = StatelessWhile(s:output:0,n:output:0,a,z) "
                       "T=[int32,int32,double,double] cond=@l_cond "
                       "body=@l_body\n"
                       "  ret r w:output:2\nend\n"
                       "def either(a:double,z:double) (r:double)\n"
                       "  c = Const() dtype=double value=(double:0.5)\n"
                       "  p = Greater(a,c:output:0) T=double\n" IF(
                           "  i", "times",
                           "inner") ""
                                    "  ret r i:output:0\nend\n" LOOP("o", "either")
                                        RUN("o", "x", "z") "y = Mul(w:2,x) T=double\n");
}

/*
 * In every other round of a loop another one runs, whose iterations somebody counts who starts
 * in all rounds: TensorFlow does, for its gradients.
 */
TEST(a_counter_from_outside_does_not_hide_that_a_loop_is_in_a_branch)
{
#define OF_OUTER "frame_name='outer"
#define OF_INNER "frame_name='inner"
    check("none = Const() dtype=int32 value=(int32:0)\n"
          "ke = Enter(none) T=int32 " OF_OUTER "\nk = Merge(ke,kn) T=int32 N=#2\n"
          "xe = Enter(x) T=double " OF_OUTER "\na = Merge(xe,an) T=double N=#2\n"
          "ze = Enter(z) T=double is_constant=!true " OF_OUTER "\n"
          "ne = Enter(n) T=int32 is_constant=!true " OF_OUTER "\n"
          "more = Less(k,ne) T=int32\ngo = LoopCond(more)\n"
          "ks = Switch(k,go) T=int32\nas = Switch(a,go) T=double\n"
          "know = Identity(ks:1) T=int32\nanow = Identity(as:1) T=double\n"
          "one = Const(^know) dtype=int32 value=(int32:1)\nknext = AddV2(know,one) T=int32\n"
          "two = Const(^know) dtype=int32 value=(int32:2)\n"
          "half = FloorMod(know,two) T=int32\nodd = Less(half,one) T=int32\n"
          "side = Switch(anow,odd) T=double\nzside = Switch(ze,odd) T=double\n"
          "still = Tanh(side:0) T=double\n"
          "times = Const(^know) dtype=int32 value=(int32:2)\n"
          "gate = Switch(times,odd) T=int32\nin = Identity(gate:1) T=int32\n"
          "zero = Const(^in) dtype=int32 value=(int32:0)\n"
          "ce = Enter(zero) T=int32 " OF_INNER "\nc = Merge(ce,cn) T=int32 N=#2\n"
          "be = Enter(side:1) T=double " OF_INNER "\nb = Merge(be,bn) T=double N=#2\n"
          "zi = Enter(zside:1) T=double is_constant=!true " OF_INNER "\n"
          "te = Enter(in) T=int32 is_constant=!true " OF_INNER "\n"
          "less = Less(c,te) T=int32\non = LoopCond(less)\n"
          "cs = Switch(c,on) T=int32\nbs = Switch(b,on) T=double\n"
          "unit = Const(^cs) dtype=int32 value=(int32:1)\ncadd = AddV2(cs:1,unit) T=int32\n"
          "cn = NextIteration(cadd) T=int32\n"
          "bz = Mul(bs:1,zi) T=double\nbsin = Sin(bz) T=double\n"
          "bn = NextIteration(bsin) T=double\nbout = Exit(bs:0) T=double\n"
          /* the counter */
          "f = Const(^know) dtype=int32 value=(int32:0)\n"
          "fe = Enter(f) T=int32 " OF_INNER "\nfm = Merge(fe,fn) T=int32 N=#2\n"
          "fs = Switch(fm,on) T=int32\nfadd = AddV2(fs:1,unit) T=int32\n"
          "fn = NextIteration(fadd) T=int32\n"
          "joined = Merge(still,bout) T=double N=#2\n"
          "kn = NextIteration(knext) T=int32\nan = NextIteration(joined) T=double\n"
          "out = Exit(as:0) T=double\ny = Mul(out,x) T=double\n");
#undef OF_OUTER
#undef OF_INNER
}

/* As in TensorFlow, where a loop is differentiated as a whole. */
TEST(what_goes_into_a_loop_and_does_not_matter_has_zeros)
{
    struct world world =
        open_world(SINES LOOP("l", "same") RUN("l", "x", "t") "y = Mul(w:2,x) T=double\n"
                                                              "t = Tanh(z) T=double\n");
    check_points(&world, "y");
    close_world(&world);
    world = open_world(SINES "c = StatelessCase(n,x,z) Tin=[double,double] Tout=[double] "
                             "branches=[@same,@same]\ny = Mul(c,x) T=double\n");
    CHECK(!world.grads[1].from); /* not so what goes into branches */
    close_world(&world);
}

/* Both values change, one is only read after the loop, and one starts from a constant. */
TEST(gradients_go_through_all_values_of_a_loop)
{
    check("def body(k:int32,n:int32,a:double,b:double,c:double) "
          "(k2:int32,n2:int32,a2:double,b2:double,c2:double)\n"
          "  one = Const() dtype=int32 value=(int32:1)\n"
          "  next = AddV2(k,one:output:0) T=int32\n"
          "  s = Sin(b) T=double\n"
          "  m = Mul(a,s:y:0) T=double\n"
          "  d = AddV2(c,m:z:0) T=double\n"
          "  ret k2 next:z:0\n  ret n2 n\n  ret a2 b\n  ret b2 m:z:0\n  ret c2 d:z:0\nend\n"
          "def cond(k:int32,n:int32,a:double,b:double,c:double) (r:bool)\n"
          "  l = Less(k,n) T=int32\n  ret r l:z:0\nend\n" ZERO
          "start = Const() dtype=int32 value=(int32:0)\n"
          "w = StatelessWhile(start,n,x,z,zero) T=[int32,int32,double,double,double] "
          "cond=@cond body=@body\n"
          "q = Mul(x,z) T=double\n"
          "y = AddV2(w:4,q) T=double\n");
}

/* What a loop gives that no gradient follows is no gradient, not zero. */
TEST(gradients_stop_where_the_loop_is_only_looked_at)
{
    struct world world = {.graph = graph_new()};
    struct str text = functions_graph(
        SINES LOOP("l", "times") "x = Placeholder() dtype=double\n"
                                 "z = Placeholder() dtype=double\n"
                                 "n = Placeholder() dtype=int32\n" RUN(
                                     "l", "x", "z") "s = StopGradient(w:2) T=double\n"
                                                    "y = Mul(s,z) T=double\n");
    struct edge y, xs[2], grads[2];
    CHECK_OK(graph_import(world.graph, text.data, text.size, &err), &err);
    CHECK_OK(graph_edge(world.graph, "y", &y, &err), &err);
    CHECK_OK(graph_edge(world.graph, "x", &xs[0], &err), &err);
    CHECK_OK(graph_edge(world.graph, "z", &xs[1], &err), &err);
    CHECK_OK(gradient_build(world.graph, &y, 1, NULL, xs, 2, grads, &err), &err);
    CHECK(!grads[0].from);
    CHECK(grads[1].from);
    str_release(&text);
    graph_free(world.graph);
}

/* Rows of a Hessian, each by a walk of its own, in one run: they share stacks, not twins. */
TEST(second_derivatives_of_one_run_do_not_mix)
{
    struct world world = open_world(BRANCHING LOOP("l", "branch")
                                        RUN("l", "x", "z") "y = Mul(w:2,z) T=double\n");
    struct edge xs[2], rows[2][2];
    CHECK_OK(graph_edge(world.graph, "x", &xs[0], &err), &err);
    CHECK_OK(graph_edge(world.graph, "z", &xs[1], &err), &err);
    for (int i = 0; i < 2; i++)
        CHECK_OK(gradient_build(world.graph, &world.grads[i], 1, NULL, xs, 2, rows[i], &err),
                 &err);
    struct builder b = {.graph = world.graph, .scope = "", .err = &err};
    builder_add(&b, "Sub", "none", INPUTS(rows[0][1], rows[1][0]), NO_ATTRS);
    CHECK(builder_ok(&b));
    session_free(world.session);
    world.session = session_new(&(struct session_options){.threads = 2}, &err);
    CHECK_OK(session_extend_graph(world.session, world.graph, &err), &err);
    for (int n = 0; n < 4; n++)
        CHECK(fabs(evaluate(&world, 0.7, -0.4, n, "none")) < 1e-12);
    close_world(&world);
}

/* Two nodes push on one stack: nothing says whose is popped. */
TEST(gradients_do_not_guess_what_a_stack_holds)
{
    struct graph *graph = graph_new();
    struct str text = functions_graph("x = Placeholder() dtype=double\n"
                                      "m = Const() dtype=int32 value=(int32:-1)\n"
                                      "s = StackV2(m) elem_type=double\n"
                                      "a = StackPushV2(s,x) T=double\n"
                                      "b = StackPushV2(s,x,^a) T=double\n"
                                      "y = StackPopV2(s,^b) elem_type=double\n");
    struct edge y, x, grad;
    CHECK_OK(graph_import(graph, text.data, text.size, &err), &err);
    CHECK_OK(graph_edge(graph, "y", &y, &err), &err);
    CHECK_OK(graph_edge(graph, "x", &x, &err), &err);
    CHECK_FAILS(gradient_build(graph, &y, 1, NULL, &x, 1, &grad, &err), &err, UNIMPLEMENTED);
    str_release(&text);
    graph_free(graph);
}

TEST(gradients_go_through_a_stack)
{
    check("m = Const() dtype=int32 value=(int32:-1)\n"
          "s = StackV2(m) elem_type=double\n"
          "q = Mul(x,z) T=double\n"
          "a = StackPushV2(s,q) T=double\n"
          "p = StackPopV2(s,^a) elem_type=double\n"
          "r = Mul(p,p) T=double\n"
          "y = Mul(r,x) T=double\n");
}

/* A function that calls itself has no gradient, but says so. */
TEST(a_function_without_end_has_no_gradient)
{
    struct graph *graph = graph_new();
    struct str text = functions_graph("def f(a:double) (r:double)\n"
                                      "  b = f(a)\n  ret r b:r:0\nend\n"
                                      "x = Placeholder() dtype=double\n"
                                      "y = f(x)\n");
    struct edge y, x, grad;
    CHECK_OK(graph_import(graph, text.data, text.size, &err), &err);
    CHECK_OK(graph_edge(graph, "y", &y, &err), &err);
    CHECK_OK(graph_edge(graph, "x", &x, &err), &err);
    CHECK_FAILS(gradient_build(graph, &y, 1, NULL, &x, 1, &grad, &err), &err, UNIMPLEMENTED);
    str_release(&text);
    graph_free(graph);
}
