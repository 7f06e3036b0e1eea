/*
 * lower.h - what the steps of lowering share; see lower.c.
 */
#pragma once

#include "runtime/device.h"
#include "runtime/function_library.h"
#include "runtime/graph.h"

/* The calls that a call is inside of. */
struct lower_chain {
    const struct function_def *def;
    const struct lower_chain *up;
    int depth;
};

/* A node that read an output of a call, and the call. */
struct lower_reader {
    const struct node *reader;
    struct node *call;
};

/* A call to lower. */
struct lower_call {
    struct node *node;
    const struct lower_chain *chain; /* NULL: it is not inside a function */
    bool in_flow; /* it may be dead or in a frame: nodes without inputs need a control edge */
    bool inlined; /* its function is put in place of a plain call, not of a branch or a loop */
};

struct lower {
    struct graph *graph;
    struct function_library *library;
    const struct device *devices; /* where RemoteCalls may have their bodies */
    int devices_count;
    bool view;  /* names need not be unique, keys of state do */
    bool roots; /* it is known what is asked for: lower_keep() follows */
    struct lower_call *work;
    int work_count;
    int work_capacity;
    struct edge **bypass; /* by node id: what readers of a lowered call read in its place */
    bool *whole; /* by node id: a call with a bypass of which nothing may be left out */
    int bypass_count;
    struct lower_reader *readers; /* of calls that run as a whole */
    int readers_count;
    int readers_capacity;
    int nodes_left;
    const struct lowered *loops; /* so far */
    struct error *err;
};

/* One function's body put in place of a call. */
struct lower_body {
    const struct attr_func *func;   /* what is called, and what its attributes are bound to */
    const struct function_def *def; /* lower_find() */
    const char *device;             /* what its nodes leave open; NULL: as the call's wish */
    const char *tag;                /* "then", "body"; NULL: names are <call>/<node> */
    const struct edge *args;        /* as many as the function has inputs */
    int args_count;
    struct node *entry; /* (optional) before nodes without inputs and those with effects */
    bool in_flow;
    bool all_effects;     /* all that is stateful must run, not only what the function says */
    struct edge *results; /* filled in, like effects; they live in the graph's arena */
    int results_count;
    struct node **effects; /* what must have run before the call counts as done */
    int effects_count;
};

/* --- lower.c --- */

/*
 * The function that a call means.  `*inline_it` says whether to put its body in place: not
 * when it is being lowered already (it calls itself), or too deep.
 */
const struct function_def *lower_find(struct lower *l, const struct lower_call *call,
                                      const char *name, bool *inline_it) CHECKED;

/* Adds a node "<call>/<name>" with the call's device; all attributes follow from `attrs`. */
struct node *lower_add(struct lower *l, const struct lower_call *call, const char *name,
                       const char *op, const struct edge *inputs, int inputs_count,
                       const struct attr *attrs, int attrs_count, struct node *const *controls,
                       int controls_count) CHECKED;

/* Remembers a loop and what its results are, which live as long as the graph. */
void lower_note(struct lower *l, const struct lower_call *call, const struct edge *results,
                int count);

/*
 * Whether the client itself asks for Switch and Merge (attribute _lower_using_switch_merge).
 * TensorFlow lowers only then, and is stricter: a condition must be a bool, and what has
 * effects runs only if something waits for it.
 */
bool lower_is_asked(const struct lower_call *call);

/* Whether `value` is true, as a bool. */
bool lower_ask(struct lower *l, const struct lower_call *call, struct edge value,
               struct edge *answer) CHECKED;

/* Remembers that `node`, just added, is a call to lower if it is one. */
void lower_push(struct lower *l, const struct lower_call *call);

/*
 * The call becomes an IdentityN of these (or a NoOp) after `done`.  Readers of its outputs read
 * the results instead, unless something besides them must run; always if `direct`: then what
 * nobody reads is not computed.
 */
bool lower_finish(struct lower *l, const struct lower_call *call, const struct edge *results,
                  int count, struct node *const *done, int done_count, bool direct) CHECKED;

/* "<call>/<tag>/<name>". */
const char *lower_path(struct lower *l, const struct node *call, const char *tag,
                       const char *name);

/* A name for a node of the call, and the key of its state (NULL where names are enough). */
const char *lower_name(struct lower *l, const struct node *call, const char *tag,
                       const char *name);
const char *lower_key(struct lower *l, const struct node *call, const char *tag,
                      const char *name);

/* --- lower_keep.c: a call that runs computes all its results from all its arguments --- */

/* Whether a node only passes on what is there: nobody can tell whether it ran. */
bool lower_is_silent(const struct node *node);

/*
 * Remembers which calls each node reads, and which the results of the whole are, before readers
 * are turned to what the calls return.
 */
void lower_note_readers(struct lower *l, const struct edge *results, int results_count);

/*
 * The targets and, in an array of the graph's arena, those calls more that are needed only in
 * part while the rest could fail.  `*count` is how many targets there are, then how many
 * there are in all.
 */
struct node **lower_keep(struct lower *l, const struct edge *fetches, int fetches_count,
                         struct node **targets, int *count);

/* --- lower_body.c --- */

/* Adds the nodes of the body.  Fails as TensorFlow does when it instantiates a function. */
bool lower_body(struct lower *l, const struct lower_call *call,
                struct lower_body *body) CHECKED;

/* Whether result `i` of the function is its argument `i`. */
bool lower_passes(const struct function_def *def, int i);

/* --- lower_remote.c --- */

/* The device that a RemoteCall's body is to have; NULL: it stays a call.  INVALID: not there.
 */
bool lower_target(struct lower *l, const struct lower_call *call, const char **device) CHECKED;

/* The wish of a node in that body: its own, completed. */
const char *lower_device_on(struct lower *l, const char *wish, const char *target);

/* --- one file per kind of call; `*done` false: it stays a call --- */

bool lower_branches(struct lower *l, const struct lower_call *call, bool *done) CHECKED;
bool lower_while(struct lower *l, const struct lower_call *call, bool *done) CHECKED;
