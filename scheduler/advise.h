/*
 * advise.h - when a job that waits will start, and the smallest changes that would start it
 * now.
 *
 * Each change is tried, on a copy of the scheduler by the scheduler itself: what is said would
 * happen.  Of one kind the smallest that does is sought (most GPUs, lowest priority …); kinds
 * come by what they cost: first those that take nothing from the job.
 */
#pragma once

#include "base/base.h"

struct explain;
struct scheduler;

/* What one answer may cost: a try is as many as there are jobs and nodes. */
#define ADVISE_WORK 200000

/*
 * Adds to what explain_job() said of a job that waits: start_us and start_node, and changes.
 * Pure, bounded by ADVISE_WORK and FORECAST_WORK; nothing for a job that does not wait.
 */
void advise_job(const struct scheduler *scheduler, int64_t job, uint64_t now_us,
                struct explain *why);
