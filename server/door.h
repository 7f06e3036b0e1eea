/*
 * door.h - sockets that listen.
 */
#pragma once

#include "base/base.h"

struct error;

/*
 * A listening TCP socket on `host` (a numeric address) and `port` (0: any free one), or -1 and
 * `err`: UNAVAILABLE when the port is taken, with what to do about it.  `*port` becomes the
 * real port.
 */
int door_tcp(const char *host, int *port, struct error *err) CHECKED;

/* One on a path, for this user alone; what a dead server left there is replaced.  -1 as above.
 */
int door_unix(const char *path, struct error *err) CHECKED;
