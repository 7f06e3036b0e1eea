/*
 * train_cluster.h - this process as one of the tasks that train a model together.
 *
 * The first worker is the chief: it trains (runtime/train) over the devices of all.  The others
 * serve what it has them compute, and end when it has ended.  TF_CONFIG says which task this is
 * and where the others are; without it this process becomes the chief and starts the others
 * itself, on this machine.  Those that a server starts have a certificate of their attempt and
 * talk to nobody else; without one they talk in the clear, on loopback addresses alone.
 */
#pragma once

#include <signal.h>

#include "base/base.h"

struct error;
struct runner_cluster;
struct spec;
struct train_cluster;

struct train_cluster_options {
    const struct spec *spec;
    const char *spec_path;   /* for tasks that are started here */
    const char *certificate; /* file with what all tasks show and trust, and its key; or NULL */
    int threads;
    const volatile sig_atomic_t *stop; /* set from outside when the task is asked to end */
};

/*
 * Begins to serve, as the task that it is.  Fails with INVALID when TF_CONFIG or the
 * certificate is not of this spec, UNAVAILABLE when its address is taken or a task cannot be
 * started.
 */
struct train_cluster *train_cluster_start(const struct train_cluster_options *options,
                                          struct error *err) CHECKED;

bool train_cluster_is_chief(const struct train_cluster *cluster);

/*
 * For the chief: all tasks, once all have answered.  Waits a minute at most; fails with
 * UNAVAILABLE, naming the task that did not.
 */
const struct runner_cluster *train_cluster_tasks(struct train_cluster *cluster,
                                                 struct error *err) CHECKED;

/*
 * For the others: returns when the chief has closed its session, or when the task is asked to
 * end and the chief is gone.  False when it was asked to end.
 */
bool train_cluster_serve(struct train_cluster *cluster);

/* Ends serving, and the tasks that were started here.  NULL is fine. */
void train_cluster_end(struct train_cluster *cluster);
