/* functional_test.c - functions called from graphs: lowered, or run by a kernel. */

#include <math.h>
#include <pthread.h>

#include "base/alloc.h"
#include "kernels/list.h"
#include "runtime/graph.h"
#include "runtime/session.h"
#include "tests/unit/runtime/functions.h"

static struct error err;

static struct session *open_session(const char *lines, bool no_optimise)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    struct session *session =
        session_new(&(struct session_options){.threads = 1, .no_optimise = no_optimise}, &err);
    CHECK(session);
    struct str text = functions_graph(lines);
    CHECK_OK(session_extend(session, text.data, text.size, &err), &err);
    str_release(&text);
    return session;
}

/* Feeds x (a float scalar) and fetches (or, if NULL, runs) a node. */
static bool run(struct session *session, double x, const char *fetch, const char *target,
                double *answer)
{
    struct tensor value, fetched = {0};
    const char *const feed = "x";
    CHECK_OK(tensor_init_scalar(&value, F32, x, &err), &err);
    const struct session_run what = {.feeds = &feed,
                                     .feed_values = &value,
                                     .feeds_count = 1,
                                     .fetches = &fetch,
                                     .fetches_count = fetch ? 1 : 0,
                                     .targets = &target,
                                     .targets_count = target ? 1 : 0};
    bool ok = session_run(session, &what, &fetched, &err);
    if (ok && fetch && answer)
        *answer = tensor_number(&fetched, 0);
    tensor_release(&fetched);
    tensor_release(&value);
    return ok;
}

static double answer(struct session *session, double x, const char *fetch)
{
    double y = 0;
    CHECK_OK(run(session, x, fetch, NULL, &y), &err);
    return y;
}

#define CALL "Tin=[float] Tout=[float]"
#define X "x = Placeholder() dtype=float\n"

/* --- that cannot be lowered --- */

#define FACTORIAL                                                                              \
    "def factorial(n:float) (r:float)\n"                                                       \
    "  one = Const() dtype=float value=(float:1)\n"                                            \
    "  more = Greater(n,one:output:0) T=float\n"                                               \
    "  if = StatelessIf(more:z:0,n) Tcond=bool " CALL " then_branch=@again else_branch=@one\n" \
    "  ret r if:output:0\n"                                                                    \
    "end\n"                                                                                    \
    "def again(n:float) (r:float)\n"                                                           \
    "  one = Const() dtype=float value=(float:1)\n"                                            \
    "  less = Sub(n,one:output:0) T=float\n"                                                   \
    "  f = PartitionedCall(less:z:0) " CALL " f=@factorial\n"                                  \
    "  m = Mul(n,f:output:0) T=float\n"                                                        \
    "  ret r m:z:0\n"                                                                          \
    "end\n"                                                                                    \
    "def one(n:float) (r:float)\n"                                                             \
    "  c = Const() dtype=float value=(float:1)\n"                                              \
    "  ret r c:output:0\n"                                                                     \
    "end\n"

TEST(a_function_may_call_itself)
{
    for (int plain = 0; plain < 2; plain++) {
        struct session *session =
            open_session(FACTORIAL X "y = PartitionedCall(x) " CALL " f=@factorial\n", plain);
        CHECK(answer(session, 1, "y") == 1);
        CHECK(answer(session, 6, "y") == 720);
        session_free(session);
    }
}

/* Its client knows a node of a function by the name that it has there. */
TEST(an_error_names_the_node_of_the_function)
{
    for (int plain = 0; plain < 2; plain++) {
        struct session *session =
            open_session("def f(n:float) (r:float)\n"
                         "  inner = CheckNumerics(n) T=float message='no\n"
                         "  ret r inner:output:0\n"
                         "end\n" X "y = PartitionedCall(x) " CALL " f=@f\n",
                         plain);
        CHECK(!run(session, NAN, "y", NULL, NULL));
        CHECK_TEXT(err.text, "node 'inner' (CheckNumerics): no : Tensor had NaN values");
        session_free(session);
    }
}

