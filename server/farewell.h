/*
 * farewell.h - the last moments of connections whose answer came before their request was read.
 *
 * A socket that is closed with bytes unread resets its connection, and who still sends a body
 * may then lose the answer that refuses it (RFC 9112, 9.6).  One thread reads what still comes,
 * and throws it away, until the client closes.
 */
#pragma once

#include "base/base.h"

struct error;
struct farewell;

#define FAREWELL_MAX 256          /* connections at once; more are closed as they come */
#define FAREWELL_BYTES (16 << 20) /* that one of them may still send ... */
#define FAREWELL_MS 3000          /* ... in this time */

/* Owned; NULL with EXHAUSTED when its thread does not start. */
struct farewell *farewell_new(struct error *err) CHECKED;

/* Closes all that are left.  NULL is fine. */
void farewell_free(struct farewell *farewell);

/*
 * Takes socket `fd`, all of whose answer has been written: says that nothing more is written,
 * and closes it when its peer does, or is over a limit.  From any thread.
 */
void farewell_take(struct farewell *farewell, int fd);
