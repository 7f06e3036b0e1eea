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

/*
 * A certificate for the key of a request (PEM, PKCS #10), signed likewise: of the client
 * `client`, which its names say, and `mark` besides (certificate_read()).  Nothing else of the
 * request is looked at but that who made it has the key, which must be Ed25519: INVALID.
 */
bool certificate_answer(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                        const char *request, const char *client, int64_t mark, int64_t seconds,
                        struct arena *arena, const char **certificate,
                        struct error *err) CHECKED;

struct certificate_client { /* as a certificate says */
    char name[256];
    int64_t mark;
    int64_t until_us; /* wall clock */
};

/*
 * Whose the certificate (PEM) is.  UNAUTHENTICATED when the key of `seed` did not sign it, or
 * not for a client; that its time is over is for the caller to see.
 */
bool certificate_read(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *certificate,
                      struct certificate_client *client, struct error *err) CHECKED;
