/* farewell_test.c - who is answered may go on for a while, and no longer. */

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "server/farewell.h"
#include "tests/unit/test.h"

static int give(struct farewell *farewell)
{
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_INT(send(pair[1], "answer", 6, 0), 6);
    farewell_take(farewell, pair[1]);
    return pair[0];
}

/* Sends until the other side is closed, at most `most` bytes. */
static size_t send_on(int fd, size_t most)
{
    static const char bytes[65536];
    size_t sent = 0;
    while (sent < most) {
        ssize_t n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    return sent;
}

TEST(what_comes_is_read_and_the_answer_stays)
{
    struct error err;
    struct farewell *farewell = farewell_new(&err);
    CHECK(farewell);
    int fd = give(farewell);
    CHECK_INT(send_on(fd, 4 << 20), 4 << 20);
    char text[16];
    CHECK_INT(recv(fd, text, sizeof(text), 0), 6);
    CHECK_INT(recv(fd, text, sizeof(text), 0), 0); /* told that this was all */
    close(fd);
    farewell_free(farewell);
}

TEST(who_sends_without_end_is_closed)
{
    struct error err;
    struct farewell *farewell = farewell_new(&err);
    CHECK(farewell);
    int fd = give(farewell);
    CHECK(send_on(fd, 4 * FAREWELL_BYTES) < 2 * FAREWELL_BYTES);
    close(fd);
    farewell_free(farewell);
}

TEST(who_only_stays_is_closed)
{
    struct error err;
    struct farewell *farewell = farewell_new(&err);
    CHECK(farewell);
    int fd = give(farewell);
    uint64_t began = clock_monotonic_us();
    struct pollfd poll_fd = {.fd = fd};
    CHECK_INT(poll(&poll_fd, 1, 4 * FAREWELL_MS), 1);
    CHECK(poll_fd.revents & POLLHUP);
    CHECK(clock_monotonic_us() - began >= FAREWELL_MS * UINT64_C(1000));
    close(fd);
    farewell_free(farewell);
}

TEST(more_than_there_are_places_are_closed_at_once)
{
    struct error err;
    struct farewell *farewell = farewell_new(&err);
    CHECK(farewell);
    int fds[FAREWELL_MAX + 1];
    for (int i = 0; i <= FAREWELL_MAX; i++)
        fds[i] = give(farewell);
    struct pollfd poll_fd = {.fd = fds[FAREWELL_MAX]};
    CHECK_INT(poll(&poll_fd, 1, 0), 1);
    poll_fd.fd = fds[0];
    CHECK_INT(poll(&poll_fd, 1, 0), 0);
    close(fds[0]);
    for (int i = 1; i <= FAREWELL_MAX; i++)
        close(fds[i]);
    farewell_free(farewell);
}

TEST(an_end_closes_all)
{
    struct error err;
    struct farewell *farewell = farewell_new(&err);
    CHECK(farewell);
    int fd = give(farewell);
    farewell_free(farewell);
    CHECK(send(fd, "x", 1, MSG_NOSIGNAL) < 0);
    CHECK_INT(errno, EPIPE);
    close(fd);
}
