/*
 * lender.h - a near task to which what it lends is given back.
 *
 * What was borrowed may be kept for longer than the link by which it came, which is called
 * while it is there.  Counted; callable from any thread.
 */
#pragma once

#include "base/base.h"

struct lender;

struct lender *lender_new(void (*give_back)(void *arg, int64_t request_id), void *arg);
void lender_ref(struct lender *lender);
void lender_unref(struct lender *lender); /* NULL is fine */

/* What was lent by that request is not needed any more. */
void lender_tell(struct lender *lender, int64_t request_id);

/* `give_back` is not called any more: returns when nobody does. */
void lender_close(struct lender *lender);
