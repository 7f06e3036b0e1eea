/* address.c - the tables of addresses that are not public. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "server/address.h"

struct range {
    uint8_t first[16];
    int bits;
};

/* IANA's registry of special purposes (RFC 6890 and after), and multicast. */
static const struct range ranges4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* shared, of carriers */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local: metadata of clouds */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocols */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* relays of 6to4 */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 3},           /* multicast and reserved */
};

/* Of 2000::/3, which alone is public. */
static const struct range ranges6[] = {
    {{0x20, 0x01, 0x00}, 23},       /* protocols: Teredo, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02}, 16},             /* 6to4, with any IPv4 address inside */
    {{0x3f, 0xff, 0x00}, 20},       /* documentation */
};

static bool is_in(const struct range *range, const uint8_t *bytes)
{
    int whole = range->bits / 8;
    int rest = range->bits % 8;
    return memcmp(range->first, bytes, (size_t)whole) == 0 &&
           (!rest || (range->first[whole] ^ bytes[whole]) >> (8 - rest) == 0);
}

static bool is_public4(const uint8_t *bytes)
{
    for (int i = 0; i < ARRAY_LEN(ranges4); i++)
        if (is_in(&ranges4[i], bytes))
            return false;
    return true;
}

static bool is_public6(const uint8_t *bytes)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};   /* ::ffff:0:0/96 */
    static const uint8_t translated[12] = {0x00, 0x64, 0xff, 0x9b}; /* 64:ff9b::/96 */
    if (memcmp(bytes, mapped, 12) == 0 || memcmp(bytes, translated, 12) == 0)
        return is_public4(bytes + 12);
    if (bytes[0] >> 5 != 1)
        return false;
    for (int i = 0; i < ARRAY_LEN(ranges6); i++)
        if (is_in(&ranges6[i], bytes))
            return false;
    return true;
}

bool address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return is_public4(
            (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    if (address->sa_family == AF_INET6)
        return is_public6(
            ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr);
    return false;
}
