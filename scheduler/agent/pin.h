/*
 * pin.h - a server known by the SHA-256 of its certificate, which a join token ends with.
 */
#pragma once

#include "base/base.h"

struct error;

enum { PIN_BYTES = 44 }; /* base64 for URLs, with the NUL */

/* The pin of a certificate (PEM); INVALID when it is none. */
bool pin_of(const char *certificate, char pin[PIN_BYTES], struct error *err) CHECKED;

/*
 * Asks the server at "HOST:PORT" for its certificate: PEM, owned.  NULL: UNAVAILABLE when it
 * cannot be reached in time, DENIED when it shows no certificate with this pin: somebody else
 * answers there, or the server has another authority now.
 */
char *pin_fetch(const char *server, const char *pin, struct error *err) CHECKED;
