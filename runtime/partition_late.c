/*
 * partition_late.c - receives that wait until shortly before their values are read.
 *
 * A receive has no input, so it would run when the step begins: what is made of nothing (a
 * variable, a feed) comes at once, and takes memory until its turn.  A control edge from a node
 * of the same part, its anchor, holds the receive back.
 *
 * How late is late enough not to be too late?  A step's nodes have times as if each ran as soon
 * as what it reads is there (ASAP), by their costs alone.  Let the large values that come to a
 * task be v1, v2, ... in the order in which they are first read, E(i) that time for v(i), and
 * B(i) the bytes of the first i.  How fast the link is in comparison, nobody knows; but a task
 * waits for v(k), however late or early it was asked for, until B(k) bytes have come.  Let v(i)
 * be asked for when the nodes are at time t.  If the link idles because of that, then all of
 * B(i-1) came in less than t, and that hurts only if B(k) - B(i-1) for some k >= i takes more
 * than E(k) - t.  There is no such link if t is on or below the line through (B(l), E(l)) and
 * (B(k), E(k)) at B(i-1), for all l < i <= k: the lower hull of those points.  So that is the
 * latest time (ALAP), and some bytes more are on their way for what the costs have wrong.
 *
 * The anchor comes before all that read the value: it adds nothing to what anybody waits for,
 * so it makes no cycle, whatever loops and queues there are, and a task that is late delays
 * nobody but those who wait for it anyway.  It comes after no Switch or Merge, so it is never
 * dead: what ran after it would be, too.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/cost.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/partition.h"
#include "runtime/place_cost.h"
#include "runtime/price.h"
#include "runtime/shapes.h"

enum {
    /* What is smaller costs as much by being asked for as by its bytes, comes in one message
     * with others, and is not missed from memory. */
    LATE_BYTES_MIN = 1 << 20,
    REQUEST_BYTES = 300 << 10,      /* that a link moves while a request travels */
    AHEAD = 4,                      /* values of its size that are on their way besides */
    MEMORY_SHARE = 16,              /* of a device's memory: what takes less is not missed */
    STOCK_MEMORY_BYTES = 256 << 20, /* what a stock task says of a CPU, whatever it has */
    READERS_MAX = 64,               /* bits of a word */
    NO_MESSAGE = -1,
};

/* A value that a task receives in frame 0, once. */
struct message {
    struct edge from;
    const struct device *to;
    int next; /* of the same node; NO_MESSAGE: the last */
    int *readers;
    int readers_count, readers_capacity;
    bool now; /* it is read by who cannot wait for an anchor: by the client */
    double bytes;
    double read, last; /* when the first of its readers runs, and when the last has run */
    double latest;     /* when it has to be asked for */
    struct node *after;
};

struct partition_late {
    const struct graph *graph;
    const int *order; /* by place */
    int *place;       /* by node id, as what follows */
    const bool *needed;
    const struct partition_flow *flow;
    const struct cost_model *costs;
    struct shapes shapes;
    double *done;     /* in microseconds */
    bool *alive;      /* never dead */
    bool *ready;      /* made of nothing that takes time */
    bool *multiplied; /* a product of its task reads it */
    int *passes;      /* the message that it gives on as it is, NO_MESSAGE: none */
    int *first;       /* the first message of its outputs */
    uint64_t *seen;
    struct message *messages;
    int count, capacity;
};

/* --- times --- */

static bool is_const(const struct node *node)
{
    return !strcmp(node->op->name, "Const");
}

/* What gives its input as it is, or a view of it. */
static bool is_view(const struct node *node)
{
    return node->inputs_count > 0 &&
           (price_of(node->op->name) == 0 || !strcmp(node->op->name, "ReadVariableOp"));
}

static bool is_plain(const struct node *node)
{
    return node->op->flow == FLOW_NONE || node->op->flow == FLOW_PASS;
}

static void find_time(struct partition_late *late, const struct node *node)
{
    bool alive = is_plain(node), ready = !node->inputs_count || is_view(node);
    bool constant = node->inputs_count > 0 && !(node->op->flags & OP_STATEFUL);
    double start = 0;
    const struct node *from;
    for (int i = 0; (from = node_before(node, i)); i++) {
        alive &= late->alive[from->id];
        ready &= late->ready[from->id];
        constant &= i >= node->inputs_count || is_const(from);
        start = late->done[from->id] > start ? late->done[from->id] : start;
    }
    /* What may be dead may not run, and what is constant is folded. */
    bool costs = alive && !ready && !constant;
    late->alive[node->id] = alive;
    late->ready[node->id] = ready;
    late->done[node->id] =
        start + (costs ? place_cost_of(late->costs, node, &late->shapes, node->device) : 0);
}

