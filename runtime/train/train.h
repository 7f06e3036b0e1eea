/*
 * train.h - a training run: from a job spec and a folder of data to a trained model.
 *
 *   struct train *train = train_open(&options, &err);
 *   while (train_next(train, &report, &err) && report.what != TRAIN_ENDED)
 *       ... show the report ...
 *   train_close(train);
 *
 * One thread drives it (train_stop() aside); the input thread works for it.  Everything that
 * matters is a function of spec, data, seed and number of threads, so a run that is killed and
 * resumed from its last checkpoint ends with the same bits.
 */
#pragma once

#include "base/base.h"

struct error;
struct model_metric;
struct runner_cluster;
struct spec;
struct train;

struct train_options {
    const struct spec *spec;
    const char *data;        /* folder of the dataset's files */
    const char *out;         /* folder for the event file; NULL: none is written */
    const char *checkpoints; /* folder for checkpoints; NULL: none are written */
    const char *init; /* weights to start from, in place of the spec's; NULL: as it says */
    int64_t steps;    /* in place of the spec's; 0: as it says */
    int threads;      /* 0: as many as the process may use */
    bool resume;      /* from the newest checkpoint, if there is one */
    int64_t
        epoch; /* of the attempt: a newer one's checkpoints are never overwritten; 0: none */
    const struct runner_cluster *cluster; /* the tasks of a spec that has several; NULL: one */
    bool wait_for_room; /* on a full disk: pauses until there is room, in place of failing; an
                           end that is asked for meanwhile fails with UNAVAILABLE */
};

enum train_what {
    TRAIN_POINT,     /* the metrics of one step; about every 10 ms */
    TRAIN_EVALUATED, /* the metrics over the validation part if there is one, else the
                        test part */
    TRAIN_SAVED,     /* a checkpoint was published: `text` is its path */
    TRAIN_NOTICE,    /* something a person should know: `text`; training goes on */
    TRAIN_ENDED,     /* the last report: `text` says why */
};

enum train_end {
    TRAIN_FINISHED, /* all steps, or a limit or target of the spec was reached */
    TRAIN_STOPPED,  /* train_stop() was called; a checkpoint was written if there is a place for
                       it */
};

struct train_report {
    enum train_what what;
    enum train_end end;         /* ENDED */
    int64_t step;               /* steps done */
    int64_t steps;              /* to do in all */
    const double *values;       /* of the metrics of the facts, in their order: the first is the
                                   loss */
    const double *val_values;   /* of the last evaluation; NULL: there was none */
    double examples_per_second; /* of late; at the end: of the whole run */
    double seconds_left;
    const char *text; /* borrowed until the next call; "" when there is nothing to say */
};

/* What is known before the first step. */
struct train_facts {
    const struct model_metric *metrics; /* what is followed, the loss first */
    int metrics_count;
    int64_t steps;        /* to do in all */
    int64_t resumed_from; /* 0 when from the start */
    int64_t parameters;
    int64_t examples, eval_examples; /* to train on, and for evaluations (0: there are none) */
    int64_t skipped;                 /* damaged records that were passed over */
    int threads;
    bool changed;       /* resumed under another spec than the checkpoint's: not bit for bit */
    const char *events; /* path of the event file; NULL when none */
};

/*
 * Reads the data, builds the graph and a session for it, and restores or initialises the
 * variables. Fails with what the user can mend: INVALID, NOT_FOUND, DATA_LOSS, EXHAUSTED
 * (memory, disk), DENIED; UNIMPLEMENTED and INTERNAL are faults of ours.
 */
struct train *train_open(const struct train_options *options, struct error *err) CHECKED;

const struct train_facts *train_facts(const struct train *train);

/*
 * Trains until there is something to report.  Fails with INVALID when the loss is not finite,
 * and as train_open() does.  After a failure, or TRAIN_ENDED, only train_close() is left.
 */
bool train_next(struct train *train, struct train_report *report, struct error *err) CHECKED;

/* Asks for an end after the current step.  Callable from any thread, and from a signal handler.
 */
void train_stop(struct train *train);

void train_close(struct train *train); /* NULL is fine */
