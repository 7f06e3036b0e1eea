/*
 * plan.c - from a placed part to a flat list of kernel calls.
 *
 * Values are numbered in the order: constants, feeds, outputs of steps, copies of references
 * that are read as values.  Nodes that do nothing when run (NoOp, constants, feeds) get no
 * step; what they order is in the order of the others.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* What is only needed while a plan is made. */
struct maker {
    struct plan *plan;
    const struct graph *graph;
    bool *needed;     /* by node id */
    int *first_value; /* by node id: of its outputs, -1: has none yet */
    int inputs_count; /* used of plan->inputs */
    enum device_type device;
    bool flows; /* has control flow, or kernels that wait */
};

static bool is_op(const struct node *node, const char *name)
{
    return !strcmp(node->op->name, name);
}

/* --- values --- */

/* A constant must be what it says; TensorFlow checks that when the node is to run. */
const struct tensor *plan_constant(const struct node *node, struct error *err)
{
    const struct tensor *tensor = node_attr_tensor(node, "value");
    if (!tensor || node->outputs_count != 1)
        return fail_null(err, INVALID, "node '%s' (Const) has no value", node->name);
    if (tensor->dtype != dtype_base(node->output_types[0]))
        return fail_null(err, INVALID, "node '%s' (Const): dtype is %s, but the value is %s",
                         node->name, dtype_name(node->output_types[0]),
                         dtype_name(tensor->dtype));
    return tensor;
}

static bool add_constant(struct maker *maker, const struct node *node, struct error *err)
{
    struct plan *plan = maker->plan;
    const struct tensor *tensor = plan_constant(node, err);
    if (!tensor)
        return false;
    maker->first_value[node->id] = plan->values_count;
    plan->constants[plan->constants_count++] =
        (struct plan_constant){plan->values_count++, tensor};
    return true;
}

static bool makes_step(const struct node *node)
{
    return node->op != &prune_arg && !is_op(node, "Const") && !is_op(node, "NoOp");
}

static const char must_feed[] = "You must feed a value for placeholder tensor '";

bool plan_lacks_feed(const struct error *err)
{
    return err->code == INVALID && strstr(err->text, must_feed);
}

bool plan_check_runnable(const struct node *node, struct error *err)
{
    if (node->fault)
        return fail(err, node->fault->code, "%s", node->fault->text);
    if (is_op(node, "Placeholder") || is_op(node, "PlaceholderV2")) {
        const struct shape *shape = node_attr_shape(node, "shape");
        char text[SHAPE_TEXT_BYTES];
        bool shaped = shape && shape->rank > 0;
        return fail(err, INVALID, "%s%s' with dtype %s%s%s", must_feed, node_shown_name(node),
                    dtype_name(node->output_types[0]), shaped ? " and shape " : "",
                    shaped ? shape_text(shape, text, sizeof(text)) : "");
    }
    return true;
}

/* Constants and feeds get their numbers; counts what the steps will need. */
static bool number_sources(struct maker *maker, int *steps, int *inputs, int *outputs,
                           struct error *err)
{
    struct plan *plan = maker->plan;
    int constants = 0;
    for (int i = 0; i < graph_count(maker->graph); i++) {
        const struct node *node = graph_node(maker->graph, i);
        maker->first_value[i] = -1;
        if (!maker->needed[i])
            continue;
        if (!plan_check_runnable(node, err))
            return false;
        maker->flows |= node->op->flow != FLOW_NONE && node->op->flow != FLOW_TRIGGER;
        constants += is_op(node, "Const");
        if (makes_step(node)) {
            ++*steps;
            *inputs += node->inputs_count;
            *outputs += node->outputs_count;
        }
    }
    plan->constants = alloc_array((size_t)constants, sizeof(*plan->constants));
    for (int i = 0; i < graph_count(maker->graph); i++) {
        const struct node *node = graph_node(maker->graph, i);
        if (maker->needed[i] && is_op(node, "Const") && !add_constant(maker, node, err))
            return false;
    }
    plan->feeds_count = plan->subgraph->feeds_count;
    plan->feeds = alloc_array((size_t)plan->feeds_count, sizeof(*plan->feeds));
    for (int i = 0; i < plan->feeds_count; i++) {
        maker->first_value[plan->subgraph->feeds[i]->id] = plan->values_count;
        plan->feeds[i] = plan->values_count++;
    }
    plan->owned_first = plan->values_count;
    return true;
}

/* --- steps --- */

void plan_context_init(struct plan_context *context, struct resources *resources, int threads,
                       int64_t memory_bytes_max)
{
    *context = (struct plan_context){.resources = resources,
                                     .stateful = map_new(),
                                     .threads = threads,
                                     .memory_bytes_max = memory_bytes_max};
    pthread_mutex_init(&context->lock, NULL);
    workspace_pool_init(&context->workspaces);
}