static void *call_often(void *session)
{
    for (int i = 0; i < 20; i++) {
        struct tensor value, fetched = {0};
        struct error failure;
        const struct session_run what = {.feeds = (const char *const[]){"x"},
                                         .feed_values = &value,
                                         .feeds_count = 1,
                                         .fetches = (const char *const[]){"y"},
                                         .fetches_count = 1};
        if (!tensor_init_scalar(&value, F32, 5, &failure) ||
            !session_run(session, &what, &fetched, &failure))
            return failure.text[0] ? "failed" : "failed without a reason";
        bool right = tensor_number(&fetched, 0) == 120;
        tensor_release(&fetched);
        tensor_release(&value);
        if (!right)
            return "wrong";
    }
    return NULL;
}

/* All threads make the function at once at first; all run it. */
TEST(functions_are_called_by_several_threads)
{
    struct session *session =
        open_session(FACTORIAL X "y = PartitionedCall(x) " CALL " f=@factorial\n", false);
    pthread_t threads[4];
    for (int i = 0; i < ARRAY_LEN(threads); i++)
        CHECK_INT(pthread_create(&threads[i], NULL, call_often, session), 0);
    for (int i = 0; i < ARRAY_LEN(threads); i++) {
        void *trouble;
        pthread_join(threads[i], &trouble);
        if (trouble)
            CHECK_STOP("a call %s", (const char *)trouble);
    }
    session_free(session);
}

TEST(calls_without_end_are_an_error)
{
    struct session *session = open_session("def f(a:float) (r:float)\n"
                                           "  g = PartitionedCall(a) " CALL " f=@g\n"
                                           "  ret r g:output:0\n"
                                           "end\n"
                                           "def g(a:float) (r:float)\n"
                                           "  f = f(a)\n"
                                           "  ret r f:r:0\n"
                                           "end\n"
                                           "def nothing() (r:float)\n"
                                           "  n = nothing()\n"
                                           "  ret r n:r:0\n"
                                           "end\n" X "y = f(x)\n"
                                           "z = nothing()\n",
                                           false);
    CHECK_FAILS(run(session, 1, "y", NULL, NULL), &err, EXHAUSTED);
    CHECK_FAILS(run(session, 1, "z", NULL, NULL), &err, EXHAUSTED);
    session_free(session);
}

/* 2^40 nodes in forty small functions: refused before memory is. */
TEST(functions_that_explode_are_an_error)
{
    struct str lines = {0};
    for (int i = 0; i < 40; i++)
        str_printf(&lines,
                   "def f%d(a:float) (r:float)\n"
                   "  b = f%d(a)\n"
                   "  c = f%d(b:r:0)\n"
                   "  ret r c:r:0\n"
                   "end\n",
                   i, i + 1, i + 1);
    str_add(&lines, "def f40(a:float) (r:float)\n  n = Neg(a) T=float\n  ret r n:y:0\nend\n" X
                    "y = f0(x)\n");
    struct session *session = open_session(str_text(&lines), false);
    CHECK_FAILS(run(session, 1, "y", NULL, NULL), &err, EXHAUSTED);
    session_free(session);
    str_release(&lines);
}

/* --- bodies that do not fit --- */

