/* authority.c - see authority.h. */

#include <pthread.h>
#include <sodium.h>
#include <time.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/db.h"
#include "db/seal.h"
#include "proto/rpc.h"
#include "scheduler/agent/pin.h"
#include "server/authority.h"
#include "server/certificate.h"

#define KNOWN                                                                                  \
    1024 /* certificates that were read already: a signature takes 0.1 ms to check             \
          */

struct known {
    uint8_t hash[crypto_generichash_BYTES]; /* of the certificate's text */
    struct certificate_client client;       /* name "": the place is free */
};

struct authority {
    uint8_t seed[CERTIFICATE_SEED_BYTES];
    struct arena *arena; /* of the texts in `tls` */
    struct rpc_tls tls;
    char pin[PIN_BYTES];

    pthread_mutex_t lock; /* guards: known */
    struct known known[KNOWN];
};

struct authority *authority_new(struct db *db, const char *folder, struct error *err)
{
    static_assert((int)CERTIFICATE_SEED_BYTES == (int)DB_SEAL_DERIVED_BYTES,
                  "one is the other");
    struct authority *authority = alloc_bytes(sizeof(*authority));
    authority->arena = arena_new();
    authority->tls.asks = true;
    pthread_mutex_init(&authority->lock, NULL);
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok =
        conn && db_seal_derive(conn, folder, "the authority of nodes", 0, authority->seed, err);
    db_read_done(db, conn);
    if (ok &&
        certificate_make(authority->seed, RPC_NODES_NAME, authority->arena,
                         &authority->tls.certificate, &authority->tls.key, err) &&
        pin_of(authority->tls.certificate, authority->pin, err))
        return authority;
    authority_free(authority);
    return NULL;
}

void authority_free(struct authority *authority)
{
    if (!authority)
        return;
    sodium_memzero(authority->seed, sizeof(authority->seed));
    pthread_mutex_destroy(&authority->lock);
    arena_free(authority->arena);
    free(authority);
}

const struct rpc_tls *authority_tls(const struct authority *authority)
{
    return &authority->tls;
}

const char *authority_pin(const struct authority *authority)
{
    return authority->pin;
}

/* --- who calls --- */

/* As certificate_read(), which is asked once for each certificate as a rule. */
static bool read_known(struct authority *authority, const char *text,
                       struct certificate_client *client, struct error *err)
{
    uint8_t hash[crypto_generichash_BYTES];
    uint32_t place;
    crypto_generichash(hash, sizeof(hash), (const uint8_t *)text, strlen(text), NULL, 0);
    memcpy(&place, hash, sizeof(place));
    struct known *known = &authority->known[place % KNOWN];
    pthread_mutex_lock(&authority->lock);
    bool found = known->client.name[0] && memcmp(known->hash, hash, sizeof(hash)) == 0;
    if (found)
        *client = known->client;
    pthread_mutex_unlock(&authority->lock);
    if (found)
        return true;
    if (!certificate_read(authority->seed, text, client, err))
        return false;
    pthread_mutex_lock(&authority->lock);
    memcpy(known->hash, hash, sizeof(hash));
    known->client = *client;
    pthread_mutex_unlock(&authority->lock);
    return true;
}

static bool fail_over(const struct certificate_client *client, struct error *err)
{
    char day[40];
    time_t seconds = (time_t)(client->until_us / 1000000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return fail(err, UNAUTHENTICATED,
                "the certificate of node '%s' ran out on %s: join again with a token "
                "(trainyard token create --join)",
                client->name, day);
}

bool authority_check(struct authority *authority, const struct rpc_call *call,
                     struct authority_node *node, struct error *err)
{
    struct certificate_client client;
    const char *text = rpc_call_certificate(call);
    if (!text)
        return fail(err, UNAUTHENTICATED,
                    "a node must show its certificate: join with a token first");
    if (!read_known(authority, text, &client, err))
        return false;
    if ((int64_t)clock_wall_us() >= client.until_us)
        return fail_over(&client, err);
    memcpy(node->name, client.name, sizeof(node->name));
    node->token = client.mark;
    return true;
}

bool authority_issue(struct authority *authority, const char *request,
                     const struct authority_node *node, struct arena *arena,
                     const char **certificate, struct error *err)
{
    return certificate_answer(authority->seed, RPC_NODES_NAME, request, node->name, node->token,
                              AUTHORITY_NODE_S, arena, certificate, err);
}
