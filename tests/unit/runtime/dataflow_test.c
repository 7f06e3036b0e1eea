/* dataflow_test.c - loops, branches, dead values, kernels that wait, graphs that make no sense.
 */

#include "tests/unit/runtime/flow.h"

/* sum of 0 .. n-1 */
static void build_sum(struct world *w, int parallel)
{
    struct edge zero = scalar(w, "zero", 0);
    struct loop loop = loop_begin(w, "loop", zero, placeholder(w, "n", F32), parallel);
    struct variable_of_loop sum = loop_variable(w, &loop, "sum", zero);
    loop_close(w, &loop, "sum", sum, node2(w, "AddV2", "add", sum.now, loop.i));
    node1(w, "Identity", "result", sum.exit);
    begin(w);
}

TEST(a_loop_runs_as_often_as_its_condition_holds)
{
    struct world *w = world_new();
    build_sum(w, 10);
    for (int n = 0; n < 40; n += 3)
        CHECK(run_number(w, "n", F32, n, "result") == n * (n - 1) / 2);
    CHECK(run_number(w, "n", F32, 1000, "loop/exit") == 1000);
    world_free(w);
}

TEST(however_many_iterations_may_overlap_the_result_is_the_same)
{
    const int parallel[] = {1, 2, 3, 10, 100000};
    for (int i = 0; i < ARRAY_LEN(parallel); i++) {
        struct world *w = world_new_with(true);
        build_sum(w, parallel[i]);
        CHECK(run_number(w, "n", F32, 50, "result") == 1225);
        world_free(w);
    }
}

/* sum over i < n, j < i of j */
static void build_nested(struct world *w)
{
    struct edge zero = scalar(w, "zero", 0);
    struct loop outer = loop_begin(w, "outer", zero, placeholder(w, "n", F32), 3);
    struct variable_of_loop total = loop_variable(w, &outer, "total", zero);
    struct edge start = scalar_after(w, "start", 0, outer.i);
    struct loop inner = loop_begin(w, "inner", start, outer.i, 2);
    struct variable_of_loop sum = loop_variable(w, &inner, "sum", total.now);
    loop_close(w, &inner, "sum", sum, node2(w, "AddV2", "add", sum.now, inner.i));
    loop_close(w, &outer, "total", total, sum.exit);
    node1(w, "Identity", "result", total.exit);
    begin(w);
}

static double nested(int n)
{
    double total = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            total += j;
    return total;
}

TEST(loops_nest)
{
    struct world *w = world_new();
    build_nested(w);
    for (int n = 0; n < 12; n++)
        CHECK(run_number(w, "n", F32, n, "result") == nested(n));
    world_free(w);
}

/* cond(p, x + 1, -x); the branch that is not taken does not run. */
static void build_cond(struct world *w)
{
    struct edge p = placeholder(w, "p", BOOL), x = scalar(w, "x", 5);
    struct edge split = node2(w, "Switch", "split", x, p);
    struct edge pivot = node2(w, "Switch", "pivot", p, p);
    struct edge yes = node1(w, "Identity", "yes", builder_output(pivot, 1));
    struct edge no = node1(w, "Identity", "no", pivot);
    struct edge one = scalar_after(w, "one", 1, yes);
    struct edge then = node2(w, "AddV2", "then", builder_output(split, 1), one);
    struct edge other = after(w, node1(w, "Neg", "else", split), no);
    struct edge merge = node2(w, "Merge", "merge", other, then);
    node1(w, "Identity", "result", merge);
    /* A loop in one branch alone. */
    struct loop loop = loop_begin(w, "loop", scalar_after(w, "zero", 0, yes),
                                  scalar_after(w, "limit", 7, yes), 4);
    node2(w, "Merge", "either", loop.exit, other);
    struct edge trigger =
        after(w, builder_add(&w->b, "ControlTrigger", "trigger", NO_INPUTS, NO_ATTRS), then);
    scalar_after(w, "triggered", 9, trigger);
    scalar_after(w, "switched", 8, split);
    begin(w);
}

