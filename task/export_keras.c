/* export_keras.c - a trained model, or its weights alone, for Keras 3. */

#include "base/error.h"
#include "base/str.h"
#include "runtime/spec/spec.h"
#include "runtime/train/keras.h"
#include "runtime/train/trained.h"
#include "task/export.h"

/* Keras knows layers alone. */
static bool has_layers(const struct trained *trained, struct error *err)
{
    return trained->spec->layers_count ||
           fail(err, UNIMPLEMENTED, "\"%s\" is a graph of another program, not layers of Keras",
                trained->spec->name);
}

static bool write_model(const struct trained *trained, const char *out, struct str *notes,
                        struct error *err)
{
    if (!has_layers(trained, err) || !keras_write_model(trained, out, err))
        return false;
    str_add(notes, "for keras.models.load_model(); without the optimizer's state\n");
    return true;
}

static bool write_weights(const struct trained *trained, const char *out, struct str *notes,
                          struct error *err)
{
    if (!has_layers(trained, err) || !keras_write_weights(trained, out, err))
        return false;
    str_add(notes, "for load_weights() of a Keras model with the same layers\n");
    return true;
}

const struct export_format export_keras = {
    .name = "keras",
    .ending = ".keras",
    .summary = "a model for keras.models.load_model()",
    .write = write_model,
};
const struct export_format export_keras_weights = {
    .name = "keras_weights",
    .ending = ".weights.h5",
    .summary = "the weights alone, for load_weights()",
    .write = write_weights,
};
