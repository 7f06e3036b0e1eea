/* checkpoint_internal.h - the small files of a checkpoint folder, shared by saving and loading.
 */
#pragma once

#include "runtime/checkpoint.h"

#define CHECKPOINT_MANIFEST ".manifest"

/*
 * The path of a checkpoint's file, owned by the caller.  They are moved in in this order: one
 * file of data for each shard, the index, the manifest; so there are `shards` + 2.
 */
char *checkpoint_part(const char *prefix, int shards, int index);

struct checkpoint_manifest {
    int64_t step;
    int64_t epoch;
    double score;
    char *graph;
    char *model;    /* JSON; NULL: not told */
    int shards;     /* 1 to LIMIT_JOB_TASKS + 1 */
    int64_t *bytes; /* of all files but the manifest: shards + 1 */
    uint32_t *crc;
};

/* Sums the files of `prefix` up, sets `bytes` and `crc` and writes PREFIX.manifest. */
bool checkpoint_manifest_write(const char *prefix, struct checkpoint_manifest *manifest,
                               struct error *err) CHECKED;

/* Reads PREFIX.manifest; DATA_LOSS if it is none. */
bool checkpoint_manifest_read(const char *prefix, struct checkpoint_manifest *manifest,
                              struct error *err) CHECKED;

/* Compares the files of `prefix` with the manifest; DATA_LOSS or NOT_FOUND. */
bool checkpoint_manifest_check(const char *prefix, const struct checkpoint_manifest *manifest,
                               struct error *err) CHECKED;
void checkpoint_manifest_release(struct checkpoint_manifest *manifest);

/* The steps that FOLDER/checkpoint lists, oldest first; none when the file is not there. */
struct checkpoint_state {
    int64_t *steps;
    int steps_count;
    int steps_capacity;
};

bool checkpoint_state_read(const char *folder, struct checkpoint_state *state,
                           struct error *err) CHECKED;
bool checkpoint_state_write(const char *folder, const struct checkpoint_state *state,
                            struct error *err) CHECKED;
void checkpoint_state_add(struct checkpoint_state *state, int64_t step); /* as the newest */
bool checkpoint_state_has(const struct checkpoint_state *state, int64_t step);
/* Adds every step that has a manifest in the folder, listed or not, and sorts. */
void checkpoint_state_search(const char *folder, struct checkpoint_state *state);
void checkpoint_state_remove(struct checkpoint_state *state, int index);
void checkpoint_state_release(struct checkpoint_state *state);

/* The step in "model.ckpt-STEP" (a folder before it is passed over); false if it is no such
 * name. */
bool checkpoint_state_step(const char *name, size_t size, int64_t *step);