TEST(a_branch_that_is_not_taken_is_dead)
{
    struct world *w = world_new();
    struct tensor out, yes = number(BOOL, 1), no = number(BOOL, 0);
    build_cond(w);
    for (int round = 0; round < 3; round++) {
        CHECK(run_number(w, "p", BOOL, 1, "result") == 6);
        CHECK(run_number(w, "p", BOOL, 0, "result") == -5);
        CHECK(run_number(w, "p", BOOL, 1, "merge:1") == 1);
        CHECK(run_number(w, "p", BOOL, 0, "merge:1") == 0);
        CHECK(run_number(w, "p", BOOL, 1, "then") == 6);
        CHECK(run_number(w, "p", BOOL, 1, "one") == 1);
        CHECK_FAILS(run_with(w, "p", &no, "then", &out, &err), &err, INVALID);
        CHECK_FAILS(run_with(w, "p", &no, "one", &out, &err), &err, INVALID);
        CHECK_FAILS(run_with(w, "p", &yes, "else", &out, &err), &err, INVALID);
    }
    tensor_release(&yes);
    tensor_release(&no);
    world_free(w);
}

TEST(a_loop_in_a_branch_that_is_not_taken_gives_a_dead_value)
{
    struct world *w = world_new();
    struct tensor out, no = number(BOOL, 0);
    build_cond(w);
    for (int round = 0; round < 3; round++) {
        CHECK(run_number(w, "p", BOOL, 1, "either") == 7);
        CHECK(run_number(w, "p", BOOL, 0, "either") == -5);
        CHECK_FAILS(run_with(w, "p", &no, "loop/exit", &out, &err), &err, INVALID);
    }
    tensor_release(&no);
    world_free(w);
}

TEST(a_control_trigger_and_control_edges_of_a_switch_are_always_alive)
{
    struct world *w = world_new();
    build_cond(w);
    for (int p = 0; p < 2; p++) {
        CHECK(run_number(w, "p", BOOL, p, "triggered") == 9);
        CHECK(run_number(w, "p", BOOL, p, "switched") == 8);
    }
    world_free(w);
}

/* x grows by one in each iteration, and is added to what does not. */
TEST(an_error_in_an_iteration_ends_the_run_and_leaves_the_session_usable)
{
    struct world *w = world_new();
    struct tensor out, few = number(F32, 1), many = number(F32, 6);
    struct edge first[] = {scalar(w, "zero", 0)};
    struct loop loop = loop_begin(w, "loop", first[0], placeholder(w, "n", F32), 10);
    struct variable_of_loop x = loop_variable(w, &loop, "x", scalar(w, "first", 0));
    struct edge grown = node1(w, "Grow", "grow", x.now);
    loop_close(w, &loop, "x", x, node2(w, "AddV2", "add", x.now, grown));
    begin(w);
    for (int round = 0; round < 3; round++) {
        CHECK_FAILS(run_with(w, "n", &many, "loop/x_exit", &out, &err), &err, INVALID);
        CHECK(strstr(err.text, "'add'") != NULL);
        CHECK(run_number(w, "n", F32, 0, "loop/x_exit") == 0);
    }
    tensor_release(&few);
    tensor_release(&many);
    world_free(w);
}

TEST(memory_of_a_value_is_taken_over_by_its_last_reader)
{
    struct world *w = world_new_with(true);
    struct edge zero = scalar(w, "zero", 0);
    struct loop loop = loop_begin(w, "loop", zero, placeholder(w, "n", F32), 1);
    struct variable_of_loop x = loop_variable(w, &loop, "x", scalar(w, "first", 3));
    loop_close(w, &loop, "x", x,
               node1(w, "Neg", "neg", node2(w, "AddV2", "add", x.now, x.now)));
    begin(w);
    kernels_reused = 0;
    CHECK(run_number(w, "n", F32, 4, "loop/x_exit") == 48);
    CHECK_INT(kernels_reused, 4);
    world_free(w);
}

TEST(equal_runs_give_equal_values_a_hundred_times)
{
    struct world *w = world_new();
    build_nested(w);
    for (int i = 0; i < 100; i++)
        CHECK(run_number(w, "n", F32, 9, "result") == nested(9));
    world_free(w);
}

