/*
 * build.h - a model while its graph grows: what layers, losses, metrics and optimizers use.
 *
 * Every helper adds nodes under the scope of the moment and gives the output of the last one.
 * The first failure sticks (builder.h): later calls do nothing and give an edge without a node.
 */
#pragma once

#include "runtime/builder.h"
#include "runtime/model/model.h"
#include "runtime/shapes.h"
#include "runtime/spec/config.h"

struct spec;

/* A variable: its public face, its handle, and what its layer asked for. */
struct build_weight {
    struct model_variable face;
    struct edge handle;
    int parts;            /* of the first part: how many there are, in a row; 0: all others */
    const char *device;   /* wished for it; NULL: none */
    struct edge *mirrors; /* by replica; NULL: none yet */
    struct edge mirrored; /* its value, for them */
    const struct config *regularizer, *constraint; /* NULL: none */
};

struct build {
    struct builder b;
    struct arena *arena; /* the graph's */
    const struct spec *spec;
    int64_t seed;
    const char *pointer; /* of what is being built, for errors */
    bool plain;          /* evaluation is exported: TensorFlow's ops alone */
    struct shapes shapes;

    struct build_weight *weights; /* in the order in which they were made */
    int weights_count, weights_capacity;
    struct node **inits; /* their assignments */
    int inits_count, inits_capacity;

    /* Of the pass that is being built: */
    bool training;
    struct edge *penalties; /* scalars to be added to the loss */
    int penalties_count, penalties_capacity;
    struct node **updates; /* what training does beside the optimizer: moving averages */
    int updates_count, updates_capacity;
    struct edge step;  /* the value of global_step */
    int replica;       /* of which task this pass is, replica.h */
    struct edge shard; /* elastic: the number that is fed, of `shards`; what is random goes by
                          it in place of the replica */
    int shards;

    /* The tasks that variables lie on, by their device names, and how many bytes each has. */
    const char *const *servers;
    int64_t *server_bytes;
    int servers_count;
    const char *home; /* where new variables go instead, with their layer; NULL: nowhere else */

    /* Where each replica has variables of its own; NULL: all share those of `weights`. */
    const char *const *mirrors;
    int mirrors_count;
    const int *hosts;     /* with mirrors, by replica: which worker does it; NULL: its own */
    struct node **copies; /* what sets them to those of `weights` */
    int copies_count, copies_capacity;
};

void build_release(struct build *m);

static inline bool build_ok(const struct build *m)
{
    return !m->b.failed;
}

