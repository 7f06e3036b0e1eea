/*
 * fuse.h - puts one node in the place of several, for the passes of optimise.c.
 *
 *   struct fuser f;
 *   fuse_init(&f, subgraph, err);
 *   ... struct node *fused = fuse_add(&f, &def, like, stands_for, count); ...
 *   ... fuse_replace(&f, last, fused, 0); ...
 *   return fuse_finish(&f);
 *
 * A node goes only when nobody else looks at it: no other consumer, fetch or target.  The fused
 * node takes the name of the last of those it replaces, so that traces and errors stay
 * readable, and lists them all as OPTIMISE_STANDS_FOR.
 */
#pragma once

#include "runtime/graph.h"

struct subgraph;

/* A consumer of a node: its input `index` is output `output` of the node. */
struct fuse_use {
    struct node *node;
    int index;
    int output;
};

struct fuser {
    struct subgraph *subgraph;
    struct graph *graph;
    int count;      /* nodes when the tables were made; later ones are not in them */
    bool *needed;   /* by node id, like all that follow */
    int *use_first; /* into uses; one more entry than nodes */
    struct fuse_use *uses;
    bool *watched;            /* fetched, a target, or waited for */
    struct node *(*moved)[2]; /* who waited for the node waits for these */
    struct error *err;
    bool failed;
};

enum { FUSE_ATTRS_MAX = 16 };

void fuse_init(struct fuser *f, struct subgraph *subgraph, struct error *err);

/* Releases the fuser; false when adding a node failed. */
bool fuse_finish(struct fuser *f) CHECKED;

/* Whether the graph has a node of one of these ops (NULL-terminated): else there is no need to
 * begin. */
bool fuse_has(const struct subgraph *subgraph, const char *const *ops);

/* Whether the node is of that op; one that is bad is of none. */
bool fuse_is(const struct node *node, const char *op);
bool fuse_same_wishes(const struct node *a, const struct node *b);

int fuse_uses(const struct fuser *f, const struct node *node);
const struct fuse_use *fuse_use_at(const struct fuser *f, const struct node *node, int i);

/* The only consumer of `node`, of op `op`, on its input 0; NULL if it is not so. */
struct node *fuse_only_user(const struct fuser *f, const struct node *node, const char *op);

/* The attributes of `node` that op `op` has too; returns how many. */
int fuse_copy_attrs(const struct node *node, const char *op, struct attr *attrs, int max);

/*
 * Adds the node of `def`, standing for `stands_for`, if wherever `like` could run, it can; else
 * NULL.  Name and device are those of the last one.  It has no control edges yet.
 */
struct node *fuse_add(struct fuser *f, const struct node_def *def, const struct node *like,
                      struct node *const *stands_for, int stands_for_count);

/* `node` waits for what `from` waits for. */
void fuse_controls(struct fuser *f, struct node *node, const struct node *from);

/* Who waits for `old` will wait for `now`, and for `also` if it is not NULL. */
void fuse_waiters(struct fuser *f, const struct node *old, struct node *now, struct node *also);

/* All that used output `from` of `old` uses output `to` of `now`. */
void fuse_output(struct fuser *f, struct node *old, int from, struct node *now, int to);

/* The same of output 0; waiters and targets come along. */
void fuse_replace(struct fuser *f, struct node *old, struct node *now, int output);
