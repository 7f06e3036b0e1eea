/* channel.c - frames over a socket of this machine. */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "proto/channel.h"

enum {
    IN_BYTES = 64 << 10,     /* that are read at a time */
    IN_KEPT_BYTES = 1 << 20, /* of memory, after a larger frame */
    HEAD_SPARE = 4 << 10,    /* paths and failures above a message's limit */
    KEPT_BYTES = 4 << 10,    /* larger frames are not kept */
    SPANS = RPC_PIECES_MAX + 2,
};

void channel_init(struct channel *channel, int64_t message_bytes_max)
{
    *channel = (struct channel){.socket = -1, .message_bytes_max = message_bytes_max};
    pthread_mutex_init(&channel->lock, NULL);
}

void channel_close(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    if (channel->socket >= 0)
        close(channel->socket);
    channel->socket = -1;
    channel->have = channel->skip = 0;
    str_clear(&channel->out);
    channel->out_at = 0;
    channel->wants_room = channel->busy = channel->led = channel->corked = false;
    pthread_mutex_unlock(&channel->lock);
}

void channel_release(struct channel *channel)
{
    channel_close(channel);
    str_release(&channel->out);
    free(channel->in);
    pthread_mutex_destroy(&channel->lock);
}

bool channel_open(struct channel *channel, int socket, int epoll, void *watched,
                  struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = watched};
    pthread_mutex_lock(&channel->lock);
    channel->socket = socket;
    channel->epoll = epoll;
    channel->watched = watched;
    bool ok = !epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
    if (!ok)
        channel->socket = -1;
    pthread_mutex_unlock(&channel->lock);
    return ok || error_errno(err, UNAVAILABLE, "cannot watch a socket");
}

/* --- turns --- */

/* The next event may come, unless a thread is at work that will say so itself. */
static void arm_locked(struct channel *channel)
{
    struct epoll_event event = {.events = EPOLLONESHOT, .data.ptr = channel->watched};
    if (!channel->led)
        event.events |= EPOLLIN;
    if (channel->wants_room)
        event.events |= EPOLLOUT;
    if (!channel->busy || channel->led)
        (void)epoll_ctl(channel->epoll, EPOLL_CTL_MOD, channel->socket, &event);
}

bool channel_begin(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    bool begins = channel->socket >= 0 && !channel->busy;
    channel->busy = channel->busy || begins;
    pthread_mutex_unlock(&channel->lock);
    return begins;
}

int channel_lead(struct channel *channel)
{
    int socket = -1;
    pthread_mutex_lock(&channel->lock);
    if (channel->socket >= 0 && !channel->busy) {
        socket = channel->socket;
        channel->busy = channel->led = true;
        arm_locked(channel);
    }
    pthread_mutex_unlock(&channel->lock);
    return socket;
}

void channel_end(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->busy = channel->led = false;
    if (channel->socket >= 0)
        arm_locked(channel);
    pthread_mutex_unlock(&channel->lock);
}

/* --- writing --- */

static void want_room_locked(struct channel *channel, bool wanted)
{
    if (!wanted && !channel->wants_room)
        return;
    channel->wants_room = wanted;
    arm_locked(channel);
}

static void flush_locked(struct channel *channel)
{
    struct str *out = &channel->out;
    while (channel->out_at < out->size) {
        ssize_t sent = send(channel->socket, out->data + channel->out_at,
                            out->size - channel->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            want_room_locked(channel, true);
            return;
        }
        if (sent < 0) /* it is gone, as the reading thread will see */
            break;
        channel->out_at += (size_t)sent;
    }
    want_room_locked(channel, false);
    channel->out_at = 0;
    if (out->capacity > IN_KEPT_BYTES)
        str_release(out);
    str_clear(out);
}

void channel_flush(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->corked = false;
    if (channel->socket >= 0 && (channel->out.size || channel->wants_room))
        flush_locked(channel);
    pthread_mutex_unlock(&channel->lock);
}

void channel_want_room(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    if (channel->socket >= 0)
        want_room_locked(channel, true);
    pthread_mutex_unlock(&channel->lock);
}

static void add_locked(struct channel *channel, const struct iovec *spans, int count,
                       size_t sent)
{
    for (int i = 0; i < count; i++) {
        size_t gone = sent < spans[i].iov_len ? sent : spans[i].iov_len;
        if (gone < spans[i].iov_len)
            str_add_bytes(&channel->out, (char *)spans[i].iov_base + gone,
                          spans[i].iov_len - gone);
        sent -= gone;
    }
}

