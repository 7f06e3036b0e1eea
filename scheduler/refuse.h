/*
 * refuse.h - whether a job could ever run, asked before it is taken in.
 */
#pragma once

#include "scheduler/scheduler.h"

struct error;

/*
 * Fails with INVALID, the pointer of the field in the job spec and the largest value possible,
 * when nodes have joined and these needs can be met by none of them, even empty.  With no nodes
 * anything passes.
 */
bool refuse_check(const struct scheduler *scheduler, const struct scheduler_need *needs,
                  int needs_count, struct error *err) CHECKED;
