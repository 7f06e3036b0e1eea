/*
 * cluster.h - jobs whose tasks serve TensorFlow's clients: what a spec says of them, and what
 * a client must have to be let in.
 */
#pragma once

#include "base/base.h"

struct arena;
struct db_conn;
struct db_job;
struct error;

/* Whether the job is one. */
bool cluster_is(const struct db_job *job);

/* After so long without use it ends; from the stored spec. */
bool cluster_idle_seconds(const struct db_job *job, struct arena *arena, int64_t *seconds,
                          struct error *err) CHECKED;

enum { CLUSTER_PASS_S = 600 };

/* PEM texts, in the arena. */
struct cluster_pass {
    const char *authority;         /* the certificate of the attempt: the only one to trust */
    const char *certificate, *key; /* of a client, for CLUSTER_PASS_S */
};

/* By which the tasks of the attempt know each other; the same whenever it is made. */
bool cluster_certificate(struct db_conn *conn, const char *folder, int64_t epoch,
                         struct arena *arena, const char **certificate, const char **key,
                         struct error *err) CHECKED;

/* Lets `user` in to the tasks of the attempt, as a client and as nothing else. */
bool cluster_pass_make(struct db_conn *conn, const char *folder, int64_t epoch,
                       const char *user, struct arena *arena, struct cluster_pass *pass,
                       struct error *err) CHECKED;
