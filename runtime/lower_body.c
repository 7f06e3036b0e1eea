/* lower_body.c - the nodes of a function's body in the graph that calls it. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "runtime/lower.h"
#include "runtime/op.h"
#include "runtime/resolve.h"

/* What a name in the body stands for: a run of edges (an argument), or a node. */
struct named {
    struct node *node;        /* NULL: an argument */
    const struct edge *edges; /* of an argument */
    int count;
};

struct inliner {
    struct lower *l;
    const struct lower_call *call;
    struct lower_body *body;
    struct arena *arena; /* the graph's */
    struct node shape;   /* a call of the function: its bound attributes and types */
    struct map *names;   /* struct named */
    struct node **nodes; /* by index in the body */
    struct lower_chain *chain;
    bool in_flow;       /* calls of the body may be dead or in a frame */
    struct edge *edges; /* what texts stand for: the inputs of one node, or the results */
    int edges_count;
    int edges_capacity;
    struct node **controls;
    int controls_capacity;
};

static bool fail_body(const struct inliner *in, const char *what, const char *text)
{
    return fail(in->l->err, INVALID, "function '%s', called by node '%s': %s '%s'",
                in->body->def->op.name, in->call->node->name, what, text);
}

/* --- attributes: placeholders become what the call says --- */

static bool bind_value(struct inliner *in, const struct attr *attr, struct attr *out);

static bool bind_func(struct inliner *in, const struct attr_func *func, struct attr_func *out)
{
    struct attr *attrs = arena_array(in->arena, (size_t)func->attrs_count, sizeof(*attrs));
    for (int i = 0; i < func->attrs_count; i++)
        if (!bind_value(in, &func->attrs[i], &attrs[i]))
            return false;
    *out = (struct attr_func){func->name, attrs, func->attrs_count};
    return true;
}

/* Goes as deep as the message did, which LIMIT_MESSAGE_DEPTH bounds. */
static bool bind_value(struct inliner *in, const struct attr *attr, struct attr *out)
{
    *out = *attr;
    if (attr->kind == ATTR_PLACEHOLDER) {
        const struct attr *bound = node_attr(&in->shape, attr->strings->data);
        if (!bound)
            return fail_body(in, "Failed to bind all placeholders: there is no value for",
                             attr->strings->data);
        *out = *bound;
        out->name = attr->name;
        return true;
    }
    if (attr->kind != ATTR_FUNC || !attr->count)
        return true;
    struct attr_func *funcs = arena_array(in->arena, (size_t)attr->count, sizeof(*funcs));
    for (int i = 0; i < attr->count; i++)
        if (!bind_func(in, &attr->funcs[i], &funcs[i]))
            return false;
    out->funcs = funcs;
    return true;
}

/* Two calls of one function have frames of their own, whatever the function calls them. */
static void rename_frame(struct inliner *in, struct attr *attr)
{
    if (attr->kind != ATTR_STRING || attr->is_list)
        return;
    const char *name = lower_key(in->l, in->call->node, in->body->tag, attr->strings->data);
    if (!name)
        name = lower_name(in->l, in->call->node, in->body->tag, attr->strings->data);
    struct attr_bytes *bytes = arena_alloc(in->arena, sizeof(*bytes));
    *bytes = (struct attr_bytes){name, strlen(name)};
    attr->strings = bytes;
}

/* "loc:@x" means the x of this body. */
static void rename_classes(struct inliner *in, struct attr *attr)
{
    static const char prefix[] = "loc:@";
    if (attr->kind != ATTR_STRING)
        return;
    struct attr_bytes *classes =
        arena_copy(in->arena, attr->strings, (size_t)attr->count * sizeof(*classes));
    for (int i = 0; i < attr->count; i++) {
        const char *name = classes[i].data + strlen(prefix);
        if (strncmp(classes[i].data, prefix, strlen(prefix)) != 0 || !map_has(in->names, name))
            continue;
        const char *text = arena_printf(in->arena, "%s%s", prefix,
                                        lower_path(in->l, in->call->node, in->body->tag, name));
        classes[i] = (struct attr_bytes){text, strlen(text)};
    }
    attr->strings = classes;
}

static bool bind_attrs(struct inliner *in, const struct function_node *node, struct attr *attrs)
{
    bool enters = !strcmp(node->op, "Enter") || !strcmp(node->op, "RefEnter");
    for (int i = 0; i < node->attrs_count; i++) {
        if (!bind_value(in, &node->attrs[i], &attrs[i]))
            return false;
        if (enters && !strcmp(attrs[i].name, "frame_name"))
            rename_frame(in, &attrs[i]);
        else if (!strcmp(attrs[i].name, "_class"))
            rename_classes(in, &attrs[i]);
    }
    return true;
}

