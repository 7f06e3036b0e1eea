/*
 * turn.h - large values of several steps that come to be added to what this process keeps.
 *
 * A gradient is needed while it is added to a variable, or to a sum, and no longer; but several
 * steps that send one at a time have all of them in memory.  So they take turns: a value is
 * fetched when the one before has been used.  That costs no time, as they share the way here
 * and the memory that they are added to.
 *
 * Only a value that its sender has made takes a turn, so who has it waits for nothing but its
 * own kernel.  Should it wait all the same (for a value that is read beside it), those behind
 * it go on after as long as a slow fetch takes: no step waits for another for ever.  Callable
 * from any thread.
 */
#pragma once

#include "base/base.h"

struct tensor;

#define TURN_BYTES_MIN ((size_t)4 << 20) /* what is smaller is not missed */

/*
 * Waits until no other step's value has its turn, and takes it for one of `bytes`.  A value
 * that the calling thread has fetched itself holds it up no more: nobody else may be there to
 * use it.
 */
uint64_t turn_begin(int64_t step_id, size_t bytes);

/* The turn ends with the elements' memory, or before. */
void turn_give(uint64_t turn, struct tensor *value);

/* The turn is over; it may have been before. */
void turn_end(uint64_t turn);

/* A value that was kept, and is used now: it has the next turn, without waiting for it. */
void turn_take(struct tensor *value);

/* A value that is kept has no turn. */
void turn_keep(const struct tensor *value);

/* Tests: whose turn it is; 0: nobody's. */
uint64_t turn_current(void);

/* Who receives a value says before, on the same thread, whether it is used up at once. */
void turn_set_wanted(bool wanted);
bool turn_wanted(void);
