/*
 * gradient_internal.h - what the parts of a walk back share.
 *
 *   gradient.c         the walk: which nodes, in which order
 *   gradient_frames.c  which loop a node is in, and which branch
 *   gradient_branch.c  through Switch and Merge
 *   gradient_loop.c    through loops: one backward loop for each loop
 *   gradient_history.c values of a loop's iterations, kept for the way back
 *   gradient_stack.c   through what was kept so, where that is differentiated once more
 *   gradient_zeros.c   what went into a While and did not matter
 */
#pragma once

#include "runtime/gradient.h"

struct arena;
struct lowered;
struct map;

/* A gradient that arrived at an output. */
struct arrival {
    struct edge edge;
    struct arrival *next;
};

/* A stack on which one node pushes and from which one pops: what one loop keeps for another. */
struct stack_pair {
    struct node *push; /* NULL until found, like pop */
    struct node *pop;
    bool shared;                  /* several push or pop: not followed */
    struct loop_frame *push_loop; /* the loops side by side that hold them, or NULL */
    struct loop_frame *pop_loop;
    struct node *pushed; /* pushes the gradient on the way back; NULL: there is none */
    struct stack_pair *next;
};

struct place {    /* what is known of one node */
    bool reached; /* by a y, going back */
    bool between; /* ... and depends on an x */
    int pending;  /* inputs of nodes between that it feeds and whose gradient is to come */
    struct arrival **arrivals; /* one list per output; NULL until the first */
    struct stack_pair *pair;   /* of a node that pushes or pops */
};

/* Alive only when `pred` chose output `side` of a Switch. */
struct guard {
    int up; /* the guard around, 0 for none */
    struct edge pred;
    int side;
};

/* A loop, and what was made to go back through it.  Frame 0 is the graph around all loops. */
struct loop_frame {
    int id;
    struct loop_frame *up;
    const char *name;
    int64_t parallel;
    int guard;          /* of the loop as a whole, in the frame around */
    struct node *enter; /* one of them */
    struct edge pred;   /* what says whether to go on */

    int exits_left; /* Exits, and pops of what it pushed, to visit before going into the loop */
    bool started;
    bool stack_flows; /* a gradient comes from a pop */

    /* Forward: counts the iterations; pushes are in step with it. */
    struct node *anchor; /* in the frame around: alive when the loop is */
    struct edge count;   /* Exit */
    struct node *step;   /* once per iteration */
    struct node *pushed; /* a ControlTrigger after all pushes of an iteration */

    /* Backward: counts down. */
    const char *back_name;
    struct edge again;   /* LoopCond */
    struct node *check;  /* once per iteration and once more, to find the end */
    struct node *pivot;  /* once per iteration */
    struct node *popped; /* a ControlTrigger after all pops of an iteration */
    struct node *back_enter;
    struct edge back_gate;
    struct node *finished; /* an Exit; NULL until somebody waits for it */
};

/* What the walk knows of a node of the forward graph, given or added on the way. */
struct whereabouts {
    struct loop_frame *frame; /* NULL: the node is of the backward graph */
    int guard;
    bool is_constant; /* the same in all iterations */
};

/* The way back of a loop's variable. */
struct variable_back {
    struct node *merge; /* the forward Merge */
    struct edge enter;  /* its input from outside */
    struct node *back_merge;
    struct edge back_switch;
};

struct walk {
    struct graph *graph;
    struct arena *arena;
    struct place *places; /* by node id */
    int count;            /* nodes at the start */
    struct node **ready;  /* a stack of nodes */
    int ready_count;
    const char *source; /* names this walk among others in the graph */
    struct error *err;

    bool has_flow;
    struct loop_frame **frames; /* frames[0] is around all loops */
    int frames_count;
    int frames_capacity;
    struct guard *guards; /* guards[0] means none */
    int guards_count;
    int guards_capacity;
    bool guards_grew;          /* that of a loop, since nodes behind it were placed */
    struct whereabouts *where; /* by node id */
    int where_count;
    struct map *history; /* struct edge by "id:output:frame" */
    struct stack_pair *pairs;
    struct variable_back *variables;
    int variables_count;
    int variables_capacity;
};

/* --- gradient.c --- */

struct place *gradient_place(struct walk *w, const struct node *node);
bool gradient_carries(int dtype);
void gradient_arrive(struct walk *w, struct edge at, struct edge gradient);

/* One reader less whose gradient is to come. */
void gradient_settle(struct walk *w, struct node *node);

/* To be visited, unless readers are to come that will say so. */
void gradient_ready(struct walk *w, struct node *node);

/* As both, for input `i` of a node that gives it this gradient (perhaps none). */
void gradient_give(struct walk *w, const struct node *node, int i, struct edge gradient);

/* What arrived at an output as one edge: none, the only one, or an AddN of all (kept). */
bool gradient_sum(struct walk *w, struct edge at, struct edge *sum);