/* What the system does not take at once waits. */
static void write_locked(struct channel *channel, const struct iovec *spans, int count)
{
    size_t sent = 0;
    if (!channel->corked && !channel->out.size) {
        const struct msghdr message = {.msg_iov = (struct iovec *)spans,
                                       .msg_iovlen = (size_t)count};
        ssize_t got = sendmsg(channel->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return;
        sent = got > 0 ? (size_t)got : 0;
    }
    add_locked(channel, spans, count, sent);
    if (!channel->corked && channel->out.size)
        want_room_locked(channel, true);
}

/* --- frames that are kept --- */

static _Thread_local struct {
    struct channel *channel; /* whose may be */
    bool keeps, some;
} kept;

/* All that waits but for room. */
static void send_locked(struct channel *channel)
{
    if (channel->socket >= 0 && channel->out.size && !channel->corked && !channel->wants_room)
        flush_locked(channel);
}

void channel_remember(struct channel *channel)
{
    if (!kept.channel)
        kept.channel = channel;
}

void channel_forget(const struct channel *channel)
{
    if (kept.channel != channel)
        return;
    channel_send_kept();
    kept.channel = NULL;
}

void channel_keep(bool keeps)
{
    kept.keeps = keeps;
}

void channel_send_kept(void)
{
    if (!kept.some)
        return;
    pthread_mutex_lock(&kept.channel->lock);
    send_locked(kept.channel);
    pthread_mutex_unlock(&kept.channel->lock);
    kept.some = false;
}

/* A small frame goes with those that were kept before it; they go before a large one. */
static void say_locked(struct channel *channel, const struct iovec *spans, int count,
                       size_t size)
{
    bool is_small = size < KEPT_BYTES,
         keeps = is_small && kept.keeps && kept.channel == channel;
    if (!is_small)
        send_locked(channel);
    if (!keeps && !(is_small && channel->out.size)) {
        write_locked(channel, spans, count);
        return;
    }
    add_locked(channel, spans, count, 0);
    if (keeps)
        kept.some = true;
    else
        send_locked(channel);
}

void channel_write(struct channel *channel, const struct frame_head *head, const char *path,
                   const struct rpc_piece *pieces, int count)
{
    struct iovec spans[SPANS] = {{(void *)head, sizeof(*head)},
                                 {(void *)path, head->path_size}};
    assert(count <= RPC_PIECES_MAX);
    for (int i = 0; i < count; i++)
        spans[2 + i] = (struct iovec){(void *)pieces[i].data, pieces[i].size};
    pthread_mutex_lock(&channel->lock);
    if (channel->socket >= 0)
        say_locked(channel, spans, 2 + count, head->size);
    pthread_mutex_unlock(&channel->lock);
}

void channel_write_bytes(struct channel *channel, enum frame_kind kind, uint64_t call,
                         const void *bytes, size_t size)
{
    const struct frame_head head = {
        .size = (uint32_t)size, .kind = (uint16_t)kind, .call = call};
    const struct rpc_piece piece = {.data = bytes, .size = size};
    channel_write(channel, &head, NULL, &piece, 1);
}

void channel_write_failure(struct channel *channel, uint64_t call, const struct error *err)
{
    const struct frame_failure failure = {(uint32_t)err->code, (uint32_t)strlen(err->text)};
    const struct rpc_piece pieces[] = {{.data = &failure, .size = sizeof(failure)},
                                       {.data = err->text, .size = failure.text_size},
                                       {.data = err->pointer, .size = strlen(err->pointer)}};
    const struct frame_head head = {
        .size = (uint32_t)(pieces[0].size + pieces[1].size + pieces[2].size),
        .kind = FRAME_FAIL,
        .call = call};
    channel_write(channel, &head, NULL, pieces, ARRAY_LEN(pieces));
}

size_t channel_waiting(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    size_t waiting = channel->out.size - channel->out_at;
    pthread_mutex_unlock(&channel->lock);
    return waiting;
}

static void cut_text(char *out, size_t out_size, const char *text, size_t size)
{
    size_t taken = size < out_size ? size : out_size - 1;
    memcpy(out, text, taken);
    out[taken] = '\0';
}

void channel_failure(const struct frame *frame, struct error *out)
{
    struct frame_failure failure = {.code = UNKNOWN};
    const char *text = (const char *)frame->body + sizeof(failure);
    size_t size = frame->size < sizeof(failure) ? 0 : frame->size - sizeof(failure);
    if (frame->size >= sizeof(failure))
        memcpy(&failure, frame->body, sizeof(failure));
    size_t text_size = failure.text_size < size ? failure.text_size : size;
    bool known = failure.code > OK && failure.code <= UNAUTHENTICATED;
    *out = (struct error){.code = known ? (enum error_code)failure.code : UNKNOWN};
    cut_text(out->text, sizeof(out->text), text, text_size);
    cut_text(out->pointer, sizeof(out->pointer), text + text_size, size - text_size);
}

/* --- reading --- */

typedef void frame_taker(void *arg, const struct frame *frame, const struct error *err);

static bool take_large(struct channel *channel, const struct frame_head *head,
                       frame_taker *take, void *arg)
{
    const struct frame frame = {.kind = (enum frame_kind)head->kind, .call = head->call};
    struct error err;
    (void)fail(&err, EXHAUSTED, "a message has %u bytes, more than the %lld allowed",
               head->size, (long long)channel->message_bytes_max);
    take(arg, &frame, &err);
    channel->skip = head->size;
    return true;
}

/* One frame of what has come from `*at` on; false: it is not whole yet. */
static bool take_one(struct channel *channel, size_t *at, frame_taker *take, void *arg,
                     struct error *err, bool *ok)
{
    struct frame_head head;
    size_t left = channel->have - *at;
    if (channel->skip) {
        size_t skipped = channel->skip < left ? channel->skip : left;
        channel->skip -= skipped;
        *at += skipped;
        return !channel->skip;
    }
    if (left < sizeof(head))
        return false;
    memcpy(&head, channel->in + *at, sizeof(head));
    if (head.kind < FRAME_HELLO || head.kind > FRAME_PONG || head.path_size > head.size) {
        *ok = fail(err, INTERNAL, "a frame of kind %u is none", head.kind);
        return false;
    }
    if ((int64_t)head.size - head.path_size > channel->message_bytes_max + HEAD_SPARE) {
        *at += sizeof(head);
        return take_large(channel, &head, take, arg);
    }
    if (left - sizeof(head) < head.size)
        return false;
    const char *path = channel->in + *at + sizeof(head);
    const struct frame frame = {.kind = (enum frame_kind)head.kind,
                                .call = head.call,
                                .path = path,
                                .path_size = head.path_size,
                                .body = path + head.path_size,
                                .size = head.size - head.path_size};
    *at += sizeof(head) + head.size;
    take(arg, &frame, NULL);
    return true;
}

/* Room for the rest of the frame that has begun; a large one has to show that it comes. */
static void make_room(struct channel *channel)
{
    struct frame_head head = {0};
    if (channel->have >= sizeof(head) && !channel->skip)
        memcpy(&head, channel->in, sizeof(head));
    size_t wanted = sizeof(head) + head.size;
    if (wanted > IN_KEPT_BYTES && wanted / 2 > channel->have)
        wanted = channel->have < IN_KEPT_BYTES / 2 ? IN_KEPT_BYTES : channel->have * 2;
    if (wanted < IN_BYTES)
        wanted = IN_BYTES;
    bool shrinks = channel->capacity > IN_KEPT_BYTES && wanted == IN_BYTES;
    if (channel->capacity >= wanted && !shrinks)
        return;
    channel->in = alloc_resize(channel->in, wanted);
    channel->capacity = wanted;
}

bool channel_read(struct channel *channel, frame_taker *take, void *arg, struct error *err)
{
    bool ok = true;
    pthread_mutex_lock(&channel->lock); /* what the thread did whose turn was before is seen */
    channel->corked = true;
    pthread_mutex_unlock(&channel->lock);
    make_room(channel);
    ssize_t got = recv(channel->socket, channel->in + channel->have,
                       channel->capacity - channel->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        channel_flush(channel);
        return true;
    }
    if (got < 0)
        return error_errno(err, UNAVAILABLE, "the socket broke");
    if (!got)
        return fail(err, UNAVAILABLE, "the other end has gone");
    channel->have += (size_t)got;
    size_t at = 0;
    while (take_one(channel, &at, take, arg, err, &ok)) {
    }
    channel->have -= at;
    memmove(channel->in, channel->in + at, channel->have);
    channel_flush(channel);
    return ok;
}

/* --- addresses --- */

bool channel_address(const char *text, struct sockaddr_un *out, uint32_t *size,
                     struct error *err)
{
    const char *name = text + strlen(RPC_SOCKET_PREFIX);
    size_t length = strlen(name);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!length || length > sizeof(out->sun_path) - 1)
        return fail(err, INVALID, "'%s' is no address of a socket", text);
    memcpy(out->sun_path + 1, name, length); /* behind a NUL: it has no file */
    *size = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return true;
}

bool channel_is_own(int socket, int *pid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return false;
    *pid = peer.pid;
    return peer.uid == geteuid();
}
