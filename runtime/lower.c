/*
 * lower.c - puts the bodies of called functions in place of the calls.
 *
 *   If, Case   -> Switch and Merge        lower_branches.c
 *   While      -> Enter ... Exit          lower_while.c
 *   calls      -> the body; those of other devices: lower_remote.c
 *
 * A worklist, no recursion: nodes of a body that are calls are lowered later.  What calls
 * itself stays a call, which a kernel runs.  The call becomes an IdentityN of its results, so
 * that its name still works as fetch, target and control; readers of its outputs read the
 * results.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/builder.h"
#include "runtime/internal.h"
#include "runtime/lower.h"
#include "runtime/op.h"
#include "runtime/resolve.h"

static bool lower_plain(struct lower *l, const struct lower_call *call, bool *done);
static bool lower_remote(struct lower *l, const struct lower_call *call, bool *done);

typedef bool lower_step(struct lower *l, const struct lower_call *call, bool *done);

static const struct {
    const char *op;
    lower_step *lower;
} ways[] = {
    {"PartitionedCall", lower_plain}, {"StatefulPartitionedCall", lower_plain},
    {"If", lower_branches},           {"StatelessIf", lower_branches},
    {"Case", lower_branches},         {"StatelessCase", lower_branches},
    {"While", lower_while},           {"StatelessWhile", lower_while},
    {"RemoteCall", lower_remote},
};

static lower_step *find_step(const struct op *op)
{
    if (function_library_callee(op))
        return lower_plain;
    for (int i = 0; i < ARRAY_LEN(ways); i++)
        if (!strcmp(ways[i].op, op->name))
            return ways[i].lower;
    return NULL;
}

void lower_push(struct lower *l, const struct lower_call *call)
{
    if (call->node->fault || !find_step(call->node->op))
        return;
    l->work = alloc_grow(l->work, l->work_count, &l->work_capacity, sizeof(*l->work));
    l->work[l->work_count++] = *call;
}

/* --- names --- */

const char *lower_path(struct lower *l, const struct node *call, const char *tag,
                       const char *name)
{
    struct arena *arena = graph_arena(l->graph);
    if (!call->name[0])
        return arena_text(arena, name);
    return tag ? arena_printf(arena, "%s/%s/%s", call->name, tag, name)
               : arena_printf(arena, "%s/%s", call->name, name);
}

const char *lower_name(struct lower *l, const struct node *call, const char *tag,
                       const char *name)
{
    const char *path = lower_path(l, call, tag, name);
    return l->view ? path : graph_unique_name(l->graph, path);
}

const char *lower_key(struct lower *l, const struct node *call, const char *tag,
                      const char *name)
{
    if (!l->view)
        return NULL;
    return arena_printf(graph_arena(l->graph), "%s\x1f%s\x1f%s",
                        call->state_key ? call->state_key : call->name, tag ? tag : "", name);
}

/* --- building blocks --- */

struct node *lower_add(struct lower *l, const struct lower_call *call, const char *name,
                       const char *op, const struct edge *inputs, int inputs_count,
                       const struct attr *attrs, int attrs_count, struct node *const *controls,
                       int controls_count)
{
    if (l->nodes_left-- <= 0)
        return fail_null(l->err, EXHAUSTED,
                         "node '%s': the calls of this run become more than %d nodes",
                         call->node->name, LIMIT_LOWERED_NODES);
    const struct node_def def = {.name = lower_name(l, call->node, NULL, name),
                                 .op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = inputs_count,
                                 .controls = controls,
                                 .controls_count = controls_count,
                                 .attrs = attrs,
                                 .attrs_count = attrs_count,
                                 .device = call->node->requested_device};
    if (!def.op)
        return fail_null(l->err, UNIMPLEMENTED, "lowering node '%s': there is no op %s",
                         call->node->name, op);
    struct node *node = graph_add(l->graph, &def, l->err);
    if (!node)
        error_prefix(l->err, "lowering node '%s' (%s): ", call->node->name,
                     call->node->op->name);
    return node;
}

void lower_note(struct lower *l, const struct lower_call *call, const struct edge *results,
                int count)
{
    struct lowered *lowered = arena_alloc(graph_arena(l->graph), sizeof(*lowered));
    *lowered = (struct lowered){.inputs = call->node->inputs,
                                .inputs_count = call->node->inputs_count,
                                .results = results,
                                .results_count = count,
                                .next = l->loops};
    l->loops = lowered;
}

