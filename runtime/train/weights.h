/*
 * weights.h - weights in files: those of Keras and TensorFlow for the variables of a model.
 *
 * A file's weights are a list of entries, each with what its format says about where it
 * belongs:
 *
 *   Keras 3 (.weights.h5, .keras)   the layer's name and its place: "layers/dense_1", with the
 *                                   path inside of it, "cell", and a number
 *   Keras 2 (.h5)                   the layer's name, its number, and the weight's among its
 * own a checkpoint (PREFIX)           the variable's name: "dense/kernel"
 *
 * Entries are matched with variables by the layers' names where all of them are there and fit;
 * else, as Keras does it, by place, when that fits for all; else by name as far as it goes.
 */
#pragma once

#include "runtime/tensor.h"

struct arena;
struct error;
struct model_variable;
struct spec;
struct str;

struct weights_entry {
    const char *shown; /* what the file calls it, for people */
    const char *name;  /* of the variable; NULL: the format has no such names */
    const char
        *layer; /* its name, "outer.inner" in models inside of the model; NULL: unknown */
    const char *place; /* "layers/dense_1"; NULL: unknown */
    const char *inner; /* where in the layer: "", "cell", "forward_layer/cell"; NULL: unknown */
    int number;        /* of the layer among those with weights; -1: unknown */
    int index;         /* with `inner`: among those there; without: among all of the layer */
    const struct tensor *value; /* borrowed from the file's */
};

struct weights;

/*
 * Reads a file: .h5, .hdf5, .keras, .safetensors by their names, all else is the prefix of a
 * checkpoint, or the folder of checkpoints, of which the newest is taken.  Owned by the caller.
 * Fails with NOT_FOUND, DENIED, DATA_LOSS, EXHAUSTED, INVALID; the text names the file.
 */
struct weights *weights_open(const char *path, struct error *err) CHECKED;
void weights_close(struct weights *weights); /* NULL is fine */

int weights_count(const struct weights *weights);
const struct weights_entry *weights_at(const struct weights *weights, int index);

/* The tokens of the text that a checkpoint's model was trained on, as tokenizer_write() gives
 * them; NULL: it was trained on none, or that is not known.  Borrowed. */
const char *weights_vocabulary(const struct weights *weights);

/* --- where a model's variables are in such files --- */

struct weights_place {
    const struct model_variable *variable;
    const char *layer, *place, *inner; /* as in an entry; NULL: none, as in a graph */
    int number, index;
    int layer_index; /* `index` of Keras 2: among all of the layer, those that learn first */
};

/* The variables of layers, in their order; lives in `arena`.  The rest, what the optimizer
 * keeps for one, is left out.  Those of a graph are found by their names alone. */
struct weights_place *weights_places(const struct spec *spec,
                                     const struct model_variable *variables, int count,
                                     struct arena *arena, int *places_count);

/* The names of a layer's places in the file, by the index of the layer in the spec, in the
 * order in which Keras lists the model's layers; NULL for one that it has not. */
const char **weights_layer_places(const struct spec *spec, struct arena *arena);

/* --- matching --- */

struct weights_match {
    const struct weights_place *place;
    const struct weights_entry *entry; /* NULL: the file has none for it */
    bool fits;                         /* its shape and type do */
};

/* One match for each place. */
struct weights_match *weights_match(const struct weights *weights,
                                    const struct weights_place *places, int count,
                                    struct arena *arena);

/* Appends "\"dense/kernel\" is float [3,4] in the file, float [3,5] in the model". */
void weights_tell(const struct weights_match *match, struct str *out);

/* The entry's value in the type of its variable, in memory of its own. */
bool weights_value(const struct weights_match *match, struct tensor *out,
                   struct error *err) CHECKED;