struct runner {
    struct world *w;
    int n;
    bool ok;
};

static void *run_often(void *arg)
{
    struct runner *runner = arg;
    struct error error;
    runner->ok = true;
    for (int i = 0; i < 50 && runner->ok; i++) {
        struct tensor in, out;
        runner->ok = tensor_init_scalar(&in, F32, runner->n, &error) &&
                     run_with(runner->w, "n", &in, "result", &out, &error);
        runner->ok = runner->ok && tensor_number(&out, 0) == nested(runner->n);
        tensor_release(&in);
        if (runner->ok)
            tensor_release(&out);
    }
    return NULL;
}

TEST(runs_that_overlap_do_not_meet)
{
    struct world *w = world_new();
    build_nested(w);
    pthread_t threads[3];
    struct runner runners[3];
    for (int i = 0; i < 3; i++) {
        runners[i] = (struct runner){.w = w, .n = 5 + 3 * i};
        CHECK_INT(pthread_create(&threads[i], NULL, run_often, &runners[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(runners[i].ok);
    }
    world_free(w);
}

/* --- references --- */

TEST(references_go_through_switches_and_frames)
{
    struct world *w = world_new();
    struct edge v =
        builder_add(&w->b, "VariableV2", "v", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE_SCALAR)));
    struct edge p = placeholder(w, "p", BOOL);
    node2(w, "Assign", "init", v, scalar(w, "two", 2));
    struct edge split = node2(w, "RefSwitch", "split", v, p);
    struct edge add =
        node2(w, "AssignAdd", "add", builder_output(split, 1), scalar(w, "one", 1));
    struct edge merge = node2(w, "RefMerge", "merge", split, add);
    node1(w, "Identity", "read", merge);
    /* for (i = 0; i < 3; i++) v += i */
    struct loop loop = loop_begin(w, "loop", scalar(w, "zero", 0), scalar(w, "three", 3), 1);
    struct edge inside =
        enter(w, "loop/v", v, (struct enter){.frame = "loop", .constant = true, .ref = true});
    struct variable_of_loop x = loop_variable(w, &loop, "x", scalar(w, "x", 0));
    loop_close(w, &loop, "x", x, node2(w, "AssignAdd", "loop/add", inside, loop.i));
    begin(w);

    struct tensor out, yes = number(BOOL, 1);
    CHECK_FAILS(run_with(w, "p", &yes, "read", &out, &err), &err, PRECONDITION);
    CHECK(run_number(w, "p", BOOL, 0, "init") == 2);
    CHECK(run_number(w, "p", BOOL, 0, "read") == 2);
    CHECK(run_number(w, "p", BOOL, 1, "read") == 3);
    CHECK_OK(run_with(w, NULL, NULL, "loop/x_exit", &out, &err), &err);
    CHECK(tensor_number(&out, 0) == 6);
    tensor_release(&out);
    CHECK(run_number(w, "p", BOOL, 0, "read") == 6);
    tensor_release(&yes);
    world_free(w);
}

/* --- kernels that wait --- */

/* Three waits begin before any ends; they end in any order. */
TEST(kernels_that_wait_do_not_hold_up_others)
{
    struct world *w = world_new_with(true);
    struct edge sum = scalar(w, "zero", 0);
    for (int i = 0; i < 3; i++) {
        char name[3][20];
        snprintf(name[0], 20, "x%d", i);
        snprintf(name[1], 20, "wait%d", i);
        snprintf(name[2], 20, "sum%d", i);
        struct edge wait = node1(w, "Wait", name[1], scalar(w, name[0], 1 << i));
        sum = node2(w, "AddV2", name[2], sum, wait);
    }
    begin(w);
    for (int round = 0; round < 4; round++) {
        struct one_run one = {.w = w, .fetch = "sum2"};
        pthread_t thread;
        pthread_create(&thread, NULL, run_once, &one);
        await_waits(3);
        end_wait(round % 3);
        end_wait(round % 2);
        end_wait(0);
        pthread_join(thread, NULL);
        CHECK_OK(one.ok, &one.err);
        CHECK(one.value == 7);
    }
    world_free(w);
}

TEST(iterations_wait_each_for_its_own)
{
    struct world *w = world_new_with(true);
    struct edge zero = scalar(w, "zero", 0);
    struct loop loop = loop_begin(w, "loop", zero, scalar(w, "n", 6), 3);
    struct variable_of_loop sum = loop_variable(w, &loop, "sum", zero);
    loop_close(w, &loop, "sum", sum,
               node2(w, "AddV2", "add", sum.now, node1(w, "Wait", "wait", loop.i)));
    begin(w);
    struct one_run one = {.w = w, .fetch = "loop/sum_exit"};
    pthread_t thread;
    pthread_create(&thread, NULL, run_once, &one);
    await_waits(3); /* as many iterations as may overlap */
    end_wait(2);
    end_wait(1);
    for (int i = 0; i < 4; i++) {
        await_waits(1);
        end_wait(0);
    }
    pthread_join(thread, NULL);
    CHECK_OK(one.ok, &one.err);
    CHECK(one.value == 15);
    world_free(w);
}

TEST(a_failure_wakes_those_that_wait)
{
    struct world *w = world_new_with(true);
    struct edge x = scalar(w, "x", 1);
    struct edge wait = node1(w, "Wait", "wait", x);
    struct edge bad = node2(w, "AddV2", "bad", x, node1(w, "Grow", "grow", x));
    node2(w, "AddV2", "sum", wait, bad);
    begin(w);
    for (int round = 0; round < 3; round++) {
        struct one_run one = {.w = w, .fetch = "sum"};
        run_once(&one);
        CHECK_FAILS(one.ok, &one.err, INVALID);
        CHECK(strstr(one.err.text, "'bad'") != NULL);
    }
    world_free(w);
}

/* --- statistics --- */

TEST(a_traced_run_has_a_row_for_each_call)
{
    struct world *w = world_new_with(true);
    build_sum(w, 10);
    struct tensor in = number(F32, 5), out;
    const char *feed = "n", *fetch = "result";
    struct str statistics = {0};
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .trace = true,
                                    .statistics = &statistics};
    CHECK_OK(session_run(w->session, &run, &out, &err), &err);
    int rows = 0;
    for (size_t i = 0; i + 9 < statistics.size; i++)
        rows += !memcmp(statistics.data + i, "loop/plus", 9) && statistics.data[i - 1] == 9;
    CHECK_INT(rows, 5);
    str_release(&statistics);
    tensor_release(&in);
    tensor_release(&out);
    world_free(w);
}

