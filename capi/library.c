/*
 * library.c - ops and kernels of shared libraries that are loaded at run time.
 *
 * What is registered lives as long as the process.
 */

#include <dlfcn.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "capi/internal.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/op.h"
#include "runtime/op_parse.h"

void ty_load_library(const char *path, struct ty_status *status)
{
    struct error err;
    capi_start();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail(&err, NOT_FOUND, "cannot load %s: %s", path, dlerror());
        capi_result(status, false, &err);
        return;
    }
    void (*init)(struct ty_status *);
    *(void **)(void *)&init = dlsym(library, "ty_library_init");
    if (!init) {
        fail(&err, NOT_FOUND, "%s has no function ty_library_init()", path);
        capi_result(status, false, &err);
        dlclose(library);
        return;
    }
    ty_status_set(status, TY_OK, "");
    init(status);
    if (status->err.code != OK)
        error_prefix(&status->err, "%s: ", path);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: ops, kernels */
static struct map *ops;                                  /* struct registered_op by name */
static struct map *kernels; /* struct registered_kernel, by name of the runtime's kernel */

/* --- ops --- */

struct ty_op {
    char *name;
    struct str inputs, outputs, attrs;
    bool stateful;
    void (*infer)(struct ty_shape_context *context, struct ty_status *status);
};

struct registered_op {
    const struct op *table[2]; /* for op_add_table(), which keeps it */
    struct op op;
    void (*infer)(struct ty_shape_context *context, struct ty_status *status);
};

struct ty_shape_context {
    struct infer *infer;
};

struct ty_op *ty_op_new(const char *name)
{
    struct ty_op *op = alloc_bytes(sizeof(*op));
    op->name = alloc_text(name);
    return op;
}

static void add_text(struct str *to, const char *text)
{
    str_printf(to, "%s%s", to->size ? " " : "", text);
}

void ty_op_add_input(struct ty_op *op, const char *input)
{
    add_text(&op->inputs, input);
}

void ty_op_add_output(struct ty_op *op, const char *output)
{
    add_text(&op->outputs, output);
}

void ty_op_add_attr(struct ty_op *op, const char *attr)
{
    add_text(&op->attrs, attr);
}

void ty_op_set_stateful(struct ty_op *op)
{
    op->stateful = true;
}

void ty_op_set_shape(struct ty_op *op,
                     void (*infer)(struct ty_shape_context *context, struct ty_status *status))
{
    op->infer = infer;
}

static bool infer_shape(struct infer *infer, struct error *err)
{
    struct ty_shape_context context = {infer};
    struct ty_status status = {0};
    pthread_mutex_lock(&lock);
    const struct registered_op *op = map_find(ops, infer->node->op->name);
    pthread_mutex_unlock(&lock);
    op->infer(&context, &status);
    if (status.err.code != OK)
        *err = status.err;
    return status.err.code == OK;
}

static bool register_op(const struct ty_op *definition, struct error *err)
{
    struct registered_op *made = alloc_bytes(sizeof(*made));
    made->infer = definition->infer;
    made->op = (struct op){.name = alloc_text(definition->name),
                           .inputs = alloc_text(str_text(&definition->inputs)),
                           .outputs = alloc_text(str_text(&definition->outputs)),
                           .attrs = alloc_text(str_text(&definition->attrs)),
                           .flags = definition->stateful ? OP_STATEFUL : 0,
                           .infer = definition->infer ? infer_shape : NULL};
    made->table[0] = &made->op;
    pthread_mutex_lock(&lock);
    if (!ops)
        ops = map_new();
    bool ok = op_parse_check(&made->op, err) && op_add_table(made->table, err);
    if (ok)
        map_set(ops, made->op.name, made);
    pthread_mutex_unlock(&lock);
    if (!ok) {
        free((char *)made->op.name);
        free((char *)made->op.inputs);
        free((char *)made->op.outputs);
        free((char *)made->op.attrs);
        free(made);
    }
    return ok;
}

