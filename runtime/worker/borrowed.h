/*
 * borrowed.h - tensors in the memory of a near task, which lends them until they are given
 * back.
 *
 * A borrowed buffer is mapped, not read: nothing is copied.  Its elements may be written only
 * if the lender says that nobody else looks at them.  When the last reference to it goes the
 * lender is told; should it stop lending before, the elements stay as they are.
 */
#pragma once

#include "base/base.h"

struct buffer;
struct lender;
struct near_place;
struct near_process;

/* `size` bytes that are lent there by that request; NULL: they have to be read. */
struct buffer *borrowed_buffer(struct lender *lender, const struct near_process *process,
                               const struct near_place *place, int64_t request_id, size_t size);