/* --- nodes --- */

static bool name_is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == ':')
            return false;
    return *name && strlen(name) <= LIMIT_NODE_NAME_BYTES;
}

static bool add_name(struct inliner *in, const char *name, struct named named)
{
    if (!name_is_plain(name))
        return fail_body(in, "not a name:", name);
    if (map_has(in->names, name))
        return fail_body(in, "there are two arguments or nodes of the name", name);
    map_set(in->names, name, arena_copy(in->arena, &named, sizeof(named)));
    return true;
}

static bool name_args(struct inliner *in)
{
    const struct lower_body *body = in->body;
    const struct op_signature *signature = &body->def->signature;
    int at = 0;
    for (int i = 0; i < signature->inputs_count; i++) {
        const struct op_arg *arg = &signature->inputs[i];
        int count = resolve_arg_length(&in->shape, arg);
        if (!add_name(in, arg->name, (struct named){NULL, body->args + at, count}))
            return false;
        at += count;
    }
    return true;
}

static bool add_node(struct inliner *in, int index)
{
    struct lower *l = in->l;
    const struct function_node *from = &in->body->def->nodes[index];
    const struct op *op = function_library_op(l->library, from->op);
    if (!op)
        return fail(l->err, NOT_FOUND,
                    "Op type not registered '%s' (node '%s' of function '%s', called by "
                    "'%s'). Make sure the op is in the library of this runtime",
                    from->op, from->name, in->body->def->op.name, in->call->node->name);
    if (l->nodes_left-- <= 0)
        return fail(l->err, EXHAUSTED,
                    "function '%s', called by node '%s': the calls of this run become more "
                    "than %d nodes",
                    in->body->def->op.name, in->call->node->name, LIMIT_LOWERED_NODES);
    struct attr *attrs = arena_array(in->arena, (size_t)from->attrs_count, sizeof(*attrs));
    if (!bind_attrs(in, from, attrs))
        return false;
    const char *device = from->device[0] ? from->device : in->call->node->requested_device;
    if (in->body->device)
        device = lower_device_on(l, from->device, in->body->device);
    const struct node_def def = {.name =
                                     lower_name(l, in->call->node, in->body->tag, from->name),
                                 .op = op,
                                 .attrs = attrs,
                                 .attrs_count = from->attrs_count,
                                 .device = device};
    struct node *node = graph_add_unlinked(l->graph, &def, l->err);
    if (!node)
        return error_prefix(l->err,
                            "function '%s', called by node '%s': ", in->body->def->op.name,
                            in->call->node->name);
    node->state_key = lower_key(l, in->call->node, in->body->tag, from->name);
    node->shown_name = from->shown_name ? from->shown_name : from->name;
    in->nodes[index] = node;
    lower_push(l, &(struct lower_call){node, in->chain, in->in_flow, !in->body->tag});
    return true;
}

static bool add_nodes(struct inliner *in)
{
    const struct function_def *def = in->body->def;
    for (int i = 0; i < def->nodes_count; i++)
        /* The node itself comes later; "loc:@" looks for names before. */
        if (!add_name(in, def->nodes[i].name, (struct named){0}))
            return false;
    for (int i = 0; i < def->nodes_count; i++) {
        if (!add_node(in, i))
            return false;
        struct named *named = map_find(in->names, def->nodes[i].name);
        named->node = in->nodes[i];
    }
    return true;
}

/* --- edges: "arg", "arg:1", "node:out", "node:out:1", "^node" --- */

/* Reads ":7" at the end of a name; -1: there is none or it is odd. */
static int read_index(const char *text)
{
    if (!text[0] || strlen(text) > 8 || text[strspn(text, "0123456789")])
        return -1;
    return (int)strtol(text, NULL, 10);
}

/* The outputs of `node` that the output argument `out`[:index] names. */
static bool find_outputs(const struct node *node, const char *text, int *first, int *count)
{
    const char *colon = strchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : strlen(text);
    const struct op_signature *signature = op_signature(node->op);
    *first = 0;
    for (int i = 0; i < signature->outputs_count; i++) {
        const struct op_arg *arg = &signature->outputs[i];
        *count = resolve_arg_length(node, arg);
        if (strlen(arg->name) == size && !strncmp(arg->name, text, size)) {
            int index = colon ? read_index(colon + 1) : -1;
            if (!colon)
                return true;
            *first += index;
            bool there = index >= 0 && index < *count;
            *count = 1;
            return there;
        }
        *first += *count;
    }
    return false;
}

