/*
 * channel.h - one end of a socket of this machine: frames, both ways (rpc_socket*.c).
 *
 * DESIGN: a frame is a head, a path (of a request) and a body.  Frames that are written while
 * nothing waits go to the system at once, by who writes; what it does not take, and what is
 * written while the reading thread is at work on what came (corked), waits in `out` and is
 * taken by that thread.  So one wake-up carries all that was said, and no writer waits.
 *
 * A thread may keep small frames that it writes until others follow, or it has something else
 * to do (channel_keep()); what another writes meanwhile takes them along.
 *
 * Several threads may wait for its events, each of which is told once, to one of them: that
 * has its turn (channel_begin()) and reads, then lets the next event come (channel_end()).
 */
#pragma once

#include "proto/internal.h"

enum frame_kind {
    FRAME_HELLO = 1, /* the first of a client: its secret */
    FRAME_REQUEST,   /* path and message */
    FRAME_CANCEL,    /* the client wants no answer any more */
    FRAME_PART,      /* a message of an answer; others follow */
    FRAME_REPLY,     /* the last one */
    FRAME_FAIL,      /* struct frame_failure, text, pointer */
    FRAME_PING,
    FRAME_PONG,
};

struct frame_head {
    uint32_t size; /* of what follows it */
    uint16_t kind;
    uint16_t path_size;
    uint64_t call; /* of the client's choice */
};

struct frame_failure {
    uint32_t code;
    uint32_t text_size; /* the rest is the pointer */
};

struct frame {
    enum frame_kind kind;
    uint64_t call;
    const char *path;
    size_t path_size;
    const void *body;
    size_t size;
};

struct channel {
    int socket; /* -1: there is none */
    int epoll;  /* that watches it, with `watched` */
    void *watched;
    int64_t message_bytes_max;

    /* of the thread whose turn it is alone */
    char *in;
    size_t capacity, have;
    size_t skip; /* bytes of a frame that was too large */

    pthread_mutex_t lock; /* guards: all below, and writing */
    struct str out;
    size_t out_at;
    bool busy; /* a thread has its turn: no event is wanted, */
    bool led;  /* ... but that of room, as it is a long one, in which it waits */
    bool corked;
    bool wants_room;
};

void channel_init(struct channel *channel, int64_t message_bytes_max);
void channel_release(struct channel *channel); /* closes, too */

/* Uses a connected socket from now on, whose events come to `epoll` with `watched`. */
bool channel_open(struct channel *channel, int socket, int epoll, void *watched,
                  struct error *err) CHECKED;
void channel_close(struct channel *channel);

/* After an event, and before another: false when another thread has its turn, or there is no
 * socket.  Closing it ends the turn, too. */
bool channel_begin(struct channel *channel);
void channel_end(struct channel *channel);

/*
 * Begins a turn in which the thread waits for what comes by itself: returns the socket, to be
 * polled for that and then read; -1: as above.  channel_end() ends it.
 */
int channel_lead(struct channel *channel);

/* Never waits.  A peer that is gone shows when the channel is read. */
void channel_write(struct channel *channel, const struct frame_head *head, const char *path,
                   const struct rpc_piece *pieces, int count);
void channel_write_bytes(struct channel *channel, enum frame_kind kind, uint64_t call,
                         const void *bytes, size_t size);
void channel_write_failure(struct channel *channel, uint64_t call, const struct error *err);

/*
 * Of this channel the calling thread may keep frames, until channel_forget(), before which it
 * must not be released.  One for a thread at a time: others are not kept.
 */
void channel_remember(struct channel *channel);
void channel_forget(const struct channel *channel); /* sends what is kept; another is fine */

/* Whether what the thread writes now is kept, until it has nothing more to say: then this sends
 * it. */
void channel_keep(bool keeps);
void channel_send_kept(void);

/* Bytes that wait for the system to take them. */
size_t channel_waiting(struct channel *channel);

/* There is to be a turn once the system takes more. */
void channel_want_room(struct channel *channel);

/* The system takes again what waits.  In a turn, or when there is none because another thread
 * leads. */
void channel_flush(struct channel *channel);

/*
 * In a turn: reads what has come and calls `take` for each whole frame, for one over the limit
 * with `err` (and no body).  False: the peer is gone, or does not speak this language, as `err`
 * says.
 */
bool channel_read(struct channel *channel,
                  void (*take)(void *arg, const struct frame *frame, const struct error *err),
                  void *arg, struct error *err) CHECKED;

/* What a FRAME_FAIL says. */
void channel_failure(const struct frame *frame, struct error *out);

/* "socket:NAME" as an address of the system; fails with INVALID. */
struct sockaddr_un;
bool channel_address(const char *text, struct sockaddr_un *out, uint32_t *size,
                     struct error *err) CHECKED;

/* Whether the other end of the socket is a process of this one's user; and which. */
bool channel_is_own(int socket, int *pid);
