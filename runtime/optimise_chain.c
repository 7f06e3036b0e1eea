/*
 * optimise_chain.c - elementwise ops that feed each other become one node, _Elementwise, whose
 * kernel runs them all over tiles that stay in the cache.
 *
 * A node joins the one that reads it when nobody else looks at it.  So what joins is a tree (or
 * a net) with one output, and has no way back into itself.  Its inputs are those of its
 * parts, so it is dead, and runs as often, as its last part did.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* As many parts as a program of the kernel may have. */
enum { PARTS_MAX = 24 };

struct chainer {
    struct fuser f;
    int *order;
    int *last; /* by node id: the id of the part that gives the output of its chain, or -1 */
    int *size; /* parts, by the id of that one */
};

static bool is_one_of(const struct node *node, const char *const *ops)
{
    for (; *ops; ops++)
        if (fuse_is(node, *ops))
            return true;
    return false;
}

/* A node of floats with one output; no references, whose time matters. */
static bool takes_floats(const struct node *node)
{
    if (node->fault || node->outputs_count != 1)
        return false;
    for (int i = 0; i < node->inputs_count; i++)
        if (node->inputs[i].from->output_types[node->inputs[i].output] != F32)
            return false;
    return true;
}

/*
 * The comparison behind a Cast to float, if nobody else reads it: in a chain it gives 0 and 1.
 * NULL if it is not so.
 */
static struct node *compared(const struct chainer *c, const struct node *cast)
{
    static const char *const ops[] = {"Greater", "GreaterEqual", "Less", "LessEqual", NULL};
    if (!fuse_is(cast, "Cast") || cast->fault || cast->output_types[0] != F32)
        return NULL;
    struct node *from = cast->inputs[0].from;
    if (from->id >= c->f.count || !is_one_of(from, ops) || !takes_floats(from) ||
        c->f.watched[from->id] || fuse_uses(&c->f, from) != 1 || !fuse_same_wishes(from, cast))
        return NULL;
    return from;
}

static bool can_join(const struct chainer *c, const struct node *node)
{
    static const char *const ops[] = {
        "Add",        "AddV2",   "Sub",     "Mul",      "Div",
        "RealDiv",    "Maximum", "Minimum", "Neg",      "Abs",
        "Square",     "Sqrt",    "Rsqrt",   "Relu",     "Exp",
        "Log",        "Tanh",    "Sigmoid", "ReluGrad", "SquaredDifference",
        "Reciprocal", NULL,
    };
    return (is_one_of(node, ops) && takes_floats(node) && node->output_types[0] == F32) ||
           compared(c, node);
}

/* Readers come before what they read: whoever has one chain among its readers joins it. */
static void find_chains(struct chainer *c)
{
    const struct fuser *f = &c->f;
    for (int i = 0; i < f->count; i++)
        c->last[i] = -1;
    for (int i = f->count - 1; i >= 0; i--) {
        const struct node *node = graph_node(f->graph, c->order[i]);
        if (c->last[node->id] >= 0 || !f->needed[node->id] || !can_join(c, node))
            continue;
        struct node *before = compared(c, node); /* comes along */
        int last = f->watched[node->id] ? -1 : c->last[fuse_use_at(f, node, 0)->node->id];
        for (int u = 1; last >= 0 && u < fuse_uses(f, node); u++)
            if (c->last[fuse_use_at(f, node, u)->node->id] != last)
                last = -1;
        if (last < 0 || c->size[last] + (before != NULL) >= PARTS_MAX ||
            !fuse_same_wishes(node, graph_node(f->graph, last)))
            last = node->id;
        c->last[node->id] = last;
        c->size[last]++;
        if (before) {
            c->last[before->id] = last;
            c->size[last]++;
        }
    }
}

/* The parts of one chain, and the program that is made of them. */
struct chain {
    struct node *parts[PARTS_MAX];
    int count;
    struct edge inputs[2 * PARTS_MAX];
    int inputs_count;
    int64_t operands[2 * PARTS_MAX];
};

