/*
 * statistics.h - what a traced step says: RunMetadata, as TensorFlow's tools read it.
 */
#pragma once

#include "base/base.h"

struct device;
struct str;
struct trace;

/* Appends a serialized RunMetadata with one DeviceStepStats: a row per call, `_SOURCE` first.
 */
void statistics_add(const struct device *device, const struct trace *trace, struct str *out);

/* The same as a StepStats, which another task makes part of the RunMetadata of the step. */
void statistics_add_step(const struct device *device, const struct trace *trace,
                         struct str *out);

/* Tells `saw` of each node that a serialized RunMetadata has, and how long it took. */
void statistics_each(const void *metadata, size_t size,
                     void (*saw)(void *arg, const char *node, double us), void *arg);

/* Appends a serialized StepStats to a serialized RunMetadata. */
void statistics_join(const void *step_stats, size_t size, struct str *out);
