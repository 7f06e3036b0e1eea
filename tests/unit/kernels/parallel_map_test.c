/* parallel_map_test.c - functions that run on several elements at once. */

#include <pthread.h>
#include <unistd.h>

#include "kernels/data/workers.h"
#include "runtime/cancel.h"
#include "tests/unit/kernels/world.h"
#include "tests/unit/runtime/functions.h"

static struct error err;

static const int one_int[] = {I64};
static const struct shape one_scalar[] = {{.rank = 0}};

#define LOOKS                                                                                  \
    attr_type_list("output_types", one_int, 1), (struct attr)                                  \
    {                                                                                          \
        .name = "output_shapes", .kind = ATTR_SHAPE, .is_list = true, .count = 1,              \
        .shapes = one_scalar                                                                   \
    }

/* square(x); picky(x), which fails for 5; forever(x), which does not end. */
#define FUNCTIONS                                                                              \
    "def square(x:int64) (r:int64)\n  m = Mul(x,x) T=int64\n  ret r m:z:0\nend\n"              \
    "def picky(x:int64) (r:int64)\n"                                                           \
    "  f = Const() dtype=int64 value=(int64:5)\n"                                              \
    "  d = Sub(x,f:output:0) T=int64\n"                                                        \
    "  q = FloorDiv(x,d:z:0) T=int64\n"                                                        \
    "  i = Identity(x,^q) T=int64\n"                                                           \
    "  ret r i:output:0\nend\n"                                                                \
    "def more(x:int64) (r:bool)\n  l = LessEqual(x,x) T=int64\n  ret r l:z:0\nend\n"           \
    "def same(x:int64) (r:int64)\n  n = Neg(x) T=int64\n  ret r n:y:0\nend\n"                  \
    "def forever(x:int64) (r:int64)\n"                                                         \
    "  w = StatelessWhile(x) T=[int64] cond=@more body=@same\n"                                \
    "  ret r w:output:0\nend\n"

static struct edge number(struct world *w, int64_t value)
{
    return builder_scalar(&w->b, "number", I64, (double)value);
}

/* A session with "next": elements 0 to `stop` through the function; "make" begins anew. */
static struct world *open_world(const char *function, int64_t stop, int64_t calls,
                                const char *deterministic)
{
    struct world *w = world_new(&(struct session_options){.threads = 1});
    struct str text = functions_graph(FUNCTIONS);
    CHECK_OK(graph_import(w->graph, text.data, text.size, &err), &err);
    str_release(&text);
    struct edge range =
        builder_add(&w->b, "RangeDataset", "range",
                    INPUTS(number(w, 0), number(w, stop), number(w, 1)), ATTRS(LOOKS));
    const struct attr_func called = {.name = function};
    const struct attr f = {.name = "f", .kind = ATTR_FUNC, .count = 1, .funcs = &called};
    struct edge map =
        builder_add(&w->b, "ParallelMapDatasetV2", "map", INPUTS(range, number(w, calls)),
                    ATTRS(f, attr_type_list("Targuments", one_int, 0), LOOKS,
                          attr_string("deterministic", deterministic)));
    struct edge iterator =
        builder_add(&w->b, "IteratorV2", "iterator", NO_INPUTS,
                    ATTRS(attr_string("shared_name", ""), attr_string("container", ""), LOOKS));
    builder_add(&w->b, "IteratorGetNext", "next", INPUTS(iterator), ATTRS(LOOKS));
    builder_add(&w->b, "MakeIterator", "make", INPUTS(map, iterator), NO_ATTRS);
    world_begin(w);
    CHECK_OK(world_run(w, "make", NULL, &err), &err);
    return w;
}

/* The next element, -1 when it failed with `err`. */
static int64_t next(struct world *w)
{
    struct tensor out;
    if (!world_run(w, "next:0", &out, &err))
        return -1;
    int64_t value = tensor_i64(&out)[0];
    tensor_release(&out);
    return value;
}

static void check_end(struct world *w)
{
    CHECK_INT(next(w), -1);
    CHECK_INT(err.code, OUT_OF_RANGE);
}

TEST(elements_come_in_order)
{
    static const int64_t calls[] = {1, 2, 7, 1000, -1};
    for (int c = 0; c < ARRAY_LEN(calls); c++) {
        struct world *w = open_world("square", 300, calls[c], "default");
        for (int64_t i = 0; i < 300; i++)
            CHECK_INT(next(w), i * i);
        check_end(w);
        check_end(w);
        world_free(w);
    }
}

TEST(elements_without_order_come_once_each)
{
    bool seen[300] = {false};
    struct world *w = open_world("square", 300, 8, "false");
    for (int64_t i = 0; i < 300; i++) {
        int64_t value = next(w), root = 0;
        while (root * root < value)
            root++;
        CHECK(value >= 0 && root < 300 && root * root == value && !seen[root]);
        seen[root] = true;
    }
    check_end(w);
    world_free(w);
}

/* An error is that of its element, and the others go on. */
TEST(an_error_comes_in_its_turn)
{
    struct world *w = open_world("picky", 40, 4, "default");
    for (int64_t i = 0; i < 40; i++) {
        CHECK_INT(next(w), i == 5 ? -1 : i);
        CHECK(i != 5 || err.code == INVALID);
    }
    check_end(w);
    world_free(w);
}

TEST(an_iterator_ends_with_calls_under_way)
{
    for (int round = 0; round < 20; round++) {
        struct world *w = open_world("square", 1000, 16, "default");
        for (int64_t i = 0; i < round; i++)
            CHECK_INT(next(w), i * i);
        world_free(w);
    }
}

static void *cancel_main(void *cancel)
{
    usleep(20000);
    cancel_now(cancel);
    return NULL;
}

/* Calls that do not end: the run that waits for one is ended, then the iterator. */
TEST(a_run_that_waits_for_a_call_can_be_ended)
{
    struct world *w = open_world("forever", 100, 3, "default");
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        struct tensor out;
        struct cancel *cancel = cancel_new();
        CHECK_INT(pthread_create(&thread, NULL, cancel_main, cancel), 0);
        const struct session_run run = {
            .fetches = (const char *const[]){"next:0"}, .fetches_count = 1, .cancel = cancel};
        CHECK_FAILS(session_run(w->session, &run, &out, &err), &err, CANCELLED);
        CHECK_INT(pthread_join(thread, NULL), 0);
        cancel_free(cancel);
    }
    world_free(w);
}

/* --- the workers --- */

struct job {
    struct kernel_work work;
    int *left; /* __atomic */
};

static void run_job(struct kernel_work *work)
{
    __atomic_sub_fetch(((struct job *)work)->left, 1, __ATOMIC_ACQ_REL);
}

/* All of it is done once: by a thread, or by who took it back. */
TEST(work_is_done_or_taken_back)
{
    enum { JOBS = 500 };
    static struct job jobs[JOBS];
    int left = JOBS, taken = 0;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.work = {.run = run_job}, .left = &left};
        kernel_workers_add(&jobs[i].work);
    }
    for (int i = JOBS; i-- > 0;)
        taken += kernel_workers_withdraw(&jobs[i].work);
    for (int wait = 0; wait < 5000 && __atomic_load_n(&left, __ATOMIC_ACQUIRE) > taken; wait++)
        usleep(1000);
    CHECK_INT(__atomic_load_n(&left, __ATOMIC_ACQUIRE), taken);
    for (int i = 0; i < JOBS; i++)
        CHECK(!kernel_workers_withdraw(&jobs[i].work));
}