static double start_of(const struct partition_late *late, const struct node *node)
{
    double start = 0;
    const struct node *from;
    for (int i = 0; (from = node_before(node, i)); i++)
        start = late->done[from->id] > start ? late->done[from->id] : start;
    return start;
}

/* --- messages --- */

static struct message *find_message(const struct partition_late *late, struct edge from,
                                    const struct device *to)
{
    for (int m = late->first[from.from->id]; m != NO_MESSAGE; m = late->messages[m].next)
        if (late->messages[m].from.output == from.output && late->messages[m].to == to)
            return &late->messages[m];
    return NULL;
}

static int add_message(struct partition_late *late, struct edge from, const struct device *to)
{
    struct message *found = find_message(late, from, to);
    if (found)
        return (int)(found - late->messages);
    late->messages =
        alloc_grow(late->messages, late->count, &late->capacity, sizeof(*late->messages));
    late->messages[late->count] = (struct message){
        .from = from,
        .to = to,
        .next = late->first[from.from->id],
    };
    late->first[from.from->id] = late->count;
    return late->count++;
}

static void add_reader(struct partition_late *late, int index, const struct node *node)
{
    struct message *message = &late->messages[index];
    if (!device_same_task(message->to, node->device)) { /* it is sent that the view is there */
        message->now = true;
        return;
    }
    message->readers = alloc_grow(message->readers, message->readers_count,
                                  &message->readers_capacity, sizeof(*message->readers));
    message->readers[message->readers_count++] = node->id;
}

/* The message that an input is, or is a view of. */
static int message_of(struct partition_late *late, const struct node *node, int input)
{
    struct edge edge = node->inputs[input];
    int passed = late->passes[edge.from->id];
    if (device_same_task(edge.from->device, node->device))
        return passed;
    if (passed != NO_MESSAGE) /* it is sent on */
        late->messages[passed].now = true;
    return add_message(late, edge, node->device);
}

/* A view of one message (and of constants), which nobody else makes wait. */
static bool passes_on(const struct partition_late *late, const struct node *node, int message)
{
    if (message == NO_MESSAGE || !is_view(node) || node->controls_count ||
        !device_same_task(late->messages[message].to, node->device))
        return false;
    for (int i = 1; i < node->inputs_count; i++)
        if (!is_const(node->inputs[i].from))
            return false;
    return true;
}

static void find_messages_of(struct partition_late *late, const struct node *node)
{
    int first = node->inputs_count ? message_of(late, node, 0) : NO_MESSAGE;
    if (passes_on(late, node, first)) {
        late->passes[node->id] = first;
        return;
    }
    for (int i = 0; i < node->inputs_count; i++) {
        int message = message_of(late, node, i);
        if (message != NO_MESSAGE)
            add_reader(late, message, node);
    }
    for (int i = 0; i < node->controls_count; i++)
        if (late->passes[node->controls[i]->id] != NO_MESSAGE)
            add_reader(late, late->passes[node->controls[i]->id], node);
}

/* The client may have what it fetches before it feeds the rest (partial.h). */
static void find_fetched(struct partition_late *late, const struct subgraph *whole,
                         const struct device *client)
{
    for (int i = 0; i < whole->fetches_count; i++) {
        struct message *message = find_message(late, whole->fetches[i], client);
        int passed = late->passes[whole->fetches[i].from->id];
        if (message)
            message->now = true;
        if (passed != NO_MESSAGE)
            late->messages[passed].now = true;
    }
    for (int i = 0; i < whole->targets_count; i++)
        if (late->passes[whole->targets[i]->id] != NO_MESSAGE)
            late->messages[late->passes[whole->targets[i]->id]].now = true;
}

static void find_reads(const struct partition_late *late, struct message *message)
{
    for (int i = 0; i < message->readers_count; i++) {
        const struct node *reader = graph_node(late->graph, message->readers[i]);
        double start = start_of(late, reader), done = late->done[reader->id];
        if (i == 0 || start < message->read)
            message->read = start;
        if (done > message->last)
            message->last = done;
    }
    if (message->now)
        message->read = 0;
}

/* --- how late --- */

struct point {
    double bytes, time;
};

static double bytes_on_link(const struct message *message)
{
    return message->bytes + REQUEST_BYTES;
}

/* On the line through two points. */
static double line_at(const struct point *a, const struct point *b, double bytes)
{
    return a->time + (b->time - a->time) * (bytes - a->bytes) / (b->bytes - a->bytes);
}

/* Keeps those of the points, which are in order, that are on their lower hull. */
static int lower_hull(struct point *points, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        while (kept > 1 && line_at(&points[kept - 2], &points[i], points[kept - 1].bytes) <=
                               points[kept - 1].time)
            kept--;
        points[kept++] = points[i];
    }
    return kept;
}

