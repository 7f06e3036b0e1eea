/* build.c - the state of a graph that grows: failures, shapes, scopes. */

#include "runtime/model/build.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/arena.h"

void build_release(struct build *m)
{
    shapes_release(&m->shapes);
    free(m->weights);
    free(m->inits);
    free(m->penalties);
    free(m->updates);
    free(m->copies);
}

void build_refuse(struct build *m, enum error_code code, const char *format, ...)
{
    char text[400];
    va_list args;
    if (m->b.failed)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    m->b.failed = !error_at(m->b.err, m->pointer, code, "%s", text);
}

const struct shape *build_shape(struct build *m, struct edge edge)
{
    static const struct shape unknown = {.rank = -1};
    struct error err;
    if (m->b.failed)
        return &unknown;
    if (!shapes_extend(&m->shapes, m->b.graph, &err)) {
        build_refuse(m, err.code, "%s", err.text);
        return &unknown;
    }
    return shapes_at(&m->shapes, edge);
}

enum dtype build_dtype(struct edge edge)
{
    return edge.from ? (enum dtype)edge.from->output_types[edge.output] : F32;
}

const char *build_enter(struct build *m, const char *name)
{
    const char *outside = m->b.scope;
    m->b.scope = arena_printf(m->arena, "%s%s/", outside, name);
    return outside;
}

void build_leave(struct build *m, const char *outside)
{
    m->b.scope = outside;
}
