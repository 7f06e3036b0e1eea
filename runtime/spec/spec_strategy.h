/* spec_strategy.h - of a job spec: how its tasks train one model. */
#pragma once

#include "base/base.h"

struct spec;

enum spec_mode { MODE_SYNC, MODE_ASYNC, MODE_ALLREDUCE, MODE_PIPELINE };

/* How variables are cut into parts for the parameter servers, as TensorFlow's partitioners of
 * these names do it, along the first dimension. */
enum spec_partitioner { PARTITION_NONE, PARTITION_FIXED_SIZE, PARTITION_MIN_MAX };

struct spec_strategy { /* how the tasks of a model train together */
    enum spec_mode mode;
    int backup;        /* workers whose gradients a step does not wait for */
    int min_workers;   /* elastic: a step is done while so many are there; 0: it is not */
    int compress;      /* dtype in which gradients travel: F32, BF16, F16 */
    int micro_batches; /* of a pipeline: parts of a batch that are under way at once */
    enum spec_partitioner partitioner;
    int partitions;         /* of a variable: that many, or at most */
    int64_t min_slice_size; /* PARTITION_MIN_MAX: bytes of a part */
};

struct spec_pin {        /* layers that are computed on a device */
    const char *pattern; /* of their names, with * and ? */
    const char *device;  /* "/job:worker/task:1" */
};

/* Whether each worker trains on examples of its own; else all of them have parts of one model.
 */
bool spec_replicates(const struct spec *spec);
int64_t spec_step_examples(const struct spec *spec); /* how many make one update */

const char *spec_partitioner_name(enum spec_partitioner partitioner);

/* How many parts a variable has, of so many rows and bytes. */
int spec_parts_of(const struct spec_strategy *strategy, int64_t rows, int64_t bytes);

/* The device that a layer of this name is pinned to; NULL: none. */
const char *spec_pin_of(const struct spec *spec, const char *layer);
bool spec_pin_matches(const char *pattern, const char *name); /* "dense*" */