struct builder gradient_builder(struct walk *w, const struct node *node);

/* --- gradient_frames.c --- */

/* Finds frames and guards of all nodes.  Fails with INVALID when loops do not nest. */
bool gradient_frames(struct walk *w) CHECKED;
struct loop_frame *gradient_frame_of(struct walk *w, const struct node *node);
int gradient_guard_of(struct walk *w, struct edge edge);
/* Notes where a node is that was added to the forward graph. */
void gradient_place_forward(struct walk *w, const struct node *node, struct loop_frame *frame,
                            int guard);
bool gradient_is_loop_switch(const struct node *node);
bool gradient_is_loop_merge(const struct node *node);

/* Whether the guard has that condition; a guard stands for all those on its way up. */
bool gradient_has_condition(const struct walk *w, int guard, const struct guard *condition);

/* Whether guard `inner` is alive only where `outer` is. */
bool gradient_is_around(const struct walk *w, int outer, int inner);

/* --- gradient_history.c --- */

/*
 * The value of a forward edge, for the way back through loop `to`: the same iteration's.  In
 * frame 0 that is the edge itself.
 */
bool gradient_recall(struct walk *w, struct edge edge, struct loop_frame *to,
                     struct edge *value) CHECKED;

/*
 * Nodes from `first` on were added for the gradient of a node in `frame`: what they read of the
 * forward graph is recalled, and what reads nothing is tied to the backward iteration.
 */
bool gradient_localise(struct walk *w, int first, struct loop_frame *frame) CHECKED;

/* The stack as seen on the way back through `frame`, alive only where the guard is. */
bool gradient_guard_stack(struct walk *w, struct builder *b, struct loop_frame *frame,
                          int guard, struct edge *stack) CHECKED;

/* --- gradient_stack.c --- */

/* Finds the pairs of all stacks of the graph. */
void gradient_find_stacks(struct walk *w);

/* The push whose value the node pops, and the other way round; NULL for any other node. */
struct node *gradient_pushed_for(const struct walk *w, const struct node *node);
struct node *gradient_popped_from(const struct walk *w, const struct node *node);

/*
 * Fails with UNIMPLEMENTED where a y reads from a stack what an x may have put there, but
 * nothing says what came from where.
 */
bool gradient_check_stacks(struct walk *w, const struct edge *xs, int xs_count) CHECKED;

/* Loops that push wait for those that pop.  Fails with UNIMPLEMENTED where they cannot. */
bool gradient_expect_pops(struct walk *w) CHECKED;

bool gradient_of_pop(struct walk *w, const struct node *node) CHECKED;
bool gradient_of_push(struct walk *w, const struct node *node) CHECKED;

/* The walk has come into the loop: its pushes can be visited. */
void gradient_ready_pushes(struct walk *w, const struct loop_frame *frame);

/* --- gradient_branch.c --- */

/* Zeros like the forward value `x`, or (a handle) like the variable behind it, whose gradient
 * would be like `like`. */
struct edge gradient_zeros(struct builder *b, struct edge x, struct edge like);
/*
 * Node `node` may be in a branch, and its input `i` from outside of it, where no Switch says
 * so: then its gradient is zeros whenever the branch is not taken.
 */
bool gradient_widen(struct walk *w, const struct node *node, int i,
                    struct edge *gradient) CHECKED;

bool gradient_of_switch(struct walk *w, const struct node *node,
                        const struct edge *of_outputs) CHECKED;
bool gradient_of_merge(struct walk *w, const struct node *node, struct edge of_output) CHECKED;

/* --- gradient_loop.c --- */

/* Visits a node of FLOW_EXIT, or the Merge, Switch or Enter of a loop. */
bool gradient_of_exit(struct walk *w, const struct node *node) CHECKED;
bool gradient_of_loop_switch(struct walk *w, const struct node *node) CHECKED;
bool gradient_of_loop_merge(struct walk *w, const struct node *node) CHECKED;
bool gradient_of_enter(struct walk *w, const struct node *node) CHECKED;

/* One Exit or pop less to visit before the walk goes into the loop. */
bool gradient_reach_loop(struct walk *w, struct loop_frame *frame) CHECKED;

/* Makes frame->finished, for which an iteration of the loop around waits. */
bool gradient_loop_finished(struct walk *w, struct loop_frame *frame) CHECKED;

/* Makes what is needed to go back through the loop; done at the first need. */
bool gradient_loop_start(struct walk *w, struct loop_frame *frame) CHECKED;

/* --- gradient_zeros.c --- */

/* Zeros for each x without a gradient that went into a loop (NULL: none) on the way to the ys.
 */
bool gradient_fill_zeros(struct walk *w, const struct lowered *loops, const struct edge *ys,
                         int ys_count, const struct edge *xs, int xs_count,
                         struct edge *grads) CHECKED;