bool lower_is_asked(const struct lower_call *call)
{
    return node_attr_bool(call->node, "_lower_using_switch_merge", false);
}

bool lower_ask(struct lower *l, const struct lower_call *call, struct edge value,
               struct edge *answer)
{
    const struct node *node = call->node;
    int dtype = dtype_base(value.from->output_types[value.output]);
    bool strict = lower_is_asked(call);
    if (strict && dtype != BOOL)
        return fail(l->err, INVALID, "node '%s' (%s): the condition is a %s, not a bool",
                    node->name, node->op->name, dtype_name(dtype));
    *answer = value;
    if (!strict)
        *answer =
            (struct edge){lower_add(l, call, "pred", "ToBool", &value, 1, NULL, 0, NULL, 0), 0};
    return answer->from;
}

const struct function_def *lower_find(struct lower *l, const struct lower_call *call,
                                      const char *name, bool *inline_it)
{
    const struct function_def *def = function_library_find(l->library, name);
    if (!def)
        return fail_null(l->err, NOT_FOUND, "node '%s' (%s): Function %s is not defined.",
                         call->node->name, call->node->op->name, name);
    int depth = call->chain ? call->chain->depth : 0;
    *inline_it = depth < LIMIT_FUNCTION_DEPTH;
    for (const struct lower_chain *up = call->chain; up && *inline_it; up = up->up)
        *inline_it = up->def != def;
    return def;
}

static void set_bypass(struct lower *l, const struct node *node, const struct edge *results,
                       int count, bool whole)
{
    int needed = graph_count(l->graph);
    if (needed > l->bypass_count) {
        size_t room = 2 * (size_t)needed, more = room - (size_t)l->bypass_count;
        l->bypass = alloc_resize(l->bypass, room * sizeof(*l->bypass));
        l->whole = alloc_resize(l->whole, room * sizeof(*l->whole));
        memset(l->bypass + l->bypass_count, 0, more * sizeof(*l->bypass));
        memset(l->whole + l->bypass_count, 0, more * sizeof(*l->whole));
        l->bypass_count = (int)room;
    }
    l->whole[node->id] = whole;
    l->bypass[node->id] =
        arena_copy(graph_arena(l->graph), results, (size_t)count * sizeof(*results));
}

bool lower_finish(struct lower *l, const struct lower_call *call, const struct edge *results,
                  int count, struct node *const *done, int done_count, bool direct)
{
    struct node *node = call->node;
    const char *name = node_shown_name(node);
    if (count < node->outputs_count)
        return fail(l->err, INTERNAL, "node '%s' (%s): Missing %d-th output from {{node %s}}",
                    name, node->op->name, count, name);
    if (count > node->outputs_count)
        return fail(l->err, INVALID,
                    "node '%s' (%s) has %d outputs, but its function returns %d", name,
                    node->op->name, node->outputs_count, count);
    for (int i = 0; i < count; i++) {
        enum dtype given = dtype_base(results[i].from->output_types[results[i].output]);
        if (given != dtype_base(node->output_types[i]))
            return fail(l->err, INTERNAL,
                        "node '%s' (%s): Output %d of type %s does not match declared output "
                        "type %s for node {{node %s}}",
                        name, node->op->name, i, dtype_name(given),
                        dtype_name(node->output_types[i]), name);
    }
    /* A call without results still waits for its own controls. */
    int most = node->controls_count + done_count + node->inputs_count;
    struct node **controls = alloc_array((size_t)most, sizeof(*controls));
    int controls_count = 0;
    for (int i = 0; i < node->controls_count; i++)
        controls[controls_count++] = node->controls[i];
    for (int i = 0; i < done_count; i++)
        controls[controls_count++] = done[i];
    int waits = 0;
    for (int i = 0; l->roots && !direct && i < node->inputs_count; i++)
        if (!lower_is_silent(node->inputs[i].from)) {
            controls[controls_count++] = node->inputs[i].from;
            waits++;
        }
    /* No target can stand in a branch or a loop: there the readers want the whole call. */
    bool as_whole = l->roots && call->in_flow && (count > 1 || waits > 1);
    if (count && (direct || (!done_count && !as_whole)))
        set_bypass(l, node, results, count, l->roots && !direct);
    bool ok = graph_become(l->graph, node, op_find(count ? "IdentityN" : "NoOp"), results,
                           count, controls, controls_count, l->err);
    free(controls);
    return ok;
}

/* --- a call of one function --- */

