/* kernel.c - the tables of kernels, and what a kernel asks for while it runs. */

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/buffer_shared.h"
#include "runtime/cancel.h"
#include "runtime/internal.h"
#include "runtime/kernel.h"
#include "runtime/op.h"
#include "runtime/pages.h"

/* --- tables --- */

enum { TABLES_MAX = 16 };

/* The kernels of one op, in the order in which they are tried. */
struct choices {
    const struct kernel **kernels;
    int count;
    int capacity;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static const struct kernel *const *tables[TABLES_MAX];
static int tables_count;
static struct map *by_op; /* struct choices, for the life of the process */

void kernel_add_table(const struct kernel *const *kernels)
{
    pthread_mutex_lock(&lock);
    assert(tables_count < TABLES_MAX);
    tables[tables_count++] = kernels;
    if (!by_op)
        by_op = map_new();
    for (; *kernels; kernels++) {
        struct choices *choices = map_find(by_op, (*kernels)->op);
        if (!choices) {
            choices = alloc_bytes(sizeof(*choices));
            map_set(by_op, (*kernels)->op, choices);
        }
        choices->kernels = alloc_grow(choices->kernels, choices->count, &choices->capacity,
                                      sizeof(*choices->kernels));
        choices->kernels[choices->count++] = *kernels;
    }
    pthread_mutex_unlock(&lock);
}

const struct kernel *kernel_at(int table, int index)
{
    pthread_mutex_lock(&lock);
    const struct kernel *kernel = table < tables_count ? tables[table][index] : NULL;
    pthread_mutex_unlock(&lock);
    return kernel;
}

static const struct attr *type_attr(const struct kernel *kernel, const struct node *node)
{
    if (kernel->type_attr)
        return node_attr(node, kernel->type_attr);
    const struct attr *attr = node_attr(node, "T");
    return attr ? attr : node_attr(node, "dtype");
}

static bool takes(const struct kernel *kernel, const struct node *node)
{
    const struct attr *attr = kernel->dtypes ? type_attr(kernel, node) : NULL;
    for (int i = 0; attr && attr->kind == ATTR_TYPE && i < attr->count; i++)
        if (!dtype_known(attr->types[i]) || !(kernel->dtypes & BIT(dtype_base(attr->types[i]))))
            return false;
    return !kernel->accepts || kernel->accepts(node);
}

/* Tables only grow, and choices are never freed, so they may be read without the lock. */
static const struct kernel *find(const struct node *node, enum device_type type,
                                 struct choices *tried)
{
    /* A function's name as op is a call of it. */
    const char *name = node->op->signature ? "PartitionedCall" : node->op->name;
    pthread_mutex_lock(&lock);
    const struct choices *found = by_op ? map_find(by_op, name) : NULL;
    *tried = found ? *found : (struct choices){0};
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < tried->count; i++)
        if (tried->kernels[i]->device == type && takes(tried->kernels[i], node))
            return tried->kernels[i];
    return NULL;
}

bool kernel_exists(const struct node *node, enum device_type type)
{
    struct choices tried;
    return node->op->flow || find(node, type, &tried);
}

/* "DT_FLOAT". */
static void add_type(int type, struct str *text)
{
    str_add(text, "DT_");
    for (const char *name = dtype_name(type); *name; name++)
        str_add_char(text, *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name);
}

/* Of attributes, those that are one value each. */
static void add_attrs(const struct node *node, struct str *text)
{
    const char *before = "these attrs: [";
    for (int i = 0; i < node->attrs_count; i++) {
        const struct attr *attr = &node->attrs[i];
        if (attr->count != 1 || attr->name[0] == '_' || attr->is_list)
            continue;
        size_t size = text->size;
        str_printf(text, "%s%s=", before, attr->name);
        if (attr->kind == ATTR_TYPE)
            add_type(attr->types[0], text);
        else if (attr->kind == ATTR_INT)
            str_printf(text, "%lld", (long long)attr->ints[0]);
        else if (attr->kind == ATTR_BOOL)
            str_add(text, attr->bools[0] ? "true" : "false");
        else if (attr->kind == ATTR_STRING)
            str_printf(text, "\"%.*s\"", (int)attr->strings[0].size, attr->strings[0].data);
        else
            text->size = size;
        before = text->size > size ? ", " : before;
    }
    str_add(text, *before == ',' ? "]" : "these attrs: []");
}

