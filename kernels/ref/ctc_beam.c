/*
 * ctc_beam.c - CTCBeamSearchDecoder: the likeliest sequences of labels, each over all ways to
 * spread it over the frames, of those that the beam keeps from frame to frame.
 *
 * A node is a sequence: that of its parent and one label more.  It stays when it leaves the
 * beam, as longer ones hang on it, and may come back.  Scores are logarithms; what a sequence
 * is worth is told apart by whether its last frame was a blank.
 */

#include <math.h>

#include "base/alloc.h"
#include "kernels/ref/ctc.h"
#include "kernels/ref/doubles.h"

#define BEAM_NODES_MAX (1 << 22)

struct node_score {
    double total, blank, label; /* `total` is of both endings */
};

static const struct node_score worthless = {-INFINITY, -INFINITY, -INFINITY};

struct sequence {
    int parent;                    /* -1: the empty one */
    int first_child, next;         /* children that were in the beam once; -1: none */
    int64_t label;                 /* the last */
    struct node_score now, before; /* after this frame and the one before */
};

struct beam {
    int64_t width, classes;
    struct sequence *nodes;
    int nodes_count, nodes_capacity;
    int *leaves; /* in the beam, the best first */
    int leaves_count, leaves_capacity;
    int *branches; /* those of the frame before */
    int branches_count, branches_capacity;
    int *child_of; /* by label, of the node that grows; -1: none */
};

