/*
 * cache_file.c - CacheDataset in a file: a checkpoint whose tensors are named by element and
 * component, as TensorFlow names them, so that either reads the other's.
 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "kernels/data/dataset.h"
#include "runtime/io/bundle.h"

struct file_cache {
    struct dataset dataset;
    char *path;
};

struct cached {
    struct iterator it;
    struct bundle_reader *reader; /* or, while the first pass writes: */
    struct iterator *at;
    struct bundle_writer *writer;
    char *lock; /* path of the lock file that is ours */
    int64_t next;
};

static const char *path_of(const struct iterator *it)
{
    return ((const struct file_cache *)it->dataset)->path;
}

static char *name_of(const struct iterator *it, int64_t element, int component)
{
    int digits = snprintf(NULL, 0, "%d", it->dataset->width - 1);
    return alloc_printf("%7lld_%*d", (long long)element, digits, component);
}

/* One pass at a time writes. */
static bool take_lock(struct cached *cached, struct error *err)
{
    char *path = alloc_printf("%s_0.lockfile", path_of(&cached->it));
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    bool ok = fd >= 0;
    if (!ok && errno == EEXIST)
        fail(err, EXISTS,
             "There appears to be a concurrent caching iterator running - cache lockfile "
             "already exists ('%s'). If you are sure no other running TF computations are "
             "using this cache prefix, delete the lockfile and re-initialize the iterator.",
             path);
    else if (!ok)
        error_errno(err, errno == ENOENT ? NOT_FOUND : DENIED, "%s", path);
    else
        close(fd);
    if (ok)
        cached->lock = path;
    else
        free(path);
    return ok;
}

static void give_lock(struct cached *cached)
{
    if (cached->lock)
        unlink(cached->lock);
    free(cached->lock);
    cached->lock = NULL;
}

static bool exists(const char *prefix)
{
    char *index = alloc_printf("%s.index", prefix);
    bool there = access(index, F_OK) == 0;
    free(index);
    return there;
}

static bool cached_begin(struct iterator *it, struct error *err)
{
    struct cached *cached = (struct cached *)it;
    if (exists(path_of(it))) {
        cached->reader = bundle_reader_open(path_of(it), err);
        return cached->reader != NULL;
    }
    cached->at = kernel_iterator_new(it->dataset->inputs[0], it->pipeline, it, err);
    return cached->at != NULL;
}

static void cached_end(struct iterator *it)
{
    struct cached *cached = (struct cached *)it;
    bundle_reader_close(cached->reader);
    bundle_writer_discard(cached->writer);
    kernel_iterator_free(cached->at);
    give_lock(cached);
}

static bool read_next(struct cached *cached, struct tensor *out, bool *end, struct error *err)
{
    struct iterator *it = &cached->it;
    for (int i = 0; i < it->dataset->width && !*end; i++) {
        struct bundle_item item;
        char *name = name_of(it, cached->next, i);
        bool ok = bundle_reader_find(cached->reader, name, &item, err);
        if (!ok && err->code == NOT_FOUND && i == 0)
            *end = ok = true;
        else
            ok = ok && bundle_reader_read(cached->reader, name, &out[i], err);
        free(name);
        if (!ok)
            return false;
    }
    cached->next++;
    return true;
}

static bool write_row(struct cached *cached, const struct tensor *row, struct error *err)
{
    bool ok = true;
    for (int i = 0; ok && i < cached->it.dataset->width; i++) {
        char *name = name_of(&cached->it, cached->next, i);
        ok = bundle_writer_add(cached->writer, name, &row[i], err);
        free(name);
    }
    cached->next++;
    return ok;
}

static bool cached_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct cached *cached = (struct cached *)it;
    if (cached->reader)
        return read_next(cached, out, end, err);
    if (!cached->lock && !take_lock(cached, err))
        return false;
    if (!cached->writer && !(cached->writer = bundle_writer_open(path_of(it), err)))
        return false;
    if (!kernel_iterator_next(cached->at, out, end, err))
        return false;
    if (!*end)
        return write_row(cached, out, err);
    struct bundle_writer *writer = cached->writer;
    cached->writer = NULL;
    bool ok = bundle_writer_finish(writer, err);
    give_lock(cached);
    return ok;
}

static int64_t cache_cardinality(const struct dataset *dataset)
{
    return kernel_dataset_cardinality(dataset->inputs[0]);
}

static void cache_release(struct dataset *dataset)
{
    free(((struct file_cache *)dataset)->path);
}

static const struct dataset_type file_cache_type = {
    .name = "FileCache",
    .dataset_size = sizeof(struct file_cache),
    .iterator_size = sizeof(struct cached),
    .lazy = true,
    .begin = cached_begin,
    .next = cached_next,
    .end = cached_end,
    .cardinality = cache_cardinality,
    .release = cache_release,
};

struct dataset *kernel_file_cache_make(struct kernel_call *call, struct error *err)
{
    const struct tensor_string *path = tensor_strings(kernel_in(call, 1));
    struct file_cache *cache =
        (struct file_cache *)kernel_dataset_make(call, &file_cache_type, 0, 1, err);
    if (!cache)
        return NULL;
    cache->path = alloc_text_n(path->data, path->size);
    return &cache->dataset;
}
