/*
 * optimise.h - the passes over a pruned graph: their names, switches, and what they did.
 *
 * Every pass can be switched off, alone or with others; results stay the same, to the bit
 * where a pass does not say otherwise.
 */
#pragma once

#include "base/base.h"

struct plan;
struct subgraph;

/* In the order in which they run. */
enum optimise_pass {
    OPTIMISE_IDENTITY,
    OPTIMISE_SHAPE,
    OPTIMISE_LAYOUT,
    OPTIMISE_FOLD,
    OPTIMISE_ARITHMETIC,
    OPTIMISE_MERGE,
    OPTIMISE_LOOKUP,
    OPTIMISE_FUSE,
    OPTIMISE_WINOGRAD,
    OPTIMISE_NORM,
    OPTIMISE_SOFTMAX,
    OPTIMISE_CHAIN,
    OPTIMISE_UPDATE,
    OPTIMISE_RECOMPUTE,
    OPTIMISE_PASSES
};

/* In a set of passes. */
#define OPTIMISE_BIT(pass) (UINT32_C(1) << (pass))

/* "fold"; and what it does, in a line for people. */
const char *optimise_name(int pass);
const char *optimise_summary(int pass);

/* The pass of that name, -1 if there is none. */
int optimise_find(const char *name);

/* Adds the passes that `names` lists ("fold,chain") to `*set`; false if one does not exist. */
bool optimise_parse(const char *names, uint32_t *set);

/* Called after each pass that ran, before the first with `pass` -1, and at the end. */
struct optimise_watcher {
    void (*saw)(void *arg, int pass, const struct subgraph *subgraph);
    void (*made)(void *arg, const struct plan *plan);
    void *arg;
};

/*
 * The annotation of a node made by a pass that names the nodes it stands for: what traces,
 * placements and `trainyard graph show` say of it.
 */
#define OPTIMISE_STANDS_FOR "_stands_for"

/* The attribute of a convolution that may be computed by Winograd's algorithm. */
#define OPTIMISE_WINOGRAD_ATTR "_winograd"
