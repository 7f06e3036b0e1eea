/* fabric_steps_test.c - steps over two tasks that are not near: large tensors go over the
 * fabric. */

#include "runtime/worker/fabric.h"
#include "runtime/worker/remote.h"
#include "tests/unit/runtime/exchange.h"

/* What the others know of the ps. */
static enum peer peer_of_ps(void)
{
    struct remote *remote = (struct remote *)cluster->links[0];
    pthread_mutex_lock(&remote->lock);
    enum peer peer = remote->peer;
    pthread_mutex_unlock(&remote->lock);
    return peer;
}

static void run_step(const struct tensor *in)
{
    const char *feed = "x", *fetch = "far";
    struct tensor out;
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
    CHECK(tensor_equal(in, &out));
    tensor_release(&out);
}

TEST(large_tensors_of_steps_go_over_the_fabric)
{
    CHECK_INT(setenv(NEAR_VARIABLE, "no", 1), 0);
    CHECK_INT(setenv("UCX_TLS", "tcp,self", 1), 0);
    CHECK_INT(setenv("UCX_LOG_LEVEL", "fatal", 1), 0);
#ifdef __SANITIZE_THREAD__
    skip(); /* UCX's threads and what they share are not told to it */
#endif
    if (!fabric_open(&err)) {
        CHECK_INT(err.code, NOT_FOUND);
        skip();
    }
    start();
    struct edge x = placeholder(world, "x", F32);
    on(2, node1(world, "Neg", "far", on(0, node1(world, "Neg", "ps", x))));
    extend(session, world);
    struct tensor in;
    CHECK_OK(tensor_init(&in, F32, &SHAPE(1500, 1000), &err), &err);
    for (int64_t k = 0; k < in.count; k++)
        ((float *)in.data)[k] = (float)k;
    for (int i = 0; i < 200 && peer_of_ps() != PEER_FABRIC; i++) {
        run_step(&in);
        usleep(10000);
    }
    CHECK_INT((int)peer_of_ps(), PEER_FABRIC);
    for (int i = 0; i < 20; i++)
        run_step(&in);
    CHECK_INT((int)peer_of_ps(), PEER_FABRIC);
    /* Each loan has been given back. */
    for (int i = 0; i < 500 && worker_lent_count(cluster->workers[0]); i++)
        usleep(10000);
    CHECK_INT(worker_lent_count(cluster->workers[0]), 0);
    tensor_release(&in);
    stop();
    fabric_close();
}
