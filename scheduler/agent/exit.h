/* exit.h - what the end of a task means, as its shim wrote it into exit.json. */
#pragma once

#include <jansson.h>

#include "base/base.h"
#include "proto/agent_pb.h"

enum agent_exit_reason exit_reason(const json_t *end, bool program);

/* What is best said of an end that was not asked for: the task's own words come first.
 * `folder` is the attempt's, `start` its start.json. */
void exit_text(const char *folder, const json_t *end, const json_t *start, char *out,
               size_t out_size);
