/* cluster.c - see cluster.h. */

#include <sodium.h>

#include "base/arena.h"
#include "base/error.h"
#include "db/jobs.h"
#include "db/seal.h"
#include "proto/rpc.h"
#include "runtime/spec/spec.h"
#include "server/certificate.h"
#include "server/cluster.h"

bool cluster_is(const struct db_job *job)
{
    return !job->program[0] && !job->dataset[0]; /* a model has data */
}

bool cluster_idle_seconds(const struct db_job *job, struct arena *arena, int64_t *seconds,
                          struct error *err)
{
    const struct spec *spec = spec_parse(arena, job->spec, strlen(job->spec), err);
    if (!spec)
        return error_prefix(err, "the stored spec: ");
    *seconds = spec->idle_seconds;
    return true;
}

static bool seed_of(struct db_conn *conn, const char *folder, int64_t epoch,
                    uint8_t seed[CERTIFICATE_SEED_BYTES], struct error *err)
{
    static_assert((int)CERTIFICATE_SEED_BYTES == (int)DB_SEAL_DERIVED_BYTES,
                  "one is the other");
    return db_seal_derive(conn, folder, "the tasks of attempt", epoch, seed, err);
}

bool cluster_certificate(struct db_conn *conn, const char *folder, int64_t epoch,
                         struct arena *arena, const char **certificate, const char **key,
                         struct error *err)
{
    uint8_t seed[CERTIFICATE_SEED_BYTES];
    bool ok = seed_of(conn, folder, epoch, seed, err) &&
              certificate_make(seed, RPC_TASKS_NAME, arena, certificate, key, err);
    sodium_memzero(seed, sizeof(seed));
    return ok;
}

bool cluster_pass_make(struct db_conn *conn, const char *folder, int64_t epoch,
                       const char *user, struct arena *arena, struct cluster_pass *pass,
                       struct error *err)
{
    uint8_t seed[CERTIFICATE_SEED_BYTES];
    const char *key;
    bool ok = seed_of(conn, folder, epoch, seed, err) &&
              certificate_make(seed, RPC_TASKS_NAME, arena, &pass->authority, &key, err) &&
              certificate_sign(seed, RPC_TASKS_NAME, user, CLUSTER_PASS_S, arena,
                               &pass->certificate, &pass->key, err);
    sodium_memzero(seed, sizeof(seed));
    return ok;
}
