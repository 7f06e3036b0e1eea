/* resolve.c - what a node must have, and what follows from the rest. */

#include "runtime/resolve.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

static const char *const kind_names[] = {
    [ATTR_NONE] = "nothing", [ATTR_STRING] = "string",
    [ATTR_INT] = "int",      [ATTR_FLOAT] = "float",
    [ATTR_BOOL] = "bool",    [ATTR_TYPE] = "type",
    [ATTR_SHAPE] = "shape",  [ATTR_TENSOR] = "tensor",
    [ATTR_FUNC] = "func",    [ATTR_PLACEHOLDER] = "placeholder",
};

/* Notes what is wrong for the time when the node is to run; the first fault stays. */
static void set_fault(struct node *node, struct arena *arena, const struct error *err)
{
    if (!node->fault)
        node->fault = arena_copy(arena, err, sizeof(*err));
}

static const struct attr *find_attr(const struct attr *attrs, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(attrs[i].name, name))
            return &attrs[i];
    return NULL;
}

/* --- bounds of attribute values --- */

static bool check_kind(const struct node *node, struct attr *attr,
                       const struct op_attr *declared, struct error *err)
{
    if (attr->kind == ATTR_NONE && attr->is_list && declared->is_list)
        attr->kind = declared->kind; /* an empty list says nothing about its kind */
    if (attr->kind != declared->kind || attr->is_list != declared->is_list)
        return fail(err, INVALID,
                    "node '%s' (%s): attribute '%s' is a %s%s, but must be a %s%s", node->name,
                    node->op->name, attr->name, attr->is_list ? "list of " : "",
                    kind_names[attr->kind], declared->is_list ? "list of " : "",
                    kind_names[declared->kind]);
    return true;
}

static bool check_types(const struct node *node, const struct attr *attr,
                        const struct op_attr *declared, bool *invalid, struct error *err)
{
    for (int i = 0; i < attr->count; i++) {
        int type = attr->types[i];
        if (type == DTYPE_NONE) {
            *invalid = true;
            return fail(err, INVALID,
                        "node '%s' (%s): AttrValue has invalid DataType, in attr '%s'",
                        node->name, node->op->name, attr->name);
        }
        if (dtype_is_ref(type))
            return fail(err, INVALID,
                        "node '%s' (%s): AttrValue must not have reference type value of %s "
                        "for attr '%s'",
                        node->name, node->op->name, dtype_name(type), attr->name);
        if (!dtype_known(type) || !(declared->types & BIT(dtype_base(type)))) {
            struct str allowed = {0};
            for (int t = 1; t < DTYPE_COUNT; t++)
                if (declared->types & BIT(t))
                    str_printf(&allowed, "%s%s", allowed.size ? ", " : "", dtype_name(t));
            fail(err, INVALID,
                 "node '%s' (%s): Value for attr '%s' of %s is not in the list of allowed "
                 "values: %s",
                 node->name, node->op->name, attr->name, dtype_name(type), str_text(&allowed));
            str_release(&allowed);
            return false;
        }
    }
    return true;
}

static bool check_strings(const struct node *node, const struct attr *attr,
                          const struct op_attr *declared, struct error *err)
{
    for (int i = 0; declared->strings && i < attr->count; i++) {
        const char *const *allowed = declared->strings;
        while (*allowed && strcmp(*allowed, attr->strings[i].data) != 0)
            allowed++;
        if (!*allowed) {
            fail(err, INVALID,
                 "node '%s' (%s): Value for attr '%s' of \"%s\" is not in the list of allowed "
                 "values:",
                 node->name, node->op->name, attr->name, attr->strings[i].data);
            for (allowed = declared->strings; *allowed; allowed++) {
                size_t used = strlen(err->text);
                snprintf(err->text + used, sizeof(err->text) - used, "%s \"%s\"",
                         allowed > declared->strings ? "," : "", *allowed);
            }
            return false;
        }
    }
    return true;
}

static bool check_minimum(const struct node *node, const struct attr *attr,
                          const struct op_attr *declared, struct error *err)
{
    if (!declared->has_minimum)
        return true;
    if (attr->is_list && attr->count < declared->minimum)
        return fail(err, INVALID,
                    "node '%s' (%s): Length for attr '%s' of %d must be at least minimum %lld",
                    node->name, node->op->name, attr->name, attr->count,
                    (long long)declared->minimum);
    if (!attr->is_list && attr->kind == ATTR_INT && attr->ints[0] < declared->minimum)
        return fail(err, INVALID,
                    "node '%s' (%s): Value for attr '%s' of %lld must be at least minimum %lld",
                    node->name, node->op->name, attr->name, (long long)attr->ints[0],
                    (long long)declared->minimum);
    return true;
}