/* --- graphs that make no sense --- */

static void check_refused(struct world *w, const char *fetch, enum error_code code)
{
    struct tensor out;
    begin(w);
    CHECK_FAILS(run_with(w, NULL, NULL, fetch, &out, &err), &err, code);
    world_free(w);
}

TEST(inputs_from_two_frames_are_refused)
{
    struct world *w = world_new();
    struct edge x = scalar(w, "x", 1);
    struct edge a = enter(w, "a", x, (struct enter){.frame = "a"});
    struct edge b = enter(w, "b", x, (struct enter){.frame = "b"});
    node1(w, "Exit", "out", node2(w, "AddV2", "add", a, b));
    check_refused(w, "out", INVALID);

    w = world_new();
    x = scalar(w, "x", 1);
    a = enter(w, "a", x, (struct enter){.frame = "a"});
    node1(w, "Exit", "out", node2(w, "AddV2", "add", a, x));
    check_refused(w, "out", INVALID);
}

TEST(a_frame_has_one_parent_and_a_name)
{
    struct world *w = world_new();
    struct edge x = scalar(w, "x", 1);
    struct edge a = enter(w, "a", x, (struct enter){.frame = "a"});
    struct edge b = enter(w, "b", a, (struct enter){.frame = "b"});
    struct edge c = enter(w, "c", x, (struct enter){.frame = "b"});
    node1(w, "Exit", "out", node1(w, "Exit", "inner", node2(w, "AddV2", "add", b, c)));
    check_refused(w, "out", INTERNAL);

    w = world_new();
    a = enter(w, "a", scalar(w, "x", 1), (struct enter){.frame = ""});
    node1(w, "Exit", "out", a);
    check_refused(w, "out", INVALID);

    w = world_new();
    node1(w, "Exit", "out", scalar(w, "x", 1));
    check_refused(w, "out", INVALID);
}

