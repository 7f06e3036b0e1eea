/* service_internal.h - what the files of the service share. */
#pragma once

#include "proto/rpc.h"

struct arena;
struct service;
struct worker;

struct worker *service_worker(const struct service *service);

/* The memory that a request of this call may take. */
struct arena *service_arena(const struct rpc_call *call);

/* What is taken out by one request must not be asked for by its echo: ABORTED. */
bool service_check_first(struct service *service, const char *method, int64_t request_id,
                         struct error *err) CHECKED;

/* --- service_moved.c --- */

void service_moved(void *self, struct rpc_call *call);

/* --- service_collective.c: rpc_handlers of collectives --- */

void service_complete_group(void *self, struct rpc_call *call);
void service_complete_instance(void *self, struct rpc_call *call);
void service_get_step_sequence(void *self, struct rpc_call *call);
void service_receive_buffer(void *self, struct rpc_call *call);
