/* rpc_http2_host.c - serving gRPC at an address: who connects, and who looks after time. */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/rpc_http2_host.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    BACKLOG = 1024,
    LOOK_S = 5, /* at the latest, while anybody is connected */
    UNACKNOWLEDGED_MS = 15000,
    TELL_MS = 2000, /* for what a host that stops has to say */
};

/* --- lives --- */

static void host_unref(struct http2_host *host)
{
    pthread_mutex_lock(&host->lock);
    bool last = --host->references == 0;
    pthread_mutex_unlock(&host->lock);
    if (!last)
        return;
    pthread_cond_destroy(&host->changed);
    pthread_mutex_destroy(&host->lock);
    http2_tls_free(host->tls);
    free(host->connections);
    free(host->base.address);
    free(host);
}

void rpc_http2_hold(struct http2_connection *connection)
{
    atomic_fetch_add(&connection->references, 1);
}

void rpc_http2_drop(struct http2_connection *connection)
{
    if (atomic_fetch_sub(&connection->references, 1) != 1)
        return;
    assert(!connection->wire.session && !connection->calls);
    pthread_cond_destroy(&connection->changed);
    pthread_mutex_destroy(&connection->wire.lock);
    free(connection->certificate);
    free(connection->peer);
    host_unref(connection->host);
    free(connection);
}

/* --- connections --- */

/* The first whose id is `id` or more: where it is, or would be. */
static int place_of_locked(const struct http2_host *host, uint64_t id)
{
    int from = 0, to = host->connections_count;
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (host->connections[middle]->id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* One reference more; NULL: there is none. */
static struct http2_connection *connection_from(struct http2_host *host, uint64_t id)
{
    pthread_mutex_lock(&host->lock);
    int place = place_of_locked(host, id);
    struct http2_connection *found =
        place < host->connections_count ? host->connections[place] : NULL;
    if (found)
        rpc_http2_hold(found);
    pthread_mutex_unlock(&host->lock);
    return found;
}

static void connection_join(struct http2_connection *connection)
{
    struct http2_host *host = connection->host;
    pthread_mutex_lock(&host->lock);
    host->references++;
    connection->id = ++host->last_id;
    host->connections = alloc_grow(host->connections, host->connections_count,
                                   &host->connections_capacity, sizeof(connection));
    host->connections[host->connections_count++] = connection;
    pthread_mutex_unlock(&host->lock);
}

static void connection_leave(struct http2_connection *connection)
{
    struct http2_host *host = connection->host;
    pthread_mutex_lock(&host->lock);
    int place = place_of_locked(host, connection->id);
    assert(host->connections[place] == connection);
    host->connections_count--;
    memmove(host->connections + place, host->connections + place + 1,
            (size_t)(host->connections_count - place) * sizeof(connection));
    pthread_mutex_unlock(&host->lock);
}

static void hang_up(struct http2_connection *connection, const struct error *why)
{
    rpc_http2_hang_up(connection, why);
    connection_leave(connection);
    rpc_http2_drop(connection);
}

/* What the events of a connection carry: no pointer, as another thread may have hung up on it
 * by then. */
static void *event_of(uint64_t id)
{
    return (void *)(uintptr_t)id;
}

/* "ipv4:127.0.0.1:51234" */
static char *peer_text(const struct sockaddr_storage *from)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)from;
        inet_ntop(AF_INET, &ipv4->sin_addr, text, sizeof(text));
        return alloc_printf("ipv4:%s:%d", text, ntohs(ipv4->sin_port));
    }
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)from;
    inet_ntop(AF_INET6, &ipv6->sin6_addr, text, sizeof(text));
    return IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr)
               ? alloc_printf("ipv4:%s:%d", strrchr(text, ':') + 1, ntohs(ipv6->sin6_port))
               : alloc_printf("ipv6:[%s]:%d", text, ntohs(ipv6->sin6_port));
}

static bool connection_watch(struct http2_connection *connection)
{
    struct http2_wire *wire = &connection->wire;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = wire->watched};
    return !epoll_ctl(wire->epoll, EPOLL_CTL_ADD, wire->socket, &event);
}

static void let_in(struct http2_host *host, int listening)
{
    struct sockaddr_storage from = {0};
    socklen_t from_size = sizeof(from);
    const int on = 1, unacknowledged_ms = UNACKNOWLEDGED_MS;
    int socket =
        accept4(listening, (struct sockaddr *)&from, &from_size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            usleep(10000); /* there are no descriptors: it is asked again */
        return;
    }
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
                     sizeof(unacknowledged_ms));
    struct http2_connection *connection = alloc_bytes(sizeof(*connection));
    connection->host = host;
    connection->peer = peer_text(&from);
    connection->references = 2; /* of the host, of this */
    connection->wire = (struct http2_wire){.peer = connection->peer,
                                           .epoll = host->epoll,
                                           .socket = socket,
                                           .heard_ns = clock_monotonic_ns()};
    pthread_mutex_init(&connection->wire.lock, NULL);
    rpc_cond_init(&connection->changed);
    connection_join(connection);
    connection->wire.watched = event_of(connection->id);
    bool ok = rpc_http2_open(connection) && connection_watch(connection);
    if (ok)
        rpc_http2_look_at(host, clock_monotonic_ns() + LOOK_S * SECOND_NS);
    else
        hang_up(connection, NULL);
    rpc_http2_drop(connection);
}

