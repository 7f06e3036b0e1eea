/*
 * certificate.h - a certificate that signs itself, made from a seed.
 *
 * Ed25519 (RFC 8410), X.509 version 3 (RFC 5280): equal seeds and names give equal bytes, so
 * that who has the seed need not keep it.  Good for both ends of a connection whose peers
 * trust this certificate alone, and without an end: what it is for is over sooner.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;

enum { CERTIFICATE_SEED_BYTES = 32 };

/* PEM texts in `arena`.  Fails with INTERNAL when the library does. */
bool certificate_make(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                      struct arena *arena, const char **certificate, const char **key,
                      struct error *err) CHECKED;

/*
 * Another certificate, with a key that nobody had before, signed by the one that `seed` and
 * `name` make: who trusts that one takes the holder for a client, `client` by name, from now on
 * and for so many seconds (and an hour before: clocks differ), and nobody takes him for a
 * server.  PEM texts in `arena`.
 */
bool certificate_sign(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                      const char *client, int seconds, struct arena *arena,
                      const char **certificate, const char **key, struct error *err) CHECKED;
