/* record_index.c - offsets and sizes by the number of a record, and the files they are in. */

#include "runtime/dataset/record_index.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/file.h"

#define INDEX_OPEN_MAX 256 /* files kept open; others are opened for each record */
#define INDEX_FIRST 1024

struct record_index {
    struct indexed_file {
        char *path;
        int fd;        /* -1: opened when it is read */
        int64_t first; /* of its records */
    } * files;
    int files_count, files_capacity;
    int64_t *offsets;
    uint32_t *sizes;
    int64_t count, capacity;
};

struct record_index *record_index_new(void)
{
    return alloc_bytes(sizeof(struct record_index));
}

void record_index_free(struct record_index *index)
{
    if (!index)
        return;
    for (int i = 0; i < index->files_count; i++) {
        if (index->files[i].fd >= 0)
            close(index->files[i].fd);
        free(index->files[i].path);
    }
    free(index->files);
    free(index->offsets);
    free(index->sizes);
    free(index);
}

bool record_index_add_file(struct record_index *index, const char *path, bool stays,
                           struct error *err)
{
    int fd = -1;
    if (index->files_count < INDEX_OPEN_MAX) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return file_error(err, "read", path);
    } else if (!stays) {
        return fail(err, EXHAUSTED, "%s: more than %d compressed files", path, INDEX_OPEN_MAX);
    }
    index->files = alloc_grow(index->files, index->files_count, &index->files_capacity,
                              sizeof(*index->files));
    index->files[index->files_count++] =
        (struct indexed_file){alloc_text(path), fd, index->count};
    return true;
}

static bool grow(struct record_index *index, struct error *err)
{
    int64_t capacity = index->capacity ? index->capacity + index->capacity / 2 : INDEX_FIRST;
    int64_t *offsets = realloc(index->offsets, (size_t)capacity * sizeof(*offsets));
    if (offsets)
        index->offsets = offsets;
    uint32_t *sizes = realloc(index->sizes, (size_t)capacity * sizeof(*sizes));
    if (sizes)
        index->sizes = sizes;
    if (!offsets || !sizes)
        return fail(err, EXHAUSTED, "no memory to note where %lld records lie",
                    (long long)capacity);
    index->capacity = capacity;
    return true;
}

bool record_index_add(struct record_index *index, int64_t offset, size_t size,
                      struct error *err)
{
    assert(index->files_count > 0);
    if (size > LIMIT_RECORD_BYTES)
        return fail(err, EXHAUSTED, "a record of %zu bytes, allowed: at most %lld", size,
                    (long long)LIMIT_RECORD_BYTES);
    if (index->count == INT32_MAX)
        return fail(err, EXHAUSTED, "more than %d records", INT32_MAX);
    if (index->count == index->capacity && !grow(index, err))
        return false;
    index->offsets[index->count] = offset;
    index->sizes[index->count++] = (uint32_t)size;
    return true;
}

int64_t record_index_count(const struct record_index *index)
{
    return index->count;
}

/* The last file whose first record is not behind this one. */
static const struct indexed_file *file_of(const struct record_index *index, int64_t record)
{
    int low = 0, high = index->files_count;
    assert(record >= 0 && record < index->count);
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (index->files[middle].first <= record)
            low = middle;
        else
            high = middle;
    }
    return &index->files[low];
}

const char *record_index_path(const struct record_index *index, int64_t record)
{
    return file_of(index, record)->path;
}

bool record_index_blame(const struct record_index *index, int64_t record, struct error *err)
{
    return error_prefix(err, "%s, the record at byte %lld: ", file_of(index, record)->path,
                        (long long)index->offsets[record]);
}

static ssize_t read_all(int fd, char *out, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(fd, out + done, size - done, offset + (int64_t)done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? count : (ssize_t)done;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

bool record_index_read(const struct record_index *index, int64_t record, struct str *out,
                       struct error *err)
{
    const struct indexed_file *file = file_of(index, record);
    size_t size = index->sizes[record];
    int fd = file->fd >= 0 ? file->fd : open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(err, "read", file->path);
    str_clear(out);
    ssize_t count = read_all(fd, str_extend(out, size), size, index->offsets[record]);
    bool ok = count >= 0 || file_error(err, "read", file->path);
    if (fd != file->fd)
        close(fd);
    return ok && (count == (ssize_t)size ||
                  (fail(err, DATA_LOSS, "the file ends within it, so it was changed") ||
                   record_index_blame(index, record, err)));
}
