/*
 * spec.h - a job spec: what to train, on which data, with how many tasks.
 *
 * Written by people as JSON, version 1.  Parsing is strict: an unknown field, a wrong type, a
 * value out of bounds is refused with its JSON pointer, what was found and what is allowed.
 * What the spec does not say is filled in: whoever reads the struct finds everything decided.
 * Names and defaults of layers, initialisers, losses and optimizers are Keras's.
 */
#pragma once

#include "base/base.h"
#include "runtime/spec/spec_strategy.h"

struct arena;
struct error;
struct str;

/* --- the model --- */

struct config; /* runtime/spec/config.h: a class with its arguments */

struct spec_input { /* output `output` of an earlier layer */
    int layer;
    int output;
};

struct spec_layer {
    const char *name; /* unique; as Keras numbers them: "conv2d", "conv2d_1" */
    const struct config *config;
    int shared; /* the layer whose weights it uses: itself, unless it calls an earlier one */
    bool trainable;
    const struct spec_input *inputs; /* none: what the data gives */
    int inputs_count;
    const char *pointer;
};

struct spec_tensor { /* a name and the tensor that it means: "images", "x:0" */
    const char *name;
    const char *tensor;
};

#define SPEC_GRAPH_METRIC_BYTES 64

struct spec_graph {         /* a graph that another program wrote, in the place of layers */
    const char *meta_graph; /* a MetaGraphDef, perhaps in gzip, in base64; NULL: layers */
    const char *loss, *train, *init, *output; /* NULL: as its collections and signatures say */
    const struct spec_tensor *inputs;         /* what takes which feature of the data */
    int inputs_count;
    const struct spec_tensor *metrics; /* means over a batch, which become train.metrics */
    int metrics_count;
};

/* --- training --- */

enum spec_column_type {
    COLUMN_FOUND,       /* as the data looks */
    COLUMN_NUMERIC,     /* float32 */
    COLUMN_INTEGER,     /* int32 */
    COLUMN_CATEGORICAL, /* the number of a word in the vocabulary of the part to train on */
    COLUMN_IMAGE,       /* a file of PNG, JPEG and the like */
    COLUMN_IGNORED,
};

#define SPEC_COLUMN_RANK 8

struct spec_column { /* what the data does not say about one of its columns */
    const char *name;
    enum spec_column_type type;
    int rank; /* of one example's shape; -1: as the data looks */
    int64_t dims[SPEC_COLUMN_RANK];
    const char *initial; /* in the place of a missing value, as text; NULL: that is an error */
    bool has_scale;
    double scale; /* what numbers are multiplied by */
    bool alone;   /* no part of the feature that numeric columns are joined in */
    const char *pointer;
};

struct spec_text {           /* how a text becomes examples */
    int64_t sequence_length; /* tokens of a window; 0: none are made */
    int64_t stride;          /* from one window to the next */
    int tokenizer;           /* enum tokenizer_kind */
    int64_t vocabulary;      /* tokens at most; 0: as many as there are */
    bool skip_gram;          /* examples are words with a neighbour among others instead */
    int64_t window;          /* words on each side that are neighbours */
    int64_t negatives;       /* words that are none, for each that is */
    double subsample;        /* above this share of the text words are thinned out; 0: never */
};

struct spec_data {
    const char *dataset; /* its name */
    const char *format;  /* NULL: as its files tell */
    int64_t batch_size;
    int64_t shuffle;    /* examples in the shuffle buffer; 0: none, -1: all of them */
    int64_t validation; /* examples held out of training, for evaluations; 0: test part */
    double validation_fraction;  /* the same as a part of all, above 0 and below 1; else 0 */
    const char *target;          /* the column to predict; NULL: as the data says */
    const char *weight;          /* the column of how much examples count; NULL: all the same */
    const char *const *features; /* the columns to predict from; none: as the data says */
    int features_count;
    const struct spec_column *columns;
    int columns_count;
    int64_t skip_damaged; /* damaged records that may be passed over; -1: any number */
    struct spec_text text;
    int64_t image_size[2];  /* height and width that images are brought to; 0: as they are */
    int64_t image_channels; /* 1 or 3 */
    const struct config *const *augment; /* classes of augment.h */
    int augment_count;
};

#define SPEC_METRICS_MAX 50
#define SPEC_WEIGHTED "weighted_" /* in front of a metric's name that is there without */

struct spec_metric {
    const char *name; /* of its series: "accuracy" */
    const struct config *config;
    bool weighted; /* by the weights of the examples */
};

struct spec_init {    /* what the variables start from; no job, no file: as their layers say */
    const char *job;  /* another one, by its number, id or name */
    int64_t step;     /* of its checkpoint; -1: the newest */
    const char *file; /* of weights, or a checkpoint */
    bool strict;      /* every variable must be there and fit */
};

struct spec_train {
    const struct config *loss, *optimizer; /* of a graph NULL: it has its own */
    const struct spec_metric *metrics;
    int metrics_count;
    int64_t steps; /* one of steps and epochs is above 0 */
    int64_t epochs;
    int64_t eval_every;  /* steps; 0: at the end only */
    bool check_numerics; /* stop at the first NaN or infinity, naming the op */
    int precision;       /* F32 or BF16: what the factors of products are rounded to */
    struct spec_init init;
};

/* --- the rest --- */

struct spec_label {
    const char *name;
    const char *value;
};

enum spec_role { ROLE_WORKER, ROLE_PS, ROLE_CHIEF, ROLE_EVALUATOR, SPEC_ROLES };