/* --- time --- */

static void set_timer_locked(struct http2_host *host, uint64_t ns)
{
    const struct itimerspec spec = {
        .it_value = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)}};
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = &host->timer};
    int failed = timerfd_settime(host->timer, TFD_TIMER_ABSTIME, &spec, NULL);
    assert(!failed);
    (void)epoll_ctl(host->epoll, EPOLL_CTL_MOD, host->timer, &event);
    host->timer_ns = ns;
}

void rpc_http2_look_at(struct http2_host *host, uint64_t ns)
{
    pthread_mutex_lock(&host->lock);
    if (!host->stopping && (!host->timer_ns || ns < host->timer_ns))
        set_timer_locked(host, ns);
    pthread_mutex_unlock(&host->lock);
}

static void look_around(struct http2_host *host)
{
    uint64_t now_ns = clock_monotonic_ns(), next_ns = UINT64_MAX, id = 0;
    struct http2_connection *connection;
    pthread_mutex_lock(&host->lock);
    host->timer_ns = 0;
    pthread_mutex_unlock(&host->lock);
    while ((connection = connection_from(host, id))) {
        uint64_t again_ns = rpc_http2_look(connection, now_ns);
        next_ns = again_ns < next_ns ? again_ns : next_ns;
        id = connection->id + 1;
        rpc_http2_drop(connection);
    }
    if (id) {
        uint64_t latest_ns = now_ns + LOOK_S * SECOND_NS;
        rpc_http2_look_at(host, next_ns < latest_ns ? next_ns : latest_ns);
    }
}

/* --- threads --- */

static void let_go(void *held)
{
    rpc_http2_drop(held);
}

bool rpc_http2_host_later(struct rpc_call *base, void (*work)(void *arg), void *arg)
{
    struct http2_connection *connection = ((struct http2_call *)base)->connection;
    const struct duty_work all = {.work = work, .arg = arg, .end = let_go, .held = connection};
    rpc_http2_hold(connection);
    if (duty_later(connection->host->duty, &all))
        return true;
    rpc_http2_drop(connection);
    return false;
}

static void serve(void *self, const struct epoll_event *event)
{
    struct http2_host *host = self;
    uint64_t id = (uint64_t)(uintptr_t)event->data.ptr;
    if (event->data.ptr == &host->timer) {
        look_around(host);
        return;
    }
    for (int i = 0; i < host->listening_count; i++) {
        if (event->data.ptr != &host->listening[i])
            continue;
        struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT,
                                    .data.ptr = &host->listening[i]};
        let_in(host, host->listening[i]);
        (void)epoll_ctl(host->epoll, EPOLL_CTL_MOD, host->listening[i], &again);
        return;
    }
    struct http2_connection *connection = connection_from(host, id);
    if (!connection)
        return;
    if (connection->id == id && !rpc_http2_serve(connection))
        hang_up(connection, NULL);
    rpc_http2_drop(connection);
}

/* --- addresses --- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

static in_port_t *port_of(struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? &((struct sockaddr_in *)address)->sin_port
                                         : &((struct sockaddr_in6 *)address)->sin6_port;
}

/* Listens at one address; `*port` (0: any) is what it got. */
static bool listen_at(struct http2_host *host, const struct addrinfo *info, int *port)
{
    struct sockaddr_storage address = {0};
    socklen_t size = info->ai_addrlen;
    const int on = 1, off = 0;
    memcpy(&address, info->ai_addr, size);
    in_port_t *at = port_of(&address);
    if (*port)
        *at = htons((uint16_t)*port);
    int file = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return false;
    (void)setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (info->ai_family == AF_INET6)
        (void)setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(file, (struct sockaddr *)&address, size) || listen(file, BACKLOG) ||
        getsockname(file, (struct sockaddr *)&address, &size)) {
        close(file);
        return false;
    }
    *port = ntohs(*at);
    host->listening[host->listening_count++] = file;
    return true;
}

/* At all addresses that the name has; "0.0.0.0" is all of the machine's, of both kinds. */
static bool listen_all(struct http2_host *host, const char *name, const char *port_text,
                       int *port)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (!strcmp(name, "0.0.0.0") && listen_all(host, "::", port_text, port))
        return true;
    if (getaddrinfo(name, port_text, &wanted, &found))
        return false;
    for (const struct addrinfo *at = found; at && host->listening_count < RPC_HTTP2_LISTENING;
         at = at->ai_next)
        (void)listen_at(host, at, port);
    freeaddrinfo(found);
    return host->listening_count;
}