static void add_kernel(const struct kernel *kernel, struct str *text)
{
    const char *before = "; T in [";
    str_printf(text, "  device='%s'", device_type_name(kernel->device));
    for (int t = 1; t < DTYPE_COUNT; t++)
        if (kernel->dtypes & BIT(t)) {
            str_add(text, before);
            add_type(t, text);
            before = ", ";
        }
    str_add(text, *before == ',' ? "]\n" : "\n");
}

const struct kernel *kernel_find(const struct node *node, enum device_type type,
                                 struct error *err)
{
    struct choices tried;
    const struct kernel *kernel = find(node, type, &tried);
    if (kernel)
        return kernel;

    struct str text = {0};
    str_printf(&text, "No OpKernel was registered to support Op '%s' used by {{node %s}} with ",
               node->op->name, node_shown_name(node));
    add_attrs(node, &text);
    str_printf(&text, "\nRegistered devices: [%s]\nRegistered kernels:\n",
               device_type_name(type));
    for (int i = 0; i < tried.count; i++)
        add_kernel(tried.kernels[i], &text);
    if (!tried.count)
        str_add(&text, "  <no registered kernels>\n");
    fail(err, UNIMPLEMENTED, "%s", str_text(&text));
    str_release(&text);
    return NULL;
}

/* --- outputs --- */

static bool same_shape(const struct tensor *tensor, const struct shape *shape)
{
    if (tensor->shape.rank != shape->rank)
        return false;
    for (int i = 0; i < shape->rank; i++)
        if (tensor->shape.dims[i] != shape->dims[i])
            return false;
    return true;
}

/* Gives `out` that shape; false when it is not full or too large. */
static bool set_shape(struct tensor *out, const struct shape *shape)
{
    int64_t count = shape_count(shape);
    if (count < 0)
        return false;
    out->count = count;
    out->shape.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++)
        out->shape.dims[i] = shape->dims[i];
    return true;
}

struct tensor *kernel_output_own(struct kernel_call *call, int index, const struct shape *shape,
                                 struct error *err)
{
    struct tensor *out = &call->out[index];
    const struct kernel_slot *slot = &call->slots[index];
    enum dtype dtype = slot->dtype;
    int64_t bytes_max = call->step->memory_bytes_max;

    /* Before there is such a tensor: what a graph asks for may be many times the machine. */
    int64_t count = shape_count(shape);
    if (count > bytes_max / (int64_t)tensor_element_bytes(dtype)) {
        char text[SHAPE_TEXT_BYTES];
        return fail_null(err, EXHAUSTED,
                         "OOM when allocating tensor with shape%s and type %s: more than the "
                         "session's limit of %lld bytes",
                         shape_text(shape, text, sizeof(text)), dtype_name(dtype),
                         (long long)bytes_max);
    }
    struct tensor made;
    bool ok = slot->sent ? tensor_init_sent(&made, dtype, shape, err)
                         : tensor_init(&made, dtype, shape, err);
    if (!ok)
        return NULL;
    kernel_output_take(call, index, &made);
    return out;
}

/* On the heap: while measuring, for fetches and strings, and where the arena has no room. */
static struct tensor *output_on_heap(struct kernel_call *call, int index,
                                     const struct shape *shape, struct error *err)
{
    struct kernel_slot *slot = &call->slots[index];
    struct tensor *out = kernel_output_own(call, index, shape, err);
    if (!out)
        return NULL;
    if (out->buffer->size > slot->needed)
        slot->needed = out->buffer->size;
    slot->seen = SEEN_OWN;
    if (!slot->pinned)
        call->step->misses++;
    return out;
}

