/*
 * rpc_socket_server.c - serving calls over a socket of this machine.
 *
 * DESIGN: one thread (socket_host_main) accepts, reads, calls the handlers, and writes what the
 * system would not take at once.  An open call is in its visitor's list until it is answered or
 * given up; the struct around it lives until its handler has answered.  A visitor lives until
 * it has hung up and its last call is gone.
 *
 * Locks: a host's, then a channel's.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/channel.h"
#include "proto/rpc_socket.h"

enum {
    EVENTS = 16,
    BACKLOG = 128,
    WAITING_BYTES_MAX = 1 << 20, /* of an answer that is asked for its next message, */
    TURN_BYTES = 4 << 20,        /* ... until others have their turn */
};

struct visitor {
    struct channel channel;
    struct socket_host *host;
    int pid;
    bool is_known; /* it has said the secret; of the reading thread alone */

    /* guarded by the host's lock */
    struct visitor *next, **at;
    struct socket_call *calls; /* open, or whose answer is on its way */
    int sources;               /* of answers on their way */
    int references;            /* its connection's, its calls' */
};

struct socket_call {
    struct rpc_call base;
    struct visitor *visitor;
    uint64_t id;

    /* guarded by the host's lock */
    struct socket_call *next, **at; /* NULL: in no list */
    struct rpc_source *source;      /* of an answer that is on its way */
    bool is_pumped;                 /* by a thread: no other does it */
    bool is_answered;
    bool is_cancelled;
    bool is_telling; /* a thread tells that the client has gone; it frees what is answered */
};

struct socket_host {
    struct rpc_server base;
    struct rpc_service services;
    char *secret;
    int64_t message_bytes_max;
    int listening, epoll, wake;
    pthread_t thread;

    pthread_mutex_t lock; /* guards: all below, and what says so above */
    pthread_cond_t changed;
    struct visitor *visitors;
    int references; /* the owner's, each visitor's */
    int open;       /* calls that are not answered */
    bool refuses, stopping;
};

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

static void visitor_unref(struct visitor *visitor)
{
    struct socket_host *host = visitor->host;
    pthread_mutex_lock(&host->lock);
    bool last = --visitor->references == 0;
    pthread_mutex_unlock(&host->lock);
    if (!last)
        return;
    channel_release(&visitor->channel);
    free(visitor);
    host_unref(host);
}

static void call_free(struct socket_call *call)
{
    struct visitor *visitor = call->visitor;
    str_release(&call->base.request);
    free(call->base.peer);
    free(call->base.gone_arg);
    free(call);
    visitor_unref(visitor);
}

static void call_leave_locked(struct socket_call *call)
{
    if (!call->at)
        return;
    *call->at = call->next;
    if (call->next)
        call->next->at = call->at;
    call->at = NULL;
    call->visitor->host->open--;
    pthread_cond_broadcast(&call->visitor->host->changed);
}

/* --- answers --- */

static void release_pieces(const struct rpc_piece *pieces, int count)
{
    for (int i = 0; i < count; i++)
        if (pieces[i].release)
            pieces[i].release(pieces[i].arg);
}

/* The next message of the source, whose size is added; true: it was the last. */
static bool write_next(struct socket_call *call, size_t *written)
{
    struct rpc_piece pieces[RPC_PIECES_MAX];
    bool last = false;
    size_t size = 0;
    int count = call->source->next(call->source, pieces, &last);
    for (int i = 0; i < count; i++)
        size += pieces[i].size;
    const struct frame_head head = {
        .size = (uint32_t)size, .kind = last ? FRAME_REPLY : FRAME_PART, .call = call->id};
    channel_write(&call->visitor->channel, &head, NULL, pieces, count);
    release_pieces(pieces, count);
    *written += size;
    return last;
}

/* Messages as long as the other end takes them, but not for ever, by the thread that has set
 * `is_pumped`. */
