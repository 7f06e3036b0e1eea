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