/* The register of an operand: inputs as they come, then the parts. */
static int64_t operand_of(struct chain *chain, struct edge edge)
{
    for (int p = 0; p < chain->count; p++)
        if (chain->parts[p] == edge.from)
            return -1 - p; /* turned when the inputs have been counted */
    for (int i = 0; i < chain->inputs_count; i++)
        if (chain->inputs[i].from == edge.from && chain->inputs[i].output == edge.output)
            return i;
    chain->inputs[chain->inputs_count] = edge;
    return chain->inputs_count++;
}

static void write_program(struct chain *chain)
{
    enum { NONE = INT32_MAX };
    for (int p = 0; p < chain->count; p++) {
        const struct node *part = chain->parts[p];
        chain->operands[2 * p] = operand_of(chain, part->inputs[0]);
        chain->operands[2 * p + 1] =
            part->inputs_count > 1 ? operand_of(chain, part->inputs[1]) : NONE;
    }
    for (int i = 0; i < 2 * chain->count; i++) {
        int64_t *operand = &chain->operands[i];
        if (*operand < 0)
            *operand = chain->inputs_count + (-1 - *operand);
        else if (*operand == NONE)
            *operand = -1;
    }
}

static void add_chain(struct chainer *c, struct chain *chain)
{
    struct attr_bytes names[PARTS_MAX];
    struct node *last = chain->parts[chain->count - 1];
    write_program(chain);
    for (int p = 0; p < chain->count; p++) {
        const char *name = chain->parts[p]->op->name;
        names[p] = (struct attr_bytes){name, strlen(name)};
    }
    const struct attr attrs[] = {
        attr_type("T", F32),
        attr_int("N", chain->inputs_count),
        {.name = "ops",
         .kind = ATTR_STRING,
         .is_list = true,
         .count = chain->count,
         .strings = names},
        attr_int_list("operands", chain->operands, 2 * chain->count),
    };
    const struct node_def def = {.op = op_find("_Elementwise"),
                                 .inputs = chain->inputs,
                                 .inputs_count = chain->inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs)};
    struct node *fused = fuse_add(&c->f, &def, last, chain->parts, chain->count);
    if (!fused)
        return;
    for (int p = 0; p < chain->count; p++)
        fuse_controls(&c->f, fused, chain->parts[p]);
    fuse_replace(&c->f, last, fused, 0);
}

/* Chains in the order of their last parts, so that each sees those before it as one node. */
static void add_chains(struct chainer *c)
{
    struct chain **open = alloc_array((size_t)c->f.count, sizeof(struct chain *));
    for (int i = 0; i < c->f.count && !c->f.failed; i++) {
        struct node *node = graph_node(c->f.graph, c->order[i]);
        int last = c->last[node->id];
        if (last < 0 || c->size[last] < 2)
            continue;
        if (!open[last])
            open[last] = alloc_bytes(sizeof(struct chain));
        struct chain *chain = open[last];
        chain->parts[chain->count++] = node;
        if (node->id == last) {
            add_chain(c, chain);
            free(chain);
            open[last] = NULL;
        }
    }
    for (int i = 0; i < c->f.count; i++)
        free(open[i]);
    free(open);
}

bool optimise_chain(struct pass *pass, struct error *err)
{
    struct chainer c = {.order = graph_sorted(pass->subgraph->graph, err)};
    if (!c.order)
        return true; /* plan_new() will say what is wrong */
    fuse_init(&c.f, pass->subgraph, err);
    c.last = alloc_array((size_t)c.f.count, sizeof(int));
    c.size = alloc_array((size_t)c.f.count, sizeof(int));
    find_chains(&c);
    add_chains(&c);
    free(c.order);
    free(c.last);
    free(c.size);
    return fuse_finish(&c.f);
}
