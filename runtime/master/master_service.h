/*
 * master_service.h - TensorFlow's MasterService over rpc.h.
 */
#pragma once

#include "proto/rpc.h"

struct master;
struct master_service;

/* The master is borrowed. */
struct master_service *master_service_new(struct master *master);

/* After the server and the master have stopped: waits for the last steps.  NULL is fine. */
void master_service_free(struct master_service *service);

/* "/tensorflow.MasterService/…"; `self` of the handlers is the service. */
extern const struct rpc_method master_service_methods[];