/* Fails at m->pointer. */
void build_refuse(struct build *m, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* What is known of an output; unknown after a failure.  Borrowed until the next node. */
const struct shape *build_shape(struct build *m, struct edge edge);
enum dtype build_dtype(struct edge edge);

/* Begins a scope inside of the one of the moment; returns that one, for build_leave(). */
const char *build_enter(struct build *m, const char *name);
void build_leave(struct build *m, const char *outside);

/* --- weights (build_weight.c) --- */

/*
 * A variable that starts as `initial`; its index.  With a name that was taken before it is that
 * one, and the rest is not looked at: the second pass over the layers, or a layer called twice.
 */
int build_weight_find(const struct build *m, const char *name); /* -1: none */
int build_weight_add(struct build *m, const char *name, const struct shape *shape,
                     enum dtype dtype, bool trainable, struct edge initial);

/*
 * The same in parts, one after the other, for the parameter servers (build_parts.c): the index
 * of the first, which stands for the whole when it is looked for or read.
 */
int build_parts_add(struct build *m, const char *name, const struct shape *shape, int parts,
                    bool trainable, struct edge initial);

/* All parts put together. */
struct edge build_parts_read(struct build *m, int first);

/* Rows by their numbers: from each part those that it has. */
struct edge build_parts_gather(struct build *m, int first, struct edge numbers);

/* The variable as this pass and its update know it: that of its replica. */
struct edge build_weight_handle(struct build *m, int weight);

/* Its value; of float weights in the type that the model computes in. */
struct edge build_weight_read(struct build *m, int weight);

/* The values that a variable of this name starts with (build_initializer.c). */
struct edge build_initializer(struct build *m, const char *name,
                              const struct config *initializer, const struct shape *shape);

/* A seed of its own for each purpose: mixes the job's seed with a name. */
int64_t build_seed(const struct build *m, const char *purpose);

/* --- ops (build_ops.c) --- */

struct edge build_unary(struct build *m, const char *op, struct edge x);
struct edge build_binary(struct build *m, const char *op, struct edge x, struct edge y);
struct edge build_with_number(struct build *m, const char *op, struct edge x, double y);
struct edge build_number(struct build *m, enum dtype dtype, double value);
struct edge build_ints(struct build *m, const int64_t *values, int count);
/* The op Pad: `sides` has how much before and after, for each of `rank` dimensions. */
struct edge build_pad(struct build *m, struct edge x, const int64_t *sides, int rank);
struct edge build_cast(struct build *m, struct edge x, enum dtype dtype);
struct edge build_matmul(struct build *m, struct edge x, struct edge y, bool transpose_x,
                         bool transpose_y); /* BatchMatMulV2 above rank 2 */
/* Sum, Mean, Max, ... over axes, negative ones from the end. */
struct edge build_reduce(struct build *m, const char *op, struct edge x, const int64_t *axes,
                         int axes_count, bool keep_dims);
struct edge build_reduce_all(struct build *m, const char *op, struct edge x); /* a scalar */
struct edge build_reshape(struct build *m, struct edge x, const int64_t *dims, int rank);
/* The first dimension stays, whatever it is. */
struct edge build_reshape_examples(struct build *m, struct edge x, const int64_t *dims,
                                   int rank);
struct edge build_transpose(struct build *m, struct edge x, const int64_t *order, int rank);
struct edge build_concat(struct build *m, const struct edge *xs, int count, int64_t axis);
/* -1 in `size`: to the end. */
struct edge build_slice(struct build *m, struct edge x, const int64_t *begin,
                        const int64_t *size, int rank);
/* Equal parts along an axis; the first output of the node, the others follow. */
struct edge build_split(struct build *m, struct edge x, int64_t axis, int parts);
struct edge build_expand(struct build *m, struct edge x, int64_t axis);
struct edge build_squeeze(struct build *m, struct edge x, int64_t axis);
struct edge build_select(struct build *m, struct edge condition, struct edge x, struct edge y);
struct edge build_argmax(struct build *m, struct edge x, int64_t axis, enum dtype dtype);
struct edge build_bias(struct build *m, struct edge x, struct edge bias);
/* The runtime shape, int32. */
struct edge build_shape_of(struct build *m, struct edge x);

/* An activation by Keras's name (build_activation.c); NULL is linear. */
struct edge build_activation(struct build *m, const char *name, struct edge x);
extern const char *const build_activation_names[];

/* 1 where an element of `x` is kept, 0 where it is dropped; new in every step (build_random.c).
 * `noise`: the shape of the mask, which is broadcast; NULL: that of x. */
struct edge build_dropout_mask(struct build *m, struct edge x, const struct shape *noise,
                               double rate, const char *purpose);

/* Normal numbers of the shape of `x`, new in every step. */
struct edge build_noise(struct build *m, struct edge x, const char *purpose);

/* --- families --- */

extern const struct config_family build_initializer_family; /* build_initializer.c */
extern const struct config_family build_regularizer_family; /* build_regularizer.c */
extern const struct config_family build_constraint_family;  /* build_constraint.c */

/* The penalty of a weight or output, a scalar. */
struct edge build_regularizer(struct build *m, const struct config *regularizer, struct edge x);
/* What a weight is turned into after each update. */
struct edge build_constraint(struct build *m, const struct config *constraint, struct edge x);
