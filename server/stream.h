/*
 * stream.h - one client of the live stream: what it subscribed to, and what it is told next.
 *
 * Knows nothing of sockets: live.c brings in what the client sent, and asks for the next
 * message whenever the socket takes one.  Nothing is queued but short answers (at most
 * STREAM_ANSWERS_MAX): a subscription is a cursor, and what is new behind it is read when it
 * can be sent.  So a client that reads slowly gets larger batches less often, and then a gap;
 * one that stops reading is shown out by live.c.
 *
 * Messages in:   {"op": "auth", "token": "ty_…"}, or with "ticket" (tickets.h)
 *                {"op": "subscribe", "id": 1, "topic": "job.metrics", "job": "7", "after_seq":
 * 12, "max_hz": 5}
 *                {"op": "unsubscribe", "id": 1}      {"op": "ping"}
 * Messages out:  {"op": "hello", "user": …}          {"op": "pong"}     {"op": "ping"}
 *                {"op": "snapshot", "id": 1, "seq": 12, "events": […]}   the answer to
 * subscribe
 *                {"op": "batch", "id": 1, "seq": 15, "events": […]}
 *                {"op": "gap", "id": 1, "from": 13, "to": 99, "seq": 99, "fetch": "/api/v1/…"}
 *                {"op": "error", "id": 1, "code": …, "detail": …}
 */
#pragma once

#include "base/base.h"
#include "server/auth.h"

struct recent;
struct services;
struct stream;
struct str;

#define STREAM_SUBSCRIPTIONS_MAX 256
#define STREAM_ANSWERS_MAX 32
#define STREAM_MESSAGE_BYTES 8192 /* the longest that a client may send */

/* Close codes (RFC 6455, and ours above 4000). */
#define STREAM_CLOSE_POLICY 1008
#define STREAM_CLOSE_TOO_LARGE 1009
#define STREAM_CLOSE_BUSY 1013
#define STREAM_CLOSE_SIGNED_OUT 4401

/* `user->way` AUTH_BY_NOTHING: the first message must be "auth".  Copies `user`; `recent` is
 * the thread's. */
struct stream *stream_new(const struct services *services, struct recent *recent,
                          const struct auth_identity *user);
void stream_free(struct stream *stream); /* NULL is fine */

bool stream_signed_in(const struct stream *stream);

/* Whether what it signed in with is still good (auth_still); true before it has. */
bool stream_still(struct stream *stream);

/* Takes one whole message.  Returns 0, or the code to close the connection with. */
int stream_receive(struct stream *stream, const char *text, size_t size);

/* Has the next message be a ping. */
void stream_ping(struct stream *stream);

/*
 * Appends the next message to `out` and returns true, or returns false when there is nothing to
 * say at `now_us` (monotonic); then `*wait_us` says after what time to ask again, 0 for: when
 * feed wakes.
 */
bool stream_next(struct stream *stream, uint64_t now_us, struct str *out, uint64_t *wait_us);

/* Whether asking stream_next() may bring something. */
bool stream_pending(struct stream *stream);
