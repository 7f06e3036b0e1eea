/* model.h - whole models of Keras. */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;

/* Builds the model of a model.json, gives it the recorded weights, and compares its outputs,
 * the losses of its training steps and its outputs after them. */
bool model_run_recorded(json_t *model, const json_t *wanted, struct error *err) CHECKED;
