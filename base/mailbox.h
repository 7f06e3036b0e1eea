/*
 * mailbox.h - messages handed from many threads to one.
 *
 * Bounded.  The poster gives a pointer away; the owner of the mailbox takes it.  A loop that
 * waits on file descriptors too may ask for one that becomes readable when there is mail.
 */
#pragma once

#include "base/base.h"

struct mailbox;

struct mailbox *mailbox_new(int capacity);
void mailbox_free(
    struct mailbox *mailbox); /* must be empty of what needs freeing; NULL is fine */

/* Gives `message` away.  False when the mailbox is full or closed: the caller keeps it. */
bool mailbox_post(struct mailbox *mailbox, void *message) CHECKED;

/* As mailbox_post(), but waits up to `timeout_ms` for room. */
bool mailbox_post_wait(struct mailbox *mailbox, void *message, int timeout_ms) CHECKED;

/* The oldest message, owned; NULL after `timeout_ms` (0: at once), or when closed and empty. */
void *mailbox_take(struct mailbox *mailbox, int timeout_ms);

/* From now on nothing is accepted; what is there can still be taken. */
void mailbox_close(struct mailbox *mailbox);
bool mailbox_closed(struct mailbox *mailbox);

int mailbox_count(struct mailbox *mailbox);

/* An eventfd that is readable while there is mail (or it is closed); borrowed from the mailbox.
 */
int mailbox_fd(struct mailbox *mailbox);
