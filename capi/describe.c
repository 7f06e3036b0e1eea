/* describe.c - operations in the making. */

#include <stdlib.h>

#include "base/alloc.h"
#include "capi/internal.h"
#include "runtime/op.h"

struct ty_description {
    struct ty_graph *graph;
    struct arena *arena; /* all below, the description too */
    const char *op, *name, *device;
    struct edge *inputs;
    int inputs_count, inputs_capacity;
    struct node **controls;
    int controls_count, controls_capacity;
    struct attr *attrs;
    int attrs_count, attrs_capacity;
    struct error err; /* the first mistake; code OK when there is none */
};

struct ty_description *ty_new_operation(struct ty_graph *graph, const char *op,
                                        const char *name)
{
    struct arena *arena = arena_new();
    struct ty_description *d = arena_alloc(arena, sizeof(*d));
    *d = (struct ty_description){.graph = graph,
                                 .arena = arena,
                                 .op = arena_text(arena, op),
                                 .name = arena_text(arena, name)};
    return d;
}

void ty_set_device(struct ty_description *d, const char *device)
{
    d->device = arena_text(d->arena, device);
}

void ty_add_input(struct ty_description *d, struct ty_output input)
{
    d->inputs = alloc_grow(d->inputs, d->inputs_count, &d->inputs_capacity, sizeof(*d->inputs));
    d->inputs[d->inputs_count++] = capi_edge(input);
}

void ty_add_input_list(struct ty_description *d, const struct ty_output *inputs, int count)
{
    for (int i = 0; i < count; i++)
        ty_add_input(d, inputs[i]);
}

void ty_add_control_input(struct ty_description *d, struct ty_operation *before)
{
    d->controls =
        alloc_grow(d->controls, d->controls_count, &d->controls_capacity, sizeof(*d->controls));
    d->controls[d->controls_count++] = capi_node(before);
}

/* --- attributes --- */

static void add(struct ty_description *d, const char *name, enum attr_kind kind, bool is_list,
                const void *values, size_t size, int count)
{
    const struct attr attr = {.name = arena_text(d->arena, name),
                              .kind = kind,
                              .is_list = is_list,
                              .count = count,
                              .any = arena_copy(d->arena, values, size * (size_t)count)};
    d->attrs = alloc_grow(d->attrs, d->attrs_count, &d->attrs_capacity, sizeof(*d->attrs));
    d->attrs[d->attrs_count++] = attr;
}

void ty_set_attr_string(struct ty_description *d, const char *name, const void *value,
                        size_t size)
{
    const struct attr_bytes bytes = {arena_text_n(d->arena, value, size), size};
    add(d, name, ATTR_STRING, false, &bytes, sizeof(bytes), 1);
}

void ty_set_attr_string_list(struct ty_description *d, const char *name,
                             const void *const *values, const size_t *sizes, int count)
{
    struct attr_bytes *bytes = arena_array(d->arena, (size_t)count, sizeof(*bytes));
    for (int i = 0; i < count; i++)
        bytes[i] = (struct attr_bytes){arena_text_n(d->arena, values[i], sizes[i]), sizes[i]};
    add(d, name, ATTR_STRING, true, bytes, sizeof(*bytes), count);
}

void ty_colocate_with(struct ty_description *d, struct ty_operation *operation)
{
    const char *text = arena_printf(d->arena, "loc:@%s", capi_node(operation)->name);
    const size_t size = strlen(text);
    ty_set_attr_string_list(d, "_class", (const void *const[]){text}, &size, 1);
}

void ty_set_attr_int(struct ty_description *d, const char *name, int64_t value)
{
    add(d, name, ATTR_INT, false, &value, sizeof(value), 1);
}

void ty_set_attr_int_list(struct ty_description *d, const char *name, const int64_t *values,
                          int count)
{
    add(d, name, ATTR_INT, true, values, sizeof(*values), count);
}

void ty_set_attr_float(struct ty_description *d, const char *name, float value)
{
    add(d, name, ATTR_FLOAT, false, &value, sizeof(value), 1);
}

void ty_set_attr_float_list(struct ty_description *d, const char *name, const float *values,
                            int count)
{
    add(d, name, ATTR_FLOAT, true, values, sizeof(*values), count);
}

