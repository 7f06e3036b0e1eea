/* build_weight.c - variables: their handles, first values, and reads. */

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/model/build.h"

int build_weight_find(const struct build *m, const char *name)
{
    for (int i = 0; i < m->weights_count; i++) {
        if (!strcmp(m->weights[i].face.name, name))
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

int build_weight_add(struct build *m, const char *name, const struct shape *shape,
                     enum dtype dtype, bool trainable, struct edge initial)
{
    struct builder *b = &m->b;
    if (b->failed || !fits(m, name, shape, dtype))
        return -1;
    const char *outside = b->scope;
    b->scope = "";
    name = arena_text(m->arena, name);
    struct edge handle =
        builder_add(b, "VarHandleOp", name, NO_INPUTS,
                    ATTRS(attr_type("dtype", (int)dtype), attr_shape("shape", shape),
                          attr_string("shared_name", name)));
    struct edge assign =
        builder_add(b, "AssignVariableOp", arena_printf(m->arena, "%s/Assign", name),
                    INPUTS(handle, initial), ATTRS(attr_type("dtype", (int)dtype)));
    b->scope = outside;
    if (b->failed)
        return -1;
    m->weights =
        alloc_grow(m->weights, m->weights_count, &m->weights_capacity, sizeof(*m->weights));
    m->inits = alloc_grow(m->inits, m->inits_count, &m->inits_capacity, sizeof(*m->inits));
    m->inits[m->inits_count++] = assign.from;
    m->weights[m->weights_count] = (struct build_weight){
        .face = {.name = name, .dtype = (int)dtype, .shape = *shape, .trainable = trainable},
        .handle = handle};
    return m->weights_count++;
}

struct edge build_weight_read(struct build *m, int weight)
{
    if (m->b.failed || weight < 0)
        return (struct edge){0};
    const struct build_weight *of = &m->weights[weight];
    struct shape shape = of->face.shape;
    struct edge value =
        builder_add(&m->b, "ReadVariableOp", "ReadVariableOp", INPUTS(of->handle),
                    ATTRS(attr_type("dtype", of->face.dtype)));
    if (build_shape(m, value)->rank < 0 && build_ok(m))
        *shapes_at(&m->shapes, value) = shape;
    return value;
}
