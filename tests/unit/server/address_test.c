/* address_test.c - what a user's URL may reach. */

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/address.h"
#include "tests/unit/test.h"

static bool is_public(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return address_is_public((struct sockaddr *)&v4);
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
        CHECK_STOP("%s is no address", text);
    return address_is_public((struct sockaddr *)&v6);
}

TEST(addresses_of_the_internet_are_public)
{
    static const char *const good[] = {
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.3.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2001:200::1",
    };
    for (int i = 0; i < ARRAY_LEN(good); i++)
        if (!is_public(good[i]))
            CHECK_STOP("%s is refused", good[i]);
}

TEST(addresses_that_only_we_can_reach_are_not)
{
    static const char *const bad[] = {
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "203.0.113.9",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "fe80::1",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2001::1",
        "64:ff9b:1::1",
        "3fff::1",
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        if (is_public(bad[i]))
            CHECK_STOP("%s is let through", bad[i]);
}

TEST(other_families_are_not_public)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    CHECK(!address_is_public((struct sockaddr *)&path));
}