TEST(bad_bodies_are_errors_of_the_run)
{
    static const struct {
        enum error_code code;
        const char *body;
    } cases[] = {
        {INVALID, "  m = Neg(b) T=float\n  ret r m:y:0\n"},    /* unknown input */
        {INVALID, "  m = Neg(a) T=float\n  ret r m:nope:0\n"}, /* unknown output */
        {INVALID, "  m = Neg(a) T=float\n  ret r m:y:1\n"},    /* beyond the last */
        {INVALID, "  m = Neg(a) T=float\n  ret r m:y:99999999999\n"},
        {INVALID, "  m = Neg(a) T=float\n  ret r m\n"},       /* which output? */
        {INVALID, "  m = Neg(a) T=float\n  ret q m:y:0\n"},   /* another name */
        {INVALID, "  m = Neg(a) T=float\n"},                  /* none */
        {INVALID, "  m = Neg(a,a) T=float\n  ret r m:y:0\n"}, /* too many inputs */
        {INVALID, "  m = AddV2(a) T=float\n  ret r m:z:0\n"}, /* too few */
        {INVALID, "  m = Neg(a) T=int32\n  ret r m:y:0\n"},   /* another type */
        {INVALID, "  m = Neg(a) T=$T\n  ret r m:y:0\n"},      /* bound to nothing */
        {NOT_FOUND, "  m = Neg(a)\n  ret r m:y:0\n"},         /* no attribute */
        {NOT_FOUND, "  m = NoSuchOp(a)\n  ret r m:y:0\n"},
        {INVALID, "  m = Neg(m:y:0) T=float\n  ret r m:y:0\n"}, /* a cycle */
        {INVALID, "  m = id(m:r:0)\n  ret r m:r:0\n"},          /* a cycle of calls */
        {INVALID, "  a = Neg(a) T=float\n  ret r a:y:0\n"},     /* named as an argument */
        {INVALID, "  m = Neg(a) T=float\n  m = Neg(a) T=float\n  ret r m:y:0\n"},
        {INVALID, "  m = Neg(a,^n) T=float\n  ret r m:y:0\n"}, /* unknown control */
        {INVALID, "  ret r a\n  cret c nobody\n"},
        {INVALID, "  m = Shape(a) T=float\n  ret r m:output:0\n"}, /* result's type */
        {NOT_FOUND, "  p = PartitionedCall(a) " CALL " f=@nobody\n  ret r p:output:0\n"},
        {INVALID, "  p = PartitionedCall() Tin=[] Tout=[float] f=@id\n  ret r p:output:0\n"},
        {INTERNAL, "  p = PartitionedCall(a) Tin=[float] Tout=[int32] f=@id\n  ret r a\n"},
        {INVALID, "  p = PartitionedCall(a) Tin=[float] Tout=[] f=@id\n  ret r a\n"},
        {INVALID, "  w = While(a) T=[float] cond=@id body=@two\n  ret r w:output:0\n"},
        {INVALID, "  p = StatelessIf() Tcond=bool " CALL
                  " then_branch=@id else_branch=@id\n  ret r p:output:0\n"},
        {INVALID, "  p = Case() " CALL " branches=[@id]\n  ret r p:output:0\n"},
        {INVALID, "  w = While() T=[float] cond=@id body=@id\n  ret r w:output:0\n"},
        {INVALID, "  p = Case(a,a) Tin=[float] Tout=[float] branches=[@id]\n  ret r a\n"},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct str lines = {0};
        str_printf(&lines,
                   "def f(a:float) (r:float)\n%send\n"
                   "def id(a:float) (r:float)\n  ret r a\nend\n"
                   "def two(a:float) (r:float,s:float)\n  ret r a\n  ret s a\nend\n" X
                   "ok = Neg(x) T=float\n"
                   "y = PartitionedCall(x) " CALL " f=@f\n"
                   "z = f(x)\n",
                   cases[i].body);
        struct session *session = open_session(str_text(&lines), false);
        CHECK_FAILS(run(session, 1, "y", NULL, NULL), &err, cases[i].code);
        CHECK_FAILS(run(session, 1, NULL, "z", NULL), &err, cases[i].code);
        CHECK(answer(session, 1, "ok") == -1); /* the session goes on */
        session_free(session);
        str_release(&lines);
    }
}

TEST(calls_that_do_not_fit_are_told_as_tensorflow_does)
{
    static const struct {
        enum error_code code;
        const char *given, *types, *text;
    } cases[] = {
        {INVALID, "int32", "Tin=[int32] Tout=[float]",
         "Expects arg[0] to be float but int32 is provided"},
        {INTERNAL, "float", "Tin=[float] Tout=[int32]",
         "Output 0 of type float does not match declared output type int32 for node {{node "
         "call}}"},
        {INTERNAL, "float", "Tin=[float] Tout=[float,float]",
         "Missing 1-th output from {{node call}}"},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct str lines = {0};
        char wanted[300];
        str_printf(&lines,
                   "def id(a:float) (r:float)\n  m = Neg(a) T=float\n  ret r m:y:0\nend\n" X
                   "given = Cast(x) SrcT=float DstT=%s\n"
                   "call = PartitionedCall(given) %s f=@id\n",
                   cases[i].given, cases[i].types);
        struct session *session = open_session(str_text(&lines), false);
        CHECK_FAILS(run(session, 1, NULL, "call", NULL), &err, cases[i].code);
        snprintf(wanted, sizeof(wanted), "node 'call' (PartitionedCall): %s", cases[i].text);
        CHECK_TEXT(err.text, wanted);
        session_free(session);
        str_release(&lines);
    }
}