static void pump(struct socket_call *call)
{
    struct socket_host *host = call->visitor->host;
    struct channel *channel = &call->visitor->channel;
    size_t written = 0;
    bool over = false;
    pthread_mutex_lock(&host->lock);
    while (!over && !call->is_cancelled && written < TURN_BYTES &&
           channel_waiting(channel) < WAITING_BYTES_MAX) {
        pthread_mutex_unlock(&host->lock);
        over = write_next(call, &written);
        pthread_mutex_lock(&host->lock);
    }
    over = over || call->is_cancelled;
    if (!over)
        channel_want_room(channel);
    bool frees = over && !call->is_telling;
    struct rpc_source *source = over ? call->source : NULL;
    call->is_pumped = false;
    if (over) {
        call->source = NULL;
        call->visitor->sources--;
        call_leave_locked(call);
    }
    pthread_mutex_unlock(&host->lock);
    if (source)
        source->free(source);
    if (frees)
        call_free(call);
}

enum answer { ANSWER_SENDS, ANSWER_FREES, ANSWER_LEAVES };

/* What is to be done with the answer: send it, or free the call, which a thread that tells of
 * its client's end does by itself. */
static enum answer call_answered(struct socket_call *call, struct rpc_source *source)
{
    struct socket_host *host = call->visitor->host;
    pthread_mutex_lock(&host->lock);
    enum answer answer = call->is_telling     ? ANSWER_LEAVES
                         : call->is_cancelled ? ANSWER_FREES
                                              : ANSWER_SENDS;
    call->is_answered = true;
    if (answer == ANSWER_SENDS && source) {
        call->source = source; /* it stays in the list until the last message */
        call->is_pumped = true;
        call->visitor->sources++;
    } else {
        call_leave_locked(call);
    }
    pthread_mutex_unlock(&host->lock);
    return answer;
}

void rpc_socket_server_answer(struct rpc_call *base, const void *bytes, size_t size,
                              const struct error *err)
{
    struct socket_call *call = (struct socket_call *)base;
    struct channel *channel = &call->visitor->channel;
    enum answer answer = call_answered(call, NULL);
    if (answer == ANSWER_LEAVES)
        return;
    if (answer == ANSWER_SENDS && err)
        channel_write_failure(channel, call->id, err);
    else if (answer == ANSWER_SENDS)
        channel_write_bytes(channel, FRAME_REPLY, call->id, bytes, size);
    call_free(call);
}

void rpc_socket_server_answer_from(struct rpc_call *base, struct rpc_source *source)
{
    struct socket_call *call = (struct socket_call *)base;
    enum answer answer = call_answered(call, source);
    if (answer == ANSWER_SENDS) {
        pump(call);
        return;
    }
    source->free(source);
    if (answer == ANSWER_FREES)
        call_free(call);
}

bool rpc_socket_server_cancelled(const struct rpc_call *base)
{
    const struct socket_call *call = (const struct socket_call *)base;
    pthread_mutex_lock(&call->visitor->host->lock);
    bool cancelled = call->is_cancelled;
    pthread_mutex_unlock(&call->visitor->host->lock);
    return cancelled;
}

bool rpc_socket_server_watch(struct rpc_call *base, void (*gone)(void *arg), void *arg)
{
    struct socket_call *call = (struct socket_call *)base;
    pthread_mutex_lock(&call->visitor->host->lock);
    bool watches = !call->is_cancelled;
    if (watches) {
        base->gone = gone;
        base->gone_arg = arg;
    }
    pthread_mutex_unlock(&call->visitor->host->lock);
    return watches;
}

void rpc_socket_server_unwatch(struct rpc_call *base)
{
    struct socket_call *call = (struct socket_call *)base;
    struct socket_host *host = call->visitor->host;
    pthread_mutex_lock(&host->lock);
    while (call->is_telling)
        pthread_cond_wait(&host->changed, &host->lock);
    base->gone = NULL;
    pthread_mutex_unlock(&host->lock);
}

/* --- calls come in, and are given up --- */

/* Nobody wants the answer any more: of the call with the number, or (`any`) the first that is
 * still wanted; false: there is none.  `why` is told to the client, unless it is NULL. */
static bool give_up(struct visitor *visitor, bool any, uint64_t id, const struct error *why)
{
    struct socket_host *host = visitor->host;
    pthread_mutex_lock(&host->lock);
    struct socket_call *call = visitor->calls;
    while (call && (call->is_cancelled || !(any || call->id == id)))
        call = call->next;
    if (!call) {
        pthread_mutex_unlock(&host->lock);
        return false;
    }
    bool sending = call->source, pumps = sending && !call->is_pumped;
    void (*gone)(void *arg) = sending ? NULL : call->base.gone;
    call->is_cancelled = call->is_telling = true;
    call->is_pumped = sending;
    if (!sending)
        call_leave_locked(call);
    pthread_mutex_unlock(&host->lock);
    if (why)
        channel_write_failure(&visitor->channel, call->id, why);
    if (pumps)
        pump(call);
    if (gone)
        gone(call->base.gone_arg);
    pthread_mutex_lock(&host->lock);
    call->is_telling = false;
    bool frees = call->is_answered && !call->source;
    pthread_cond_broadcast(&host->changed);
    pthread_mutex_unlock(&host->lock);
    if (frees)
        call_free(call);
    return true;
}

