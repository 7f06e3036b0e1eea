/* cluster_remote_test.c - functions called on other devices, over three tasks of this process.
 */

#include "base/str.h"
#include "kernels/list.h"
#include "tests/unit/runtime/functions.h"

#include "tests/unit/runtime/one_session.h"

/* The lines, with a constant `target`. */
static void start(const char *target, const char *lines)
{
    static bool added;
    world = world_new();
    if (!added)
        kernels_add(true);
    added = true;
    cluster = cluster_new(false, false);
    session = open_session(cluster, "s", (struct cluster_options){0});
    builder_text(&world->b, "target", target);
    extend(session, world);
    struct str graph = functions_graph(lines);
    CHECK_OK(cluster_session_extend(session, graph.data, graph.size, &err), &err);
    str_release(&graph);
}

/* Whether some part at `task` has a node of that op. */
static bool runs_at(const char *fetch, const char *op, const char *task)
{
    struct graph *parts[TASKS];
    bool found = false;
    int count = cut_run(&(struct session_run){.fetches = &fetch, .fetches_count = 1}, parts);
    for (int i = 0; i < count; i++) {
        for (int n = 0; n < graph_count(parts[i]); n++) {
            const struct node *node = graph_node(parts[i], n);
            found |= !strcmp(node->op->name, op) && strstr(node->requested_device, task);
        }
        graph_free(parts[i]);
    }
    return found;
}

#define TWICE                                                                                  \
    "def twice(a:float) (r:float)\n"                                                           \
    "  m = Mul(a,a) T=float\n"                                                                 \
    "  ret r m:z:0\n"                                                                          \
    "end\n"                                                                                    \
    "x = Const() dtype=float value=(float:3)\n"
#define CALL "Tin=[float] Tout=[float] f=@twice\n"

/* What the target leaves open is as at the node's own device. */
TEST(the_body_is_where_the_target_says)
{
    static const struct {
        const char *target, *task;
    } cases[] = {
        {"/job:worker/replica:0/task:1/device:CPU:0", "/job:worker/replica:0/task:1"},
        {"/job:ps/task:0", "/job:ps/replica:0/task:0"},
        {"/job:worker/task:1/cpu:0", "/job:worker/replica:0/task:1"},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        start(cases[i].target, TWICE "y = RemoteCall(target,x) " CALL);
        CHECK(fetch_number(session, NULL, 0, "y") == 9);
        CHECK(runs_at("y", "Mul", cases[i].task));
        stop();
    }
}

TEST(a_remote_call_in_a_function)
{
    start("/job:ps/task:0",
          TWICE "def outer(t:string,a:float) (r:float)\n"
                "  c = RemoteCall(t,a) Tin=[float] Tout=[float] f=@twice\n"
                "  n = Neg(c:output:0) T=float\n"
                "  ret r n:y:0\n"
                "end\n"
                "y = PartitionedCall(target,x) Tin=[string,float] Tout=[float] f=@outer\n");
    CHECK(fetch_number(session, NULL, 0, "y") == -9);
    CHECK(runs_at("y", "Mul", "/job:ps/replica:0/task:0"));
    stop();
}

TEST(a_target_that_is_not_there_is_told_as_tensorflow_does)
{
    static const char *const cases[][2] = {
        {"/job:worker/task:7", "node 'y' (RemoteCall): Could not find worker with target: "
                               "/job:worker/replica:0/task:7/device:CPU:0 Available workers: "
                               "/job:worker/replica:0/task:0, /job:ps/replica:0/task:0, "
                               "/job:worker/replica:0/task:1"},
        {"/job:ps/task:0/gpu:0",
         "node 'y' (RemoteCall): /job:ps/replica:0/task:0/device:GPU:0 unknown device."},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        double out;
        start(cases[i][0], TWICE "y = RemoteCall(target,x) " CALL);
        CHECK_FAILS(try_fetch(session, NULL, 0, "y", &out), &err, INVALID);
        CHECK_TEXT(err.text, cases[i][1]);
        stop();
    }
}