TEST(a_loop_that_can_never_end_is_refused)
{
    struct world *w = world_new();
    struct edge in = enter(w, "in", scalar(w, "x", 1), (struct enter){.frame = "f"});
    struct edge merge = node2(w, "Merge", "merge", in, in);
    struct edge next = node1(w, "NextIteration", "next", node1(w, "Neg", "neg", merge));
    graph_set_input(w->graph, merge.from, 1, next);
    node1(w, "Exit", "out", merge);
    check_refused(w, "out", INVALID);
}

/* Neg waits for a NextIteration that waits for Neg. */
TEST(a_loop_without_merge_is_refused)
{
    struct world *w = world_new();
    struct edge x = scalar(w, "x", 1);
    struct edge neg = node1(w, "Neg", "neg", x);
    graph_set_input(w->graph, neg.from, 0, node1(w, "NextIteration", "next", neg));
    check_refused(w, "neg", INVALID);
}

TEST(an_exit_that_gives_twice_is_an_error)
{
    struct world *w = world_new();
    struct loop loop = loop_begin(w, "loop", scalar(w, "zero", 0), scalar(w, "n", 3), 10);
    node1(w, "Exit", "out", loop.i);
    check_refused(w, "out", INVALID);
}

/* As TensorFlow: what comes once may be fetched wherever it is. */
TEST(a_value_inside_of_a_frame_is_fetched_if_it_comes_once)
{
    struct world *w = world_new();
    struct tensor out;
    struct edge in = enter(w, "in", scalar(w, "x", 1), (struct enter){.frame = "f"});
    node1(w, "Neg", "neg", in);
    struct loop loop = loop_begin(w, "loop", scalar(w, "zero", 0), scalar(w, "n", 3), 10);
    (void)loop;
    begin(w);
    CHECK_OK(run_with(w, NULL, NULL, "neg", &out, &err), &err);
    CHECK(tensor_number(&out, 0) == -1);
    tensor_release(&out);
    CHECK_FAILS(run_with(w, NULL, NULL, "loop/plus", &out, &err), &err, INTERNAL);
    CHECK_OK(run_with(w, NULL, NULL, "neg", &out, &err), &err);
    tensor_release(&out);
    world_free(w);
}

TEST(frames_without_loops_pass_values_on)
{
    struct world *w = world_new();
    struct tensor out;
    struct edge x = scalar(w, "x", 4);
    struct edge a = enter(w, "a", x, (struct enter){.frame = "f", .constant = true});
    struct edge b = enter(w, "b", x, (struct enter){.frame = "f"});
    node1(w, "Exit", "out", node2(w, "AddV2", "add", a, b));
    node1(w, "Exit", "plain", a);
    node1(w, "Identity", "unused", enter(w, "never", x, (struct enter){.frame = "g"}));
    builder_add(&w->b, "Merge", "one", INPUTS(x), NO_ATTRS);
    builder_add(&w->b, "Merge", "three", INPUTS(x, x, x), NO_ATTRS);
    node1(w, "NextIteration", "next", x);
    begin(w);
    const char *const fetches[] = {"out", "plain", "one", "three", "next"};
    for (int i = 0; i < ARRAY_LEN(fetches); i++) {
        CHECK_OK(run_with(w, NULL, NULL, fetches[i], &out, &err), &err);
        CHECK(tensor_number(&out, 0) == (i ? 4 : 8));
        tensor_release(&out);
    }
    const char *target = "unused";
    CHECK_OK(session_run(w->session,
                         &(struct session_run){.targets = &target, .targets_count = 1}, NULL,
                         &err),
             &err);
    world_free(w);
}
