/*
 * rpc_socket_client.c - making calls over a socket of this machine.
 *
 * DESIGN: a client connects when it is first needed, and again when that has broken.  A thread
 * of its own (socket_guest_main) reads the answers, tells who waits for them, and pings a
 * server that has been silent while calls are open: one that does not answer is given up.  For
 * a short while a thread that waits may read in its place (attention.h).
 *
 * Locks: a guest's, then its channel's.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/channel.h"
#include "proto/rpc_socket.h"

enum { BUCKETS = 64, TICK_MS = 5000, SILENT_MS = 10000, PONG_MS = 5000, ATTEND_MS = 50 };

struct made_call {
    struct made_call *next;
    uint64_t id;
    rpc_done *done;        /* or: */
    struct rpc_sink *sink; /* NULL: `done` */
    void *arg;             /* by which it is cancelled */
    bool is_cancelled;
};

struct socket_guest {
    struct rpc_client base;
    char *secret;
    char *shown;
    int epoll, wake;
    int nudge; /* wakes the thread that reads in place of this one's */
    pthread_t thread;
    struct channel channel; /* opened by whom it is needed, closed in a turn */
    uint64_t heard_ms;      /* of who has the channel's turn */
    uint64_t pinged_ms;     /* since then; 0: not */

    pthread_mutex_t lock;   /* guards: all below */
    pthread_cond_t changed; /* fewer calls are open */
    struct made_call *calls[BUCKETS];
    int open; /* and those that are being told */
    uint64_t last_id;
    int references; /* the owner's, of those who attend to it or are about to */
    bool is_connected;
    bool is_cancelled, closing;
    bool has_cancelled_calls;
};

/* --- the table --- */

