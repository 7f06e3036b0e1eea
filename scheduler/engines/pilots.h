/*
 * pilots.h - which pilots an engine is asked for, and which are let go.
 *
 * A pilot is an agent that an engine (Slurm, Kubernetes) runs as one of its jobs; as a node it
 * bears the pilot's name.  Each queue has a fixed number of places for pilots, whose names are
 * used again, so that the nodes that were ever known stay few.
 *
 * The pure core: what is seen and the time go in, orders come out.  No clock, thread or system
 * call.  Nothing is stored: after a restart all is learned from the engine and the nodes.
 *
 * Time is monotonic, in microseconds.
 */
#pragma once

#include "base/base.h"

#define PILOTS_NAME_BYTES 132 /* of a pilot, and so of a node */
#define PILOTS_ID_BYTES 128   /* what the engine calls its job */
#define PILOTS_SAYS_BYTES 300
#define PILOTS_PLACES_MAX 1000 /* of all queues */

/* Of a queue. */
struct pilots_bounds {
    char queue[PILOTS_NAME_BYTES];
    int min; /* so many are kept, whether jobs wait or not */
    int max;
    uint64_t idle_us; /* let go when it had no task for so long */
    uint64_t join_us; /* its agent must have joined so long after its start */
};

struct pilots_options {
    const char *prefix; /* names are PREFIX-QUEUE-NUMBER */
    const char *what;   /* "Slurm job": what the engine's jobs are called */
    const struct pilots_bounds *bounds;
    int bounds_count;
    uint64_t retry_us;     /* after a failure, doubles with each further one ... */
    uint64_t retry_max_us; /* ... up to this */
};

/* What the engine says of one of its jobs. */
enum pilots_phase { PILOTS_WAITS, PILOTS_RUNS, PILOTS_ENDED };
struct pilots_seen {
    char name[PILOTS_NAME_BYTES];
    char id[PILOTS_ID_BYTES];
    enum pilots_phase phase;
    char says[PILOTS_SAYS_BYTES]; /* in the engine's own words: "PENDING (Resources)" */
};

/* A node, as the scheduler sees it. */
struct pilots_node {
    const char *name;
    int64_t id;
    bool here; /* joined, with a session, and not lost */
    bool lost;
    bool draining;
    int tasks_count;
};

/* How many of those on their way, and how many more, jobs of a queue would use. */
struct pilots_demand {
    int used;
    int wanted;
};

struct pilots_view {
    const struct pilots_seen *seen;
    int seen_count;
    const struct pilots_node *nodes;
    int nodes_count;
};

enum pilots_order_kind {
    PILOTS_SUBMIT, /* a pilot of this name for the queue; pilots_submitted() tells what came */
    PILOTS_CANCEL, /* the engine's job `id` */
    PILOTS_DRAIN,  /* the node: nothing new there, or (drain = false) again */
    PILOTS_GONE,   /* the node's machine is gone: `text` */
    PILOTS_FORGET, /* no agent of this name may join any more */
};

struct pilots_order {
    enum pilots_order_kind kind;
    int place; /* SUBMIT: for pilots_submitted() */
    int queue; /* of the bounds */
    char name[PILOTS_NAME_BYTES];
    char id[PILOTS_ID_BYTES];
    int64_t node;
    bool drain;
    char text[400];
};

struct pilots_orders {
    struct pilots_order *list;
    int count;
    int capacity;
};
void pilots_orders_release(struct pilots_orders *orders);

struct pilots;

/* Copies the options.  The places of all queues are PILOTS_PLACES_MAX at most. */
struct pilots *pilots_new(const struct pilots_options *options);
void pilots_free(struct pilots *pilots); /* NULL is fine */

/* What has become of them; appends orders. */
void pilots_look(struct pilots *pilots, const struct pilots_view *view, uint64_t now_us,
                 struct pilots_orders *orders);

/* Who comes and who goes, after pilots_look() at the same view; `demand` has one for each of
 * the bounds.  Appends orders. */
void pilots_decide(struct pilots *pilots, const struct pilots_view *view,
                   const struct pilots_demand *demand, uint64_t now_us,
                   struct pilots_orders *orders);

/* Whether the engine runs nothing for us, as far as we know. */
bool pilots_none(const struct pilots *pilots);

/* The engine took the job and calls it `id`; or (NULL) it did not, or nobody knows, and `why`.
 */
void pilots_submitted(struct pilots *pilots, int place, const char *id, const char *why,
                      uint64_t now_us);

/* How many of a queue have been asked for and have not joined, and how many more may be. */
int pilots_coming(const struct pilots *pilots, int queue);
int pilots_room(const struct pilots *pilots, int queue);

/* How many pilots of a queue there are. */
struct pilots_count {
    const char *queue; /* borrowed */
    int waiting;       /* asked for, or in the engine's queue */
    int starting;      /* run, and have not joined */
    int joined;
    int leaving;
    int max;
};
struct pilots_count pilots_count(const struct pilots *pilots, int queue);

/* At the end of the server: cancels all but those whose nodes have tasks. */
void pilots_end(struct pilots *pilots, const struct pilots_view *view,
                struct pilots_orders *orders);

/* "Waiting for Slurm job 123, PENDING (Resources)."; false when nothing is on its way and
 * nothing has failed. */
bool pilots_explain(const struct pilots *pilots, int queue, uint64_t now_us, char *text,
                    size_t text_size);
