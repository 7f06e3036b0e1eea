/*
 * queue.h - the jobs that wait, by the priority of their queues, their own, and their number.
 */
#pragma once

#include "base/base.h"

struct job;

struct queue {         /* embedded; all zero is empty */
    struct job **jobs; /* borrowed */
    int count;
    int capacity;
};

void queue_release(struct queue *queue);

/* The job must not be in it yet; its rank and number do not change while it is. */
void queue_add(struct queue *queue, struct job *job);

/* The job must be in it. */
void queue_remove(struct queue *queue, const struct job *job);

/* The place of a job, from 0; -1 when it does not wait. */
int queue_position(const struct queue *queue, const struct job *job);
