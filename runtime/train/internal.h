/* internal.h - the inside of a training run, shared by the files of runtime/train. */
#pragma once

#include <signal.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/dataset.h"
#include "runtime/events.h"
#include "runtime/model/model.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"
#include "runtime/train/input.h"
#include "runtime/train/replicas.h"
#include "runtime/train/runner.h"
#include "runtime/train/stragglers.h"
#include "runtime/train/train.h"

#define TRAIN_METRICS_MAX (SPEC_METRICS_MAX + 1)

/* What waits to be done before the next step, in this order. */
enum train_pending {
    PENDING_NOTICE = 1,
    PENDING_POINT = 2,
    PENDING_EVALUATE = 4,
    PENDING_SAVE = 8,
    PENDING_END = 16,
};

/* How early stopping stands, and the scores of the best checkpoints; both are in checkpoints.
 */
struct stopping {
    double best;
    int64_t best_step; /* -1: no evaluation yet */
    int64_t waited;    /* evaluations since then */
    double *scores;    /* scores_count of them, greater is better; NaN: none yet */
    int scores_count;
};

struct train {
    struct train_options options;
    struct train_facts facts;
    const struct spec *spec;
    struct dataset dataset;
    const struct dataset_part *eval; /* of the dataset: what evaluations look at; NULL: none */
    struct model model;
    struct runner *runner;
    bool sharded; /* each task that has variables writes its own part of checkpoints */
    struct runner_call *step_call;   /* of the first worker, where each has one */
    struct runner_call **step_calls; /* of all workers that train on their own; NULL: none do */
    struct runner_call *update_call; /* that takes the gradients of some; NULL: they update */
    struct replicas *replicas;       /* of them */
    struct elastic *elastic;   /* all-reduce that goes on without some; NULL: it does not */
    int64_t replicas_position; /* of the input when it began */
    struct runner_call *eval_call;
    struct input *input;
    struct events *events; /* NULL: none */
    char *events_path;
    uint64_t graph_hash; /* tells whether a checkpoint is of this very graph */

    int64_t batch; /* examples in a step, of all workers */
    int64_t step;
    int64_t position;    /* of the input: examples taken since the first epoch began */
    int64_t looked_step; /* when it was last asked what is due */
    int pending;         /* enum train_pending */
    int64_t saved_step, evaluated_step, point_step; /* -1 when never */
    enum train_end end;
    const char *end_text;
    struct stopping stopping;
    struct str stop_text;       /* why stop.c found it to be over */
    volatile sig_atomic_t stop; /* set by train_stop() */
    struct train_report last;   /* the newest values, what reports are made from */
    double values[TRAIN_METRICS_MAX], val_values[TRAIN_METRICS_MAX];
    struct str notice; /* to be told first */
    struct str text;   /* of the report that is out */

    uint64_t opened_us, point_us, saved_us;
    uint64_t taken_us; /* when the last of the replicas' steps was taken; 0: it rested since */
    uint64_t full_us;  /* since when it waits for room on the disk; 0: it does not */
    uint64_t busy_us;  /* spent in steps */
    int64_t busy_steps;
    struct train_times {
        uint64_t told_us; /* when they were last told */
        uint64_t step_us, input_us;
        int64_t steps;
    } times; /* times.c: since then */
    struct stragglers stragglers;
    uint64_t window_us; /* the same, since the rate was last worked out */
    int64_t window_steps;
};

/* --- memory.c --- */

/* What this run may take, in bytes, and the field of the spec that says so. */
int64_t memory_limit(const struct train *train, const char **pointer);

/* Fails with EXHAUSTED, naming what is largest, when a step cannot fit the memory there is. */
bool memory_check(struct train *train, struct error *err) CHECKED;

/* --- times.c --- */

/* A step took so long, and its input was waited for so long before. */
void times_add(struct train *train, uint64_t step_us, uint64_t input_us);

/* Tells where the time of the steps went since it was last told: every few seconds, and when
 * `now`. */
void times_tell(struct train *train, bool now);

/* --- elastic.c --- */

/* For the run that is being opened, once it has its runner; elastic_free() takes NULL. */
struct elastic *elastic_new(const struct train *train);
void elastic_free(struct elastic *elastic);

/*
 * runner_call() of train->step_call, whoever of the other workers is lost: then from the last
 * step on by those that are there, with the ring rebuilt among them, so that train->runner is
 * another.  Fails when there are fewer than allowed and none can come, or as the step does.
 */
bool elastic_call(struct train *train, const struct tensor *feeds, struct tensor *fetched,
                  struct str *trace, struct error *err) CHECKED;

/* --- evaluate.c --- */

/* The metrics over train->eval, into train->val_values. */
bool evaluate_run(struct train *train, struct error *err) CHECKED;

/* --- train_open.c --- */

/* A runner of the model over these tasks; NULL: here. */
struct runner *train_runner(struct train *train, const struct runner_cluster *cluster,
                            struct model *model, struct error *err) CHECKED;

/* Makes the calls of train->runner. */
bool train_prepare(struct train *train, struct error *err) CHECKED;

/* Puts what the run is, and once it is over why it ended, into the event file. */
void train_tell_run(struct train *train, const char *ended);

/* --- stop.c --- */

/* Before the state is restored; train_close() frees what it takes. */
void stop_begin(struct train *train);

/* True when training is over for what was just seen: train->stop_text says why. */
bool stop_after_step(struct train *train);
bool stop_after_evaluation(struct train *train);
bool stop_is_over(struct train *train); /* by the evaluations so far */

/* What the state after this step is worth, greater is better; NaN: it was not evaluated. */
double stop_score(const struct train *train);

/* Whether a checkpoint now would be one of the best; then noted, once it is published. */
bool stop_is_among_best(const struct train *train);
void stop_saved(struct train *train);

/* --- init.c --- */

/* Gives variables the weights that options or spec name; a notice tells which. */
bool init_apply(struct train *train, struct error *err) CHECKED;

/* --- room.c --- */

/*
 * After `err`: false when there is nothing to wait for, and the error stands; else waits a
 * moment, after which the same is to be tried again.
 */
bool room_wait(struct train *train, struct error *err);

/* What was waited for has been done: a notice tells how long that took. */
void room_found(struct train *train);

/* Writes what the event file has gathered, waiting for room. */
bool room_flush(struct train *train, struct error *err) CHECKED;

/* --- save.c --- */

/* Makes the folder of checkpoints this attempt's.  Fails with PRECONDITION when a newer one has
 * it. */
bool save_claim(struct train *train, struct error *err) CHECKED;

/* Publishes a checkpoint of the state after train->step; its path is appended to `path`. */
bool save_write(struct train *train, struct str *path, struct error *err) CHECKED;

/*
 * Sets variables, step and facts from the newest checkpoint; `*found` is false, and nothing is
 * changed, when there is none.  Fails with INVALID when it is of another model, naming the
 * variable.
 */
bool save_restore(struct train *train, bool *found, struct error *err) CHECKED;
