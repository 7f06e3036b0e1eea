/*
 * rpc_socket_server.c - the calls that come over a socket of this machine.
 *
 * DESIGN: an open call is in its visitor's list until it is answered or given up; the struct
 * around it lives until its handler has answered.
 */

#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/error.h"
#include "proto/rpc_socket.h"
#include "proto/rpc_socket_host.h"

enum {
    WAITING_BYTES_MAX = 1 << 20, /* of an answer that is asked for its next message, */
    TURN_BYTES = 4 << 20,        /* ... until others have their turn */
};

/* --- lives --- */

static void call_free(struct socket_call *call)
{
    struct visitor *visitor = call->visitor;
    str_release(&call->base.request);
    free(call->base.gone_arg);
    free(call);
    rpc_socket_host_leave(visitor);
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
    call->base.peer = visitor->peer;
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

void rpc_socket_server_take(void *arg, const struct frame *frame, const struct error *err)
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

void rpc_socket_server_go_on(struct visitor *visitor)
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

void rpc_socket_server_give_up(struct visitor *visitor, const struct error *why)
{
    while (give_up(visitor, true, 0, why)) {
    }
}
