/*
 * incoming.h - a tensor as the messages that answer RecvTensor bring it.
 *
 * TensorFlow's form is one message; in ours the elements of a large one follow in chunks.  Both
 * are copied once, from where they came to the tensor.  A task that is near lends its memory,
 * which is read, or mapped (borrowed.h).
 */
#pragma once

#include "proto/rpc.h"
#include "runtime/tensor.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/near.h"

struct incoming {
    const struct near_process *near; /* the sender; NULL: it is not near */
    struct lender *lender;           /* likewise; NULL: what it lends is read, not mapped */
    struct fabric_peer *fabric;      /* the sender; NULL: it is on no fabric with this task */
    int64_t request_id;              /* by which it was asked for */
    bool wants_turn;                 /* the value is used up at once: see turn.h */
    int64_t step_id;                 /* with wants_turn */
    struct tensor value;             /* owned */
    bool dead;
    bool has_begun;
    bool is_held;     /* the value is counted: see held.h */
    bool was_lent;    /* the sender is to be told when it is not needed any more; an error does
                         not change that */
    bool is_borrowed; /* the value lies in the sender's memory, which hears when it is released
                       */
    int64_t sent_us;  /* by the clock of its sender; 0: it does not say */
    size_t missing;   /* bytes that are to follow */
};

/* One message.  Fails with INVALID and the like when it does not fit what came before. */
bool incoming_take(struct incoming *incoming, const void *bytes, size_t size,
                   struct error *err) CHECKED;

/* All has come: whether that is the whole tensor. */
bool incoming_end(struct incoming *incoming, struct error *err) CHECKED;

/* The value is not between tasks any more. */
void incoming_arrived(struct incoming *incoming);

void incoming_release(struct incoming *incoming);
