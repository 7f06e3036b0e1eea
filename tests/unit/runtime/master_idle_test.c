/* master_idle_test.c - how long a master has had no client. */

#include "base/clock.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/master/master.h"
#include "runtime/resource.h"
#include "runtime/worker/link.h"
#include "runtime/worker/worker.h"
#include "tests/unit/test.h"

static void pass(uint64_t us)
{
    for (uint64_t end = clock_monotonic_us() + us; clock_monotonic_us() < end;) {
    }
}

TEST(what_uses_a_session_uses_its_master)
{
    struct error err;
    char handle[MASTER_HANDLE_BYTES];
    struct cancel *cancel = cancel_new();
    struct resources *resources = resources_new("worker");
    struct worker *worker = worker_new(
        &(struct worker_options){.job = "worker", .threads = 1, .resources = resources}, &err);
    CHECK_OK(worker, &err);
    struct worker_link *link = link_local_new(worker);
    struct master *master = master_new(&(struct master_options){.links = &link,
                                                                .links_count = 1,
                                                                .device = worker_device(worker),
                                                                .threads = 1,
                                                                .resources = resources});
    pass(30000);
    CHECK(master_idle_us(master) >= 30000);
    CHECK_OK(master_create(master, &(struct master_config){0}, "", 0, cancel, handle, &err),
             &err);
    CHECK(master_idle_us(master) < 30000);
    struct master_session *session = master_find(master, handle, &err);
    CHECK_OK(session, &err);
    pass(30000);
    CHECK_INT(master_idle_us(master), 0); /* a call has it */
    master_release(session);
    CHECK(master_idle_us(master) < 30000);
    pass(30000);
    CHECK(master_idle_us(master) >= 30000); /* open, and unused */
    CHECK_OK(master_close(master, handle, &err), &err);
    CHECK(master_idle_us(master) < 30000);
    master_free(master);
    cancel_free(cancel);
    link_free(link);
    worker_free(worker);
    resources_free(resources);
}
