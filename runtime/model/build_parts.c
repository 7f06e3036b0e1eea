/*
 * build_parts.c - variables in parts, as TensorFlow's partitioned variables: "table/part_0" has
 * the first rows, and so on; the first `rows % parts` of them have one more.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/model/build.h"

static int64_t rows_before(int64_t rows, int parts, int part)
{
    int64_t more = rows % parts;
    return rows / parts * part + (part < more ? part : more);
}

/* The first rows of a value. */
static struct edge rows_of(struct build *m, struct edge value, const struct shape *shape,
                           int64_t first)
{
    int64_t begin[LIMIT_TENSOR_RANK] = {first};
    return build_slice(m, value, begin, shape->dims, shape->rank);
}

int build_parts_add(struct build *m, const char *name, const struct shape *shape, int parts,
                    bool trainable, struct edge initial)
{
    int first = m->weights_count;
    const char *whole = arena_text(m->arena, name);
    for (int i = 0; i < parts && build_ok(m); i++) {
        int64_t begin = rows_before(shape->dims[0], parts, i);
        struct shape own = *shape;
        own.dims[0] = rows_before(shape->dims[0], parts, i + 1) - begin;
        const char *part = arena_printf(m->arena, "%s/part_%d", name, i);
        const char *outside = build_enter(m, arena_printf(m->arena, "%s/Initializer", part));
        struct edge start = rows_of(m, initial, &own, begin);
        build_leave(m, outside);
        int index = build_weight_add(m, part, &own, F32, trainable, start);
        if (index < 0)
            return -1;
        struct model_variable *face = &m->weights[index].face;
        face->whole = whole;
        face->whole_shape = *shape;
        face->first = begin;
    }
    if (!build_ok(m))
        return -1;
    m->weights[first].parts = parts;
    return first;
}

static struct edge read_part(struct build *m, int weight)
{
    return builder_add(&m->b, "ReadVariableOp", "ReadVariableOp",
                       INPUTS(build_weight_handle(m, weight)),
                       ATTRS(attr_type("dtype", m->weights[weight].face.dtype)));
}

struct edge build_parts_read(struct build *m, int first)
{
    int parts = m->weights[first].parts;
    struct edge *values = arena_array(m->arena, (size_t)parts, sizeof(*values));
    for (int i = 0; i < parts; i++)
        values[i] = read_part(m, first + i);
    return build_concat(m, values, parts, 0);
}

/*
 * Numbers of other parts look up a row that is then put to zero.  The ends are not clipped: a
 * number that no part has is the first's or the last's, which refuses it as one table would.
 */
static struct edge rows_from_part(struct build *m, int first, int part, struct edge numbers)
{
    int parts = m->weights[first].parts;
    const struct model_variable *face = &m->weights[first + part].face;
    enum dtype dtype = build_dtype(numbers);
    struct edge begin = build_number(m, dtype, (double)face->first);
    struct edge end = build_number(m, dtype, (double)(face->first + face->shape.dims[0]));
    struct edge own = {0}, local = build_binary(m, "Sub", numbers, begin);
    if (part > 0)
        own = build_binary(m, "GreaterEqual", numbers, begin);
    if (part < parts - 1) {
        struct edge below = build_binary(m, "Less", numbers, end);
        own = own.from ? build_binary(m, "LogicalAnd", own, below) : below;
    }
    local = build_select(m, own, local, build_unary(m, "ZerosLike", local));
    struct edge rows = builder_add(&m->b, "ResourceGather", "embedding_lookup",
                                   INPUTS(build_weight_handle(m, first + part), local),
                                   ATTRS(attr_type("dtype", F32)));
    struct edge mask = own;
    for (int d = 1; d < face->shape.rank; d++)
        mask = build_expand(m, mask, -1);
    return build_select(m, mask, rows, build_unary(m, "ZerosLike", rows));
}

struct edge build_parts_gather(struct build *m, int first, struct edge numbers)
{
    int parts = m->weights[first].parts;
    struct edge *rows = arena_array(m->arena, (size_t)parts, sizeof(*rows));
    const char *outside = build_enter(m, "embedding_lookup");
    for (int i = 0; i < parts && build_ok(m); i++)
        rows[i] = rows_from_part(m, first, i, numbers);
    struct edge sum = builder_add(&m->b, "AddN", "AddN", rows, parts, NO_ATTRS);
    build_leave(m, outside);
    return sum;
}