/* Adds what `text` names to in->edges, which are to be `wanted` at most. */
static bool add_edges(struct inliner *in, const char *text, int wanted)
{
    const char *colon = strchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : strlen(text);
    const struct named *named = map_find_n(in->names, text, size);
    int first = 0, more = 0;
    bool known = named != NULL;
    if (known && named->node) {
        known = colon && find_outputs(named->node, colon + 1, &first, &more);
    } else if (known) {
        first = colon ? read_index(colon + 1) : 0;
        more = colon ? 1 : named->count;
        known = first >= 0 && first + more <= named->count;
    }
    if (!known)
        return fail_body(in, "there is no", text);
    if (in->edges_count + more > wanted)
        return fail_body(in, "there are more inputs or results than declared, with", text);
    for (int i = 0; i < more; i++) {
        in->edges =
            alloc_grow(in->edges, in->edges_count, &in->edges_capacity, sizeof(*in->edges));
        in->edges[in->edges_count++] =
            named->node ? (struct edge){named->node, first + i} : named->edges[first + i];
    }
    return true;
}

static bool link_node(struct inliner *in, int index)
{
    const struct function_node *from = &in->body->def->nodes[index];
    struct node *node = in->nodes[index];
    int wanted = node->inputs_count; /* until it is linked */
    int controls_count = 0;
    in->edges_count = 0;
    while (in->controls_capacity < 2 * from->inputs_count + 1)
        in->controls = alloc_grow(in->controls, in->controls_capacity, &in->controls_capacity,
                                  sizeof(*in->controls));
    for (int i = 0; i < from->inputs_count; i++) {
        const char *text = from->inputs[i];
        if (text[0] != '^') {
            if (controls_count)
                return fail_body(in, "after a control input comes input", text);
            if (!add_edges(in, text, wanted))
                return error_prefix(in->l->err, "node '%s': ", from->name);
            continue;
        }
        const struct named *named = map_find(in->names, text + 1);
        if (!named)
            return fail_body(in, "there is no", text);
        if (named->node)
            in->controls[controls_count++] = named->node;
        else if (named->count)
            in->controls[controls_count++] = named->edges[0].from;
        /* An argument may come from a Switch, out of which a control edge is always alive. */
        if (!named->node && in->body->entry)
            in->controls[controls_count++] = in->body->entry;
    }
    bool is_source = !in->edges_count && !controls_count && in->body->in_flow;
    if (in->body->entry && (is_source || node->op->flags & OP_STATEFUL))
        in->controls[controls_count++] = in->body->entry;
    return graph_link_imported(in->l->graph, node, in->edges, in->edges_count, in->controls,
                               controls_count, in->l->err) ||
           error_prefix(in->l->err,
                        "function '%s', called by node '%s': ", in->body->def->op.name,
                        in->call->node->name);
}

/* --- results --- */

static const char *find_ret(const struct function_ret *rets, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(rets[i].name, name))
            return rets[i].value;
    return NULL;
}

static bool check_type(struct inliner *in, const char *what, int index, struct edge edge,
                       int wanted)
{
    int given = edge.from->output_types[edge.output];
    if (given == wanted || (int)dtype_base(given) == wanted)
        return true;
    const struct node *call = in->call->node;
    return fail(in->l->err, INVALID,
                "node '%s' (%s): Expects %s[%d] to be %s but %s is provided", call->name,
                call->op->name, what, index, dtype_name(wanted), dtype_name(given));
}

static bool find_results(struct inliner *in)
{
    struct lower_body *body = in->body;
    const struct function_def *def = body->def;
    int wanted = in->shape.outputs_count;
    in->edges_count = 0;
    for (int i = 0; i < def->signature.outputs_count; i++) {
        const struct op_arg *arg = &def->signature.outputs[i];
        const char *value = find_ret(def->rets, def->rets_count, arg->name);
        int before = in->edges_count;
        if (!value)
            return fail_body(in, "Return missing:", arg->name);
        if (!add_edges(in, value, wanted))
            return error_prefix(in->l->err, "Return %s -> %s is not found. ", arg->name, value);
        if (in->edges_count - before != resolve_arg_length(&in->shape, arg))
            return fail_body(in, "Return of another length:", arg->name);
    }
    body->results_count = in->edges_count;
    body->results =
        arena_copy(in->arena, in->edges, (size_t)in->edges_count * sizeof(*in->edges));
    for (int i = 0; i < body->results_count; i++)
        if (!check_type(in, "result", i, body->results[i], in->shape.output_types[i]))
            return false;
    return true;
}