static double log_add(double a, double b)
{
    if (a == -INFINITY)
        return b;
    if (b == -INFINITY)
        return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* --- the beam --- */

/* Puts a node at its place; the last falls out of a full beam and is worth nothing. */
static void push(struct beam *beam, int node)
{
    double total = beam->nodes[node].now.total;
    int at = beam->leaves_count;
    if (beam->leaves_count == beam->width) {
        beam->nodes[beam->leaves[--at]].now = worthless;
    } else {
        beam->leaves = alloc_grow(beam->leaves, beam->leaves_count++, &beam->leaves_capacity,
                                  sizeof(*beam->leaves));
    }
    for (; at > 0 && beam->nodes[beam->leaves[at - 1]].now.total < total; at--)
        beam->leaves[at] = beam->leaves[at - 1];
    beam->leaves[at] = node;
}

/* Whether a sequence of that worth would be in the beam. */
static bool is_wanted(const struct beam *beam, double total)
{
    return total > -INFINITY &&
           (beam->leaves_count < beam->width ||
            total > beam->nodes[beam->leaves[beam->leaves_count - 1]].now.total);
}

static bool add_node(struct beam *beam, int parent, int64_t label, struct error *err)
{
    if (beam->nodes_count == BEAM_NODES_MAX)
        return fail(err, EXHAUSTED, "the beam has looked at %d sequences, allowed: no more",
                    BEAM_NODES_MAX);
    beam->nodes =
        alloc_grow(beam->nodes, beam->nodes_count, &beam->nodes_capacity, sizeof(*beam->nodes));
    beam->nodes[beam->nodes_count] = (struct sequence){.parent = parent,
                                                       .first_child = -1,
                                                       .next = -1,
                                                       .label = label,
                                                       .now = worthless,
                                                       .before = worthless};
    if (parent >= 0) {
        beam->nodes[beam->nodes_count].next = beam->nodes[parent].first_child;
        beam->nodes[parent].first_child = beam->nodes_count;
    }
    beam->nodes_count++;
    return true;
}

static bool begin(struct beam *beam, struct error *err)
{
    beam->nodes_count = beam->leaves_count = 0;
    if (!add_node(beam, -1, -1, err))
        return false;
    beam->nodes[0].now.total = beam->nodes[0].now.blank = 0;
    push(beam, 0);
    return true;
}

/* --- a frame --- */

/* Sequences of the beam as they are after another frame: its class again, or a blank. */
static void stay(struct beam *beam, const double *log_p)
{
    for (int i = 0; i < beam->branches_count; i++) {
        struct sequence *node = &beam->nodes[beam->branches[i]];
        struct sequence *parent = node->parent < 0 ? NULL : &beam->nodes[node->parent];
        if (parent) {
            if (parent->now.total != -INFINITY)
                node->now.label = log_add(node->now.label, node->label == parent->label
                                                               ? parent->before.blank
                                                               : parent->before.total);
            node->now.label += log_p[node->label];
        }
        node->now.blank = node->before.total + log_p[beam->classes - 1];
        node->now.total = log_add(node->now.blank, node->now.label);
        push(beam, beam->branches[i]);
    }
}

/*
 * The sequences of one label more that are worth it.  One that fell out of the beam at this
 * frame, and is not worth it by its parent either, does not grow any more itself.
 */
static bool grow(struct beam *beam, int index, const double *log_p, struct error *err)
{
    if (!is_wanted(beam, beam->nodes[index].before.total))
        return true;
    for (int64_t label = 0; label < beam->classes - 1; label++)
        beam->child_of[label] = -1;
    for (int c = beam->nodes[index].first_child; c >= 0; c = beam->nodes[c].next)
        beam->child_of[beam->nodes[c].label] = c;
    for (int64_t label = 0; label < beam->classes - 1; label++) {
        const struct sequence *node = &beam->nodes[index];
        int child = beam->child_of[label];
        double worth =
            log_p[label] + (label == node->label ? node->before.blank : node->before.total);
        if (child >= 0 && beam->nodes[child].now.total != -INFINITY)
            continue;
        if (is_wanted(beam, worth)) {
            if (child < 0 && !add_node(beam, index, label, err))
                return false;
            child = child < 0 ? beam->nodes_count - 1 : child;
            beam->nodes[child].now = (struct node_score){worth, -INFINITY, worth};
            push(beam, child);
        } else if (child >= 0) {
            beam->nodes[child].before = worthless;
        }
    }
    return true;
}

static bool step(struct beam *beam, const double *log_p, struct error *err)
{
    int count = beam->leaves_count;
    while (beam->branches_capacity < count)
        beam->branches = alloc_grow(beam->branches, beam->branches_capacity,
                                    &beam->branches_capacity, sizeof(*beam->branches));
    memcpy(beam->branches, beam->leaves, (size_t)count * sizeof(*beam->leaves));
    beam->branches_count = count;
    beam->leaves_count = 0;
    for (int i = 0; i < count; i++)
        beam->nodes[beam->branches[i]].before = beam->nodes[beam->branches[i]].now;
    stay(beam, log_p);
    for (int i = 0; i < count; i++)
        if (!grow(beam, beam->branches[i], log_p, err))
            return false;
    return true;
}

/* --- the whole --- */

static void log_softmax(const double *x, int64_t classes, double *out)
{
    double most = x[0], total = 0;
    for (int64_t k = 1; k < classes; k++)
        most = x[k] > most ? x[k] : most;
    for (int64_t k = 0; k < classes; k++)
        total += exp(x[k] - most);
    for (int64_t k = 0; k < classes; k++)
        out[k] = x[k] - most - log(total);
}

/* Puts the labels of a node behind those that the path has. */
static void take_path(const struct beam *beam, int node, bool merge,
                      struct kernel_ctc_path *path, int64_t b)
{
    int64_t first = b ? path->ends[b - 1] : 0, end = first, after = -1;
    for (; beam->nodes[node].parent >= 0; node = beam->nodes[node].parent) {
        int64_t label = beam->nodes[node].label;
        if (!merge || label != after)
            path->labels[end++] = label;
        after = label;
    }
    path->ends[b] = end;
    for (int64_t last = end - 1; first < last; first++, last--) {
        int64_t label = path->labels[first];
        path->labels[first] = path->labels[last];
        path->labels[last] = label;
    }
}

struct decoding {
    struct kernel_ctc c;
    struct kernel_ctc_path *paths;
    int paths_count;
    bool merge;
    double *scores; /* (batch, paths) */
    double *log_p;  /* (classes) */
};

static bool decode(struct decoding *d, struct beam *beam, int64_t b, struct error *err)
{
    if (!begin(beam, err))
        return false;
    for (int64_t t = 0; t < d->c.lengths[b]; t++) {
        log_softmax(kernel_ctc_at(&d->c, t, b), d->c.classes, d->log_p);
        if (!step(beam, d->log_p, err))
            return false;
    }
    if (beam->leaves_count < d->paths_count)
        return fail(err, INVALID, "Less leaves in the beam search than requested.");
    for (int p = 0; p < d->paths_count; p++) {
        take_path(beam, beam->leaves[p], d->merge, &d->paths[p], b);
        d->scores[b * d->paths_count + p] = beam->nodes[beam->leaves[p]].now.total;
    }
    return true;
}

static bool give(struct kernel_call *call, const struct decoding *d, struct error *err)
{
    int n = d->paths_count;
    for (int p = 0; p < n; p++) {
        if (!kernel_ctc_path_give(call, &d->c, &d->paths[p], p, n + p, 2 * n + p, err))
            return false;
    }
    return kernel_doubles_store(call, 3 * n, &SHAPE(d->c.batch, n), d->scores, err);
}

static bool beam_search_run(struct kernel_call *call, struct error *err)
{
    struct decoding d = {.paths_count = (int)node_attr_int(call->node, "top_paths", 1),
                         .merge = node_attr_bool(call->node, "merge_repeated", true)};
    struct beam beam = {.width = node_attr_int(call->node, "beam_width", 1)};
    if (!kernel_ctc_read(call, 0, 1, PRECONDITION, &d.c, err))
        return false;
    if (d.paths_count > beam.width)
        return fail(err, INVALID, "requested more paths than the beam width.");
    beam.classes = d.c.classes;
    d.paths = kernel_scratch(call, (size_t)d.paths_count * sizeof(*d.paths), err);
    d.scores = d.paths ? kernel_doubles_zeros(call, d.c.batch * d.paths_count, err) : NULL;
    d.log_p = d.scores ? kernel_doubles_zeros(call, d.c.classes, err) : NULL;
    beam.child_of =
        d.log_p ? kernel_scratch(call, (size_t)d.c.classes * sizeof(*beam.child_of), err)
                : NULL;
    bool ok = beam.child_of;
    for (int p = 0; ok && p < d.paths_count; p++)
        ok = kernel_ctc_path_new(call, &d.c, &d.paths[p], err);
    for (int64_t b = 0; ok && b < d.c.batch; b++)
        ok = decode(&d, &beam, b, err);
    free(beam.nodes);
    free(beam.leaves);
    free(beam.branches);
    return ok && give(call, &d, err);
}

const struct kernel kernel_ctc_beam_search_decoder_ref = {
    .op = "CTCBeamSearchDecoder", .device = CPU, .run = beam_search_run};
