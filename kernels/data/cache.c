/*
 * cache.c - CacheDataset in memory: the first pass that reaches the end keeps what it gave for
 * all later ones.
 */

#include <pthread.h>

#include "base/alloc.h"
#include "kernels/data/dataset.h"

#define CACHE_KIND "memory_cache"

/* Filled once, then never changed. */
struct memory {
    struct resource resource;
    pthread_mutex_t lock; /* guards: full; rows, until full */
    bool full;
    struct rows rows;
};

static void memory_destroy(struct resource *resource)
{
    struct memory *memory = (struct memory *)resource;
    kernel_rows_release(&memory->rows);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static struct memory *memory_new(void)
{
    struct memory *memory = alloc_bytes(sizeof(*memory));
    memory->resource =
        (struct resource){.kind = CACHE_KIND, .references = 1, .destroy = memory_destroy};
    pthread_mutex_init(&memory->lock, NULL);
    return memory;
}

static bool memory_is_full(struct memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    bool full = memory->full;
    pthread_mutex_unlock(&memory->lock);
    return full;
}

/* Takes the rows over; those of another pass that was faster stay. */
static void memory_fill(struct memory *memory, struct rows *rows)
{
    pthread_mutex_lock(&memory->lock);
    if (!memory->full) {
        memory->rows = *rows;
        memory->full = true;
        *rows = (struct rows){.width = rows->width};
    }
    pthread_mutex_unlock(&memory->lock);
}

struct cache {
    struct dataset dataset;
    struct memory *memory;
};

struct cached {
    struct iterator it;
    struct iterator *at; /* NULL: reads the memory */
    struct rows rows;    /* what this pass gave */
    int64_t next;
};

static bool cached_begin(struct iterator *it, struct error *err)
{
    struct cached *cached = (struct cached *)it;
    cached->rows.width = it->dataset->width;
    if (memory_is_full(((struct cache *)it->dataset)->memory))
        return true;
    cached->at = kernel_iterator_new(it->dataset->inputs[0], it->pipeline, it, err);
    return cached->at != NULL;
}

static void share_row(struct tensor *out, const struct tensor *row, int width)
{
    for (int i = 0; i < width; i++)
        tensor_share(&out[i], &row[i]);
}

static bool cached_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct cached *cached = (struct cached *)it;
    struct memory *memory = ((struct cache *)it->dataset)->memory;
    if (!cached->at) {
        *end = cached->next >= memory->rows.count || memory->rows.width != it->dataset->width;
        if (!*end)
            share_row(out, kernel_rows_at(&memory->rows, cached->next++), it->dataset->width);
        return true;
    }
    if (!kernel_iterator_next(cached->at, out, end, err))
        return false;
    if (*end)
        memory_fill(memory, &cached->rows);
    else
        share_row(kernel_rows_add(&cached->rows), out, it->dataset->width);
    return true;
}

static void cached_end(struct iterator *it)
{
    struct cached *cached = (struct cached *)it;
    kernel_iterator_free(cached->at);
    kernel_rows_release(&cached->rows);
}

static int64_t cache_cardinality(const struct dataset *dataset)
{
    return kernel_dataset_cardinality(dataset->inputs[0]);
}

static void cache_release(struct dataset *dataset)
{
    struct memory *memory = ((struct cache *)dataset)->memory;
    if (memory)
        resource_unref(&memory->resource);
}

static const struct dataset_type cache_type = {
    .name = "MemoryCache",
    .dataset_size = sizeof(struct cache),
    .iterator_size = sizeof(struct cached),
    .lazy = true,
    .begin = cached_begin,
    .next = cached_next,
    .end = cached_end,
    .cardinality = cache_cardinality,
    .release = cache_release,
};

/* Input 1 names a file, "" for memory; input 2 (V2) may be the handle of a memory to share. */
static bool cache_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *name = kernel_in(call, 1);
    struct error none;
    if (name->shape.rank != 0)
        return fail(err, INVALID, "filename must be a scalar");
    if (tensor_strings(name)->size)
        return kernel_dataset_output(call, kernel_file_cache_make(call, err), err);
    struct cache *cache = (struct cache *)kernel_dataset_make(call, &cache_type, 0, 1, err);
    if (!cache)
        return false;
    struct resource *shared =
        call->in_count > 2 ? kernel_resource(call, 2, CACHE_KIND, &none) : NULL;
    cache->memory = shared ? (struct memory *)shared : memory_new();
    return kernel_dataset_output(call, &cache->dataset, err);
}

static bool anonymous_run(struct kernel_call *call, struct error *err)
{
    struct memory *memory = memory_new();
    bool ok =
        kernel_output_resource(call, 0, &memory->resource, "", "AnonymousMemoryCache", err) &&
        kernel_output_resource(call, 1, &memory->resource, NULL, NULL, err);
    resource_unref(&memory->resource);
    return ok;
}

/* A handle to nothing: a dataset that gets it makes what it needs itself. */
static bool dummy_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    struct resource_handle *handle = out->data;
    handle->container = alloc_text("");
    handle->name = alloc_text(call->node->op->name);
    return true;
}

/* The handle and its deleter go when nobody holds them. */
static bool forget_run(struct kernel_call *call, struct error *err)
{
    (void)call;
    (void)err;
    return true;
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_cache_dataset = DATASET("CacheDataset", cache_run);
const struct kernel kernel_cache_dataset_v2 = DATASET("CacheDatasetV2", cache_run);
const struct kernel kernel_anonymous_memory_cache =
    DATASET("AnonymousMemoryCache", anonymous_run);
const struct kernel kernel_dummy_memory_cache = DATASET("DummyMemoryCache", dummy_run);
const struct kernel kernel_dummy_seed_generator = DATASET("DummySeedGenerator", dummy_run);
const struct kernel kernel_dummy_iteration_counter =
    DATASET("DummyIterationCounter", dummy_run);
const struct kernel kernel_delete_memory_cache = DATASET("DeleteMemoryCache", forget_run);
const struct kernel kernel_delete_seed_generator = DATASET("DeleteSeedGenerator", forget_run);
const struct kernel kernel_delete_random_seed_generator =
    DATASET("DeleteRandomSeedGenerator", forget_run);
