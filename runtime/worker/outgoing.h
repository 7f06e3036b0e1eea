/*
 * outgoing.h - a tensor as the messages that answer RecvTensor.
 *
 * The elements of a large one are lent to the transport where they are, with a reference that
 * is held until it needs them no more.
 */
#pragma once

#include "proto/rpc.h"

struct loan;
struct tensor;
struct worker;

/*
 * Answers with the tensor (shared), or that it is dead: in one message, TensorFlow's form; or,
 * when `chunks` are understood, with the elements of a large one in chunks.  Fails the call
 * with EXHAUSTED when one message cannot hold it, or too much is between tasks (held.h).
 */
void outgoing_reply(struct rpc_call *call, const struct tensor *value, bool dead, bool chunks);

/* Answers RecvBuf with the elements of a plain tensor (shared): TensorFlow's one message. */
void outgoing_reply_buffer(struct rpc_call *call, const struct tensor *value);

/* As outgoing_reply() for a task that is near, or on the same `fabric`, which reads a large one
 * where it is. */
void outgoing_lend(struct rpc_call *call, const struct tensor *value, bool dead,
                   struct worker *worker, const struct loan *loan, bool fabric);