struct spec_task {
    int replicas; /* 0: no task of this role */
    int64_t cpu_millis;
    int64_t memory_bytes; /* 0: as the platform sees fit */
    int gpus;             /* whole ones */
    int gpu_share;        /* thousandths of one GPU that is shared; 0 with whole ones */
    const char *gpu_type; /* "" for any */
    int64_t gpu_memory_bytes;
    const struct spec_label *node_labels;
    int node_labels_count;
};

struct spec_checkpoint {
    int64_t every_steps;   /* 0: not by steps */
    int64_t every_seconds; /* 0: not by time */
    int64_t keep_latest;
    int64_t keep_best;       /* so many with the best evaluation; 0: none */
    const char *best_metric; /* by which: "val_loss" */
    bool best_is_more;       /* whether more of it is better */
};

struct spec_target {    /* stop once it is reached */
    const char *metric; /* "val_accuracy" of an evaluation, "loss" of a step; NULL: none */
    bool has_min, has_max;
    double min, max;
};

struct spec_early {     /* stop when evaluations improve no more */
    const char *metric; /* "val_loss"; NULL: never */
    int64_t patience;   /* evaluations in a row without improvement */
    double min_delta;   /* less than this is none */
    bool more;          /* more is better */
};

struct spec_stop {
    int64_t max_steps;     /* 0: no such limit */
    int64_t max_seconds;   /* of an attempt; 0: no such limit */
    int64_t stall_seconds; /* without a step, until the attempt is ended; 0: never */
    struct spec_target target;
    struct spec_early early;
};

/* --- a program in the place of model, data and train --- */

struct spec_variable {
    const char *name, *value;
};

struct spec_secret { /* stored by the server, told when the program starts */
    const char *name;
    bool in_env; /* as a variable of this name, beside the file */
};

struct spec_file {      /* that the program finds in its folder */
    const char *path;   /* below it */
    const char *sha256; /* of its bytes: 64 digits, 0-9 a-f */
};

struct spec_command { /* words_count 0: there is none */
    const char *const *words;
    int words_count;
    const struct spec_variable *env;
    int env_count;
    const struct spec_secret *secrets;
    int secrets_count;
    const struct spec_file *files;
    int files_count;
    const char *workdir; /* folder on the node to run in; NULL: one of the task's own */
};

#define SPEC_AFTER_MAX 1000
struct spec {
    const char *name, *project, *queue, *notes;
    const char *const *tags;
    int tags_count;
    int priority;             /* 0 to 100, higher first */
    const char *const *after; /* jobs that must have succeeded: by number, id or name */
    int after_count;
    int64_t seed;
    struct spec_command command; /* then no layers, data and train, as in a cluster: */
    int64_t idle_seconds; /* tasks for TensorFlow's clients, until unused for so long; 0: not */
    const struct spec_layer *layers;
    int layers_count;
    int output;              /* the layer whose output the loss takes; of a graph: -1 */
    struct spec_graph graph; /* then no layers, no loss and no optimizer */
    struct spec_data data;
    struct spec_train train;
    struct spec_task tasks[SPEC_ROLES];
    struct spec_checkpoint checkpoint;
    bool spread; /* placement.tasks: on as many nodes as possible; else as tightly */
    const struct spec_pin *pins; /* the first that matches a layer counts */
    int pins_count;
    struct spec_strategy strategy;
    int restart_max;
    uint32_t restart_on; /* bit i: tried again when a task ended for reason i of task.proto */
    int restart_bad; /* not again on a node that failed it so often; 0: nodes are not asked */
    struct spec_stop stop;
    int64_t trace_every_steps; /* 0: never */
};

#define SPEC_RESTARTS 5 /* restart.max of a spec that does not say it */

int spec_tasks(const struct spec *spec); /* how many, of all roles */

/*
 * Parses a spec; all of it lives in `arena`.  `example` in it is replaced by the shipped
 * example of that name under the other fields.
 *
 * Fails with INVALID (what cannot mean anything), UNIMPLEMENTED (what version 1 names but this
 * program cannot run yet), NOT_FOUND (no such example) or EXHAUSTED (too large, too deep); all
 * but syntax errors carry a pointer.
 */
const struct spec *spec_parse(struct arena *arena, const char *text, size_t size,
                              struct error *err) CHECKED;

/* The same for who trains: a job with a command or a cluster fails with INVALID. */
const struct spec *spec_parse_training(struct arena *arena, const char *text, size_t size,
                                       struct error *err) CHECKED;

/* Appends the spec as JSON with every default written out; spec_parse() reads it back equal. */
void spec_to_json(const struct spec *spec, struct str *out);

/* --- shipped examples, in the order of their names --- */

struct spec_example {
    const char *name;
    const char *json;
    size_t size;
};

int spec_example_count(void);
const struct spec_example *spec_example_at(int index);
const struct spec_example *spec_example_find(const char *name); /* NULL if there is none */

/*
 * A spec with the fields of `patch` over it, as they come over an example: JSON in the arena,
 * for spec_parse().  A field that is null was never said.  NULL: no object, or too large.
 */
const char *spec_patch(struct arena *arena, const char *spec, const char *patch,
                       size_t patch_size, struct error *err) CHECKED;

/* --- names, as they are written: 1 to LIMIT_NAME_BYTES --- */

const char *spec_role_name(enum spec_role role); /* "worker" */

/* Whether `name` may name a job, dataset, node: [A-Za-z0-9._-], not "." and "..". */
bool spec_is_name(const char *name);

/* Whether `name` may name a variable or a secret: [A-Za-z_][A-Za-z0-9_]*, not beginning with
 * TRAINYARD_, which are the platform's own. */
bool spec_is_variable(const char *name);
