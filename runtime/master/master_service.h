/*
 * master_service.h - TensorFlow's MasterService over rpc.h.
 */
#pragma once

#include "proto/rpc.h"

struct master;
struct master_service;

/* The master is borrowed. */
struct master_service *master_service_new(struct master *master);

/* After the server has stopped: waits for the steps that go on.  NULL is fine. */
void master_service_free(struct master_service *service);

/* "/tensorflow.MasterService/…"; `self` of the handlers is the service. */
extern const struct rpc_method master_service_methods[];