/* The same by a kernel: a target that only the run knows. */
TEST(remote_calls_that_do_not_fit_are_told_as_tensorflow_does)
{
    struct session *session =
        open_session("def id(a:float) (r:float)\n  m = Neg(a) T=float\n  ret r m:y:0\nend\n"
                     "def none() (r:string)\n  x = Const() dtype=float value=(float:1)\n"
                     "  s = AsString(x:output:0) T=float\n"
                     "  c = Substr(s:output:0,p:output:0,p:output:0) T=int32\n"
                     "  p = Const() dtype=int32 value=(int32:0)\n  ret r c:output:0\nend\n" X
                     "here = none()\nodd = AsString(x) T=float\nwhole = Cast(x) SrcT=float "
                     "DstT=int32\n"
                     "a = RemoteCall(odd,x) Tin=[float] Tout=[float] f=@id\n"
                     "b = RemoteCall(here,whole) Tin=[int32] Tout=[float] f=@id\n"
                     "c = RemoteCall(here,x) Tin=[float] Tout=[int32] f=@id\n"
                     "d = RemoteCall(here,x) Tin=[float] Tout=[float,float] f=@id\n"
                     "e = RemoteCall(here,x) Tin=[float] Tout=[float] f=@id\n",
                     false);
    CHECK(answer(session, 4, "e") == -4);
    CHECK_FAILS(run(session, 1, NULL, "a", NULL), &err, INVALID);
    CHECK_TEXT(err.text, "node 'a' (RemoteCall): Could not parse 1.000000 into a device "
                         "specification.");
    CHECK_FAILS(run(session, 1, NULL, "b", NULL), &err, INVALID);
    CHECK_TEXT(err.text,
               "node 'b' (RemoteCall): Expects arg[0] to be float but int32 is provided");
    CHECK_FAILS(run(session, 1, NULL, "c", NULL), &err, INTERNAL);
    CHECK_TEXT(err.text, "node 'c' (RemoteCall): Output 0 of type float does not match "
                         "declared output type int32 for node {{node c}}");
    CHECK_FAILS(run(session, 1, NULL, "d", NULL), &err, INTERNAL);
    CHECK_TEXT(err.text, "node 'd' (RemoteCall): Missing 1-th output from {{node d}}");
    session_free(session);
}

/* --- attributes and lists --- */

TEST(attributes_bind_what_the_body_leaves_open)
{
    struct session *session =
        open_session("def sum(a:T,b:N*T,c:list:L) (r:T,l:list:L) T:type N:int L:list(type)\n"
                     "  s = AddN(b) T=$T N=$N\n"
                     "  m = Mul(a,s:sum:0) T=$T\n"
                     "  i = IdentityN(c) T=$L\n"
                     "  ret r m:z:0\n"
                     "  ret l i:output\n"
                     "end\n"
                     "def inner(a:T) (r:T) T:type\n"
                     "  m = AddV2(a,a) T=$T\n"
                     "  ret r m:z:0\n"
                     "end\n"
                     "def outer(a:T) (r:T) T:type\n"
                     "  p = PartitionedCall(a) Tin=[float] Tout=[float] f=@inner{T=$T}\n"
                     "  q = inner(p:output) T=$T\n"
                     "  ret r q:r:0\n"
                     "end\n" X "k = Const() dtype=int32 value=(int32:7)\n"
                     "s = sum(x,x,x,k,x) T=float N=#2 L=[int32,float]\n"
                     "o = PartitionedCall(x) " CALL " f=@outer{T=float}\n",
                     false);
    CHECK(answer(session, 3, "s:0") == 18);
    CHECK(answer(session, 3, "s:1") == 7);
    CHECK(answer(session, 3, "s:2") == 3);
    CHECK(answer(session, 3, "o") == 12);
    session_free(session);
}

/* --- results that nobody reads --- */

