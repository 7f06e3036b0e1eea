/*
 * model.h - the layers of a job spec as a graph that trains them, or a graph that another
 * program wrote (imported.h) under the same names.
 *
 * One graph holds it all, with TensorFlow's op names: variables and their initial values, the
 * forward pass of training, loss, gradients, updates, and a forward pass for evaluation (no
 * dropout, any number of examples).  What the training loop feeds, fetches and runs has the
 * names below.
 */
#pragma once

#include "runtime/dtype.h"
#include "runtime/shape.h"

struct arena;
struct config;
struct error;
struct graph;
struct spec;

/* --- the data that a model is made for --- */

struct model_feature {
    const char *name; /* "images": that of the placeholder; in evaluation "eval/images" */
    int dtype;
    struct shape shape; /* of one example */
};

struct model_data {
    const struct model_feature *features; /* what examples are made of */
    int features_count;
    struct model_feature target; /* what is to be predicted */
    int64_t classes;             /* targets are 0 to classes - 1; 0: not known, or no classes */
    struct model_feature weight; /* how much an example counts; no name: all count the same */
};

/* --- names in the graph of a model of layers --- */

#define MODEL_LOSS "loss"   /* of a training step: the loss over the batch, before the update */
#define MODEL_TRAIN "train" /* target: one update of every variable and of the step */
#define MODEL_INIT "init"   /* target: every variable set to its start */
#define MODEL_STEP "global_step" /* the variable that counts steps, int64 */
#define MODEL_EVAL "eval/"       /* in front of the names of evaluation */

/* --- what it will look like --- */

struct model_layer {
    const char *name;
    const char *class_name;
    struct shape output; /* of one example */
    int64_t parameters;
};

struct model_summary {
    const struct model_layer *layers;
    int layers_count;
    int64_t parameters;
};

/*
 * Shapes and parameters of every layer.  Lives in `arena`; needs no kernels.
 *
 * Fails with INVALID and the layer's pointer when layers do not fit each other, the data or the
 * loss, with EXHAUSTED when one is too large for a tensor.
 */
bool model_summary(const struct spec *spec, const struct model_data *data, struct arena *arena,
                   struct model_summary *out, struct error *err) CHECKED;

/* --- the graph --- */

struct resources;
struct variable;

struct model_variable {
    const char *name; /* as Keras: "conv2d/kernel"; of its slots "conv2d/kernel/Adam" */
    int dtype;
    struct shape shape;
    bool trainable;
    const char *whole; /* of which it is a part: as if there were one variable; NULL: of none */
    struct shape whole_shape;
    int64_t first; /* row of the whole that it begins with */
    bool by_ref;   /* VariableV2 of another program, not behind a resource handle */
};

/* The variable in a session; counted, made without a value if there is none.  Fails with
 * INVALID when it has another type or shape there. */
struct variable *model_variable_in(const struct model_variable *face,
                                   struct resources *resources, struct error *err) CHECKED;

/* A number that is followed: its sums over a batch, metric.h. */
struct model_metric {
    const char *name; /* "accuracy" */
    const struct config *config;
    const char *sums;      /* the output to fetch in a training step, */
    const char *eval_sums; /* and in evaluation */
};

/* A step of one replica, where each trains on its own. */
struct model_step {
    const char *scope;       /* in front of the names of what is fed */
    const char *number;      /* fed as well: which step it is of, int64; NULL: none is */
    const char *train;       /* target: one update, or gradients for one */
    const char *const *sums; /* outputs to fetch, one for each metric */
};

struct model {
    struct graph *graph; /* owned; the rest lives in its arena; not sealed */
    const struct model_variable *variables;
    int variables_count;
    const struct model_metric *metrics; /* the first is the loss */
    int metrics_count;
    struct model_summary summary;
    const char *output; /* what the model predicts, in evaluation; NULL: nothing is known */
    struct shape output_shape;       /* of it, with the examples in front */
    const char *scope, *eval_scope;  /* in front of the names of what is fed: "", "eval/" */
    const char *train, *init, *step; /* as named above; step NULL: only checkpoints tell */
    const struct model_step *steps;  /* NULL: there is one, of the names above */
    int steps_count;
    const char *mirror; /* target to run before the first step: every worker has the variables
                           as the first has them; NULL: they are shared */
    int shards; /* of the batch of a step, by `steps`, each of which is fed the shard's number,
                   before `train`; 0: a step is not cut so */
    int needed; /* of the replicas' gradients by `train`, which waits for them; 0: of none */
    const char *begin, *begin_number; /* then the target to run first, and what to feed to it:
                                         how many steps were done; NULL: nothing */
};

/*
 * Builds it.  The same spec and data give the same graph, node by node.  Fails as
 * model_summary() does.  On success the caller owns it: model_release().
 */
bool model_build(const struct spec *spec, const struct model_data *data, struct model *out,
                 struct error *err) CHECKED;

/*
 * The same with all-reduce, where workers do what others did, that are gone: replica i is
 * worker hosts[i]'s, which is its own, and hosts[0] is 0.  Names are those of model_build(),
 * and a step has the same bits.
 */
bool model_build_hosted(const struct spec *spec, const struct model_data *data,
                        const int *hosts, struct model *out, struct error *err) CHECKED;

/* The same to be exported: evaluation, by which a model predicts, has TensorFlow's ops alone,
 * which may be slower. */
bool model_build_plain(const struct spec *spec, const struct model_data *data,
                       struct model *out, struct error *err) CHECKED;
void model_release(struct model *model);
