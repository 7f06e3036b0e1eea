/*
 * buffer_shared.h - buffers in memory that near tasks map (shared_memory.h).
 *
 * For large tensors that go to other tasks: who receives one has it where its sender made it.
 * While a buffer's `borrowers` may still use it nobody else writes it, and its memory is not
 * used again: what they do not give back is left to them.
 */
#pragma once

#include "runtime/tensor.h"

#define BUFFER_SHARED_BYTES_MIN ((size_t)4 << 20)

/* This process exchanges tensors with tasks that may be near. */
void buffer_share_large(void);

/* Whether a tensor of so many bytes would be in such memory. */
bool buffer_is_shared_at(size_t size);

/* NULL: it is not, or the system has no such memory. */
struct buffer *buffer_new_shared(size_t size);

/* One more process may use the elements; and it has given them back. */
void buffer_borrow(struct buffer *buffer);
void buffer_give_back(struct buffer *buffer);

/* What waits in such memory: a part of buffer_free_spare(). */
void buffer_free_spare_shared(void);
