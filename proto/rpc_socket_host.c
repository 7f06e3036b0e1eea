/*
 * rpc_socket_host.c - serving over a socket of this machine: its visitors and its threads.
 *
 * DESIGN: of the threads on duty (duty.h) the one that is told of an event accepts, or has its
 * visitor's turn, in which it reads, calls the handlers, and writes what the system would not
 * take at once.  A handler may leave it work that takes long (rpc_call_later()), which it does
 * after the turn.
 *
 * A visitor lives until it has hung up, its last call is gone, and no thread serves it.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/rpc_socket.h"
#include "proto/rpc_socket_host.h"

enum { BACKLOG = 128 };

/* --- lives --- */

static void host_unref(struct socket_host *host)
{
    pthread_mutex_lock(&host->lock);
    bool last = --host->references == 0;
    pthread_mutex_unlock(&host->lock);
    if (!last)
        return;
    pthread_cond_destroy(&host->changed);
    pthread_mutex_destroy(&host->lock);
    free(host->base.address);
    free(host->secret);
    free(host);
}

void rpc_socket_host_leave(struct visitor *visitor)
{
    struct socket_host *host = visitor->host;
    pthread_mutex_lock(&host->lock);
    bool last = --visitor->references == 0;
    pthread_mutex_unlock(&host->lock);
    if (!last)
        return;
    channel_release(&visitor->channel);
    free(visitor->peer);
    free(visitor);
    host_unref(host);
}

/* --- visitors --- */

/* In a turn, or when nobody serves any more. */
static void hang_up(struct visitor *visitor, const struct error *why)
{
    struct socket_host *host = visitor->host;
    rpc_socket_server_give_up(visitor, why);
    channel_close(&visitor->channel);
    pthread_mutex_lock(&host->lock);
    *visitor->at = visitor->next;
    if (visitor->next)
        visitor->next->at = visitor->at;
    pthread_mutex_unlock(&host->lock);
    rpc_socket_host_leave(visitor);
}

/* What its events carry: no pointer, as another thread may have hung up on it by then. */
static void *event_of(uint64_t id)
{
    return (void *)(uintptr_t)id;
}

/* One reference more; NULL: it has gone. */
static struct visitor *find_visitor(struct socket_host *host, const void *event)
{
    pthread_mutex_lock(&host->lock);
    struct visitor *visitor = host->visitors;
    while (visitor && event_of(visitor->id) != event)
        visitor = visitor->next;
    if (visitor)
        visitor->references++;
    pthread_mutex_unlock(&host->lock);
    return visitor;
}

static void let_in(struct socket_host *host)
{
    struct error err;
    int pid;
    int socket = accept4(host->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            usleep(10000); /* there are no descriptors: it is asked again */
        return;
    }
    if (!channel_is_own(socket, &pid)) {
        close(socket);
        return;
    }
    struct visitor *visitor = alloc_bytes(sizeof(*visitor));
    visitor->host = host;
    visitor->peer = alloc_printf("process %d", pid);
    visitor->references = 1;
    channel_init(&visitor->channel, host->message_bytes_max);
    pthread_mutex_lock(&host->lock);
    host->references++;
    visitor->id = ++host->last_id;
    visitor->next = host->visitors;
    visitor->at = &host->visitors;
    if (visitor->next)
        visitor->next->at = &visitor->next;
    host->visitors = visitor;
    pthread_mutex_unlock(&host->lock);
    if (channel_open(&visitor->channel, socket, host->epoll, event_of(visitor->id), &err))
        return;
    close(socket);
    hang_up(visitor, NULL);
}

static void serve(struct visitor *visitor, uint32_t events)
{
    struct channel *channel = &visitor->channel;
    struct error err;
    bool ok = true;
    if (!channel_begin(channel))
        return;
    if (events & EPOLLOUT)
        channel_flush(channel);
    if (events & ~(uint32_t)EPOLLOUT)
        ok = channel_read(channel, rpc_socket_server_take, visitor, &err);
    if (ok) {
        rpc_socket_server_go_on(visitor);
        channel_end(channel);
    } else {
        hang_up(visitor, NULL);
    }
}

/* --- threads --- */

static void work_begins(void *held)
{
    struct visitor *visitor = held;
    channel_remember(&visitor->channel);
}

