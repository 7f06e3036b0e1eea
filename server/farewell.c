/* farewell.c - one thread that reads a few sockets and forgets what they say. */

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/farewell.h"

#define FAREWELL_EVENTS 64
#define FAREWELL_TURN_BYTES (256 << 10) /* of one socket before others have their turn */
#define FAREWELL_LOOK_MS 500            /* at the time they have had */
#define FAREWELL_STOP UINT32_MAX        /* what epoll says of `wake` */

/* A place for one socket. */
struct leaver {
    int fd; /* -1: free */
    size_t bytes;
    uint64_t until_us; /* monotonic */
};

struct farewell {
    pthread_mutex_t lock; /* guards: places, stopping */
    struct leaver places[FAREWELL_MAX];
    bool stopping;
    int epoll, wake;
    pthread_t thread;
};

/* libmicrohttpd may still have a duplicate, so closing alone would not end the watch. */
static void part(struct farewell *farewell, struct leaver *one)
{
    epoll_ctl(farewell->epoll, EPOLL_CTL_DEL, one->fd, NULL);
    close(one->fd);
    one->fd = -1;
}

/* Reads what is there.  False: its peer has closed, or sends too much. */
static bool read_on(struct leaver *one)
{
    static char bytes[64 << 10]; /* of the thread; nobody reads them */
    size_t most = one->bytes + FAREWELL_TURN_BYTES;
    while (one->bytes < most) {
        ssize_t n = recv(one->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        one->bytes += (size_t)n;
    }
    return one->bytes < FAREWELL_BYTES;
}

static void *farewell_main(void *argument)
{
    struct farewell *farewell = argument;
    struct epoll_event events[FAREWELL_EVENTS];
    pthread_mutex_lock(&farewell->lock);
    while (!farewell->stopping) {
        pthread_mutex_unlock(&farewell->lock);
        int count = epoll_wait(farewell->epoll, events, FAREWELL_EVENTS, FAREWELL_LOOK_MS);
        pthread_mutex_lock(&farewell->lock);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == FAREWELL_STOP)
                continue;
            struct leaver *one = &farewell->places[events[i].data.u32];
            if (one->fd >= 0 && !read_on(one))
                part(farewell, one);
        }
        uint64_t now_us = clock_monotonic_us();
        for (int i = 0; i < FAREWELL_MAX; i++)
            if (farewell->places[i].fd >= 0 && now_us > farewell->places[i].until_us)
                part(farewell, &farewell->places[i]);
    }
    pthread_mutex_unlock(&farewell->lock);
    return NULL;
}

struct farewell *farewell_new(struct error *err)
{
    struct farewell *farewell = alloc_bytes(sizeof(*farewell));
    struct epoll_event stop = {.events = EPOLLIN, .data.u32 = FAREWELL_STOP};
    pthread_mutex_init(&farewell->lock, NULL);
    for (int i = 0; i < FAREWELL_MAX; i++)
        farewell->places[i].fd = -1;
    farewell->epoll = epoll_create1(EPOLL_CLOEXEC);
    farewell->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (farewell->epoll >= 0 && farewell->wake >= 0 &&
        epoll_ctl(farewell->epoll, EPOLL_CTL_ADD, farewell->wake, &stop) == 0 &&
        pthread_create(&farewell->thread, NULL, farewell_main, farewell) == 0)
        return farewell;
    fail(err, EXHAUSTED, "the thread of connections that end did not start");
    if (farewell->epoll >= 0)
        close(farewell->epoll);
    if (farewell->wake >= 0)
        close(farewell->wake);
    pthread_mutex_destroy(&farewell->lock);
    free(farewell);
    return NULL;
}

void farewell_free(struct farewell *farewell)
{
    if (!farewell)
        return;
    pthread_mutex_lock(&farewell->lock);
    farewell->stopping = true;
    pthread_mutex_unlock(&farewell->lock);
    eventfd_write(farewell->wake, 1);
    pthread_join(farewell->thread, NULL);
    for (int i = 0; i < FAREWELL_MAX; i++)
        if (farewell->places[i].fd >= 0)
            part(farewell, &farewell->places[i]);
    close(farewell->epoll);
    close(farewell->wake);
    pthread_mutex_destroy(&farewell->lock);
    free(farewell);
}

/* A free place, or NULL; holds the lock. */
static struct leaver *find_place(struct farewell *farewell)
{
    for (int i = 0; i < FAREWELL_MAX; i++)
        if (farewell->places[i].fd < 0)
            return &farewell->places[i];
    return NULL;
}

void farewell_take(struct farewell *farewell, int fd)
{
    shutdown(fd, SHUT_WR);
    pthread_mutex_lock(&farewell->lock);
    struct leaver *one = find_place(farewell);
    if (one) {
        struct epoll_event event = {.events = EPOLLIN,
                                    .data.u32 = (uint32_t)(one - farewell->places)};
        *one = (struct leaver){fd, 0, clock_monotonic_us() + FAREWELL_MS * UINT64_C(1000)};
        if (epoll_ctl(farewell->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
            part(farewell, one);
    } else {
        close(fd);
    }
    pthread_mutex_unlock(&farewell->lock);
}