static bool is_number_of(const struct op_arg *args, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (args[i].number_attr && !strcmp(args[i].number_attr, name))
            return true;
    return false;
}

/* What says how many inputs or outputs there are is no more than a graph may have edges. */
static bool check_number(const struct node *node, const struct attr *attr, struct error *err)
{
    const struct op_signature *signature = op_signature(node->op);
    return attr->kind != ATTR_INT || attr->is_list || attr->ints[0] <= LIMIT_GRAPH_EDGES ||
           !(is_number_of(signature->inputs, signature->inputs_count, attr->name) ||
             is_number_of(signature->outputs, signature->outputs_count, attr->name)) ||
           fail(err, INVALID, "node '%s' (%s): attribute '%s' is %lld, but must be at most %d",
                node->name, node->op->name, attr->name, (long long)attr->ints[0],
                LIMIT_GRAPH_EDGES);
}

/* A type that the op does not allow is refused at once, other bounds (lenient) when it runs. */
static bool check_attr(struct node *node, struct attr *attr, const struct op_attr *declared,
                       bool lenient, struct arena *arena, struct error *err)
{
    if (!check_kind(node, attr, declared, err))
        return false;
    bool invalid_type = false;
    bool ok = attr->kind != ATTR_TYPE || check_types(node, attr, declared, &invalid_type, err);
    if (!ok && !invalid_type)
        return false;
    if (ok)
        ok = check_minimum(node, attr, declared, err) && check_number(node, attr, err);
    if (ok && attr->kind == ATTR_STRING)
        ok = check_strings(node, attr, declared, err);
    if (ok || !lenient)
        return ok;
    set_fault(node, arena, err);
    return true;
}

/* --- attributes that follow from the inputs --- */

/* How many inputs an argument takes by the attributes that are there; -1 when they do not say.
 */
static int known_length(const struct op_arg *arg, const struct attr *attrs, int count)
{
    if (!arg->number_attr && !arg->list_attr)
        return 1;
    const struct attr *attr =
        find_attr(attrs, count, arg->number_attr ? arg->number_attr : arg->list_attr);
    if (!attr)
        return -1;
    if (arg->list_attr)
        return attr->count;
    bool sane =
        attr->kind == ATTR_INT && attr->ints[0] >= 0 && attr->ints[0] < LIMIT_GRAPH_EDGES;
    return sane ? (int)attr->ints[0] : -1;
}

/* The same when they do not say: arguments of unknown length share what the others leave. */
static int variable_length(const struct op_signature *signature, const struct attr *attrs,
                           int count, int inputs_count)
{
    int left = inputs_count, unknown = 0;
    for (int i = 0; i < signature->inputs_count; i++) {
        int length = known_length(&signature->inputs[i], attrs, count);
        if (length < 0)
            unknown++;
        else
            left -= length;
    }
    return unknown && left % unknown == 0 ? left / unknown : -1;
}

static struct attr make_int(const char *name, int64_t value, struct arena *arena)
{
    return (struct attr){.name = name,
                         .kind = ATTR_INT,
                         .count = 1,
                         .ints = arena_copy(arena, &value, sizeof(value))};
}

static struct attr make_types(const char *name, const struct edge *inputs, int count,
                              bool is_list, struct arena *arena)
{
    int *types = arena_array(arena, (size_t)count, sizeof(*types));
    for (int i = 0; i < count; i++)
        types[i] = dtype_base(inputs[i].from->output_types[inputs[i].output]);
    return (struct attr){
        .name = name, .kind = ATTR_TYPE, .is_list = is_list, .count = count, .types = types};
}

/* Adds to attrs[*count] what the inputs of `def` say about attributes that are not there. */
static void deduce_attrs(const struct op_signature *signature, const struct node_def *def,
                         struct attr *attrs, int *count, struct arena *arena)
{
    int at = 0;
    for (int i = 0; i < signature->inputs_count && at < def->inputs_count; i++) {
        const struct op_arg *arg = &signature->inputs[i];
        int length = known_length(arg, attrs, *count);
        if (length < 0)
            length = variable_length(signature, attrs, *count, def->inputs_count);
        if (length < 0 || at + length > def->inputs_count)
            return; /* resolve_inputs() tells */
        if (arg->number_attr && !find_attr(attrs, *count, arg->number_attr))
            attrs[(*count)++] = make_int(arg->number_attr, length, arena);
        if (arg->list_attr && !find_attr(attrs, *count, arg->list_attr))
            attrs[(*count)++] =
                make_types(arg->list_attr, def->inputs + at, length, true, arena);
        if (arg->type_attr && length > 0 && !find_attr(attrs, *count, arg->type_attr))
            attrs[(*count)++] = make_types(arg->type_attr, def->inputs + at, 1, false, arena);
        at += length;
    }
}

