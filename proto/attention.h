/*
 * attention.h - a thread that waits for what calls bring takes answers itself meanwhile.
 *
 * DESIGN: a client's thread that has an answer has to wake the thread that waits for what is in
 * it.  Where the transport lets it, the one that waits reads in its place, and there is one
 * thread less to be woken.  It does so for a short time only: an answer that takes long costs
 * nothing to be told of, and the client's thread looks after a server that stands still.
 */
#pragma once

#include "base/base.h"

struct attention;
struct rpc_client;

/* From here to its end the calls that the thread begins are noted: it can attend to the last
 * one's client, which is held until then.  They nest. */
void attention_begin(void);
void attention_end(void);

/*
 * Small calls that the thread begins, and answers that it gives, between attention_keep(true)
 * and (false), need not go at once, as others follow: they go with those, or attention_send(),
 * which must be called before the thread does anything that takes time, or waits.
 */
void attention_keep(bool keeps);
void attention_send(void);

/* A call has been begun on this client, by the calling thread.  For rpc.c. */
void attention_note(struct rpc_client *client);

/* That of the calling thread; NULL: it has nothing to attend to. */
struct attention *attention_mine(void);

/*
 * Takes the answers that come, as the client's thread does, until `over(arg)`, or the moment
 * has come (0: none), or that has taken some milliseconds: then, or at once if another thread
 * reads, it is to be waited for in another way.
 */
void attention_give(bool (*over)(void *arg), void *arg, uint64_t until_ns);

/* Whether the calling thread is in attention_give(), and what it looks at there has come: what
 * an answer has it do besides should not take long then. */
bool attention_is_over(void);

/* What the thread looks at in attention_give(), or is about to, has changed; from any thread.
 * It must not leave that meanwhile. */
void attention_call(struct attention *attention);
