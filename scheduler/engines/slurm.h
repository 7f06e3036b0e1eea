/*
 * slurm.h - Slurm as an engine: sbatch, squeue and scancel, run as the server's own user.
 */
#pragma once

#include "scheduler/engines/engine.h"

extern const struct engine_kind slurm_engine;

/*
 * What squeue said ("ID|NAME|STATE|REASON" a line) of the jobs whose names begin with `prefix`,
 * which their pilots' names follow.  Lines that are none are passed over; their number is
 * bounded by the size of the text.
 */
void slurm_read(const char *text, const char *prefix, struct arena *arena,
                struct pilots_seen **seen, int *seen_count);
