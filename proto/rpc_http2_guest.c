/* rpc_http2_guest.c - a client's connection, and the thread that looks after it. */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/rpc_http2_guest.h"

#define MS_NS UINT64_C(1000000)

enum {
    CONNECT_MS = 20000,
    AWAY_FIRST_MS = 100, /* until it is tried again, at first, */
    AWAY_MAX_MS = 1000,  /* ... and at last */
    TICK_MS = 5000,
    UNACKNOWLEDGED_MS = 15000,
};

void rpc_http2_guest_wake(struct http2_guest *guest)
{
    const uint64_t one = 1;
    ssize_t wrote = write(guest->wake, &one, sizeof(one));
    assert(wrote == (ssize_t)sizeof(one));
}

static void unlock(struct http2_guest *guest)
{
    struct http2_message *over = http2_wire_over(&guest->wire);
    pthread_mutex_unlock(&guest->wire.lock);
    http2_messages_release(over);
}

/* --- connecting --- */

static bool is_closing(struct http2_guest *guest)
{
    pthread_mutex_lock(&guest->wire.lock);
    bool is = guest->closing;
    pthread_mutex_unlock(&guest->wire.lock);
    return is;
}

/* True: it is to end.  What is over meanwhile is told. */
static bool was_woken(struct http2_guest *guest)
{
    uint64_t times;
    ssize_t got = read(guest->wake, &times, sizeof(times));
    assert(got == (ssize_t)sizeof(times));
    pthread_mutex_lock(&guest->wire.lock);
    rpc_http2_client_tell(guest);
    unlock(guest);
    return is_closing(guest);
}

/* -1: `err` says why. */
static int connect_to(struct http2_guest *guest, const struct addrinfo *info, struct error *err)
{
    uint64_t until_ns = clock_monotonic_ns() + CONNECT_MS * MS_NS, now_ns;
    socklen_t size = sizeof(int);
    int failed = 0;
    int to = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (to < 0)
        return error_errno(err, UNAVAILABLE, "no socket"), -1;
    if (connect(to, info->ai_addr, info->ai_addrlen) && errno != EINPROGRESS)
        failed = errno;
    struct pollfd files[] = {{.fd = to, .events = POLLOUT},
                             {.fd = guest->wake, .events = POLLIN}};
    while (!failed && !files[0].revents) {
        now_ns = clock_monotonic_ns();
        if (now_ns >= until_ns)
            failed = ETIMEDOUT;
        else if (poll(files, ARRAY_LEN(files), (int)((until_ns - now_ns) / MS_NS) + 1) > 0 &&
                 files[1].revents && was_woken(guest))
            failed = ECANCELED;
    }
    if (!failed && getsockopt(to, SOL_SOCKET, SO_ERROR, &failed, &size))
        failed = errno;
    if (!failed)
        return to;
    close(to);
    errno = failed;
    return error_errno(err, UNAVAILABLE, "cannot reach %s", guest->base.address), -1;
}

static int connect_any(struct http2_guest *guest, struct error *err)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    *err = (struct error){.code = CANCELLED};
    int to = -1, failed = getaddrinfo(guest->host, guest->port, &wanted, &found);
    if (failed) {
        (void)fail(err, UNAVAILABLE, "cannot reach %s: %s", guest->base.address,
                   gai_strerror(failed));
        return -1;
    }
    for (const struct addrinfo *at = found; at && to < 0 && !is_closing(guest);
         at = at->ai_next) {
        to = connect_to(guest, at, err);
        guest->has_peer = to >= 0 && connection_endpoint(at->ai_addr, &guest->peer);
    }
    freeaddrinfo(found);
    return to;
}

static void be_away(struct http2_guest *guest, const struct error *err)
{
    guest->away_ms = guest->away_ms ? 2 * guest->away_ms : AWAY_FIRST_MS;
    guest->away_ms = guest->away_ms < AWAY_MAX_MS ? guest->away_ms : AWAY_MAX_MS;
    guest->away_until_ns = clock_monotonic_ns() + (uint64_t)guest->away_ms * MS_NS;
    guest->away = *err;
    rpc_http2_client_abandon(guest, err);
}

static void close_wire(struct http2_guest *guest)
{
    http2_wire_close(&guest->wire);
    guest->is_connected = guest->is_greeted = guest->is_leaving = false;
}

/* The connection is no more. */
static void broken(struct http2_guest *guest, const struct error *err)
{
    bool was_never = !guest->is_greeted;
    close_wire(guest);
    if (was_never)
        be_away(guest, err);
    else
        rpc_http2_client_abandon(guest, err);
}

void rpc_http2_guest_greeted(struct http2_guest *guest)
{
    if (guest->is_greeted)
        return;
    guest->is_greeted = true;
    guest->away_ms = 0;
    for (struct made_call *call = guest->calls; call; call = call->next)
        if (!call->is_over)
            rpc_http2_client_submit(call);
}