/* In the list, unless the server stops. */
static bool call_join(struct socket_call *call)
{
    struct visitor *visitor = call->visitor;
    struct socket_host *host = visitor->host;
    pthread_mutex_lock(&host->lock);
    bool joins = !host->refuses;
    if (joins) {
        call->next = visitor->calls;
        call->at = &visitor->calls;
        if (call->next)
            call->next->at = &call->next;
        visitor->calls = call;
        visitor->references++;
        host->open++;
    }
    pthread_mutex_unlock(&host->lock);
    return joins;
}

static void take_request(struct visitor *visitor, const struct frame *frame)
{
    struct socket_host *host = visitor->host;
    struct error err;
    void *self;
    rpc_handler *handler =
        rpc_find_handler(&host->services, frame->path, frame->path_size, &self);
    if (!handler) {
        (void)fail(&err, UNIMPLEMENTED, "the server has no such method");
        channel_write_failure(&visitor->channel, frame->call, &err);
        return;
    }
    struct socket_call *call = alloc_bytes(sizeof(*call));
    call->base.transport = &rpc_socket_transport;
    call->base.peer = alloc_printf("process %d", visitor->pid);
    call->visitor = visitor;
    call->id = frame->call;
    str_add_bytes(&call->base.request, frame->body, frame->size);
    if (call_join(call)) {
        handler(self, &call->base);
        return;
    }
    (void)fail(&err, UNAVAILABLE, "the server is shutting down");
    channel_write_failure(&visitor->channel, frame->call, &err);
    str_release(&call->base.request);
    free(call->base.peer);
    free(call);
}

static bool says_secret(const struct visitor *visitor, const struct frame *frame)
{
    const char *secret = visitor->host->secret;
    unsigned char differs = strlen(secret) != frame->size;
    for (size_t i = 0; !differs && i < frame->size; i++) /* as long, whatever it says */
        differs |= (unsigned char)(secret[i] ^ ((const char *)frame->body)[i]);
    return !differs;
}

static void take_frame(void *arg, const struct frame *frame, const struct error *err)
{
    struct visitor *visitor = arg;
    if (visitor->is_known && err) {
        channel_write_failure(&visitor->channel, frame->call, err);
    } else if (!visitor->is_known) {
        visitor->is_known = !err && frame->kind == FRAME_HELLO && says_secret(visitor, frame);
        if (!visitor->is_known)
            (void)shutdown(visitor->channel.socket, SHUT_RDWR); /* its end comes to be read */
    } else if (frame->kind == FRAME_REQUEST) {
        take_request(visitor, frame);
    } else if (frame->kind == FRAME_CANCEL) {
        (void)give_up(visitor, false, frame->call, NULL);
    } else if (frame->kind == FRAME_PING) {
        channel_write_bytes(&visitor->channel, FRAME_PONG, 0, NULL, 0);
    }
}

/* --- visitors --- */

static void hang_up(struct visitor *visitor, const struct error *why)
{
    struct socket_host *host = visitor->host;
    while (give_up(visitor, true, 0, why)) {
    }
    channel_close(&visitor->channel);
    pthread_mutex_lock(&host->lock);
    *visitor->at = visitor->next;
    if (visitor->next)
        visitor->next->at = visitor->at;
    pthread_mutex_unlock(&host->lock);
    visitor_unref(visitor);
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
    visitor->pid = pid;
    visitor->references = 1;
    channel_init(&visitor->channel, host->message_bytes_max);
    pthread_mutex_lock(&host->lock);
    host->references++;
    visitor->next = host->visitors;
    visitor->at = &host->visitors;
    if (visitor->next)
        visitor->next->at = &visitor->next;
    host->visitors = visitor;
    pthread_mutex_unlock(&host->lock);
    if (channel_open(&visitor->channel, socket, host->epoll, visitor, &err))
        return;
    close(socket);
    hang_up(visitor, NULL);
}