struct tensor *kernel_output(struct kernel_call *call, int index, const struct shape *shape,
                             struct error *err)
{
    struct kernel_slot *slot = &call->slots[index];
    struct tensor *out = &call->out[index];
    if (slot->data && (same_shape(out, shape) || set_shape(out, shape)) &&
        (size_t)out->count * (size_t)slot->element_bytes <= slot->capacity) {
        out->dtype = slot->dtype;
        out->data = slot->data;
        return out;
    }
    return output_on_heap(call, index, shape, err);
}

/* What is sent is not made in memory that other tasks cannot map. */
static bool is_made_elsewhere(const struct kernel_slot *slot, const struct tensor *in)
{
    return slot->sent && in->buffer && in->buffer->file <= 0 &&
           buffer_is_shared_at(tensor_bytes(in));
}

struct tensor *kernel_output_reuse(struct kernel_call *call, int index, int input,
                                   const struct shape *shape, struct error *err)
{
    assert(input < call->in_count);
    struct tensor *in = (struct tensor *)call->in[input];
    struct kernel_slot *slot = &call->slots[index];
    struct tensor *out = &call->out[index];
    bool lent = in && !in->buffer;
    bool free_to_take = in && (input < 64 && call->reusable >> input & 1) &&
                        (lent ? slot->alias == input : tensor_is_exclusive(in)) &&
                        !is_made_elsewhere(slot, in) &&
                        dtype_size(in->dtype) == dtype_size(call->node->output_types[index]) &&
                        ((same_shape(out, shape) && out->count == in->count) ||
                         (set_shape(out, shape) && out->count == in->count));
    if (!free_to_take)
        return kernel_output(call, index, shape, err);

    out->dtype = slot->dtype;
    out->data = in->data;
    out->buffer = in->buffer;
    in->buffer = NULL; /* the reference moved; `in` stays readable for this call */
    slot->seen = input;
    return out;
}

bool kernel_input_take(struct kernel_call *call, int input, struct tensor *out)
{
    assert(input < call->in_count);
    struct tensor *in = (struct tensor *)call->in[input];
    if (!in || !in->buffer || input >= 64 || !(call->reusable >> input & 1) ||
        !tensor_is_exclusive(in))
        return false;
    *out = *in;
    in->buffer = NULL; /* as above */
    return true;
}

bool kernel_input_take_apart(struct kernel_call *call, int input, struct tensor *whole)
{
    for (int i = 0; i < call->node->outputs_count; i++)
        if (!call->slots[i].pinned)
            return false;
    return BIT(call->in[input]->dtype) & DTYPES_PLAIN && kernel_input_take(call, input, whole);
}

bool kernel_output_part(struct kernel_call *call, int index, const struct tensor *whole,
                        int64_t first, const struct shape *shape)
{
    size_t offset = (size_t)first * dtype_size(whole->dtype);
    if (offset % TENSOR_ALIGN != 0)
        return false;
    struct tensor part = *whole;
    bool full = set_shape(&part, shape);
    assert(full);
    assert(first + part.count <= whole->count);
    part.data = (char *)whole->data + offset;
    buffer_ref(part.buffer);
    kernel_output_take(call, index, &part);
    return true;
}

/* Which input `tensor` is, -1 if it is none. */
static int input_index(const struct kernel_call *call, const struct tensor *tensor)
{
    for (int i = 0; i < call->in_count; i++)
        if (call->in[i] == tensor)
            return i;
    return -1;
}

void kernel_output_share(struct kernel_call *call, int index, const struct tensor *tensor,
                         const struct shape *shape)
{
    struct kernel_slot *slot = &call->slots[index];
    struct tensor *out = &call->out[index];
    int input = input_index(call, tensor);
    slot->seen = input >= 0 ? input : SEEN_FOREIGN;
    if (!tensor->buffer && input >= 0 && slot->alias == input) {
        bool full = set_shape(out, shape);
        assert(full);
        assert(out->count == tensor->count);
        out->dtype = tensor->dtype;
        out->data = tensor->data;
        return;
    }
    if (!tensor->buffer) { /* lent for another time than the output's: a copy */
        struct error err;
        if (kernel_output(call, index, shape, &err)) {
            memcpy(out->data, tensor->data, tensor_bytes(tensor));
            return;
        }
    }
    tensor_release(out);
    tensor_share_as(out, tensor, shape);
}