void ty_op_register(struct ty_op *op, struct ty_status *status)
{
    struct error err;
    bool ok = register_op(op, &err);
    free(op->name);
    str_release(&op->inputs);
    str_release(&op->outputs);
    str_release(&op->attrs);
    free(op);
    capi_result(status, ok, &err);
}

int ty_shape_rank(const struct ty_shape_context *context, int input)
{
    assert(input >= 0 && input < context->infer->node->inputs_count);
    return context->infer->inputs[input].rank;
}

int64_t ty_shape_dim(const struct ty_shape_context *context, int input, int index)
{
    int rank = ty_shape_rank(context, input);
    return index >= 0 && index < rank ? context->infer->inputs[input].dims[index] : -1;
}

void ty_shape_set(struct ty_shape_context *context, int output, const int64_t *dims, int rank)
{
    struct error err; /* a shape that cannot be says nothing */
    assert(output >= 0 && output < context->infer->node->outputs_count);
    if (!capi_shape(&context->infer->outputs[output], dims, rank, true, &err))
        context->infer->outputs[output] = SHAPE_UNKNOWN;
}

void ty_shape_set_same(struct ty_shape_context *context, int output, int input)
{
    assert(output >= 0 && output < context->infer->node->outputs_count);
    assert(input >= 0 && input < context->infer->node->inputs_count);
    context->infer->outputs[output] = context->infer->inputs[input];
}

/* --- kernels --- */

struct ty_kernel {
    char *op, *device, *type_attr;
    uint64_t types;
    void *(*create)(struct ty_kernel_construction *construction);
    void (*compute)(void *state, struct ty_kernel_context *context);
    void (*release)(void *state);
};

struct registered_kernel {
    struct kernel kernel;
    struct ty_kernel definition;
    struct registered_kernel *next; /* of the same op */
};

/* The state of one node's kernel. */
struct instance {
    const struct registered_kernel *registered;
    void *state;
};

struct ty_kernel_construction {
    const struct node *node;
    struct error err;
};

struct ty_kernel_context {
    struct kernel_call *call;
    struct error err;
    uint64_t made; /* outputs, of the first 64 */
};

struct ty_kernel *ty_kernel_new(const char *op, const char *device,
                                void *(*create)(struct ty_kernel_construction *construction),
                                void (*compute)(void *state, struct ty_kernel_context *context),
                                void (*release)(void *state))
{
    struct ty_kernel *kernel = alloc_bytes(sizeof(*kernel));
    kernel->op = alloc_text(op);
    kernel->device = alloc_text(device);
    kernel->create = create;
    kernel->compute = compute;
    kernel->release = release;
    return kernel;
}

void ty_kernel_set_types(struct ty_kernel *kernel, const char *attr, const enum ty_dtype *types,
                         int count)
{
    free(kernel->type_attr);
    kernel->type_attr = alloc_text(attr);
    kernel->types = 0;
    for (int i = 0; i < count; i++)
        if (dtype_known((int)types[i]))
            kernel->types |= BIT((int)types[i]);
}

/* The first registered one that takes the node's type: the same that kernel_find() chose. */
static const struct registered_kernel *find_kernel(const struct node *node)
{
    pthread_mutex_lock(&lock);
    const struct registered_kernel *found = map_find(kernels, node->op->name);
    pthread_mutex_unlock(&lock);
    while (found && found->kernel.dtypes &&
           !(found->kernel.dtypes &
             BIT(dtype_base(node_attr_type(node, found->kernel.type_attr)))))
        found = found->next;
    return found;
}

static bool prepare(const struct node *node, void **state, struct error *err)
{
    const struct registered_kernel *registered = find_kernel(node);
    assert(registered);
    struct ty_kernel_construction construction = {.node = node};
    void *made =
        registered->definition.create ? registered->definition.create(&construction) : NULL;
    if (construction.err.code != OK) {
        if (made && registered->definition.release)
            registered->definition.release(made);
        *err = construction.err;
        return false;
    }
    struct instance *instance = alloc_bytes(sizeof(*instance));
    *instance = (struct instance){registered, made};
    *state = instance;
    return true;
}

