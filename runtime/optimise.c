/*
 * optimise.c - the passes over a pruned graph, in order.
 *
 * A pass turns edges to other nodes and adds nodes (rewrite.h); what is needed no more is
 * simply not reached from fetches and targets any longer.  Passes never touch the session's
 * graph.
 *
 * DESIGN.  In a graph with control flow a node may run many times (between Enter and Exit), or
 * be dead (below a Switch).  Both follow from its inputs, so a pass that gives a node's
 * readers another node with the same inputs, or one that depends on all that it did, changes
 * nothing.  Who puts a constant in place of a node must leave alone what optimise_inner()
 * names, and nobody folds, merges or fuses the control flow ops themselves.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"

static bool run_identity(struct pass *pass, struct error *err)
{
    (void)err;
    optimise_identity(pass->subgraph);
    return true;
}

static bool run_shape(struct pass *pass, struct error *err)
{
    if (!optimise_lift(pass->subgraph, err))
        return false;
    if (pass->by_shapes)
        optimise_shape(pass->subgraph);
    return true;
}

static bool run_fold(struct pass *pass, struct error *err)
{
    (void)err;
    optimise_fold(pass->subgraph, pass->context);
    return true;
}

static bool run_merge(struct pass *pass, struct error *err)
{
    (void)err;
    optimise_merge(pass->subgraph);
    return true;
}

static bool run_fuse(struct pass *pass, struct error *err)
{
    return optimise_fuse(pass->subgraph, err);
}

static const struct {
    const char *name;
    const char *summary;
    bool (*run)(struct pass *pass, struct error *err);
} passes[OPTIMISE_PASSES] = {
    [OPTIMISE_IDENTITY] = {"identity", "readers of what passes its input on read the input",
                           run_identity},
    [OPTIMISE_SHAPE] = {"shape",
                        "shapes that are known become constants, others are asked early",
                        run_shape},
    [OPTIMISE_LAYOUT] = {"layout", "what is channels first is computed channels last",
                         optimise_layout},
    [OPTIMISE_FOLD] = {"fold", "what depends on constants alone is computed once", run_fold},
    [OPTIMISE_ARITHMETIC] = {"arithmetic", "x * 1, Neg of Neg, Transpose of Transpose ... go",
                             optimise_arithmetic},
    [OPTIMISE_MERGE] = {"merge", "equal nodes are computed once", run_merge},
    [OPTIMISE_LOOKUP] = {"lookup",
                         "sequences of looked-up rows multiply each row of the table once",
                         optimise_lookup},
    [OPTIMISE_FUSE] = {"fuse", "products, bias and activation become one", run_fuse},
    [OPTIMISE_WINOGRAD] = {"winograd", "small convolutions take fewer multiplications",
                           optimise_winograd},
    [OPTIMISE_NORM] = {"norm", "batch normalisation, what is added and activation become one",
                       optimise_norm},
    [OPTIMISE_SOFTMAX] = {"softmax", "losses of a softmax and their gradients become one",
                          optimise_softmax},
    [OPTIMISE_CHAIN] = {"chain", "elementwise chains become one pass over the elements",
                        optimise_chain},
    [OPTIMISE_UPDATE] = {"update", "updates of many small variables become one call",
                         optimise_update},
    [OPTIMISE_RECOMPUTE] = {"recompute",
                            "what is cheap is not kept for gradients if memory is "
                            "short",
                            optimise_recompute},
};

const char *optimise_name(int pass)
{
    assert(pass >= 0 && pass < OPTIMISE_PASSES);
    return passes[pass].name;
}

const char *optimise_summary(int pass)
{
    assert(pass >= 0 && pass < OPTIMISE_PASSES);
    return passes[pass].summary;
}

static int find(const char *name, size_t size)
{
    for (int i = 0; i < OPTIMISE_PASSES; i++)
        if (strlen(passes[i].name) == size && !memcmp(passes[i].name, name, size))
            return i;
    return -1;
}

int optimise_find(const char *name)
{
    return find(name, strlen(name));
}

bool optimise_parse(const char *names, uint32_t *set)
{
    while (*names) {
        size_t size = strcspn(names, ",");
        int pass = find(names, size);
        if (pass < 0)
            return false;
        *set |= OPTIMISE_BIT(pass);
        names += size + (names[size] == ',');
    }
    return true;
}

bool optimise_graph_watched(struct subgraph *subgraph, struct plan_context *context,
                            bool by_shapes, const struct optimise_watcher *watcher,
                            struct error *err)
{
    struct pass pass = {subgraph, context, by_shapes};
    if (watcher)
        watcher->saw(watcher->arg, -1, subgraph);
    for (int i = 0; i < OPTIMISE_PASSES; i++) {
        if (context->passes_off & OPTIMISE_BIT(i))
            continue;
        if (!passes[i].run(&pass, err))
            return error_prefix(err, "%s: ", passes[i].name);
        if (watcher)
            watcher->saw(watcher->arg, i, subgraph);
    }
    return true;
}

bool optimise_graph(struct subgraph *subgraph, struct plan_context *context, bool by_shapes,
                    struct error *err)
{
    return optimise_graph_watched(subgraph, context, by_shapes, NULL, err);
}
