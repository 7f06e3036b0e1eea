/* room.h - whether there is memory for one more request. */
#pragma once

#include "base/error.h"

/*
 * UNAVAILABLE when the process may hardly have more memory: what it has is for the requests
 * that are being answered, the scheduler and the databases, which could only end without.
 * Looks every few milliseconds, so it may be asked before each request.
 */
bool room_check(struct error *err) CHECKED;