/* f(a) is 2 a and, unread, what fails where a is 0; the branch and the body use it. */
#define UNREAD                                                                                 \
    "def f(a:float) (r:float,s:int32)\n"                                                       \
    "  d = AddV2(a,a) T=float\n"                                                               \
    "  i = Cast(a) SrcT=float DstT=int32\n"                                                    \
    "  s = FloorDiv(i:y:0,i:y:0) T=int32\n"                                                    \
    "  ret r d:z:0\n  ret s s:z:0\n"                                                           \
    "end\n"                                                                                    \
    "def g(a:float) (r:float)\n"                                                               \
    "  c = PartitionedCall(a) Tin=[float] Tout=[float,int32] f=@f\n"                           \
    "  ret r c:output:0\n"                                                                     \
    "end\n"                                                                                    \
    "def first(a:float,b:int32) (r:float)\n"                                                   \
    "  d = AddV2(a,a) T=float\n"                                                               \
    "  ret r d:z:0\n"                                                                          \
    "end\n"                                                                                    \
    "def less(i:float,b:int32) (r:bool)\n"                                                     \
    "  k = Const() dtype=float value=(float:1)\n"                                              \
    "  l = Less(i,k:output:0) T=float\n"                                                       \
    "  ret r l:z:0\n"                                                                          \
    "end\n"                                                                                    \
    "def next(i:float,b:int32) (r:float,s:int32)\n"                                            \
    "  k = Const() dtype=float value=(float:1)\n"                                              \
    "  n = AddV2(i,k:output:0) T=float\n"                                                      \
    "  f = PartitionedCall(i) Tin=[float] Tout=[float,int32] f=@f\n"                           \
    "  ret r n:z:0\n  ret s f:output:1\n"                                                      \
    "end\n" X "zero = Cast(x) SrcT=float DstT=int32\n"                                         \
    "div = FloorDiv(zero,zero) T=int32\n"                                                      \
    "yes = Const() dtype=bool value=(bool:1)\n"

/* A call, a branch and a loop compute all that they return; what is asked to be Switch and
 * Merge, and a call inside of a plain one, only what is read. */
TEST(errors_of_unread_results_are_told_where_tensorflow_tells)
{
    static const struct {
        const char *node;
        bool fails;
    } cases[] = {
        {"c = PartitionedCall(x) Tin=[float] Tout=[float,int32] f=@f\n", true},
        {"c = f(x)\n", true},
        {"c = PartitionedCall(x) " CALL " f=@g\n", false},
        {"c = PartitionedCall(x,div) Tin=[float,int32] Tout=[float] f=@first\n", true},
        {"c = If(yes,x) Tcond=bool Tin=[float] Tout=[float,int32] then_branch=@f "
         "else_branch=@f\n",
         true},
        {"c = If(yes,x) Tcond=bool " CALL " then_branch=@g else_branch=@g\n", true},
        {"c = If(yes,x) Tcond=bool Tin=[float] Tout=[float,int32] then_branch=@f "
         "else_branch=@f _lower_using_switch_merge=!true\n",
         false},
        {"c = While(x,zero) T=[float,int32] cond=@less body=@next\n", true},
        {"c = While(x,zero) T=[float,int32] cond=@less body=@next "
         "_lower_using_switch_merge=!true\n",
         false},
    };
    for (int i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct str lines = {0};
        str_printf(&lines, UNREAD "%sy = Neg(c) T=float\n", cases[i / 2].node);
        struct session *session = open_session(str_text(&lines), i % 2);
        if (cases[i / 2].fails)
            CHECK_FAILS(run(session, 0, "y", NULL, NULL), &err, INVALID);
        else
            CHECK_OK(run(session, 0, "y", NULL, NULL), &err);
        CHECK_OK(run(session, 1, "y", NULL, NULL), &err);
        session_free(session);
        str_release(&lines);
    }
}

/* --- loops and branches --- */

/* The function has a loop by hand, and two calls of it do not share its frame. */
TEST(loops_in_functions_are_apart)
{
    struct session *session =
        open_session("def power(a:float) (r:float)\n"
                     "  e = Enter(a) T=float frame_name='loop\n"
                     "  c = Enter(a) T=float frame_name='loop is_constant=!true\n"
                     "  m = Merge(e:output:0,n:output:0) T=float N=#2\n"
                     "  h = Const(^m) dtype=float value=(float:100)\n"
                     "  l = Less(m:output:0,h:output:0) T=float\n"
                     "  again = LoopCond(l:z:0)\n"
                     "  s = Switch(m:output:0,again:output:0) T=float\n"
                     "  p = Mul(s:output_true:0,c:output:0) T=float\n"
                     "  n = NextIteration(p:z:0) T=float\n"
                     "  x = Exit(s:output_false:0) T=float\n"
                     "  ret r x:output:0\n"
                     "end\n" X "two = Const() dtype=float value=(float:2)\n"
                     "x2 = Mul(x,two) T=float\n"
                     "a = power(x)\n"
                     "b = power(x2)\n"
                     "y = Sub(a,b) T=float\n",
                     false);
    CHECK(answer(session, 3, "y") == 243 - 216);
    session_free(session);
}

