/*
 * checkpoint.h - a training's checkpoints in a folder: published whole or not at all.
 *
 *   model.ckpt-STEP.index          V2 files, as TensorFlow's; several files of data when
 *   model.ckpt-STEP.data-*-of-*    several tasks wrote them
 *   model.ckpt-STEP.manifest       JSON: size and CRC-32C of each of them, step, epoch
 *   checkpoint                     which are published, newest last: TensorFlow reads it
 *   best                           names the one with the highest score in the same way
 *   epoch                          the newest attempt that may publish here
 *   lock                           held while one of the three above changes
 *
 * A checkpoint is built in a folder beside (named after step and epoch), synced, moved in and
 * synced; it counts from the moment when `checkpoint` is renamed.  After any failure on the way
 * it is thrown away and nothing of it is tried again.
 */
#pragma once

#include "runtime/tensor.h"

struct error;

struct checkpoint_item {
    const char *name;
    struct tensor tensor;
    const struct shape *whole; /* of saving: the tensor has some rows of one of this shape,
                                  whose other rows are in items of the same name; NULL: all */
    int64_t first;             /* of them */
};

struct checkpoint_settings {
    const char *folder; /* made if it is not there, but not its parents */
    int64_t epoch;      /* of this attempt; 0 without a server */
    int keep_latest;    /* so many of the newest stay, at least 1 */
    int keep_best;      /* and so many with the highest score; 0 for none */
};

struct checkpoint_point {
    int64_t step;
    double score;      /* greater is better; NaN if there is none */
    const char *graph; /* hash of the graph that the state belongs to, or "" */
    const char *model; /* what the state is of, a JSON object (trained.h); NULL: not told */
};

/*
 * Enters `epoch` in FOLDER/epoch: attempts with a lower one cannot publish from now on.  Fails
 * with PRECONDITION ("fenced") when a higher one is there already.  Removes what an attempt
 * that died while saving has left.
 */
bool checkpoint_claim(const struct checkpoint_settings *settings, struct error *err) CHECKED;

/*
 * Parts of a checkpoint that others write, as TensorFlow's sharded Saver has it: `count` V2
 * checkpoints of their own at prefixes that they are given, which become one with `items`.
 * What names no shard that is not there: a failure of `write` is one of the whole.
 */
struct checkpoint_shards {
    int count;
    bool (*write)(void *arg, const char *const *prefixes, struct error *err);
    void *arg;
};

/*
 * Publishes a checkpoint, then deletes those that need not be kept.  Fails with PRECONDITION
 * ("fenced") when a newer attempt has claimed the folder, EXHAUSTED when the disk is full;
 * then nothing is published and the older checkpoints are as they were.  `shards` NULL: all of
 * it is in `items`.
 */
bool checkpoint_save(const struct checkpoint_settings *settings,
                     const struct checkpoint_point *point, const struct checkpoint_item *items,
                     int items_count, const struct checkpoint_shards *shards,
                     struct error *err) CHECKED;

/* "FOLDER/model.ckpt-STEP", owned by the caller: what TensorFlow calls the checkpoint's path.
 */
char *checkpoint_prefix(const char *folder, int64_t step);

/* The prefix that the file FOLDER/best names, owned by the caller; NULL after setting `err`:
 * NOT_FOUND, DATA_LOSS. */
char *checkpoint_best(const char *folder, struct error *err) CHECKED;

struct checkpoint_skipped {
    char *prefix;
    char *why;
};

struct checkpoint {
    int64_t step;
    int64_t epoch;
    double score;
    char *graph;
    char *model; /* as in checkpoint_point */
    char *prefix;
    struct checkpoint_item *items; /* in order of their names */
    int items_count;
    struct checkpoint_skipped *skipped; /* newer ones that were damaged */
    int skipped_count;
};

/*
 * Reads the newest checkpoint that is whole: manifest, sizes, checksums, every tensor.  Damaged
 * ones are passed over and listed in `skipped`.  Fails with NOT_FOUND if there is none at all,
 * with DATA_LOSS if all are damaged.
 */
bool checkpoint_load(const char *folder, struct checkpoint *checkpoint,
                     struct error *err) CHECKED;

/* The same, but what is larger than CHECKPOINT_LOOK_BYTES has type and shape alone, no data. */
#define CHECKPOINT_LOOK_BYTES 65536
bool checkpoint_look(const char *folder, struct checkpoint *checkpoint,
                     struct error *err) CHECKED;

/* Reads the one whose files begin with `prefix`, which must be whole and have a manifest. */
bool checkpoint_load_prefix(const char *prefix, struct checkpoint *checkpoint,
                            struct error *err) CHECKED;

/* What the state at `prefix` is of, as `model` above, owned by the caller; NULL: not told. */
char *checkpoint_model(const char *prefix);

/* The tensor of that name, borrowed; NULL if there is none. */
const struct tensor *checkpoint_find(const struct checkpoint *checkpoint, const char *name);

void checkpoint_release(struct checkpoint *checkpoint);
