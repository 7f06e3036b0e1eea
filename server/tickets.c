/* tickets.c - a short table under a lock. */

#include "server/tickets.h"

#include <pthread.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"

struct ticket {
    uint8_t hash[crypto_generichash_BYTES];
    uint64_t until_us; /* monotonic; 0: none, or used up */
    char name[LIMIT_NAME_BYTES + 1];
    struct auth_identity user; /* whose name is above */
};

struct tickets {
    pthread_mutex_t lock; /* guards all below */
    struct ticket list[TICKETS_MAX];
    int next;
};

static_assert(DB_TOKEN_BYTES > 3 + 43, "room for the text of a ticket");

static void hash_of(const char *text, uint8_t hash[crypto_generichash_BYTES])
{
    crypto_generichash(hash, crypto_generichash_BYTES, (const uint8_t *)text, strlen(text),
                       NULL, 0);
}

struct tickets *tickets_new(void)
{
    struct tickets *tickets = alloc_bytes(sizeof(*tickets));
    pthread_mutex_init(&tickets->lock, NULL);
    return tickets;
}

void tickets_free(struct tickets *tickets)
{
    if (!tickets)
        return;
    pthread_mutex_destroy(&tickets->lock);
    free(tickets);
}

void tickets_add(struct tickets *tickets, const struct auth_identity *user, uint64_t now_us,
                 char text[DB_TOKEN_BYTES])
{
    uint8_t secret[32];
    randombytes_buf(secret, sizeof(secret));
    memcpy(text, "tk_", 3);
    sodium_bin2base64(text + 3, DB_TOKEN_BYTES - 3, secret, sizeof(secret),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof(secret));
    pthread_mutex_lock(&tickets->lock);
    struct ticket *ticket = &tickets->list[tickets->next++ % TICKETS_MAX];
    tickets->next %= TICKETS_MAX;
    hash_of(text, ticket->hash);
    ticket->until_us = now_us + TICKET_SECONDS * UINT64_C(1000000);
    snprintf(ticket->name, sizeof(ticket->name), "%s", user->user);
    ticket->user = *user;
    pthread_mutex_unlock(&tickets->lock);
}

bool tickets_take(struct tickets *tickets, const char *text, uint64_t now_us,
                  struct arena *arena, struct auth_identity *user, struct error *err)
{
    uint8_t hash[crypto_generichash_BYTES];
    bool found = false;
    hash_of(text, hash);
    pthread_mutex_lock(&tickets->lock);
    for (int i = 0; i < TICKETS_MAX && !found; i++) {
        struct ticket *ticket = &tickets->list[i];
        if (ticket->until_us <= now_us || sodium_memcmp(ticket->hash, hash, sizeof(hash)) != 0)
            continue;
        ticket->until_us = 0;
        *user = ticket->user;
        user->user = arena_text(arena, ticket->name);
        user->csrf = "";
        found = true;
    }
    pthread_mutex_unlock(&tickets->lock);
    return found ||
           fail(err, UNAUTHENTICATED, "the ticket is unknown, used, or older than %d seconds",
                TICKET_SECONDS);
}