/*
 * Arguments wait for what the call waits for, and in a branch or a loop nodes without inputs
 * live and die with the call: they follow the entry.
 */
static bool make_entry(struct lower *l, const struct lower_call *call, struct edge *args,
                       int args_count, struct node **entry)
{
    const struct node *node = call->node;
    *entry = NULL;
    if (!node->controls_count && !(call->in_flow && args_count))
        return true;
    struct node **all =
        alloc_array((size_t)args_count + (size_t)node->controls_count, sizeof(*all));
    int count = 0;
    bool ok = true;
    for (int i = 0; ok && i < args_count; i++) {
        /* A reference stays one; only values pass an Identity. */
        if (dtype_is_ref(args[i].from->output_types[args[i].output]))
            continue;
        struct node *identity = lower_add(l, call, "input", "Identity", &args[i], 1, NULL, 0,
                                          node->controls, node->controls_count);
        ok = identity;
        if (ok) {
            args[i] = (struct edge){identity, 0};
            all[count++] = identity;
        }
    }
    for (int i = 0; i < node->controls_count; i++)
        all[count++] = node->controls[i];
    if (ok && count == 1)
        *entry = all[0];
    else if (ok)
        ok = (*entry = lower_add(l, call, "entry", "NoOp", NULL, 0, NULL, 0, all, count));
    free(all);
    return ok;
}

/* The inputs from `first` on are the arguments; `device`: for the body, or NULL. */
static bool lower_function_call(struct lower *l, const struct lower_call *call, int first,
                                const char *device, bool *done)
{
    const struct node *node = call->node;
    const struct attr *f = node_attr(node, "f");
    const struct attr_func by_name = {node->op->name, node->attrs, node->attrs_count};
    const struct attr_func *func = function_library_callee(node->op) ? &by_name : f->funcs;
    const struct function_def *def = lower_find(l, call, func->name, done);
    if (!def || !*done)
        return def;
    struct arena *arena = graph_arena(l->graph);
    int args_count = node->inputs_count - first;
    struct edge *args =
        arena_copy(arena, node->inputs + first, (size_t)args_count * sizeof(*args));
    struct lower_body body = {.func = func,
                              .def = def,
                              .args = args,
                              .args_count = args_count,
                              .device = device,
                              .in_flow = call->in_flow,
                              .all_effects =
                                  device || (func == &by_name && !lower_is_asked(call))};
    return make_entry(l, call, args, args_count, &body.entry) && lower_body(l, call, &body) &&
           lower_finish(l, call, body.results, body.results_count, body.effects,
                        body.effects_count, call->inlined && !body.effects_count);
}

static bool lower_plain(struct lower *l, const struct lower_call *call, bool *done)
{
    return lower_function_call(l, call, 0, NULL, done);
}

static bool lower_remote(struct lower *l, const struct lower_call *call, bool *done)
{
    const char *target;
    return lower_target(l, call, &target) &&
           (!target || lower_function_call(l, call, 1, target, done));
}

/* --- the whole --- */

static bool is_flow(const struct op *op)
{
    return op->flow == FLOW_SWITCH || op->flow == FLOW_ENTER;
}

/*
 * What an output is in the end.  A call whose result is its own output goes in circles: then
 * the edge stays, and the order of the graph tells of the cycle.
 */
static struct edge follow(struct lower *l, struct edge edge)
{
    struct edge end = edge;
    int steps = 0;
    while (end.from->id < l->bypass_count && l->bypass[end.from->id]) {
        end = l->bypass[end.from->id][end.output];
        if (steps++ > l->bypass_count)
            return edge;
    }
    if (steps)
        l->bypass[edge.from->id][edge.output] = end; /* the next has a shorter way */
    return end;
}

/* What reads a lowered call now reads what the call returns. */
static void redirect_readers(struct lower *l)
{
    for (int i = 0; i < graph_count(l->graph); i++) {
        struct node *node = graph_node(l->graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            struct edge edge = follow(l, node->inputs[k]);
            if (edge.from != node->inputs[k].from)
                graph_set_input(l->graph, node, k, edge);
        }
    }
}

/* Lowers what is on the worklist and what comes onto it. */
static bool work_off(struct lower *l)
{
    bool ok = true;
    while (ok && l->work_count) {
        struct lower_call call = l->work[--l->work_count];
        bool done = false;
        if (!call.node->fault) /* it may lack inputs */
            ok = find_step(call.node->op)(l, &call, &done);
    }
    return ok;
}

