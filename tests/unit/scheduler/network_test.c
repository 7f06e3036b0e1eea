/* network_test.c - what goes over the connections of processes, as the kernel counts it. */

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "scheduler/agent/network.h"
#include "tests/unit/test.h"

#define SENT 1000000
#define ANSWERED 300000
/* The packets that begin and end a connection count as a byte each. */
#define CHECK_NEAR(actual, wanted) assert_in_range((actual), (wanted), (wanted) + 6)

static void move(int fd, size_t size, bool out)
{
    static char bytes[100000];
    while (size) {
        size_t part = size < sizeof(bytes) ? size : sizeof(bytes);
        ssize_t done = out ? send(fd, bytes, part, MSG_NOSIGNAL) : recv(fd, bytes, part, 0);
        if (done <= 0)
            _exit(1);
        size -= (size_t)done;
    }
}

/* A task: for each byte it is told, one connection more, open until the next; by two processes.
 */
static void run_task(int family, int port, int orders, int ready)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_addr = in6addr_loopback,
                               .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons((uint16_t)port)};
    int last = -1;
    char order;
    while (read(orders, &order, 1) == 1) {
        if (last >= 0)
            close(last);
        last = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(last,
                    family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four,
                    family == AF_INET6 ? sizeof(six) : sizeof(four)))
            _exit(1);
        move(last, SENT, true);
        move(last, ANSWERED, false);
        if (write(ready, "x", 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static bool look(struct network *network, const pid_t *pids, int count)
{
    struct sockets sockets;
    sockets_look(&sockets);
    bool known = network_look(network, &sockets, pids, count);
    sockets_release(&sockets);
    return known;
}

/* Until the last acknowledgement has come. */
static void check_total(struct network *network, const pid_t *pids, int count, int connections)
{
    for (int i = 0; i < 200 && network->sent_bytes < (int64_t)connections * SENT; i++) {
        CHECK(look(network, pids, count));
        usleep(5000);
    }
    CHECK(look(network, pids, count));
    CHECK_NEAR(network->sent_bytes, (int64_t)connections * SENT);
    CHECK_NEAR(network->received_bytes, (int64_t)connections * ANSWERED);
}

static void check_family(int family)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    int orders[2], ready[2], listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char said;
    struct network network = {0};
    CHECK(listener >= 0 && listen(listener, 4) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    int port = ntohs(family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                        : ((struct sockaddr_in *)&address)->sin_port);
    CHECK(pipe(orders) == 0 && pipe(ready) == 0);
    pid_t task = fork();
    if (task == 0) {
        close(orders[1]);
        run_task(family, port, orders[0], ready[1]);
    }
    int ends[3];
    for (int i = 0; i < 3; i++) {
        CHECK_INT(write(orders[1], "x", 1), 1);
        ends[i] = accept(listener, NULL, NULL);
        move(ends[i], SENT, false);
        move(ends[i], ANSWERED, true);
        CHECK_INT(read(ready[0], &said, 1), 1);
        const pid_t twice[] = {task, task}; /* what two share is no more for it */
        check_total(&network, twice, 2, i + 1);
    }
    CHECK_INT(network.seen_count, 1); /* the others are closed, and stay counted */

    /* The other ends are this process's; what it listens with has carried nothing. */
    struct network own = {0};
    pid_t self = getpid();
    CHECK(look(&own, &self, 1));
    CHECK_NEAR(own.received_bytes, 3 * SENT);

    kill(task, SIGKILL);
    waitpid(task, NULL, 0);
    CHECK(look(&network, &task, 1)); /* gone: as it was */
    CHECK_NEAR(network.received_bytes, 3 * ANSWERED);
    CHECK_INT(network.seen_count, 0);
    for (int i = 0; i < 3; i++)
        close(ends[i]);
    close(listener);
    network_release(&network);
    network_release(&own);
}

TEST(network_counts_what_connections_carry)
{
    struct sockets sockets;
    sockets_look(&sockets);
    bool known = sockets.known;
    sockets_release(&sockets);
    if (!known)
        skip();
    check_family(AF_INET);
}

TEST(network_counts_ipv6_as_well)
{
    struct sockets sockets;
    sockets_look(&sockets);
    bool known = sockets.known;
    sockets_release(&sockets);
    int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool able =
        known && six >= 0 && bind(six, (struct sockaddr *)&loopback, sizeof(loopback)) == 0;
    if (six >= 0)
        close(six);
    if (!able)
        skip();
    check_family(AF_INET6);
}
