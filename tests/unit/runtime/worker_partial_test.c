/* worker_partial_test.c - parts that a master runs in several calls. */

#include <inttypes.h>

#include "base/clock.h"
#include "runtime/tensor.h"
#include "tests/unit/runtime/cluster.h"

static struct world *world;
static struct cluster *cluster;
static struct worker_link *home;
static char handle[WORKER_HANDLE_BYTES];

enum { STEP = 41 };
enum { OPEN = -1 };

/* One call, until it is answered. */
struct call {
    struct worker_run run;
    struct tensor in[2], out[2];
    char keys[4][300];
    const char *sends[2], *receives[2];
    int code; /* OPEN, or how it ended */
    char text[1000];
};

static const char *key_of(char out[300], const char *name)
{
    const struct device *device = worker_device(cluster->workers[1]);
    snprintf(out, 300, "%s;%016" PRIx64 ";%s;%s;0:0", device->name, device->incarnation,
             device->name, name);
    return out;
}

static void answered(struct worker_run *run, const struct error *error)
{
    struct call *call = run->arg;
    if (error)
        snprintf(call->text, sizeof(call->text), "%s", error->text);
    __atomic_store_n(&call->code, error ? (int)error->code : OK, __ATOMIC_RELEASE);
}

/* Feeds and fetches by name; NULL: none. */
static void begin_call(struct call *call, int64_t step, const char *feed, double value,
                       const char *fetch)
{
    *call = (struct call){.code = OPEN};
    call->run = (struct worker_run){.session = "s",
                                    .graph = handle,
                                    .step_id = step,
                                    .partial = true,
                                    .sends = call->in,
                                    .send_keys = call->sends,
                                    .sends_count = feed ? 1 : 0,
                                    .received = call->out,
                                    .receive_keys = call->receives,
                                    .receives_count = fetch ? 1 : 0,
                                    .done = answered,
                                    .arg = call};
    if (feed) {
        call->in[0] = number(F32, value);
        call->sends[0] = key_of(call->keys[0], feed);
    }
    if (fetch)
        call->receives[0] = key_of(call->keys[1], fetch);
}

static int result(struct call *call)
{
    int code;
    for (int i = 0; i < 5000; i++) {
        code = __atomic_load_n(&call->code, __ATOMIC_ACQUIRE);
        if (code != OPEN)
            break;
        usleep(1000);
    }
    tensor_release(&call->in[0]);
    return code;
}

static int go_on(int64_t step, const char *feed, double value, const char *fetch, bool last,
                 double *out)
{
    struct call call;
    begin_call(&call, step, feed, value, fetch);
    call.run.last = last;
    home->kind->run_graph(home, &call.run);
    int code = result(&call);
    if (code == OK && fetch) {
        *out = tensor_number(&call.out[0], 0);
        tensor_release(&call.out[0]);
    }
    if (code != OK)
        (void)fail(&err, (enum error_code)code, "%s", call.text);
    return code;
}

/* A node that meets the client at the worker's rendezvous. */
static struct edge client_end(const char *op, const char *type_name, const char *node,
                              const char *tensor, const struct edge *value)
{
    const struct device *device = worker_device(cluster->workers[1]);
    const struct attr attrs[] = {
        attr_type(type_name, F32),
        attr_string("tensor_name", tensor),
        attr_string("send_device", device->name),
        attr_int("send_device_incarnation", (int64_t)device->incarnation),
        attr_string("recv_device", device->name),
        attr_bool("client_terminated", true),
    };
    return builder_add(&world->b, op, node, value, value ? 1 : 0, attrs, ARRAY_LEN(attrs));
}

static struct edge fed(const char *name)
{
    return client_end("_Recv", "tensor_type", name, name, NULL);
}

static void fetched(const char *name, struct edge value)
{
    char node[64];
    snprintf(node, sizeof(node), "send_%s", name);
    client_end("_Send", "T", node, name, &value);
}

/* ab = a + b, abc = ab + c */
static void start(bool over_rpc)
{
    struct str graph = {0};
    world = world_new();
    cluster = cluster_new(false, over_rpc);
    home = cluster->links[1];
    struct edge ab = node2(world, "AddV2", "sum", fed("a"), fed("b"));
    fetched("ab", ab);
    fetched("abc", node2(world, "AddV2", "all", ab, fed("c")));
    fetched("waited", node1(world, "Wait", "wait", fed("w")));
    CHECK_OK(builder_ok(&world->b), &err);
    graph_export(world->graph, false, 0, &graph);
    CHECK_OK(home->kind->create_session(home, "s", false, &err), &err);
    CHECK_OK(home->kind->register_graph(home, "s", graph.data, graph.size, 0, handle, &err),
             &err);
    str_release(&graph);
}

static void stop(void)
{
    cluster_free(cluster);
    world_free(world);
}