static void work_ends(void *held)
{
    struct visitor *visitor = held;
    channel_forget(&visitor->channel);
    rpc_socket_host_leave(visitor);
}

bool rpc_socket_host_later(struct rpc_call *base, void (*work)(void *arg), void *arg)
{
    struct visitor *visitor = ((struct socket_call *)base)->visitor;
    struct socket_host *host = visitor->host;
    const struct duty_work all = {work, arg, work_begins, work_ends, visitor};
    pthread_mutex_lock(&host->lock);
    visitor->references++;
    pthread_mutex_unlock(&host->lock);
    if (duty_later(host->duty, &all))
        return true;
    rpc_socket_host_leave(visitor);
    return false;
}

static void serve_event(void *self, const struct epoll_event *event)
{
    struct socket_host *host = self;
    if (event->data.ptr == &host->listening) {
        let_in(host);
        return;
    }
    struct visitor *visitor = find_visitor(host, event->data.ptr);
    if (!visitor)
        return;
    serve(visitor, event->events);
    rpc_socket_host_leave(visitor);
}

/* --- the server --- */

static void host_close(struct socket_host *host)
{
    if (host->listening >= 0)
        close(host->listening);
    if (host->epoll >= 0)
        close(host->epoll);
    host_unref(host);
}

static char *random_address(void)
{
    unsigned char bytes[16];
    struct str text = {0};
    ssize_t got = getrandom(bytes, sizeof(bytes), 0);
    assert(got == (ssize_t)sizeof(bytes));
    str_add(&text, RPC_SOCKET_PREFIX "trainyard-");
    for (size_t i = 0; i < sizeof(bytes); i++)
        str_printf(&text, "%02x", bytes[i]);
    return str_take(&text);
}

static bool open_host(struct socket_host *host, struct error *err)
{
    struct sockaddr_un address;
    uint32_t size;
    struct epoll_event listens = {.events = EPOLLIN, .data.ptr = &host->listening};
    if (!channel_address(host->base.address, &address, &size, err))
        return false;
    host->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    host->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (host->listening < 0 || host->epoll < 0)
        return error_errno(err, UNAVAILABLE, "cannot make a socket");
    if (bind(host->listening, (const struct sockaddr *)&address, size) ||
        listen(host->listening, BACKLOG))
        return error_errno(err, UNAVAILABLE, "cannot listen on %s", host->base.address);
    const struct duty_options duty = {
        .epoll = host->epoll, .name = "socket", .serve = serve_event, .self = host};
    host->duty = duty_start(&duty, err);
    if (!host->duty)
        return false;
    if (!epoll_ctl(host->epoll, EPOLL_CTL_ADD, host->listening, &listens))
        return true;
    (void)error_errno(err, UNAVAILABLE, "cannot listen on %s", host->base.address);
    duty_end(host->duty);
    return false;
}

struct rpc_server *rpc_socket_host_start(const struct rpc_server_options *options,
                                         const struct rpc_method *methods, void *self,
                                         struct error *err)
{
    struct socket_host *host = alloc_bytes(sizeof(*host));
    assert(!options->tls);
    bool named = options->address[strlen(RPC_SOCKET_PREFIX)];
    host->base.transport = &rpc_socket_transport;
    host->base.address = named ? alloc_text(options->address) : random_address();
    host->secret = alloc_text(options->secret ? options->secret : "");
    host->services = (struct rpc_service){methods, self, options->more};
    host->message_bytes_max = options->message_bytes_max;
    host->listening = host->epoll = -1;
    host->references = 1;
    pthread_mutex_init(&host->lock, NULL);
    rpc_cond_init(&host->changed);
    if (open_host(host, err))
        return &host->base;
    host_close(host);
    return NULL;
}

void rpc_socket_host_stop(struct rpc_server *base)
{
    struct socket_host *host = (struct socket_host *)base;
    struct timespec until = rpc_deadline(LIMIT_SHUTDOWN_MS);
    struct error err;
    pthread_mutex_lock(&host->lock);
    host->refuses = true;
    while (host->open && !pthread_cond_timedwait(&host->changed, &host->lock, &until)) {
    }
    pthread_mutex_unlock(&host->lock);
    duty_end(host->duty);
    (void)fail(&err, UNAVAILABLE, "the server is shutting down");
    while (host->visitors) /* nobody else adds or takes any more */
        hang_up(host->visitors, &err);
    host_close(host);
}
