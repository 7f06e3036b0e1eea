/*
 * tickets.h - what opens one websocket, within half a minute: for a page or program that is to
 * follow a job but not to hold a token.
 *
 * Kept in memory alone; the oldest goes when there are TICKETS_MAX.  A stream that was opened
 * so ends with the token or session that the ticket was made by.
 */
#pragma once

#include "db/tokens.h"
#include "server/auth.h"

struct tickets;

#define TICKETS_MAX 1024
#define TICKET_SECONDS 30

struct tickets *tickets_new(void);
void tickets_free(struct tickets *tickets); /* NULL is fine */

/* Makes one of `user`, who came by a token or a session. */
void tickets_add(struct tickets *tickets, const struct auth_identity *user, uint64_t now_us,
                 char text[DB_TOKEN_BYTES]);

/* Uses it up: whose it was, his name in `arena`.  UNAUTHENTICATED when it is no good. */
bool tickets_take(struct tickets *tickets, const char *text, uint64_t now_us,
                  struct arena *arena, struct auth_identity *user, struct error *err) CHECKED;
