/*
 * saved_model.h - models as TensorFlow keeps them in a folder: opened to be called, and
 * written.
 *
 *   FOLDER/saved_model.pb (or .pbtxt)   one or several meta graphs, told apart by their tags
 *   FOLDER/variables/variables.*        a checkpoint
 *   FOLDER/assets/                      files that the graphs read
 *
 * Opening does what TensorFlow's loader does: the graph's own ops restore the variables, then
 * its initial op fills tables.  What a model of TensorFlow 2 leaves to the loader of its
 * objects (variables that its signatures use but its restore function does not know) is found
 * through the object graphs of model and checkpoint.
 */
#pragma once

#include "runtime/signature.h"

struct arena;
struct error;
struct graph;
struct model_variable;
struct session;
struct session_options;
struct tensor;

struct saved_model {
    struct session *session;
    const struct signature *signatures; /* in the order of their names */
    int signatures_count;
    const char *tags;    /* "serve,gpu" */
    const char *version; /* of the TensorFlow that wrote it; "" when it does not say */
    struct arena *arena; /* where all of this lives */
};

/* Whether the folder `path` has one. */
bool saved_model_is(const char *path);

/*
 * Opens the meta graph with exactly these tags ("serve,gpu", in any order); NULL: the only one,
 * or the one for "serve".  Devices that its nodes ask for are not looked at.  NULL options:
 * defaults.  On success the caller owns it.
 *
 * Fails with NOT_FOUND (no model there, no such tags, a file of it missing), INVALID or
 * DATA_LOSS (damage), UNIMPLEMENTED (an op that is not known here), and as a run does.
 */
bool saved_model_open(const char *path, const char *tags, const struct session_options *options,
                      struct saved_model *out, struct error *err) CHECKED;
void saved_model_close(struct saved_model *model); /* fine on a zeroed one */

/*
 * Opens a MetaGraphDef (model.meta, binary or text) with the variables of a checkpoint, which
 * the graph's own ops restore from `prefix` (NULL: they are left as they are).  Else as
 * saved_model_open().
 */
bool saved_model_open_meta(const char *path, const char *prefix,
                           const struct session_options *options, struct saved_model *out,
                           struct error *err) CHECKED;

/* Whether `path` is a file that may hold a graph alone: .meta, .pb or .pbtxt. */
bool saved_model_is_file(const char *path);

/*
 * Opens such a file: a MetaGraphDef ("model.meta"), with the variables of the checkpoint that
 * lies beside it ("model.index"), if one does; or a GraphDef, whose weights are constants.  One
 * without signatures gets one called "graph": its placeholders in, and out what is computed
 * from them and read by no other node.  Else as saved_model_open_meta().
 */
bool saved_model_open_file(const char *path, const struct session_options *options,
                           struct saved_model *out, struct error *err) CHECKED;

/*
 * The signature of that name; NULL: "serving_default", or the only one.  Fails with NOT_FOUND,
 * naming those that there are.
 */
const struct signature *saved_model_signature(const struct saved_model *model, const char *name,
                                              struct error *err) CHECKED;

/* What saved_model_write() is told; all borrowed. */
struct saved_model_content {
    const struct graph *graph; /* what the signature needs of it is written */
    const char *scope;         /* is left out of the names of nodes: "eval/" */
    const struct model_variable *variables;
    const struct tensor *values; /* of the variables; no tensor: it is not needed */
    int variables_count;
    const struct signature *signature;
};

/*
 * Writes a SavedModel with one meta graph, tags "serve", that TensorFlow 1 and 2 and we load.
 * The folder is made, and what it had of a SavedModel is replaced.  Fails with UNIMPLEMENTED
 * when the graph has an op that TensorFlow has not, EXHAUSTED (disk full) and so on.
 */
bool saved_model_write(const char *path, const struct saved_model_content *content,
                       struct error *err) CHECKED;

/*
 * Writes PREFIX.meta, a MetaGraphDef, and the checkpoint PREFIX beside it, as TensorFlow 1's
 * Saver does: import_meta_graph("PREFIX.meta").restore(session, "PREFIX") has the model.  Fails
 * as saved_model_write() does.
 */
bool saved_model_write_meta(const char *prefix, const struct saved_model_content *content,
                            struct error *err) CHECKED;

/*
 * Writes a GraphDef, binary or as text, with the values of variables as constants in it, as
 * TensorFlow's freeze_graph does.  Fails as saved_model_write() does, with UNIMPLEMENTED when a
 * variable is not only read, and with EXHAUSTED when they take more than a message can hold.
 */
bool saved_model_write_graph(const char *path, bool as_text,
                             const struct saved_model_content *content,
                             struct error *err) CHECKED;