void ty_set_attr_bool(struct ty_description *d, const char *name, bool value)
{
    add(d, name, ATTR_BOOL, false, &value, sizeof(value), 1);
}

void ty_set_attr_bool_list(struct ty_description *d, const char *name, const bool *values,
                           int count)
{
    add(d, name, ATTR_BOOL, true, values, sizeof(*values), count);
}

void ty_set_attr_type(struct ty_description *d, const char *name, enum ty_dtype value)
{
    const int type = (int)value;
    add(d, name, ATTR_TYPE, false, &type, sizeof(type), 1);
}

void ty_set_attr_type_list(struct ty_description *d, const char *name,
                           const enum ty_dtype *values, int count)
{
    int *types = arena_array(d->arena, (size_t)count, sizeof(*types));
    for (int i = 0; i < count; i++)
        types[i] = (int)values[i];
    add(d, name, ATTR_TYPE, true, types, sizeof(*types), count);
}

/* A mistake is told when the operation is finished. */
static struct shape read_shape(struct ty_description *d, const char *name, const int64_t *dims,
                               int rank)
{
    struct shape shape;
    struct error err;
    if (!capi_shape(&shape, dims, rank, true, &err) && d->err.code == OK) {
        d->err = err;
        error_prefix(&d->err, "attribute '%s': ", name);
    }
    return shape;
}

void ty_set_attr_shape(struct ty_description *d, const char *name, const int64_t *dims,
                       int rank)
{
    const struct shape shape = read_shape(d, name, dims, rank);
    add(d, name, ATTR_SHAPE, false, &shape, sizeof(shape), 1);
}

void ty_set_attr_shape_list(struct ty_description *d, const char *name,
                            const int64_t *const *dims, const int *ranks, int count)
{
    struct shape *shapes = arena_array(d->arena, (size_t)count, sizeof(*shapes));
    for (int i = 0; i < count; i++)
        shapes[i] = read_shape(d, name, dims[i], ranks[i]);
    add(d, name, ATTR_SHAPE, true, shapes, sizeof(*shapes), count);
}

void ty_set_attr_tensor(struct ty_description *d, const char *name,
                        const struct ty_tensor *value)
{
    struct tensor copy = {0};
    struct error err;
    if (!tensor_clone(&copy, &value->tensor, &err)) {
        if (d->err.code == OK)
            d->err = err;
        return;
    }
    add(d, name, ATTR_TENSOR, false, &copy, sizeof(copy), 1);
}

void ty_set_attr_function(struct ty_description *d, const char *name, const char *function)
{
    const struct attr_func func = {.name = arena_text(d->arena, function)};
    add(d, name, ATTR_FUNC, false, &func, sizeof(func), 1);
}

/* --- the end --- */

static bool check_inputs(const struct ty_description *d, struct error *err)
{
    for (int i = 0; i < d->inputs_count; i++)
        if (!d->inputs[i].from)
            return fail(err, INVALID, "node '%s' (%s): input %d is no operation", d->name,
                        d->op, i);
    return true;
}

static struct node *finish(const struct ty_description *d, struct error *err)
{
    const struct node_def def = {.name = d->name,
                                 .op = op_find(d->op),
                                 .inputs = d->inputs,
                                 .inputs_count = d->inputs_count,
                                 .controls = d->controls,
                                 .controls_count = d->controls_count,
                                 .attrs = d->attrs,
                                 .attrs_count = d->attrs_count,
                                 .device = d->device};
    if (d->err.code != OK) {
        *err = d->err;
        return NULL;
    }
    if (!def.op)
        return fail_null(err, NOT_FOUND, "node '%s': there is no op '%s'", d->name, d->op);
    if (!check_inputs(d, err))
        return NULL;
    pthread_mutex_lock(&d->graph->lock);
    struct node *node = graph_add(d->graph->graph, &def, err);
    pthread_mutex_unlock(&d->graph->lock);
    return node;
}

struct ty_operation *ty_finish_operation(struct ty_description *d, struct ty_status *status)
{
    struct error err;
    struct node *node = finish(d, &err);
    capi_result(status, node, &err);
    for (int i = 0; i < d->attrs_count; i++)
        attr_release(&d->attrs[i]);
    free(d->inputs);
    free(d->controls);
    free(d->attrs);
    arena_free(d->arena);
    return capi_operation(node);
}
