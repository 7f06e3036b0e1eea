/*
 * rpc_grpc_duty.h - which thread serves a completion queue of a server.
 *
 * DESIGN: one thread is on duty: it takes what the queue gives and handles it.  Another stands
 * by, asleep until a timer fires.  A handler may leave the one on duty a piece of work that it
 * takes to be short, so that no thread has to be woken for it; if it is not short the timer
 * does fire, and the one that stood by takes over.  The other stands by when it is done.
 */
#pragma once

#include <pthread.h>

#include "proto/rpc_grpc.h"

enum { RPC_GRPC_DUTY_MS = 1 }; /* nobody looks after the queue for this long at most */

struct rpc_grpc_duty {
    grpc_completion_queue *queue;
    int timer;

    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t changed;
    int references; /* the owner's, each thread's */
    int threads;
    int away;       /* of those: at work, but on duty no more */
    bool stands_by; /* a thread does */
    bool at_work;   /* the thread on duty is */
    bool over;      /* the queue has been shut down and drained */
};

/* Starts the first thread; asserts that there is one to be had. */
struct rpc_grpc_duty *rpc_grpc_duty_start(grpc_completion_queue *queue);

/* Waits until the queue, which has been shut down, is drained and no thread sees it any more:
 * what was left to a thread that has been taken over for may go on. */
void rpc_grpc_duty_end(struct rpc_grpc_duty *duty);

/* In a handler: the thread on duty does this next.  False: it has such work already, or nobody
 * would stand by. */
bool rpc_grpc_duty_leave(struct rpc_grpc_duty *duty, void (*work)(void *arg), void *arg);
