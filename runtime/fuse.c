/* fuse.c - who uses what, and turning them to another node. */

#include "runtime/fuse.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* --- tables --- */

static void count_uses(struct fuser *f)
{
    f->use_first = alloc_array((size_t)f->count + 2, sizeof(*f->use_first));
    for (int id = 0; id < f->count; id++) {
        const struct node *node = graph_node(f->graph, id);
        for (int i = 0; f->needed[id] && i < node->inputs_count; i++)
            f->use_first[node->inputs[i].from->id + 2]++;
    }
    for (int id = 2; id < f->count + 2; id++)
        f->use_first[id] += f->use_first[id - 1];
    f->uses = alloc_array((size_t)f->use_first[f->count + 1] + 1, sizeof(*f->uses));
    for (int id = 0; id < f->count; id++) {
        struct node *node = graph_node(f->graph, id);
        for (int i = 0; f->needed[id] && i < node->inputs_count; i++) {
            struct edge edge = node->inputs[i];
            f->uses[f->use_first[edge.from->id + 1]++] =
                (struct fuse_use){node, i, edge.output};
        }
    }
}

void fuse_init(struct fuser *f, struct subgraph *subgraph, struct error *err)
{
    *f = (struct fuser){.subgraph = subgraph, .graph = subgraph->graph, .err = err};
    f->count = graph_count(f->graph);
    f->needed = prune_needed(subgraph);
    f->watched = alloc_array((size_t)f->count + 1, sizeof(*f->watched));
    count_uses(f);
    for (int i = 0; i < subgraph->fetches_count; i++)
        f->watched[subgraph->fetches[i].from->id] = true;
    for (int i = 0; i < subgraph->targets_count; i++)
        f->watched[subgraph->targets[i]->id] = true;
    for (int id = 0; id < f->count; id++) {
        const struct node *node = graph_node(f->graph, id);
        for (int i = 0; f->needed[id] && i < node->controls_count; i++)
            f->watched[node->controls[i]->id] = true;
    }
}

bool fuse_has(const struct subgraph *subgraph, const char *const *ops)
{
    enum { OPS_MAX = 8 };
    const struct op *wanted[OPS_MAX];
    int count = 0;
    for (; ops[count]; count++) {
        assert(count < OPS_MAX);
        wanted[count] = op_find(ops[count]);
    }
    for (int i = 0; i < graph_count(subgraph->graph); i++)
        for (int k = 0; k < count; k++)
            if (graph_node(subgraph->graph, i)->op == wanted[k])
                return true;
    return false;
}

bool fuse_is(const struct node *node, const char *op)
{
    return !node->fault && strcmp(node->op->name, op) == 0;
}

bool fuse_same_wishes(const struct node *a, const struct node *b)
{
    return strcmp(a->requested_device, b->requested_device) == 0;
}

int fuse_uses(const struct fuser *f, const struct node *node)
{
    return f->use_first[node->id + 1] - f->use_first[node->id];
}

const struct fuse_use *fuse_use_at(const struct fuser *f, const struct node *node, int i)
{
    return &f->uses[f->use_first[node->id] + i];
}

struct node *fuse_only_user(const struct fuser *f, const struct node *node, const char *op)
{
    if (f->watched[node->id] || fuse_uses(f, node) != 1)
        return NULL;
    const struct fuse_use *use = fuse_use_at(f, node, 0);
    return use->index == 0 && fuse_is(use->node, op) ? use->node : NULL;
}

/* --- adding --- */

int fuse_copy_attrs(const struct node *node, const char *op, struct attr *attrs, int max)
{
    const struct op_signature *signature = op_signature(op_find(op));
    int count = 0;
    for (int i = 0; i < node->attrs_count && count < max; i++) {
        if (op_signature_attr(signature, node->attrs[i].name))
            attrs[count++] = node->attrs[i];
    }
    return count;
}

