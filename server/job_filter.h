/*
 * job_filter.h - what filters (filter.h) may ask of jobs: fields of a job as the API names
 * them, metrics.NAME (its last value), spec.PATH (of its spec, by dots) and parameters.POINTER
 * (of an array's grid).
 */
#pragma once

#include "server/filter.h"

struct db_job;
struct job_reader;
struct request;

/* The query's `filter`; `*filter` is NULL when there is none. */
bool job_filter_read(const struct request *req, struct filter **filter,
                     struct error *err) CHECKED;

/* Whether it lets the job through; with NULL any is. */
bool job_filter_match(const struct filter *filter, const struct job_reader *reader,
                      const struct db_job *job, bool *matches, struct error *err) CHECKED;