/* What waited for room has found some. */
static void pump_all(struct visitor *visitor)
{
    struct socket_host *host = visitor->host;
    pthread_mutex_lock(&host->lock);
    int sources = visitor->sources;
    for (struct socket_call *call = visitor->calls; sources && call;) {
        if (!call->source || call->is_pumped || call->is_cancelled) {
            call = call->next;
            continue;
        }
        sources--;
        call->is_pumped = true;
        pthread_mutex_unlock(&host->lock);
        pump(call);
        pthread_mutex_lock(&host->lock);
        call = visitor->calls;
    }
    pthread_mutex_unlock(&host->lock);
}

static void serve_visitor(struct visitor *visitor, uint32_t events)
{
    struct error err;
    bool ok = true;
    if (events & EPOLLOUT)
        channel_flush(&visitor->channel);
    if (events & ~(uint32_t)EPOLLOUT)
        ok = channel_read(&visitor->channel, take_frame, visitor, &err);
    if (ok)
        pump_all(visitor);
    else
        hang_up(visitor, NULL);
}

static bool is_stopping(struct socket_host *host)
{
    pthread_mutex_lock(&host->lock);
    bool stopping = host->stopping;
    pthread_mutex_unlock(&host->lock);
    return stopping;
}

static void *socket_host_main(void *arg)
{
    struct socket_host *host = arg;
    struct epoll_event events[EVENTS];
    struct error err;
    while (!is_stopping(host)) {
        int count = epoll_wait(host->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &host->listening)
                let_in(host);
            else if (events[i].data.ptr != &host->wake)
                serve_visitor(events[i].data.ptr, events[i].events);
        }
    }
    (void)fail(&err, UNAVAILABLE, "the server is shutting down");
    while (host->visitors) /* of this thread alone to add to and take from */
        hang_up(host->visitors, &err);
    return NULL;
}

/* --- the server --- */

static void free_host(struct socket_host *host)
{
    const int files[] = {host->listening, host->epoll, host->wake};
    for (int i = 0; i < ARRAY_LEN(files); i++)
        if (files[i] >= 0)
            close(files[i]);
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
    struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = &host->wake};
    if (!channel_address(host->base.address, &address, &size, err))
        return false;
    host->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    host->epoll = epoll_create1(EPOLL_CLOEXEC);
    host->wake = eventfd(0, EFD_CLOEXEC);
    if (host->listening < 0 || host->epoll < 0 || host->wake < 0)
        return error_errno(err, UNAVAILABLE, "cannot make a socket");
    if (bind(host->listening, (const struct sockaddr *)&address, size) ||
        listen(host->listening, BACKLOG) ||
        epoll_ctl(host->epoll, EPOLL_CTL_ADD, host->listening, &listens) ||
        epoll_ctl(host->epoll, EPOLL_CTL_ADD, host->wake, &wakes))
        return error_errno(err, UNAVAILABLE, "cannot listen on %s", host->base.address);
    int failed = pthread_create(&host->thread, NULL, socket_host_main, host);
    if (failed)
        return fail(err, EXHAUSTED, "no thread to serve %s: %s", host->base.address,
                    strerror(failed));
    pthread_setname_np(host->thread, "socket");
    return true;
}

struct rpc_server *rpc_socket_server_start(const struct rpc_server_options *options,
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
    host->listening = host->epoll = host->wake = -1;
    host->references = 1;
    pthread_mutex_init(&host->lock, NULL);
    rpc_cond_init(&host->changed);
    if (open_host(host, err))
        return &host->base;
    free_host(host);
    return NULL;
}

void rpc_socket_server_stop(struct rpc_server *base)
{
    struct socket_host *host = (struct socket_host *)base;
    struct timespec until = rpc_deadline(LIMIT_SHUTDOWN_MS);
    const uint64_t one = 1;
    pthread_mutex_lock(&host->lock);
    host->refuses = true;
    while (host->open && !pthread_cond_timedwait(&host->changed, &host->lock, &until)) {
    }
    host->stopping = true;
    pthread_mutex_unlock(&host->lock);
    ssize_t wrote = write(host->wake, &one, sizeof(one));
    assert(wrote == (ssize_t)sizeof(one));
    pthread_join(host->thread, NULL);
    free_host(host);
}
