/*
 * rendezvous.h - where the parts of one step meet: values by key, each received once.
 *
 * A value that comes before its receiver waits, and so does a receiver; neither holds a thread.
 * The key names sender, incarnation, receiver, tensor, frame and iteration:
 *
 *   /job:ps/replica:0/task:0/device:CPU:0;00000000deadbeef;
 *   /job:worker/replica:0/task:1/device:CPU:0;edge_7_W/read;0:0     (in one line)
 *
 * A rendezvous that has a task gets what other tasks send by its `fetch`.  Callable from any
 * thread; counted.
 */
#pragma once

#include "base/base.h"

struct error;
struct rendezvous;
struct tensor;

/* Called once, by the thread that sends or aborts, under no lock.  `err` NULL: it has come; the
 * value is borrowed. */
typedef void rendezvous_receiver(void *arg, const struct tensor *value, bool dead,
                                 const struct error *err);

/* Asks the task that sends `key` for it; `receiver` is called as above, perhaps at once. */
typedef void rendezvous_fetch(void *arg, const char *key, rendezvous_receiver *receiver,
                              void *receiver_arg);

/*
 * What is sent by another task than `task` is got by `fetch`; NULL: all is sent here.  `arg`
 * lives as long as anything is fetched.
 */
struct rendezvous *rendezvous_new(const char *task, rendezvous_fetch *fetch, void *arg);
void rendezvous_ref(struct rendezvous *rendezvous);
void rendezvous_unref(struct rendezvous *rendezvous); /* NULL is fine */

/*
 * Shares the value, or says that it is dead.  Never waits.  Fails with the status of an abort,
 * and with EXHAUSTED when too many values wait, or too much memory (held.h).
 */
bool rendezvous_send(struct rendezvous *rendezvous, const char *key, const struct tensor *value,
                     bool dead, struct error *err) CHECKED;

/*
 * The same with numbers that may change until they are received: who receives gets a copy of
 * what they are then.
 */
bool rendezvous_send_changing(struct rendezvous *rendezvous, const char *key,
                              const struct tensor *value, struct error *err) CHECKED;

/* The same; the value is given away, whether it goes well or not. */
bool rendezvous_send_own(struct rendezvous *rendezvous, const char *key, struct tensor *value,
                         bool dead, struct error *err) CHECKED;

/* Calls `receiver` once when the value has come or the step is aborted, perhaps at once. */
void rendezvous_receive(struct rendezvous *rendezvous, const char *key,
                        rendezvous_receiver *receiver, void *arg);

/* As rendezvous_receive() for another task, whose wish is never fetched on. */
void rendezvous_receive_local(struct rendezvous *rendezvous, const char *key,
                              rendezvous_receiver *receiver, void *arg);

/* Takes a receiver back; false if it was called, or is being called. */
bool rendezvous_withdraw(struct rendezvous *rendezvous, const char *key, const void *arg);

/* How many values and receivers wait. */
int rendezvous_count(struct rendezvous *rendezvous);

/* All who wait, and all later calls, fail with `err`; the first abort decides. */
void rendezvous_abort(struct rendezvous *rendezvous, const struct error *err);

/* Whether it was aborted, and with what. */
bool rendezvous_aborted(struct rendezvous *rendezvous, struct error *err);

/*
 * Calls a receiver with a value that its giver needs no more: the first that takes it has the
 * giver's own reference, not one more, and what is run next may write there in place.
 */
void rendezvous_give(rendezvous_receiver *receiver, void *arg, struct tensor *value);

/* Whether a receiver was called with it by rendezvous_give(), and nobody has taken it yet. */
bool rendezvous_is_given(const struct tensor *value);

/* A reference to what a receiver was called with: the giver's, if it gives it; `value` is empty
 * then. */
void rendezvous_take(const struct tensor *value, struct tensor *out);

/*
 * Who calls a receiver with what came from afar says before, on the same thread, how long it
 * was on its way, and 0 after; the receiver may ask.
 */
void rendezvous_set_travel(uint64_t ns);
uint64_t rendezvous_travel(void);

/* Whether the key has its five parts; fails with INVALID as TensorFlow does. */
bool rendezvous_check_key(const char *key, struct error *err) CHECKED;

/* Whether the sender that the key names is of `task` ("/job:ps/replica:0/task:0"). */
bool rendezvous_key_is_from(const char *key, const char *task);