void plan_context_release(struct plan_context *context)
{
    for (int i = 0; i < map_count(context->stateful); i++) {
        struct stateful *stateful = map_value(context->stateful, i);
        if (stateful->state && stateful->kernel->release)
            stateful->kernel->release(stateful->state);
        free(stateful);
    }
    map_free(context->stateful);
    pthread_mutex_destroy(&context->lock);
    workspace_pool_release(&context->workspaces);
}

/* One per session and node, prepared when first met. */
static struct stateful *find_stateful(struct plan_context *context, const struct node *node,
                                      const struct kernel *kernel, struct error *err)
{
    pthread_mutex_lock(&context->lock);
    const char *key = node->state_key ? node->state_key : node->name;
    struct stateful *stateful = map_find(context->stateful, key);
    if (!stateful) {
        void *state = NULL;
        if (!kernel->prepare || kernel->prepare(node, &state, err)) {
            stateful = alloc_bytes(sizeof(*stateful));
            *stateful = (struct stateful){kernel, state};
            map_set(context->stateful, key, stateful);
        }
    }
    pthread_mutex_unlock(&context->lock);
    return stateful;
}

bool plan_init_step(struct plan *plan, struct plan_step *step, const struct node *node,
                    enum device_type device, struct error *err)
{
    const struct kernel *kernel = kernel_find(node, device, err);
    if (!kernel)
        return false;
    step->node = node;
    step->kernel = kernel;
    step->run = kernel->run;
    if (node->op->flags & OP_STATEFUL) {
        step->stateful = find_stateful(plan->context, node, kernel, err);
        if (!step->stateful)
            return error_prefix(err, "node '%s' (%s): ", node_shown_name(node), node->op->name);
    }
    step->in_count = node->inputs_count;
    for (int i = 0; i < node->inputs_count; i++) {
        const struct edge *edge = &node->inputs[i];
        if (dtype_is_ref(edge->from->output_types[edge->output]))
            step->flags |= STEP_HAS_REFS;
    }
    return true;
}

static bool add_step(struct maker *maker, const struct node *node, struct error *err)
{
    struct plan *plan = maker->plan;
    struct plan_step *step = &plan->steps[plan->steps_count];
    if (!plan_init_step(plan, step, node, maker->device, err))
        return false;
    maker->flows |= !step->kernel->run;
    step->in_first = maker->inputs_count;
    for (int i = 0; i < node->inputs_count; i++) {
        const struct edge *edge = &node->inputs[i];
        int value = maker->first_value[edge->from->id] + edge->output;
        assert(maker->first_value[edge->from->id] >= 0);
        plan->inputs[maker->inputs_count] = plan->sources[maker->inputs_count] = value;
        maker->inputs_count++;
    }
    step->out_first = plan->values_count;
    maker->first_value[node->id] = plan->values_count;
    for (int i = 0; i < node->outputs_count; i++) {
        plan->defined_by[plan->values_count] = plan->steps_count;
        plan->types_of_value[plan->values_count++] = &node->output_types[i];
    }
    plan->steps_count++;
    return true;
}

/* A reference that a step reads as a value is read through a copy of its header. */
static void add_reads_of_refs(struct plan *plan)
{
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        for (int i = 0; (step->flags & STEP_HAS_REFS) && i < step->in_count; i++) {
            const struct edge *edge = &step->node->inputs[i];
            if (dtype_is_ref(edge->from->output_types[edge->output]) &&
                !dtype_is_ref(step->node->input_types[i])) {
                plan->defined_by[plan->values_count] = s;
                plan->types_of_value[plan->values_count] = &step->node->input_types[i];
                plan->inputs[step->in_first + i] = plan->values_count++;
            }
        }
    }
}

static void add_fetches(struct maker *maker)
{
    struct plan *plan = maker->plan;
    plan->fetches_count = plan->subgraph->fetches_count;
    plan->fetches = alloc_array((size_t)plan->fetches_count, sizeof(*plan->fetches));
    for (int i = plan->fetches_count - 1; i >= 0; i--) {
        const struct edge *edge = &plan->subgraph->fetches[i];
        int value = maker->first_value[edge->from->id] + edge->output;
        plan->fetches[i] = (struct plan_fetch){
            .value = value,
            .node = edge->from,
            .is_ref = dtype_is_ref(edge->from->output_types[edge->output]),
            .movable = value >= plan->owned_first && !plan->fetched[value],
        };
        plan->fetched[value] = true;
    }
}

/* --- lifetimes --- */

