/* internal.h - what the files of the master share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/master/master.h"
#include "runtime/runs.h"
#include "runtime/worker/seen.h"

struct callable_names;
struct cluster_session;
struct partial_run;
struct session;

struct master {
    struct master_options options;
    pthread_mutex_t lock; /* guards: all below */
    bool stopped;
    struct master_session *sessions;
    uint64_t used_us; /* when a session came or went */
    struct seen *seen;
    struct runs creating; /* sessions that are being made */
};

struct master_session {
    struct master_session *next; /* of the master's */
    char handle[MASTER_HANDLE_BYTES];
    const struct master_options *options;
    int64_t timeout_ms;
    struct resources *own_resources; /* of `here` when it is isolated */
    struct session *here;            /* one of these two */
    struct cluster_session *cluster; /* over several tasks */
    atomic_int references;           /* the list's, and of each call that uses it */
    atomic_ullong used_us;           /* when a call let go of it */

    pthread_mutex_t extending; /* one at a time; guards: version */
    int64_t version;

    pthread_mutex_t lock; /* guards: all below */
    struct partial_run *partials;
    struct callable_names *callables;
    int64_t partials_made;
    int64_t callables_made;
};

/* --- master_session.c --- */

struct master_session *master_session_new(struct master *master,
                                          const struct master_config *config,
                                          const char *handle, struct cancel *wait,
                                          struct error *err) CHECKED;
void master_session_close(struct master_session *session);

/* --- master_partial.c, master_callable.c: when the session ends --- */

void master_partials_free(struct master_session *session);
void master_callables_free(struct master_session *session);