static struct made_call **find_locked(struct socket_guest *guest, uint64_t id)
{
    struct made_call **at = &guest->calls[id % BUCKETS];
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* Out of the table, to be told by whom has it now; NULL: it is not there. */
static struct made_call *take_call(struct socket_guest *guest, uint64_t id)
{
    pthread_mutex_lock(&guest->lock);
    struct made_call **at = find_locked(guest, id), *call = *at;
    if (call)
        *at = call->next;
    pthread_mutex_unlock(&guest->lock);
    return call;
}

static void told(struct socket_guest *guest, struct made_call *call)
{
    free(call);
    pthread_mutex_lock(&guest->lock);
    guest->open--;
    pthread_cond_broadcast(&guest->changed);
    pthread_mutex_unlock(&guest->lock);
}

static void tell_failure(struct socket_guest *guest, struct made_call *call,
                         const struct error *err)
{
    if (call->sink)
        call->sink->done(call->sink, err);
    else
        call->done(call->arg, NULL, err);
    told(guest, call);
}

/* Out of the table: those that were cancelled, or (`all`) each. */
static struct made_call *take_calls(struct socket_guest *guest, bool all)
{
    struct made_call *taken = NULL;
    pthread_mutex_lock(&guest->lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (struct made_call **at = &guest->calls[i]; *at;) {
            struct made_call *call = *at;
            if (!all && !call->is_cancelled) {
                at = &call->next;
                continue;
            }
            *at = call->next;
            call->next = taken;
            taken = call;
        }
    }
    guest->has_cancelled_calls = false;
    pthread_mutex_unlock(&guest->lock);
    return taken;
}

static void fail_calls(struct socket_guest *guest, struct made_call *calls, bool says_so,
                       const struct error *err)
{
    while (calls) {
        struct made_call *call = calls;
        calls = call->next;
        if (says_so)
            channel_write_bytes(&guest->channel, FRAME_CANCEL, call->id, NULL, 0);
        tell_failure(guest, call, err);
    }
}

/* --- answers --- */

/* The part was not what is wanted: the rest is not, either. */
static void refuse(struct socket_guest *guest, uint64_t id, const struct error *err)
{
    struct made_call *call = take_call(guest, id);
    channel_write_bytes(&guest->channel, FRAME_CANCEL, id, NULL, 0);
    if (call)
        tell_failure(guest, call, err);
}

static void take_part(struct socket_guest *guest, const struct frame *frame)
{
    struct error err;
    pthread_mutex_lock(&guest->lock);
    struct made_call *call =
        *find_locked(guest, frame->call); /* only this thread takes it out */
    pthread_mutex_unlock(&guest->lock);
    if (!call)
        return;
    bool ok = call->sink
                  ? call->sink->take(call->sink, frame->body, frame->size, &err)
                  : fail(&err, INTERNAL, "%s answered with several messages", guest->shown);
    if (!ok)
        refuse(guest, frame->call, &err);
}

static void take_reply(struct socket_guest *guest, const struct frame *frame)
{
    struct error err;
    struct made_call *call = take_call(guest, frame->call);
    if (!call)
        return;
    if (call->sink) {
        bool ok = call->sink->take(call->sink, frame->body, frame->size, &err);
        call->sink->done(call->sink, ok ? NULL : &err);
    } else {
        const struct str answer = {(char *)frame->body, frame->size, 0}; /* lent */
        call->done(call->arg, &answer, NULL);
    }
    told(guest, call);
}

static void take_frame(void *arg, const struct frame *frame, const struct error *err)
{
    struct socket_guest *guest = arg;
    struct error said;
    guest->pinged_ms = 0;
    if (err) {
        refuse(guest, frame->call, err);
    } else if (frame->kind == FRAME_PART) {
        take_part(guest, frame);
    } else if (frame->kind == FRAME_REPLY) {
        take_reply(guest, frame);
    } else if (frame->kind == FRAME_FAIL) {
        struct made_call *call = take_call(guest, frame->call);
        channel_failure(frame, &said);
        if (call)
            tell_failure(guest, call, &said);
    }
}

/* --- the thread --- */

static uint64_t now_ms(void)
{
    return clock_monotonic_us() / 1000;
}

/* In a turn, which ends. */
static void broken(struct socket_guest *guest, struct error *err)
{
    guest->pinged_ms = 0;
    channel_close(&guest->channel);
    pthread_mutex_lock(&guest->lock);
    guest->is_connected = false;
    pthread_mutex_unlock(&guest->lock);
    (void)error_prefix(err, "cannot reach %s: ", guest->shown);
    fail_calls(guest, take_calls(guest, true), false, err);
}

/* In a turn, which ends if this says that the server has gone. */
static bool ping(struct socket_guest *guest)
{
    struct error err;
    uint64_t now = now_ms();
    if (!guest->pinged_ms && now - guest->heard_ms < SILENT_MS)
        return true;
    if (!guest->pinged_ms) {
        guest->pinged_ms = now;
        channel_write_bytes(&guest->channel, FRAME_PING, 0, NULL, 0);
    } else if (now - guest->pinged_ms >= PONG_MS) {
        (void)fail(&err, UNAVAILABLE, "it has not answered a ping for %d s",
                   (int)((now - guest->pinged_ms) / 1000));
        broken(guest, &err);
        return false;
    }
    return true;
}

static void watch_silence(struct socket_guest *guest)
{
    pthread_mutex_lock(&guest->lock);
    bool waits = guest->is_connected && guest->open;
    pthread_mutex_unlock(&guest->lock);
    if (!waits || !channel_begin(&guest->channel))
        return;
    if (ping(guest))
        channel_end(&guest->channel);
}

/* In a turn: nobody else takes out what its reader has found. */
static void fail_cancelled(struct socket_guest *guest)
{
    struct error err;
    (void)fail(&err, CANCELLED, "the call was cancelled");
    fail_calls(guest, take_calls(guest, false), true, &err);
}

static bool has_cancelled(struct socket_guest *guest, bool *closing)
{
    pthread_mutex_lock(&guest->lock);
    bool some = guest->has_cancelled_calls;
    *closing = guest->closing;
    pthread_mutex_unlock(&guest->lock);
    return some;
}

/* True: nothing is to be done any more. */
static bool look_around(struct socket_guest *guest)
{
    bool closing, some = has_cancelled(guest, &closing);
    if (some && channel_begin(&guest->channel)) {
        fail_cancelled(guest);
        channel_end(&guest->channel);
    } else if (some) {
        rpc_socket_client_nudge(&guest->base); /* who attends does it */
    }
    return closing;
}

/* In a turn, which ends if this says that the server has gone. */
static bool hear(struct socket_guest *guest)
{
    struct error err;
    guest->heard_ms = now_ms();
    bool ok = channel_read(&guest->channel, take_frame, guest, &err);
    if (!ok)
        broken(guest, &err);
    return ok;
}

static void *socket_guest_main(void *arg)
{
    struct socket_guest *guest = arg;
    struct epoll_event events[2];
    uint64_t woken;
    while (!look_around(guest)) {
        int count = epoll_wait(guest->epoll, events, ARRAY_LEN(events), TICK_MS);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &guest->wake) {
                ssize_t got = read(guest->wake, &woken, sizeof(woken));
                assert(got == (ssize_t)sizeof(woken));
                continue;
            }
            if (!channel_begin(&guest->channel)) {
                channel_flush(&guest->channel);
                continue;
            }
            if (events[i].events & EPOLLOUT)
                channel_flush(&guest->channel);
            if (!(events[i].events & ~(uint32_t)EPOLLOUT) || hear(guest))
                channel_end(&guest->channel);
        }
        if (count <= 0)
            watch_silence(guest);
    }
    return NULL;
}

