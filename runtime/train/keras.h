/*
 * keras.h - a trained model as the files that Keras 3 loads.
 *
 *   model.weights.h5   for model.load_weights() of a model with the same layers
 *   model.keras        a zip of config.json, metadata.json and model.weights.h5, which
 *                      keras.models.load_model() makes the whole model of: a Functional one
 *
 * Both hold weights, not the optimizer's state: Keras makes that anew when it compiles.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct str;
struct trained;

/* Writes a file, whole or not at all.  Fails with UNIMPLEMENTED when Keras cannot say what the
 * model does, and as file_write() does. */
bool keras_write_weights(const struct trained *trained, const char *path,
                         struct error *err) CHECKED;
bool keras_write_model(const struct trained *trained, const char *path,
                       struct error *err) CHECKED;

/* Appends the configuration of the model, config.json. */
void keras_add_config(const struct trained *trained, struct arena *arena, struct str *out);