void kernel_output_take(struct kernel_call *call, int index, struct tensor *tensor)
{
    assert(tensor->buffer);
    struct tensor *out = &call->out[index];
    tensor_release(out);
    *out = *tensor;
    *tensor = (struct tensor){0};
    call->slots[index].seen = SEEN_FOREIGN;
}

/* --- scratch: a block that grows between calls, never while one runs --- */

enum { SCRATCH_FIRST = 64 << 10 };

void *kernel_scratch(struct kernel_call *call, size_t size, struct error *err)
{
    struct step *step = call->step;
    size_t rounded = (size + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
    if (rounded < size || rounded > (size_t)LIMIT_TENSOR_BYTES)
        return fail_null(err, EXHAUSTED, "a kernel asks for %zu bytes of scratch memory", size);

    struct scratch_block *block = step->scratch;
    if (!block || block->size - block->used < rounded) {
        size_t wanted = rounded < SCRATCH_FIRST ? SCRATCH_FIRST : rounded;
        struct scratch_block *more = pages_new(TENSOR_ALIGN + wanted);
        if (!more)
            return fail_null(err, EXHAUSTED, "OOM when allocating %zu bytes of scratch memory",
                             size);
        *more = (struct scratch_block){.next = block, .size = wanted};
        block = step->scratch = more;
    }
    void *memory = (char *)block + TENSOR_ALIGN + block->used;
    block->used += rounded;
    return memory;
}

/* --- kernels that wait --- */

void kernel_done(struct kernel_call *call, const struct error *err)
{
    call->done(call, err);
}

struct cancel *kernel_cancel(struct kernel_call *call)
{
    return call->step->cancel;
}

struct collective *kernel_collective(struct kernel_call *call)
{
    return call->step->collective;
}

/* Kernels that have been started may ask at the same time: the first one's stay. */
struct resources *kernel_step_resources(struct kernel_call *call)
{
    struct resources **place = &call->step->resources;
    struct resources *there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (there)
        return there;
    struct resources *made = resources_new("step");
    if (__atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    resources_free(made);
    return there;
}

void kernel_hold(struct kernel_call *call, struct resource *resource)
{
    struct held *held = alloc_bytes(sizeof(*held));
    held->resource = resource;
    held->next = __atomic_load_n(&call->step->held, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&call->step->held, &held->next, held, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ; /* another kernel was first */
}

/* --- handles --- */

struct resource *kernel_resource(struct kernel_call *call, int index, const char *kind,
                                 struct error *err)
{
    const struct tensor *tensor = index < call->in_count ? call->in[index] : NULL;
    if (!tensor || tensor->dtype != RESOURCE || tensor->count != 1)
        return fail_null(err, INVALID, "input %d is not a resource handle", index);
    const struct resource_handle *handle = tensor->data;
    struct resource *known = handle->resource;
    const char *container = handle->container ? handle->container : "";
    const char *name = handle->name ? handle->name : "";
    if (known && !__atomic_load_n(&known->removed, __ATOMIC_ACQUIRE)) {
        if (strcmp(known->kind, kind) != 0)
            return fail_null(err, INVALID, "input %d is a handle to a %s, not to a %s", index,
                             known->kind, kind);
        resource_ref(known);
        return known;
    }
    struct resource *found = resources_get(call->resources, container, kind, name);
    return found ? found
                 : fail_null(err, NOT_FOUND, "Resource %s/%s (%s) does not exist", container,
                             name, kind);
}

bool kernel_output_resource(struct kernel_call *call, int index, struct resource *resource,
                            const char *container, const char *name, struct error *err)
{
    struct tensor *out = kernel_output(call, index, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    resource_ref(resource);
    *(struct resource_handle *)out->data = (struct resource_handle){
        .resource = resource,
        .container = container ? alloc_text(container) : NULL,
        .name = name ? alloc_text(name) : NULL,
    };
    return true;
}

const char *kernel_container(const struct kernel_call *call, int input)
{
    const struct tensor *handle = kernel_in(call, input);
    const char *container = NULL;
    if (handle && handle->dtype == RESOURCE && handle->count)
        container = ((const struct resource_handle *)handle->data)->container;
    return resources_container(call->resources, container ? container : "");
}

struct resource *kernel_variant(const struct tensor *tensor, int64_t i, const char *kind,
                                struct error *err)
{
    if (tensor->dtype != VARIANT || i < 0 || i >= tensor->count)
        return fail_null(err, INVALID, "a %s is wanted, there is a tensor of type %s", kind,
                         dtype_name(tensor->dtype));
    struct resource *object = ((const struct resource_handle *)tensor->data)[i].resource;
    if (!object || strcmp(object->kind, kind) != 0)
        return fail_null(err, INVALID, "a %s is wanted, the variant holds %s%s", kind,
                         object ? "a " : "nothing", object ? object->kind : "");
    return object;
}

/* --- variables --- */

/* The handle's own pointer while it is good, else by name, and then held by the run. */
static struct resource *find_resource(struct kernel_call *call,
                                      const struct resource_handle *handle)
{
    struct resource *known = handle->resource;
    if (known && !__atomic_load_n(&known->removed, __ATOMIC_ACQUIRE))
        return known;
    struct resource *found =
        resources_get(call->resources, handle->container ? handle->container : "", "variable",
                      handle->name ? handle->name : "");
    if (found)
        kernel_hold(call, found);
    return found;
}

struct variable *kernel_variable(struct kernel_call *call, int index, struct error *err)
{
    assert(index < call->in_count);
    if (dtype_is_ref(call->node->input_types[index])) {
        struct variable *variable = call->refs ? call->refs[index] : NULL;
        return variable
                   ? variable
                   : fail_null(err, INVALID, "input %d is a value, not a reference", index);
    }
    const struct tensor *tensor = call->in[index];
    if (!tensor || tensor->dtype != RESOURCE || tensor->count < 1)
        return fail_null(err, INVALID, "input %d is not a resource handle", index);
    const struct resource_handle *handle = tensor->data;
    struct resource *resource = find_resource(call, handle);
    if (resource && strcmp(resource->kind, "variable") != 0)
        return fail_null(err, INVALID, "input %d is a handle to a %s, not to a variable", index,
                         resource->kind);
    if (!resource)
        return fail_null(err, NOT_FOUND, "Resource %s/%s (variable) does not exist",
                         handle->container ? handle->container : "",
                         handle->name ? handle->name : "");
    return (struct variable *)resource;
}

void kernel_output_ref(struct kernel_call *call, int index, struct variable *variable)
{
    assert(dtype_is_ref(call->node->output_types[index]));
    if (!__atomic_load_n(&variable->by_ref, __ATOMIC_RELAXED))
        __atomic_store_n(&variable->by_ref, true, __ATOMIC_RELAXED);
    call->slots[index].variable = variable;
}

bool kernel_fail_output_type(const struct kernel_call *call, int index, enum dtype given,
                             struct error *err)
{
    return fail(err, INTERNAL,
                "Output %d of type %s does not match declared output type %s for node "
                "{{node %s}}",
                index, dtype_name(given), dtype_name(call->node->output_types[index]),
                node_shown_name(call->node));
}

bool kernel_error_is_at(const struct error *err, const char *node_name)
{
    static const char begins[] = "{{node ";
    size_t size = strlen(node_name);
    for (const char *at = err->text; (at = strstr(at, begins));) {
        at += sizeof(begins) - 1;
        if (!strncmp(at, node_name, size) && !strncmp(at + size, "}}", 2))
            return true;
    }
    return false;
}