static void write_one(int file)
{
    const uint64_t one = 1;
    ssize_t wrote = write(file, &one, sizeof(one));
    assert(wrote == (ssize_t)sizeof(one));
}

static void wake(struct socket_guest *guest)
{
    write_one(guest->wake);
}

/* --- in place of the thread --- */

/* In a turn; whether something is to be read. */
static bool wait_readable(struct socket_guest *guest, int socket, uint64_t until_ms)
{
    struct pollfd files[] = {{.fd = socket, .events = POLLIN},
                             {.fd = guest->nudge, .events = POLLIN}};
    uint64_t now = now_ms(), number;
    int count = poll(files, ARRAY_LEN(files), until_ms > now ? (int)(until_ms - now) : 0);
    if (count > 0 && files[1].revents) {
        ssize_t got = read(guest->nudge, &number, sizeof(number));
        assert(got == (ssize_t)sizeof(number));
    }
    return count > 0 && files[0].revents;
}

void rpc_socket_client_attend(struct rpc_client *base, bool (*over)(void *arg), void *arg,
                              uint64_t until_ns)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    uint64_t until_ms = now_ms() + ATTEND_MS;
    channel_send_kept();
    bool closing, open = true, some = has_cancelled(guest, &closing);
    int socket = closing ? -1 : channel_lead(&guest->channel);
    if (socket < 0)
        return;
    if (until_ns && until_ns / 1000000 < until_ms)
        until_ms = until_ns / 1000000;
    while (open && !closing && !over(arg) && now_ms() < until_ms) {
        if (some)
            fail_cancelled(guest);
        if (wait_readable(guest, socket, until_ms))
            open = hear(guest);
        some = has_cancelled(guest, &closing);
    }
    if (open && closing)
        channel_close(&guest->channel);
    else if (open)
        channel_end(&guest->channel);
    if (has_cancelled(guest, &closing))
        wake(guest); /* it could not do it */
}

void rpc_socket_client_nudge(struct rpc_client *base)
{
    write_one(((struct socket_guest *)base)->nudge);
}

/* --- calls --- */

static bool connect_locked(struct socket_guest *guest, struct error *err)
{
    struct sockaddr_un address;
    uint32_t size;
    int pid;
    if (guest->is_connected)
        return true;
    if (!channel_address(guest->base.address, &address, &size, err))
        return false;
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (to < 0 || connect(to, (const struct sockaddr *)&address, size)) {
        bool ok = error_errno(err, UNAVAILABLE, "cannot reach %s", guest->shown);
        if (to >= 0)
            close(to);
        return ok;
    }
    if (!channel_is_own(to, &pid)) {
        close(to);
        return fail(err, UNAVAILABLE, "cannot reach %s: it is another user's", guest->shown);
    }
    if (!channel_open(&guest->channel, to, guest->epoll, &guest->channel, err)) {
        close(to);
        return false;
    }
    guest->is_connected = true;
    channel_write_bytes(&guest->channel, FRAME_HELLO, 0, guest->secret, strlen(guest->secret));
    return true;
}

/* Into the table, and off; false: it was never made, as `err` says. */
static bool send_call(struct socket_guest *guest, struct made_call *call, const char *path,
                      const struct str *request, struct error *err)
{
    size_t path_size = strlen(path);
    const struct rpc_piece piece = {.data = request->data, .size = request->size};
    if (request->size > UINT32_MAX / 2)
        return fail(err, EXHAUSTED, "a request has %zu bytes, more than any may have",
                    request->size);
    pthread_mutex_lock(&guest->lock);
    bool ok = guest->is_cancelled ? fail(err, CANCELLED, "the call was cancelled")
                                  : connect_locked(guest, err);
    if (ok) {
        call->id = ++guest->last_id;
        call->next = guest->calls[call->id % BUCKETS];
        guest->calls[call->id % BUCKETS] = call;
        guest->open++;
        /* under the lock, so that the thread that finds it broken fails this call, too */
        const struct frame_head head = {.size = (uint32_t)(path_size + request->size),
                                        .kind = FRAME_REQUEST,
                                        .path_size = (uint16_t)path_size,
                                        .call = call->id};
        channel_write(&guest->channel, &head, path, &piece, 1);
    }
    pthread_mutex_unlock(&guest->lock);
    return ok;
}

static void start(struct rpc_client *base, const char *path, const struct str *request,
                  const struct made_call *like)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    struct made_call *call = alloc_bytes(sizeof(*call));
    struct error err;
    *call = *like;
    if (send_call(guest, call, path, request, &err))
        return;
    free(call);
    if (like->sink)
        like->sink->done(like->sink, &err);
    else
        like->done(like->arg, NULL, &err);
}

