/* iterator_handle.c - one run at a time walks the pipeline; the others wait, or are cancelled.
 */

#include "kernels/data/iterator_handle.h"

#include <pthread.h>

#include "base/alloc.h"

struct handle_iterator {
    struct resource resource;
    int width; /* what it declared: 0 for anything */
    int *types;
    struct shape *shapes;

    pthread_mutex_t lock; /* guards: busy */
    pthread_cond_t idle;
    bool busy; /* a run is inside: all below is its own */
    struct pipeline pipeline;
    struct dataset *dataset; /* counted; NULL: none yet */
    struct iterator *it;
};

static void handle_destroy(struct resource *resource)
{
    struct handle_iterator *handle = (struct handle_iterator *)resource;
    kernel_iterator_free(handle->it);
    kernel_pipeline_release(&handle->pipeline);
    if (handle->dataset)
        resource_unref(&handle->dataset->resource);
    pthread_mutex_destroy(&handle->lock);
    pthread_cond_destroy(&handle->idle);
    free(handle->types);
    free(handle->shapes);
    free(handle);
}

struct handle_iterator *kernel_iterator_handle_new(const struct signature *signature)
{
    struct handle_iterator *handle = alloc_bytes(sizeof(*handle));
    handle->resource =
        (struct resource){.kind = ITERATOR_KIND, .references = 1, .destroy = handle_destroy};
    handle->width = signature->width;
    handle->types = alloc_array((size_t)signature->width, sizeof(*handle->types));
    handle->shapes = alloc_array((size_t)signature->width, sizeof(*handle->shapes));
    for (int i = 0; i < signature->width; i++) {
        handle->types[i] = signature->types[i];
        handle->shapes[i] = signature->shapes ? signature->shapes[i] : SHAPE_UNKNOWN;
    }
    kernel_pipeline_init(&handle->pipeline, NULL);
    pthread_mutex_init(&handle->lock, NULL);
    pthread_cond_init(&handle->idle, NULL);
    return handle;
}

struct resource *kernel_iterator_handle_resource(struct handle_iterator *handle)
{
    return &handle->resource;
}

/* --- one at a time --- */

static void wake(void *arg)
{
    struct handle_iterator *handle = arg;
    pthread_mutex_lock(&handle->lock);
    pthread_cond_broadcast(&handle->idle);
    pthread_mutex_unlock(&handle->lock);
}

static bool enter(struct handle_iterator *handle, struct cancel *cancel, struct error *err)
{
    uint64_t ticket;
    if (!cancel_add(cancel, wake, handle, &ticket))
        return fail(err, CANCELLED, "the run was cancelled");
    pthread_mutex_lock(&handle->lock);
    while (handle->busy && !cancel_requested(cancel))
        pthread_cond_wait(&handle->idle, &handle->lock);
    bool entered = !handle->busy;
    if (entered) {
        handle->busy = true;
        handle->pipeline.cancel = cancel;
    }
    pthread_mutex_unlock(&handle->lock);
    cancel_remove(cancel, ticket);
    return entered || fail(err, CANCELLED, "the run was cancelled");
}

static void leave(struct handle_iterator *handle)
{
    pthread_mutex_lock(&handle->lock);
    handle->busy = false;
    handle->pipeline.cancel = NULL;
    pthread_cond_broadcast(&handle->idle);
    pthread_mutex_unlock(&handle->lock);
}

/* --- what runs do --- */

static void replace(struct handle_iterator *handle, struct dataset *dataset,
                    struct iterator *it)
{
    kernel_iterator_free(handle->it);
    kernel_pipeline_clear(&handle->pipeline);
    if (handle->dataset)
        resource_unref(&handle->dataset->resource);
    if (dataset)
        resource_ref(&dataset->resource);
    handle->dataset = dataset;
    handle->it = it;
}

/* Inside. */
static bool set(struct handle_iterator *handle, struct dataset *dataset, struct error *err)
{
    const struct signature signature = {handle->width, handle->types, handle->shapes};
    if (handle->width && !kernel_dataset_suits(dataset, &signature, err))
        return false;
    struct iterator *it = kernel_iterator_new(dataset, &handle->pipeline, NULL, err);
    if (it)
        replace(handle, dataset, it);
    return it != NULL;
}

bool kernel_iterator_handle_set(struct handle_iterator *handle, struct dataset *dataset,
                                struct cancel *cancel, struct error *err)
{
    if (!enter(handle, cancel, err))
        return false;
    bool ok = set(handle, dataset, err);
    leave(handle);
    return ok;
}

bool kernel_iterator_handle_set_once(struct handle_iterator *handle, iterator_source *make,
                                     void *arg, struct cancel *cancel, struct error *err)
{
    if (!enter(handle, cancel, err))
        return false;
    struct dataset *dataset = handle->it ? NULL : make(arg, err);
    bool ok = handle->it || (dataset && set(handle, dataset, err));
    if (dataset)
        resource_unref(&dataset->resource);
    leave(handle);
    return ok;
}

bool kernel_iterator_handle_clear(struct handle_iterator *handle, struct cancel *cancel,
                                  struct error *err)
{
    if (!enter(handle, cancel, err))
        return false;
    replace(handle, NULL, NULL);
    leave(handle);
    return true;
}

bool kernel_iterator_handle_next(struct handle_iterator *handle, struct cancel *cancel,
                                 struct tensor **row, int *width, bool *end, struct error *err)
{
    if (!enter(handle, cancel, err))
        return false;
    bool ok = handle->it != NULL;
    if (ok) {
        *width = handle->dataset->width;
        *row = kernel_row_new(*width);
        ok = kernel_iterator_next(handle->it, *row, end, err);
        if (!ok)
            free(*row);
    } else {
        fail(err, PRECONDITION,
             "GetNext() failed because the iterator has not been initialized. Ensure that you "
             "have run the initializer operation for this iterator before getting the next "
             "element.");
    }
    leave(handle);
    return ok;
}

bool kernel_iterator_handle_suits(const struct handle_iterator *handle,
                                  const struct signature *signature, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!signature->width || !handle->width)
        return true;
    if (signature->width != handle->width)
        return fail(err, INVALID,
                    "Number of components does not match: expected %d types but got %d.",
                    signature->width, handle->width);
    for (int i = 0; i < handle->width; i++) {
        if (handle->types[i] != signature->types[i])
            return fail(err, INVALID,
                        "Data type mismatch at component %d: expected %s but got %s.", i,
                        dtype_name((enum dtype)signature->types[i]),
                        dtype_name((enum dtype)handle->types[i]));
        if (signature->shapes && !shape_compatible(&signature->shapes[i], &handle->shapes[i]))
            return fail(err, INVALID,
                        "Incompatible shapes at component %d: expected %s but got %s.", i,
                        shape_text(&signature->shapes[i], a, sizeof(a)),
                        shape_text(&handle->shapes[i], b, sizeof(b)));
    }
    return true;
}