static void release(struct lower *l)
{
    free(l->work);
    free(l->bypass);
    free(l->whole);
    free(l->readers);
}

/* All calls in the graph, or only those of nodes that are wanted. */
static bool lower_all(struct lower *l, const bool *wanted)
{
    bool in_flow = false;
    int count = graph_count(l->graph);
    for (int i = 0; i < count; i++)
        in_flow |= is_flow(graph_node(l->graph, i)->op);
    for (int i = 0; i < count; i++)
        if (!wanted || wanted[i])
            lower_push(l, &(struct lower_call){graph_node(l->graph, i), NULL, in_flow, false});
    bool ok = work_off(l);
    if (ok && l->bypass) {
        lower_note_readers(l, NULL, 0);
        redirect_readers(l);
    }
    return ok;
}

bool lower_graph(struct graph *graph, struct function_library *library, const bool *wanted,
                 const struct lowered **loops, struct error *err)
{
    struct lower l = {.graph = graph,
                      .library = library,
                      .view = !graph_library(graph),
                      .nodes_left = LIMIT_LOWERED_NODES,
                      .err = err};
    bool ok = lower_all(&l, wanted);
    if (loops)
        *loops = l.loops;
    release(&l);
    return ok;
}

bool lower_subgraph(struct subgraph *subgraph, struct function_library *library,
                    const struct device *devices, int devices_count, struct error *err)
{
    struct lower l = {.graph = subgraph->graph,
                      .library = library,
                      .devices = devices,
                      .devices_count = devices_count,
                      .view = true,
                      .roots = true,
                      .nodes_left = LIMIT_LOWERED_NODES,
                      .err = err};
    bool ok = lower_all(&l, NULL);
    if (ok)
        subgraph->targets = lower_keep(&l, subgraph->fetches, subgraph->fetches_count,
                                       subgraph->targets, &subgraph->targets_count);
    release(&l);
    return ok;
}

static bool add_args(struct graph *graph, const struct function_def *def,
                     const struct attr_func *func, struct lower_function *out,
                     struct error *err)
{
    struct arena *arena = graph_arena(graph);
    const struct node_def call = {.name = func->name,
                                  .op = &def->op,
                                  .attrs = func->attrs,
                                  .attrs_count = func->attrs_count};
    struct node shape = {.name = func->name, .op = &def->op};
    if (!resolve_attrs(&shape, &call, true, false, arena, err))
        return false;
    if (shape.fault)
        return fail(err, shape.fault->code, "%s", shape.fault->text);
    out->args_count = resolve_types(&shape, arena);
    out->args = arena_array(arena, (size_t)out->args_count, sizeof(*out->args));
    struct builder b = {.graph = graph, .err = err};
    for (int i = 0; i < out->args_count; i++)
        out->args[i] = builder_add(&b, "Placeholder", "arg", NO_INPUTS,
                                   ATTRS(attr_type("dtype", dtype_base(shape.input_types[i]))));
    for (int i = 0; i < shape.attrs_count; i++)
        attr_release(&shape.attrs[i]);
    return builder_ok(&b);
}

bool lower_function(struct graph *graph, struct function_library *library,
                    const struct attr_func *func, struct lower_function *out, struct error *err)
{
    assert(graph_library(graph));
    *out = (struct lower_function){0};
    const struct function_def *def = function_library_find(library, func->name);
    if (!def)
        return fail(err, NOT_FOUND, "Function %s is not defined.", func->name);
    if (!add_args(graph, def, func, out, err))
        return false;
    struct lower l = {.graph = graph,
                      .library = library,
                      .roots = true,
                      .nodes_left = LIMIT_LOWERED_NODES,
                      .err = err};
    struct node caller = {.id = -1, .name = "", .op = &def->op, .requested_device = ""};
    const struct lower_call call = {.node = &caller};
    struct lower_body body = {
        .func = func, .def = def, .args = out->args, .args_count = out->args_count};
    bool ok = lower_body(&l, &call, &body) && work_off(&l);
    if (ok && l.bypass) {
        lower_note_readers(&l, body.results, body.results_count);
        redirect_readers(&l);
    }
    for (int i = 0; ok && i < body.results_count; i++)
        body.results[i] = follow(&l, body.results[i]);
    out->results = body.results;
    out->results_count = body.results_count;
    out->effects_count = body.effects_count;
    if (ok)
        out->effects =
            lower_keep(&l, body.results, body.results_count, body.effects, &out->effects_count);
    release(&l);
    return ok;
}