void rpc_socket_client_start(struct rpc_client *base, const char *path,
                             const struct str *request, rpc_done *done, void *arg)
{
    const struct made_call call = {.done = done, .arg = arg};
    start(base, path, request, &call);
}

void rpc_socket_client_start_into(struct rpc_client *base, const char *path,
                                  const struct str *request, struct rpc_sink *sink)
{
    const struct made_call call = {.sink = sink, .arg = sink};
    start(base, path, request, &call);
}

/* --- the client --- */

const char *rpc_socket_client_shown(const struct rpc_client *client)
{
    return ((const struct socket_guest *)client)->shown;
}

void rpc_socket_client_cancel_started(struct rpc_client *base, const void *arg)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    bool some = false;
    pthread_mutex_lock(&guest->lock);
    for (int i = 0; i < BUCKETS; i++)
        for (struct made_call *call = guest->calls[i]; call; call = call->next)
            if (call->arg == arg)
                some = call->is_cancelled = true;
    guest->has_cancelled_calls = guest->has_cancelled_calls || some;
    pthread_mutex_unlock(&guest->lock);
    if (some)
        wake(guest);
}

void rpc_socket_client_cancel(struct rpc_client *base)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    pthread_mutex_lock(&guest->lock);
    guest->is_cancelled = true;
    for (int i = 0; i < BUCKETS; i++)
        for (struct made_call *call = guest->calls[i]; call; call = call->next)
            guest->has_cancelled_calls = call->is_cancelled = true;
    pthread_mutex_unlock(&guest->lock);
    wake(guest);
}

static void free_guest(struct socket_guest *guest)
{
    const int files[] = {guest->epoll, guest->wake, guest->nudge};
    channel_release(&guest->channel);
    for (int i = 0; i < ARRAY_LEN(files); i++)
        if (files[i] >= 0)
            close(files[i]);
    pthread_cond_destroy(&guest->changed);
    pthread_mutex_destroy(&guest->lock);
    free(guest->base.address);
    free(guest->secret);
    free(guest->shown);
    free(guest);
}

void rpc_socket_client_hold(struct rpc_client *base)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    pthread_mutex_lock(&guest->lock);
    guest->references++;
    pthread_mutex_unlock(&guest->lock);
    channel_remember(&guest->channel);
}

void rpc_socket_client_drop(struct rpc_client *base)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    channel_forget(&guest->channel);
    pthread_mutex_lock(&guest->lock);
    bool last = !--guest->references;
    pthread_mutex_unlock(&guest->lock);
    if (last)
        free_guest(guest);
}

struct rpc_client *rpc_socket_client_new(const struct rpc_client_options *options,
                                         struct error *err)
{
    struct socket_guest *guest = alloc_bytes(sizeof(*guest));
    struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = &guest->wake};
    assert(!options->tls);
    guest->base.transport = &rpc_socket_transport;
    guest->base.address = alloc_text(options->address);
    guest->secret = alloc_text(options->secret ? options->secret : "");
    guest->shown = alloc_text(options->shown ? options->shown : options->address);
    guest->epoll = epoll_create1(EPOLL_CLOEXEC);
    guest->wake = eventfd(0, EFD_CLOEXEC);
    guest->nudge = eventfd(0, EFD_CLOEXEC);
    guest->references = 1;
    channel_init(&guest->channel, options->message_bytes_max);
    pthread_mutex_init(&guest->lock, NULL);
    rpc_cond_init(&guest->changed);
    if (guest->epoll < 0 || guest->wake < 0 || guest->nudge < 0 ||
        epoll_ctl(guest->epoll, EPOLL_CTL_ADD, guest->wake, &wakes) ||
        pthread_create(&guest->thread, NULL, socket_guest_main, guest)) {
        (void)error_errno(err, EXHAUSTED, "no thread to call %s with", options->address);
        free_guest(guest);
        return NULL;
    }
    pthread_setname_np(guest->thread, "socket");
    return &guest->base;
}

void rpc_socket_client_free(struct rpc_client *base)
{
    struct socket_guest *guest = (struct socket_guest *)base;
    pthread_mutex_lock(&guest->lock);
    while (guest->open)
        pthread_cond_wait(&guest->changed, &guest->lock);
    guest->closing = true;
    pthread_mutex_unlock(&guest->lock);
    wake(guest);
    pthread_join(guest->thread, NULL);
    rpc_socket_client_nudge(base); /* who attends still closes it, */
    if (channel_begin(&guest->channel))
        channel_close(&guest->channel); /* ... or nobody does */
    rpc_socket_client_drop(base);
}
