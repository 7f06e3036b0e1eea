/* sockets.c - asks the kernel for its TCP sockets. */

#include "scheduler/agent/sockets.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"

#define WAIT_S 1 /* for the next part of the kernel's answer, which is there at once */
#define ANSWER_BYTES (64 << 10)

enum { TIME_WAIT = 6, CLOSED = 7, LISTENING = 10 }; /* as in the kernel's net/tcp_states.h */

static bool ask(int fd, int family)
{
    const struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 wanted;
    } question = {
        .head = {.nlmsg_len = sizeof(question),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .wanted = {.sdiag_family = (uint8_t)family,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                   .idiag_states = ~(1U << TIME_WAIT | 1U << CLOSED | 1U << LISTENING)},
    };
    return send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question);
}

/* Older kernels tell less of a connection: what they do not, stays 0. */
static void take_info(const struct nlmsghdr *message, struct socket_bytes *out)
{
    const char *end = (const char *)message + message->nlmsg_len;
    const char *at =
        (const char *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(struct inet_diag_msg));
    while (end - at >= (ptrdiff_t)sizeof(struct rtattr)) {
        struct rtattr attribute;
        memcpy(&attribute, at, sizeof(attribute));
        if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > end - at)
            return;
        if (attribute.rta_type == INET_DIAG_INFO) {
            struct tcp_info info = {0};
            size_t size = attribute.rta_len - sizeof(attribute);
            memcpy(&info, at + sizeof(attribute), size < sizeof(info) ? size : sizeof(info));
            out->received = (int64_t)info.tcpi_bytes_received;
            out->sent = (int64_t)info.tcpi_bytes_acked;
            return;
        }
        at += RTA_ALIGN(attribute.rta_len);
    }
}

static void take(struct sockets *sockets, const struct nlmsghdr *message)
{
    const struct inet_diag_msg *found = NLMSG_DATA(message);
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*found)) || !found->idiag_inode ||
        sockets->count == SOCKETS_MAX)
        return;
    struct socket_bytes one = {.cookie = (uint64_t)found->id.idiag_cookie[1] << 32 |
                                         found->id.idiag_cookie[0],
                               .inode = found->idiag_inode};
    take_info(message, &one);
    sockets->list =
        alloc_grow(sockets->list, sockets->count, &sockets->capacity, sizeof(*sockets->list));
    sockets->list[sockets->count++] = one;
}

/* Reads the answer to its end; false when there is none. */
static bool take_all(struct sockets *sockets, int fd)
{
    bool done = false, ok = true;
    char *bytes = alloc_bytes(ANSWER_BYTES);
    while (!done && ok) {
        ssize_t got = recv(fd, bytes, ANSWER_BYTES, 0);
        ok = got > 0;
        unsigned left = ok ? (unsigned)got : 0;
        for (const struct nlmsghdr *message = (const struct nlmsghdr *)bytes;
             NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
            done = done || message->nlmsg_type == NLMSG_DONE;
            ok = ok && message->nlmsg_type != NLMSG_ERROR;
            if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY)
                take(sockets, message);
        }
    }
    free(bytes);
    return ok;
}

static int by_inode(const void *a, const void *b)
{
    uint32_t left = ((const struct socket_bytes *)a)->inode,
             right = ((const struct socket_bytes *)b)->inode;
    return (left > right) - (left < right);
}

void sockets_look(struct sockets *sockets)
{
    const struct timeval wait = {.tv_sec = WAIT_S};
    *sockets = (struct sockets){0};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    sockets->known = ask(fd, AF_INET) && take_all(sockets, fd);
    if (sockets->known && ask(fd, AF_INET6)) /* a machine may be without */
        (void)take_all(sockets, fd);
    close(fd);
    if (sockets->count)
        qsort(sockets->list, (size_t)sockets->count, sizeof(*sockets->list), by_inode);
}

void sockets_release(struct sockets *sockets)
{
    free(sockets->list);
    *sockets = (struct sockets){0};
}

const struct socket_bytes *sockets_find(const struct sockets *sockets, uint32_t inode)
{
    const struct socket_bytes wanted = {.inode = inode};
    return sockets->count ? bsearch(&wanted, sockets->list, (size_t)sockets->count,
                                    sizeof(*sockets->list), by_inode)
                          : NULL;
}