bool resolve_attrs(struct node *node, const struct node_def *def, bool lenient, bool borrow,
                   struct arena *arena, struct error *err)
{
    const struct op_signature *signature = op_signature(def->op);
    size_t most = (size_t)def->attrs_count + (size_t)signature->attrs_count;
    struct attr *attrs = arena_array(arena, most, sizeof(*attrs));
    int count = 0;

    for (int i = 0; i < def->attrs_count; i++)
        attrs[count++] = borrow ? def->attrs[i] : attr_copy(&def->attrs[i], arena);
    node->attrs = attrs;
    node->attrs_count = count; /* what must be released if we fail from here on */
    if (!lenient)
        deduce_attrs(signature, def, attrs, &count, arena);

    for (int i = 0; i < signature->attrs_count; i++) {
        const struct op_attr *declared = &signature->attrs[i];
        struct attr *attr = (struct attr *)find_attr(attrs, count, declared->name);
        if (!attr && declared->has_default) {
            /* Those of the registry live for ever; but of tensors each node has a reference. */
            bool own = def->op->signature || declared->value.kind == ATTR_TENSOR;
            attrs[count++] = own ? attr_copy(&declared->value, arena) : declared->value;
            node->attrs_count = count;
            continue;
        }
        if (!attr) {
            fail(err, NOT_FOUND, "node '%s' (%s): no attribute named '%s'", node->name,
                 node->op->name, declared->name);
            if (!lenient || declared->kind == ATTR_TYPE)
                return false;
            set_fault(node, arena, err);
            continue;
        }
        if (!check_attr(node, attr, declared, lenient, arena, err))
            return false;
    }
    node->attrs_count = count;
    return true;
}

/* --- types --- */

int resolve_arg_length(const struct node *node, const struct op_arg *arg)
{
    if (arg->number_attr) {
        int64_t length = node_attr_int(node, arg->number_attr, 0);
        return length < 0 || length > LIMIT_GRAPH_EDGES ? 0 : (int)length;
    }
    if (arg->list_attr) {
        const struct attr *list = node_attr(node, arg->list_attr);
        return list ? list->count : 0;
    }
    return 1;
}

static int arg_type(const struct node *node, const struct op_arg *arg, int index)
{
    int type = arg->dtype;
    if (arg->list_attr)
        return node_attr(node, arg->list_attr)->types[index];
    if (arg->type_attr)
        type = node_attr_type(node, arg->type_attr);
    return arg->is_ref && type < DTYPE_REF ? type + DTYPE_REF : type;
}

static const int *args_types(const struct node *node, const struct op_arg *args, int args_count,
                             struct arena *arena, int *count)
{
    *count = 0;
    for (int i = 0; i < args_count; i++)
        *count += resolve_arg_length(node, &args[i]);
    int *types = arena_array(arena, (size_t)*count, sizeof(*types));
    int at = 0;
    for (int i = 0; i < args_count; i++)
        for (int k = 0, length = resolve_arg_length(node, &args[i]); k < length; k++)
            types[at++] = arg_type(node, &args[i], k);
    return types;
}

int resolve_types(struct node *node, struct arena *arena)
{
    const struct op_signature *signature = op_signature(node->op);
    int wanted;
    node->input_types =
        args_types(node, signature->inputs, signature->inputs_count, arena, &wanted);
    node->output_types = args_types(node, signature->outputs, signature->outputs_count, arena,
                                    &node->outputs_count);
    return wanted;
}

bool resolve_inputs(struct node *node, int wanted, bool lenient, struct arena *arena,
                    struct error *err)
{
    if (node->inputs_count != wanted) {
        fail(err, INVALID, "node '%s' (%s) has %d inputs, but must have %d", node->name,
             node->op->name, node->inputs_count, wanted);
        if (!lenient || node->inputs_count > wanted)
            return false;
        set_fault(node, arena, err);
    }
    for (int i = 0; i < node->inputs_count; i++) {
        const struct edge *edge = &node->inputs[i];
        assert(edge->from);
        if (edge->output < 0 || edge->output >= edge->from->outputs_count)
            return fail(err, INVALID, "node '%s': input %d is '%s:%d', but %s has %d outputs",
                        node->name, i, edge->from->name, edge->output, edge->from->op->name,
                        edge->from->outputs_count);
        int given = edge->from->output_types[edge->output];
        int type = node->input_types[i];
        bool fits = dtype_is_ref(type) ? given == type : (int)dtype_base(given) == type;
        if (!fits && type != DTYPE_NONE && given != DTYPE_NONE)
            return fail(
                err, INVALID,
                "Input %d of node '%s' (%s) was passed %s from '%s:%d' (%s) incompatible "
                "with expected %s",
                i, node->name, node->op->name, dtype_name(given), edge->from->name,
                edge->output, edge->from->op->name, dtype_name(type));
    }
    return true;
}
