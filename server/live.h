/*
 * live.h - the thread that owns all websockets.
 *
 * DESIGN: libmicrohttpd accepts and checks the handshake like any request; then it sleeps on
 * the connection, and libwebsockets gets a copy of the socket together with the request's text,
 * answers the handshake and speaks from there on.  When the websocket is closed, libmicrohttpd
 * is woken and closes its side.
 *
 * A message is written only while little of what was written before is on its way, and in
 * pieces: a client that reads slowly costs LIVE_UNSENT_BYTES in the kernel and one message
 * here. One that takes nothing for LIVE_SLOW_S is closed with 1013, for which there is always
 * room. Others reach the thread by a mailbox and lws_cancel_service(), the only call of
 * libwebsockets that is safe from another thread.
 */
#pragma once

#include "base/base.h"

struct auth_identity;
struct error;
struct http_waker;
struct live;
struct services;
struct str;

struct live *live_start(const struct services *services, struct error *err) CHECKED;

/* Closes all websockets, wakes their connections, ends the thread.  NULL is fine. */
void live_stop(struct live *live);

/*
 * Takes the socket `fd` on which `request` (copied) asked for a websocket.  `waker` is woken,
 * once, when the websocket is over.  False when there are too many: the caller keeps `fd`,
 * nobody is woken.
 */
bool live_adopt(struct live *live, int fd, const struct str *request,
                const struct auth_identity *user, struct http_waker *waker) CHECKED;