/* What the function says must run, or all that is stateful. */
static bool find_effects(struct inliner *in)
{
    struct lower_body *body = in->body;
    const struct function_def *def = body->def;
    int most = def->control_rets_count + def->nodes_count;
    body->effects = arena_array(in->arena, (size_t)most, sizeof(*body->effects));
    body->effects_count = 0;
    for (int i = 0; i < def->control_rets_count; i++) {
        const struct named *named = map_find(in->names, def->control_rets[i].value);
        if (!named || !named->node)
            return fail_body(in, "there is no control result", def->control_rets[i].value);
        body->effects[body->effects_count++] = named->node;
    }
    for (int i = 0; body->all_effects && i < def->nodes_count; i++)
        if (in->nodes[i]->op->flags & OP_STATEFUL)
            body->effects[body->effects_count++] = in->nodes[i];
    return true;
}

/* --- the whole --- */

/* A call of the function, for its attributes and the types that follow from them. */
static bool make_shape(struct inliner *in)
{
    const struct lower_body *body = in->body;
    const struct node_def def = {.name = in->call->node->name,
                                 .op = &body->def->op,
                                 .attrs = body->func->attrs,
                                 .attrs_count = body->func->attrs_count};
    in->shape = (struct node){.name = in->call->node->name, .op = &body->def->op};
    if (!resolve_attrs(&in->shape, &def, true, true, in->arena, in->l->err))
        return false;
    if (in->shape.fault)
        return fail(in->l->err, in->shape.fault->code, "%s", in->shape.fault->text);
    int wanted = resolve_types(&in->shape, in->arena);
    if (wanted != body->args_count)
        return fail(in->l->err, INVALID,
                    "function '%s', called by node '%s', takes %d arguments, but %d are given",
                    body->def->op.name, in->call->node->name, wanted, body->args_count);
    for (int i = 0; i < wanted; i++)
        if (!check_type(in, "arg", i, body->args[i], in->shape.input_types[i]))
            return false;
    return true;
}

static bool has_flow(const struct function_def *def)
{
    for (int i = 0; i < def->nodes_count; i++) {
        const struct op *op = op_find(def->nodes[i].op);
        if (op && (op->flow == FLOW_SWITCH || op->flow == FLOW_ENTER))
            return true;
    }
    return false;
}

static bool inline_body(struct inliner *in)
{
    const struct function_def *def = in->body->def;
    in->in_flow = in->body->in_flow || has_flow(def);
    if (!make_shape(in) || !name_args(in) || !add_nodes(in))
        return false;
    for (int i = 0; i < def->nodes_count; i++)
        if (!link_node(in, i))
            return false;
    return find_results(in) && find_effects(in);
}

bool lower_body(struct lower *l, const struct lower_call *call, struct lower_body *body)
{
    struct arena *arena = graph_arena(l->graph);
    struct inliner in = {.l = l,
                         .call = call,
                         .body = body,
                         .arena = arena,
                         .names = map_new(),
                         .chain = arena_alloc(arena, sizeof(struct lower_chain))};
    in.nodes = arena_array(arena, (size_t)body->def->nodes_count, sizeof(*in.nodes));
    *in.chain =
        (struct lower_chain){body->def, call->chain, call->chain ? call->chain->depth + 1 : 1};
    bool ok = inline_body(&in);
    for (int i = body->func->attrs_count; i < in.shape.attrs_count; i++)
        attr_release(&in.shape.attrs[i]); /* defaults, which were copied */
    map_free(in.names);
    free(in.edges);
    free(in.controls);
    return ok;
}

bool lower_passes(const struct function_def *def, int i)
{
    const struct op_signature *signature = &def->signature;
    for (int k = 0; k < signature->inputs_count; k++)
        if (signature->inputs[k].number_attr || signature->inputs[k].list_attr)
            return false;
    for (int k = 0; k < signature->outputs_count; k++)
        if (signature->outputs[k].number_attr || signature->outputs[k].list_attr)
            return false;
    if (i >= signature->inputs_count || i >= signature->outputs_count)
        return false;
    const char *value = find_ret(def->rets, def->rets_count, signature->outputs[i].name);
    return value && !strcmp(value, signature->inputs[i].name);
}