void rpc_http2_guest_part(struct http2_guest *guest)
{
    if (guest->is_leaving && !guest->calls)
        close_wire(guest);
}

static void use(struct http2_guest *guest, int to)
{
    struct http2_wire *wire = &guest->wire;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = wire};
    const int on = 1, unacknowledged_ms = UNACKNOWLEDGED_MS;
    nghttp2_session_callbacks *callbacks = rpc_http2_answer_callbacks();
    struct error err;
    (void)setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(to, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
                     sizeof(unacknowledged_ms));
    wire->socket = to;
    wire->is_shaken = !guest->tls;
    wire->heard_ns = clock_monotonic_ns();
    guest->is_connected = true;
    if (!callbacks || !http2_wire_open(wire, false, callbacks) ||
        (guest->tls && !http2_tls_open(wire, guest->tls, guest->name)) ||
        epoll_ctl(guest->epoll, EPOLL_CTL_ADD, to, &event)) {
        (void)fail(&err, EXHAUSTED, "no memory to call %s with", guest->base.address);
        broken(guest, &err);
        return;
    }
    if (guest->tls) { /* whose client begins */
        wire->wants_room = true;
        http2_wire_arm(wire);
    } else {
        http2_wire_flush(wire);
    }
}

/* With the lock held, but for the time that it takes. */
static void connect_now(struct http2_guest *guest)
{
    struct error err;
    guest->wants_server = false;
    unlock(guest);
    int to = connect_any(guest, &err);
    pthread_mutex_lock(&guest->wire.lock);
    if (to >= 0)
        use(guest, to);
    else
        be_away(guest, &err);
}

/* --- turns --- */

static void serve(struct http2_guest *guest)
{
    struct http2_wire *wire = &guest->wire;
    struct error err;
    char why[200] = "the connection was closed";
    if (!wire->session)
        return;
    wire->busy = wire->corked = true;
    wire->wants_room = false;
    bool ok = wire->is_shaken || http2_tls_shake(wire, why);
    wire->why = why;
    if (ok && wire->is_shaken)
        ok = http2_wire_take(wire);
    wire->why = NULL;
    wire->corked = false;
    http2_wire_flush(wire);
    wire->busy = false;
    if (ok && (nghttp2_session_want_read(wire->session) ||
               nghttp2_session_want_write(wire->session))) {
        http2_wire_arm(wire);
        return;
    }
    if (ok)
        snprintf(why, sizeof(why), "%s",
                 guest->is_leaving ? "it is shutting down" : "what it says is no HTTP/2");
    (void)fail(&err, UNAVAILABLE, "cannot reach %s: %s", guest->base.address, why);
    broken(guest, &err);
}

static void look_whether_there(struct http2_guest *guest)
{
    struct http2_wire *wire = &guest->wire;
    struct error err;
    if (!wire->session || (guest->quiet && guest->is_greeted))
        return;
    if (http2_wire_is_there(wire, clock_monotonic_ns())) {
        http2_wire_flush(wire);
        return;
    }
    (void)fail(&err, UNAVAILABLE, "cannot reach %s: it has not answered a ping",
               guest->base.address);
    broken(guest, &err);
}

static void *http2_guest_main(void *arg)
{
    struct http2_guest *guest = arg;
    struct epoll_event events[2];
    uint64_t times;
    pthread_mutex_lock(&guest->wire.lock);
    while (!guest->closing) {
        rpc_http2_client_tell(guest); /* by whom it is answered, before another is called */
        rpc_http2_guest_part(guest);
        if (guest->wants_server && !guest->is_connected)
            connect_now(guest);
        int timeout_ms = guest->is_connected ? TICK_MS : -1;
        bool ready = guest->queued || (guest->wants_server && !guest->is_connected);
        unlock(guest);
        int count = epoll_wait(guest->epoll, events, ARRAY_LEN(events), ready ? 0 : timeout_ms);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr != &guest->wake)
                continue;
            ssize_t got = read(guest->wake, &times, sizeof(times));
            assert(got == (ssize_t)sizeof(times));
        }
        pthread_mutex_lock(&guest->wire.lock);
        bool served = false;
        for (int i = 0; i < count; i++)
            if (events[i].data.ptr == &guest->wire)
                serve(guest), served = true;
        if (!served)
            look_whether_there(guest);
    }
    unlock(guest);
    return NULL;
}

bool rpc_http2_guest_start(struct http2_guest *guest)
{
    struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = &guest->wake};
    if (epoll_ctl(guest->epoll, EPOLL_CTL_ADD, guest->wake, &wakes) ||
        pthread_create(&guest->thread, NULL, http2_guest_main, guest))
        return false;
    pthread_setname_np(guest->thread, "rpc");
    return true;
}
