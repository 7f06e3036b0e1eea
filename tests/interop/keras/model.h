/* model.h - whole models of Keras. */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;

/*
 * Builds the model of a model.json, gives it the weights of the file `weights`, with NULL those
 * that were recorded, and compares its outputs, the losses of its training steps and its
 * outputs after them.
 */
bool model_run_recorded(json_t *model, const char *weights, const json_t *wanted,
                        const char *save, struct error *err) CHECKED;