static void some_calls(bool over_rpc)
{
    double out = 0;
    start(over_rpc);
    for (int64_t step = STEP; step < STEP + 3; step++) {
        struct call last;
        CHECK_INT(go_on(step, "a", 1, NULL, false, NULL), OK);
        CHECK_INT(go_on(step, "b", 2, "ab", false, &out), OK);
        CHECK(out == 3);
        CHECK_INT(go_on(step, "w", 5, NULL, false, NULL), OK);
        begin_call(&last, step, "c", 4, "abc");
        last.run.last = true;
        home->kind->run_graph(home, &last.run);
        await_waits(1);
        CHECK_INT(__atomic_load_n(&last.code, __ATOMIC_ACQUIRE), OPEN); /* its plan waits */
        end_wait(0);
        CHECK_INT(result(&last), OK);
        CHECK(tensor_number(&last.out[0], 0) == 7);
        tensor_release(&last.out[0]);
        home->kind->cleanup_graph(home, step);
    }
    stop();
}

TEST(each_call_gives_and_takes_its_own)
{
    some_calls(false);
}

TEST(each_call_over_rpc_gives_and_takes_its_own)
{
    some_calls(true);
}

/* What no node sends is not waited for when the plan has ended, whichever is first. */
TEST(what_is_not_sent)
{
    start(false);
    struct call early;
    begin_call(&early, STEP, "a", 1, "nothing");
    home->kind->run_graph(home, &early.run);
    CHECK_INT(go_on(STEP, "b", 2, NULL, false, NULL), OK);
    CHECK_INT(go_on(STEP, "w", 2, NULL, false, NULL), OK);
    await_waits(1);
    CHECK_INT(__atomic_load_n(&early.code, __ATOMIC_ACQUIRE), OPEN);
    CHECK_INT(go_on(STEP, "c", 2, NULL, false, NULL), OK);
    end_wait(0);
    CHECK_INT(result(&early), INVALID);
    CHECK(strstr(early.text, "no node of the graph sends /job:worker"));
    CHECK_INT(go_on(STEP, NULL, 0, "nothing", true, NULL), INVALID);
    CHECK_INT(go_on(STEP + 1, NULL, 0, "a;b", false, NULL), INVALID);
    stop();
}

/* Ends the step under a call that waits for a fetch, and one that waits for the plan. */
TEST(a_cleanup_in_between_ends_it)
{
    start(true);
    struct call fetches, last;
    begin_call(&fetches, STEP, "a", 1, "ab");
    home->kind->run_graph(home, &fetches.run);
    CHECK_INT(go_on(STEP, "w", 1, NULL, false, NULL), OK);
    await_waits(1);
    begin_call(&last, STEP, NULL, 0, NULL);
    last.run.last = true;
    home->kind->run_graph(home, &last.run);
    usleep(10000);
    CHECK_INT(__atomic_load_n(&last.code, __ATOMIC_ACQUIRE), OPEN);
    home->kind->cleanup_graph(home, STEP);
    CHECK_INT(result(&fetches), ABORTED);
    CHECK_INT(result(&last), ABORTED);
    CHECK(strstr(last.text, "[_Derived_]"));
    CHECK_INT(go_on(STEP, "b", 1, NULL, false, NULL), ABORTED);
    CHECK(strstr(err.text, "Cleanup 41"));
    stop();
}

TEST(a_plan_that_cannot_begin)
{
    start(false);
    struct call call;
    begin_call(&call, STEP, "a", 1, "ab");
    call.run.graph = "00000000000000ff";
    home->kind->run_graph(home, &call.run);
    CHECK_INT(result(&call), ABORTED);
    CHECK(strstr(call.text, "Graph handle is not found: 00000000000000ff"));
    stop();
}

/* TensorFlow's masters register what lacks a feed, and hear of it when it runs. */
TEST(a_graph_that_lacks_a_feed)
{
    start(false);
    struct str graph = {0};
    placeholder(world, "unfed", F32);
    graph_export(world->graph, false, 0, &graph);
    CHECK_OK(home->kind->register_graph(home, "s", graph.data, graph.size, 0, handle, &err),
             &err);
    str_release(&graph);
    CHECK_INT(go_on(STEP, "a", 1, "ab", false, NULL), INVALID);
    CHECK(strstr(err.text, "You must feed a value for placeholder tensor 'unfed'"));
    CHECK(strstr(err.text, "\n\t [[{{node unfed}}]]"));
    stop();
}

/* A master that is gone between two calls: its plan does not wait for ever. */
TEST(nobody_goes_on)
{
    start(false);
    clock_freeze(UINT64_C(1000000));
    CHECK_INT(go_on(STEP, "a", 1, NULL, false, NULL), OK);
    clock_freeze(UINT64_C(1000000) + UINT64_C(3599) * 1000000);
    CHECK_INT(go_on(STEP + 1, "a", 1, NULL, false, NULL), OK);
    CHECK_INT(go_on(STEP, "b", 1, NULL, false, NULL), OK);
    clock_freeze(UINT64_C(1000000) + UINT64_C(7199) * 1000000);
    CHECK_INT(go_on(STEP + 2, "a", 1, NULL, false, NULL), OK);
    CHECK_INT(go_on(STEP, "c", 1, NULL, false, NULL), ABORTED);
    CHECK_INT(go_on(STEP + 1, "b", 1, NULL, false, NULL), ABORTED);
    CHECK_INT(go_on(STEP + 2, "b", 1, NULL, false, NULL), OK);
    clock_freeze(0);
    CHECK_OK(home->kind->delete_session(home, "s", &err), &err);
    CHECK_INT(go_on(STEP + 2, "c", 1, NULL, false, NULL), ABORTED);
    stop();
}
