/* service_internal.h - what the files of the service share. */
#pragma once

#include <pthread.h>

#include "proto/rpc.h"
#include "runtime/worker/near.h"

struct arena;
struct crew;
struct seen;
struct worker;

enum {
    SERVICE_TASKS_MET = 1024, /* remembered */
    SERVICE_SECRET_BYTES = 33,
};

struct service {
    struct worker *worker;
    struct crew *crew;
    pthread_mutex_t lock; /* guards: all below */
    struct seen *seen;
    unsigned char nonces[SERVICE_TASKS_MET][NEAR_NONCE_BYTES]; /* of tasks that were met last */
    unsigned met;
    struct rpc_server *socket; /* that those are served over, too; NULL: none met yet */
    bool has_no_socket;        /* and never will have */
    char secret[SERVICE_SECRET_BYTES];
};

struct worker *service_worker(const struct service *service);

/* The memory that a request of this call may take. */
struct arena *service_arena(const struct rpc_call *call);

/* Answers with an empty message, or the error. */
void service_answer(struct rpc_call *call, bool ok, const struct error *err);

/* What is taken out by one request must not be asked for by its echo: ABORTED. */
bool service_check_first(struct service *service, const char *method, int64_t request_id,
                         struct error *err) CHECKED;

/* --- service_near.c: rpc_handlers of tasks that are near --- */

void service_meet(void *self, struct rpc_call *call);
void service_finished(void *self, struct rpc_call *call);
void service_tell_fabric(void *self, struct rpc_call *call);

/* --- service_moved.c --- */

void service_moved(void *self, struct rpc_call *call);

/* --- service_collective.c: rpc_handlers of collectives --- */

void service_complete_group(void *self, struct rpc_call *call);
void service_complete_instance(void *self, struct rpc_call *call);
void service_get_step_sequence(void *self, struct rpc_call *call);
void service_receive_buffer(void *self, struct rpc_call *call);
