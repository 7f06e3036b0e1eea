/*
 * dataset.h - tf.data: datasets, which are descriptions, and iterators, which walk them.
 *
 * A dataset is an immutable object behind a VARIANT scalar: a type, the datasets it is made
 * from, and what its type adds.  An iterator pulls elements, each a row of `width` tensors,
 * from the iterators of its inputs.  No thread is held between two elements.
 *
 * Chains of datasets are as long as a user likes, so their depth is bounded: whoever makes one
 * that is deeper gets an error, and nothing below recurses deeper than that.
 */
#pragma once

#include <pthread.h>

#include "kernels/ref/numbers.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"

struct dataset;
struct function;
struct iterator;

#define DATASET_KIND "dataset"
#define DATASET_DEPTH_MAX 500 /* datasets on top of each other, iterators within each other */

/* Numbers of elements that are no numbers. */
#define CARDINALITY_INFINITE (-1)
#define CARDINALITY_UNKNOWN (-2)

struct dataset_type {
    const char *name;
    size_t dataset_size;  /* of the struct that embeds struct dataset */
    size_t iterator_size; /* of the struct that embeds struct iterator */
    bool lazy;            /* begin() makes the iterators of inputs itself, if at all */

    /* (optional) The iterator is zeroed, but for it->input: an iterator of the one input. */
    bool (*begin)(struct iterator *it, struct error *err);

    /*
     * The next element: fills out[0 .. width) (zeroed, owned by the caller then), or sets
     * `*end`.  Callers may ask again after the end and after an error; with an error `*end` is
     * set if it came at the input's end.
     */
    bool (*next)(struct iterator *it, struct tensor *out, bool *end, struct error *err);

    void (*end)(struct iterator *it); /* (optional) also after a failed begin() */
    int64_t (*cardinality)(const struct dataset *dataset); /* (optional) else unknown */
    void (*release)(struct dataset *dataset);              /* (optional) */
};

struct dataset {
    struct resource resource;
    const struct dataset_type *type;
    int depth; /* 1 + that of its deepest input */
    int width; /* tensors of an element */
    enum dtype *types;
    struct shape *shapes;
    struct dataset **inputs; /* counted */
    int inputs_count;
};

/*
 * What the iterators of one pipeline share.  A function that keeps a state from call to call
 * (random streams) has one for each pipeline.
 */
struct pipeline {
    struct cancel *cancel; /* of the run that asks for an element now; NULL: nobody cancels */
    struct pipeline *root; /* whose functions it uses, NULL: its own */

    pthread_mutex_t lock; /* guards: all below */
    struct own_function *functions;
    int functions_count;
    int functions_capacity;
};

struct iterator {
    struct dataset *dataset; /* counted */
    struct pipeline *pipeline;
    int depth;
    bool ended;             /* and stays so */
    struct iterator *input; /* of the one input, unless the type is lazy */
};

/* --- datasets --- */

/* What an element looks like. */
struct signature {
    int width;
    const int *types;           /* dtypes */
    const struct shape *shapes; /* NULL: nothing is known */
};

/* That of the attributes output_types (or Toutput_types) and output_shapes.  INVALID if they do
 * not suit each other. */
bool kernel_dataset_attrs(const struct node *node, struct signature *signature,
                          struct error *err) CHECKED;

/*
 * A dataset with what the type adds zeroed; takes references to `inputs`.  One reference,
 * resource_unref() it.  EXHAUSTED when it is too deep.
 */
struct dataset *kernel_dataset_new(const struct dataset_type *type,
                                   const struct signature *signature,
                                   struct dataset *const *inputs, int inputs_count,
                                   struct error *err) CHECKED;

/* For a kernel: the attributes' signature, and the datasets in inputs [first, first + count).
 */
struct dataset *kernel_dataset_make(struct kernel_call *call, const struct dataset_type *type,
                                    int first, int count, struct error *err) CHECKED;

/* The same on top of one dataset with elements that look the same. */
struct dataset *kernel_dataset_wrap(const struct dataset_type *type, struct dataset *input,
                                    struct error *err) CHECKED;

/* The dataset in a VARIANT scalar; borrowed.  INVALID when there is none. */
struct dataset *kernel_dataset_in(struct kernel_call *call, int input,
                                  struct error *err) CHECKED;
struct dataset *kernel_dataset_of(const struct tensor *tensor, struct error *err) CHECKED;

/* Output 0 becomes the dataset, whose reference is taken; NULL: false. */
bool kernel_dataset_output(struct kernel_call *call, struct dataset *dataset,
                           struct error *err) CHECKED;

/* A VARIANT scalar that holds it; takes another reference. */
bool kernel_dataset_tensor(struct tensor *out, struct dataset *dataset,
                           struct error *err) CHECKED;

/* How deep the deepest dataset is that hides in a VARIANT tensor, 0 for none. */
int kernel_dataset_depth(const struct tensor *tensor);

/* Puts a dataset on top of tensors that it holds.  EXHAUSTED when it is too deep. */
bool kernel_dataset_deepen(struct dataset *dataset, const struct tensor *tensors, int count,
                           struct error *err) CHECKED;

