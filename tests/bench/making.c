/* making.c - variables and layers of a model in the making; see making.h. */

#include "tests/bench/making.h"

#include <math.h>

#include "base/error.h"

struct edge making_add(struct making *m, const char *op, const struct edge *inputs, int count)
{
    return builder_add(&m->b, op, op, inputs, count, NO_ATTRS);
}

struct edge making_variable(struct making *m, const char *name, struct tensor *value)
{
    struct edge handle =
        builder_add(&m->b, "VarHandleOp", name, NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &value->shape),
                          attr_string("shared_name", name)));
    struct edge start = builder_const(&m->b, "start", value);
    struct edge assign = builder_add(&m->b, "AssignVariableOp", "start/Assign",
                                     INPUTS(handle, start), ATTRS(attr_type("dtype", F32)));
    m->starts[m->starts_count++] = assign.from;
    tensor_release(value);
    return handle;
}

struct edge making_filled(struct making *m, const char *name, const struct shape *shape,
                          double number)
{
    struct tensor value;
    if (!tensor_init(&value, F32, shape, m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    for (int64_t i = 0; i < value.count; i++)
        tensor_set_number(&value, i, number);
    return making_variable(m, name, &value);
}

struct edge making_read_variable(struct making *m, struct edge handle)
{
    return builder_add(&m->b, "ReadVariableOp", "read", INPUTS(handle),
                       ATTRS(attr_type("dtype", F32)));
}

struct edge making_weights(struct making *m, const struct shape *shape)
{
    char name[16];
    snprintf(name, sizeof(name), "w%d", m->count);
    int64_t fan = 1;
    for (int i = 0; i < shape->rank - 1; i++)
        fan *= shape->dims[i];
    float scale = (float)(1 / sqrt((double)fan));
    struct tensor value;
    if (!tensor_init(&value, F32, shape, m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    for (int64_t i = 0; i < value.count; i++)
        tensor_f32_mut(&value)[i] =
            (bench_number(2 + (uint64_t)m->count, (uint64_t)i) * 2 - 1) * scale;
    struct edge handle = making_variable(m, name, &value);
    m->handles[m->count++] = handle;
    return making_read_variable(m, handle);
}

struct edge making_vector(struct making *m, int64_t count, double start)
{
    char name[16];
    snprintf(name, sizeof(name), "b%d", m->count);
    struct edge handle = making_filled(m, name, &SHAPE(count), start);
    m->handles[m->count++] = handle;
    return making_read_variable(m, handle);
}

struct edge making_dense(struct making *m, struct edge x, int64_t in, int64_t out)
{
    struct edge product =
        making_add(m, "MatMul", INPUTS(x, making_weights(m, &SHAPE(in, out))));
    return making_add(m, "BiasAdd", INPUTS(product, making_vector(m, out, 0)));
}