struct node *fuse_add(struct fuser *f, const struct node_def *def, const struct node *like,
                      struct node *const *stands_for, int stands_for_count)
{
    struct node_def whole = *def;
    const struct node *last = stands_for[stands_for_count - 1];
    struct attr *attrs = alloc_array((size_t)def->attrs_count + 1, sizeof(*attrs));
    struct attr_bytes *names = alloc_array((size_t)stands_for_count, sizeof(*names));
    for (int i = 0; i < stands_for_count; i++)
        names[i] = (struct attr_bytes){stands_for[i]->name, strlen(stands_for[i]->name)};
    memcpy(attrs, def->attrs, (size_t)def->attrs_count * sizeof(*attrs));
    attrs[whole.attrs_count++] = (struct attr){.name = OPTIMISE_STANDS_FOR,
                                               .kind = ATTR_STRING,
                                               .is_list = true,
                                               .count = stands_for_count,
                                               .strings = names};
    whole.name = last->name;
    whole.device = last->requested_device;
    whole.attrs = attrs;
    struct node *node = graph_add(f->graph, &whole, f->err);
    free(attrs);
    free(names);
    if (!node) {
        f->failed = true;
        return NULL;
    }
    node->shown_name = last->shown_name;
    for (int type = 0; type < DEVICE_TYPES; type++) {
        if (kernel_exists(like, (enum device_type)type) &&
            !kernel_exists(node, (enum device_type)type)) {
            graph_truncate(f->graph, node->id);
            return NULL;
        }
    }
    return node;
}

void fuse_controls(struct fuser *f, struct node *node, const struct node *from)
{
    for (int i = 0; i < from->controls_count; i++)
        graph_add_control(f->graph, node, from->controls[i]);
}

/* --- replacing --- */

void fuse_waiters(struct fuser *f, const struct node *old, struct node *now, struct node *also)
{
    if (!f->moved)
        f->moved = alloc_array((size_t)f->count, sizeof(*f->moved));
    f->moved[old->id][0] = now;
    f->moved[old->id][1] = also;
}

void fuse_output(struct fuser *f, struct node *old, int from, struct node *now, int to)
{
    struct edge edge = {now, to};
    for (int i = 0; i < fuse_uses(f, old); i++) {
        const struct fuse_use *use = fuse_use_at(f, old, i);
        if (use->output == from)
            graph_set_input(f->graph, use->node, use->index, edge);
    }
    for (int i = 0; i < f->subgraph->fetches_count; i++) {
        struct edge *fetch = &f->subgraph->fetches[i];
        if (fetch->from == old && fetch->output == from)
            *fetch = edge;
    }
}

void fuse_replace(struct fuser *f, struct node *old, struct node *now, int output)
{
    fuse_output(f, old, 0, now, output);
    for (int i = 0; i < f->subgraph->targets_count; i++) {
        if (f->subgraph->targets[i] == old)
            f->subgraph->targets[i] = now;
    }
    if (f->watched[old->id])
        fuse_waiters(f, old, now, NULL);
}

/* --- the end --- */

static struct node *const *moved_to(const struct fuser *f, const struct node *node)
{
    return node->id < f->count && f->moved[node->id][0] ? f->moved[node->id] : NULL;
}

static void turn_controls(struct fuser *f, struct node *node)
{
    int count = node->controls_count, more = 0;
    for (int i = 0; i < count; i++)
        more += moved_to(f, node->controls[i]) != NULL;
    if (!more)
        return;
    struct node **controls = alloc_array((size_t)(count + more), sizeof(*controls));
    int kept = 0;
    for (int i = 0; i < count; i++) {
        struct node *const *to = moved_to(f, node->controls[i]);
        struct node *const pair[] = {to ? to[0] : node->controls[i], to ? to[1] : NULL};
        for (int k = 0; k < 2; k++)
            if (pair[k] && !(kept && controls[kept - 1] == pair[k]))
                controls[kept++] = pair[k];
    }
    struct edge *inputs = alloc_array((size_t)node->inputs_count + 1, sizeof(*inputs));
    memcpy(inputs, node->inputs, (size_t)node->inputs_count * sizeof(*inputs));
    graph_set_edges(f->graph, node, inputs, node->inputs_count, controls, kept);
    free(inputs);
    free(controls);
}

bool fuse_finish(struct fuser *f)
{
    for (int id = 0; f->moved && id < graph_count(f->graph); id++) {
        if (id >= f->count || f->needed[id])
            turn_controls(f, graph_node(f->graph, id));
    }
    free(f->needed);
    free(f->watched);
    free(f->use_first);
    free(f->uses);
    free(f->moved);
    return !f->failed;
}