/* The messages are in the order in which they are read. */
static void limit(struct message *const *messages, int count)
{
    struct point *points = alloc_array((size_t)count + 1, sizeof(*points));
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += bytes_on_link(messages[i]);
        points[i + 1] = (struct point){bytes, messages[i]->read};
    }
    int hull = lower_hull(points, count + 1);
    bytes = 0;
    for (int i = 0; i < count; i++) {
        double ahead = bytes - AHEAD * bytes_on_link(messages[i]);
        int at = 1;
        while (points[at].bytes < ahead)
            at++;
        assert(at < hull);
        double latest = ahead > 0 ? line_at(&points[at - 1], &points[at], ahead) : 0;
        if (latest < messages[i]->latest)
            messages[i]->latest = latest;
        bytes += bytes_on_link(messages[i]);
    }
    free(points);
}

/* The link that is the slowest may be the task's own, or that of one that sends. */
static void limit_all(struct message *const *messages, int count)
{
    struct message **some = alloc_array((size_t)count, sizeof(*some));
    for (int i = 0; i < count; i++)
        messages[i]->latest = messages[i]->read;
    limit(messages, count);
    for (int i = 0; i < count; i++) {
        int found = 0;
        bool first = true;
        for (int k = 0; k < count; k++) {
            bool same = device_same_task(messages[k]->from.from->device,
                                         messages[i]->from.from->device);
            first &= !same || k >= i;
            if (same)
                some[found++] = messages[k];
        }
        if (first && found < count)
            limit(some, found);
    }
    free(some);
}

/* --- anchors --- */

/*
 * A node that something waits for is never fused with the next one, and what a product reads is
 * where such a run of nodes ends.
 */
static bool is_product(const struct node *node)
{
    const char *op = node->op->name;
    return strstr(op, "MatMul") || !strncmp(op, "Conv2D", 6) || !strncmp(op, "Conv3D", 6) ||
           !strncmp(op, "DepthwiseConv2d", 15);
}

static void note_multiplied(struct partition_late *late, const struct node *product)
{
    for (int i = 0; i < product->inputs_count; i++)
        if (device_same_task(product->inputs[i].from->device, product->device))
            late->multiplied[product->inputs[i].from->id] = true;
}

static bool may_be_anchor(const struct partition_late *late, const struct node *node,
                          const struct message *message)
{
    double done = late->done[node->id];
    return late->alive[node->id] && late->multiplied[node->id] && node->op != &prune_arg &&
           device_same_task(node->device, message->to) &&
           done <= message->latest * (1 + 1e-9) &&
           done > (message->after ? late->done[message->after->id] : 0);
}

/* Bit i for reader i.  Gives the places of the first and the last of them. */
static void mark_readers(struct partition_late *late, const struct message *message, int *first,
                         int *last)
{
    memset(late->seen, 0, (size_t)graph_count(late->graph) * sizeof(*late->seen));
    *first = *last = late->place[message->readers[0]];
    for (int i = 0; i < message->readers_count; i++) {
        int place = late->place[message->readers[i]];
        late->seen[message->readers[i]] |= UINT64_C(1) << i;
        *first = place < *first ? place : *first;
        *last = place > *last ? place : *last;
    }
}

/* The last node that comes before all that read the message, and is done in time. */
static void find_anchor(struct partition_late *late, struct message *message)
{
    int count = message->readers_count, first, at;
    if (message->latest <= 0 || count > READERS_MAX)
        return;
    uint64_t all = ~UINT64_C(0) >> (READERS_MAX - count);
    mark_readers(late, message, &first, &at);
    for (; at >= 0; at--) {
        const struct node *node = graph_node(late->graph, late->order[at]);
        const struct node *from;
        uint64_t seen = late->seen[node->id];
        for (int i = 0; seen && (from = node_before(node, i)); i++)
            late->seen[from->id] |= seen;
        if (at < first && seen == all && may_be_anchor(late, node, message))
            message->after = (struct node *)node;
    }
}

/* --- tasks --- */

static double asked_at(const struct partition_late *late, const struct message *message)
{
    return message->after ? late->done[message->after->id] : 0;
}