int64_t kernel_dataset_cardinality(const struct dataset *dataset);

/* Whether elements of `dataset` may be taken for those of `signature`; INVALID if not. */
bool kernel_dataset_suits(const struct dataset *dataset, const struct signature *signature,
                          struct error *err) CHECKED;

/* --- functions of a user --- */

struct dataset_function {
    struct function *function;
    bool has_state;
    struct tensor *captured; /* the last arguments */
    int captured_count;
};

/*
 * That of attribute `attr`, with inputs [first, first + count) captured; takes `args` more
 * arguments and gives `results`.  INVALID when its signature is another.
 */
bool kernel_dataset_function(struct dataset_function *function, struct kernel_call *call,
                             const char *attr, int first, int count, int args, int results,
                             struct error *err) CHECKED;

/* How many results the function of attribute `attr` has; -1 and an error when there is none. */
int kernel_dataset_results(struct kernel_call *call, const char *attr,
                           struct error *err) CHECKED;
void kernel_dataset_function_release(struct dataset_function *function);

/* Calls it: `args` are borrowed, `results` owned by the caller. */
bool kernel_dataset_call(const struct dataset_function *function, struct pipeline *pipeline,
                         const struct tensor *args, int args_count, struct tensor *results,
                         struct error *err) CHECKED;

/* As that of a predicate: its result, which must be a scalar of bool. */
bool kernel_dataset_test(const struct dataset_function *function, struct pipeline *pipeline,
                         const struct tensor *args, int args_count, bool *yes,
                         struct error *err) CHECKED;

/* The scalar that says how many calls may run at once: at least 1, or -1.  INVALID. */
bool kernel_dataset_parallel(struct kernel_call *call, int input, struct error *err) CHECKED;

/* How many captured inputs the list attribute `name` says there are. */
int kernel_dataset_list(const struct node *node, const char *name);

/* --- pipelines --- */

void kernel_pipeline_init(struct pipeline *pipeline, struct cancel *cancel);
void kernel_pipeline_release(struct pipeline *pipeline);

/* Functions begin anew; no iterator is left. */
void kernel_pipeline_clear(struct pipeline *pipeline);

/* --- iterators --- */

/* An iterator inside another (NULL: none), at its beginning. */
struct iterator *kernel_iterator_new(struct dataset *dataset, struct pipeline *pipeline,
                                     const struct iterator *inside, struct error *err) CHECKED;
void kernel_iterator_free(struct iterator *it); /* NULL is fine */

/*
 * The next element into out[0 .. width), or `*end`.  Checks the types of what it got. CANCELLED
 * when the run is to end.
 */
bool kernel_iterator_next(struct iterator *it, struct tensor *out, bool *end,
                          struct error *err) CHECKED;

/* Whether the run that asks is to end; for loops that skip many elements. */
bool kernel_iterator_go_on(const struct iterator *it, struct error *err) CHECKED;

/* --- rows of tensors --- */

void kernel_row_release(struct tensor *row, int width);
struct tensor *kernel_row_new(int width);

/* As kernel_dataset_suits(), of tensors that are there. */
bool kernel_row_suits(const struct tensor *row, int width, const struct signature *signature,
                      struct error *err) CHECKED;

/* Rows that grow in number. */
struct rows {
    struct tensor *tensors; /* count * width */
    int width;
    int64_t count;
    int64_t capacity;
};

/* Adds one, zeroed, for the caller to fill; borrowed until the next is added. */
struct tensor *kernel_rows_add(struct rows *rows);
struct tensor *kernel_rows_at(const struct rows *rows, int64_t index);
void kernel_rows_drop(struct rows *rows, int64_t count); /* the first `count` */
void kernel_rows_cut(struct rows *rows, int64_t count);  /* all behind the first `count` */
void kernel_rows_release(struct rows *rows);

/* Adds the next element of `it`, or sets `*end`. */
bool kernel_rows_pull(struct rows *rows, struct iterator *it, bool *end,
                      struct error *err) CHECKED;

/* out[0 .. width): each component of all rows (at least one) below each other, in a batch. */
bool kernel_rows_stack(const struct rows *rows, struct tensor *out, struct error *err) CHECKED;

/* Element `index` of dimension 0, as a tensor of its own. */
bool kernel_row_slice(struct tensor *out, const struct tensor *from, int64_t index,
                      struct error *err) CHECKED;

/* --- datasets that others are made of --- */

struct dataset *kernel_batch_new(struct dataset *input, const struct signature *signature,
                                 int64_t size, bool drop_remainder, struct error *err) CHECKED;

/* Of rows that are there, which it takes over. */
struct dataset *kernel_window_new(const struct signature *signature, struct rows *rows,
                                  struct error *err) CHECKED;

/* CacheDataset into the file that input 1 names. */
struct dataset *kernel_file_cache_make(struct kernel_call *call, struct error *err) CHECKED;

/* The same elements, some of them made ahead by a thread. */
struct dataset *kernel_prefetch_new(struct dataset *input, struct error *err) CHECKED;

/* Whether it is a map, whose elements may fail each by itself. */
bool kernel_map_is(const struct dataset *dataset);
