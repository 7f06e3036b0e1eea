/*
 * client.h - the REST API from the command line's side.
 *
 * Which server: --dir DIR (its control.sock, no token), else TRAINYARD_URL and TRAINYARD_TOKEN,
 * else TRAINYARD_DIR, else what `trainyard login` has kept.  Where its certificate is of an
 * authority that the system does not know, TRAINYARD_CA names the file with that authority's.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct client;
struct error;

/* `folder` NULL: find out.  Fails with INVALID when nothing says which server is meant. */
struct client *client_open(const char *folder, struct error *err) CHECKED;
void client_close(struct client *client); /* NULL is fine */

/* "http://127.0.0.1:7070" or the socket's path: for messages. */
const char *client_name(const struct client *client);

/* Whether the server is the one of a folder on this machine. */
bool client_is_local(const struct client *client);

/*
 * One request.  `body` NULL: none; `key` NULL or an Idempotency-Key.  Returns the answer, owned
 * (json_null() when it is empty); on a problem NULL, with its code, text, pointer and hint in
 * `err`; UNAVAILABLE when no server answers.
 */
json_t *client_json(struct client *client, const char *method, const char *path,
                    const char *body, const char *key, struct error *err) CHECKED;

/* How long the requests that follow may take, where 30 seconds are too short. */
void client_patience(struct client *client, int seconds);

/* The same with PUT for bytes. */
json_t *client_put(struct client *client, const char *path, const void *bytes, size_t size,
                   struct error *err) CHECKED;

/* The same with GET for text; `headers_offset` (may be NULL) gets X-Next-Offset, -1 without. */
struct str;
bool client_text(struct client *client, const char *path, struct str *out, int64_t *next_offset,
                 struct error *err) CHECKED;

/*
 * GET into the file `to`, which then has `size` bytes.  What comes is kept in `to`.part until
 * it is whole; a later call goes on behind what is there.
 */
bool client_download(struct client *client, const char *path, const char *to, int64_t size,
                     struct error *err) CHECKED;

/*
 * Follows server-sent events and gives the data of each to `event` until that returns false
 * (then true is returned).  Goes on after the last one when the server goes away and comes
 * back; `lost` (may be NULL) is told then, and once it is back.  `tick` (may be NULL) is called
 * every second or so, whatever comes.
 */
struct client_follower {
    bool (*event)(void *self, const char *topic, json_t *event);
    void (*lost)(void *self, bool is_lost);
    void (*tick)(void *self);
    void *self;
};
bool client_follow(struct client *client, const char *path,
                   const struct client_follower *follower, struct error *err) CHECKED;

/* Keeps `url` and `token` in ~/.config/trainyard/login (mode 0600). */
bool client_keep(const char *url, const char *token, struct error *err) CHECKED;

/* A client for this very server, not yet kept. */
struct client *client_open_url(const char *url, const char *token, struct error *err) CHECKED;