/* Each value made by a step is given back after the last step that reads it. */
static void find_releases(struct plan *plan)
{
    int count = plan->values_count;
    for (int v = plan->owned_first; v < count; v++)
        plan->last_use[v] = plan->defined_by[v];
    for (int s = 0; s < plan->steps_count; s++)
        for (int i = 0; i < plan->steps[s].in_count; i++)
            plan->last_use[plan->inputs[plan->steps[s].in_first + i]] = s;

    int total = 0;
    for (int v = plan->owned_first; v < count; v++) {
        if (plan->fetched[v])
            continue;
        plan->steps[plan->last_use[v]].release_count++;
        total++;
    }
    plan->releases = alloc_array((size_t)total, sizeof(int));
    int at = 0;
    for (int s = 0; s < plan->steps_count; s++) {
        plan->steps[s].release_first = at;
        at += plan->steps[s].release_count;
        plan->steps[s].release_count = 0;
    }
    for (int v = plan->owned_first; v < count; v++) {
        if (plan->fetched[v])
            continue;
        struct plan_step *step = &plan->steps[plan->last_use[v]];
        plan->releases[step->release_first + step->release_count++] = v;
    }
}

/* An input may be overwritten if a step made it, it is used up here, and it comes in once. */
static void find_reusable(struct plan *plan)
{
    for (int s = 0; s < plan->steps_count; s++) {
        struct plan_step *step = &plan->steps[s];
        const int *inputs = plan->inputs + step->in_first;
        for (int i = 0; i < step->in_count && i < 64; i++) {
            bool reusable = inputs[i] >= plan->owned_first && plan->last_use[inputs[i]] == s &&
                            !plan->fetched[inputs[i]] &&
                            inputs[i] == plan->sources[step->in_first + i];
            for (int k = 0; reusable && k < step->in_count; k++)
                reusable = k == i || inputs[k] != inputs[i];
            if (reusable)
                step->reusable |= UINT64_C(1) << i;
        }
    }
}

/* --- the whole --- */

static void alloc_tables(struct plan *plan, int steps, int inputs, int outputs)
{
    /* Every input might be a reference read as a value. */
    size_t values = (size_t)plan->values_count + (size_t)outputs + (size_t)inputs;
    plan->steps = alloc_array((size_t)steps, sizeof(*plan->steps));
    plan->inputs = alloc_array((size_t)inputs, sizeof(*plan->inputs));
    plan->sources = alloc_array((size_t)inputs, sizeof(*plan->sources));
    plan->defined_by = alloc_array(values, sizeof(*plan->defined_by));
    plan->last_use = alloc_array(values, sizeof(*plan->last_use));
    plan->fetched = alloc_array(values, sizeof(*plan->fetched));
    plan->types_of_value = alloc_array(values, sizeof(*plan->types_of_value));
}

/* Steps in order; stops when one is met that an order cannot serve. */
static bool add_steps(struct maker *maker, struct error *err)
{
    struct plan *plan = maker->plan;
    int steps = 0, inputs = 0, outputs = 0;
    if (!number_sources(maker, &steps, &inputs, &outputs, err))
        return false;
    maker->flows |= plan->subgraph->partial;
    if (maker->flows)
        return true;
    alloc_tables(plan, steps, inputs, outputs);
    const int *order = graph_order(maker->graph);
    for (int i = 0; i < graph_count(maker->graph) && !maker->flows; i++) {
        const struct node *node = graph_node(maker->graph, order[i]);
        if (maker->needed[order[i]] && makes_step(node) && !add_step(maker, node, err))
            return false;
    }
    return true;
}

static bool fill_plan(struct maker *maker, struct error *err)
{
    struct plan *plan = maker->plan;
    if (!add_steps(maker, err))
        return false;
    if (maker->flows) {
        free(plan->steps);
        plan->steps = NULL;
        plan->steps_count = 0;
        return dataflow_plan_new(plan, maker->needed, maker->device, err);
    }
    add_fetches(maker);
    add_reads_of_refs(plan);
    find_releases(plan);
    find_reusable(plan);
    return execute_prepare(plan, err);
}

struct plan *plan_new(struct subgraph *subgraph, const struct device *device,
                      struct plan_context *context, struct error *err)
{
    struct plan *plan = alloc_bytes(sizeof(*plan));
    plan->subgraph = subgraph;
    plan->context = context;
    pthread_mutex_init(&plan->lock, NULL);
    struct maker maker = {
        .plan = plan,
        .graph = subgraph->graph,
        .needed = prune_needed(subgraph),
        .first_value = alloc_array((size_t)graph_count(subgraph->graph), sizeof(int)),
        .device = device->type,
    };
    bool ok = graph_seal(subgraph->graph, err) && fill_plan(&maker, err);
    free(maker.needed);
    free(maker.first_value);
    if (!ok) {
        plan_free(plan);
        return NULL;
    }
    return plan;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    while (plan->idle) {
        struct frame *frame = plan->idle;
        plan->idle = frame->next;
        execute_free_frame(frame);
    }
    dataflow_plan_free(plan->flow);
    free(plan->steps);
    free(plan->inputs);
    free(plan->sources);
    free(plan->releases);
    free(plan->defined_by);
    free(plan->last_use);
    free(plan->fetched);
    free(plan->types_of_value);
    free(plan->constants);
    free(plan->feeds);
    free(plan->fetches);
    free(plan->layout);
    free(plan->needed);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}
