/* collective.h - a worker's side of collectives: see runtime/collective.h. */
#pragma once

#include <pthread.h>

#include "base/error.h"
#include "runtime/collective.h"
#include "runtime/worker/buffers.h"
#include "runtime/worker/groups.h"

struct worker;
struct worker_link;

/* Of one step; of nearly all steps nothing of it is used. */
struct collective {
    struct worker *worker;
    int64_t step_id;
    pthread_mutex_t lock;    /* guards: all below */
    struct buffers *buffers; /* made at the first need */
    struct asking *asking;   /* other tasks, and those who have not answered */
    bool aborted;
    struct error err;
};

void collective_init(struct collective *collective, struct worker *worker, int64_t step_id);
void collective_release(struct collective *collective); /* nothing waits any more */

struct buffers *collective_buffers(struct collective *collective);

/* --- ids of the steps of graphs with collectives --- */

struct sequences; /* locked by themselves */
struct sequences *sequences_new(void);
void sequences_free(struct sequences *sequences);

/* The next id; a random one where none is known, if so asked.  False: it is not known. */
bool sequences_next(struct sequences *sequences, int64_t graph_key, bool begin,
                    int64_t *step_id);
void sequences_set(struct sequences *sequences, int64_t graph_key, int64_t step_id);
void sequences_retire(struct sequences *sequences, int64_t graph_key, int64_t step_id);
