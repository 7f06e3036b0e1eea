/*
 * service.h - a worker for other processes: TensorFlow's WorkerService over rpc.h.
 *
 * DESIGN: what may take long (a graph, a step's values) is taken apart on a crew's threads, and
 * what has to wait for others (a run, a tensor that is yet to be sent) is kept and answered
 * when it has come; the thread of the completion queue only reads small messages.
 */
#pragma once

#include "proto/rpc.h"

struct service;
struct worker;

/*
 * RecvTensor in a form of our own: the same request; the elements of a large tensor come in
 * messages behind the first.  A task that answers it says so in GetStatus, and no other is
 * asked.
 */
#define SERVICE_CHUNKS "/trainyard.WorkerService/RecvTensor"

/* Whether a task may read this one's memory: see near.h. */
#define SERVICE_MEET "/trainyard.WorkerService/Meet"

/* Where the task is reached over its fabric (fabric.h), as it is; NOT_FOUND when it has none.
 * The request is empty. */
#define SERVICE_FABRIC "/trainyard.WorkerService/Fabric"

/* A tensor that was lent is not needed any more: NOT_FOUND if it was not held until now.  The
 * request is that of MarkRecvFinished, which is TensorFlow's and promises nothing. */
#define SERVICE_FINISHED "/trainyard.WorkerService/Finished"

/* Where a task is that was placed anew: see moved.h. */
#define SERVICE_MOVED "/trainyard.WorkerService/Moved"

/* The worker is borrowed. */
struct service *service_new(struct worker *worker);

/* After the server has been stopped, and before the worker is freed.  NULL is fine. */
void service_free(struct service *service);

/* For rpc_server_start(), with the service as `self`; ends with a NULL path. */
extern const struct rpc_method service_methods[];
