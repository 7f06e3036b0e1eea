/*
 * chrome.h - a traced step in the Trace Event Format that chrome://tracing and Perfetto read.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

/*
 * Appends the events of a serialized RunMetadata, objects with commas between them: a complete
 * event ("ph": "X") per call, on a row per thread, in microseconds of the wall clock.  `tag`
 * ("step_100") names the step in each; `*any` tells whether an object stands before.  Fails
 * with INVALID when the bytes are no RunMetadata.
 */
bool chrome_add(const void *metadata, size_t size, const char *tag, struct str *out, bool *any,
                struct error *err) CHECKED;