TEST(a_loop_may_have_nothing_that_changes)
{
    struct session *session = open_session(
        "def never(a:float) (r:bool)\n"
        "  c = Const() dtype=bool value=(bool:0)\n"
        "  ret r c:output:0\n"
        "end\n"
        "def none() (r:bool)\n"
        "  c = Const() dtype=bool value=(bool:0)\n"
        "  ret r c:output:0\n"
        "end\n"
        "def id(a:float) (r:float)\n  ret r a\nend\n"
        "def empty() ()\nend\n" X "y = StatelessWhile(x) T=[float] cond=@never body=@id\n"
        "z = While() T=[] cond=@none body=@empty\n"
        "f = NoOp(^z)\n",
        false);
    CHECK(answer(session, 3, "y") == 3);
    CHECK_OK(run(session, 3, NULL, "f", NULL), &err);
    session_free(session);
}

/* For is not lowered: its kernel calls the body. */
TEST(for_counts_from_start_to_limit)
{
    struct session *session =
        open_session("def body(i:int32,a:float) (r:float)\n"
                     "  c = Cast(i) SrcT=int32 DstT=float\n"
                     "  m = AddV2(a,c:y:0) T=float\n"
                     "  ret r m:z:0\n"
                     "end\n" X "one = Const() dtype=int32 value=(int32:1)\n"
                     "four = Const() dtype=int32 value=(int32:4)\n"
                     "down = Const() dtype=int32 value=(int32:-2)\n"
                     "y = For(one,four,one,x) T=[float] body=@body\n"
                     "z = For(four,one,down,x) T=[float] body=@body\n"
                     "bad = For(one,four,down,x) T=[float] body=@body\n",
                     false);
    CHECK(answer(session, 10, "y") == 16);
    CHECK(answer(session, 10, "z") == 16);
    CHECK_FAILS(run(session, 10, "bad", NULL, NULL), &err, INVALID);
    session_free(session);
}

/* --- effects --- */

TEST(effects_of_a_function_happen_once_and_only_in_the_branch_taken)
{
    struct session *session = open_session(
        "def add(h:resource,a:float) (r:float)\n"
        "  c = Const() dtype=float value=(float:1)\n"
        "  up = AssignAddVariableOp(h,c:output:0) dtype=float\n"
        "  ret r a\n"
        "  cret up up\n"
        "end\n"
        "def keep(h:resource,a:float) (r:float)\n  ret r a\nend\n" X
        "v = VarHandleOp() dtype=float shape=:scalar shared_name='v\n"
        "zero = Const() dtype=float value=(float:0)\n"
        "init = AssignVariableOp(v,zero) dtype=float\n"
        "read = ReadVariableOp(v) dtype=float\n"
        "call = StatefulPartitionedCall(v,x) Tin=[resource,float] Tout=[float] f=@add\n"
        "out = Identity(call) T=float\n"
        "more = Greater(x,zero) T=float\n"
        "if = If(more,v,x) Tcond=bool Tin=[resource,float] Tout=[float] then_branch=@add "
        "else_branch=@keep\n"
        "then = ReadVariableOp(v,^if) dtype=float\n",
        false);
    CHECK_OK(run(session, 0, NULL, "init", NULL), &err);
    CHECK(answer(session, 5, "out") == 5);
    CHECK(answer(session, 5, "read") == 1);
    CHECK(answer(session, 5, "call") == 5);
    CHECK_OK(run(session, 5, NULL, "call", NULL), &err);
    CHECK(answer(session, 5, "read") == 3);
    CHECK(answer(session, 5, "if") == 5);
    CHECK(answer(session, -5, "if") == -5);
    CHECK(answer(session, -5, "read") == 4);
    CHECK(answer(session, 5, "then") == 5);
    session_free(session);
}

