/* connection_test.c - whose sockets are at the ends of a connection. */

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/connection.h"
#include "tests/unit/test.h"

/* A connection over loopback by IPv4 or by sockets for both families; where it leads to. */
static struct endpoint connect_pair(int family, int *near, int *far)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&address;
    socklen_t size = sizeof(address);
    struct endpoint peer;
    if (family == AF_INET) {
        ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        memset(ipv6->sin6_addr.s6_addr + 10, 0xff, 2);
        memcpy(ipv6->sin6_addr.s6_addr + 12, (unsigned char[]){127, 0, 0, 1}, 4);
    }
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), both = 0;
    if (family == AF_INET6)
        CHECK(!setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both)));
    CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)) &&
          !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&address, &size));
    *near = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(!connect(*near, (struct sockaddr *)&address, size));
    *far = accept(listener, NULL, NULL);
    CHECK(*far >= 0);
    CHECK(connection_endpoint((struct sockaddr *)&address, &peer));
    close(listener);
    return peer;
}

static void leads(int family)
{
    int near, far;
    struct endpoint peer = connect_pair(family, &near, &far);
    pid_t other = fork();
    if (!other) {
        close(near);
        close(far);
        for (;;)
            pause();
    }
    CHECK(connection_leads_to(&peer, getpid()));
    for (int i = 0; connection_leads_to(&peer, other) && i < 5000; i++)
        usleep(1000); /* until it has closed them */
    CHECK(!connection_leads_to(&peer, other));
    CHECK(!connection_leads_to(&peer, INT32_MAX)); /* no process */
    peer.port ^= 1;
    CHECK(!connection_leads_to(&peer, getpid()));
    peer.port ^= 1;
    close(near);
    close(far);
    CHECK(!connection_leads_to(&peer, getpid()));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

TEST(connection_leads_to_who_has_its_other_end)
{
    leads(AF_INET);
    leads(AF_INET6);
}

TEST(connection_endpoints_are_of_the_internet)
{
    const struct sockaddr local = {.sa_family = AF_UNIX};
    struct endpoint out;
    CHECK(!connection_endpoint(&local, &out));
}
