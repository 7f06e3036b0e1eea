/*
 * held.h - the memory of tensors that are between tasks, and its bound.
 *
 * Between tasks is what waits for who receives it, is being received or sent, or is lent.  What
 * would go over the bound fails its step instead of taking the machine's memory.  A buffer
 * counts once, however many hold it.  One count for the process; callable from any thread.
 */
#pragma once

#include "base/base.h"

struct error;
struct tensor;

/* 0: half of the memory that the machine gives this process. */
void held_set_max(int64_t bytes);

/* One more holds the tensor.  Fails with EXHAUSTED, and then does not count. */
bool held_add(const struct tensor *value, struct error *err) CHECKED;

/* As held_add() for what its caller holds already: cannot fail. */
void held_add_again(const struct tensor *value);

/* One less. */
void held_drop(const struct tensor *value);

int64_t held_bytes(void);