/* A control edge from an argument holds in the branch that is taken, and only there. */
TEST(controls_from_arguments_stay_in_their_branch)
{
    struct session *session =
        open_session("def bad(a:float) (r:float)\n"
                     "  no = Const(^a) dtype=bool value=(bool:0)\n"
                     "  stop = Assert(no:output:0,a) T=[float]\n"
                     "  r = Identity(a,^stop) T=float\n"
                     "  ret r r:output:0\n"
                     "  cret stop stop\n"
                     "end\n"
                     "def good(a:float) (r:float)\n  ret r a\nend\n" X
                     "zero = Const() dtype=float value=(float:0)\n"
                     "p = Greater(x,zero) T=float\n"
                     "y = If(p,x) Tcond=bool " CALL " then_branch=@bad else_branch=@good\n",
                     false);
    CHECK(answer(session, -5, "y") == -5);
    CHECK_FAILS(run(session, 5, "y", NULL, NULL), &err, INVALID);
    session_free(session);
}

/* --- gradients of functions --- */

TEST(symbolic_gradients_are_built_or_named)
{
    const char *body = "def f(a:float,b:float) (r:float)\n"
                       "  m = Mul(a,b) T=float\n"
                       "  n = AddV2(m:z:0,a) T=float\n"
                       "  ret r n:z:0\n"
                       "end\n" X "two = Const() dtype=float value=(float:2)\n"
                       "g = SymbolicGradient(x,two,two) Tin=[float,float,float] "
                       "Tout=[float,float] f=@f\n";
    struct session *session = open_session(body, false);
    CHECK(answer(session, 5, "g:0") == 6);
    CHECK(answer(session, 5, "g:1") == 10);
    session_free(session);

    struct str lines = {0};
    str_printf(&lines,
               "%sdef mine(a:float,b:float,d:float) (x:float,y:float)\n"
               "  n = Neg(d) T=float\n  ret x n:y:0\n  ret y b\nend\n"
               "gradient f mine\n",
               body);
    session = open_session(str_text(&lines), false);
    CHECK(answer(session, 5, "g:0") == -2);
    session_free(session);
    str_release(&lines);
}

/* A client may ask for the gradient of any nonsense. */
TEST(gradients_of_bad_functions_do_no_harm)
{
    static const char *const bodies[] = {
        "  s = Switch(a) T=float\n  ret r s:output_true:0\n",
        "  m = Merge(n:output:0) T=float N=#1\n  n = NextIteration(m:output:0) T=float\n"
        "  ret r m:output:0\n",
        "  m = Merge(a,n:output:0) T=float N=#2\n  n = NextIteration(m:output:0) T=float\n"
        "  ret r m:output:0\n",
        "  e = Enter(a) T=float frame_name='f\n  ret r e:output:0\n",
        "  x = Exit(a) T=float\n  ret r x:output:0\n",
        "  n = NextIteration(a) T=float\n  x = Exit(n:output:0) T=float\n"
        "  ret r x:output:0\n",
        "  n = NextIteration(a) T=float\n  e = Enter(n:output:0) T=float frame_name='f\n"
        "  x = Exit(e:output:0) T=float\n  ret r x:output:0\n",
        "  e = Enter(a) T=float frame_name='f\n"
        "  m = Merge(e:output:0,n:output:0) T=float N=#2\n"
        "  k = Merge(e:output:0,n:output:0) T=float N=#2\n"
        "  n = NextIteration(m:output:0) T=float\n  p = AddV2(m:output:0,k:output:0) T=float\n"
        "  x = Exit(p:z:0) T=float\n  ret r x:output:0\n",
        "  m = Mul(a) T=float\n  ret r m:z:0\n",
        "  m = Mul(m:z:0,a) T=float\n  ret r m:z:0\n",
    };
    for (int i = 0; i < ARRAY_LEN(bodies); i++) {
        struct str lines = {0};
        str_printf(&lines,
                   "def f(a:float) (r:float)\n%send\n" X "ok = Neg(x) T=float\n"
                   "g = SymbolicGradient(x,x) Tin=[float,float] Tout=[float] f=@f\n",
                   bodies[i]);
        struct session *session = open_session(str_text(&lines), false);
        /* Where the result does not depend on the argument there is a gradient: zeros. */
        double gradient;
        bool ran = run(session, 1, "g", NULL, &gradient);
        if (ran && gradient != 0)
            CHECK_STOP("body %d has the gradient %g", i, gradient);
        CHECK(answer(session, 1, "ok") == -1);
        session_free(session);
        str_release(&lines);
    }
}