static void release(void *state)
{
    struct instance *instance = state;
    if (instance->registered->definition.release)
        instance->registered->definition.release(instance->state);
    free(instance);
}

static bool run(struct kernel_call *call, struct error *err)
{
    struct instance *instance = call->state;
    struct ty_kernel_context context = {.call = call};
    instance->registered->definition.compute(instance->state, &context);
    for (int i = 0; context.err.code == OK && i < call->node->outputs_count && i < 64; i++)
        if (!(context.made >> i & 1))
            fail(&context.err, INTERNAL, "the kernel did not set output %d", i);
    if (context.err.code != OK)
        *err = context.err;
    return context.err.code == OK;
}

static bool register_kernel(const struct ty_kernel *definition, struct error *err)
{
    if (!op_find(definition->op))
        return fail(err, NOT_FOUND, "a kernel for '%s': there is no such op", definition->op);
    if (strcmp(definition->device, device_type_name(CPU)) != 0)
        return fail(err, INVALID, "a kernel for '%s' on '%s': there is no such kind of device",
                    definition->op, definition->device);
    struct registered_kernel *made = alloc_bytes(sizeof(*made));
    const struct kernel **table = alloc_array(2, sizeof(*table));
    made->definition = *definition;
    made->kernel = (struct kernel){.op = definition->op,
                                   .device = CPU,
                                   .dtypes = definition->types,
                                   .type_attr = definition->type_attr,
                                   .prepare = prepare,
                                   .release = release,
                                   .run = run};
    table[0] = &made->kernel;
    pthread_mutex_lock(&lock);
    if (!kernels)
        kernels = map_new();
    struct registered_kernel *first = map_find(kernels, definition->op);
    while (first && first->next)
        first = first->next;
    if (first)
        first->next = made;
    else
        map_set(kernels, definition->op, made);
    pthread_mutex_unlock(&lock);
    kernel_add_table(table);
    return true;
}

void ty_kernel_register(struct ty_kernel *kernel, struct ty_status *status)
{
    struct error err;
    bool ok = register_kernel(kernel, &err);
    if (!ok) {
        free(kernel->op);
        free(kernel->type_attr);
    }
    free(kernel->device);
    free(kernel);
    capi_result(status, ok, &err);
}

/* --- in create and compute --- */

static void note(struct error *err, enum ty_code code, const char *message)
{
    if (err->code == OK)
        fail(err, code == TY_OK ? UNKNOWN : (enum error_code)code, "%s", message);
}

const struct ty_operation *
ty_kernel_construction_operation(const struct ty_kernel_construction *construction)
{
    return capi_operation(construction->node);
}

void ty_kernel_construction_fail(struct ty_kernel_construction *construction, enum ty_code code,
                                 const char *message)
{
    note(&construction->err, code, message);
}

int ty_kernel_inputs(const struct ty_kernel_context *context)
{
    return context->call->in_count;
}

const struct ty_tensor *ty_kernel_input(const struct ty_kernel_context *context, int index)
{
    assert(index >= 0 && index < context->call->in_count);
    return (const struct ty_tensor *)context->call->in[index];
}

struct ty_tensor *ty_kernel_output(struct ty_kernel_context *context, int index,
                                   const int64_t *dims, int rank)
{
    struct shape shape;
    struct error err;
    assert(index >= 0 && index < context->call->node->outputs_count);
    struct tensor *out = capi_shape(&shape, dims, rank, false, &err)
                             ? kernel_output(context->call, index, &shape, &err)
                             : NULL;
    if (!out && context->err.code == OK)
        context->err = err;
    if (out && index < 64)
        context->made |= BIT(index);
    return (struct ty_tensor *)out;
}

void ty_kernel_fail(struct ty_kernel_context *context, enum ty_code code, const char *message)
{
    note(&context->err, code, message);
}

int ty_kernel_threads(const struct ty_kernel_context *context)
{
    return context->call->threads;
}
