/*
 * yard.h - a server within a fuzz target: everything from the socket to the database, without
 * an agent, in a folder in memory.
 */
#pragma once

#include "base/base.h"

/* The answer to this request is a websocket, signed in; it lives until the next call. */
const char *yard_handshake(void);

/*
 * Sends the bytes over a connection of the local door, where everything is allowed, and ends
 * its side; with a handshake the connection is one as from a network, and the bytes are sent
 * when that has been answered.  Reads what comes until the server ends its side, or says
 * nothing for `quiet_ms`; with `until` its own side stays open, and it reads on to that text.
 * Returns how much of the answer is in `answer`, which is ended by NUL.
 *
 * The server has one job, number 1.  It is begun anew now and then, so that what inputs leave
 * does not pile up.
 */
size_t yard_talk(const char *handshake, const void *bytes, size_t size, const char *until,
                 int quiet_ms, char *answer, size_t answer_size);
