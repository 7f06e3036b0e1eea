/* saved_model_internal.h - a meta graph without its protobuf: what saved_model_pb.c takes out
 * for saved_model.c. */
#pragma once

#include "base/str.h"
#include "runtime/saved_model.h"

struct saved_asset {
    const char *tensor; /* what is fed with the file's path */
    const char *file;   /* in assets/ */
};

/* An object of a model of TensorFlow 2. */
struct saved_object {
    bool is_variable;
    const char *key; /* of a variable: its tensor in the checkpoint; NULL: not known */
};

/* Objects that a function takes as its last arguments. */
struct saved_captures {
    const char *function;
    const int *objects;
    int objects_count;
};

struct saved_meta {
    struct arena *arena;    /* for what outlives this */
    struct arena *messages; /* what the rest is borrowed from */
    struct str graph_def;   /* serialized, without devices */
    const char *tags, *version;
    const char *restore_file, *restore_op; /* NULL: nothing is restored */
    const char *init_op;                   /* NULL: none */
    const struct saved_asset *assets;
    int assets_count;
    struct signature *signatures;
    int signatures_count;
    struct saved_object *objects;
    int objects_count;
    const struct saved_captures *captures;
    int captures_count;
    const void *message; /* the MetaGraphDef */
};

/*
 * Takes the meta graph with those tags out of a SavedModel (binary or text) or,
 * `is_meta_graph`, the only one out of a MetaGraphDef.  Strings and signatures live in `arena`,
 * the rest until saved_model_release().  On failure nothing is to be released.
 */
bool saved_model_parse(const struct str *bytes, bool is_text, bool is_meta_graph,
                       const char *tags, struct arena *arena, struct saved_meta *out,
                       struct error *err) CHECKED;
void saved_model_release(struct saved_meta *meta);

/* Gives back the tensors that signatures hold. */
void saved_model_drop(const struct signature *signatures, int count);

/* Fills in the keys of the objects from the object graph that the checkpoint has, serialized.
 */
bool saved_model_read_keys(struct saved_meta *meta, const void *bytes, size_t size,
                           struct error *err) CHECKED;

/* --- writing --- */

/* What is made into a message. */
struct packing {
    const struct saved_model_content *content;
    const bool *wanted;        /* by the id of a node of its graph: whether it is written */
    const struct graph *saver; /* NULL: none */
    struct arena *arena;       /* of what we make */
    struct arena *messages;    /* of what was a graph of ours */
};

/*
 * A name without the scope: "eval/dense/MatMul:0" as "dense/MatMul:0", "^eval/x" as "^x"; one
 * that would then be taken stays.  The same for a node (a NodeDef) and what it reads, which
 * also loses its "_class": that names other nodes and is of no use.
 */
char *saved_model_short_name(const struct packing *p, const char *name);
void saved_model_shorten(const struct packing *p, void *node);

/* The GraphDef of a graph, in p->messages. */
void *saved_model_graph_message(struct packing *p, const struct graph *graph,
                                struct error *err);

/*
 * Appends a serialized SavedModel, or the MetaGraphDef alone: the nodes of `content` that
 * `wanted` marks (by id), without their scope, and those of `saver`, which has the variables
 * and what saves and restores them.
 */
bool saved_model_pack(const struct saved_model_content *content, const bool *wanted,
                      const struct graph *saver, bool is_meta_graph, struct str *out,
                      struct error *err) CHECKED;

/* Appends the serialized GraphDef of the nodes marked, with variables' values as constants. */
bool saved_model_pack_frozen(const struct saved_model_content *content, const bool *wanted,
                             struct str *out, struct error *err) CHECKED;

/* Appends a GraphDef in text form. */
bool saved_model_print_graph(const struct str *graph, struct str *out,
                             struct error *err) CHECKED;
