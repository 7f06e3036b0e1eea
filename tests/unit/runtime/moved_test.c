/* moved_test.c - a task that was placed anew tells the others where it is. */
/* Faults of docs/reliability.md: F48. */

#include <unistd.h>

#include "base/error.h"
#include "proto/rpc.h"
#include "runtime/worker/moved.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"
#include "tests/unit/test.h"

#define TASK "/job:worker/replica:0/task:1"

static struct error err;
/* Of nothing but this test, with its key. */
static const char certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBZzCCARmgAwIBAgIUdI75EzpuCbxeFUWmMbBLjpsWTmswBQYDK2VwMBoxGDAW\n"
    "BgNVBAMMD3Rhc2tzLnRyYWlueWFyZDAgFw0yNjExMjUyMjEwNTZaGA8yMTI2MTEw\n"
    "MTIyMTA1NlowGjEYMBYGA1UEAwwPdGFza3MudHJhaW55YXJkMCowBQYDK2VwAyEA\n"
    "OWFk1y8JP/2gfyN8Y0nE30QUAV++9XvdqRC8JTr3PpKjbzBtMB0GA1UdDgQWBBSg\n"
    "9tdCluAJPFahiymIseXbXWITPTAfBgNVHSMEGDAWgBSg9tdCluAJPFahiymIseXb\n"
    "XWITPTAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCD3Rhc2tzLnRyYWlueWFy\n"
    "ZDAFBgMrZXADQQAIqGlK4ez8/UbadzYEHdKmWlyUB1CUmsnR0fLzs4Ep6TJDC7T9\n"
    "F5OqvlZVODgwkrQpbjrR0hs65tMWLbVOjFoD\n"
    "-----END CERTIFICATE-----\n";
static const char key[] = "-----BEGIN PRIVATE KEY-----\n"
                          "MC4CAQAwBQYDK2VwBCIEIKytlpoNtsXdGvkVIAxVa2SO0fvemDtcKXajm76DTnnO\n"
                          "-----END PRIVATE KEY-----\n";
static const struct rpc_tls tls = {
    .ca = certificate, .certificate = certificate, .key = key, .name = RPC_TASKS_NAME};

/* One task of a cluster that serves, with a certificate of its attempt. */
struct place {
    struct worker *worker;
    struct service *service;
    struct rpc_server *server;
    char address[64];
};

static void place_open(struct place *place, const char *job, int task)
{
    place->worker =
        worker_new(&(struct worker_options){.job = job, .task = task, .threads = 1}, &err);
    CHECK_OK(place->worker, &err);
    place->service = service_new(place->worker);
    const struct rpc_server_options options = {
        .address = "127.0.0.1:0", .message_bytes_max = 1 << 20, .tls = &tls};
    place->server = rpc_server_start(&options, service_methods, place->service, &err);
    CHECK_OK(place->server, &err);
    snprintf(place->address, sizeof(place->address), "%s", rpc_server_address(place->server));
}

static void place_close(struct place *place)
{
    rpc_server_stop(place->server);
    service_free(place->service);
    worker_free(place->worker);
}

static uint64_t who(struct worker_link *link)
{
    struct device devices[8];
    int count;
    CHECK_OK(link->kind->status(link, devices, 8, &count, &err), &err);
    return devices[0].incarnation;
}

struct answer {
    _Atomic int came; /* 1: well; 2: not */
};

static void told(void *arg, bool ok)
{
    ((struct answer *)arg)->came = ok ? 1 : 2;
}

/* As the task itself says it over a link to the one that is told. */
static bool tell(struct worker_link *link, int64_t epoch, const char *address)
{
    struct answer answer = {0};
    moved_tell(link, &(struct moved){TASK, epoch, address}, told, &answer);
    for (int i = 0; i < 2000 && !answer.came; i++)
        usleep(5000);
    CHECK(answer.came);
    return answer.came == 1;
}

TEST(a_link_leads_to_the_latest_of_a_task)
{
    struct place ps, before, after;
    place_open(&ps, "ps", 0);
    place_open(&before, "worker", 1);
    place_open(&after, "worker", 1);
    struct worker_link *to_worker = link_rpc_new(TASK, before.address, &tls, &err);
    struct worker_link *to_ps =
        link_rpc_new("/job:ps/replica:0/task:0", ps.address, &tls, &err);
    CHECK(to_worker && to_ps);
    worker_set_peers(ps.worker, &to_worker, 1);
    uint64_t first = who(to_worker);

    CHECK(tell(to_ps, 9, after.address));
    uint64_t second = who(to_worker);
    CHECK(second != first);
    CHECK(tell(to_ps, 9, after.address)); /* said again */
    CHECK(who(to_worker) == second);
    CHECK(!tell(to_ps, 8, before.address)); /* fenced */
    CHECK(who(to_worker) == second);
    CHECK(!tell(to_ps, 10, "nowhere")); /* no address */
    CHECK(who(to_worker) == second);
    struct worker_link *links[] = {to_worker};
    CHECK_FAILS(moved_take(links, 1, &(struct moved){TASK, 8, before.address}, &err), &err,
                PRECONDITION);
    CHECK_FAILS(moved_take(links, 1, &(struct moved){"/job:x", 11, before.address}, &err), &err,
                NOT_FOUND);
    CHECK(tell(to_ps, 11, before.address));
    CHECK(who(to_worker) == first);

    link_free(to_ps);
    place_close(&ps);
    link_free(to_worker);
    place_close(&before);
    place_close(&after);
}

TEST(in_the_clear_nobody_is_believed)
{
    struct worker_link *link = link_rpc_new(TASK, "127.0.0.1:1", NULL, &err);
    CHECK(link);
    CHECK_FAILS(moved_take(&link, 1, &(struct moved){TASK, 9, "127.0.0.1:2"}, &err), &err,
                DENIED);
    link_free(link);
}
