/* onednn.c - the engine, memory objects and primitives of oneDNN, with our errors. */

#include "kernels/cpu/onednn.h"

#include <pthread.h>

#include "base/error.h"

/* libgomp's; clang has no omp.h without a runtime of its own. */
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_status_t made;

static void make_once(void)
{
    made = dnnl_engine_create(&engine, dnnl_cpu, 0);
    if (made == dnnl_success)
        made = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
}

static bool make(struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_once);
    return onednn_check(made, "engine", err);
}

dnnl_engine_t onednn_engine(struct error *err)
{
    return make(err) ? engine : NULL;
}

dnnl_stream_t onednn_stream(struct error *err)
{
    return make(err) ? stream : NULL;
}

void onednn_threads(int threads)
{
    if (omp_get_max_threads() != threads)
        omp_set_num_threads(threads);
}

bool onednn_check(dnnl_status_t status, const char *what, struct error *err)
{
    switch (status) {
    case dnnl_success:
        return true;
    case dnnl_out_of_memory:
        return fail(err, EXHAUSTED, "oneDNN: %s: out of memory", what);
    case dnnl_unimplemented:
        return fail(err, UNIMPLEMENTED, "oneDNN: %s: no implementation", what);
    default:
        return fail(err, INTERNAL, "oneDNN: %s: status %d", what, (int)status);
    }
}

bool onednn_desc(const_dnnl_op_desc_t operation, const_dnnl_primitive_desc_t hint,
                 const char *avoided, dnnl_primitive_desc_t *desc, struct error *err)
{
    dnnl_primitive_desc_iterator_t each;
    dnnl_engine_t used = onednn_engine(err);
    if (!used ||
        !onednn_check(dnnl_primitive_desc_iterator_create(&each, operation, NULL, engine, hint),
                      "implementations of a primitive", err))
        return false;
    for (bool again = true; again;) {
        const char *name = "";
        *desc = dnnl_primitive_desc_iterator_fetch(each);
        dnnl_primitive_desc_query(*desc, dnnl_query_impl_info_str, 0, &name);
        again = !strncmp(name, avoided, strlen(avoided)) &&
                dnnl_primitive_desc_iterator_next(each) == dnnl_success;
        if (again)
            dnnl_primitive_desc_destroy(*desc);
    }
    dnnl_primitive_desc_iterator_destroy(each);
    return true;
}

bool onednn_primitive(struct onednn_primitive *p, dnnl_primitive_desc_t desc, struct error *err)
{
    dnnl_status_t status = dnnl_primitive_create(&p->primitive, desc);
    dnnl_primitive_desc_destroy(desc);
    return onednn_check(status, "primitive", err);
}

bool onednn_arg(struct onednn_primitive *p, int arg, const dnnl_memory_desc_t *layout,
                struct error *err)
{
    assert(p->args_count < ONEDNN_ARGS);
    if (!make(err))
        return false;
    dnnl_exec_arg_t *a = &p->args[p->args_count];
    a->arg = arg;
    if (!onednn_check(dnnl_memory_create(&a->memory, layout, engine, DNNL_MEMORY_NONE),
                      "memory", err))
        return false;
    p->args_count++;
    return true;
}

void onednn_set(struct onednn_primitive *p, int arg, const void *data)
{
    for (int i = 0; i < p->args_count; i++) {
        if (p->args[i].arg == arg)
            dnnl_memory_set_data_handle(p->args[i].memory, (void *)(uintptr_t)data);
    }
}

bool onednn_reorder(struct onednn_primitive *p, const dnnl_memory_desc_t *from,
                    const dnnl_memory_desc_t *to, struct error *err)
{
    if (!make(err))
        return false;
    if (dnnl_memory_desc_equal(from, to))
        return true;
    dnnl_primitive_desc_t desc;
    dnnl_status_t status =
        dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL);
    return onednn_check(status, "reorder", err) && onednn_primitive(p, desc, err) &&
           onednn_arg(p, DNNL_ARG_FROM, from, err) && onednn_arg(p, DNNL_ARG_TO, to, err);
}

bool onednn_run(struct onednn_primitive *p, struct error *err)
{
    if (!p->primitive)
        return true;
    return onednn_check(dnnl_primitive_execute(p->primitive, stream, p->args_count, p->args),
                        "execute", err);
}

void onednn_release(struct onednn_primitive *p)
{
    for (int i = 0; i < p->args_count; i++)
        dnnl_memory_destroy(p->args[i].memory);
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    *p = (struct onednn_primitive){0};
}