/* "HOST:PORT" or "[HOST]:PORT". */
static bool listen_on(struct http2_host *host, const char *address, const char *colon,
                      int *port)
{
    size_t size = (size_t)(colon - address);
    bool bracketed = size > 1 && address[0] == '[' && colon[-1] == ']';
    char *name = bracketed ? alloc_text_n(address + 1, size - 2) : alloc_text_n(address, size);
    bool ok = listen_all(host, name, colon + 1, port);
    free(name);
    return ok;
}

static bool host_listen(struct http2_host *host, const struct rpc_server_options *options,
                        struct error *err)
{
    const char *address = options->address;
    const char *colon = strrchr(address, ':');
    int port = 0;
    if (!colon)
        return fail(err, INVALID, "'%s' is no address: HOST:PORT is needed", address);
    if (!options->tls && !is_loopback(address))
        return fail(err, INVALID, "%s: without TLS only a loopback address can be served",
                    address);
    if (options->tls && !(host->tls = http2_tls_new(options->tls, true, err)))
        return error_prefix(err, "cannot listen on %s: ", address);
    if (!listen_on(host, address, colon, &port))
        return fail(err, UNAVAILABLE,
                    "cannot listen on %s: another program has it (ss -ltnp says which), or it "
                    "is no address of this machine",
                    address);
    host->base.address = alloc_printf("%.*s:%d", (int)(colon - address), address, port);
    return true;
}

/* --- the server --- */

static void host_close(struct http2_host *host)
{
    for (int i = 0; i < host->listening_count; i++)
        close(host->listening[i]);
    if (host->timer >= 0)
        close(host->timer);
    if (host->epoll >= 0)
        close(host->epoll);
    host_unref(host);
}

static bool host_open(struct http2_host *host, const struct rpc_server_options *options,
                      struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = &host->timer};
    host->epoll = epoll_create1(EPOLL_CLOEXEC);
    host->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (host->epoll < 0 || host->timer < 0 ||
        epoll_ctl(host->epoll, EPOLL_CTL_ADD, host->timer, &event))
        return error_errno(err, UNAVAILABLE, "cannot wait for events");
    if (!host_listen(host, options, err))
        return false;
    const struct duty_options duty = {
        .epoll = host->epoll, .name = "rpc", .serve = serve, .self = host};
    host->duty = duty_start(&duty, err);
    for (int i = 0; host->duty && i < host->listening_count; i++) {
        event.data.ptr = &host->listening[i];
        if (!epoll_ctl(host->epoll, EPOLL_CTL_ADD, host->listening[i], &event))
            continue;
        (void)error_errno(err, UNAVAILABLE, "cannot wait for events");
        duty_end(host->duty);
        return false;
    }
    return host->duty;
}

struct rpc_server *rpc_http2_host_start(const struct rpc_server_options *options,
                                        const struct rpc_method *methods, void *self,
                                        struct error *err)
{
    struct http2_host *host = alloc_bytes(sizeof(*host));
    host->base.transport = &rpc_http2_transport;
    host->services = (struct rpc_service){methods, self, options->more};
    host->message_bytes_max = options->message_bytes_max;
    host->asks = options->tls && !options->tls->ca && options->tls->asks;
    host->epoll = host->timer = -1;
    host->references = 1;
    pthread_mutex_init(&host->lock, NULL);
    rpc_cond_init(&host->changed);
    if (host_open(host, options, err))
        return &host->base;
    host_close(host);
    return NULL;
}

/* Nobody connects, or begins a call, any more. */
static void refuse_more(struct http2_host *host)
{
    struct http2_connection *connection;
    for (int i = 0; i < host->listening_count; i++)
        (void)epoll_ctl(host->epoll, EPOLL_CTL_DEL, host->listening[i], NULL);
    for (uint64_t id = 0; (connection = connection_from(host, id));) {
        id = connection->id + 1;
        rpc_http2_refuse_more(connection);
        rpc_http2_drop(connection);
    }
}

void rpc_http2_host_stop(struct rpc_server *base)
{
    struct http2_host *host = (struct http2_host *)base;
    struct timespec until = rpc_deadline(LIMIT_SHUTDOWN_MS);
    struct http2_connection *connection;
    struct error err;
    (void)fail(&err, UNAVAILABLE, "the server is shutting down");
    refuse_more(host);
    pthread_mutex_lock(&host->lock);
    while (host->open && !pthread_cond_timedwait(&host->changed, &host->lock, &until)) {
    }
    host->stopping = true;
    pthread_mutex_unlock(&host->lock);
    duty_end(host->duty);
    host->told_by_ns = clock_monotonic_ns() + TELL_MS * SECOND_NS / 1000;
    while ((connection = connection_from(host, 0))) {
        hang_up(connection, &err);
        rpc_http2_drop(connection);
    }
    host_close(host);
}
