/*
 * oidc.h - signing in by another provider: OpenID Connect 1.0, the authorization code flow with
 * PKCE (RFC 7636).
 *
 * Nothing is kept here between the two steps: what the second must know is sealed in a cookie.
 * The ID token comes from the provider itself over TLS, which stands for its signature (OpenID
 * Connect Core 1.0, 3.1.3.7, 6); so issuers are https, or on this machine.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct oidc;

#define OIDC_COOKIE_S 600 /* to sign in at the provider */

struct oidc_options {
    const char *issuer;        /* "https://id.example.com" */
    const char *client_id;     /* as the provider knows us */
    const char *client_secret; /* NULL: none, PKCE alone */
    const char *claim;         /* whose value is the user's name: "preferred_username" */
    const char *redirect;      /* ".../oidc/callback" of ours, as browsers reach it */
};

/* INVALID when an option cannot be.  The provider is asked when somebody signs in. */
struct oidc *oidc_new(const struct oidc_options *options, struct error *err) CHECKED;
void oidc_free(struct oidc *oidc); /* NULL is fine */

const char *oidc_issuer(const struct oidc *oidc);

/* The URL to send the browser to, and the value of the cookie to give it; in the arena. */
bool oidc_begin(struct oidc *oidc, struct arena *arena, const char **url, const char **cookie,
                struct error *err) CHECKED;

struct oidc_person {
    const char *subject; /* "ISSUER SUB": who it is, for ever */
    const char *name;    /* what the claim says, without what follows an @ */
};

/*
 * With what the provider sent the browser back: asks it who that is.  UNAUTHENTICATED when this
 * is none of what oidc_begin() began, or the provider says no; UNAVAILABLE when it cannot be
 * asked, EXHAUSTED (here as above) when too many wait for it.
 */
bool oidc_finish(struct oidc *oidc, struct arena *arena, const char *cookie, const char *state,
                 const char *code, struct oidc_person *person, struct error *err) CHECKED;
