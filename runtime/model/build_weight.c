/* build_weight.c - variables: their handles, first values, and reads. */

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/model/build.h"

int build_weight_find(const struct build *m, const char *name)
{
    for (int i = 0; i < m->weights_count; i++) {
        const struct build_weight *weight = &m->weights[i];
        if (!strcmp(weight->parts ? weight->face.whole : weight->face.name, name))
            return i;
    }
    return -1;
}

static bool fits(struct build *m, const char *name, const struct shape *shape, enum dtype dtype)
{
    int64_t count = shape_count(shape);
    char text[SHAPE_TEXT_BYTES];
    if (count >= 0 && count <= LIMIT_TENSOR_BYTES / (int64_t)dtype_size(dtype))
        return true;
    build_refuse(m, EXHAUSTED, "the variable \"%s\" would be %s, allowed: %lld bytes", name,
                 shape_text(shape, text, sizeof(text)), (long long)LIMIT_TENSOR_BYTES);
    return false;
}

/*
 * Where variables go when there are several tasks for them: with the one that they belong to
 * ("conv/kernel/Adam" to "conv/kernel"), with their layer if it has a place, else where the
 * fewest bytes are.
 */
static const char *choose_device(struct build *m, const char *name, const struct shape *shape,
                                 enum dtype dtype)
{
    int least = 0;
    size_t longest = 0;
    const char *device = NULL;
    for (int i = 0; i < m->weights_count; i++) {
        const char *other = m->weights[i].face.name;
        size_t size = strlen(other);
        if (size > longest && !strncmp(name, other, size) && name[size] == '/') {
            longest = size;
            device = m->weights[i].device;
        }
    }
    if (!longest)
        device = m->home;
    if (!m->servers_count)
        return device;
    for (int i = 1; i < m->servers_count; i++)
        least = m->server_bytes[i] < m->server_bytes[least] ? i : least;
    for (int i = 0; device && i < m->servers_count; i++)
        least = !strcmp(device, m->servers[i]) ? i : least;
    bool served = !device || !strcmp(device, m->servers[least]);
    if (served)
        m->server_bytes[least] += shape_count(shape) * (int64_t)dtype_size(dtype);
    return served ? m->servers[least] : device;
}

int build_weight_add(struct build *m, const char *name, const struct shape *shape,
                     enum dtype dtype, bool trainable, struct edge initial)
{
    struct builder *b = &m->b;
    if (b->failed || !fits(m, name, shape, dtype))
        return -1;
    const char *outside = b->scope, *outside_device = b->device;
    b->scope = "";
    name = arena_text(m->arena, name);
    b->device = choose_device(m, name, shape, dtype);
    const char *device = b->device;
    struct edge handle =
        builder_add(b, "VarHandleOp", name, NO_INPUTS,
                    ATTRS(attr_type("dtype", (int)dtype), attr_shape("shape", shape),
                          attr_string("shared_name", name)));
    struct edge assign =
        builder_add(b, "AssignVariableOp", arena_printf(m->arena, "%s/Assign", name),
                    INPUTS(handle, initial), ATTRS(attr_type("dtype", (int)dtype)));
    b->scope = outside;
    b->device = outside_device;
    if (b->failed)
        return -1;
    m->weights =
        alloc_grow(m->weights, m->weights_count, &m->weights_capacity, sizeof(*m->weights));
    m->inits = alloc_grow(m->inits, m->inits_count, &m->inits_capacity, sizeof(*m->inits));
    m->inits[m->inits_count++] = assign.from;
    m->weights[m->weights_count] = (struct build_weight){
        .face = {.name = name, .dtype = (int)dtype, .shape = *shape, .trainable = trainable},
        .handle = handle,
        .device = device};
    return m->weights_count++;
}

/* A worker's mirror, and what copies the variable there. */
static struct edge add_mirror(struct build *m, struct build_weight *of, int worker)
{
    struct builder *b = &m->b;
    const char *outside = b->scope, *outside_device = b->device;
    const char *name = arena_printf(m->arena, "%s/replica_%d", of->face.name, worker);
    b->scope = "";
    if (!of->mirrored.from) {
        b->device = of->device;
        of->mirrored =
            builder_add(b, "ReadVariableOp", arena_printf(m->arena, "mirror/%s", of->face.name),
                        INPUTS(of->handle), ATTRS(attr_type("dtype", of->face.dtype)));
    }
    b->device = m->mirrors[worker];
    struct edge handle = builder_add(b, "VarHandleOp", name, NO_INPUTS,
                                     ATTRS(attr_type("dtype", of->face.dtype),
                                           attr_shape("shape", &of->face.shape),
                                           attr_string("shared_name", name)));
    struct edge assign =
        builder_add(b, "AssignVariableOp", arena_printf(m->arena, "%s/Assign", name),
                    INPUTS(handle, of->mirrored), ATTRS(attr_type("dtype", of->face.dtype)));
    b->scope = outside;
    b->device = outside_device;
    if (b->failed)
        return (struct edge){0};
    m->copies = alloc_grow(m->copies, m->copies_count, &m->copies_capacity, sizeof(*m->copies));
    m->copies[m->copies_count++] = assign.from;
    return handle;
}

struct edge build_weight_handle(struct build *m, int weight)
{
    if (m->b.failed || weight < 0)
        return (struct edge){0};
    struct build_weight *of = &m->weights[weight];
    int worker = m->hosts ? m->hosts[m->replica] : m->replica;
    if (!m->mirrors || !worker)
        return of->handle;
    if (!of->mirrors)
        of->mirrors = arena_array(m->arena, (size_t)m->mirrors_count, sizeof(*of->mirrors));
    if (!of->mirrors[worker].from)
        of->mirrors[worker] = add_mirror(m, of, worker);
    return of->mirrors[worker];
}

struct edge build_weight_read(struct build *m, int weight)
{
    if (m->b.failed || weight < 0)
        return (struct edge){0};
    const struct build_weight *of = &m->weights[weight];
    struct shape shape = of->face.shape;
    if (of->parts)
        return build_parts_read(m, weight);
    struct edge value = builder_add(&m->b, "ReadVariableOp", "ReadVariableOp",
                                    INPUTS(build_weight_handle(m, weight)),
                                    ATTRS(attr_type("dtype", of->face.dtype)));
    if (build_shape(m, value)->rank < 0 && build_ok(m))
        *shapes_at(&m->shapes, value) = shape;
    return value;
}
