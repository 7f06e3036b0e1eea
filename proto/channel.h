/*
 * channel.h - one end of a socket of this machine: frames, both ways (rpc_socket*.c).
 *
 * DESIGN: a frame is a head, a path (of a request) and a body.  Frames that are written while
 * nothing waits go to the system at once, by who writes; what it does not take, and what is
 * written while the reading thread is at work on what came (corked), waits in `out` and is
 * taken by that thread.  So one wake-up carries all that was said, and no writer waits.
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

    /* of the reading thread alone */
    char *in;
    size_t capacity, have;
    size_t skip; /* bytes of a frame that was too large */

    pthread_mutex_t lock; /* guards: all below, and writing */
    struct str out;
    size_t out_at;
    bool corked;
    bool wants_room;
};

void channel_init(struct channel *channel, int64_t message_bytes_max);
void channel_release(struct channel *channel); /* closes, too */

/* Uses a connected socket from now on, whose events come to `epoll` with `watched`. */
bool channel_open(struct channel *channel, int socket, int epoll, void *watched,
                  struct error *err) CHECKED;
void channel_close(struct channel *channel);

/* Never waits.  A peer that is gone shows when the channel is read. */
void channel_write(struct channel *channel, const struct frame_head *head, const char *path,
                   const struct rpc_piece *pieces, int count);
void channel_write_bytes(struct channel *channel, enum frame_kind kind, uint64_t call,
                         const void *bytes, size_t size);
void channel_write_failure(struct channel *channel, uint64_t call, const struct error *err);

/* Bytes that wait for the system to take them. */
size_t channel_waiting(struct channel *channel);

/* The thread is to come back once the system takes more. */
void channel_want_room(struct channel *channel);

/* The system takes again what waits. */
void channel_flush(struct channel *channel);

/*
 * Reads what has come and calls `take` for each whole frame, for one over the limit with `err`
 * (and no body).  False: the peer is gone, or does not speak this language, as `err` says.
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