/* What of the messages is there at a time, at most. */
static double most_bytes(const struct partition_late *late, struct message *const *messages,
                         int count)
{
    double most = 0;
    for (int i = 0; i < count; i++) {
        double now = asked_at(late, messages[i]), bytes = 0;
        for (int k = 0; k < count; k++)
            if (asked_at(late, messages[k]) <= now && messages[k]->last >= now)
                bytes += messages[k]->bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int by_read(const void *a, const void *b)
{
    const struct message *x = *(struct message *const *)a, *y = *(struct message *const *)b;
    if (x->read != y->read)
        return x->read < y->read ? -1 : 1;
    return x < y ? -1 : x > y;
}

/*
 * Whether it matters how many of the values are there at a time.  To receive is work for the
 * cores that compute, too, and products that shared two cores with one receive after the other
 * took longer than after all of them: a tenth with two values AHEAD, nothing with four.
 */
static bool is_much(const struct device *device, double bytes)
{
    return device->memory_bytes != STOCK_MEMORY_BYTES &&
           bytes >= (double)device->memory_bytes / MEMORY_SHARE;
}

/* `messages` are all large ones that come to a task. */
static void find_anchors(struct partition_late *late, struct message **messages, int count)
{
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        const struct node *from = messages[i]->from.from;
        /* What is worked out elsewhere has the link for itself when it comes. */
        if (!late->ready[from->id] || late->flow->out[from->id])
            return;
        find_reads(late, messages[i]);
        bytes += messages[i]->bytes;
    }
    if (!is_much(messages[0]->to, bytes))
        return;
    qsort((void *)messages, (size_t)count, sizeof(*messages), by_read);
    limit_all(messages, count);
    for (int i = 0; i < count; i++)
        find_anchor(late, messages[i]);
    if (most_bytes(late, messages, count) <= 0.75 * bytes)
        return;
    for (int i = 0; i < count; i++) /* most are there at a time, whenever they come */
        messages[i]->after = NULL;
}

static void find_all_anchors(struct partition_late *late)
{
    struct message **messages = alloc_array((size_t)late->count, sizeof(*messages));
    bool *taken = alloc_array((size_t)late->count, sizeof(*taken));
    for (int i = 0; i < late->count; i++) {
        int count = 0;
        for (int k = i; k < late->count; k++) {
            struct message *message = &late->messages[k];
            if (taken[k] || !device_same_task(message->to, late->messages[i].to))
                continue;
            taken[k] = true;
            message->bytes =
                cost_bytes(message->from.from, message->from.output, &late->shapes);
            if (message->bytes >= LATE_BYTES_MIN)
                messages[count++] = message;
        }
        if (count > AHEAD)
            find_anchors(late, messages, count);
    }
    free(taken);
    free((void *)messages);
}

/* --- the whole --- */

static void find_messages(struct partition_late *late, const struct subgraph *whole,
                          const struct device *client)
{
    int count = graph_count(late->graph);
    for (int i = 0; i < count; i++) {
        late->place[late->order[i]] = i;
        late->first[i] = late->passes[i] = NO_MESSAGE;
    }
    for (int i = 0; i < count; i++)
        if (late->needed[late->order[i]])
            find_messages_of(late, graph_node(late->graph, late->order[i]));
    find_fetched(late, whole, client);
}

static void find_times(struct partition_late *late)
{
    int count = graph_count(late->graph);
    shapes_infer(&late->shapes, late->graph, late->order, count);
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(late->graph, late->order[i]);
        if (!late->needed[node->id])
            continue;
        find_time(late, node);
        if (is_product(node))
            note_multiplied(late, node);
    }
}

struct partition_late *partition_late_new(const struct subgraph *whole, const bool *needed,
                                          const struct partition_flow *flow,
                                          const struct device *client,
                                          const struct cost_model *costs, struct error *err)
{
    size_t count = (size_t)graph_count(whole->graph);
    int *order = graph_sorted(whole->graph, err);
    if (!order)
        return NULL;
    struct partition_late *late = alloc_bytes(sizeof(*late));
    *late = (struct partition_late){
        .graph = whole->graph,
        .order = order,
        .place = alloc_array(count, sizeof(int)),
        .needed = needed,
        .flow = flow,
        .costs = costs,
        .shapes = {.declared = true},
        .done = alloc_array(count, sizeof(double)),
        .alive = alloc_array(count, sizeof(bool)),
        .ready = alloc_array(count, sizeof(bool)),
        .multiplied = alloc_array(count, sizeof(bool)),
        .passes = alloc_array(count, sizeof(int)),
        .first = alloc_array(count, sizeof(int)),
        .seen = alloc_array(count, sizeof(uint64_t)),
    };
    find_messages(late, whole, client);
    if (late->count > AHEAD) {
        find_times(late);
        find_all_anchors(late);
    }
    return late;
}

void partition_late_free(struct partition_late *late)
{
    if (!late)
        return;
    for (int i = 0; i < late->count; i++)
        free(late->messages[i].readers);
    free(late->messages);
    shapes_release(&late->shapes);
    free((void *)late->order);
    free(late->place);
    free(late->done);
    free(late->alive);
    free(late->ready);
    free(late->multiplied);
    free(late->passes);
    free(late->first);
    free(late->seen);
    free(late);
}

struct node *partition_late_after(const struct partition_late *late, struct edge from,
                                  const struct device *to)
{
    const struct message *message = find_message(late, from, to);
    return message ? message->after : NULL;
}
